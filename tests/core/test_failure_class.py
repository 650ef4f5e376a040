"""Whose a failure is: each class with its evidence, and "cannot classify" wherever the base does not say."""

from __future__ import annotations

from typing import Any

import pytest

from bot.core.failure_class import BaseRun, FailureKind, KnownCause, classify

BASE = "b" * 40
GREEN = BaseRun(BASE, {}, frozenset({"t", "u"}), whole=True)
SAME = BaseRun(BASE, {"t": "s"}, frozenset({"u"}), whole=True)
OTHER = BaseRun(BASE, {"t": "another"}, frozenset({"u"}), whole=True)
CUT = BaseRun(BASE, {}, frozenset({"u"}), whole=False)
HELD, LATER = KnownCause("#9", False, True), KnownCause("#9", False, False)


@pytest.mark.parametrize(
    ("given", "kind", "word"),
    [
        ({}, FailureKind.UNKNOWN, "no run of trunk"),
        ({"base": GREEN}, FailureKind.NEW, "passed at its base bbbbbbbbbb"),
        ({"base": GREEN, "tests": ["fresh"]}, FailureKind.NEW, "not among the tests"),
        ({"base": GREEN, "tests": ["t", "fresh"]}, FailureKind.NEW, "not among the tests"),
        ({"base": SAME}, FailureKind.PRE_EXISTING, "same cause at its base"),
        ({"base": SAME, "tests": ["v"]}, FailureKind.PRE_EXISTING, "same cause"),  # whatever the test
        ({"base": OTHER}, FailureKind.UNKNOWN, "another cause"),
        ({"base": CUT}, FailureKind.UNKNOWN, "does not say"),
        ({"known": HELD}, FailureKind.PRE_EXISTING, "#9"),
        ({"known": HELD, "base": GREEN}, FailureKind.PRE_EXISTING, "#9"),
        ({"known": LATER, "base": GREEN}, FailureKind.NEW, "passed"),
        ({"known": LATER}, FailureKind.UNKNOWN, "no run"),
        ({"known": KnownCause("#9", False, None)}, FailureKind.UNKNOWN, "no run"),
        ({"known": KnownCause("#9", True, None), "base": GREEN}, FailureKind.FLAKY, "#9"),
        ({"base": GREEN, "passed_here": ["t"]}, FailureKind.FLAKY, "another run of this very commit"),
        ({"passed_here": ["t"]}, FailureKind.FLAKY, "another run"),
        ({"base": GREEN, "tests": ["t", "u"], "passed_here": ["t"]}, FailureKind.NEW, "passed"),
        ({"base": GREEN, "machine": True}, FailureKind.INFRA, "machine"),
    ],
)
def test_classes(given: dict[str, Any], kind: FailureKind, word: str) -> None:
    usual: dict[str, Any] = {"tests": ["t"], "machine": False, "base": None, "known": None, "passed_here": []}
    found = classify(signature="s", base_commit=BASE, **{**usual, **given})
    assert found.kind is kind
    assert word in found.why


@pytest.mark.parametrize(
    ("held", "flaky", "text"),
    [
        (True, False, "#9"),
        (True, True, "#9, where it is flaky"),
        (False, False, "#9, which its base does not have yet: it may be the change's own"),
        (None, False, "#9, and its base is not known here: cannot classify"),
    ],
)
def test_a_known_cause_is_named_with_its_doubt(held: bool | None, flaky: bool, text: str) -> None:
    assert KnownCause("#9", flaky, held).text == text
