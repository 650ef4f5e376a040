"""Each harness over real programs: what passes, fails, crashes, hangs, collects nothing or goes blind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

from bot.core.config import Harness, Suite
from bot.core.types import Level, Outcome
from bot.core.validation import Report, RunRequest, TestOutcome, has_canary
from runners.execute import Work, execute
from runners.harnesses import HARNESSES, HarnessError, harness_of

NO_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
LIT_CFG = """import lit.formats
config.name = "FORK"
config.test_format = lit.formats.ShTest()
config.suffixes = [".t"]
"""


async def run(
    tmp_path: Path, files: dict[str, str], *, expected: tuple[str, ...] = (), seconds: str = "60s", **suite: Any
) -> Report:
    source = tmp_path / "source"
    for name, text in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
        if text.startswith("#!"):
            (source / name).chmod(0o755)
    source.mkdir(parents=True, exist_ok=True)
    (tmp_path / "run" / "results").mkdir(parents=True)
    request = RunRequest(
        run_id="r1",
        repository="a/b",
        commit="1" * 40,
        level=Level.L1,
        suite=Suite.model_validate({"suite": "s", "timeout": seconds, **suite}),
        git_path="/x",
        expected=expected,
    )
    return await execute(Work(request=request, source=source, folder=tmp_path / "run", cache=tmp_path / "cache"))


async def pytests(tmp_path: Path, text: str, *more: str, **options: Any) -> Report:
    options.setdefault("run", ["python", "-m", "pytest", "-p", "no:cacheprovider", *more, "t"])
    return await run(tmp_path, {"t/test_a.py": text}, harness="pytest", env=NO_PLUGINS, **options)


def outcomes(report: Report) -> dict[str, str]:
    return {test.id.rpartition("::")[2]: test.outcome.value for test in report.tests}


async def test_pytest_says_each_outcome(tmp_path: Path) -> None:
    report = await pytests(
        tmp_path,
        "import pytest\n"
        "def test_ok(): pass\n"
        "def test_bad(): assert 1 == 2\n"
        "def test_skip(): pytest.skip('why not')\n"
        "@pytest.mark.xfail\ndef test_xfail(): assert 0\n"
        "@pytest.fixture\ndef broken(): raise OSError('no')\n"
        "def test_setup(broken): pass\n"
        "@pytest.mark.parametrize('x', [1, 'a::b[c]'])\ndef test_p(x): pass\n",
    )
    assert report.outcome is Outcome.FAILED
    assert outcomes(report) | {"b[c]]": "passed"} == {
        "test_ok": "passed", "test_bad": "failed", "test_skip": "skipped", "test_xfail": "xfailed",
        "test_setup": "error", "test_p[1]": "passed", "b[c]]": "passed",
    }  # fmt: skip
    bad = next(test for test in report.tests if test.id.endswith("test_bad"))
    assert "assert 1 == 2" in bad.message
    assert (bad.file, bad.line) == ("t/test_a.py", 3)
    assert report.manifest.canary is True


async def test_a_crash_keeps_what_ran_before_and_names_the_test(tmp_path: Path) -> None:
    crash = "import os\ndef test_a(): pass\ndef test_b(): os.abort()\ndef test_c(): pass\n"
    report = await pytests(
        tmp_path, crash, expected=("t/test_a.py::test_a", "t/test_a.py::test_b", "t/test_a.py::test_c")
    )
    assert report.outcome is Outcome.FAILED
    assert outcomes(report) == {"test_a": "passed", "test_b": "failed", "test_c": "not_run"}
    assert "SIGABRT" in report.reason
    assert "t/test_a.py::test_b" in report.reason


@pytest.mark.parametrize(
    ("conftest", "outcome", "reason"),
    [
        # as pytest-cov does where the coverage is too low
        ("def pytest_runtestloop(session):\n    yield\n    session.testsfailed += 1\n", "failed", "that are no test's"),
        ("def pytest_sessionfinish(session):\n    session.exitstatus = 2\n", "infra", "interrupted"),
        ("def pytest_sessionfinish(session):\n    session.exitstatus = 6\n", "failed", "exit status 6"),
    ],
)
async def test_the_canary_hides_no_other_reason_to_fail(
    tmp_path: Path, conftest: str, outcome: str, reason: str
) -> None:
    wrapper = "import pytest\n@pytest.hookimpl(wrapper=True)\n" if "yield" in conftest else ""
    files = {"t/test_a.py": "def test_ok(): pass\n", "conftest.py": wrapper + conftest}
    report = await run(
        tmp_path, files, harness="pytest", env=NO_PLUGINS, run=["python", "-m", "pytest", "-p", "no:cacheprovider", "t"]
    )
    assert (report.outcome.value, report.manifest.canary) == (outcome, True)
    assert reason in report.reason and outcomes(report) == {"test_ok": "passed"}


@pytest.mark.parametrize(
    ("how", "why", "outcome"),
    [("shouldfail", "session-timeout: 600.0 sec exceeded", "timed_out"), ("shouldstop", "enough", "not_run")],
)
async def test_a_session_that_stops_itself_is_not_blind(tmp_path: Path, how: str, why: str, outcome: str) -> None:
    conftest = f"def pytest_runtest_teardown(item):\n    item.session.{how} = {why!r}\n"
    files = {"t/test_a.py": "def test_a(): pass\ndef test_b(): pass\n", "conftest.py": conftest}
    report = await run(
        tmp_path, files, harness="pytest", env=NO_PLUGINS, run=["python", "-m", "pytest", "-p", "no:cacheprovider", "t"]
    )
    assert report.outcome.value == outcome and why in report.reason
    assert outcomes(report) == {"test_a": "passed", "test_b": "not_run"}


async def test_a_hang_is_ended_with_all_its_children(tmp_path: Path) -> None:
    hang = (
        "import subprocess, time\ndef test_a(): pass\n"
        "def test_b():\n    subprocess.Popen(['sleep', '987'], start_new_session=True)\n    time.sleep(600)\n"
        "def test_c(): pass\n"
    )
    report = await pytests(tmp_path, hang, seconds="15s")
    assert report.outcome is Outcome.TIMED_OUT
    assert outcomes(report) == {"test_a": "passed", "test_b": "not_run", "test_c": "not_run"}
    assert not any(b"sleep 987" in line for line in _command_lines())


def _command_lines() -> list[bytes]:
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" "))
    return found


@pytest.mark.parametrize(
    ("files", "outcome", "word"),
    [
        ({"t/readme": ""}, Outcome.OMITTED, "no test reported"),
        (
            {"t/test_a.py": "import pytest\npytest.skip('no GPU', allow_module_level=True)\n"},
            Outcome.OMITTED,
            "skipped",
        ),
        ({"t/test_a.py": "import nosuchmodule\n"}, Outcome.FAILED, "t/test_a.py"),
        ({"t/conftest.py": "import nosuchmodule\n", "t/test_a.py": ""}, Outcome.FAILED, "conftest"),
        ({"u/test_a.py": ""}, Outcome.OMITTED, "status 4"),
    ],
)
async def test_nothing_that_ran_is_no_pass(tmp_path: Path, files: dict[str, str], outcome: Outcome, word: str) -> None:
    report = await run(
        tmp_path, files, harness="pytest", env=NO_PLUGINS, run=["python", "-m", "pytest", "-p", "no:cacheprovider", "t"]
    )
    assert report.outcome is outcome, report
    assert word in report.reason


async def test_a_filter_that_loses_a_test_is_an_omission(tmp_path: Path) -> None:
    both = ("t/test_a.py::test_a", "t/test_a.py::test_b")
    text = "def test_a(): pass\ndef test_b(): pass\n"
    report = await pytests(tmp_path, text, "-k", "test_a and not test_b", expected=both)
    assert (report.outcome, report.manifest.missing) == (Outcome.OMITTED, both[1:])


async def test_a_script_around_pytest_is_seen_through(tmp_path: Path) -> None:
    files = {
        "go.sh": f"#!/bin/sh\n{sys.executable} -m pytest -q t || true\n",
        "t/test_a.py": "def test_a(): assert 0\n",
    }
    report = await run(tmp_path, files, harness="pytest", env=NO_PLUGINS, run=["./go.sh"])
    assert report.outcome is Outcome.FAILED
    assert outcomes(report) == {"test_a": "failed"}


async def test_a_harness_that_swallows_failures_is_blind(tmp_path: Path) -> None:
    files = {
        "t/conftest.py": "def pytest_collection_modifyitems(items):\n    pass\n\n"
        "import pytest\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
        "    outcome = yield\n    outcome.get_result().outcome = 'passed'\n",
        "t/test_a.py": "def test_a(): assert 0\n",
    }
    report = await run(tmp_path, files, harness="pytest", env=NO_PLUGINS, run=["python", "-m", "pytest", "t"])
    # the conftest of t sees the items of t only: the canary still fails, so blindness has to be wider to be complete
    assert report.outcome in (Outcome.INFRA, Outcome.PASSED)
    files = {"conftest.py": files["t/conftest.py"], "t/test_a.py": files["t/test_a.py"]}
    report = await run(tmp_path / "wider", files, harness="pytest", env=NO_PLUGINS, run=["python", "-m", "pytest", "t"])
    assert report.outcome is Outcome.INFRA
    assert "blind" in report.reason


async def test_pytest_of_a_test_does_not_disturb(tmp_path: Path) -> None:
    inner = (
        "import subprocess, sys, pathlib\n"
        "def test_outer(tmp_path):\n"
        "    (tmp_path / 'test_inner.py').write_text('def test_inner(): assert 0')\n"
        "    done = subprocess.run([sys.executable, '-m', 'pytest', str(tmp_path)], capture_output=True)\n"
        "    assert done.returncode == 1, done\n"
    )
    report = await pytests(tmp_path, inner)
    assert report.outcome is Outcome.PASSED, report
    assert outcomes(report) == {"test_outer": "passed"}


async def test_the_memory_limit_ends_a_suite(tmp_path: Path) -> None:
    hungry = "import time\ndef test_a():\n    kept = bytearray(300_000_000)\n    time.sleep(60)\n"
    report = await pytests(tmp_path, hungry, memory_gib=0.2)
    assert report.outcome is Outcome.FAILED
    assert "memory limit" in report.reason


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

GTEST = """#!/bin/sh
case "$GTEST_OUTPUT" in xml:*/) out="${GTEST_OUTPUT#xml:}unit.xml";; esac
echo "[ RUN      ] A.x"; echo "[       OK ] A.x (0 ms)"
echo "[ RUN      ] A.y"
"""


def gtest_xml(body: str) -> str:
    return (
        '<testsuites tests="2"><testsuite name="A"><testcase name="x" classname="A" status="run" result="completed"/>'
        f'<testcase name="y" classname="A" status="run" result="completed">{body}</testcase></testsuite></testsuites>'
    )


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


# --- around every suite


async def test_the_child_sees_no_credential_and_folders_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GRAFT_RUNNER_TOKEN", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "GRAFT_REDIS_URL", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "secret-value")
    script = f"import os, json; json.dump(dict(os.environ), open({str(tmp_path / 'seen')!r}, 'w'))"
    await run(tmp_path, {}, harness="command", run=["python", "-c", script])
    seen = json.loads((tmp_path / "seen").read_text())
    assert "secret-value" not in seen.values()
    assert seen["HOME"] == str(tmp_path / "run" / "home")
    assert seen["TRITON_CACHE_DIR"].startswith(str(tmp_path / "cache"))


async def test_a_hanging_nvidia_smi_hangs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nsleep 600\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{__import__('os').environ['PATH']}")
    from runners import environment

    health = await environment.probe(seconds=0.3)
    assert health.ok is False
    assert "did not answer" in health.text
    tool.write_text(
        "#!/bin/sh\ncase $1 in --query*) echo '0, NVIDIA H100, GPU-1, 550.1, 81559, 1980, 2619, 0';"
        " echo '1, NVIDIA H100, GPU-2, 550.1, 81559, 1980, 2619, 0';; *) echo '| CUDA Version: 12.4 |';; esac\n"
    )
    health = await environment.probe(visible="1")
    assert (health.ok, [gpu.uuid for gpu in health.gpus], health.gpus[0].cuda) == (True, ["GPU-2"], "12.4")
    assert (await environment.probe(visible="7")).ok is False


async def test_cancelling_ends_it(tmp_path: Path) -> None:
    request = RunRequest(
        run_id="r", repository="a/b", commit="1" * 40, level=Level.L1, git_path="/x",
        suite=Suite.model_validate({"suite": "s", "harness": "command", "run": ["sleep", "600"]}),
    )  # fmt: skip
    stop = asyncio.Event()
    (tmp_path / "results").mkdir()
    work = Work(request=request, source=tmp_path, folder=tmp_path, cache=tmp_path / "c", cancelled=stop)
    task = asyncio.create_task(execute(work))
    await asyncio.sleep(0.3)
    stop.set()
    assert (await task).outcome is Outcome.CANCELLED
