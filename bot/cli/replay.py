"""`graft replay`: the planner against what a fork's maintainers really did."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.sides import with_markers
from bot.cli.terminal import emit, say

if TYPE_CHECKING:
    from bot.core.config import Config
    from handlers.replaying import Judged

_QUIET = 2.0  # seconds before progress is shown
_EVERY = 1.0


class CannotReplay(Exception):
    """What is missing or wrong, where, and how to mend it."""


def command(
    repository: Annotated[Path, typer.Option(help="Bare repository that holds both histories.")],
    picks: Annotated[
        Path | None, typer.Option(help="JSON file of picks: upstream, fork and fork_parent of each.")
    ] = None,
    at: Annotated[str | None, typer.Option(help="Plan the whole window of that day (YYYY-MM-DD) instead.")] = None,
    upstream: Annotated[str, typer.Option(help="Upstream's main branch in that repository.")] = "upstream",
    fork: Annotated[str, typer.Option(help="The fork's main branch in that repository.")] = "fork",
    config: Annotated[Path | None, typer.Option(help="The fork's file (graft.yml): markers and rules.")] = None,
    marker: Annotated[
        list[str] | None, typer.Option(help="How older picks were recorded, as in picked_markers.")
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="File to keep what was read in; made if it is missing.")] = None,
    fit: Annotated[bool, typer.Option("--fit", help="Learn the weights anew from these picks and print them.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print {picks, summary}.")] = False,
) -> None:
    """Decide each pick of the past as on its day, then look what landed (exit 0 done, 2 could not run).

    `safe` should have landed unchanged; a pick that landed otherwise should not have been called safe.
    """
    from bot.clients.git import GitError

    try:
        if (picks is None) == (at is None):
            raise CannotReplay("say which past: either --picks FILE or --at YYYY-MM-DD")
        if (repository / ".git").is_dir():
            repository = repository / ".git"
        if not (repository / "HEAD").is_file():
            raise CannotReplay(f"{repository} is no git repository: give one that holds both histories")
        settings = _config(config, marker or [])
        if picks is not None:
            judged = _replay(repository, picks, upstream, fork, settings, cache)
            _print(judged, fit=fit, as_json=as_json)
        else:
            _window(repository, at or "", upstream, fork, settings, cache, as_json=as_json)
    except (CannotReplay, GitError, ValueError) as error:
        say(str(error), err=True)
        raise typer.Exit(2) from None


def _replay(
    repository: Path, picks: Path, upstream: str, fork: str, config: Config | None, cache: Path | None
) -> list[Judged]:
    from bot.clients.git import Git
    from bot.clients.symbols import SymbolCache
    from bot.core.replay import read_picks
    from handlers.replaying import Past, Question, decide, judge

    try:
        asked = read_picks(json.loads(picks.read_text("utf-8")))
    except (OSError, json.JSONDecodeError) as error:
        raise CannotReplay(f"{picks}: {error}") from None
    progress = _progress()
    with Git(repository) as mirror, mirror.scratch() as git, SymbolCache(cache or ":memory:") as kept:
        tips = (_tip(git, upstream, [p.upstream for p in asked]), _tip(git, fork, [p.fork for p in asked]))
        past = Past(git, upstream=tips[0], fork=tips[1], markers=config.ingest.picked_markers if config else ())
        questions = [Question(p.upstream, p.fork_parent) for p in asked]
        decided = decide(git, questions, past=past, config=config, cache=kept, progress=progress)
        return [judge(git, d, p.fork, by_hand=p.landed == "resolved") for d, p in zip(decided, asked, strict=True)]


def _tip(git: Any, name: str, seen: list[str]) -> str:
    """The commit of a branch; where there is no such branch, the newest of the commits that the file names."""
    found = git.resolve(name)
    if found is not None:
        return str(found)
    missing = [sha for sha in seen if git.resolve(sha) is None]
    if missing:
        raise CannotReplay(
            f"{git.path} has neither a branch {name!r} nor the commit {missing[0]}: fetch it, or name the branch"
        )
    newest = max(git.commits_of(seen), key=lambda commit: commit.committer_time)
    return str(newest.sha)


def _print(judged: list[Judged], *, fit: bool, as_json: bool) -> None:
    from bot.core.replay import Result, summarise

    results = [
        Result(j.decided.question.upstream, j.decided.pr, j.decided.verdict, j.identical, j.by_hand) for j in judged
    ]
    summary = summarise(results)
    if as_json:
        emit(json.dumps({"picks": [_row(j) for j in judged], "summary": summary.as_dict()}, indent=1))
    else:
        for line in _table(summary.as_dict()):
            say(line)
        for j in judged:
            if j.identical is False:
                say(_explained(j))
    if fit:
        emit(json.dumps(_learned(judged), indent=1))


def _row(judged: Judged) -> dict[str, Any]:
    from bot.core.render.plan import reason_dict

    decided = judged.decided
    return {
        "upstream": decided.question.upstream,
        "pr": decided.pr,
        "verdict": decided.verdict.value,
        "identical": judged.identical,
        "chance": round(decided.chance, 4),
        "reasons": [reason_dict(reason) for reason in decided.reasons],
        "differs": list(judged.differs),
    }


def _table(summary: dict[str, Any]) -> list[str]:
    shares = {name: "  –  " if value is None else f"{value:6.1%}" for name, value in summary["shares"].items()}
    both, identical = summary["safe"] + summary["watch"], summary["safe_identical"] + summary["watch_identical"]
    return [
        f"picks                      {summary['picks']:6}   of them merged {summary['merged']}",
        f"identical without a person {summary['reproduced']:6}   {shares['reproduced']} of all",
        f"safe                       {summary['safe']:6}   {shares['safe_precision']} identical,"
        f" {shares['safe_recall']} of the identical ones",
        f"safe and watch             {both:6}   {shares['safe_or_watch_precision']} identical,"
        f" {shares['safe_or_watch_recall']} of the identical ones ({identical})",
        f"risky                      {summary['risky']:6}   {summary['risky_identical']} identical",
        f"resolved by hand           {summary['resolved']:6}   {shares['conflicts_foreseen']} foreseen",
        f"merged, then changed       {summary['hand_work']:6}   {shares['hand_work_foreseen']} not called safe",
    ]


def _explained(judged: Judged) -> str:
    decided = judged.decided
    heaviest = ", ".join(f"{r.kind.value} {r.weight:.2f}" for r in decided.reasons[:3])
    name = f"{decided.question.upstream[:12]} {decided.subject[:60]}"
    return f"{decided.verdict.value:6} {name}  [{heaviest}]  differs in {', '.join(judged.differs[:3])}"


def _learned(judged: list[Judged]) -> dict[str, Any]:
    from bot.core.learning import Sample, fit
    from bot.core.weights import WEIGHTS

    samples = [
        Sample({s.name: s.size for s in j.decided.signals}, j.identical) for j in judged if j.identical is not None
    ]
    learned = fit(samples, sorted(WEIGHTS))
    return {"base": round(learned.base, 4), "weights": {name: round(w, 4) for name, w in learned.weights.items()}}


def _window(
    repository: Path, at: str, upstream: str, fork: str, config: Config | None, cache: Path | None, *, as_json: bool
) -> None:
    from bot.clients.git import Git
    from bot.clients.symbols import SymbolCache
    from handlers.replaying import window

    try:
        day = date.fromisoformat(at)
    except ValueError:
        raise CannotReplay(f"--at {at}: write the day as YYYY-MM-DD") from None
    end = int((datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)).timestamp())
    with Git(repository) as git, SymbolCache(cache or ":memory:") as kept:
        report = window(git, until=end, upstream=upstream, fork=fork, config=config, cache=kept, progress=_progress())
    if as_json:
        emit(json.dumps(report, indent=1))
        return
    for name, value in report["summary"].items():
        say(f"{name:32} {value}")


def _config(path: Path | None, markers: list[str]) -> Config | None:
    if path is None and not markers:
        return None
    from bot.core.config import Config, load

    if path is None:
        found = Config.of({"upstream": {"repository": "upstream/upstream"}})
    else:
        try:
            found = load(path.read_text("utf-8"))
        except OSError as error:
            raise CannotReplay(f"{path}: {error}") from None
    return with_markers(found, markers)


def _progress() -> Callable[[str, int, int], None]:
    started = last = time.monotonic()

    def show(what: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - started > _QUIET and (now - last > _EVERY or done == total):
            last = now
            say(f"{what}: {done} of {total}", err=True)

    return show
