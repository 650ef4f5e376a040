"""`graft run`: the suites of a level on this checkout, exactly as a runner runs them; no bot is needed."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.terminal import emit, say
from bot.core.config import Suite
from bot.core.types import Level, Outcome

if TYPE_CHECKING:
    from bot.core.validation import Report
    from runners.labs import Credential

_SHOWN = 20


def command(
    level: Annotated[Level, typer.Argument(help="l1, l2 or l3.")],
    *,
    suite: Annotated[list[str] | None, typer.Option("--suite", help="Only this suite; may be given often.")] = None,
    second: Annotated[
        bool, typer.Option("--second", help="As the suites are proved a second time: see `second` in the fork's file.")
    ] = False,
    checkout: Annotated[Path, typer.Option("--checkout", help="The work tree of the fork.")] = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Print the reports as JSON.")] = False,
    expected: Annotated[
        Path | None, typer.Option("--expected", help="JSON file {suite: [test ids]} of what has to run.")
    ] = None,
    gpus: Annotated[str | None, typer.Option("--gpus", help="GPUs to use, as in CUDA_VISIBLE_DEVICES.")] = None,
    work: Annotated[Path | None, typer.Option("--work", help="Folder for results; a temporary one by default.")] = None,
) -> None:
    """Run a level on this checkout, exactly as a runner does (exit 0 passed, 1 not passed, 2 could not run)."""
    from runners.labs import take_credentials

    try:
        suites = suites_of(checkout, level, suite or [])
        suites = _second(suites, named=bool(suite)) if second else suites
        manifest = _manifest(expected)
        tree = Checkout.read(checkout)
        labs = take_credentials(os.environ)
    except ValueError as error:
        say(str(error), err=True)
        raise typer.Exit(2) from None
    with tempfile.TemporaryDirectory(prefix="graft-run-") as temporary:
        job = _Job(tree, level, (work or Path(temporary)).resolve(), manifest, gpus, labs)
        reports = asyncio.run(_all(job, suites))
    if second:
        reports = [one.model_copy(update={"repeat": f"{one.repeat} --second"}) for one in reports]
    from bot.core.validation import level_outcome

    outcome = level_outcome(report.outcome for report in reports)
    if as_json:
        dumped = [report.model_dump(mode="json") for report in reports]
        emit(json.dumps({"level": level, "commit": tree.commit, "outcome": outcome, "reports": dumped}))
    else:
        for report in reports:
            say(_told(report))
        say(f"{level.value}: {outcome.value}")
    raise typer.Exit(0 if outcome in (Outcome.PASSED, Outcome.WAIVED) else 1)


@dataclass(frozen=True, slots=True)
class Checkout:
    """The work tree: its top folder, commit and repository name."""

    top: Path
    commit: str
    repository: str

    @classmethod
    def read(cls, folder: Path) -> Checkout:
        """Raises ValueError where the folder is no checkout with a commit."""
        try:
            top = Path(_git(folder, "rev-parse", "--show-toplevel"))
            commit = _git(folder, "rev-parse", "HEAD")
        except subprocess.CalledProcessError as error:
            raise ValueError(f"{folder}: no git checkout with a commit: {error.stderr.strip()[:300]}") from error
        return cls(top.resolve(), commit, f"local/{''.join(c if c.isalnum() or c in '._-' else '-' for c in top.name)}")


@dataclass(frozen=True, slots=True)
class _Job:
    tree: Checkout
    level: Level
    folder: Path
    manifest: Mapping[str, tuple[str, ...]]
    gpus: str | None
    labs: Mapping[str, Credential]


def suites_of(checkout: Path, level: Level, names: list[str]) -> tuple[Suite, ...]:
    """The level's suites by the checkout's own file; the named ones may be Graft's own too.

    Raises ValueError with what to mend.
    """
    from bot.core.config import load
    from runners.suites import BUILTIN

    path = checkout / ".github" / "graft.yml"
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        if names and set(names) <= set(BUILTIN):
            return tuple(BUILTIN[name] for name in names)
        raise ValueError(f"{path}: can't be read ({error.strerror}): it names the suites of each level") from error
    suites = load(text).validation.of(level)
    own = {suite.suite for suite in suites}
    suites += tuple(BUILTIN[name] for name in dict.fromkeys(names) if name not in own and name in BUILTIN)
    unknown = sorted(set(names) - {suite.suite for suite in suites})
    if unknown:
        known = ", ".join((*own, *BUILTIN))
        raise ValueError(f"{path}: {level.value} has no suite {', '.join(unknown)}; it has {known}")
    chosen = tuple(suite for suite in suites if (not names and not suite.manual) or suite.suite in names)
    if not chosen:
        raise ValueError(f"{path}: {level.value} has no suite that runs by itself")
    return chosen


def _second(suites: tuple[Suite, ...], *, named: bool) -> tuple[Suite, ...]:
    """The suites as they are proved a second time. Raises ValueError where a named one, or each of a level, is not."""
    once = [suite.suite for suite in suites if suite.second is None]
    if (named and once) or len(once) == len(suites):
        raise ValueError(f"{', '.join(once)}: proved once only; `second` in .github/graft.yml would say how else")
    return tuple(again for suite in suites if (again := suite.again()) is not None)


async def _all(job: _Job, suites: tuple[Suite, ...]) -> list[Report]:
    from bot.core.validation import RunRequest
    from runners.execute import Machine, Work, execute
    from runners.redact import redactor

    reports = []
    for suite in suites:
        request = RunRequest(
            # a lab that has had a run of this id gives its result again
            run_id=f"local-{suite.suite[:60]}-{uuid.uuid4().hex[:12]}",
            repository=job.tree.repository,
            commit=job.tree.commit,
            level=job.level,
            suite=suite,
            git_path="/local",
            expected=job.manifest.get(suite.suite, ()),
        )
        folder = job.folder / suite.suite
        folder.mkdir(parents=True, exist_ok=True)
        work = Work(
            request=request,
            source=job.tree.top,
            folder=folder,
            cache=job.folder / "cache" / job.tree.commit,
            machine=Machine(name="local", visible=job.gpus, labs=job.labs),
            output=lambda text: print(text, end="", file=sys.stderr, flush=True),
            redact=redactor(credential.token for credential in job.labs.values()),
        )
        reports.append(await execute(work))
    return reports


def _told(report: Report) -> str:
    from bot.core.validation import TestOutcome

    counts = ", ".join(f"{number} {word.value}" for word in TestOutcome if (number := report.count(word)))
    lines = [f"{report.suite}: {report.outcome.value} ({counts or 'no tests'}) in {report.seconds:.1f} s"]
    if report.reason:
        lines.append(f"  {report.reason}")
    if report.manifest.canary is None and report.outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.OMITTED):
        lines.append("  no canary: nothing shows that this harness reports a failure")
    lines += [f"  {test.outcome.value} {test.id}" for test in report.failures[:_SHOWN]]
    if len(report.failures) > _SHOWN:
        lines.append(f"  … and {len(report.failures) - _SHOWN} more")
    lines += [f"  missing {test}" for test in report.manifest.missing[:_SHOWN]]
    return "\n".join(lines)


def _manifest(path: Path | None) -> dict[str, tuple[str, ...]]:
    if path is None:
        return {}
    try:
        raw = json.loads(path.read_text("utf-8"))
        return {str(name): tuple(str(test) for test in tests) for name, tests in raw.items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"{path}: not a JSON object of suites with lists of test ids: {error}") from error


def _git(folder: Path, *argv: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder), *argv], check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()
