"""`graft bisect`: a search on this machine's repository, with real git and real processes."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner, Result

from bot.cli import build
from bot.cli.probing import ProbeError, Prober, Rules, Trial
from bot.cli.searching import LocalSearch
from bot.core.bisect import Search, Seen
from runners.process import Ended, Killed
from tests.runners.world import commit, git

# a run's luck is told by how many there were before it: the same from run to run of the tests
FLAKY = """
n=$(cat {count} 2>/dev/null || echo 0); echo $((n + 1)) > {count}
luck=$(( (n * 7919 + 13) * 31 % 97 ))
if [ $luck -lt {percent} ]; then [ ! -f broken ] && exit 1; exit 0; fi
[ ! -f broken ]
"""


@pytest.fixture
def history(tmp_path: Path) -> Callable[..., tuple[Path, list[str]]]:
    def make(
        n: int, *, broken: int = 0, files: Callable[[int], dict[str, str]] | None = None
    ) -> tuple[Path, list[str]]:
        place = tmp_path / "repository"
        shas = []
        for at in range(n + 1):
            content = {"at": f"{at}\n", **(files(at) if files else {})}
            if broken and at >= broken:
                content["broken"] = "1\n"
            shas.append(commit(place, content))
        return place, shas

    return make


def graft(repository: Path, good: str, *arguments: str) -> Result:
    line = ["bisect", "--repository", str(repository), "--good", good, "--json", *arguments]
    return CliRunner().invoke(build(["bisect"]), line)


def said(result: Result) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return told


def test_the_commit_is_named_with_its_evidence(history: Callable[..., tuple[Path, list[str]]]) -> None:
    repository, shas = history(20, broken=13)
    result = graft(repository, shas[0], "--", "sh", "-c", "test ! -f broken")
    told = said(result)
    assert (result.exit_code, told["answer"]) == (0, "culprit")
    assert [one["sha"] for one in told["commits"]] == [shas[13]]
    assert told["confidence"] >= 0.99
    assert {run["position"] for run in told["runs"][:2]} == {0, 20}, "both ends first"
    assert {(12, "pass"), (13, "fail")} <= {(run["position"], run["seen"]) for run in told["runs"]}
    assert told["flake_rates"]["fails_where_good"] < 0.1


def test_flakes_are_learnt_and_stated(history: Callable[..., tuple[Path, list[str]]], tmp_path: Path) -> None:
    repository, shas = history(12, broken=5)
    script = FLAKY.format(count=tmp_path / "count", percent=20)
    result = graft(repository, shas[0], "--bad", shas[-1], "--jobs", "1", "--", "sh", "-c", script)
    told = said(result)
    assert [one["sha"] for one in told["commits"]] == [shas[5]]
    assert told["flake_rates"]["fails_where_good"] > 0.05


def test_what_does_not_build_is_skipped_and_builds_are_kept(
    history: Callable[..., tuple[Path, list[str]]], tmp_path: Path
) -> None:
    repository, shas = history(8, broken=5, files=lambda at: {"halt": "x" if at in (4, 5) else ""})
    make = f"echo $GRAFT_COMMIT >> {tmp_path}/built; test ! -s halt && echo made > made"
    result = graft(repository, shas[0], "--build", make, "--", "sh", "-c", "test -f made && test ! -f broken")
    told = said(result)
    assert [one["sha"] for one in told["commits"]] == [shas[4], shas[5], shas[6]], "no build can tell these apart"
    assert {run["why"] for run in told["runs"] if run["seen"] == "skip"} == {"it does not build (exit status 1)"}
    built = (tmp_path / "built").read_text().split()
    assert len(built) == len(set(built)) < len(told["runs"])


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exec no-such-command-anywhere", "not found (127)"),
        ("exit 126", "can't be executed (126)"),
        ("exit 125", "skipped (125)"),
        ("kill -KILL $$", "ended from outside by SIGKILL"),
        ("exec sleep 60", "stopped at its limit"),
    ],
)
def test_a_repro_that_can_not_work_accuses_nobody(
    history: Callable[..., tuple[Path, list[str]]], script: str, why: str
) -> None:
    repository, shas = history(3, broken=2)
    limit = ["--timeout", "1s"] if "sleep" in script else []
    result = graft(repository, shas[0], *limit, "--", "sh", "-c", script)
    told = said(result)
    assert (result.exit_code, told["answer"], told["commits"]) == (2, "inconclusive", [])
    assert "end shows nothing" in told["said"]
    assert why in told["said"]


def test_ends_that_are_alike(history: Callable[..., tuple[Path, list[str]]]) -> None:
    repository, shas = history(4)
    result = graft(repository, shas[0], "--", "true")
    assert (result.exit_code, said(result)["answer"]) == (1, "none")
    result = graft(repository, shas[0], "--", "false")
    assert result.exit_code == 1
    assert said(result)["commits"] == []


def test_something_else_that_is_loaded_stops_the_search(history: Callable[..., tuple[Path, list[str]]]) -> None:
    repository, shas = history(3, broken=2)
    run = ("--", "sh", "-c", "test ! -f broken")
    result = graft(repository, shas[0], "--loaded", "echo /opt/older/install", *run)
    assert result.exit_code == 2
    assert "something else than this tree's build is loaded" in result.stderr
    for right in ("git rev-parse HEAD", "git rev-parse --short=12 HEAD", "echo loaded from $PWD/module.py"):
        assert graft(repository, shas[0], "--loaded", right, *run).exit_code == 0


def test_a_command_that_checks_out_another_commit(history: Callable[..., tuple[Path, list[str]]]) -> None:
    repository, shas = history(3, broken=2)
    result = graft(repository, shas[0], "--", "sh", "-c", f"git checkout -q {shas[1]}")
    assert result.exit_code == 2
    assert "may not move HEAD" in result.stderr


def test_each_step_has_an_environment_and_caches_of_its_own(
    history: Callable[..., tuple[Path, list[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, shas = history(6, broken=3)
    monkeypatch.setenv("SECRET_TOKEN", "x")
    monkeypatch.setenv("WANTED", "yes")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    script = (
        f'echo "$GRAFT_COMMIT $TRITON_CACHE_DIR $HOME $SECRET_TOKEN$PYTHONPATH|$WANTED" >> {tmp_path}/seen\n'
        "ls -A $HOME; test -e $HOME/left && exit 3; touch $HOME/left; test ! -e made || exit 3; touch made\n"
        "test ! -f broken"
    )
    result = graft(repository, shas[0], "--keep", "WANTED", "--", "sh", "-c", script)
    assert [one["sha"] for one in said(result)["commits"]] == [shas[3]]
    lines = [line.split(" ", 3) for line in (tmp_path / "seen").read_text().splitlines()]
    assert all(sha in cache for sha, cache, _, _ in lines)
    assert len({home for _, _, home, _ in lines}) == len(lines)
    assert {rest for *_, rest in lines} == {"|yes"}
    assert git(repository, "status", "--porcelain") == ""


def test_a_metric_that_got_slower_on_a_machine_that_drifts(
    history: Callable[..., tuple[Path, list[str]]], tmp_path: Path
) -> None:
    repository, shas = history(10, files=lambda at: {"ms": "106" if at >= 7 else "100"})
    # the machine gets slower by 1 % every ten runs, and runs scatter by about 1 %
    script = (
        f"n=$(cat {tmp_path}/count 2>/dev/null || echo 0); echo $((n + 1)) > {tmp_path}/count\n"
        'ms=$(cat ms); echo "time: $(( ms * (1000 + n) * (1000 + n * 7919 % 21 - 10) / 1000 )) ms"'
    )
    result = graft(repository, shas[0], "--metric", "time: ([0-9.]+) ms", "--step", "2", "--", "sh", "-c", script)
    told = said(result)
    assert [one["sha"] for one in told["commits"]] == [shas[7]], told
    assert 0.04 < told["step"]["relative"] < 0.08
    assert told["confidence"] >= 0.99
    result = graft(repository, shas[7], "--metric", "time: ([0-9.]+) ms", "--step", "2", "--", "sh", "-c", script)
    assert (result.exit_code, said(result)["answer"]) == (1, "inconclusive")
    assert "clearer signal" in said(result)["said"]


def test_suspects_and_bounds(history: Callable[..., tuple[Path, list[str]]]) -> None:
    repository, shas = history(30, broken=22)
    run = ("--", "sh", "-c", "test ! -f broken")
    led = said(graft(repository, shas[0], "--suspect", shas[22][:8], *run))
    assert [one["sha"] for one in led["commits"]] == [shas[22]]
    short = graft(repository, shas[0], "--max-runs", "4", *run)
    assert (short.exit_code, said(short)["answer"], len(said(short)["runs"])) == (1, "inconclusive", 4)
    assert said(short)["commits"]
    text = CliRunner().invoke(
        build(["bisect"]), ["bisect", "--repository", str(repository), "--good", shas[0], "--bad", "main", *run]
    )
    assert re.search(r"The culprit, with (> )?99\.\d % confidence after \d+ runs over 30 commits:", text.stdout)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--good", "nowhere"], "no commit of"),
        (["--good", "HEAD"], "nothing between them"),
        (["--bad", "HEAD~2", "--good", "HEAD"], "no ancestor"),
        (["--timeout", "soon"], "write it as 90s"),
        (["--metric", "("], "no regular expression"),
        (["--metric", "time"], "give it one group"),
        (["--suspect", "zz"], "0 commits"),
        (["--flake-rate", "0.7"], "from 0 to below 0.5"),
        (["--confidence", "0.2"], "confidence"),
        (["--repository", "/nowhere"], "no git repository"),
    ],
)
def test_what_can_not_be_searched_is_said(
    history: Callable[..., tuple[Path, list[str]]], arguments: list[str], problem: str
) -> None:
    repository, _ = history(3)
    result = graft(repository, "HEAD~3", *arguments, "--", "true")
    assert result.exit_code == 2
    assert problem in result.stderr


def test_a_good_end_on_a_merged_branch_is_refused(history: Callable[..., tuple[Path, list[str]]]) -> None:
    repository, shas = history(2)
    git(repository, "checkout", "-q", "-b", "side", shas[0])
    side = commit(repository, {"side": "1"})
    git(repository, "checkout", "-q", "main")
    git(repository, "merge", "-q", "--no-ff", "-m", "Merge", "side")
    result = graft(repository, side, "--", "true")
    assert result.exit_code == 2
    assert "a branch that was merged in" in result.stderr
    assert shas[0][:10] in result.stderr


@pytest.mark.parametrize(
    ("ended", "more", "seen"),
    [
        (Ended(0, 1, ""), {}, Seen.PASS),
        (Ended(1, 1, ""), {}, Seen.FAIL),
        (Ended(124, 1, ""), {}, Seen.FAIL),
        (Ended(-11, 1, ""), {}, Seen.FAIL),
        (Ended(139, 1, ""), {}, Seen.FAIL),
        (Ended(-9, 1, ""), {}, None),
        (Ended(137, 1, ""), {}, None),
        (Ended(143, 1, ""), {}, None),
        (Ended(255, 1, ""), {}, Seen.SKIP),
        (Ended(127, 1, "", started=False), {}, Seen.SKIP),
        (Ended(-15, 1, "", Killed.TIMEOUT), {}, Seen.SKIP),
        (Ended(-15, 1, "", Killed.TIMEOUT), {"timeout_is_bad": True}, Seen.FAIL),
        (Ended(4, 1, ""), {"pytest": True}, Seen.ABSENT),
        (Ended(2, 1, ""), {"pytest": True}, Seen.SKIP),
        (Ended(0, 1, "a=1\na=2.5\n"), {"metric": re.compile("a=(.*)")}, Seen.VALUE),
        (Ended(0, 1, "a=nan\n"), {"metric": re.compile("a=(.*)")}, Seen.SKIP),
        (Ended(0, 1, "none\n"), {"metric": re.compile("a=(.*)")}, Seen.SKIP),
        (Ended(1, 1, "a=1\n"), {"metric": re.compile("a=(.*)")}, Seen.SKIP),
    ],
)
def test_what_an_end_shows(tmp_path: Path, ended: Ended, more: dict[str, Any], seen: Seen | None) -> None:
    prober = Prober(tmp_path, tmp_path / "work", Rules(("x",), **more), output=lambda _: None)
    trial = prober.read("a" * 40, ended)
    assert trial.seen is seen
    assert os.sep not in trial.why
    assert trial.value == (2.5 if seen is Seen.VALUE else 0.0)


@pytest.mark.parametrize("moments", range(6))
def test_one_that_can_not_go_on_ends_the_others_first(moments: int) -> None:
    class Probes:
        """One says after some turns of the loop that it can't go on; the other is just starting a program, or has."""

        async def probe(self, sha: str) -> Trial:
            if sha == "1":
                pipe = asyncio.subprocess.PIPE
                child = await asyncio.create_subprocess_exec("sleep", "1000", stdout=pipe, stderr=pipe)
                try:
                    await child.communicate()
                finally:
                    child.kill()
                    await child.wait()
            for _ in range(moments):
                await asyncio.sleep(0)
            raise ProbeError("no")

    local = LocalSearch(Search(n=1, parallel=2), ["0", "1"], Probes(), lambda _: None)
    before = set(psutil.Process().children())
    with pytest.raises(ProbeError, match="no"):
        asyncio.run(local.passfail())
    assert not [child for child in psutil.Process().children() if child not in before and child.is_running()]
