"""What must run: learned from good runs, adjusted by what a change did on purpose."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.core.manifest import TestChanges, adjust, covers, learn, renamed, touches
from bot.core.types import Level, Outcome
from bot.core.validation import Report, Subject, TestOutcome, TestResult

NOW = datetime(2026, 11, 29, tzinfo=UTC)


def report(outcome: str = "passed", **tests: str) -> Report:
    return Report(
        run_id="r",
        subject=Subject(repository="a/b", commit="1" * 40),
        level=Level.L1,
        suite="s",
        harness="pytest",
        started_at=NOW,
        finished_at=NOW,
        outcome=Outcome(outcome),
        tests=tuple(TestResult(id=name, outcome=TestOutcome(word)) for name, word in tests.items()),
    )


def test_nothing_is_learned_from_bad_runs() -> None:
    assert learn(reports=[]).tests == ()
    assert learn(reports=[report("failed", a="passed"), report("omitted", a="passed")]).tests == ()


def test_the_newest_good_run_says_what_runs() -> None:
    learned = learn(
        reports=[report("failed", z="passed"), report(a="passed", b="passed"), report(a="passed", c="passed")]
    )
    assert learned.tests == ("a", "b")


def test_a_skip_is_known_only_where_no_good_run_ran_it() -> None:
    learned = learn(reports=[report(a="passed", b="skipped", c="skipped"), report(b="passed")])
    assert (learned.tests, learned.skipped) == (("a", "b", "c"), ("c",))


def test_the_canary_is_not_learned() -> None:
    assert learn(reports=[report(**{"a": "passed", "t.py::canary": "failed"})], canary="canary").tests == ("a",)


@pytest.mark.parametrize(
    ("pattern", "test", "does"),
    [
        ("t.py", "t.py::test_a", True),
        ("t.py::test_a", "t.py::test_a[1-2]", True),
        ("t.py::test_a", "t.py::test_ab", False),
        ("t.py::C", "t.py::C::test_a", True),
        ("t.py::*", "t.py::test_a[x]", True),
        ("t.py::test_a[1-*]", "t.py::test_a[1-2]", True),
        ("t.py::test_a[1-*]", "t.py::test_a[2-2]", False),
        ("tests/", "tests/t.py::test_a", True),
        ("*.mlir", "S :: a/b.mlir", True),
        ("t.py", "other/t.py::test_a", False),
    ],
)
def test_patterns(pattern: str, test: str, does: bool) -> None:
    assert covers(pattern, test) is does


def test_adjusting() -> None:
    tests = ("t.py::a", "t.py::b[1]", "t.py::b[2]", "u.py::c")
    changes = TestChanges(deleted=("t.py::b",), renamed={"u.py": "v.py", "t.py::a": "t.py::z"}, added=("n.py::n",))
    assert adjust(tests=tests, changes=changes) == ("t.py::z", "v.py::c", "n.py::n")
    assert adjust(tests=tests, changes=changes, include_added=False) == ("t.py::z", "v.py::c")
    assert adjust(tests=tests, changes=TestChanges()) == tests


def test_an_exact_rename_goes_before_that_of_its_file() -> None:
    names = {"t.py": "moved.py", "t.py::a": "elsewhere.py::b"}
    assert renamed("t.py::a", names) == "elsewhere.py::b"
    assert renamed("t.py::c[1]", names) == "moved.py::c[1]"


def test_which_file_holds_a_test() -> None:
    assert touches(("a/t.py",), "a/t.py::C::test_x[a::b]")
    assert not touches(("b/t.py",), "a/t.py::test_x")
    assert touches(("test/Conv/a.mlir",), "S :: Conv/a.mlir")
