"""`graft signature`: failure texts to signatures and classes, by the same function that groups trunk's failures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.cli.terminal import emit, say
from bot.core.signature import signature


class InputError(ValueError):
    """A file that can't be read: what, where, how to mend."""


def command(
    file: Annotated[Path, typer.Argument(help="JSON: [{id, text, test}], test a node id or null.")],
) -> None:
    """Print {id: {signature, class}} as JSON (exit 0, or 2 where the file can't be read)."""
    try:
        answers = {name: _signed(text, test) for name, text, test in _failures(file)}
    except InputError as error:
        say(str(error), err=True)
        raise typer.Exit(2) from None
    emit(json.dumps(answers, indent=1))


def _signed(text: str, test: str | None) -> dict[str, str]:
    told = signature(text, test)
    return {"signature": told.key, "class": told.cls}


def _failures(file: Path) -> list[tuple[str, str, str | None]]:
    """The failures in `file`; a `cases` list inside an object is read too. Raises InputError."""
    try:
        content: Any = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise InputError(
            f"{file}: can't be read ({error.strerror}); give a JSON file of [{{id, text, test}}]"
        ) from None
    except ValueError as error:
        raise InputError(f"{file}: not JSON ({error}); give a list of {{id, text, test}}") from None
    if isinstance(content, dict):
        content = content.get("cases")
    if not isinstance(content, list):
        raise InputError(f"{file}: no list in it; give [{{id, text, test}}]")
    return [_failure(file, index, item) for index, item in enumerate(content)]


def _failure(file: Path, index: int, item: Any) -> tuple[str, str, str | None]:
    if not isinstance(item, dict) or not isinstance(item.get("text"), str) or not isinstance(item.get("id"), str | int):
        raise InputError(f"{file}: entry {index} lacks an `id` or a `text` that is a string; give {{id, text, test}}")
    test = item.get("test")
    if test is not None and not isinstance(test, str):
        raise InputError(f"{file}: entry {index}: `test` must be a node id or null, not {type(test).__name__}")
    return str(item["id"]), item["text"], test
