"""Names stand for what the files at hand bind them to: their own, imported, or a conftest.py's."""

from __future__ import annotations

import ast

import pytest

from bot.core.python_names import Library, Names, definitions, parse, spoken

FILES = {
    "t/conftest.py": "FAR = 1\nNEAR = 1\n",
    "t/a/conftest.py": "NEAR = 2\n",
    "lib/shapes.py": "SHAPES = [1]\nclass Base: pass\n",
    "other/shapes.py": "OTHER = 3\n",
}


def names(source: str, imports: dict[str, tuple[str, str]]) -> Names:
    trees = {path: tree for path, text in FILES.items() if (tree := parse(text.encode())) is not None}
    own = parse(source.encode())
    assert own is not None
    return Names("t/a/test_x.py", definitions(own), imports, Library(trees))


@pytest.mark.parametrize(
    ("name", "stands_for"),
    [
        ("OWN", "4"),
        ("NEAR", "2"),
        ("FAR", "1"),
        ("SHAPES", "[1]"),
        ("renamed", "[1]"),
        ("shapes.SHAPES", "[1]"),
        ("sometimes", "5"),
        ("OTHER", None),
        ("shapes.nosuch", None),
        ("unknown.SHAPES", None),
    ],
)
def test_a_name_is_found_where_python_would_find_it(name: str, stands_for: str | None) -> None:
    imports = {
        "SHAPES": ("lib.shapes", "SHAPES"), "renamed": (".shapes", "SHAPES"), "shapes": ("", "lib.shapes"),
    }  # fmt: skip
    source = "OWN = 3\nOWN = 4\nif x:\n    sometimes: int = 5\nelse:\n    def other(): pass\n"
    found = names(source, imports).find(name)
    assert (ast.unparse(found) if found is not None else None) == stands_for


@pytest.mark.parametrize("source", [b"def f(:", b"\0", b"x = " + b"(" * 5000])
def test_what_is_no_python_is_none(source: bytes) -> None:
    assert parse(source) is None


def test_what_is_spoken() -> None:
    words = [spoken(ast.parse(text, mode="eval").body) for text in ("a", "a.b", "a.b.c", "f()", "1")]
    assert words == ["a", "a.b", "", "", ""]
