from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.clients.git import Git, GitError
from tests.clients.test_git import Work, lines


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "work")


@pytest.fixture
def git(work: Work) -> Git:
    return Git(work.path / ".git")


def fork_from(work: Work, base: str, message: str, files: dict[str, str | bytes | None]) -> str:
    work.git("checkout", "-q", "-B", "fork", base)
    sha = work.commit(message, files)
    work.git("checkout", "-q", "main")
    return sha


def test_a_clean_pick_equals_cherry_pick(work: Work, git: Git) -> None:
    base = work.commit("base", {"a": lines(), "b": "b\n"})
    commit = work.commit("change", {"a": lines((3, "three"))})
    fork = fork_from(work, base, "fork", {"a": lines((20, "twenty"))})
    result = git.pick(commit, fork)
    assert result.kind == "clean"
    assert result.tree == work.cherry_pick(commit, fork)
    assert git.read_file(result.tree or "", "a") == lines((3, "three"), (20, "twenty")).encode()


def test_c1_what_is_already_there_and_what_is_empty_are_no_conflict(work: Work, git: Git) -> None:
    base = work.commit("base", {"a": lines()})
    there = work.commit("there", {"a": lines((3, "three"))})
    empty = work.commit("empty", {})
    after = work.commit("after", {"a": lines((3, "three"), (9, "nine"))})
    fork = fork_from(work, base, "same", {"a": lines((3, "three"))})
    results = list(git.picks([there, empty, after], fork))
    assert [result.kind for result in results] == ["empty", "empty", "clean"]
    assert results[0].tree == git.tree_of(fork)


def test_the_tip_advances_over_clean_ones_and_not_over_conflicts(work: Work, git: Git) -> None:
    base = work.commit("base", {"a": lines(), "b": "b\n"})
    one = work.commit("one", {"a": lines((3, "one"))})
    two = work.commit("two", {"a": lines((3, "two"))})
    three = work.commit("three", {"b": "b\nthree\n"})
    fork = fork_from(work, base, "fork", {"a": lines((3, "fork"))})
    results = list(git.picks([one, two, three], fork))
    assert [result.kind for result in results] == ["conflict", "conflict", "clean"]
    assert [conflict.path for conflict in results[0].conflicts] == ["a"]
    assert results[0].conflicts[0].kind == "contents"
    assert [result.kind for result in git.picks([one, two, three], base)] == ["clean"] * 3


def test_a_conflict_shows_the_three_sides_to_a_person(work: Work, git: Git) -> None:
    base = work.commit("base", {"d/a": lines()})
    commit = work.commit("one", {"d/a": lines((3, "theirs"))})
    fork = fork_from(work, base, "fork", {"d/a": lines((3, "ours"))})
    result = git.pick(commit, fork)
    assert result.kind == "conflict"
    assert result.tree is None
    marked = git.read_file(result.marked_tree or "", "d/a")
    expected = lines(
        (
            3,
            f"<<<<<<< fork\nours\n||||||| parent of {commit[:12]}\nline 3\n"
            f"=======\ntheirs\n>>>>>>> upstream {commit[:12]}",
        )
    )
    assert marked == expected.encode()
    (conflict,) = result.conflicts
    assert [git.read_blob(oid or "") for oid in (conflict.base_oid, conflict.ours_oid, conflict.theirs_oid)] == [
        lines().encode(),
        lines((3, "ours")).encode(),
        lines((3, "theirs")).encode(),
    ]


def test_c2_what_the_fork_deleted_stays_deleted_where_that_is_said(work: Work, git: Git) -> None:
    base = work.commit("base", {"a": lines(), ".github/ci.yml": lines()})
    only = work.commit("only", {".github/ci.yml": lines((1, "x"))})
    both = work.commit("both", {".github/ci.yml": lines((1, "y")), "a": lines((1, "y"))})
    fork = fork_from(work, base, "drop ci", {".github/ci.yml": None})
    results = list(git.picks([only, both], fork))
    assert [result.kind for result in results] == ["conflict", "conflict"]
    assert results[0].conflicts[0].kind == "modify/delete"
    results = list(git.picks([only, both], fork, keep_deleted={".github/ci.yml"}))
    assert [(result.kind, result.kept_deleted) for result in results] == [
        ("empty", (".github/ci.yml",)),
        ("clean", (".github/ci.yml",)),
    ]
    assert {entry.path for entry in git.list_tree(results[1].tree or "")} == {"a"}


def test_c2_a_deleted_file_that_upstream_renames_stays_deleted(work: Work, git: Git) -> None:
    base = work.commit("base", {"a": lines(), "old": "x\n" + lines()})
    work.git("mv", "old", "new")
    rename = work.commit("rename", {})
    fork = fork_from(work, base, "drop", {"old": None})
    assert git.pick(rename, fork).kind in {"conflict", "empty"}
    assert git.pick(rename, fork, keep_deleted={"old"}).kind == "empty"


def test_c8_a_merge_is_picked_against_its_first_parent(work: Work, git: Git) -> None:
    base = work.commit("base", {"a": "a\n"})
    work.git("checkout", "-q", "-b", "side")
    work.commit("s1", {"s1": "1\n"})
    work.commit("s2", {"s2": "2\n"})
    work.git("checkout", "-q", "main")
    work.commit("m", {"m": "m\n"})
    work.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    merge = work.git("rev-parse", "HEAD")
    fork = fork_from(work, base, "fork", {"f": "f\n"})
    result = git.pick(merge, fork)
    assert {entry.path for entry in git.list_tree(result.tree or "")} == {"a", "f", "s1", "s2"}
    assert result.tree == work.cherry_pick(merge, fork, "-m", "1")


def test_c12_edits_follow_a_renamed_folder(work: Work, git: Git) -> None:
    files: dict[str, str | bytes | None] = {f"old/f{number}": f"{number}\n{lines()}" for number in range(1000)}
    base = work.commit("base", files)
    work.git("mv", "old", "new")
    rename = work.commit("rename", {})
    edit = work.commit("edit", {"new/f7": "7\n" + lines((9, "edited"))})
    fork = fork_from(work, base, "fork", {"old/f7": "7\n" + lines((20, "fork's"))})
    results = list(git.picks([rename, edit], fork))
    assert [result.kind for result in results] == ["clean", "clean"]
    assert git.read_file(results[1].tree or "", "new/f7") == ("7\n" + lines((9, "edited"), (20, "fork's"))).encode()
    assert (
        git.read_file(git.pick(edit, fork).tree or "", "old/f7")
        == ("7\n" + lines((9, "edited"), (20, "fork's"))).encode()
    )


def test_a_missing_object_is_an_error_and_the_next_pick_works(work: Work, git: Git) -> None:
    base = work.commit("base", {"a": lines(), "big": lines((1, "rare"))})
    broken = work.commit("broken", {"a": lines((3, "unique content"))})
    fine = work.commit("fine", {"b": "b\n"})
    fork = fork_from(work, base, "fork", {"a": lines((20, "twenty"))})
    oid = work.git("rev-parse", f"{broken}:a")
    (work.path / ".git/objects" / oid[:2] / oid[2:]).unlink()
    with pytest.raises(GitError):
        git.pick(broken, fork)
    assert git.pick(fine, fork).kind == "clean"


def test_strange_names_and_binary_files(work: Work, git: Git) -> None:
    strange = 'a\tb "ü".bin'
    base = work.commit("base", {strange: b"\0\1\2", "x\ny": "1\n"})
    commit = work.commit("binary", {strange: b"\0\1\3", "x\ny": "2\n"})
    fork = fork_from(work, base, "fork", {strange: b"\0\1\4"})
    result = git.pick(commit, fork)
    assert [(conflict.path, conflict.kind) for conflict in result.conflicts] == [(strange, "binary")]


class Kept(dict[str, bytes]):
    """What git said, in memory."""

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        return {key: self[key] for key in keys if key in self}

    def put_many(self, values: Mapping[str, bytes]) -> None:
        self.update(values)


def moves_and_changes(work: Work) -> tuple[list[str], str]:
    """Commits and a fork between which git has to merge contents, to follow a rename and to see conflicts."""
    base = work.commit("base", {"d/a": lines(), "d/b": "b\n" + lines(), "old/f": "f\n" + lines()})
    commits = [
        work.commit("both", {"d/a": lines((3, "three"))}),
        work.commit("clash", {"d/b": "upstream's\n" + lines()}),
        work.commit("follows", {"old/f": "f\n" + lines((9, "nine"))}),
        work.commit("again", {"d/a": lines((3, "three"), (12, "twelve"))}),
    ]
    fork = fork_from(work, base, "fork", {"d/a": lines((20, "twenty")), "d/b": "fork's\n" + lines()})
    work.git("checkout", "-q", "fork")
    work.git("mv", "old/f", "new")
    fork = work.commit("moves", {})
    work.git("checkout", "-q", "main")
    return commits, fork


def test_what_git_said_is_not_asked_again(work: Work, git: Git) -> None:
    commits, fork = moves_and_changes(work)
    kept = Kept()
    with git.scratch() as scratch:
        first = list(scratch.picks(commits, fork, kept=kept))
    assert [result.kind for result in first] == ["clean", "conflict", "clean", "clean"]
    known = dict(kept)
    assert known
    with git.scratch() as scratch:
        second = list(scratch.picks(commits, fork, kept=kept))
        assert second == first
        assert kept == known
        # what git merged is there again, though the folder in which it first was is gone
        tree = second[-1].tree or ""
        assert scratch.read_file(tree, "d/a") == lines((3, "three"), (12, "twelve"), (20, "twenty")).encode()
        assert scratch.read_file(tree, "new") == ("f\n" + lines((9, "nine"))).encode()
        assert list(scratch.picks(commits, fork)) == first
    with git.scratch() as scratch:
        more = work.commit("more", {"d/a": lines((3, "three"), (12, "twelve"), (7, "seven"))})
        assert [result.kind for result in scratch.picks([*commits, more], fork, kept=kept)][-1] == "clean"
    assert len(kept) == len(known) + 1


def test_answers_hold_for_the_same_question_alone(work: Work, git: Git) -> None:
    commits, fork = moves_and_changes(work)
    kept = Kept()
    with git.scratch() as scratch:
        first = list(scratch.picks(commits, fork, kept=kept))
        known = set(kept)
        list(scratch.picks(commits, fork, kept=kept, keep_deleted={"x"}))
        assert not known & (set(kept) - known)
        assert len(kept) == 2 * len(known)
    (work.path / ".git/info").mkdir(exist_ok=True)
    (work.path / ".git/info/attributes").write_text("d/b merge=union\n")
    with git.scratch() as scratch:
        assert [result.kind for result in scratch.picks(commits, fork, kept=kept)] == ["clean"] * 4
    (work.path / ".git/info/attributes").unlink()
    with git.scratch() as scratch:
        kept.update(dict.fromkeys(known, b"broken"))
        assert list(scratch.picks(commits, fork, kept=kept)) == first


@pytest.mark.parametrize(
    ("upstream", "fork"),
    [
        ({"dir/new": "n\n"}, {"dir": None}),
        ({"file/new": "n\n"}, {"file": "f\n"}),
        ({"file": "f\n"}, {"file/new": "n\n"}),
        ({"same": "u\n"}, {"same": "f\n"}),
        ({"other/deep/new": "n\n"}, {}),
    ],
)
def test_new_files_where_the_fork_has_none_or_others(
    work: Work, git: Git, upstream: dict[str, str | bytes | None], fork: dict[str, str | bytes | None]
) -> None:
    files: dict[str, str | bytes | None] = {f"dir/{n}": f"{n}\n{lines()}" for n in range(4)}
    base = work.commit("base", {**files, "a": "a\n"})
    commit = work.commit("new", upstream)
    work.git("checkout", "-q", "-B", "fork", base)
    if "dir" in fork:
        work.git("mv", "dir", "moved")
        tip = work.commit("moved", {})
    else:
        tip = work.commit("fork", fork or {"a": "b\n"})
    (result,) = git.picks([commit], tip)
    assert result.tree == git.pick(commit, tip).tree


edits = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "d/c"]), st.integers(0, 9), st.sampled_from(["edit", "delete", "add", "rename"])
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(upstream=edits, fork=edits)
def test_any_pick_equals_cherry_pick(
    tmp_path_factory: pytest.TempPathFactory, upstream: list[tuple[str, int, str]], fork: list[tuple[str, int, str]]
) -> None:
    work = Work(tmp_path_factory.mktemp("any") / "work")
    base = work.commit("base", {name: f"{name}\n{lines()}" for name in ("a", "b", "d/c")})

    def play(steps: list[tuple[str, int, str]], who: str) -> list[str]:
        made = []
        for number, (name, line, action) in enumerate(steps):
            file = work.path / name
            if action == "edit" and file.exists():
                text = file.read_text().split("\n")
                text[line * 3] = f"{who} {number}"
                made.append(work.commit(f"{who} edits", {name: "\n".join(text)}))
            elif action == "rename" and file.exists():
                work.git("mv", name, f"{name}-{line % 2}-renamed", ok=False)
                made.append(work.commit(f"{who} renames", {}))
            elif action == "delete" and file.exists():
                made.append(work.commit(f"{who} deletes", {name: None}))
            else:
                made.append(work.commit(f"{who} adds", {f"new-{line}": f"{line}\n"}))
        return made

    commits = play(upstream, "upstream")
    work.git("checkout", "-q", "-B", "fork", base)
    tip = play(fork, "fork")[-1]
    kept = Kept()
    with Git(work.path / ".git") as git:
        fork_tip, results = tip, list(git.picks(commits, tip, kept=kept))
        for result in results:
            expected = work.cherry_pick(result.commit, tip)
            assert result.tree == expected
            if expected is not None:
                tip = work.git("commit-tree", "-p", tip, "-m", "tip", expected)
        assert list(git.picks(commits, fork_tip, kept=kept)) == results
    assert subprocess.run(["git", "status"], cwd=work.path, capture_output=True, check=False).returncode == 0
