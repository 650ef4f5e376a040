"""The sample pair is what it says: the same each time, green where it should be, and each role behaves as its name."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.core.config import Config
from bot.core.types import Level
from bot.core.validation import Measurement
from bot.sandbox.sample import Sample, build, person_commit
from bot.sandbox.sample.__main__ import main
from bot.sandbox.sample.history import Change, Writer, at, overwrite, remove, replace, write
from bot.sandbox.sample.people import INES

IDENTITY = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return build(tmp_path_factory.mktemp("sample"))


class Tree:
    """A work tree of the fork that knows upstream's commits too."""

    def __init__(self, sample: Sample, path: Path) -> None:
        self.sample, self.path = sample, path
        subprocess.run(["git", "clone", "--quiet", str(sample.fork), str(path)], check=True)
        self.git("fetch", "--quiet", str(sample.upstream), "refs/heads/main")

    def git(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", "-C", str(self.path), *IDENTITY, *arguments], capture_output=True, text=True, check=check
        )

    def at(self, commit: str) -> Tree:
        self.git("cherry-pick", "--abort", check=False)
        self.git("reset", "--quiet", "--hard", commit)
        return self

    def pick(self, sha: str) -> tuple[str, tuple[str, ...]]:
        """`clean`, `empty` or `conflict`, with the paths that conflict; what did not go through is taken back."""
        merge = len(self.git("rev-list", "--parents", "-1", sha).stdout.split()) > 2
        done = self.git("cherry-pick", "-x", *(("-m", "1") if merge else ()), sha, check=False)
        if done.returncode == 0:
            return "clean", ()
        unmerged = self.git("diff", "--name-only", "--diff-filter=U").stdout.split()
        self.git("cherry-pick", "--skip")
        return ("conflict" if unmerged else "empty"), tuple(unmerged)

    def pytest(self, *paths: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-rfE", *paths],
            cwd=self.path,
            # a work tree that changes within a second would be run by the bytecode of the commit before
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout


@pytest.fixture(scope="module")
def tree(sample: Sample, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    yield Tree(sample, tmp_path_factory.mktemp("tree") / "fork")


def test_two_builds_are_equal(sample: Sample, tmp_path: Path) -> None:
    again = build(tmp_path / "again")
    assert (again.upstream_tip, again.fork_tip) == (sample.upstream_tip, sample.fork_tip)
    assert (again.roles, again.fork_roles) == (sample.roles, sample.fork_roles)
    with pytest.raises(FileExistsError, match="empty folder"):
        build(tmp_path / "again")


def test_whole_repositories(sample: Sample) -> None:
    for path in (sample.upstream, sample.fork):
        subprocess.run(["git", "-C", str(path), "fsck", "--strict", "--no-dangling"], check=True, capture_output=True)


def test_sizes_and_stages(sample: Sample, tree: Tree) -> None:
    order = tree.git("rev-list", "--first-parent", "--reverse", f"{sample.base}..{sample.upstream_tip}").stdout.split()
    assert len(order) == 60
    assert [sha for stage in sample.stages for sha in stage.commits] == order
    assert [len(stage.commits) for stage in sample.stages] == [48, 12]
    assert sorted(sample.picked + sample.reverted_in_fork + sample.undecided) == sorted(order)
    assert tree.git("rev-list", "--count", sample.base).stdout.strip() == "10"
    assert tree.git("merge-base", sample.upstream_tip, sample.fork_tip).stdout.strip() == sample.base


def test_main_stands_at_a_stage(tmp_path: Path) -> None:
    early = build(tmp_path, stage=0)

    def tip() -> str:
        return subprocess.run(
            ["git", "-C", str(early.upstream), "rev-parse", "main"], capture_output=True, text=True, check=True
        ).stdout.strip()

    assert tip() == early.stages[0].sha
    assert early.move_upstream(1) == early.upstream_tip == tip()


@pytest.mark.parametrize("where", ["base", "backlog", "later", "fork"])
def test_green_where_it_should_be(sample: Sample, tree: Tree, where: str) -> None:
    tips = {"base": sample.base, "fork": sample.fork_tip} | {stage.name: stage.sha for stage in sample.stages}
    code, output = tree.at(tips[where]).pytest("tests/unit", *(("third_party/tlx/tests",) if where == "fork" else ()))
    assert code == 0, output
    assert "skipped" not in output


def test_lit_tests_pass_at_the_forks_tip(sample: Sample, tree: Tree, tmp_path: Path) -> None:
    pytest.importorskip("triton", reason="its wheel brings FileCheck")
    tree.at(sample.fork_tip)
    done = subprocess.run(
        [sys.executable, "-c", "from lit.main import main; main()", "-v", "tests/lit"],
        cwd=tree.path,
        env={"PATH": "/usr/bin:/bin", "TILEC_LIT_OUTPUT": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed: 4" in done.stdout


def test_tools_write_results(sample: Sample, tree: Tree, tmp_path: Path) -> None:
    """The kernels compile for both targets without a GPU, and the measurements are values that a report takes."""
    pytest.importorskip("triton")
    tree.at(sample.fork_tip)
    environment = {**os.environ, "GRAFT_RESULTS": str(tmp_path / "results.json"), "TRITON_CACHE_DIR": str(tmp_path)}

    def results(*command: str) -> dict[str, list[dict[str, Any]]]:
        subprocess.run([sys.executable, *command], cwd=tree.path, env=environment, check=True, capture_output=True)
        found: dict[str, list[dict[str, Any]]] = json.loads((tmp_path / "results.json").read_text())
        assert all(Measurement.model_validate(one) for one in found["measurements"])
        return found

    compiled = results("tools/compile_kernels.py", "tilec/kernels", "third_party/tlx/kernels")
    kernels = ["persistent_sum", "matmul", "softmax", "vector_add"]
    assert [test["id"].split("::")[1] for test in compiled["tests"]] == [
        f"{kernel}[{target}]" for kernel in kernels for target in ("cuda:90", "hip:gfx942")
    ]
    assert {test["outcome"] for test in compiled["tests"]} == {"passed"}
    measured = {one["metric"] for one in results("tools/measure.py")["measurements"]}
    assert measured == {"compile_ms", "ops_after_passes", "llvm_lines"}


ALONE = {
    "chain_1": ("clean", ()),
    "chain_2": ("conflict", ("tilec/passes/pipeline.py",)),
    "chain_3": ("conflict", ("tests/unit/test_pipeline.py", "tilec/passes/pipeline.py")),
    "chain_4": ("conflict", ("tilec/passes/pipeline.py",)),
    "chain_5": ("conflict", ("tests/unit/test_pipeline.py", "tilec/passes/pipeline.py")),
    "conflict": ("conflict", ("tilec/passes/layout.py",)),
    "conflict_dependent": ("conflict", ("tilec/passes/layout.py",)),
    "mechanical_conflict": ("conflict", ("tilec/passes/__init__.py",)),
    "already_there": ("empty", ()),
    "empty": ("empty", ()),
    "ci_deleted_file": ("conflict", (".github/workflows/nightly.yml",)),
    "fork_deleted_file": ("conflict", ("tilec/kernels/legacy_copy.py",)),
    "renamed_file": ("clean", ()),
    "edit_in_renamed_file": ("clean", ()),
    "edit_in_renamed_folder": ("clean", ()),
    "rename_api": ("clean", ()),
    "rename_dependent": ("clean", ()),
    "pin_bump": ("clean", ()),
    "pin_dependent": ("clean", ()),
    "breaks_fork_test": ("clean", ()),
    "merge": ("clean", ()),
    "picked_then_reverted": ("clean", ()),
    "reverted": ("clean", ()),
    "revert": ("empty", ()),
    "back_out": ("empty", ()),
    "reland": ("clean", ()),
    "mentions": ("clean", ()),
    "ci_only": ("clean", ()),
}


@pytest.mark.parametrize("role", ALONE)
def test_pick_alone(sample: Sample, tree: Tree, role: str) -> None:
    assert tree.at(sample.fork_tip).pick(sample.roles[role]) == ALONE[role]


def test_picks_in_order(sample: Sample, tree: Tree) -> None:
    """All that need no person land on each other, and what comes out is green but for what the fork alone feels."""
    tree.at(sample.fork_tip)
    names = {sha: role for role, sha in sample.roles.items()}
    outcomes = {names[sha]: tree.pick(sha)[0] for sha in sample.undecided}
    assert {role for role, kind in outcomes.items() if kind == "empty"} == {"already_there", "empty"}
    assert {role for role, kind in outcomes.items() if kind == "conflict"} == {
        "conflict",
        "conflict_dependent",
        "mechanical_conflict",
        "ci_deleted_file",
        "fork_deleted_file",
    }
    assert tree.pytest("tests/unit")[0] == 0
    code, output = tree.pytest("third_party/tlx/tests", "--continue-on-collection-errors")
    assert code != 0
    assert "test_tlx_memory.py" in output
    assert "infer_layout" in output


@pytest.mark.parametrize(
    ("roles", "suite", "says"),
    [
        (("rename_api",), "third_party/tlx/tests", "cannot import name 'infer_layout'"),
        (("breaks_fork_test",), "third_party/tlx/tests", "test_tlx_memory.py::test_slots_on_hopper"),
        (("pin_dependent",), "tests/unit", "opaque_ptr"),
        (("rename_dependent",), "tests/unit", "assign_layout"),
    ],
)
def test_breaks_what_merges_cleanly(sample: Sample, tree: Tree, roles: tuple[str, ...], suite: str, says: str) -> None:
    tree.at(sample.fork_tip)
    assert [tree.pick(sample.roles[role])[0] for role in roles] == ["clean"] * len(roles)
    code, output = tree.pytest(suite)
    assert code != 0
    assert says in output


@pytest.mark.parametrize(
    "roles", [("pin_bump", "pin_dependent"), ("rename_api", "rename_dependent"), ("chain_1", "chain_2", "chain_3")]
)
def test_a_dependent_is_green_on_what_it_waits_for(sample: Sample, tree: Tree, roles: tuple[str, ...]) -> None:
    tree.at(sample.fork_tip)
    assert [tree.pick(sample.roles[role])[0] for role in roles] == ["clean"] * len(roles)
    code, output = tree.pytest("tests/unit")
    assert code == 0, output


def test_messages(sample: Sample, tree: Tree) -> None:
    def message(sha: str) -> str:
        return tree.git("log", "-1", "--format=%B", sha).stdout

    roles, fork = sample.roles, sample.fork_roles
    assert f"This reverts commit {roles['reverted']}." in message(roles["revert"])
    assert message(roles["revert"]).startswith('Revert "lower: name vector types (#123)" (#126)')
    assert "#137" in message(roles["back_out"])
    assert "This reverts" not in message(roles["back_out"])
    assert "Fixes #12" in message(roles["mentions"])
    assert "@somebody" in message(roles["mentions"])
    assert f"(cherry picked from commit {roles['gfx950']})" in message(fork["fork_pick:gfx950"])
    assert f"Upstream-Revision: {roles['document_layouts']}" in message(fork["fork_old_marker"])
    assert message(fork["fork_squash"]).count("(cherry picked from commit ") == 2
    assert f"This reverts commit {fork['fork_pick:picked_then_reverted']}." in message(fork["fork_revert"])
    assert tree.git("diff", "--name-only", f"{roles['empty']}^", roles["empty"]).stdout == ""
    assert len(tree.git("rev-list", "--parents", "-1", roles["merge"]).stdout.split()) == 3
    assert "R" in tree.git("diff", "-M", "--name-status", f"{roles['renamed_file']}^", roles["renamed_file"]).stdout
    assert "Inês Carvalho" in tree.git("log", "-1", "--format=%an", roles["chain_1"]).stdout


def test_the_forks_file(sample: Sample, tree: Tree) -> None:
    config = Config.of(yaml.safe_load(tree.git("show", f"{sample.fork_tip}:.github/graft.yml").stdout))
    assert config.upstream.repository == sample.upstream_name
    assert {name: area.owners for name, area in config.areas.items()} == sample.areas
    suites = {suite.suite for level in Level for suite in config.validation.of(level)}
    assert {name for area in config.areas.values() for name in area.suites} <= suites
    owners = {owner for area in config.areas.values() for owner in area.owners}
    teams = {f"acme-fork/{slug}" for slug in sample.teams}
    assert owners <= set(sample.users) | teams
    assert {member for members in sample.teams.values() for member in members} <= set(sample.users)
    assert not set(sample.upstream_people) & set(sample.users)
    assert sample.trunk_break.area in config.areas
    assert {suite.suite: suite.area for suite in config.validation.l1}[sample.trunk_break.suite] == "tlx"


def test_a_person_breaks_trunk_and_mends_it(sample: Sample, tree: Tree) -> None:
    broken = person_commit(tree.path, sample.trunk_break, sample.fork_tip)
    assert person_commit(tree.path, sample.trunk_break, sample.fork_tip) == broken
    assert tree.git("log", "-1", "--format=%an|%P", broken).stdout.strip() == f"Léo Hart|{sample.fork_tip}"
    code, output = tree.at(broken).pytest("tests/unit", "third_party/tlx/tests")
    assert code == 1
    failed = [line.split()[1] for line in output.splitlines() if line.startswith("FAILED ")]
    assert failed == [sample.trunk_break.fails]
    mended = person_commit(tree.path, sample.trunk_fix, broken)
    assert tree.git("diff", sample.fork_tip, mended).stdout == ""
    with pytest.raises(ValueError, match="not once"):
        person_commit(tree.path, sample.trunk_break, broken)


def test_a_persons_pull_request_is_green(sample: Sample, tree: Tree) -> None:
    head = person_commit(tree.path, sample.pull_request, sample.fork_tip)
    assert tree.git("diff", "--name-only", sample.fork_tip, head).stdout.split() == [sample.pull_request.path]
    assert tree.at(head).pytest("tests/unit/test_layout.py")[0] == 0


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "pair"), "--stage", "1", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert Path(facts["upstream"]).is_dir()
    assert facts["roles"]["pin_bump"]
    assert main([str(tmp_path / "pair")]) == 2
    assert "empty folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (Change("x\n", INES, at(1, 1), (write("a", "y"),)), "there already"),
        (Change("x\n", INES, at(1, 1), (replace("a", "none", "y"),)), "0 times"),
        (Change("x\n", INES, at(1, 1), (overwrite("b", "y"),)), "not there"),
        (Change("see {sha:later}\n", INES, at(1, 1)), "not made yet"),
        (Change("x\n", INES, at(1, 1), role="first"), "two commits"),
    ],
)
def test_an_edit_that_does_not_fit_fails_the_build(tmp_path: Path, change: Change, error: str) -> None:
    first = Change("first\n", INES, at(1, 1), (write("a", "\nb\n"), write("c", "d"), remove("c")), "first")
    with pytest.raises(ValueError, match=error), Writer(tmp_path / "r.git") as writer:
        writer.commit(first)
        assert writer.files == {"a": "b\n"}
        writer.commit(change)


def test_undone_is_the_way_back(sample: Sample) -> None:
    change = sample.trunk_break
    back = change.undone("back\n").undone(change.message)
    assert dataclasses.replace(back, when=change.when, fails=change.fails) == change
