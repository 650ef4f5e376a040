"""A conflicting commit as a branch: the pick with its markers, then what the rules propose, as a commit of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.core.batches import Batch
from bot.core.config import Config
from bot.core.types import BatchKind
from handlers.building import Built, Committer, build
from handlers.moves import read_layout
from tests.handlers.past import Joined


def body(*changed: tuple[int, str]) -> str:
    """Forty lines of code, some of them changed."""
    text = [f"def f{n}(): return {n}" for n in range(40)]
    for number, new in changed:
        text[number] = new
    return "\n".join(text) + "\n"


@pytest.fixture
def joined(tmp_path: Path) -> Iterator[Joined]:
    past = Joined(tmp_path / "pair.git")
    past.commit("upstream", "Start", {"lib/x.py": body(), "pin.txt": "llvm = 1\n", "other.txt": "o\n"})
    past.fork_off()
    yield past
    past.git.close()


def built(past: Joined, sha: str, **ingest: object) -> Built:
    """The branch of one conflicting commit on the fork's tip."""
    config = Config.of({"upstream": {"repository": "up/pkg"}, "ingest": ingest})
    base, tip = (past.git.resolve(name) or "" for name in ("fork", "upstream"))
    return build(
        past.git,
        batch=Batch("k", BatchKind.CONFLICT, (sha,), "graft/chain/k/1", chain=(sha,)),
        base=base,
        upstream_tip=tip,
        config=config,
        committer=Committer.of("graft[bot]"),
        layout=read_layout(past.git, upstream=tip, base=base),
    )


def read(past: Joined, at: str, path: str) -> str | None:
    raw = past.git.read_file(at, path)
    return raw.decode() if raw is not None else None


def test_a_file_that_the_fork_moved_and_rewrote_takes_upstreams_change_there(joined: Joined) -> None:
    joined.commit("fork", "Move it", {"lib/x.py": None, "ours/x.py": body()})
    mine = [(n, f"class Ours{n}: '''of our own making, line {n}'''") for n in range(2, 30)]
    joined.commit("fork", "Make it ours", {"ours/x.py": body(*mine)})
    sha = joined.commit("upstream", "Fix the last", {"lib/x.py": body((38, "def f38(): return 'fixed'"))})
    # git looks at both ends and takes it for deleted: upstream's fix must not get lost for that
    layout = read_layout(joined.git, upstream="upstream", base="fork")
    assert (layout.deleted, layout.moved) == (frozenset(), {"lib/x.py": "ours/x.py"})
    assert joined.git.pick(sha, "fork").kind == "conflict"
    found = built(joined, sha)
    assert found.picked == (sha,)
    assert read(joined, found.head, "lib/x.py") is None
    assert read(joined, found.head, "ours/x.py") == body(*mine, (38, "def f38(): return 'fixed'"))
    (note,) = found.conflicts
    assert "by the rules moved" in note.note
    # the first commit is the pick as it came, so that the proposal can be reviewed as a diff
    (pick,) = joined.git.commit(found.head).parents
    assert read(joined, pick, "lib/x.py") == body((38, "def f38(): return 'fixed'"))


def test_a_file_deleted_for_good_is_not_taken_for_moved(joined: Joined) -> None:
    joined.commit("fork", "Move it", {"lib/x.py": None, "ours/x.py": body()})
    joined.commit("fork", "Drop it", {"ours/x.py": None})
    layout = read_layout(joined.git, upstream="upstream", base="fork")
    assert layout.deleted == {"lib/x.py", "ours/x.py"}
    assert not layout.moved


def test_moved_twice_and_moved_back(joined: Joined) -> None:
    joined.commit("fork", "Move it", {"lib/x.py": None, "a/x.py": body()})
    joined.commit("fork", "Move it on", {"a/x.py": None, "b/x.py": body()})
    assert read_layout(joined.git, upstream="upstream", base="fork").moved["lib/x.py"] == "b/x.py"
    joined.commit("fork", "Move it back", {"b/x.py": None, "lib/x.py": body()})
    layout = read_layout(joined.git, upstream="upstream", base="fork")
    assert "lib/x.py" not in {*layout.moved, *layout.deleted}


def test_both_sides_add_a_file(joined: Joined) -> None:
    joined.commit("fork", "Add", {"list.txt": "a\n", "inc.cpp": '#include "a.h"\n#include "tlx.h"\n'})
    sha = joined.commit("upstream", "Add", {"list.txt": "b\n", "inc.cpp": '#include "a.h"\n#include "b.h"\n'})
    found = built(joined, sha)
    assert read(joined, found.head, "inc.cpp") == '#include "a.h"\n#include "b.h"\n#include "tlx.h"\n'
    left = read(joined, found.head, "list.txt") or ""
    assert "<<<<<<<" in left and "|||||||" in left
    assert ["proposed" in note.note for note in found.conflicts] == [True, False]


@pytest.mark.parametrize(("side", "text"), [("fork", "llvm = 1+ours\n"), ("upstream", "llvm = 2\n")])
def test_a_pin_is_proposed_by_the_forks_rule(joined: Joined, side: str, text: str) -> None:
    joined.commit("fork", "Pin", {"pin.txt": "llvm = 1+ours\n"})
    sha = joined.commit("upstream", "Bump", {"pin.txt": "llvm = 2\n"})
    assert "<<<<<<<" in (read(joined, built(joined, sha).head, "pin.txt") or "")
    found = built(joined, sha, pins={"pin.txt": side})
    assert read(joined, found.head, "pin.txt") == text
    assert "stands by `ingest.pins`" in found.conflicts[0].note
