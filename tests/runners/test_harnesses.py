"""Each other harness over real programs: what passes, fails, crashes, collects nothing or goes blind."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, get_args

import pytest

from bot.core.canary import has_canary
from bot.core.config import Harness, Suite
from bot.core.types import Outcome
from bot.core.validation import Report, TestOutcome
from runners.harnesses import HARNESSES, HarnessError, harness_of
from tests.runners.suite import GTEST, LIT_CFG, gtest_xml, run


async def test_a_program_that_is_not_there_is_infra(tmp_path: Path) -> None:
    for harness in ("pytest", "lit", "gtest", "command"):
        report = await run(tmp_path / harness, {}, harness=harness, run=["no-such-program"])
        assert report.outcome is Outcome.INFRA, harness
        assert "no-such-program" in report.reason


def test_every_harness_that_a_suite_may_name_is_there() -> None:
    assert set(get_args(Harness)) == set(HARNESSES)
    assert all(harness_of(name) for name in HARNESSES)
    with pytest.raises(HarnessError, match="this runner has no harness 'outside'"):
        harness_of("outside")  # a newer bot may ask for one


# --- lit


async def lit(tmp_path: Path, files: dict[str, str], **options: Any) -> Report:
    options.setdefault("run", ["lit", "-v", "lit"])
    return await run(tmp_path, {"lit/lit.cfg": LIT_CFG, **files}, harness="lit", **options)


async def test_lit(tmp_path: Path) -> None:
    files = {
        "lit/a.t": "RUN: true\n", "lit/deep/b.t": "RUN: echo oops && false\n",
        "lit/c.t": "REQUIRES: gpu\nRUN: true\n", "lit/d.t": "XFAIL: *\nRUN: false\n",
    }  # fmt: skip
    report = await lit(tmp_path, files)
    assert report.outcome is Outcome.FAILED
    assert {test.id: test.outcome.value for test in report.tests} == {
        "FORK :: a.t": "passed", "FORK :: deep/b.t": "failed", "FORK :: c.t": "skipped", "FORK :: d.t": "xfailed",
    }  # fmt: skip
    assert report.manifest.canary is True
    assert "oops" in report.failures[0].message


async def test_lit_passes_and_finds_nothing(tmp_path: Path) -> None:
    good = await lit(tmp_path / "good", {"lit/a.t": "RUN: true\n"}, expected=("FORK :: a.t",))
    assert good.outcome is Outcome.PASSED, good
    gone = await lit(tmp_path / "gone", {"lit/a.t": "RUN: true\n"}, expected=("FORK :: a.t", "FORK :: b.t"))
    assert (gone.outcome, gone.manifest.missing) == (Outcome.OMITTED, ("FORK :: b.t",))
    none = await lit(tmp_path / "none", {})
    assert none.outcome is Outcome.OMITTED


async def test_lit_called_by_a_build_tool(tmp_path: Path) -> None:
    files = {"check.sh": "#!/bin/sh\nexec lit lit\n", "lit/a.t": "RUN: true\n"}
    report = await lit(tmp_path, files, run=["./check.sh"])
    assert report.outcome is Outcome.PASSED, report
    assert [test.id for test in report.tests] == ["FORK :: a.t"]


# --- gtest and ctest, played by scripts that write what the real ones write


@pytest.mark.parametrize(
    ("end", "outcome", "tests"),
    [
        (f"echo '{gtest_xml('')}' > $out", Outcome.PASSED, {"A.x": "passed", "A.y": "passed"}),
        (f"echo '{gtest_xml('<failure/>')}' > $out; exit 1", Outcome.FAILED, {"A.x": "passed", "A.y": "failed"}),
        ("kill -SEGV $$", Outcome.FAILED, {"A.x": "passed", "A.y": "failed", "A.z": "not_run"}),
        ("exit 0", Outcome.OMITTED, {}),
        ("exit 1", Outcome.FAILED, {}),
    ],
)
async def test_gtest(tmp_path: Path, end: str, outcome: Outcome, tests: dict[str, str]) -> None:
    expected = ("A.x", "A.y", "A.z") if "SEGV" in end else ("A.x", "A.y")
    report = await run(tmp_path, {"unit": GTEST + end}, harness="gtest", run=["./unit"], expected=expected)
    assert report.outcome is outcome, report
    assert {test.id: test.outcome.value for test in report.tests} == tests


@pytest.mark.skipif(
    shutil.which("ctest") is None or shutil.which("cmake") is None, reason="needs CMake (apt-get install cmake)"
)
async def test_ctest(tmp_path: Path) -> None:
    cmake = "cmake_minimum_required(VERSION 3.20)\nproject(x NONE)\nenable_testing()\n"
    tests = "add_test(NAME good COMMAND true)\nadd_test(NAME bad COMMAND false)\n"
    build = ["cmake", "-S", ".", "-B", "build"]
    both = await run(
        tmp_path / "both", {"CMakeLists.txt": cmake + tests}, harness="ctest", build=build,
        run=["ctest", "--test-dir", "build"],
    )  # fmt: skip
    assert (both.outcome, both.manifest.canary) == (Outcome.FAILED, True)
    assert {test.id: test.outcome.value for test in both.tests} == {"good": "passed", "bad": "failed"}
    none = await run(
        tmp_path / "none", {"CMakeLists.txt": cmake}, harness="ctest", build=build, run=["ctest", "--test-dir", "build"]
    )
    assert none.outcome in (Outcome.OMITTED, Outcome.FAILED)
    good = {
        "CMakeLists.txt": cmake + tests.partition("\n")[0],
        "go.sh": '#!/bin/sh\nexec ctest --test-dir build "$@"\n',
    }
    for place, command in (("good", ["ctest", "--test-dir", "build"]), ("script", ["./go.sh"])):
        report = await run(tmp_path / place, good, harness="ctest", build=build, run=command)
        assert (report.outcome, report.manifest.canary) == (Outcome.PASSED, True), report


# --- a plain command


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ('echo \'{"metrics": {"qps": 12.5}}\' > $GRAFT_RESULTS', Outcome.PASSED),
        ('echo \'{"metrics": {"ne": 12.5}}\' > $GRAFT_RESULTS', Outcome.OMITTED),
        ('echo \'{"metrics": {"qps": NaN}}\' > $GRAFT_RESULTS', Outcome.OMITTED),
        ("echo '{\"metr' > $GRAFT_RESULTS", Outcome.OMITTED),
        ("true", Outcome.OMITTED),
        ('echo \'{"metrics": {"qps": 12.5}}\' > $GRAFT_RESULTS; exit 3', Outcome.FAILED),
        ("kill -SEGV $$", Outcome.FAILED),
        ("kill -KILL $$", Outcome.INFRA),
    ],
)
async def test_a_command_must_bring_its_metrics(tmp_path: Path, script: str, outcome: Outcome) -> None:
    report = await run(tmp_path, {}, harness="command", run=["sh", "-c", script], metrics=["qps"])
    assert report.outcome is outcome, report
    if outcome is Outcome.PASSED:
        assert [(m.metric, m.samples) for m in report.measurements] == [("qps", (12.5,))]


@pytest.mark.skipif(not __import__("importlib.util").util.find_spec("torch"), reason="needs torch")
async def test_a_distributed_job_reports_from_rank_0_and_fails_with_any_rank(tmp_path: Path) -> None:
    job = (
        "import json, os, sys\n"
        "rank, world = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])\n"
        "if rank == 0:\n"
        "    json.dump({'metrics': {'world': world}}, open(os.environ['GRAFT_RESULTS'], 'w'))\n"
        "sys.exit(7 if rank == 1 and 'fail' in sys.argv else 0)\n"
    )
    good = await run(tmp_path / "good", {"job.py": job}, harness="torchrun", run=["job.py"], metrics=["world"])
    assert good.outcome is Outcome.PASSED, good
    assert good.measurements[0].samples == (2.0,)
    assert good.manifest.canary is True
    bad = await run(tmp_path / "bad", {"job.py": job}, harness="torchrun", run=["job.py", "fail"], metrics=["world"])
    assert bad.outcome is Outcome.FAILED


# --- the canary: each harness shows that it would report a failure, or says that it can't show it

BLIND = "rm -rf {0}; touch {0}"
GOOD = f"echo '{gtest_xml('')}' > $out"


@pytest.mark.parametrize(
    ("harness", "suite", "canary"),
    [
        ("command", {"run": ["true"]}, True),
        ("bench", {"run": ["sh", "-c", 'echo \'{"metrics": {"x": 1}}\' > $GRAFT_RESULTS']}, True),
        ("command", {"run": ["sh", "-c", BLIND.format('"$(dirname "$GRAFT_RESULTS")"')]}, False),
        ("gtest", {"run": ["./unit"]}, True),
        ("gtest", {"run": ["sh", "-c", "./unit; " + BLIND.format("${GTEST_OUTPUT#xml:}canary")]}, False),
        # one that the suite names itself is looked for among its tests, and nothing stands in for it
        ("gtest", {"run": ["./unit"], "canary": "A.never"}, False),
        ("lit", {"run": ["lit", "lit"]}, True),
    ],
)
async def test_a_harness_that_can_t_show_a_failure_is_blind(
    tmp_path: Path, harness: str, suite: dict[str, Any], canary: bool | None
) -> None:
    files = {
        "unit": GTEST + GOOD, "lit/lit.cfg": LIT_CFG, "lit/a.t": "RUN: true\n"
    }  # fmt: skip
    report = await run(tmp_path, files, harness=harness, **suite)
    assert report.manifest.canary is canary, report
    assert report.outcome is (Outcome.INFRA if canary is False else Outcome.PASSED), report
    assert not any("anary" in test.id for test in report.tests)
    assert has_canary(Suite.model_validate({"suite": "s", "harness": harness, **suite})) is (canary is not None)


async def test_a_stand_in_explains_no_exit_status(tmp_path: Path) -> None:
    report = await run(tmp_path, {"unit": GTEST + GOOD + "; exit 1"}, harness="gtest", run=["./unit"])
    assert (report.outcome, report.manifest.canary) == (Outcome.FAILED, True)
    assert "exit status 1 though every reported test passed" in report.reason


# --- the kernels' own harness


@pytest.mark.skipif(not __import__("importlib.util").util.find_spec("triton"), reason="needs triton")
async def test_kernels_compile_for_gpus_that_are_not_there(tmp_path: Path) -> None:
    arguments = ["--mode", "compile", "--only", "softmax", "--targets", "cuda:90,hip:gfx942"]
    report = await run(tmp_path, {}, harness="kernels", run=arguments)
    assert report.outcome is Outcome.PASSED, report
    assert {test.id for test in report.tests} == {
        f"compile::softmax[{kind}-{target}]" for kind in ("fp32", "bf16") for target in ("cuda:90", "hip:gfx942")
    }
    assert report.manifest.canary is True
    found = {(m.metric, m.target) for m in report.measurements}
    assert {("registers", "cuda:90"), ("spills", "hip:gfx942"), ("shared_memory", "cuda:90")} <= found


@pytest.mark.skipif(not __import__("importlib.util").util.find_spec("torch"), reason="needs torch")
async def test_kernels_in_the_interpreter_and_what_it_can_t_check(tmp_path: Path) -> None:
    kernels = (
        "from runners.kernels.matmul import CHECKS as ALL\n"
        "from runners.kernels.spec import Check\n"
        "CHECKS = [Check('m', c.kernel, (), [k for k in c.cases if k.name[:2] in ('1x', '16')]) for c in ALL[:1]]\n"
        "BAD = CHECKS[0].cases[0]\n"
        "CHECKS.append(Check('off', CHECKS[0].kernel, (), [type(BAD)('x', BAD.run, -1.0, -1.0)]))\n"
    )
    arguments = ["--mode", "interpret", "--no-builtin", "--from", "k.py"]
    report = await run(tmp_path, {"k.py": kernels}, harness="kernels", run=arguments)
    assert {test.id: test.outcome for test in report.tests} == {
        "interpret::m[1x1x1-float16]": TestOutcome.PASSED,
        "interpret::m[16x16x48-bfloat16]": TestOutcome.NOT_CHECKABLE,
        "interpret::off[x]": TestOutcome.FAILED,
    }
    assert report.outcome is Outcome.FAILED
    assert "Mismatched elements" in report.failures[0].message
