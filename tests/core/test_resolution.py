"""Resolutions: what can't land, what a person must confirm, and what is no finding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.resolution import Finding, FindingKind, ResolvedFile, check, markers

MARKED = b"a\n<<<<<<< fork\nx\n||||||| parent\ny\n=======\nz\n>>>>>>> upstream 1234\nb\n"


def kinds(*files: ResolvedFile) -> list[FindingKind]:
    return [finding.kind for finding in check(files)]


def one(kind: FindingKind, *files: ResolvedFile) -> Finding:
    (found,) = [finding for finding in check(files) if finding.kind is kind]
    return found


@pytest.mark.parametrize(
    ("path", "before", "after", "lines"),
    [
        ("a.py", b"", MARKED, (2, 4, 6, 8)),
        ("a.py", b"", MARKED.replace(b"\n", b"\r\n"), (2, 4, 6, 8)),
        ("a.py", b"", b"x\n<<<<<<<\ny\n", (2,)),
        ("a.cpp", b"", b"x\n=======\ny\n", (2,)),
        ("doc.rst", b"", b"Title\n=======\n\ntext\n", ()),
        ("doc.rst", b"", b"=======\nTitle\n=======\n\ntext\n", ()),
        ("README.md", b"", b"Graft\n=======\n", ()),
        ("README.md", b"", b"|||||||\n", ()),
        ("README.md", b"", b"Graft\n=======\n<<<<<<< fork\nx\n=======\ny\n>>>>>>> up\n", (3, 7)),
        ("test/merge.mlir", MARKED, b"// RUN: x\n" + MARKED, ()),
        ("test/merge.mlir", MARKED, MARKED + b"<<<<<<< fork\n", (10,)),
        ("a.py", b"", b"x = '''\n  <<<<<<< indented\n'''\n<<<<<<x\n", ()),
        ("a.txt", b"", b"a\n>>>>>>> quoted text\n", (2,)),
    ],
)
def test_c9_markers(path: str, before: bytes, after: bytes, lines: tuple[int, ...]) -> None:
    assert markers(path, before=before, after=after) == lines


def test_c9_upstreams_own_test_may_hold_markers() -> None:
    assert markers("t.test", before=b"", after=MARKED, theirs=MARKED) == ()
    found = one(FindingKind.MARKER, ResolvedFile("a.py", b"", b"x\n", b"y\n", MARKED))
    assert found.blocking
    assert found.line == 2
    assert found.evidence[0] == "2: <<<<<<< fork"


BASE = b"int run() {\n  prepare();\n  return 0;\n}\n"
THEIRS = b"void check(int x) {\n  verify(x);\n}\n\nint run() {\n  prepare();\n  check(1);\n  return 0;\n}\n"


def test_c10_a_kept_function_with_its_only_call_lost_is_told_by_symbol() -> None:
    after = b"void check(int x) {\n  verify(x);\n}\n\nint run() {\n  prepareFork();\n  return 0;\n}\n"
    ours = b"int run() {\n  prepareFork();\n  return 0;\n}\n"
    found = one(FindingKind.LOST, ResolvedFile("a.cpp", BASE, THEIRS, ours, after))
    assert found.confirm
    assert (found.symbol, found.line, found.evidence, found.orphaned) == ("run", 7, ("check(1);",), ("check",))


def test_c10_a_similar_call_does_not_explain_a_lost_one() -> None:
    after = THEIRS.replace(b"check(1);", b"chess(1);")
    found = check([ResolvedFile("a.cpp", BASE, THEIRS, BASE, after)])
    assert [f.kind for f in found] == [FindingKind.LOST]


def test_an_adapted_line_is_told_and_needs_no_word() -> None:
    after = THEIRS.replace(b"check(1);", b"check(1, fork);")
    found = one(FindingKind.ADAPTED, ResolvedFile("a.cpp", BASE, THEIRS, BASE, after))
    assert not found.confirm
    assert found.evidence == ("check(1); → check(1, fork);",)
    assert kinds(ResolvedFile("a.cpp", BASE, THEIRS, BASE, after)) == [FindingKind.ADAPTED]


def test_a_faithful_resolution_has_no_finding() -> None:
    ours = BASE.replace(b"return 0", b"return 1")
    after = THEIRS.replace(b"return 0", b"return 1")
    assert check([ResolvedFile("a.cpp", BASE, THEIRS, ours, after)]) == ()


def test_what_was_already_there_is_not_lost() -> None:
    assert check([ResolvedFile("a.cpp", BASE, THEIRS, THEIRS, THEIRS)]) == ()


def test_a_line_that_stands_twice_is_doubled() -> None:
    after = THEIRS.replace(b"  check(1);\n", b"  check(1);\n  check(1);\n")
    found = one(FindingKind.DOUBLED, ResolvedFile("a.cpp", BASE, THEIRS, BASE, after))
    assert (found.symbol, found.evidence) == ("run", ("check(1);",))


def test_a_removed_line_that_is_kept_is_told() -> None:
    theirs = BASE.replace(b"  prepare();\n", b"")
    found = one(FindingKind.KEPT, ResolvedFile("a.cpp", BASE, theirs, BASE, BASE))
    assert (found.symbol, found.line) == ("run", 2)


@pytest.mark.parametrize(
    ("base", "theirs", "ours", "after", "want"),
    [
        (BASE, None, BASE, BASE, [FindingKind.KEPT]),
        (BASE, None, BASE, None, []),
        (BASE, THEIRS, BASE, None, [FindingKind.LOST]),
        (BASE, THEIRS, None, None, []),
        (None, THEIRS, None, None, [FindingKind.LOST]),
    ],
)
def test_whole_files(
    base: bytes | None, theirs: bytes | None, ours: bytes | None, after: bytes | None, want: list[FindingKind]
) -> None:
    assert kinds(ResolvedFile(".github/workflows/ci.txt", base, theirs, ours, after)) == want


def test_a_symbol_of_the_forks_own_must_not_vanish_but_may_move() -> None:
    ours = BASE + b"int forkOnly() { return 2; }\n"
    lost = ResolvedFile("a.cpp", BASE, THEIRS, ours, THEIRS)
    found = one(FindingKind.FORK_SYMBOL_LOST, lost)
    assert (found.symbol, found.text) == ("forkOnly", "the fork's own function forkOnly is gone")
    moved = ResolvedFile("b.cpp", None, None, None, b"int forkOnly() { return 2; }\n")
    assert FindingKind.FORK_SYMBOL_LOST not in kinds(lost, moved)
    assert one(FindingKind.OUTSIDE, lost, moved).text.startswith("the resolution adds this file")


def test_a_file_that_the_pick_does_not_touch_is_listed() -> None:
    found = one(FindingKind.OUTSIDE, ResolvedFile("x.txt", b"a\n", b"a\n", b"a\nfork\n", b"a\nforked\n"))
    assert found.evidence == ("-fork", "+forked")
    assert check([ResolvedFile("x.txt", b"a\n", b"a\n", b"b\n", b"b\n")]) == ()


@pytest.mark.parametrize(
    ("path", "good", "bad"),
    [
        ("a.py", b"def f():\n    return 1\n", b"def f(:\n    return 1\n"),
        ("a.json", b'{"a": 1}', b'{"a": 1,}'),
        ("a.toml", b"a = 1\n", b"a = = 1\n"),
        ("a.yml", b"a: [1]\n", b"a: [1\n"),
        ("a.cpp", b"int f() { return 1; }\n", b"int f() { return (1; }\n"),
        ("a.td", b"def A : B<1>;\n", b"def A : B<1\n"),
        ("CMakeLists.txt", b"add_library(a b.cc)\n", b"add_library(a b.cc\n"),
    ],
)
def test_what_no_longer_parses_cant_land(path: str, good: bytes, bad: bytes) -> None:
    found = one(FindingKind.UNPARSABLE, ResolvedFile(path, good, good + b"\n", good, bad))
    assert found.blocking
    assert FindingKind.UNPARSABLE not in kinds(ResolvedFile(path, good, good + b"\n", good, good))
    assert FindingKind.UNPARSABLE not in kinds(ResolvedFile(path, bad, bad + b"\n", bad, bad))


_line = st.sampled_from([b"a = f(1)", b"b = g(2)", b"c", b"", b"}", b"d = h(3)", b"import x"])
_text = st.lists(_line, max_size=8).map(lambda lines: b"".join(line + b"\n" for line in lines))


@given(_text, _text)
def test_taking_upstreams_text_is_faithful(base: bytes, theirs: bytes) -> None:
    """Where the fork has changed nothing, upstream's own result is without finding."""
    assert check([ResolvedFile("a.txt", base, theirs, base, theirs)]) == ()


@given(_text, _text, _text, _text)
def test_any_texts_are_judged_without_failing(base: bytes, theirs: bytes, ours: bytes, after: bytes) -> None:
    for path in ("a.txt", "a.py", "a.cpp"):
        found = check([ResolvedFile(path, base, theirs, ours, after)])
        assert [f.blocking for f in found] == sorted((f.blocking for f in found), reverse=True)
