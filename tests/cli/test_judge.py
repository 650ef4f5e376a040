"""`graft judge`: the published cases, and cases that are broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.cli.judge import CaseError, judge_case
from tests.core.jobs import (
    SHA,
)

TRIAGE = Path(__file__).parents[3] / "shared" / "triage"


@pytest.mark.skipif(not (TRIAGE / "omissions.json").exists(), reason="the cases are not beside this checkout")
def test_the_published_cases() -> None:
    gold = json.loads((TRIAGE / "omissions.json").read_text())
    wrong = {}
    for name, right in gold.items():
        judgement = judge_case(TRIAGE / "omissions" / name)
        if (judgement.verdict.value, sorted(judgement.missing)) != (right["verdict"], sorted(right["missing"])):
            wrong[name] = judgement
    assert not wrong


def test_a_broken_case_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"no case\.json"):
        judge_case(tmp_path)
    (tmp_path / "case.json").write_text("{}")
    with pytest.raises(CaseError, match="not a case"):
        judge_case(tmp_path)
    manifest = {"suites": {"u": {"tests": ["a"], "report": "../../etc/passwd", "format": "junit"}}}
    job = {"sha": SHA, "started_at": None, "conclusion": "success", "log": None}
    (tmp_path / "case.json").write_text(json.dumps({"job": job, "manifest": manifest, "today": "2026-01-01"}))
    with pytest.raises(CaseError, match="outside"):
        judge_case(tmp_path)
