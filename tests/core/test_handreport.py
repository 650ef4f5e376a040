"""Reports by hand: what is taken, what is not and why, and what a sign-off draws from them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.command.markdown import fenced
from bot.core.comments import CommentFact
from bot.core.config import Config
from bot.core.handreport import BadReport, hand_reports, may_report, metrics_of, read_report
from bot.core.owners import People
from bot.core.signoff import SignOff, Void, sign_offs
from bot.core.types import Outcome

HEAD, OTHER = "a" * 40, "b" * 40
AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
CONFIG = Config.of({
    "upstream": {"repository": "a/b"},
    "areas": {"recsys": {"owners": ["olga", "otto"]}},
    "validation": {"l3": [
        {"suite": "ranking-model", "area": "recsys", "metrics": ["ne", "qps"], "manual": True,
         "budget": {"default": {"max": 0.9}, "kernels": {"qps": {"max": 5000, "min": 1000}}}},
        {"suite": "driven", "area": "recsys"},
    ]},
})  # fmt: skip
PEOPLE = People.of({"olga": "write", "otto": "write", "walter": "write"})
GOOD = {"suite": "ranking-model", "commit": HEAD, "metrics": {"ne": 0.8012, "qps": [1210, 1195, 1223]}}


def said(
    block: object, *, by: str = "olga", number: int = 1, text: str = "/report l3 ranking-model", **more: Any
) -> CommentFact:
    raw = block if isinstance(block, str) else json.dumps(block)
    body = f"{text}\n\n```graft-report\n{raw}\n```\nthanks"
    return CommentFact(number, by, body, AT, more.pop("head", HEAD), **more)


def full(**changes: Any) -> dict[str, Any]:
    report = {
        "run_id": "x", "subject": {"repository": "acme/fork", "commit": HEAD}, "level": "l3", "suite": "ranking-model",
        "harness": "command", "started_at": "2026-11-29T10:00:00Z", "finished_at": "2026-11-29T11:00:00Z",
        "outcome": "passed", "gpu_seconds": 7200,
        "measurements": [{"metric": "ne", "samples": [0.8]}, {"metric": "qps", "samples": [1200]}],
    }  # fmt: skip
    return report | changes


def read(comment: CommentFact, suite: str = "ranking-model") -> Any:
    return read_report(
        body=comment.body, suite=suite, head=HEAD, repository="acme/fork", config=CONFIG, comment=comment
    )


@pytest.mark.parametrize(
    ("block", "outcome", "metrics"),
    [
        (GOOD, Outcome.PASSED, {"ne": 0.8012, "qps": 1210}),
        ({**GOOD, "commit": HEAD[:12], "note": "offline run"}, Outcome.PASSED, {"ne": 0.8012, "qps": 1210}),
        ({**GOOD, "metrics": {"ne": 0.8}}, Outcome.OMITTED, {"ne": 0.8}),
        (full(), Outcome.PASSED, {"ne": 0.8, "qps": 1200}),
        (full(outcome="failed"), Outcome.FAILED, {"ne": 0.8, "qps": 1200}),
        (full(tests=[{"id": "t", "outcome": "failed"}]), Outcome.FAILED, {"ne": 0.8, "qps": 1200}),
        (full(exit_code=3), Outcome.FAILED, {"ne": 0.8, "qps": 1200}),
    ],
)
def test_what_is_taken(block: dict[str, Any], outcome: Outcome, metrics: dict[str, float]) -> None:
    report = read(said(block))
    assert report.outcome is outcome
    assert metrics_of(report) == metrics
    assert report.subject.commit == HEAD
    assert report.subject.repository == "acme/fork"


@pytest.mark.parametrize(
    ("block", "why"),
    [
        ("", "is no JSON: line 1, column 1"),
        ("{'ne': 1}", "is no JSON"),
        ("[1]", "no JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"suite": "ranking-model", "commit": "' + HEAD + '", "metrics": {"ne": NaN}}', "NaN is no number"),
        ('{"suite": "ranking-model", "commit": "' + HEAD + '", "metrics": {"ne": 1e999}}', "infinite"),
        ({**GOOD, "commit": OTHER}, "of commit bbbbbbbbbb, the comment is about aaaaaaaaaa"),
        ({**GOOD, "commit": HEAD[:7]}, "report's commit"),
        ({**GOOD, "metrics": {}}, "report's metrics"),
        ({**GOOD, "metrics": {"ne": []}}, "samples"),
        ({**GOOD, "metrics": {"ne": "good"}}, "report's metrics.ne"),
        ({**GOOD, "metrics": {"nee": 1}}, "declares no metric 'nee': did you mean ne"),
        ({**GOOD, "metric": {"ne": 1}}, "report's metric: Extra inputs"),
        ({**GOOD, "suite": "other"}, "0 blocks of suite ranking-model (there: other)"),
        (full(subject={"repository": "acme/else", "commit": HEAD}), "of acme/else, not of acme/fork"),
        (full(subject={"repository": "acme/fork", "commit": OTHER}), "of commit bbbbbbbbbb"),
        (full(level="l2"), "of l2 ranking-model"),
        (full(protocol=9), "report's protocol"),
        (full(measurements=[{"metric": "ne", "samples": [1], "kernel": "a"}, {"metric": "ne", "samples": [2]}]),
         "several places"),
    ],
)  # fmt: skip
def test_what_is_not_taken_and_why(block: object, why: str) -> None:
    with pytest.raises(BadReport) as error:
        metrics_of(read(said(block)))
    assert why in str(error.value)


def test_only_a_suite_by_hand_and_only_an_owner_of_its_area() -> None:
    for login, suite, why in (
        ("walter", "ranking-model", "walter does not own recsys; olga, otto does"),
        ("nobody", "ranking-model", "no access"),
        ("olga", "driven", "/validate l3 driven"),
        ("olga", "rankin-model", "did you mean ranking-model"),
        ("olga", "zzz", "by hand are run: ranking-model"),
    ):
        with pytest.raises(BadReport) as error:
            may_report(login, suite, config=CONFIG, people=PEOPLE)
        assert why in str(error.value)
    with pytest.raises(BadReport, match="holds no fence"):
        read(CommentFact(1, "olga", "/report l3 ranking-model\n```json\n{}\n```", AT, HEAD))
    with pytest.raises(BadReport, match="2 blocks"):
        read(said(json.dumps(GOOD) + "\n```\n```graft-report\n" + json.dumps(GOOD)))


def signed(*comments: CommentFact, text: str = "/signoff l3 recsys", by: str = "otto") -> SignOff:
    """The sign-off that follows these comments."""
    last = CommentFact(99, by, text, AT, HEAD)
    standing = hand_reports(comments=comments, people=PEOPLE, repository="acme/fork", config=CONFIG)
    (one,) = sign_offs(
        config=CONFIG, comments=[*comments, last], people=PEOPLE, author="walter", head=HEAD, reports=standing
    )
    return one


def test_a_sign_off_takes_from_the_report_what_it_leaves_out() -> None:
    one = signed(said(GOOD))
    assert one.stands
    assert [(m.name, m.value) for m in one.metrics] == [("ne", 0.8012), ("qps", 1210)]
    assert signed(said(GOOD), text="/signoff l3 recsys ne=0.80").stands
    assert signed(said(GOOD), text="/signoff l3 recsys QPS=1210 ne=0.8012").stands
    # the newest counts; one of another commit does not
    better = said({**GOOD, "metrics": {"ne": 0.7, "qps": 1300}}, number=2)
    assert [m.value for m in signed(said(GOOD), better).metrics] == [0.7, 1300]
    elsewhere = said({**GOOD, "commit": OTHER}, head=OTHER)
    assert signed(elsewhere).void is Void.METRIC_MISSING


@pytest.mark.parametrize(
    ("report", "text", "void", "why"),
    [
        (said(GOOD, edited=True), "/signoff l3 recsys", Void.METRIC_MISSING, "/report l3 ranking-model"),
        (said(GOOD, deleted=True), "/signoff l3 recsys", Void.METRIC_MISSING, "ne is missing"),
        (said(GOOD, by="walter"), "/signoff l3 recsys", Void.METRIC_MISSING, "ne is missing"),
        (said(GOOD, head=None), "/signoff l3 recsys", Void.METRIC_MISSING, "ne is missing"),
        (said(GOOD, is_bot=True), "/signoff l3 recsys", Void.METRIC_MISSING, "ne is missing"),
        (said(full(outcome="failed")), "/signoff l3 recsys", Void.METRIC_MISSING, "ne is missing"),
        (said({**GOOD, "metrics": {"ne": 0.8}}), "/signoff l3 recsys", Void.METRIC_MISSING, "qps is missing"),
        (said({**GOOD, "metrics": {"ne": 0.95, "qps": 1200}}), "/signoff l3 recsys", Void.OVER_BUDGET, "above 0.9"),
        (said({**GOOD, "metrics": {"ne": 0.8, "qps": 900}}), "/signoff l3 recsys", Void.OVER_BUDGET, "below 1000"),
        # what is signed must be what was measured
        (said(GOOD), "/signoff l3 recsys ne=0.79 qps=1210", Void.OTHER_RUN, "not what the report says, ne=0.8012"),
        (said(GOOD), "/signoff l3 recsys ne=0.8013", Void.OTHER_RUN, "not what the report says"),
    ],
)
def test_what_a_report_can_not_do_for_a_sign_off(report: CommentFact, text: str, void: Void, why: str) -> None:
    one = signed(report, text=text)
    assert one.void is void
    assert why in one.text


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("```graft-report\nA\nB\n```", ["A\nB"]),
        ("x\r\n~~~ graft-report extra\r\nA\r\n~~~\r\n", ["A"]),
        ("````graft-report\n```\nA\n````", ["```\nA"]),
        ("```graft-report\nA", ["A"]),
        ("```graft-report\n```\n```graft-report\nB\n```", ["", "B"]),
        ("```graft-reports\nA\n```\n```json\nA\n```", []),
        ("> ```graft-report\n> A\n> ```", []),
        ("<!--\n```graft-report\nA\n```\n-->", []),
        ("`` `graft-report` ``", []),
    ],
)
def test_the_contents_of_a_fence(body: str, expected: list[str]) -> None:
    assert fenced(body, "graft-report") == expected


@given(st.text(alphabet='`~\n\r graft-report{}<!>-:"', max_size=200))
def test_no_text_breaks_the_reading(text: str) -> None:
    fenced(text, "graft-report")
    with pytest.raises(BadReport):
        read(CommentFact(1, "olga", text, AT, HEAD))
