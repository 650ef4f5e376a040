"""What was there before a suite began is none of its results, however it comes into the folder for them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bot.core.types import Outcome
from runners.leftovers import empty, take_out, tick
from tests.runners.suite import GTEST, NO_PLUGINS, gtest_xml, run
from tests.runners.test_run import graft
from tests.runners.world import commit

OLD = json.dumps({"tests": [{"id": "a", "outcome": "passed"}], "metrics": {"qps": 12.5}})
JUNIT = '<testsuite tests="1" timestamp="{at}"><testcase classname="t.test_a" name="test_a"/></testsuite>'


@pytest.mark.parametrize(
    ("how", "outcome", "why"),
    [
        ("true", Outcome.OMITTED, "no value for metric qps"),
        ("cp -p out/r.json $GRAFT_RESULTS", Outcome.OMITTED, "results.json was there before the suite began"),
        ("mv out/r.json $GRAFT_RESULTS", Outcome.OMITTED, "results.json was there before the suite began"),
        ("ln -s $PWD/out/r.json $GRAFT_RESULTS", Outcome.OMITTED, "results.json was there before the suite began"),
        ("cp out/r.json $GRAFT_RESULTS", Outcome.OMITTED, "byte for byte, as out/r.json, which was there before"),
        ("cp out/r.json $GRAFT_RESULTS; exit 1", Outcome.FAILED, "byte for byte, as out/r.json"),
        # made anew, wherever: the suite's own
        ("cat out/r.json > new; mv new out/r.json; cp -p out/r.json $GRAFT_RESULTS", Outcome.PASSED, ""),
        ("sed s/12.5/12.6/ out/r.json > $GRAFT_RESULTS", Outcome.PASSED, ""),
    ],
)
async def test_a_file_of_the_repository_is_no_result(tmp_path: Path, how: str, outcome: Outcome, why: str) -> None:
    report = await run(
        tmp_path, {"out/r.json": OLD}, harness="command", run=["sh", "-c", how], metrics=["qps"]
    )  # fmt: skip
    assert (report.outcome, bool(report.measurements)) == (outcome, outcome is Outcome.PASSED), report
    assert why in report.reason


@pytest.mark.parametrize(
    ("said", "outcome", "why"),
    [
        ({"commit": "1" * 40}, Outcome.PASSED, ""),
        ({"commit": "2" * 40}, Outcome.OMITTED, "results.json: it is about commit 222222222222, not 111111111111"),
        ({"timestamp": "2999-01-01T00:00:00Z"}, Outcome.PASSED, ""),
        ({"timestamp": "2020-01-01T00:00:00Z"}, Outcome.OMITTED, "results.json: it is of 2020-01-01 00:00:00"),
        # of no zone: which time that was is not known
        ({"timestamp": "2020-01-01T00:00:00"}, Outcome.PASSED, ""),
    ],
)
async def test_a_result_file_is_believed_about_what_it_is(
    tmp_path: Path, said: dict[str, str], outcome: Outcome, why: str
) -> None:
    write = f"echo '{json.dumps(json.loads(OLD) | said)}' > $GRAFT_RESULTS"
    report = await run(tmp_path, {}, harness="command", run=["sh", "-c", write], metrics=["qps"])
    assert (report.outcome, bool(report.measurements)) == (outcome, outcome is Outcome.PASSED), report
    assert why in report.reason


FILES: dict[str, tuple[str, dict[str, Any]]] = {
    "gtest": ("cp old.xml ${GTEST_OUTPUT#xml:}a.xml", {}),
    "ctest": ('for a; do out="$a"; done; cp old.xml "$out"', {}),
    "lit": (r"cp old.json $(echo $LIT_OPTS | cut -d\  -f2)", {}),
    "pytest": (r"cp old.xml $(echo $PYTEST_ADDOPTS | sed 's/.*junitxml=\([^ ]*\).*/\1/')", {"env": NO_PLUGINS}),
}


@pytest.mark.parametrize("harness", FILES)
@pytest.mark.parametrize("old", [True, False])
async def test_no_harness_takes_an_old_file(tmp_path: Path, harness: str, old: bool) -> None:
    """The very same file counts where it is made by the suite."""
    script, suite = FILES[harness]
    body = gtest_xml("") if harness == "gtest" else JUNIT.format(at="2999-01-01T00:00:00Z")
    files = {"old.xml": body, "old.json": '{"tests": [{"name": "F :: a.t", "code": "PASS"}]}'}
    suffix = "json" if harness == "lit" else "xml"
    made = f"cat > new <<'END'\n{files[f'old.{suffix}']}\nEND\n"
    files["go.sh"] = f"#!/bin/sh\n{script if old else made + script.replace(f'old.{suffix}', 'new')}\n"
    report = await run(tmp_path, files, harness=harness, run=["./go.sh"], **suite)
    passed = [test.id for test in report.tests if test.outcome.proves]
    assert bool(passed) is not old, report
    assert report.outcome is not Outcome.PASSED or not old, report
    assert ("byte for byte" in report.reason) == old, report


@pytest.mark.parametrize(
    ("xml", "why"),
    [
        (JUNIT.format(at="2020-01-01T00:00:00+00:00"), "it is of 2020-01-01 00:00:00"),
        (JUNIT.format(at="").replace("<testcase", '<properties><property name="git.sha" value="'
         + "2" * 40 + '"/></properties><testcase'), "it is about commit 222222222222"),
    ],
)  # fmt: skip
async def test_an_xml_file_of_another_run(tmp_path: Path, xml: str, why: str) -> None:
    script = GTEST + f"cat > $out <<'END'\n{xml}\nEND\n"
    report = await run(tmp_path, {"unit": script}, harness="gtest", run=["./unit"])
    assert report.outcome is Outcome.OMITTED and why in report.reason, report


def test_what_an_earlier_run_left_in_the_same_folder_is_gone(tmp_path: Path) -> None:
    """`--work` keeps the folder: neither results nor a stand-in's failure of the last time count again."""
    yaml = "upstream: {repository: a/b}\nvalidation:\n  l1:\n    - {suite: s, harness: command, run: [sh, go.sh]}\n"
    folder = tmp_path / "work" / "s" / "results"
    first = f"echo '{OLD}' > $GRAFT_RESULTS; echo x > $(dirname $GRAFT_RESULTS)/log.txt\n"
    commit(tmp_path / "fork", {".github/graft.yml": yaml, "go.sh": first})
    arguments = ("l1", "--checkout", str(tmp_path / "fork"), "--work", str(tmp_path / "work"), "--json")
    result = graft(*arguments)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout.splitlines()[-1])["reports"][0]["measurements"]
    assert {path.name for path in folder.iterdir()} == {"results.json", "log.txt", "canary"}
    (tmp_path / "fork" / "go.sh").write_text("rm -f $(dirname $GRAFT_RESULTS)/canary\n")
    result = graft(*arguments)
    assert result.exit_code == 0, result.output
    assert not json.loads(result.stdout.splitlines()[-1])["reports"][0]["measurements"]
    assert {path.name for path in folder.iterdir()} == {"canary"}


def test_files_that_are_read_are_told_from_others(tmp_path: Path) -> None:
    source, results = tmp_path / "source", tmp_path / "work" / "run" / "results"
    results.mkdir(parents=True)
    for name in ("a.json", "b.json", "deep/c.json", ".git/d.json"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    (results / "old.json").write_text("old")
    (results / "old.txt").write_text("old")
    os.utime(source / "b.json", (4e9, 4e9))  # it says that it is of the future
    since = tick(results.parent)
    while tick(results.parent) == since:  # until a file that is written now bears a later date
        pass
    since = tick(results.parent)
    written = {"copy.json": "deep/c.json", "git.json": ".git/d.json", "b.json": "b.json", "n.json": "n"}
    for name, text in written.items():
        (results / name).write_text(text)
    (results / "empty.json").touch()
    said = take_out(results, ["*.json"], source=source, since=since, apart=tmp_path / "none")
    assert sorted(line.partition(" ")[0] for line in said) == ["b.json", "copy.json", "old.json"]
    left = {"old.txt", "git.json", "n.json", "empty.json"}
    assert {path.name for path in results.iterdir()} == left | {
        "b.json.leftover", "copy.json.leftover", "old.json.leftover"
    }  # fmt: skip
    (results / "again.json").write_text("deep/c.json")
    assert take_out(results, ["*.json"], source=source, since=since, apart=source / "deep") == []
    empty(results)
    assert list(results.iterdir()) == []
    (tmp_path / "link").symlink_to(results)
    with pytest.raises(OSError, match="link"):
        empty(tmp_path / "link")
