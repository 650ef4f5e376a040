"""The result file of Graft's own making: tests and measurements as JSON, as kernels and plain commands write it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bot.core.reports import ParsedReport, parse_json
from bot.core.validation import Measurement


def read(path: Path) -> tuple[ParsedReport | None, tuple[Measurement, ...], tuple[str, ...]]:
    """The tests, the usable measurements, and what is wrong with the others; None where there is no file.

    The file holds `{"tests": [{"id", "outcome", "message", "duration"}], "measurements": [{"metric", "unit",
    "samples", …}]}`; a measurement without a finite sample is no measurement.
    """
    if not path.is_file():
        return None, (), ()
    data = path.read_bytes()
    report = parse_json(data)
    try:
        document: Any = json.loads(data)
    except ValueError:
        return report, (), ("the result file is no valid JSON",)
    found: list[Measurement] = []
    problems: list[str] = []
    raw: Any = (document.get("measurements") or document.get("metrics")) if isinstance(document, dict) else None
    items = (
        [{"metric": name, "samples": [value]} for name, value in raw.items()] if isinstance(raw, dict) else raw or []
    )
    for item in items:
        try:
            found.append(Measurement.model_validate(item))
        except ValidationError as error:
            name = item.get("metric") if isinstance(item, dict) else None
            problems.append(f"measurement {name or item!r}: {error.errors()[0]['msg']}"[:300])
    return report, tuple(found), tuple(problems)
