from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bot.cli import build as commands
from bot.sandbox.sample import Sample, build
from tests.clients.test_git import Work, lines


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return build(tmp_path_factory.mktemp("sample") / "pair")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def run(sample: Sample, kept: Path, *more: str) -> Result:
    sides = ["plan", "--upstream", str(sample.upstream), "--fork", str(sample.fork), "--cache", str(kept)]
    return CliRunner().invoke(commands(["plan"]), [*sides, *more])


def test_json_has_each_commit_once_and_is_the_same_twice(sample: Sample, kept: Path) -> None:
    first, second = (json.loads(run(sample, kept, "--json").stdout) for _ in range(2))
    assert set(first) >= {"bundles", "chains", "held", "settled", "ledger", "metrics", "timings"}
    groups = [*first["bundles"], *first["chains"], {"commits": first["held"]}, {"commits": first["settled"]}]
    shas = [commit["sha"] for group in groups for commit in group["commits"]]
    assert sorted(shas) == sorted({*sample.undecided, *sample.reverted_in_fork})
    assert {bundle["grade"] for bundle in first["bundles"]} <= {"safe", "watch"}
    assert {"sha", "pr", "verdict", "reasons", "waits_for"} <= set(first["bundles"][0]["commits"][0])
    del first["timings"], second["timings"]
    assert json.dumps(first) == json.dumps(second)


def test_the_table_and_the_page_show_all_and_run_nothing(sample: Sample, kept: Path, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    result = run(sample, kept, "--html", str(page))
    assert result.exit_code == 0
    assert "can land now" in result.stdout
    assert "Days Behind Upstream" in result.stdout
    text = page.read_text("utf-8")
    assert "<svg" in text
    assert "<script" not in text
    assert all(sha[:10] in text for sha in sample.undecided)


def test_explain_tells_all_of_one_commit(sample: Sample, kept: Path) -> None:
    sha = sample.roles["pin_dependent"]
    facts = json.loads(run(sample, kept, "--explain", sha[:10], "--json").stdout)
    assert facts["sha"] == sha
    assert facts["place"] == "held back"
    assert facts["waits_for"] == [sample.roles["pin_bump"]]
    assert facts["awaited_by"] == [sample.roles["pin_dependent_2"]]
    by_number = run(sample, kept, "--explain", "#133")
    assert sha in by_number.stdout
    picked = json.loads(run(sample, kept, "--explain", sample.picked[0], "--json").stdout)
    assert (picked["place"], picked["disposition"]) == (None, "picked")


def test_evidence_is_cut_only_where_it_says_so(tmp_path: Path) -> None:
    work = Work(tmp_path / "work")
    files = {f"lib/{number:02}.txt": lines() for number in range(30)}
    work.commit("base", {**files, "lib/new.txt": lines()})
    work.git("branch", "fork")
    sha = work.commit("upstream's", {"lib/new.txt": lines((3, "new"))})
    work.git("checkout", "-q", "fork")
    work.commit("the fork's", {path: lines((5, "fork")) for path in files})
    sides = ["--upstream", str(work.path), "--upstream-ref", "main", "--fork", str(work.path), "--fork-ref", "fork"]

    def told(*more: str) -> str:
        return CliRunner().invoke(commands(["plan"]), ["plan", *sides, "--cache", str(tmp_path / "kept"), *more]).stdout

    planned = json.loads(told("--json"))["bundles"][0]["commits"][0]["reasons"][0]
    assert (len(planned["evidence"]), planned["evidence_total"]) == (5, 30)
    assert json.loads(told("--explain", sha, "--json"))["reasons"][0]["evidence"] == sorted(files)
    page = told("--explain", sha)
    assert "lib/19.txt" in page
    assert "lib/20.txt" not in page
    assert "and 10 more" in " ".join(page.split())
    told("--html", str(tmp_path / "plan.html"))
    assert "(+27)" in (tmp_path / "plan.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--explain", "ffffffff"], "no upstream commit"),
        (["--at", "yesterday"], "YYYY-MM-DD"),
        (["--at", "2001-01-01"], "no commit before"),
        (["--upstream-ref", "nowhere"], "nowhere"),
        (["--config", "/nowhere/graft.yml"], "/nowhere/graft.yml"),
        (["--marker", "no group"], "sha"),
    ],
)
def test_what_can_not_be_run_ends_with_2_and_says_how_to_mend_it(
    sample: Sample, kept: Path, more: list[str], says: str
) -> None:
    result = run(sample, kept, *more)
    assert result.exit_code == 2
    assert says in result.stderr


def test_a_path_that_is_not_there(sample: Sample, kept: Path, tmp_path: Path) -> None:
    sides = ["plan", "--upstream", str(tmp_path / "none"), "--fork", str(sample.fork), "--cache", str(kept)]
    result = CliRunner().invoke(commands(["plan"]), sides)
    assert result.exit_code == 2
    assert "is not there" in result.stderr


def test_a_url_is_fetched_and_gives_the_same_plan(sample: Sample, kept: Path) -> None:
    url = f"file://{sample.upstream}"
    sides = ["plan", "--upstream", url, "--fork", str(sample.fork), "--cache", str(kept), "--json"]
    fetched = CliRunner().invoke(commands(["plan"]), sides)
    assert fetched.exit_code == 0, fetched.stderr
    first, second = json.loads(fetched.stdout), json.loads(run(sample, kept, "--json").stdout)
    del first["timings"], second["timings"]
    assert first == second


def test_at_a_day_only_what_was_there_counts(sample: Sample, kept: Path) -> None:
    early = json.loads(run(sample, kept, "--json", "--at", "2026-11-10").stdout)
    now = json.loads(run(sample, kept, "--json").stdout)
    assert len(early["ledger"]["dispositions"]) < len(now["ledger"]["dispositions"])


def test_it_loads_nothing_that_it_does_not_use() -> None:
    code = (
        "import sys, bot.cli.plan, handlers.planning\n"
        "heavy = {'githubkit', 'torch', 'triton', 'sqlalchemy', 'arq', 'starlette'} & set(sys.modules)\n"
        "sys.exit(f'loads {sorted(heavy)}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
