"""Tests of a file by its source: which are collected, what skips them, what makes them another test."""

from __future__ import annotations

import pytest

from bot.core import pytest_source
from bot.core.pytest_source import SourceTest, module_skips
from bot.core.python_names import Library, parse

SOURCE = """
import pytest
from unittest import TestCase

def helper(): pass
def test_a(): helper()

class TestPlain:
    def test_b(self): pass
    def other(self): pass

class TestWithInit:
    def __init__(self): pass
    def test_c(self): pass

class Unit(TestCase):
    def test_d(self): self.skipTest("why")

class TestInherits(TestPlain):
    pass
"""


def of(source: str) -> dict[str, SourceTest]:
    tree = parse(source.encode())
    assert tree is not None
    return pytest_source.tests_of("t/test_x.py", tree, Library({"t/test_x.py": tree}))


def test_what_pytest_would_collect() -> None:
    found = of(SOURCE)
    assert {name for name, test in found.items() if test.collected} == {
        "test_a", "TestPlain::test_b", "Unit::test_d", "TestInherits::test_b"
    }  # fmt: skip
    assert {name for name, test in found.items() if test.skips} == {"Unit::test_d"}


@pytest.mark.parametrize(
    ("old", "new", "body", "parameters", "skips"),
    [
        (": helper()", ": helper(); helper()", True, False, False),
        ("def test_a", "@pytest.mark.skip\ndef test_a", False, False, True),
        ("def test_a", "@pytest.mark.xfail\ndef test_a", False, False, False),
        ("def test_a()", "@pytest.mark.parametrize('n', [1])\ndef test_a(n)", True, True, False),
        (": helper()\n", ": pytest.skip('x')\n", True, False, True),
        ("def helper", "# a word\ndef helper", False, False, False),
    ],
)
def test_what_a_change_makes_of_a_test(old: str, new: str, body: bool, parameters: bool, skips: bool) -> None:
    before, after = of(SOURCE)["test_a"], of(SOURCE.replace(old, new))["test_a"]
    assert (before.body != after.body, before.parameters != after.parameters) == (body, parameters)
    assert (before.skips != after.skips) is skips


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("torch = pytest.importorskip('torch')", 1),
        ("pytest.skip('no GPU', allow_module_level=True)", 1),
        ("if x:\n    pytest.skip('no GPU', allow_module_level=True)", 1),
        ("def f():\n    pytest.importorskip('torch')", 0),
        ("skip = 3", 0),
    ],
)
def test_what_skips_a_whole_file(line: str, count: int) -> None:
    tree = parse(f"import pytest\n{line}\n".encode())
    assert tree is not None
    assert len(module_skips(tree)) == count
