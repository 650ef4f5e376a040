"""The fork's `.github/graft-waivers.yml` as text: read with every problem named, written the same way each time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from typing import Any

import yaml

from bot.core.command.words import WordError, day
from bot.core.strict_yaml import Document, Path, YamlError, load_yaml
from bot.core.waivers.judge import Waiver

HEADER = "# What may fail for now, by whom and until when. Changed by pull request; Graft reads it from here.\n"
_NEEDED = ("scope", "until", "owner", "reason", "plan", "by")
_KEYS = (*_NEEDED, "given", "pull")
_MAX_WAIVERS = 500


class WaiverFileError(ValueError):
    """A file that can't be used; `problems` tells each with its line."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def read_file(text: str) -> tuple[Waiver, ...]:
    """The waivers of the file in its order, an empty file holding none; raises WaiverFileError."""
    try:
        document = load_yaml(text)
    except YamlError as error:
        raise WaiverFileError([f"line {max(error.line, 1)}: {error.text}"]) from error
    if document.data is None:
        return ()
    listed = document.data.get("waivers") if isinstance(document.data, dict) else None
    items = [] if listed is None else listed
    if not isinstance(document.data, dict) or set(document.data) - {"waivers"} or not isinstance(items, list):
        raise WaiverFileError(["line 1: the file holds one key, waivers, with a list"])
    if len(items) > _MAX_WAIVERS:
        raise WaiverFileError([f"line 1: {len(items)} waivers are too many, at most {_MAX_WAIVERS}"])
    problems: list[str] = []
    found: list[Waiver] = []
    for place, item in enumerate(items):
        wrong = _wrong(item, ("waivers", place), document)
        problems += wrong
        if not wrong:
            found.append(_waiver(item))
    scopes = [waiver.scope for waiver in found]
    problems += [f"line 1: {scope} is waived twice" for scope in dict.fromkeys(scopes) if scopes.count(scope) > 1]
    if problems:
        raise WaiverFileError(problems)
    return tuple(found)


def _wrong(item: Any, path: Path, document: Document) -> list[str]:
    if not isinstance(item, dict):
        return [f"line {document.line(path)}: a waiver is a mapping of {', '.join(_NEEDED)}"]
    out = []
    for key in item:
        if key not in _KEYS:
            near = get_close_matches(key, _KEYS, 1)
            meant = f"did you mean {near[0]}?" if near else f"known: {', '.join(_KEYS)}"
            out.append(f"line {document.line((*path, key))}: there is no key {key}; {meant}")
    for key in _NEEDED:
        if not item.get(key):
            out.append(f"line {document.line(path)}: {key} is missing")
    for key in ("scope", "owner", "reason", "plan"):
        if item.get(key) and not isinstance(item[key], str):
            out.append(f"line {document.line((*path, key))}: {key} is no text: put it in quotes")
    for key in ("until", "given"):
        if item.get(key) and _date(item[key]) is None:
            out.append(f"line {document.line((*path, key))}: {key} is no date: write it as in 2026-12-31")
    by = item.get("by")
    if by and (not isinstance(by, list) or not all(isinstance(name, str) and name for name in by)):
        out.append(f"line {document.line((*path, 'by'))}: by is a list of logins")
    if not isinstance(item.get("pull", 0), int) or isinstance(item.get("pull"), bool):
        out.append(f"line {document.line((*path, 'pull'))}: pull is the number of a pull request")
    return out


def _date(value: object) -> date | None:
    if isinstance(value, datetime):
        return None
    if isinstance(value, date):
        return value
    try:
        return day(str(value))
    except WordError:
        return None


def _waiver(item: dict[str, Any]) -> Waiver:
    until, given = _date(item["until"]), _date(item.get("given"))
    assert until is not None
    return Waiver(
        item["scope"].strip(), until, item["owner"].removeprefix("@"), item["reason"], item["plan"],
        by=tuple(name.removeprefix("@") for name in item["by"]), pull=item.get("pull"),
        given_at=datetime.combine(given, time(), UTC) if given else None,
    )  # fmt: skip


def write_file(waivers: Iterable[Waiver]) -> str:
    """The file's text, by scope; reading it gives the same waivers, without their commits and comments."""
    rows = []
    for waiver in sorted(waivers, key=lambda waiver: waiver.scope):
        row: dict[str, object] = {
            "scope": waiver.scope, "until": waiver.until, "owner": waiver.owner, "reason": waiver.reason,
            "plan": waiver.plan, "by": list(waiver.by),
        }  # fmt: skip
        if waiver.given_at is not None:
            row["given"] = waiver.given_at.astimezone(UTC).date()
        if waiver.pull is not None:
            row["pull"] = waiver.pull
        rows.append(row)
    return HEADER + str(yaml.safe_dump({"waivers": rows}, sort_keys=False, allow_unicode=True, width=110))


def add_to_file(text: str, waiver: Waiver) -> str:
    """The file with one more waiver, in place of one of the same scope; raises WaiverFileError on a broken text."""
    kept = [known for known in read_file(text) if known.scope != waiver.scope]
    return write_file([*kept, replace(waiver, head=None, comment_id=None)])
