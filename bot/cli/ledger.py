"""`graft ledger`: what became of each upstream commit, read from git."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.sides import (
    FORK,
    UPSTREAM,
    ConfigFile,
    Fork,
    ForkRef,
    Marker,
    Upstream,
    UpstreamRef,
    opened,
    settings_of,
)
from bot.cli.terminal import emit, say

if TYPE_CHECKING:
    from bot.cli.pair import Pair
    from bot.core.config import Config
    from bot.core.history import History
    from bot.core.types import Ledger
    from bot.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Show, verify or rebuild what became of each upstream commit.")

Now = Annotated[int | None, typer.Option(help="Time to tell ages by, in seconds since the epoch (default: now).")]
Repository = Annotated[
    str | None, typer.Option("--repository", "-r", help="One fork of this deployment, owner/name (default: all).")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the whole ledger as JSON.")]


class LedgerError(ValueError):
    """What could not be read, where, and how to mend it."""


@app.command()
def show(
    upstream: Upstream,
    fork: Fork,
    upstream_ref: UpstreamRef = None,
    fork_ref: ForkRef = None,
    config: ConfigFile = None,
    marker: Marker = None,
    now: Now = None,
    as_json: AsJson = False,
) -> None:
    """Print both pins, the metrics and the holes (exit 0 done, 2 could not run)."""
    with _guard(), opened(upstream, fork, upstream_ref, fork_ref) as pair:
        settings = settings_of(pair.git, pair.fork, config, marker or [])
        ledger, _ = _read(pair, settings, now)
        if as_json:
            emit(json.dumps(as_dict(ledger), indent=1))
        else:
            _print(ledger)


@app.command()
def verify(
    upstream: Annotated[str | None, UPSTREAM] = None,
    fork: Annotated[str | None, FORK] = None,
    upstream_ref: UpstreamRef = None,
    fork_ref: ForkRef = None,
    config: ConfigFile = None,
    marker: Marker = None,
    against: Annotated[
        Path | None, typer.Option(help="An earlier `ledger show --json`: nothing in it may have been lost since.")
    ] = None,
    repository: Repository = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print {problems} as JSON.")] = False,
) -> None:
    """Look for what the history says that can't be right (exit 0 nothing, 1 found something, 2 could not run).

    Without --upstream and --fork: hold the store of this deployment (GRAFT_… as for `graft serve`) against git and
    GitHub.
    """
    if upstream is None and fork is None:
        _verify_store(repository, as_json)
        return
    if upstream is None or fork is None:
        say("give both --upstream and --fork, or neither to verify this deployment's store", err=True)
        raise typer.Exit(2)
    with _guard(), opened(upstream, fork, upstream_ref, fork_ref) as pair:
        settings = settings_of(pair.git, pair.fork, config, marker or [])
        ledger, history = _read(pair, settings, None)
        problems = [*_doubts(history), *(_lost(ledger, history, against) if against is not None else ())]
        if as_json:
            emit(json.dumps({"problems": problems}, indent=1))
        else:
            for problem in problems:
                say(problem)
            say(f"{len(problems)} found in {len(ledger.entries)} upstream commits")
    raise typer.Exit(1 if problems else 0)


@app.command()
def rebuild(
    repository: Repository = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each fork's counts as JSON.")] = False,
) -> None:
    """Read batches, decisions and dispositions back from git and GitHub into the store (exit 0 done, 2 could not run).

    Settings come from the environment, as for `graft serve`. What the store holds already is left alone.
    """
    from bot.cli import ledger_store

    with _deployment() as (settings, log):
        found = asyncio.run(ledger_store.rebuild(settings, log, repository))
    if as_json:
        emit(json.dumps([{**asdict(one), "ledger": as_dict(one.ledger)} for one in found], indent=1))
        return
    for one in found:
        say(f"{one.repository}: {one.batches} pull requests and {one.decisions} decisions read back")
        _print(one.ledger)


def _verify_store(repository: str | None, as_json: bool) -> None:
    from bot.cli import ledger_store

    with _deployment() as (settings, log):
        problems = asyncio.run(ledger_store.compare(settings, log, repository))
    if as_json:
        emit(json.dumps({"problems": [f"{name}: {text}" for name, found in problems.items() for text in found]}))
    else:
        for name, found in problems.items():
            for text in found:
                say(f"{name}: {text}")
            say(f"{name}: {len(found)} found")
    raise typer.Exit(1 if any(problems.values()) else 0)


def as_dict(ledger: Ledger) -> dict[str, Any]:
    """The ledger as plain values."""
    return {
        "pin": ledger.pin,
        "frontier": ledger.frontier,
        "metrics": asdict(ledger.metrics),
        "holes": [asdict(hole) for hole in ledger.holes],
        "entries": [asdict(entry) for entry in ledger.entries],
    }


@contextmanager
def _guard() -> Iterator[None]:
    from bot.clients.git import GitError
    from handlers.planning import CannotPlan

    try:
        yield
    except (ValueError, CannotPlan, GitError, OSError) as error:
        say(str(error), err=True)
        raise typer.Exit(2) from None


@contextmanager
def _deployment() -> Iterator[tuple[Settings, Any]]:
    from bot.clients.github import GitHubError
    from bot.clients.store import StoreUnavailable
    from bot.logs import configure
    from bot.settings import Settings, SettingsError
    from handlers.fork import BrokenConfig

    try:
        with _guard():
            settings = Settings.load()
            yield settings, configure(as_json=settings.log_json, verbose=False)
    except (SettingsError, StoreUnavailable, GitHubError, BrokenConfig) as error:
        say(f"graft ledger: {error}", err=True)
        raise typer.Exit(2) from None


def _read(pair: Pair, config: Config, now: int | None) -> tuple[Ledger, History]:
    from bot.core.history import read_history
    from handlers.planning import read_ledger, read_range

    span = read_range(pair.git, upstream=pair.upstream, fork=pair.fork)
    history = read_history(upstream=span.upstream, fork=span.fork, markers=config.ingest.picked_markers)
    when = int(time.time()) if now is None else now
    return read_ledger(pair.git, upstream=pair.upstream, fork=pair.fork, config=config, now=when), history


def _print(ledger: Ledger) -> None:
    counts = Counter(entry.disposition.value for entry in ledger.entries)
    say(f"{len(ledger.entries)} upstream commits: " + ", ".join(f"{n} {word}" for word, n in counts.items()))
    say(f"Contiguous pin        {ledger.pin or 'none: the first commit is open'}")
    say(f"Frontier              {ledger.frontier or 'none'}")
    say(f"Days Behind Upstream  {ledger.metrics.days_behind:.1f}")
    say(f"Backlog Commits       {ledger.metrics.backlog}")
    for hole in ledger.holes:
        owner = hole.owner or "nobody"
        say(f"  {hole.sha[:12]}  {hole.age_days:6.1f} d  {owner:16}  {hole.subject[:70]}  ({hole.reason})")


def _doubts(history: History) -> Iterator[str]:
    for sha, carriers in sorted(history.duplicates.items()):
        yield f"{sha[:12]} is carried twice and more: " + ", ".join(carrier.sha[:12] for carrier in carriers)
    for fork, name in history.unknown:
        yield f"{fork[:12]} records {name[:12]}, which is no upstream commit since the two histories parted"
    for fork in history.unresolved_reverts:
        yield f"{fork[:12]} says that it takes something back, and names nothing that can be found"


def _lost(ledger: Ledger, history: History, against: Path) -> Iterator[str]:
    """What an earlier ledger held and this one does not, unless a revert in the fork explains it."""
    try:
        earlier = json.loads(against.read_text("utf-8"))
        entries = {entry["sha"]: entry["disposition"] for entry in earlier["entries"]}
        pins = {name: earlier[name] for name in ("pin", "frontier")}
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise LedgerError(f"{against} is no output of `graft ledger show --json`: {error}") from None
    place = {entry.sha: index for index, entry in enumerate(ledger.entries)}
    now = {entry.sha: entry.disposition.value for entry in ledger.entries}
    reverted = {sha for sha in history.carriers if not history.standing(sha)}
    for sha, disposition in entries.items():
        if sha not in now:
            yield f"{sha[:12]} was {disposition} and is no longer upstream's"
        elif disposition == "picked" and now[sha] != "picked" and sha not in reverted:
            yield f"{sha[:12]} was picked and is {now[sha]}, without a revert in the fork"
    for name, was in pins.items():
        current = ledger.pin if name == "pin" else ledger.frontier
        if was is not None and place.get(current or "", -1) < place.get(was, -1) and not reverted - _before(earlier):
            yield f"the {name} moved back from {was[:12]} to {(current or 'none')[:12]}"


def _before(earlier: dict[str, Any]) -> set[str]:
    return {entry["sha"] for entry in earlier["entries"] if entry["disposition"] == "reverted"}
