"""How processes log: structlog on stderr, for people or as JSON lines; libraries go the same way."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog


def configure(*, as_json: bool, verbose: bool = False) -> Any:
    """Set logging up for this process; gives the logger that goes into the Context."""
    level = logging.DEBUG if verbose else logging.INFO
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # plain tracebacks: the fancy ones print local variables, and some of those are tokens
    plain = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    render: Any = structlog.processors.JSONRenderer() if as_json else plain
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, render] if as_json else [*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processor=render))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    return structlog.get_logger("graft")
