from __future__ import annotations

from pathlib import Path

from bot.clients.git import Git
from bot.clients.git.patches import Section
from handlers.outlining import outlines
from tests.clients.test_git import Work, lines


def test_changed_ranges_are_read_from_gits_patches(tmp_path: Path) -> None:
    work = Work(tmp_path / "work")
    work.commit("base", {"a": lines(), "b": lines(), "bin": b"\0\1", "strange\tname": "1\n"})
    work.git("mv", "b", "c")
    second = work.commit(
        "change",
        {
            "a": lines((3, "@@ -1,1 +1,1 @@"), (9, "diff --git a/a b/a")).replace("line 20\n", ""),
            "bin": b"\0\2",
            "new": "1\n2\n",
            "strange\tname": "2\n",
        },
    )
    third = work.commit("grow", {"a": lines((3, "x\ny\nz")), "new": None})
    empty = work.commit("nothing", {})
    with Git(work.path / ".git") as git:
        commits = git.commits("main")
        found = git.patches_of(commits)
        drawn = outlines(git, commits)
    assert found[second] == [
        Section(False, ((4, 1, 4, 1), (10, 1, 10, 1), (21, 1, 21, 0))),
        Section(True, ()),
        Section(False, ()),
        Section(False, ((1, 0, 1, 2),)),
        Section(False, ((1, 1, 1, 1),)),
    ]
    assert found[empty] == []
    files = {file.path: file for file in drawn[second].files}
    assert set(files) == {"a", "bin", "c", "new", "strange\tname"}
    assert files["bin"].binary
    assert files["c"].old_path == "b"
    assert [hunk.old_lines for hunk in files["a"].hunks] == [1, 1, 1]
    assert {file.path: file.status for file in drawn[third].files} == {"a": "M", "new": "D"}


def test_a_file_that_becomes_a_link_is_one_whole(tmp_path: Path) -> None:
    work = Work(tmp_path / "work")
    work.commit("base", {"a": lines(), "b": lines()})
    (work.path / "a").unlink()
    (work.path / "a").symlink_to("b")
    second = work.commit("link", {"b": lines((3, "x"))})
    with Git(work.path / ".git") as git:
        drawn = outlines(git, git.commits("main"))[second]
    assert [(file.path, file.binary, len(file.hunks)) for file in drawn.files] == [("a", True, 0), ("b", False, 1)]
