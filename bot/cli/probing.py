"""One commit in a tree, an environment and caches of its own: built, asserted to be what is loaded, and run."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.core.bisect import Seen, seen_by_exit
from bot.core.config import Suite
from bot.core.types import Level
from bot.core.validation import RunRequest
from runners.environment import child_environment
from runners.process import Ended, Killed, run_group
from runners.workspace import SourceError, Workspace, git

_OUTSIDE = {2, 9, 15}  # signals that come from outside: someone's hand, or a machine without memory
_SHA = re.compile(r"[0-9a-f]{10,40}")


class ProbeError(Exception):
    """No answer could be trusted if the search went on: what is wrong, and how to mend it."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is run at each commit and how its end is read; times in seconds.

    `loaded` prints the commit that the build came from, or a path inside its tree; `metric` finds the value in the
    output (its first group, the last match); `keep` names variables that are passed on.
    """

    run: tuple[str, ...]
    build: str | None = None
    loaded: str | None = None
    metric: re.Pattern[str] | None = None
    seconds: float = 1800.0
    build_seconds: float = 5400.0
    timeout_is_bad: bool = False
    pytest: bool = False
    keep: tuple[str, ...] = ()
    visible: str | None = None
    kept_builds: int = 8


@dataclass(frozen=True, slots=True)
class Trial:
    """One run at a commit. `seen` None: the machine's doing, which shows nothing and may be tried again."""

    sha: str
    seen: Seen | None
    why: str
    seconds: float
    exit_code: int | None = None
    value: float = 0.0


class Prober:
    """Runs commits of one repository, any number at a time, under a folder of its own."""

    def __init__(self, repository: Path, folder: Path, rules: Rules, *, output: Callable[[str], None]) -> None:
        self._source, self._rules, self._output = repository, rules, output
        self._space = Workspace(folder)

    async def probe(self, sha: str) -> Trial:
        """Build the commit, unless its build is kept, and run it once. Raises ProbeError."""
        rules = self._rules
        build = ("sh", "-c", rules.build) if rules.build else ()
        suite = Suite(suite="bisect", harness="command", run=rules.run, build=build)
        request = RunRequest(
            run_id=f"bisect-{uuid.uuid4().hex[:16]}",
            repository="local/bisect",
            commit=sha,
            level=Level.L1,
            suite=suite,
            git_path="/local",
        )
        folder = self._space.run_folder(request)
        cache = self._space.cache_folder(request)
        try:
            async with self._space.tree(request, self._source) as (tree, built):
                env = child_environment(
                    home=folder / "home",
                    cache=cache,
                    mark=request.run_id,
                    commit=sha,
                    visible=rules.visible,
                    keep=rules.keep,
                )
                if build and not built:
                    ended = await self._run(build, tree, env, rules.build_seconds)
                    if ended.exit_code != 0 or ended.killed is not None:
                        return _not_built(sha, ended)
                    await self._space.keep_build(request, tree)
                await self._assert_loaded(sha, tree, env)
                ended = await self._run(rules.run, tree, env, rules.seconds)
                if (head := (await git("-C", str(tree), "rev-parse", "HEAD")).strip()) != sha:
                    raise ProbeError(f"the command left {head[:10]} checked out, not {sha[:10]}: it may not move HEAD")
                return self.read(sha, ended)
        except SourceError as error:
            raise ProbeError(f"{sha[:10]} can't be checked out: {error}") from error
        finally:
            await asyncio.to_thread(self._space.prune, keep=max(rules.kept_builds, 1))

    async def _run(self, argv: Sequence[str], tree: Path, env: dict[str, str], seconds: float) -> Ended:
        return await run_group(argv, cwd=tree, env=env, seconds=seconds, output=self._output)

    async def _assert_loaded(self, sha: str, tree: Path, env: dict[str, str]) -> None:
        if self._rules.loaded is None:
            return
        ended = await self._run(("sh", "-c", self._rules.loaded), tree, env, self._rules.seconds)
        words = _SHA.findall(ended.tail)
        if ended.exit_code == 0 and (str(tree) in ended.tail or any(sha.startswith(word) for word in words)):
            return
        said = ended.tail.strip()[-200:] or f"nothing (exit status {ended.exit_code})"
        raise ProbeError(
            f"{sha[:10]}: --loaded said {said!r}, which names neither the commit nor a path below {tree}: something "
            "else than this tree's build is loaded, an older install perhaps"
        )

    def read(self, sha: str, ended: Ended) -> Trial:
        """What a run that ended so shows of the commit."""
        rules, status = self._rules, ended.exit_code
        if ended.killed is Killed.TIMEOUT:
            seen = Seen.FAIL if rules.timeout_is_bad else Seen.SKIP
            return Trial(sha, seen, f"stopped at its limit of {rules.seconds:g} s", ended.seconds)
        number = -status if status < 0 else status - 128 if status > 128 else 0
        if number in _OUTSIDE:
            return Trial(sha, None, f"ended from outside by {ended.signal_name}", ended.seconds, status)
        seen = seen_by_exit(status if ended.started else None, harness="pytest" if rules.pytest else "command")
        if rules.metric is not None and seen in (Seen.PASS, Seen.FAIL):
            return self._measured(sha, ended)
        why = "" if seen in (Seen.PASS, Seen.FAIL) else _WHY.get(status, f"exit status {status}")
        return Trial(sha, seen, why, ended.seconds, status)

    def _measured(self, sha: str, ended: Ended) -> Trial:
        """The metric's value; a command that failed, or printed none above 0, measured nothing."""
        assert self._rules.metric is not None
        found = self._rules.metric.findall(ended.tail)
        status = ended.exit_code
        try:
            value = float(found[-1]) if found and status == 0 else 0.0
        except ValueError:
            value = 0.0
        if not 0 < value < float("inf"):
            why = f"exit status {status}" if status else "no value above 0 in its output"
            return Trial(sha, Seen.SKIP, why, ended.seconds, status)
        return Trial(sha, Seen.VALUE, "", ended.seconds, status, value)


_WHY = {
    125: "it asked to be skipped (125)",
    126: "the command can't be executed (126)",
    127: "the command was not found (127)",
    4: "pytest does not find the test (4)",
    5: "pytest collected nothing (5)",
}


def _not_built(sha: str, ended: Ended) -> Trial:
    if ended.killed is Killed.TIMEOUT:
        return Trial(sha, Seen.SKIP, "the build was stopped at its limit", ended.seconds)
    status = ended.exit_code
    number = -status if status < 0 else status - 128 if status > 128 else 0
    if number in _OUTSIDE:
        return Trial(sha, None, f"the build was ended from outside by {ended.signal_name}", ended.seconds, status)
    return Trial(sha, Seen.SKIP, f"it does not build (exit status {status})", ended.seconds, status)
