"""`graft plan`: the plan for any two repositories, without GitHub: what can land now, what belongs together, why."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.sides import (
    CONFIG_PATH,
    ConfigFile,
    Fork,
    ForkRef,
    Marker,
    Upstream,
    UpstreamRef,
    kept_folder,
    opened,
    settings_of,
)
from bot.cli.terminal import emit, say

if TYPE_CHECKING:
    from bot.cli.pair import Pair
    from bot.clients.git import Git
    from bot.core.types import Plan

_QUIET = 2.0  # seconds
_RECORDED = 5  # picks recorded in one way that nobody told Graft of: said from here on

Explain = Annotated[
    str | None, typer.Option(help="Tell all of one upstream commit: (the start of) its sha, or #number.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")]
Html = Annotated[Path | None, typer.Option(help="Also write a page with the picture of the chains here.")]
At = Annotated[str | None, typer.Option(help="Plan as at the end of that day (YYYY-MM-DD, UTC).")]
Cache = Annotated[Path | None, typer.Option(help="Folder for what was read and fetched; ~/.cache/graft by default.")]


class PlanError(Exception):
    """What could not be read, where, and how to mend it."""


@dataclass(frozen=True, slots=True)
class Sides:
    """What is compared: repositories and refs as the caller named them."""

    upstream: str
    fork: str
    upstream_ref: str | None
    fork_ref: str | None
    at: int | None


def command(
    upstream: Upstream,
    fork: Fork,
    upstream_ref: UpstreamRef = None,
    fork_ref: ForkRef = None,
    config: ConfigFile = None,
    marker: Marker = None,
    explain: Explain = None,
    as_json: AsJson = False,
    html: Html = None,
    at: At = None,
    cache: Cache = None,
) -> None:
    """Say which upstream commits are safe, which belong together, and why (exit 0 done, 2 could not run).

    Writes nothing to either repository. Ages are told by the newer of the two tips, so that the same input gives the
    same plan; only `timings` differ.
    """
    from bot.clients.git import GitError
    from bot.core.config import ConfigError
    from handlers.planning import CannotPlan

    folder = cache or kept_folder()
    try:
        sides = Sides(upstream, fork, upstream_ref, fork_ref, _end_of(at) if at is not None else None)
        with opened(upstream, fork, upstream_ref, fork_ref, folder) as pair:
            plan = _plan(pair, sides, config, marker or [], folder)
            facts = _explained(pair, plan, explain, folder) if explain is not None else None
            _show(plan, sides, facts, html, as_json=as_json)
    except (PlanError, CannotPlan, GitError, ConfigError, ValueError, OSError) as error:
        say(f"graft plan: {error}", err=True)
        raise typer.Exit(2) from None


def _plan(pair: Pair, sides: Sides, config: Path | None, markers: list[str], folder: Path) -> Plan:
    from bot.clients.symbols import SymbolCache
    from handlers.planning import make_plan

    upstream, fork = (_as_of(pair.git, ref, sides.at) for ref in (pair.upstream, pair.fork))
    settings = settings_of(pair.git, fork, config, markers)
    now = sides.at or max(commit.committer_time for commit in pair.git.commits_of([upstream, fork]))
    folder.mkdir(parents=True, exist_ok=True)
    with SymbolCache(folder / "symbols.sqlite") as kept:
        plan = make_plan(
            pair.git, upstream=upstream, fork=fork, config=settings, cache=kept, now=now, progress=_progress()
        )
    _hint(pair.git, plan)
    return plan


def _explained(pair: Pair, plan: Plan, name: str, folder: Path) -> dict[str, Any]:
    """All that is known of one commit; of a conflicting one also with what it conflicts, and where."""
    from bot.core.render.plan import explained

    facts = explained(plan, _named(plan, name))
    if facts is None:  # pragma: no cover - _named found it in the plan
        raise PlanError(f"{name} is not in the plan")
    if facts.get("verdict") == "conflict":
        from bot.clients.symbols import SymbolCache
        from handlers.clashing import clash

        with SymbolCache(folder / "symbols.sqlite") as kept:
            found = asdict(clash(pair.git, plan, facts["sha"], cache=kept))
        facts |= {"hunks": found.pop("hunks"), "conflict": found}
    return facts


def _show(plan: Plan, sides: Sides, facts: dict[str, Any] | None, html: Path | None, *, as_json: bool) -> None:
    from bot.core.render.plan import as_dict

    if html is not None:
        from bot.core.render.planpage import page

        html.write_text(page(plan, upstream=_name(sides.upstream), fork=_name(sides.fork)), "utf-8", "replace")
    if facts is not None:
        if as_json:
            emit(json.dumps(facts, indent=1))
        else:
            from bot.cli.plan_view import show_explained

            show_explained(facts)
    elif as_json:
        emit(json.dumps(as_dict(plan), indent=1))
    else:
        from bot.cli.plan_view import show_plan

        show_plan(plan)


def _as_of(git: Git, ref: str, at: int | None) -> str:
    if at is None:
        return git.resolve(ref) or ref
    before = git.commits(ref, before=at)
    if not before:
        raise PlanError(f"{ref} has no commit before that day: give a later --at")
    return before[-1].sha


def _end_of(day: str) -> int:
    try:
        found = date.fromisoformat(day)
    except ValueError:
        raise PlanError(f"--at {day}: write the day as YYYY-MM-DD") from None
    return int((datetime(found.year, found.month, found.day, tzinfo=UTC) + timedelta(days=1)).timestamp()) - 1


def _named(plan: Plan, name: str) -> str:
    """The one upstream commit that a sha's beginning or a pull request's number stands for."""
    from bot.core.trailers import pull_number

    entries = plan.ledger.entries
    number = name.removeprefix("#")
    if name.startswith("#") and number.isdigit():
        found = [entry.sha for entry in entries if pull_number(entry.subject) == int(number)]
    else:
        found = [entry.sha for entry in entries if len(name) >= 4 and entry.sha.startswith(name.lower())]
    if len(found) == 1:
        return found[0]
    many = (
        f"stands for {len(found)} commits: give more of it"
        if found
        else "is no upstream commit since the histories parted"
    )
    raise PlanError(f"--explain {name} {many}")


def _name(where: str) -> str:
    return re.sub(r"\.git/?$", "", where.rstrip("/")).rpartition("/")[2] or where


def _hint(git: Git, plan: Plan) -> None:
    """Say where the fork seems to record picks in a way that its file does not tell Graft of."""
    from bot.core.markers import unread_markers

    commits = git.commits(plan.fork_tip, [plan.upstream_tip], first_parent=False)
    for prefix, count in unread_markers(commits, plan.ledger):
        if count >= _RECORDED:
            pattern = re.escape(prefix).replace(r"\ ", " ") + r"(?P<sha>[0-9a-f]{40})"
            say(
                f"hint: {count} commits of the fork say {prefix!r} and an upstream commit: if that records picks, add"
                f" --marker '{pattern}' (or ingest.picked_markers in {CONFIG_PATH})",
                err=True,
            )


def _progress() -> Callable[[str, int, int], None]:
    started = last = time.monotonic()

    def show(what: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - started > _QUIET and now - last > 1.0:
            last = now
            say(f"{what}: {done} of {total}", err=True)
            sys.stderr.flush()

    return show
