"""What a commit touches: hunks that rebuild the text, words, and symbols changed, renamed, moved, removed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.footprint import (
    FileFootprint,
    Footprint,
    Language,
    decode_footprint,
    encode_footprint,
    footprint,
    footprint_key,
    hunks,
    needed_blobs,
    references,
    words,
)
from bot.core.types import Commit
from tests.core.changes import Change, of

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n", b"\n"]), max_size=30).map(b"".join)


def only(value: Footprint) -> FileFootprint:
    (file,) = value.files
    return file


def said(value: Footprint) -> set[tuple[str, str]]:
    return {(s.what, s.name) for f in value.files for s in f.symbols}


@settings(deadline=None)
@given(LINES, LINES)
def test_hunks_rebuild_the_new_text_from_the_old(old: bytes, new: bytes) -> None:
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    rebuilt: list[bytes] = []
    at = 0
    for hunk in hunks(old, new):
        assert hunk.old_lines or hunk.new_lines
        rebuilt += before[at : hunk.old_start - 1]
        assert len(rebuilt) == hunk.new_start - 1
        rebuilt += after[hunk.new_start - 1 : hunk.new_start - 1 + hunk.new_lines]
        at = hunk.old_start - 1 + hunk.old_lines
    assert rebuilt + before[at:] == after


def test_hunks_of_a_large_file_stay_local() -> None:
    old = [b"line %d\n" % n for n in range(5000)]
    new = [*old[:10], b"new\n", *old[10:2500], b"else\n", *old[2501:4900], *old[4950:]]
    found = hunks(b"".join(old), b"".join(new))
    assert [(h.old_start, h.old_lines, h.new_lines) for h in found] == [(11, 0, 1), (2501, 1, 1), (4901, 50, 0)]


def test_a_large_file_without_a_common_line_is_one_hunk() -> None:
    old, new = (b"".join(b"%s %d\n" % (name, n) for n in range(700)) for name in (b"a", b"b"))
    assert [(h.old_lines, h.new_lines) for h in hunks(old, new)] == [(700, 700)]


@pytest.mark.parametrize(
    ("path", "old", "new", "expected"),
    [
        ("a.cpp", b"int f() { return 1; }\n", b"int f() { return 2; }\n", {("body", "f")}),
        ("a.cpp", b"int f() { return 1; }\n", b"int f(int a) { return 2; }\n", {("signature", "f")}),
        ("a.cpp", b"int f() { return 1; }\n", b"int g() { return 1; }\n", {("renamed", "g")}),
        ("a.cpp", b"int f() { return 1; }\n", b"int g() { return 9; }\n", {("defined", "g"), ("removed", "f")}),
        ("a.py", b"def f():\n    pass\n", b"# new\ndef f():\n    pass\n", set()),
        ("a.py", None, b"def f(): pass\nX = 1\n", {("defined", "f"), ("defined", "X")}),
        ("a.py", b"def f(): pass\n", None, {("removed", "f")}),
        (
            "a.td",
            b'def TT_LoadOp : Op<"load"> {\n  let arguments = (ins A:$ptr);\n}\n',
            b'def TT_LoadOp : Op<"load"> {\n  let arguments = (ins A:$ptr, B:$mask);\n}\n',
            {("body", "TT_LoadOp"), ("defined", "TT_LoadOp.mask")},
        ),
        ("notes.txt", b"a\n", b"b\n", set()),
    ],
)
def test_symbols_of_a_change(path: str, old: bytes | None, new: bytes | None, expected: set[tuple[str, str]]) -> None:
    assert said(of((path, old, new))) == expected


def test_names_by_what_became_of_them() -> None:
    value = of(
        (
            "a.cpp",
            b"int f() { return 1; }\nint h(int a);\nint gone() { return 5; }\n",
            b"int g() { return 1; }\nint h();\n",
        ),
    )
    assert value.defined == {"g"}
    assert value.removed == {"f", "gone"}
    assert value.resigned == {"h"}
    assert value.changed == {"h"}


def test_a_definition_that_moves_between_files_is_neither_new_nor_gone() -> None:
    text = b"int f() { return 1; }\n"
    value = of(("a.cpp", text, b""), ("b.cpp", b"", text))
    assert said(value) == {("moved_out", "f"), ("moved_in", "f")}
    assert not value.removed
    assert not value.defined


def test_a_renamed_file_is_one_file_with_both_paths() -> None:
    value = of(("new.py", b"def f():\n    return 1\n", b"def f():\n    return 2\n"), moved="old.py")
    assert value.paths == {"new.py", "old.py"}
    assert said(value) == {("body", "f")}


def test_mode_binary_and_missing_blobs_are_told() -> None:
    assert only(of(("run.py", b"x\n", b"x\n"), mode="100755")).mode_changed
    assert only(of(("a.bin", b"\0", b"\0\1"))).binary
    commit = Commit("c" * 40, "t" * 40, (), "a", "a@x", 0, "+0000", 0, "subject")
    change = Change("M", "a.py", None, "100644", "100644", "1" * 40, "2" * 40)
    lost = only(footprint(commit=commit, changes=[change], blobs={}))
    assert lost.binary
    assert not lost.parsed
    module = Change("M", "sub", None, "160000", "160000", "1" * 40, "2" * 40)
    assert needed_blobs([module]) == frozenset()
    assert not only(footprint(commit=commit, changes=[module], blobs={})).hunks


def test_what_is_newly_referred_to_and_what_no_more() -> None:
    file = only(of(("a.cpp", b"int x = old(1); // said\n", b'int x = fresh(1); // told "word"\nauto s = "text";\n')))
    assert file.refers == {"fresh", "auto", "s"}
    assert file.drops == {"old"}


def test_words_in_a_docstring_are_no_references() -> None:
    old = b'def f():\n    """\n    one\n    """\n    return a\n'
    new = old.replace(b"one", b"two three").replace(b"return a", b"return b")
    file = only(of(("a.py", old, new)))
    assert (set(file.refers), set(file.drops)) == ({"b"}, {"a"})


def test_names_in_a_format_string_are_references() -> None:
    old = b'def f():\n    return f"""\n  {one}\n  text\n"""\n'
    new = old.replace(b"{one}", b"{two(three)!r:>{width}} {{no}}").replace(b"text", b"words")
    file = only(of(("a.py", old, new)))
    assert (set(file.refers), set(file.drops)) == ({"two", "three", "width"}, {"one"})


def test_top_is_told_apart_from_symbols() -> None:
    file = only(of(("a.py", b"import a\n\n\ndef f(): pass\n", b"import a\nimport b\n\n\ndef f(): pass\n")))
    assert file.top
    assert not file.symbols
    assert not only(of(("a.py", b"def f(): pass\n", b"def f(): return 1\n"))).top


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (Language.CPP, b"a::b(c); // d\n/* e\n f */ g(\"h\", 'i');\n", {"a": (1,), "b": (1,), "c": (1,), "g": (3,)}),
        (Language.PYTHON, b"a.b = c  # d\n'''e\nf'''\ng\n", {"a": (1,), "b": (1,), "c": (1,), "g": (4,)}),
        (Language.PYTHON, b"f'{a.b} {{no}} {c!r}'\n", {"a": (1,), "b": (1,), "c": (1,)}),
        (Language.PYTHON, b"rf'{a:{b}.3f}' F\"{d['key']}\"\n", {"a": (1,), "b": (1,), "d": (1,)}),
        (Language.PYTHON, b"f'''\n {a}\n {\n b}'''\nc\n", {"a": (2,), "b": (3,), "c": (5,)}),
        (Language.PYTHON, b"x = f'{a != b}' + 'not {c}' + leaf'd'\n", {"x": (1,), "a": (1,), "b": (1,), "leaf": (1,)}),
        (Language.PYTHON, b"f'{unclosed'\nb'{no}'\n", {"unclosed": (1,), "b": (2,)}),
        (Language.MLIR, b"// CHECK: tt.load\n%0 = tt.store\n", {"CHECK": (1,), "tt.load": (1,), "tt.store": (2,)}),
        (Language.OTHER, b"plain words\n", {"plain": (1,), "words": (1,)}),
    ],
)
def test_references_stand_on_their_lines(language: Language, text: bytes, expected: dict[str, tuple[int, ...]]) -> None:
    assert references(text, language) == expected


def test_words_are_all_there_are() -> None:
    assert words(b'// said\ntt.load "text"') == {"said", "tt.load", "text"}


@settings(deadline=None)
@given(LINES, LINES, st.sampled_from(["a.cpp", "a.py", "a.mlir", "a.txt", "a.td"]))
def test_a_footprint_survives_the_cache(old: bytes, new: bytes, path: str) -> None:
    value = of((path, old, new))
    assert decode_footprint(encode_footprint(value)) == value


def test_a_broken_cache_entry_is_refused() -> None:
    with pytest.raises(ValueError, match="footprint"):
        decode_footprint(b"nonsense")
    assert footprint_key("a" * 40).endswith("a" * 40)
