"""Conflicts: which rule holds for which hunk, what is written, and what is left to a person."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.conflict import (
    FileConflict,
    FileResolution,
    HunkClass,
    HunkVerdict,
    MarkersBroken,
    Place,
    Sides,
    judge,
    read_marked,
    resolve,
    resolve_file,
)
from bot.core.conflict.merge import merge
from bot.core.conflict.tokens import Style, values

PY = Place("a.py", 0, (), ())
CPP = Place("a.cpp", 0, (), ())
CMAKE = Place("CMakeLists.txt", 1, (), ())


def hunk(ours: str, base: str, theirs: str) -> Sides:
    return Sides(ours.encode(), base.encode(), theirs.encode(), 1)


def judged(place: Place, ours: str, base: str, theirs: str) -> HunkVerdict:
    return judge(hunk(ours, base, theirs), place)


def marked(sides: Sides, before: bytes = b"a\n", after: bytes = b"z\n") -> bytes:
    return (
        before + b"<<<<<<< fork\n" + sides.ours + b"||||||| parent of 1\n" + sides.base
        + b"=======\n" + sides.theirs + b">>>>>>> upstream 1\n" + after
    )  # fmt: skip


def conflict(path: str, sides: Sides, **more: object) -> FileConflict:
    base, ours, theirs = (b"a\n" + side + b"z\n" for side in (sides.base, sides.ours, sides.theirs))
    return FileConflict(path, "contents", base, ours, theirs, marked(sides), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("place", "ours", "base", "theirs", "rule", "text"),
    [
        (PY, 'f(\n    "a",\n    b,\n)\n', "f('a', b)\n", "f('a', b, c)\n", "layout-fork", "f('a', b, c)\n"),
        (CPP, "f(a,\n  b);\n", "f(a, b);\n", "f(a, b, c);\n", "layout-fork", "f(a, b, c);\n"),
        (CPP, "// one two\n// three\n", "// one\n// two three\n", "// four\n", "layout-fork", "// four\n"),
        (CPP, "f(a, b, c);\n", "f(a, b);\n", "f(a,\n  b);\n", "layout-upstream", "f(a, b, c);\n"),
        (PY, 'x = ["a", "b"]\n', "x = ['a']\n", "x = ['a', 'b']\n", "same-change", 'x = ["a", "b"]\n'),
        (PY, "tlx()\ng(a, b)\n", "if c:\n    g(a)\n", "g(a, b)\n", "already-there", "tlx()\ng(a, b)\n"),
        (PY, "a()\nb()\n", "a()\n", "a()\nb()\nc()\n", "taken-upstream", "a()\nb()\nc()\n"),
        (CPP, '#include "tlx.h"\n', "", '#include "a.h"\n', "includes", '#include "a.h"\n#include "tlx.h"\n'),
        (
            PY,
            "import b\nimport tlx\n",
            "import b\n",
            "import a\nimport b\n",
            "includes",
            "import a\nimport b\nimport tlx\n",
        ),
        (CMAKE, "  B.cpp\n", "", "  A.cpp\n", "entries", "  B.cpp\n  A.cpp\n"),
        (
            Place("CMakeLists.txt", 1, (b"  A.cpp\n",), (b"  Z.cpp\n",)),
            *("  C.cpp\n", "", "  B.cpp\n", "entries", "  B.cpp\n  C.cpp\n"),
        ),
        (
            # sorted as far as these lines say, whatever comes further below
            Place("CMakeLists.txt", 1, (b"  A.cpp\n", b"  B.cpp\n"), (b"  Z.cpp\n", b"  Y.cpp\n")),
            *("  F.cpp\n", "", "  C.cpp\n", "entries", "  C.cpp\n  F.cpp\n"),
        ),
        (Place("a.py", 1, (), ()), '  "x",\n', "", '  "y"\n', "entries", '  "x",\n  "y"\n'),
        (CPP, "  registerA(r);\n", "", "  registerB(r);\n", "registrations", "  registerA(r);\n  registerB(r);\n"),
        (CPP, "void f() {}\n", "", "int g() {}\n", "definitions", "void f() {}\nint g() {}\n"),
        (CMAKE, 'set(V "1.4")\n', 'set(V "1.2")\n', 'set(V "1.10")\n', "newer-version", 'set(V "1.10")\n'),
        (
            Place("a.mlir", 0, (), ()),
            *(
                "// -----\nmodule {}\n",
                "",
                "// -----\nfoo.bar {x}\n",
                "sections",
                "// -----\nmodule {}\n// -----\nfoo.bar {x}\n",
            ),
        ),
    ],
)
def test_mechanical_rules(place: Place, ours: str, base: str, theirs: str, rule: str, text: str) -> None:
    verdict = judged(place, ours, base, theirs)
    assert (verdict.rule, verdict.cls) == (rule, HunkClass.MECHANICAL)
    assert verdict.resolution == text.encode()
    assert verdict.evidence


@pytest.mark.parametrize(
    ("place", "ours", "base", "theirs", "cls", "rule"),
    [
        (CPP, "f(a, 2);\n", "f(a);\n", "f(a, 3);\n", HunkClass.SEMANTIC, "both-change"),
        (CPP, "old(x, fork);\n", "old(x);\n", "renamed(x);\n", HunkClass.API, "names-gone"),
        (CPP, "", "f(a);\n", "f(b);\n", HunkClass.SEMANTIC, "removed-and-changed"),
        (CPP, "x = 1;\n", "", "y();\n", HunkClass.UNKNOWN, "added-both"),
        (CPP, "int f() { a(); }\n", "", "int f() { a(); b(); }\n", HunkClass.UNKNOWN, "added-both"),
        # commented out is a change, not layout
        (CPP, "  // g(b);\n", "  g(b);\n", "  g(c);\n", HunkClass.SEMANTIC, "both-change"),
        # indentation is syntax in Python
        (
            PY,
            "if a:\n    b()\nc()\n",
            "if a:\n    b()\n    c()\n",
            "if d:\n    b()\n    c()\n",
            HunkClass.API,
            "names-gone",
        ),
        # a tuple of one keeps its comma
        (PY, "x = (1,)\n", "x = (1)\n", "x = (2)\n", HunkClass.SEMANTIC, "both-change"),
        # two forms of one include
        (CPP, '#include "GetEnv.h"\n', "", '#include "GetEnv.hpp"\n', HunkClass.UNKNOWN, "added-both"),
        # one side takes an entry out
        (CMAKE, "  A.cpp\n  B.cpp\n", "  A.cpp\n", "  C.cpp\n", HunkClass.API, "names-gone"),
        (CMAKE, 'set(V "1.4")\n', 'set(V "1.2")\n', 'set(V "1.1")\n', HunkClass.SEMANTIC, "both-change"),
    ],
)
def test_what_is_left_to_people(place: Place, ours: str, base: str, theirs: str, cls: HunkClass, rule: str) -> None:
    verdict = judged(place, ours, base, theirs)
    assert (verdict.cls, verdict.rule, verdict.resolution) == (cls, rule, None)
    assert verdict.evidence


def test_the_fork_took_a_later_commit_first() -> None:
    sides = hunk("  int x = compute(4);\n", "  int x = 1;\n", "  int x = compute(3);\n")
    assert not resolve_file(conflict("a.cpp", sides), pins={}).resolved
    later = b"a\n  int x = compute(4);\nz\nmore\n"
    found = resolve_file(conflict("a.cpp", sides, later=later), pins={})
    assert (found.hunks[0].rule, found.text) == ("ahead", b"a\n  int x = compute(4);\nz\n")
    both = later + b"a\n  int x = compute(3);\nz\n"
    assert not resolve_file(conflict("a.cpp", sides, later=both), pins={}).resolved


def test_c14_a_ci_file_that_the_fork_deleted_stays_deleted() -> None:
    file = FileConflict(".github/workflows/amd.yml", "modify/delete", b"a", None, b"b")
    (found,) = resolve([file])
    assert (found.resolved, found.deleted, found.text, found.cls) == (True, True, None, HunkClass.MECHANICAL)
    assert found.review
    other = resolve_file(FileConflict("lib/a.cpp", "modify/delete", b"a", None, b"b"), pins={})
    assert (other.resolved, other.cls) == (False, HunkClass.SEMANTIC)
    gone = resolve_file(FileConflict("lib/a.cpp", "modify/delete", b"a", b"b", None), pins={})
    assert (gone.resolved, gone.hunks[0].rule, gone.text) == (False, "deleted-upstream", b"b")


def test_a_moved_file_takes_upstreams_change() -> None:
    base, ours = b"a\nb\nc\nd\n", b"a\nb\nc\nd\nfork\n"
    file = FileConflict("old/x.cpp", "modify/delete", base, None, b"A\nb\nc\nd\n", moved=("new/x.cpp", ours))
    found = resolve_file(file, pins={})
    assert (found.path, found.resolved, found.text) == ("new/x.cpp", True, b"A\nb\nc\nd\nfork\n")
    clash = FileConflict("old/x.cpp", "modify/delete", base, None, b"A\n", moved=("new/x.cpp", b"B\n"))
    assert not resolve_file(clash, pins={}).resolved


def test_a_pin_stands_by_the_forks_rule() -> None:
    file = FileConflict("cmake/llvm-hash.txt", "contents", b"1", b"2", b"3")
    assert resolve_file(file, pins={"cmake/llvm-*": "fork"}).text == b"2"
    assert resolve_file(file, pins={"cmake/llvm-*": "upstream"}).text == b"3"
    assert resolve_file(file, pins={"cmake/**": "fork", "cmake/llvm-*": "upstream"}).text == b"3"
    assert not resolve_file(file, pins={"other/**": "fork"}).resolved
    deleted = FileConflict("cmake/llvm-hash.txt", "modify/delete", b"1", b"2", None)
    assert not resolve_file(deleted, pins={"cmake/llvm-*": "upstream"}).resolved


def test_a_pin_chooses_the_hunks_in_conflict_and_keeps_what_merged() -> None:
    file = conflict("setup.cfg", hunk("llvm = fork1\n", "llvm = 1\n", "llvm = 2\n"))
    for side, text in (("fork", b"llvm = fork1\n"), ("upstream", b"llvm = 2\n")):
        found = resolve_file(file, pins={"setup.cfg": side})  # type: ignore[dict-item]
        assert (found.resolved, found.review, found.text) == (True, True, b"a\n" + text + b"z\n")
        assert [(h.rule, h.line) for h in found.hunks] == [("pin", 2)]


def test_what_a_rule_resolved_is_filled_in_and_the_rest_stays_marked() -> None:
    one, two = hunk("f(a,\n  b);\n", "f(a, b);\n", "f(c);\n"), hunk("x = 1;\n", "x = 0;\n", "x = 2;\n")
    text = marked(one) + marked(two)
    found = resolve_file(FileConflict("a.cpp", "contents", b"", b"", b"", text), pins={})
    assert not found.resolved
    assert found.review
    assert found.cls is HunkClass.SEMANTIC
    left = read_marked(found.text or b"")
    assert [h.theirs for h in left.hunks] == [b"x = 2;\n"]
    assert b"f(c);\n" in left.merged[0]
    assert [h.line for h in found.hunks] == [2, 12]


def test_a_result_that_no_longer_parses_is_refused() -> None:
    sides = hunk("    def f(self):\n        return 1\n", "", "  def g(self):\n    yield 2\n")
    before = b"class A:\n"
    file = FileConflict(
        "a.py", "contents", before, before + sides.ours, before + sides.theirs, marked(sides, before, b"")
    )
    found = resolve_file(file, pins={})
    assert (found.resolved, found.hunks[0].rule) == (False, "unparsable")


@pytest.mark.parametrize(
    "text", [b"<<<<<<< a\nx\n", b"<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n", b"<<<<<<< a\n||||||| b\n>>>>>>> c\n"]
)
def test_markers_that_do_not_pair_are_refused(text: bytes) -> None:
    with pytest.raises(MarkersBroken, match="line 1"):
        read_marked(text)
    found = resolve_file(FileConflict("a.cpp", "contents", b"", b"", b"", text), pins={})
    assert (found.resolved, found.cls, found.text) == (False, HunkClass.UNKNOWN, text)


def test_binary_and_textless_conflicts_are_unknown() -> None:
    for text in (None, b"\0<<<<<<< a\n", b"no hunk\n"):
        found = resolve_file(FileConflict("a.bin", "binary", b"1", b"2", b"3", text), pins={})
        assert (found.resolved, found.cls) == (False, HunkClass.UNKNOWN)


@pytest.mark.parametrize(
    ("style", "one", "two", "equal"),
    [
        (Style.PYTHON, "f(a, b)", "f(\n    a,\n    b,\n)", True),
        (Style.PYTHON, "x = 'a'", 'x = "a"', True),
        (Style.PYTHON, "x = 'a\"b'", 'x = "a\'b"', False),
        (Style.PYTHON, "a()\nb()", "a()\n\n\nb()", True),
        (Style.PYTHON, "(1,)", "(1)", False),
        (Style.PYTHON, "f[(1, )]", "f[(1,)]", True),
        (Style.PYTHON, "if -(2**31) <= x < 2**31:", "if -2**31 <= x < 2**31:", True),
        (Style.PYTHON, "f(2**3)", "f 2**3", False),
        (Style.PYTHON, "(2**3)**2", "2**3**2", False),
        (Style.PYTHON, "2**(3**2)", "2**3**2", False),
        (Style.PYTHON, "if a or\\\n  b:", "if a or b:", True),
        (Style.PYTHON, "#[\n#  1,\n#]\nx", "# [\n#    1,\n# ]\nx", True),
        (Style.SLASHES, "int  a;", "int a ;", True),
        (Style.SLASHES, "a; // b", "a; b", False),
        (Style.SLASHES, 'x("a b")', 'x("ab")', False),
        (Style.HASH, "set(A\n  b)", "set(A b)", True),
        (Style.HASH, "# set(A b)", "set(A b)", False),
        (Style.PLAIN, "a b", "a\nb", False),
    ],
)
def test_layout(style: Style, one: str, two: str, equal: bool) -> None:
    assert (values(one.encode(), style) == values(two.encode(), style)) is equal


_items = st.lists(st.sampled_from("abcdef"), max_size=8)


@given(_items, _items)
def test_a_merge_with_an_unchanged_side_is_the_other(base: list[str], other: list[str]) -> None:
    assert merge(base, base, other) == other
    assert merge(base, other, base) == other
    assert merge(base, other, other) == other


@given(_items, _items, _items)
def test_a_merge_does_not_depend_on_who_is_who(base: list[str], ours: list[str], theirs: list[str]) -> None:
    assert merge(base, ours, theirs) == merge(base, theirs, ours)


_line = st.sampled_from(
    ["a = f(1)\n", "b(\n  2)\n", "#include <x>\n", "import y\n", "}\n", "\n", '"s",\n', "// c\n", "int g() {}\n"]
)
_text = st.lists(_line, max_size=5).map("".join)


@settings(max_examples=100, deadline=None)
@given(_text, _text, _text, st.sampled_from(["a.py", "a.cpp", "a.txt", "a.mlir", "CMakeLists.txt", "a.td"]))
def test_any_hunk_gets_a_verdict_that_holds_both_or_one(ours: str, base: str, theirs: str, path: str) -> None:
    """Each verdict has its evidence; a mechanical one invents no line; a file is whole or says that it is not."""
    found: FileResolution = resolve_file(conflict(path, hunk(ours, base, theirs)), pins={})
    (verdict,) = found.hunks
    assert verdict.evidence
    assert found.resolved is (verdict.resolution is not None)
    if verdict.resolution is not None:
        known = {line.strip().rstrip(b",") for side in (ours, base, theirs) for line in side.encode().splitlines()}
        assert {line.strip().rstrip(b",") for line in verdict.resolution.splitlines()} <= known
        assert found.text == b"a\n" + verdict.resolution + b"z\n"
    else:
        assert found.text == marked(hunk(ours, base, theirs))
