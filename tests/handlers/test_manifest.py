"""Runs of real harnesses on the sandbox: what did not run is never green, a change on purpose raises nothing."""

from __future__ import annotations

import asyncio
import io
import subprocess
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bot.clients.store.models import Runner, RunState
from bot.core.manifest import Learned, TestChanges
from bot.core.types import Outcome
from bot.core.validation import Report
from handlers.manifest import adjusted
from handlers.runner import lease, report
from runners.execute import Work, execute
from tests.handlers.pair import Clone, Files, pair
from tests.handlers.runs import PEOPLE, Gated

CONFIG = """
upstream: {repository: up/pkg}
mode: act
validation:
  l1:
    - {suite: unit, run: [sh, ci.sh], retries: 0, timeout: 60s, env: {PYTEST_DISABLE_PLUGIN_AUTOLOAD: "1"}}
    - {suite: cpp, harness: gtest, run: [sh, cpp.sh], retries: 0, timeout: 60s}
"""
CI = "python -m pytest -q -p no:cacheprovider t/core t/extra\n"
XML = """cat > "${GTEST_OUTPUT#xml:}unit.xml" <<END
<testsuites tests="2"><testsuite name="A"><testcase name="x" classname="A" status="run" result="completed"/>
<testcase name="y" classname="A" status="run" result="completed"/></testsuite></testsuites>
END
"""
CORE = "def test_a(): pass\ndef test_b(): assert 1\n"
EXTRA = "import pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n): pass\n"
FILES: Files = {
    "ci.sh": CI,
    "cpp.sh": XML,
    "t/core/test_core.py": CORE,
    "t/extra/test_extra.py": EXTRA,
    "unit.cpp": "TEST(A, x) {}\nTEST(A, y) { int n; }\n",
}
RUNNER = Runner(name="one", token_hash="", labels=("default",))
UNIT = ("t/core/test_core.py::test_a", "t/core/test_core.py::test_b")
BY_EXTRA = ("t/extra/test_extra.py::test_n[1]", "t/extra/test_extra.py::test_n[2]")


def _make(upstream: Clone, fork: Clone, shas: dict[str, str]) -> None:
    fork.commit("Our own", FILES)


async def work(fork: Gated, folder: Path, number: int | None) -> dict[str, Report]:
    """Do the waiting runs of a pull request (None: trunk) as a runner does; gives the reports as they count."""
    context, done = fork.world.context, {}
    for run in await fork.waiting(number):
        request = await lease(context, RUNNER, run.id)
        place = folder / run.id
        (place / "results").mkdir(parents=True)
        await asyncio.to_thread(_check_out, fork.world.repository.path, run.sha, place / "source")
        said = await execute(Work(request, place / "source", place, folder / "cache"))
        await report(context, RUNNER, run.id, said.model_dump_json().encode(), attempt=request.attempt)
        ended = await context.store.run(run.id)
        assert ended is not None and ended.state is RunState.DONE
        done[run.suite] = Report.model_validate(ended.report)
    await fork.world.settle()
    return done


def _check_out(repository: Path, sha: str, folder: Path) -> None:
    """A tree of its own, as a runner makes one."""
    done = subprocess.run(["git", "-C", str(repository), "archive", sha], check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")


@asynccontextmanager
async def proved(root: Path) -> AsyncIterator[Gated]:
    """A fork whose trunk has been green."""
    async with pair(root, make=_make, config=CONFIG, people=PEOPLE) as world:
        fork = Gated(world)
        await fork.start()
        await fork.sweep()
        for suite, said in (await work(fork, root / "trunk", None)).items():
            assert said.outcome is Outcome.PASSED, (suite, said.reason, said.log_tail)
        yield fork


SEGFAULT = "import os, signal\ndef test_a(): pass\ndef test_b(): os.kill(os.getpid(), signal.SIGSEGV)\n"
CUT = "import os\ndef test_a(): pass\ndef test_b(): os._exit(0)\n"
SKIPPING = """
import pytest
def pytest_collection_modifyitems(items):
    for item in items: item.add_marker(pytest.mark.skip(reason="not today"))
"""
BLIND = """
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""
BAD: dict[str, tuple[Files, str, Outcome, str]] = {
    "a suite deleted from the run": ({"ci.sh": CI.replace("t/extra", "")}, "unit", Outcome.OMITTED, BY_EXTRA[0]),
    "a segfault in the middle": ({"t/core/test_core.py": SEGFAULT}, "unit", Outcome.FAILED, "SIGSEGV"),
    "nothing collected, and that tolerated": (
        {"ci.sh": CI.replace("-q", "-q -k nothing") + "true\n"}, "unit", Outcome.OMITTED, UNIT[0]),
    "the process ends in the middle, with status 0": ({"t/core/test_core.py": CUT}, "unit", Outcome.FAILED, UNIT[1]),
    "a file that is cut": (
        {"cpp.sh": XML + 'f="${GTEST_OUTPUT#xml:}unit.xml"; head -c 150 "$f" > cut; cp cut "$f"\n'},
        "cpp", Outcome.OMITTED, "XML"),
    "no file, under exit status 0": ({"cpp.sh": "true\n"}, "cpp", Outcome.OMITTED, "no XML file"),
    "all skipped": ({"conftest.py": SKIPPING}, "unit", Outcome.OMITTED, UNIT[0]),
    "all skipped, as the change says": (
        {"t/core/test_core.py": f"import pytest\npytestmark = pytest.mark.skip\n{CORE}",
         "t/extra/test_extra.py": EXTRA.replace("@", "@pytest.mark.skip\n@", 1)},
        "unit", Outcome.OMITTED, UNIT[0]),
    "a blinded harness": ({"conftest.py": BLIND}, "unit", Outcome.INFRA, "blind"),
}  # fmt: skip
GOOD: dict[str, tuple[Files, int]] = {
    "tests deleted, renamed, moved, added": (
        {
            "t/core/test_core.py": None,
            "t/core/test_kernel.py": CORE.replace("def test_a(): pass\n", "def test_new(): pass\n"),
            "t/extra/test_extra.py": EXTRA.replace("test_n", "test_m").replace("[1, 2]", "[2, 3]"),
        },
        4,
    ),
    "a folder of tests deleted with its place in the run": (
        {"t/extra/test_extra.py": None, "ci.sh": CI.replace("t/extra", "")},
        2,
    ),
    "one skipped on purpose, and C++ renamed": (
        {
            "t/core/test_core.py": CORE.replace(
                "def test_a(): pass", "import pytest\n@pytest.mark.skip\ndef test_a(): 1"
            ),
            "unit.cpp": "TEST(A, x) {}\nTEST(A, z) { int n; }\n",
            "cpp.sh": XML.replace('"y"', '"z"'),
        },
        4,
    ),
}


async def test_what_did_not_run_shuts_the_gate(tmp_path: Path) -> None:
    """C30, C31: a suite that vanished under a green job, nothing collected and that tolerated, and their kin."""
    async with proved(tmp_path) as fork:
        for index, (case, (files, suite, outcome, word)) in enumerate(BAD.items()):
            number = await fork.opens("walter", f"bad-{index}", files)
            said = await work(fork, tmp_path / f"bad-{index}", number)
            found = said[suite]
            assert found.outcome is outcome, (case, found.reason, found.manifest, found.log_tail)
            assert word in found.reason, (case, found.reason)
            assert fork.gate(number).startswith("block: "), case
            for other in said.keys() - {suite}:
                assert said[other].outcome is Outcome.PASSED, case
            check = fork.check(fork.head(number), "graft/l1")
            assert (check.status, check.conclusion) == ("completed", "failure"), case


async def test_what_was_changed_on_purpose_raises_nothing(tmp_path: Path) -> None:
    async with proved(tmp_path) as fork:
        old = await fork.opens("walter", "older", {"other.txt": "two\n"})
        for index, (case, (files, expected)) in enumerate(GOOD.items()):
            number = await fork.opens("walter", f"good-{index}", files)
            said = await work(fork, tmp_path / f"good-{index}", number)
            for suite, found in said.items():
                assert found.outcome is Outcome.PASSED, (case, suite, found.reason, found.manifest, found.tests)
            assert said["unit"].manifest.expected == expected, (case, said["unit"].tests)
            assert fork.gate(number).startswith("allow"), case
        # trunk goes on without the one who branched off earlier: nothing of it is asked there, and not the reverse
        await fork.world.merge(number)
        await fork.sweep()
        trunk = await work(fork, tmp_path / "again", None)
        assert {found.outcome for found in trunk.values()} == {Outcome.PASSED}
        await fork.world.says("walter", old, "/validate l1")
        said = await work(fork, tmp_path / "older", old)
        assert {name: found.outcome for name, found in said.items()} == dict.fromkeys(said, Outcome.PASSED)


@pytest.mark.parametrize(
    ("changes", "tests", "may_skip"),
    [
        (TestChanges(), ("a", "b", "c"), ("c",)),
        (TestChanges(skipped=("a",)), ("a", "b", "c"), ("c", "a")),
        (TestChanges(skipped=("a", "b")), ("a", "b", "c"), ("c",)),  # then nothing would be left that runs
        (TestChanges(added=("d",), skipped=("a", "b")), ("a", "b", "c", "d"), ("c", "d")),
        (TestChanges(deleted=("a",), renamed={"c": "e"}), ("b", "e"), ("e",)),
        (TestChanges(deleted=("a", "b", "c")), (), ()),
    ],
)
def test_adjusted(changes: TestChanges, tests: tuple[str, ...], may_skip: tuple[str, ...]) -> None:
    assert adjusted(Learned(("a", "b", "c"), ("c",)), changes) == (tests, may_skip)
