"""What is the fork's own: never what is merely behind, nor what it took out of order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.divergence import (
    Divergence,
    FileDivergence,
    decode_file,
    divergence_key,
    encode_file,
    file_divergence,
)
from bot.core.footprint import TOP

FIRST = b"int f(int a) {\n  return a;\n}\nint g() {\n  return 1;\n}\n"
SECOND = FIRST.replace(b"return a;", b"return a + 1;")
THIRD = SECOND.replace(b"return 1;", b"return 2;")


def diverged(fork: bytes | None, *upstream: bytes, path: str = "a.cpp") -> FileDivergence:
    return file_divergence(path=path, fork=fork, upstream=upstream)


@pytest.mark.parametrize("fork", [FIRST, SECOND, THIRD, FIRST.replace(b"return 1;", b"return 2;")])
def test_behind_or_out_of_order_is_nothing_of_the_forks_own(fork: bytes) -> None:
    found = diverged(fork, FIRST, SECOND, THIRD)
    assert not (found.changed | found.added | found.removed)
    assert not found.own_lines
    assert not found.uses


def test_a_changed_body_a_changed_signature_an_own_function_and_a_lost_one() -> None:
    fork = (
        b"int f(int a) {\n  return twice(a);\n}\n"
        b"int h(int a, int b) {\n  return 3;\n}\n"
        b"int mine() {\n  return f(1);\n}\n"
    )
    upstream = FIRST + b"int h(int a) {\n  return 3;\n}\n"
    found = diverged(fork, upstream)
    assert found.kind == "changed"
    assert found.changed == {"f", "h"}
    assert found.resigned == {"h"}
    assert found.added == {"mine"}
    assert found.removed == {"g"}
    assert found.own_lines == ((2, 2), (4, 4), (7, 8))
    assert dict(found.uses or {}).keys() == {"return", "twice", "a", "int", "h", "b", "mine", "f"}


def test_a_method_changes_without_its_class() -> None:
    upstream = b"class A:\n    x = 1\n\n    def m(self):\n        return 1\n"
    found = diverged(upstream.replace(b"return 1", b"return 2"), upstream, path="a.py")
    assert found.changed == {"A.m"}
    found = diverged(upstream.replace(b"x = 1", b"x = 1\n    y = 2"), upstream, path="a.py")
    assert found.added == {"A.y"}
    assert "A.m" not in found.changed


def test_lines_taken_out_are_a_change() -> None:
    assert diverged(FIRST.replace(b"  return a;\n", b""), FIRST, SECOND).changed == {"f"}


def test_imports_and_files_without_a_grammar_change_by_their_top() -> None:
    assert diverged(b"import a\nimport b\n", b"import a\n", path="a.py").changed == {TOP}
    assert diverged(b"build\nmine\n", b"build\n", path=".gitignore").changed == {TOP}


def test_an_own_file_and_a_deleted_one() -> None:
    own = diverged(b"def mine(): return theirs()\n", path="own.py")
    assert own.own
    assert own.added >= {"mine"}
    assert "theirs" in (own.uses or {})
    assert diverged(None, FIRST).kind == "removed"


def test_tablegen_is_known_by_what_it_generates() -> None:
    upstream = b'def TT_LoadOp : Op<"load"> {\n  let arguments = (ins A:$ptr);\n}\n'
    found = diverged(upstream.replace(b"A:$ptr", b"A:$ptr,\n B:$own"), upstream, path="a.td")
    whole = Divergence(files={"a.td": found}, words=frozenset())
    assert whole.changed("LoadOp") == ["a.td"]


def test_the_whole_is_indexed_by_name() -> None:
    files = {
        "a.cpp": diverged(FIRST.replace(b"return a;", b"return shared(a);"), FIRST),
        "own.py": diverged(b"x = 1\ny = shared(x)\n", path="own.py"),
    }
    whole = Divergence(files=files, words=frozenset({"shared"}))
    assert [(u.path, u.line, u.own_file) for u in whole.uses("shared")] == [("a.cpp", 2, False), ("own.py", 2, True)]
    assert whole.changed("f") == ["a.cpp"]
    assert not whole.resigned("f")
    assert not whole.uses("unheard")
    assert whole.files_with("shared") == 1
    assert whole.paths == {"a.cpp", "own.py"}


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([b"a = 1", b"def f(): return b", b"class C: pass", b"", b"# x"]), max_size=8),
    st.booleans(),
)
def test_equal_to_a_version_is_no_divergence_and_the_cache_keeps_it(rows: list[bytes], more: bool) -> None:
    text = b"\n".join(rows)
    found = diverged(text, text, path="a.py")
    assert not (found.changed | found.added | found.removed | found.resigned)
    other = diverged(text + b"\ndef own(): return a\n" if more else text, text, path="a.py")
    assert bool(other.added) is more
    assert decode_file(encode_file(other)) == other


def test_a_broken_cache_entry_is_refused() -> None:
    with pytest.raises(ValueError, match="divergence"):
        decode_file(b"nonsense")


def test_the_key_says_all_that_the_result_depends_on() -> None:
    key = divergence_key("a", "1", ["2", "3"])
    assert key == divergence_key("a", "1", ["3", "2"])
    assert (
        len(
            {
                key,
                divergence_key("b", "1", ["2", "3"]),
                divergence_key("a", "4", ["2", "3"]),
                divergence_key("a", "1", ["2"]),
            }
        )
        == 4
    )
