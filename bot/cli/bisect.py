"""`graft bisect`: which commit broke a test, or moved a metric, on a repository of this machine; no bot is needed."""

from __future__ import annotations

import asyncio
import json
import math
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.terminal import emit, say
from bot.core.bisect import (
    MOST_RUNS,
    Culprit,
    Inconclusive,
    Missing,
    Next,
    NoCulprit,
    Rates,
    Search,
    Seen,
    down,
    stated,
)

if TYPE_CHECKING:
    from bot.cli.probing import Rules
    from bot.cli.searching import LocalSearch, Tried
    from bot.core.types import Commit

_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def command(
    run: Annotated[list[str], typer.Argument(metavar="-- CMD", help="What is run at each commit, in its tree.")],
    *,
    good: Annotated[str, typer.Option("--good", help="The last commit known to be good.")],
    bad: Annotated[str, typer.Option("--bad", help="A commit known to be bad.")] = "HEAD",
    repository: Annotated[Path, typer.Option("--repository", help="The repository, bare or not.")] = Path(),
    build: Annotated[str | None, typer.Option("--build", help="Shell command that builds; kept for repeats.")] = None,
    loaded: Annotated[
        str | None,
        typer.Option("--loaded", help="Shell command that prints the commit, or the path, of what is really loaded."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option("--metric", help="Search a metric's step: a pattern whose group is the value in the output."),
    ] = None,
    step: Annotated[float, typer.Option("--step", help="The least step of the metric that counts, in percent.")] = 0.0,
    flake_rate: Annotated[
        float | None, typer.Option("--flake-rate", help="How often a run lies, 0 to 0.5, where that is known.")
    ] = None,
    suspects: Annotated[
        list[str] | None, typer.Option("--suspect", help="A commit to look at first; may be given often.")
    ] = None,
    timeout: Annotated[str, typer.Option("--timeout", help="Limit of one run, as 90s, 30m or 2h.")] = "30m",
    build_timeout: Annotated[str, typer.Option("--build-timeout", help="Limit of one build.")] = "90m",
    timeout_is_bad: Annotated[bool, typer.Option("--timeout-is-bad", help="A hang is what is searched for.")] = False,
    max_runs: Annotated[int, typer.Option("--max-runs", min=2, max=MOST_RUNS, help="Give up after so many.")] = 200,
    max_time: Annotated[str, typer.Option("--max-time", help="Begin no run after this long.")] = "24h",
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="So many runs side by side; not for a metric.")] = 1,
    confidence: Annotated[
        float | None, typer.Option("--confidence", help="The belief that an answer needs: 0.99, of a metric 0.995.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", help="Variable to pass on; most are not. May be given often.")
    ] = None,
    gpus: Annotated[str | None, typer.Option("--gpus", help="GPUs to use, as in CUDA_VISIBLE_DEVICES.")] = None,
    work: Annotated[
        Path | None, typer.Option("--work", help="Folder for trees and builds; a temporary one else.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer with all runs as JSON.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show the output of all runs, on stderr.")] = False,
) -> None:
    """Find the commit that broke a test or moved a metric (exit 0 found, 1 none or inconclusive, 2 could not run).

    CMD ends with 0 where the commit is good and with 1 to 124 where it is bad; 125 skips. What can't mean bad never
    does: 126, 127, signals from outside (the run is tried again), a time limit, pytest's statuses beyond 0 and 1. A
    crash of its own (SIGSEGV, SIGABRT …) is bad. Both ends are verified, flake rates are learnt as it goes. Of a metric
    each value is divided by one of the good end, run right before it.
    """
    from bot.cli.probing import ProbeError, Prober, Rules
    from bot.cli.searching import LocalSearch

    try:
        span = Span.read(repository, good, bad)
        rules = Rules(
            run=tuple(run),
            build=build,
            loaded=loaded,
            metric=_pattern(metric),
            seconds=seconds_of("--timeout", timeout),
            build_seconds=seconds_of("--build-timeout", build_timeout),
            timeout_is_bad=timeout_is_bad,
            pytest=any(Path(word).name in ("pytest", "py.test") for word in run),
            keep=tuple(keep or ()),
            visible=gpus,
        )
        search = Search(
            n=len(span.commits),
            hint=_hint(flake_rate),
            trust=1.0 if flake_rate is not None else None,
            suspects=span.weights(suspects or []),
            max_runs=max_runs,
            parallel=jobs,
            confidence=confidence,
        )
        minutes = seconds_of("--max-time", max_time) / 60
        with tempfile.TemporaryDirectory(prefix="graft-bisect-") as temporary:
            folder = (work or Path(temporary)).resolve()
            prober = Prober(span.folder, folder, rules, output=_show if verbose else lambda _: None)
            local = LocalSearch(search, span.shas, prober, lambda one: _progress(one, local), minutes, step / 100)
            answer = asyncio.run(local.metric() if metric is not None else local.passfail())
    except (ValueError, ProbeError) as error:
        say(str(error), err=True)
        raise typer.Exit(2) from None
    told = told_of(answer, local, span, rules)
    if as_json:
        emit(json.dumps(told))
    else:
        say("\n".join(_lines(told)))
    raise typer.Exit(told["status"])


@dataclass(frozen=True, slots=True)
class Span:
    """The commits after the good end up to the bad one, oldest first, of merges the first parents only."""

    folder: Path
    good: str
    commits: tuple[Commit, ...]

    @property
    def shas(self) -> tuple[str, ...]:
        """Place 0 is the good end."""
        return (self.good, *(commit.sha for commit in self.commits))

    @classmethod
    def read(cls, repository: Path, good: str, bad: str) -> Span:
        """Raises ValueError with what to mend."""
        from bot.context import Git, GitError

        folder = _git_folder(repository)
        try:
            with Git(folder) as git:
                ends = {name: git.resolve(name) for name in (good, bad)}
                for option, name in (("--good", good), ("--bad", bad)):
                    if ends[name] is None:
                        raise ValueError(f"{option} {name}: no commit of {repository} has that name")
                first, last = str(ends[good]), str(ends[bad])
                if first == last:
                    raise ValueError(f"--good and --bad are both {first[:10]}: there is nothing between them")
                if not git.is_ancestor(first, last):
                    raise ValueError(f"--good {good} is no ancestor of --bad {bad}: give an older commit of its line")
                commits = tuple(git.commits(last, [first]))
                if commits[0].parents[0] != first:
                    raise ValueError(
                        f"--good {good} lies on a branch that was merged in: give a commit of --bad's own line, "
                        f"as {commits[0].parents[0][:10]}"
                    )
                return cls(folder, first, commits)
        except GitError as error:
            raise ValueError(f"{repository}: git can't read it: {str(error)[:300]}") from error

    def weights(self, suspects: list[str]) -> list[float] | None:
        """Equal shares for the suspects, by the first digits of their hash."""
        if not suspects:
            return None
        found = [0.0] * len(self.commits)
        for word in suspects:
            places = [at for at, commit in enumerate(self.commits) if commit.sha.startswith(word.lower())]
            if len(places) != 1:
                raise ValueError(
                    f"--suspect {word}: {len(places)} commits between the ends begin so; give one's digits"
                )
            found[places[0]] = 1.0
        return found


def told_of(answer: Next, local: LocalSearch, span: Span, rules: Rules) -> dict[str, Any]:
    """The answer with its evidence, as `--json` prints it; `status` is the exit status."""
    kind, sure, said, rates = "inconclusive", 0.0, "", None
    places: tuple[int, ...] = ()
    if isinstance(answer, Culprit):
        kind, places, sure, rates = "culprit", answer.positions, answer.confidence, answer.rates
    elif isinstance(answer, NoCulprit):
        kind, sure, said = "none", answer.confidence, "nothing between the ends did it: the bad end is as the good one"
    elif isinstance(answer, Inconclusive):
        places, sure, said, rates = answer.best, answer.confidence, _said(answer, local), answer.rates
    unable = isinstance(answer, Inconclusive) and answer.missing in (Missing.GOOD_END_BUILDS, Missing.BAD_END_BUILDS)
    found = [span.commits[place - 1] for place in places if place]
    step = local.step
    return {
        "answer": kind,
        "status": 0 if kind == "culprit" else 2 if unable else 1,
        "commits": [{"sha": c.sha, "subject": c.subject, "author": c.author_name} for c in found],
        "confidence": down(sure, 4),
        "said": said,
        "flake_rates": {"fails_where_good": rates.false_fail, "passes_where_bad": rates.false_pass} if rates else None,
        "step": {"relative": round(step.claimed, 5), "noise": round(step.noise, 5)} if step else None,
        "good": span.good,
        "bad": span.commits[-1].sha,
        "range": len(span.commits),
        "command": list(rules.run),
        "runs": [
            {
                "commit": one.trial.sha,
                "position": one.position,
                "seen": one.run.seen.value,
                "why": one.trial.why,
                "exit_status": one.trial.exit_code,
                "value": one.run.value if one.run.seen is Seen.VALUE else None,
                "seconds": round(one.trial.seconds, 3),
            }
            for one in local.tried
        ],
    }


def _said(answer: Inconclusive, local: LocalSearch) -> str:
    """What is missing; at an end that shows nothing, why it does not."""
    place = {Missing.GOOD_END_BUILDS: 0, Missing.BAD_END_BUILDS: len(local.shas) - 1}.get(answer.missing)
    why = [one.trial.why for one in local.tried if one.position == place and one.run.seen is Seen.SKIP]
    if place is None or not why:
        return answer.missing.value
    return f"the {'bad' if place else 'good'} end shows nothing: {why[-1] or 'it measured nothing'}"


def _lines(told: dict[str, Any]) -> list[str]:
    over = f"{len(told['runs'])} runs over {told['range']} commits"
    named = [f"  {one['sha'][:12]} {one['subject']} ({one['author']})" for one in told["commits"]]
    sure = stated(told["confidence"])
    if told["answer"] == "culprit":
        head = "The culprit" if len(named) == 1 else "One of these, which no build can tell apart"
        lines = [f"{head}, with {sure} confidence after {over}:", *named]
        lines += _flakes(told)
        if step := told["step"]:
            lines.append(
                f"The step is {100 * step['relative']:+.2f} %, single runs scatter by {100 * step['noise']:.2f} %."
            )
        return lines
    if told["answer"] == "none":
        return [f"None: {told['said']} ({sure} confidence after {over})."]
    lines = [f"Inconclusive after {over}: {told['said']}."]
    return [*lines, *_flakes(told), *([f"Most is believed of ({sure}):", *named] if named else [])]


def _flakes(told: dict[str, Any]) -> list[str]:
    """How often the runs lie, as believed; nothing where that is not known."""
    if not (rates := told["flake_rates"]):
        return []
    fails, passes = 100 * rates["fails_where_good"], 100 * rates["passes_where_bad"]
    return [f"A good commit fails in {fails:.0f} % of runs, a bad one passes in {passes:.0f} %, as believed."]


def _progress(one: Tried, local: LocalSearch) -> None:
    told = f"{one.run.value:.6g}" if one.run.seen is Seen.VALUE else one.run.seen.value
    why = f" ({one.trial.why})" if one.trial.why else ""
    place = f"{one.position}/{len(local.shas) - 1}"
    text = f"run {len(local.tried)}: {one.trial.sha[:12]} at {place}: {told}{why}, {one.trial.seconds:.1f} s"
    say(text, err=True)


def _show(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)


def _git_folder(repository: Path) -> Path:
    """The folder of git's own of a checkout (a linked one too) or of a bare repository."""
    import subprocess

    done = (
        subprocess.run(
            ["git", "-C", str(repository), "rev-parse", "--path-format=absolute", "--git-common-dir"],
            capture_output=True,
            text=True,
            check=False,
        )
        if repository.is_dir()
        else None
    )
    if done is None or done.returncode != 0:
        raise ValueError(f"{repository}: no git repository; name one with --repository")
    return Path(done.stdout.strip())


def seconds_of(option: str, text: str) -> float:
    """A duration in seconds; raises ValueError."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or float(found[1]) <= 0:
        raise ValueError(f"{option} {text}: no duration; write it as 90s, 30m or 2h")
    return float(found[1]) * _SECONDS[found[2]]


def _pattern(metric: str | None) -> re.Pattern[str] | None:
    if metric is None:
        return None
    try:
        pattern = re.compile(metric)
    except re.error as error:
        raise ValueError(f"--metric {metric}: no regular expression: {error}") from None
    if pattern.groups != 1:
        raise ValueError(f"--metric {metric}: give it one group, around the value, as 'time: ([0-9.]+) ms'")
    return pattern


def _hint(rate: float | None) -> Rates | None:
    if rate is not None and (math.isnan(rate) or not 0 <= rate < 0.5):
        raise ValueError(f"--flake-rate {rate:g}: it must lie from 0 to below 0.5")
    return Rates(rate, rate) if rate is not None else None
