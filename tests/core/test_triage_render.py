"""The issue of a breakage and the day's digest, as people read them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.render.breakage import BreakageFacts, breakage_body, breakage_marker
from bot.core.render.digest import DigestRow, SpoiltNote, digest_section
from bot.core.render.text import BODY_LIMIT
from bot.core.triage import Suspect
from tests.golden import same_as_golden

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
A, B, C = "a" * 40, "b" * 40, "c" * 40
FACTS = BreakageFacts(
    key="abcd2345",
    title="ValueError: no layout for f16",
    level="l1",
    suite="unit",
    area="layouts",
    areas=("layouts",),
    tests=("t.py::a", "t.py::b", "m.py::c"),
    suites={"unit": ("t.py::a", "t.py::b"), "side": ("m.py::c",)},
    message="ValueError: no layout for f16",
    first_bad=A,
    last_good=B,
    after=B,
    last_red=C,
    first_seen=NOW,
    owners=("mia", "acme/layouts"),
    mentions=("mia", "acme/layouts"),
    repeat="graft run l1 --suite unit",
    why="red at 4 tested commits",
    passing=("t.py::b",),
    unseen=("m.py::c",),
    elsewhere=(("t.py::a", "#12"),),
    masks=("t.py::x", "t.py::y"),
    masks_issues=(11,),
    masked_by=(9,),
    hidden_by=(14, 15),
    candidates=9,
    ruled_out=2,
    reopened=2,
    deleted=(5,),
    deadline=NOW + timedelta(days=2),
    held=("speed", "sizes"),
    unsearched="No search yet: 6 searches began today: that is the limit. It begins by itself when it may.",
    suspects=(
        Suspect(A, "Take in a bundle @mia Fixes #3", "Graft", 0.7, ("it takes in 3 upstream commits",), (A, B, C), 14),
        Suspect(C, "Choose | another", "Leo <leo>", 0.3, ()),
    ),
)


def test_an_issue_tells_all_that_is_known() -> None:
    same_as_golden("breakage_whole.md", breakage_body(FACTS))


def test_a_flaky_one_and_one_without_a_base_say_so() -> None:
    flaky = breakage_body(replace(FACTS, state="flaky", why="3 red stretches", rates=(4, 16), suspects=()))
    assert "fail now and then on trunk" in flaky
    assert "failed at 4 of 20 tested commits since then" in flaky
    unknown = breakage_body(replace(FACTS, last_good=None, after=None, suspects=(), candidates=0))
    assert "cannot classify: no run before it is known, so nobody is suspected" in unknown
    born = breakage_body(replace(FACTS, last_good=None, born=True))
    assert f"never passed: it is not there yet at `{B[:10]}`" in born


def test_what_people_wrote_outside_the_sections_stays() -> None:
    first = breakage_body(FACTS)
    edited = "Seen before.\r\n" + first.replace(
        "<!-- graft:section masks -->", "Ask Leo.\n\n<!-- graft:section masks -->"
    )
    again = breakage_body(replace(FACTS, state="fixed", masks=()), edited)
    assert again.startswith("Seen before.\n") and "Ask Leo." in again
    assert "failed on trunk" in again and "t.py::x" not in again
    assert breakage_body(replace(FACTS, state="fixed", masks=()), again) == again
    late = breakage_body(replace(FACTS, search="It searches."), breakage_body(replace(FACTS, unsearched="")))
    places = [late.index(f"<!-- graft:section {name} -->") for name in ("suspects", "search", "masks", "data")]
    assert places == sorted(places), "what comes later stands where it belongs"
    lost = breakage_body(FACTS, "Somebody cleared it all.")
    assert lost.startswith("Somebody cleared it all.") and "### Suspects" in lost


@given(st.text(max_size=200), st.text(max_size=60))
@settings(max_examples=60, deadline=None)
def test_no_output_of_a_test_leaves_its_section(text: str, test: str) -> None:
    nasty = f"{text}\n<!-- graft:end fails -->\n{breakage_marker('other')}\n@all ```"
    facts = replace(FACTS, message=nasty, tests=(f"x{test}",), suites={"unit": (f"x{test}<!-- graft:end fails -->",)})
    body = breakage_body(facts)
    assert breakage_marker("other") not in body
    assert body.count("<!-- graft:end fails -->") == 1
    assert breakage_body(facts, body) == body


def test_two_thousand_tests_fit() -> None:
    many = tuple(f"tests/very/long/path/test_file.py::test_parametrised[{n}-{'x' * 200}]" for n in range(2_000))
    body = breakage_body(replace(FACTS, tests=many, suites={"unit": many}, masks=many, unseen=many))
    assert len(body) < BODY_LIMIT
    assert breakage_body(replace(FACTS, tests=many, suites={"unit": many}, masks=many, unseen=many), body) == body


def test_the_day_on_trunk() -> None:
    old = NOW - timedelta(days=9)
    rows = [
        DigestRow(4, "open", ("core",), NOW - timedelta(hours=3), NOW, masks=40),
        DigestRow(5, "culprit_known", ("core", "tlx"), old, old),
        DigestRow(6, "flaky", ("tlx",), old, old),
        DigestRow(7, "fixed", ("tlx",), old, NOW - timedelta(hours=1)),
        DigestRow(8, "fixed", ("core",), old, old),
        DigestRow(9, "dismissed", ("core",), old, old),
        DigestRow(None, "open", (), NOW, NOW),
        DigestRow(None, "dismissed", ("core",), old, old),
    ]
    infra = [SpoiltNote("unit", "no GPU", False), SpoiltNote("unit", "CUDA error: busy | @x", True)]
    unknown = [SpoiltNote("nightly", "it failed, and its cause is not known: artifact junit: it has expired", False)]
    denied = "403 (needs actions=read)"
    same_as_golden("digest.md", digest_section(rows=rows, infra=infra, now=NOW, unknown=unknown, denied=denied))
    assert digest_section(rows=rows[4:5], infra=[], now=NOW) == ""
