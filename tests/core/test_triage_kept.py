"""What is kept of a breakage: of its text what is signed as the whole is, in its issue what makes it whole again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.render.breakage import breakage_body, breakage_data
from bot.core.render.text import BODY_LIMIT
from bot.core.signature import signature
from bot.core.triage import Kept, State, kept_block, omitted_signature, sign_again
from bot.core.triage.kept import MOST_PACKED
from bot.core.triage.texts import KEPT_TEXT, kept_text
from tests.core.test_triage_render import FACTS

NOISE = "".join(f"building object {n} of the library\n" for n in range(1_000))
DATA: dict[str, Any] = {
    "signature": "0123456789abcdef",
    "sample": {"test": "t.py::a", "omitted": ""},
    "message": "ValueError: no layout for f16 --> <!-- ```",
    "title": "ValueError: no layout for f16",
    "suite": "unit",
    "suites": {"unit": ["t.py::a", "t.py::b"], "side": ["m.py::c"]},
    "red": [["unit", "t.py::a"], ["side", "m.py::c"]],
    "level": "l1",
    "area": "layouts",
    "areas": ["layouts"],
    "suite_areas": ["core", "layouts"],
    "first_bad": "a" * 40,
    "last_good": None,
    "after": "b" * 40,
    "closed_at": None,
    "opened_at": "2026-11-28T12:00:00+00:00",
    "red_since": "2026-11-29T12:00:00+00:00",
    "reopened": 2,
    "deleted_issues": [3],
    "suspects": [{"sha": "a" * 40}],
}


def through(data: dict[str, Any], **facts: Any) -> Kept | None:
    """The breakage as it is read from its issue's text."""
    body = breakage_body(FACTS.__class__(**{**_fields(), "kept": data, **facts}))
    assert len(body) < BODY_LIMIT
    return Kept.read(breakage_data(body))


def _fields() -> dict[str, Any]:
    return {name: getattr(FACTS, name) for name in FACTS.__dataclass_fields__}


def test_an_issue_makes_its_breakage_whole_again() -> None:
    kept = through(DATA)
    assert kept is not None
    assert (kept.key, kept.state) == (FACTS.key, State.OPEN)
    again = kept.model_dump(mode="json", exclude={"key", "state"})
    again["red"].sort(reverse=True)
    assert again == {name: value for name, value in DATA.items() if name != "suspects"}


@given(st.text(max_size=400), st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=5, unique=True))
@settings(max_examples=50, deadline=None)
def test_whatever_a_test_prints_it_is_read_as_it_was(text: str, tests: list[str]) -> None:
    kept = through({**DATA, "message": text, "suites": {"unit": tests}, "red": [["unit", test] for test in tests]})
    assert kept is not None
    assert (kept.message, kept.suites) == (text, {"unit": tests})


@pytest.mark.parametrize("count", [3, 2_000])
def test_many_tests_and_a_long_text_fit(count: int) -> None:
    many = [f"python/test/unit/language/test_core.py::test_dot[{n}-{n * 7919 % 4096}-f16]" for n in range(count)]
    long = {**DATA, "message": "-" * KEPT_TEXT, "suites": {"unit": many}, "red": [["unit", test] for test in many]}
    kept = through(long, tests=many, suites={"unit": many}, masks=many, unseen=many)
    assert kept is not None
    assert (kept.suites["unit"], len(kept.red)) == (many, count)


def test_the_longest_names_and_texts_leave_it_whole() -> None:
    many = [f"t.py::{'<-é>' * 1_000}{n}" for n in range(300)]
    text = "".join(chr(0x400 + n * 7919 % 50_000) for n in range(60_000))
    long = {**DATA, "message": text, "suites": {"unit": many}, "red": [["unit", test] for test in many]}
    kept = through(long, tests=many, suites={"unit": many}, masks=many, unseen=many, message=text)
    assert kept is not None
    assert kept.signature == DATA["signature"] and kept.message == text[:KEPT_TEXT]


def test_of_more_tests_than_there_is_room_for_as_many_red_ones_as_fit_are_kept() -> None:
    many = [f"t.py::{signature(f'KeyError: {n}').key}{hash(n * 7919):064x}{n * n:040d}" for n in range(5_000)]
    block = kept_block({**DATA, "suites": {"unit": [*many, "green"]}, "red": [["unit", test] for test in many]})
    assert len(block["packed"]) <= MOST_PACKED
    kept = Kept.read({"key": "k", "state": "open", "suite": "unit", **block})
    assert kept is not None
    assert 0 < len(kept.red) < 5_000
    assert kept.suites["unit"] == [test for _, test in kept.red]


@pytest.mark.parametrize(
    "block",
    [
        None, [], "text", {}, {"key": "k"},
        {"key": "k", "state": "sideways", "suite": "unit", "kept": {**DATA}},
        {"key": "k", "state": "open", "suite": "unit", "kept": {**DATA, "green": [["unit"]]}},
        {"key": "k", "state": "open", "suite": "unit", "kept": {**DATA, "green": 3}},
        {"key": "k", "state": "open", "suite": "unit", "kept": {**DATA, "suites": "all"}},
        {"key": "k", "state": "open", "suite": "unit", "packed": "!"},
        {"key": "k", "state": "open", "suite": "unit", "packed": "bm90IHBhY2tlZA=="},
        {"key": "k", "state": "open", "suite": "unit", "packed": 7},
    ],
)  # fmt: skip
def test_what_people_made_unreadable_is_none(block: Any) -> None:
    assert Kept.read(block) is None


@pytest.mark.parametrize(
    ("state", "open_", "reason", "stands"),
    [
        ("open", True, None, State.OPEN),
        ("bisecting", True, None, State.OPEN),
        ("culprit_known", True, None, State.CULPRIT_KNOWN),
        ("fixed", False, "completed", State.FIXED),
        ("open", False, "completed", State.OPEN),
        ("open", False, "not_planned", State.DISMISSED),
        ("flaky", False, "duplicate", State.DISMISSED),
        ("dismissed", True, "reopened", State.DISMISSED),
    ],
)
def test_how_it_stands_by_its_issue(state: str, open_: bool, reason: str | None, stands: State) -> None:
    kept = Kept.read({"key": "k", "state": state, "suite": "unit", "kept": {**DATA}})
    assert kept is not None
    assert kept.standing(open_=open_, reason=reason) is stands


@pytest.mark.parametrize(
    "text",
    [
        f"KeyError: 'num_warps'\n{NOISE}",
        f"{NOISE}KeyError: 'num_warps'",
        f"{NOISE[:9_000]}KeyError: 'num_warps'\n{NOISE[:9_000]}",
        f"Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n{NOISE[:9_000]}\nKeyError: 'num_warps'",
    ],
)
@pytest.mark.parametrize("last", [False, True])
def test_a_part_of_a_text_is_signed_as_the_whole_is(text: str, last: bool) -> None:
    key = signature(text, "t.py::test_a").key
    part = kept_text(text, "t.py::test_a", key, last=last)
    assert signature(part, "t.py::test_a").key == key
    assert len(part) <= KEPT_TEXT + 10 or part == text


def test_it_is_signed_again_by_what_is_kept() -> None:
    text, test = "assert 3 == 4", "t.py::test_a"
    data = {"signature": "old", "message": text, "sample": {"test": test, "omitted": ""}, "suites": {"unit": ["x"]}}
    assert sign_again(data) == signature(text, test).key
    gone = {**data, "sample": {"test": test, "omitted": "unit"}}
    assert sign_again(gone) == omitted_signature("unit")
    # kept by a Graft that kept no test beside it: told by what there is, where that is whole
    before = {"message": text, "suites": {"unit": ["t.py::test_b", test]}}
    assert sign_again({**before, "signature": signature(text, test).key}) == signature(text, test).key
    assert sign_again({**before, "signature": "old"}) == signature(text, "t.py::test_b").key
    assert sign_again({**before, "signature": "old", "message": "x" * KEPT_TEXT}) == "old"
    assert sign_again({**before, "signature": omitted_signature("unit")}) == omitted_signature("unit")
