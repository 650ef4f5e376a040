"""What is read from real git: the same with a cache and without, by one process and by several."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.clients.git import Git
from bot.clients.symbols import SymbolCache
from handlers import reading
from handlers.surveying import UpstreamVersions, WordIndex, footprints, survey
from tests.handlers.past import Joined

ONE = "int f(int a) {\n  return a;\n}\n"
TWO = ONE.replace("return a;", "return a + 1;")


@pytest.fixture
def joined(tmp_path: Path) -> Iterator[Joined]:
    made = Joined(tmp_path / "joined.git")
    made.commit(
        "upstream", "Begin", {"lib/a.cpp": ONE, "lib/b.py": "x = 1\n", "ci.yml": "on: push\n", "gone.txt": "a\n"}
    )
    made.fork_off()
    yield made
    made.git.close()


def begun(joined: Joined) -> tuple[Git, UpstreamVersions]:
    base = joined.git.merge_base("upstream", "fork") or ""
    return joined.git, UpstreamVersions(joined.git, base=base, commits=joined.git.commits("upstream", [base]))


def test_behind_is_not_diverged_and_own_is(joined: Joined) -> None:
    joined.commit("upstream", "Change f", {"lib/a.cpp": TWO, "gone.txt": None})
    joined.commit("fork", "Own", {"own/mine.cpp": "int mine() { return f(1); }\n", "ci.yml": None, "gone.txt": None})
    git, versions = begun(joined)
    found = survey(git, fork="fork", versions=versions)
    assert {path: file.kind for path, file in found.files.items()} == {"own/mine.cpp": "own", "ci.yml": "removed"}
    assert [use.path for use in found.uses("f")] == ["own/mine.cpp"]
    assert found.words >= {"mine", "f", "x"}
    joined.commit("fork", "Take it", {"lib/a.cpp": TWO})
    assert "lib/a.cpp" not in survey(git, fork="fork", versions=versions).files
    early = survey(git, fork="fork", versions=versions, until=0)
    assert early.files["lib/a.cpp"].changed == {"f"}


def test_with_a_cache_it_is_the_same(joined: Joined, tmp_path: Path) -> None:
    joined.commit("upstream", "Change f", {"lib/a.cpp": TWO})
    joined.commit("fork", "Own", {"lib/a.cpp": ONE + "int mine() { return f(1); }\n"})
    git, versions = begun(joined)
    commits = git.commits("upstream")
    plain = footprints(git, commits), survey(git, fork="fork", versions=versions).files
    said: list[tuple[str, int, int]] = []
    with SymbolCache(tmp_path / "kept.db") as cache:
        for _ in range(2):
            kept = (
                footprints(git, commits, cache=cache, progress=lambda *event: said.append(event)),
                survey(git, fork="fork", versions=versions, cache=cache).files,
            )
            assert kept == plain
    assert said == [("footprints", 2, 2)]


def test_several_processes_read_the_same(joined: Joined, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        joined.commit("upstream", f"Change {number}", {"lib/a.cpp": ONE.replace("return a", f"return {number}")})
        joined.commit(
            "fork", f"Own {number}", {f"own{number}.py": f"def own{number}(): pass\n", "lib/b.py": f"x = {number}\n"}
        )
    git, versions = begun(joined)
    commits = git.commits("upstream")
    alone = footprints(git, commits), survey(git, fork="fork", versions=versions).files
    monkeypatch.setattr(reading, "PORTION", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert (footprints(git, commits), survey(git, fork="fork", versions=versions).files) == alone
    monkeypatch.setattr("sys.executable", "/bin/false")
    assert (footprints(git, commits), survey(git, fork="fork", versions=versions).files) == alone


def test_words_follow_from_tree_to_tree(joined: Joined) -> None:
    index = WordIndex(joined.git)
    first = joined.commit("fork", "One", {"n.py": "alpha = beta\n"})
    second = joined.commit("fork", "Two", {"n.py": "alpha = gamma\n", "m.py": "alpha\n"})
    assert index.of(first)["beta"] == 1
    assert (index.of(second)["alpha"], "beta" in index.of(second)) == (2, False)
    assert dict(index.of(first)) == dict(WordIndex(joined.git).of(first))


def test_versions_follow_renames_and_know_what_is_gone(joined: Joined) -> None:
    joined.commit("upstream", "Move", {"lib/a.cpp": None, "lib/moved.cpp": ONE})
    _, versions = begun(joined)
    assert len(versions.of("lib/moved.cpp")) == 1
    assert versions.deleted("lib/a.cpp")
    assert not versions.deleted("lib/a.cpp", until=0)
    assert versions.of("unheard") == ()
