"""Graft's answer to the commands of one comment: one comment of its own, updated in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bot.core.render.text import BODY_LIMIT, block, code, fit, line, marker, read_block
from bot.core.types import Disposition, LedgerEntry


@dataclass(frozen=True, slots=True)
class Said:
    """The answer to one command: done or refused, with what is to be said (trusted markdown)."""

    command: str
    done: bool
    text: str
    decision: LedgerEntry | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """A comment with the head commit that was known when it came."""

    comment: int
    sha: str


def answer_marker(comment: int) -> str:
    """The hidden line of the answer to a comment."""
    return marker(f"answer-to {comment}")


def answer_body(*, comment: int, url: str, author: str, head: str, said: Sequence[Said]) -> str:
    """The answer's text; its hidden block keeps which commit the comment was about, for when the store is lost.

    `time`: when the answer was given, in seconds since the epoch.
    """
    lead = f"In answer to [{line(author, 60)}]({url}):" if url else f"In answer to {line(author, 60)}:"
    parts = [f"{answer_marker(comment)}\n{lead}"]
    parts += [f"{'✅' if one.done else '❌'} {code(one.command[:300])}\n\n{one.text}" for one in said]
    data: dict[str, Any] = {"comment": comment, "head": head}
    decisions = [one.decision for one in said if one.decision is not None]
    if decisions:
        data["decisions"] = [
            {"sha": d.sha, "as": d.disposition.value, "by": d.by, "reason": d.reason[:500], "owner": d.owner}
            for d in decisions
        ]
    return fit(parts, block("answer", data), BODY_LIMIT - 100)


def read_answer(body: str) -> Bound | None:
    """The binding that an answer of Graft's own keeps; None for any other comment."""
    data = read_block("answer", body)
    if isinstance(data, dict) and isinstance(data.get("comment"), int) and data.get("head"):
        return Bound(data["comment"], str(data["head"]))
    return None


def read_decisions(body: str, time: int | None = None) -> list[LedgerEntry]:
    """The decisions on upstream commits that an answer of Graft's own keeps, for when the store is lost.

    `time`: when the answer was given, in seconds since the epoch.
    """
    data = read_block("answer", body)
    found = data.get("decisions", []) if isinstance(data, dict) else []
    return [
        LedgerEntry(
            sha=str(d["sha"]),
            disposition=Disposition(d["as"]),
            by=str(d["by"]),
            reason=str(d["reason"]),
            owner=d["owner"],
            time=time,
        )
        for d in found
    ]
