"""The day on trunk in one table, for the dashboard: new, open, fixed, flaky, masked and age, by area."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.core.render.text import code, line, plural, table

_RED = ("open", "bisecting", "culprit_known")


@dataclass(frozen=True, slots=True)
class DigestRow:
    """One breakage: its areas, when it was opened (or came back) last, when its state last changed, what it masks."""

    number: int | None
    state: str
    areas: Sequence[str]
    opened_at: datetime | None
    changed_at: datetime | None
    masks: int = 0


@dataclass(frozen=True, slots=True)
class SpoiltNote:
    """One run of trunk that a machine spoilt, or that tells no cause; `judged` False: nothing of it counts."""

    suite: str
    why: str
    judged: bool


def digest_section(
    *,
    rows: Sequence[DigestRow],
    infra: Sequence[SpoiltNote],
    now: datetime,
    waiting: int = 0,
    unknown: Sequence[SpoiltNote] = (),
    denied: str = "",
) -> str:
    """The section; empty where trunk never broke and no machine did. Of one day, so that it is still between events.

    `unknown` are runs of other CI that tell no cause, `denied` why it can't be read at all.
    """
    today = now.date()
    alive = [row for row in rows if row.state in (*_RED, "flaky")]
    fixed = [row for row in rows if row.state == "fixed" and row.changed_at and row.changed_at.date() == today]
    put_by = [row for row in rows if row.state == "dismissed" and row.number is not None]
    deleted = sum(row.state == "dismissed" and row.number is None for row in rows)
    parts = []
    if alive or fixed:
        areas = sorted({area for row in (*alive, *fixed) for area in row.areas or ("",)})
        cells = [_cells(area, alive, fixed, now) for area in areas]
        head = ["area", "open", "new today", "fixed today", "flaky", "tests masked", "oldest"]
        parts.append(table(head, cells))
    if infra:
        spoilt = sum(not note.judged for note in infra)
        text = f"Machines: {plural(len(infra), 'run')} of the last day had failures of theirs"
        text += f", {spoilt} of them prove nothing" if spoilt else ""
        parts.append(f"{text}; the last: {code(infra[-1].suite)}, {line(infra[-1].why, 160)}.")
    if unknown:
        tell = "tells" if len(unknown) == 1 else "tell"
        text = f"Other CI: {plural(len(unknown), 'run')} of the last day {tell} no cause"
        parts.append(f"{text}; the last: {code(unknown[-1].suite)}, {line(unknown[-1].why, 200)}.")
    if denied:
        parts.append(f"Other CI can't be read: {line(denied, 200)}.")
    if waiting:
        more = plural(waiting, "more cause")
        parts.append(f"{more} broke trunk without an issue yet: so many are not opened at once.")
    if put_by and parts:
        parts.append(f"Closed by people without a fix: {_numbers(put_by)}.")
    if deleted and parts:
        parts.append(f"Issues that people deleted: of {plural(deleted, 'cause')}.")
    return f"### Trunk on {today:%Y-%m-%d}\n\n" + "\n\n".join(parts) if parts else ""


def _cells(area: str, alive: Sequence[DigestRow], fixed: Sequence[DigestRow], now: datetime) -> list[str]:
    mine = [row for row in alive if area in (row.areas or ("",))]
    red = [row for row in mine if row.state in _RED]
    new = [row for row in mine if row.opened_at and row.opened_at.date() == now.date()]
    flaky = [row for row in mine if row.state == "flaky"]
    mended = [row for row in fixed if area in (row.areas or ("",))]
    ages = [(now - row.opened_at).days for row in mine if row.opened_at]
    return [
        code(area) if area else "–",
        _numbers(red),
        _numbers(new),
        _numbers(mended),
        _numbers(flaky),
        str(sum(row.masks for row in red) or "–"),
        f"{max(ages)} d" if ages else "–",
    ]


def _numbers(rows: Sequence[DigestRow]) -> str:
    named = [f"#{row.number}" if row.number else "not told yet" for row in rows]
    return ", ".join(named[:12]) + (f" and {len(named) - 12} more" if len(named) > 12 else "") if named else "–"
