from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bot.clients.git import FetchError, Git, GitError, ObjectMissing, PushRejected
from bot.clients.git.errors import fetch_error, push_error
from bot.clients.git.process import credentials

ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "1700000000 +0200",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_COMMITTER_DATE": "1700000000 +0200",
}


class Work:
    """A work tree to make history in, and git itself as the reference."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str, ok: bool = True) -> str:
        done = subprocess.run(["git", *words], cwd=self.path, env=ENV, capture_output=True, text=True, check=False)
        assert not ok or done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, message: str, files: dict[str, str | bytes | None]) -> str:
        for name, content in files.items():
            file = self.path / name
            if content is None:
                file.unlink()
                continue
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def cherry_pick(self, commit: str, onto: str, *options: str) -> str | None:
        """The tree that `git cherry-pick` makes, None where it conflicts."""
        self.git("checkout", "-q", "--detach", onto)
        self.git("cherry-pick", "--allow-empty", "--keep-redundant-commits", *options, commit, ok=False)
        clean = not self.git("status", "--porcelain")
        tree = self.git("rev-parse", "HEAD^{tree}") if clean else None
        self.git("cherry-pick", "--quit", ok=False)
        self.git("reset", "-q", "--hard")
        self.git("clean", "-qfd")
        return tree


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "work")


@pytest.fixture
def git(work: Work) -> Git:
    return Git(work.path / ".git")


def lines(*changed: tuple[int, str]) -> str:
    text = [f"line {number}" for number in range(30)]
    for number, value in changed:
        text[number] = value
    return "\n".join(text) + "\n"


def test_commits_are_read_oldest_first_with_message_and_author(work: Work, git: Git) -> None:
    first = work.commit("one\n\nbody\n\nwith (cherry picked from commit abc)", {"a": "1"})
    work.git("checkout", "-q", "-b", "side")
    side = work.commit("side", {"b": "2"})
    work.git("checkout", "-q", "main")
    third = work.commit("dreißig", {"c": "3"})
    work.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    merge = work.git("rev-parse", "HEAD")
    commits = git.commits("main")
    assert [commit.sha for commit in commits] == [first, third, merge]
    assert commits[0].message == "one\n\nbody\n\nwith (cherry picked from commit abc)"
    assert commits[1].subject == "dreißig"
    assert (commits[0].author_time, commits[0].author_tz) == (1700000000, "+0200")
    assert commits[2].parents == (third, side)
    assert {commit.sha for commit in git.commits("main", first_parent=False)} == {first, side, third, merge}
    assert git.commits("main", [third]) == [commits[2]]
    assert git.commits("main", before=1) == []
    assert [commit.sha for commit in git.commits_of([merge, first])] == [merge, first]
    assert git.merge_base("side", third) == first
    assert git.is_ancestor(first, "main")
    assert not git.is_ancestor("main", first)
    assert git.resolve("no-such-branch") is None
    with pytest.raises(GitError):
        git.commit("0" * 40)


def test_a_message_in_another_encoding_is_read(work: Work, git: Git) -> None:
    work.commit("first", {"a": "1"})
    work.git("-c", "i18n.commitEncoding=ISO-8859-1", "commit", "-q", "--allow-empty", "-m", "plain")
    assert [commit.subject for commit in git.commits("main")] == ["first", "plain"]


def test_files_are_read_by_commit_and_by_tree(work: Work, git: Git) -> None:
    first = work.commit("one", {"dir/a b": "1\n", "c": b"\0\xff", "dir/ü": ""})
    assert git.read_file(first, "dir/a b") == b"1\n"
    assert git.read_file(first, "c") == b"\0\xff"
    assert git.read_file(first, "dir/ü") == b""
    assert git.read_file(first, "nothing") is None
    assert git.read_file(first, "dir") is None
    entries = git.list_tree(first)
    assert [entry.path for entry in entries] == ["c", "dir/a b", "dir/ü"]
    assert git.read_blob(entries[1].oid) == b"1\n"
    assert [entry.path for entry in git.list_tree(first, "dir")] == ["dir/a b", "dir/ü"]
    with pytest.raises(ObjectMissing):
        git.read_blob("1" * 40)


def test_renames_modes_and_types_are_followed(work: Work, git: Git) -> None:
    first = work.commit("one", {"old": lines(), "mode": "x\n", "gone": "g\n"})
    (work.path / "mode").chmod(0o755)
    (work.path / "old").rename(work.path / "new")
    second = work.commit("two", {"gone": None, "here": "h\n"})
    changes = {change.path: change for change in git.changed_files(first, second)}
    assert {path: change.status for path, change in changes.items()} == {
        "new": "R",
        "mode": "M",
        "gone": "D",
        "here": "A",
    }
    assert changes["new"].old_path == "old"
    assert changes["new"].paths == ("old", "new")
    assert (changes["mode"].old_mode, changes["mode"].new_mode) == ("100644", "100755")
    third = work.commit("empty", {})
    commits = git.commits("main")
    batch = git.changes_of(commits)
    assert batch[second] == git.changed_files(first, second)
    assert batch[third] == []
    assert {change.status for change in batch[first]} == {"A"}


def test_many_objects_in_one_go(work: Work, git: Git) -> None:
    head = work.commit("many", {f"f{number}": f"{number}\n" * 200 for number in range(1500)})
    oids = [entry.oid for entry in git.list_tree(head)]
    assert len(git.read_blobs(oids)) == 1500


def test_a_commit_is_written_as_git_would(work: Work, git: Git) -> None:
    head = work.commit("one", {"a": "1"})
    sha = git.write_commit(
        tree=git.tree_of(head),
        parents=[head],
        message="subject\n\nUpstream-PR: a/b#1\n",
        author_name="Ü",
        author_email="u@x",
        author_date="17 +0530",
        committer_name="Graft",
        committer_email="g@x",
        committer_date="1700000100 +0000",
    )
    commit = git.commit(sha)
    assert (commit.author_name, commit.author_time, commit.author_tz) == ("Ü", 17, "+0530")
    assert (commit.parents, commit.committer_time, commit.subject) == ((head,), 1700000100, "subject")
    work.git("fsck", "--strict")


def test_trees_are_edited_by_path(work: Work, git: Git) -> None:
    head = work.commit("one", {"a/b/c": "1", "a/d": "2", "a.b": "3", "e": "4"})
    blob = git.write_blob(b"new\n")
    tree = git.write_tree(
        head, {"a/b/c": None, "a/d": ("100755", blob), "x/y/z": ("100644", blob), "e": None, "none": None}
    )
    assert {entry.path: entry.mode for entry in git.list_tree(tree)} == {
        "a.b": "100644",
        "a/d": "100755",
        "x/y/z": "100644",
    }
    work.git("fsck", "--strict")
    assert git.list_tree(git.write_tree(head, dict.fromkeys(["a/b/c", "a/d", "a.b", "e"]))) == []


def test_scratch_leaves_nothing_behind(work: Work, git: Git) -> None:
    head = work.commit("one", {"a": "1"})
    with git.scratch() as scratch:
        oid = scratch.write_blob(b"gone\n")
        assert scratch.read_blob(oid) == b"gone\n"
        assert scratch.commit(head).subject == "one"
    with pytest.raises(ObjectMissing):
        git.read_blob(oid)


def test_fetch_push_and_lease(work: Work, tmp_path: Path) -> None:
    first = work.commit("one", {"a": "1"})
    mirror = Git.open_mirror(tmp_path / "mirror.git")
    assert Git.open_mirror(tmp_path / "mirror.git").refs() == {}
    url = str(work.path)
    mirror.fetch(url, ["+refs/heads/*:refs/heads/*"])
    assert mirror.resolve("main") == first
    assert mirror.remote_refs(url)["HEAD"] == "refs/heads/main"
    bare = Git.open_mirror(tmp_path / "other.git")
    target = str(bare.path)
    mirror.push(target, first, "graft/bundle/x", expected=None)
    assert bare.refs() == {"refs/heads/graft/bundle/x": first}
    second = work.commit("two", {"a": "2"})
    mirror.fetch(url, ["+refs/heads/main:refs/heads/main"])
    with pytest.raises(PushRejected) as refused:
        mirror.push(target, second, "graft/bundle/x", expected=None)
    assert refused.value.kind == "stale_lease"
    mirror.push(target, second, "graft/bundle/x", expected=first)
    with pytest.raises(PushRejected) as refused:
        mirror.push(target, first, "graft/bundle/x", expected=first)
    assert refused.value.kind == "stale_lease"
    mirror.push(target, "", "graft/bundle/x", expected=second)
    assert bare.refs() == {}


def test_packs_and_loose_objects_do_not_pile_up(work: Work, tmp_path: Path) -> None:
    mirror = Git.open_mirror(tmp_path / "mirror.git")
    heads = []
    for number in range(6):
        heads.append(work.commit(f"{number}", {f"{n}/{number}": f"{n} {number}\n" for n in range(60)}))
        mirror.fetch(str(work.path), ["+refs/heads/*:refs/heads/*"])
    lost = mirror.write_commit(
        tree=mirror.tree_of("main"), parents=[heads[-1]], message="of no branch", author_name="a", author_email="a@b",
        author_date="0 +0000", committer_name="a", committer_email="a@b", committer_date="0 +0000",
    )  # fmt: skip
    objects = mirror.path / "objects"
    assert len(list(objects.glob("pack/*.pack"))) > 2
    with mirror:
        assert mirror.tree_of(heads[0])
        mirror.maintain()
        assert len(list(objects.glob("pack/*.pack"))) <= 2
        assert not list(objects.glob("[0-9a-f][0-9a-f]/*"))
        assert [mirror.commit(sha).subject for sha in heads] == [f"{n}" for n in range(6)]
        assert mirror.read_file(heads[0], "0/0") == b"0 0\n"
        assert mirror.commit(lost).subject == "of no branch"
    mirror.maintain()
    assert len(list(objects.glob("pack/*.pack"))) <= 2


def test_c23_upstream_that_moved_or_is_gone_is_told_apart(work: Work, tmp_path: Path) -> None:
    work.commit("one", {"a": "1"})
    mirror = Git.open_mirror(tmp_path / "mirror.git")
    spec = ["refs/heads/main:refs/remotes/upstream/main"]
    mirror.fetch(str(work.path), spec)
    work.git("commit", "-q", "--amend", "-m", "rewritten")
    with pytest.raises(FetchError) as refused:
        mirror.fetch(str(work.path), spec)
    assert refused.value.kind == "moved"
    work.git("branch", "-m", "main", "trunk")
    with pytest.raises(FetchError) as refused:
        mirror.fetch(str(work.path), spec)
    assert refused.value.kind == "missing"
    with pytest.raises(FetchError) as refused:
        mirror.fetch(str(tmp_path / "nowhere"), spec)
    assert refused.value.kind == "missing"
    with pytest.raises(FetchError) as refused:
        mirror.fetch("http://127.0.0.1:9/a/b.git", spec, token="secret")
    assert refused.value.kind == "network"
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("fatal: unable to access 'https://x/': The requested URL returned error: 403", "auth"),
        ("fatal: could not read Username for 'https://github.com': terminal prompts disabled", "auth"),
        ("remote: Repository not found.", "missing"),
        ("fatal: couldn't find remote ref refs/heads/main", "missing"),
        (" ! [rejected] main -> main (non-fast-forward)", "moved"),
        ("fatal: unable to access: Could not resolve host: github.com", "network"),
    ],
)
def test_fetch_failures_are_sorted(said: str, kind: str) -> None:
    assert fetch_error(["fetch"], said, 128).kind == kind


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (
            "! [remote rejected] x -> x (refusing to allow a GitHub App to create or update workflow"
            " `.github/workflows/ci.yml` without `workflows` permission)",
            "workflow_permission",
        ),
        ("! [rejected] x -> x (stale info)", "stale_lease"),
        ("remote: error: GH006: Protected branch update failed for refs/heads/main.", "protected"),
        ("remote: Permission to a/b.git denied to graft[bot].", "auth"),
        ("the disk is full", "other"),
    ],
)
def test_c15_push_refusals_are_sorted(said: str, kind: str) -> None:
    assert push_error(["push"], said, 1).kind == kind


def test_the_token_is_for_one_server_and_on_no_line() -> None:
    options, env = credentials("https://github.com/a/b.git", "secret")
    assert "secret" not in " ".join(options)
    assert any(word.startswith("credential.https://github.com.helper=") for word in options)
    assert env == {"GRAFT_GIT_TOKEN": "secret"}
    assert credentials("https://github.com/a/b.git", None) == ([], {})


def test_the_users_configuration_and_hooks_are_not_seen(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[core]\n\tbare = nonsense\n[broken")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    head = work.commit("one", {"a": "1"})
    hook = work.path / ".git/hooks/pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    target = Git.open_mirror(tmp_path / "target.git")
    Git(work.path / ".git").push(str(target.path), head, "main", expected=None)
    assert target.resolve("main") == head


def test_a_name_that_looks_like_an_option_is_none(git: Git, work: Work) -> None:
    work.commit("one", {"a": "1"})
    assert git.resolve("--help") is None
    with pytest.raises(GitError):
        git.fetch("--upload-pack=touch /tmp/x", ["main"])
    with pytest.raises(FetchError):
        git.fetch("ext::sh -c true", ["main"])
