"""Ids that are evident from the source are those that pytest writes; others are not guessed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bot.core import pytest_source
from bot.core.python_names import Library, parse

IDS = """
import pytest
SHAPES = [(1, 2), (3, 4)]
A = 5
pytestmark = pytest.mark.parametrize("outer", ["x"])
@pytest.mark.parametrize("a", [1, 2.5, True, None, "text", A])
@pytest.mark.parametrize("b, c", SHAPES + [(5, "s")])
def test_f(a, b, c, outer): pass
@pytest.mark.parametrize(["a"], [[1], [2]], ids=["one", "two"])
class TestK:
    @pytest.mark.parametrize("d", range(2))
    @pytest.mark.parametrize("e", [[1], {}, pytest.param(3, id="three")])
    def test_g(self, a, d, e, outer): pass
"""


def test_evident_ids_are_those_that_pytest_writes(tmp_path: Path) -> None:
    (tmp_path / "test_ids.py").write_text(IDS)
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-qp", "no:cacheprovider", "--rootdir=.", "test_ids.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    ran = {line.partition("::")[2] for line in listed.stdout.splitlines() if "::" in line}
    tree = parse(IDS.encode())
    assert tree is not None
    found = pytest_source.tests_of("test_ids.py", tree, Library({})).values()
    assert {f"{test.name}[{one}]" for test in found for one in test.ids or ()} == ran
    assert len(ran) == 30


@pytest.mark.parametrize(
    "marks",
    [
        '@pytest.mark.parametrize("a", made())',
        '@pytest.mark.parametrize("a", [object()])',
        '@pytest.mark.parametrize("a", [*known])',
        '@pytest.mark.parametrize("a", [1, 2], ids=str)',
        '@pytest.mark.parametrize("a", range(30000))',
        # pytest tells the two apart by a number that is its own affair
        '@pytest.mark.parametrize("a", [1, 1])',
    ],
)
def test_what_is_not_evident_is_not_guessed(marks: str) -> None:
    tree = parse(f"import pytest\n{marks}\ndef test_f(a): pass\n".encode())
    assert tree is not None
    assert pytest_source.tests_of("test_a.py", tree, Library({}))["test_f"].ids is None
