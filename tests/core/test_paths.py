from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.paths import PatternError, matches, matches_name, matching, problem

TABLE: list[tuple[str, str, bool]] = [
    ("third_party/tlx/**", "third_party/tlx/a.py", True),
    ("third_party/tlx/**", "third_party/tlx/a/b.py", True),
    ("third_party/tlx/**", "third_party/tlx", False),
    ("third_party/tlx/**", "third_party/tlxx/a", False),
    ("third_party/tlx", "third_party/tlx/a/b", True),
    ("third_party/tlx/", "third_party/tlx/a/b", True),
    ("third_party/tlx/", "third_party/tlx", False),
    ("cmake/llvm-*", "cmake/llvm-hash.txt", True),
    ("cmake/llvm-*", "x/cmake/llvm-hash.txt", False),
    (".github/**", ".github/workflows/ci.yml", True),
    (".github/**", "a/.github/ci.yml", False),
    ("*.md", "README.md", True),
    ("*.md", "docs/a/README.md", True),
    ("/*.md", "docs/README.md", False),
    ("/*.md", "README.md", True),
    ("docs", "a/docs/b", True),
    ("docs/", "a/docs/b", True),
    ("/docs", "a/docs/b", False),
    ("**/test_*.py", "test_a.py", True),
    ("**/test_*.py", "a/b/test_a.py", True),
    ("a/**/b", "a/b", True),
    ("a/**/b", "a/x/y/b", True),
    ("a/**/b", "a/xb", False),
    ("**", "anything/at/all", True),
    ("*", "anything/at/all", True),
    ("a?c", "abc", True),
    ("a?c", "a/c", False),
    ("[ab].py", "a.py", True),
    ("[!ab].py", "a.py", False),
    ("[^ab].py", "c.py", True),
    ("a[!b]c", "a/c", False),
    ("[a-c].py", "b.py", True),
    ("[]].py", "].py", True),
    ("[\\].py", "\\.py", True),
    (r"\*.py", "*.py", True),
    (r"\*.py", "a.py", False),
    (r"\!a", "!a", True),
    ("a b", "a b", True),
    ("A", "a", False),
    ("a.c", "abc", False),
    ("a+(b)|$", "a+(b)|$", True),
    ("tests/lit/tlx_*", "tests/lit/tlx_a/b.mlir", True),
    ("été/*.py", "été/ß.py", True),
    ("a*b*c", "axbxbxc", True),
    ("a*b*c", "axcxb", False),
    ("a**b", "axb", True),
    ("a**b", "a/b", False),
    ("**/a/**/b/**", "x/a/y/b/z", True),
    ("**/a/**/b/**", "b/a/z", False),
    ("**/**/a", "a", True),
    ("a/**/**/b", "a/b", True),
    ("a/**/b/**/c", "a/b/b/c", True),
    ("a/**/b/**/c", "a/c/b", False),
    ("**/a/b", "a/a/b", True),
    ("/**", "a/b", True),
    ("a/**/", "a/b/c", True),
    ("a/**/", "a/b", False),
    ("**/foo/", "x/foo/y", True),
]


@pytest.mark.parametrize(("pattern", "path", "hit"), TABLE)
def test_one_pattern(pattern: str, path: str, hit: bool) -> None:
    assert matches(path, [pattern]) is hit


def test_the_last_pattern_that_hits_decides() -> None:
    assert matches("a/b.py", ["a/**", "!*.py"]) is False
    assert matches("a/b.py", ["!*.py", "a/**"]) is True
    assert matches("a/b.py", ["a/**", "!*.py", "a/b.py"]) is True
    assert matches("a", []) is False
    assert matching(["a/b", "c"], ["a"]) == ("a/b",)


@pytest.mark.parametrize(
    "pattern", ["", "/", "  ", "!", "a[b", "a\\", "../a", "a/./b", "a\nb", "*" * 17, "a" * 1025, "[z-a]"]
)
def test_what_can_not_be_meant_is_told(pattern: str) -> None:
    assert problem(pattern)
    with pytest.raises(PatternError):
        matches("a", ["a", pattern] if pattern.startswith("!") else [pattern])


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_pattern_is_read_or_told(pattern: str, path: str) -> None:
    if problem(pattern) is None:
        assert matches(path, [pattern]) in (True, False)


def test_git_reads_the_table_alike(tmp_path: Path) -> None:
    """The same patterns as a .gitignore of git's own; a folder of that name is asked by a file in it."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for pattern, path, hit in TABLE:
        if pattern.startswith("["):
            continue  # classes with a backslash differ, and are tested above
        (tmp_path / ".gitignore").write_text(pattern + "\n")
        asked = subprocess.run(["git", "check-ignore", "-q", "--no-index", path], cwd=tmp_path, check=False)
        assert (asked.returncode == 0) is hit, (pattern, path)


def test_hostile_paths_take_no_time() -> None:
    deep = "a/" * 2000
    assert not matches(deep + "x", ["**/a/**/a/**/a/**/a/**/a/**/a/**/a/**/b"])
    assert not matches("a" * 4000, ["*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b"])


def test_names_of_symbols() -> None:
    assert matches_name("toLinearLayout", ["*LinearLayout*"])
    assert not matches_name("tolinearlayout", ["*LinearLayout*"])
    assert not matches_name("a", [])
