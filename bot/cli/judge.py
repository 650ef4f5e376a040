"""`graft judge`: one job's reports against what it had to run, by the same function that judges every run."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.cli.terminal import emit, say
from bot.core.jobreports import Job
from bot.core.judge import Judgement, LastGreen, judge
from bot.core.manifest import Exemption, SuiteManifest, TestChanges
from bot.core.types import Outcome


class CaseError(ValueError):
    """A case that can't be read: what, where, how to mend."""


def command(
    case_dir: Annotated[Path, typer.Argument(help="Folder with case.json and the reports beside it.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print {verdict, missing}.")] = False,
) -> None:
    """Judge one job's reports against what it had to run (exit 0 passed, 1 anything else, 2 unreadable case)."""
    try:
        judgement = judge_case(case_dir)
    except CaseError as error:
        say(str(error), err=True)
        raise typer.Exit(2) from None
    if as_json:
        emit(json.dumps({"verdict": judgement.verdict.value, "missing": list(judgement.missing)}))
    else:
        say(f"{judgement.verdict.value}: {len(judgement.missing)} missing")
        for finding in judgement.findings:
            say(f"  {finding.kind.value:16} {finding.subject}  {finding.text}".rstrip())
    raise typer.Exit(0 if judgement.verdict is Outcome.PASSED else 1)


def judge_case(folder: Path) -> Judgement:
    """Read a case from its folder and judge it; raises CaseError where the case itself is broken."""
    path = folder / "case.json"
    try:
        case: dict[str, Any] = json.loads(path.read_text("utf-8"))
        job = _job(case["job"], folder)
        suites = tuple(_suite(name, suite) for name, suite in case["manifest"]["suites"].items())
        diff = case.get("diff") or {}
        changes = TestChanges(
            deleted=tuple(diff.get("deleted") or ()),
            renamed=dict(diff.get("renamed") or {}),
            added=tuple(diff.get("added") or ()),
            files=tuple(diff.get("files") or ()),
            skipped=tuple(diff["skipped"]) if diff.get("skipped") is not None else None,
        )
        waivers = tuple(_waiver(waiver) for waiver in case.get("waivers") or ())
        last = LastGreen(skipped=tuple((case.get("last_green") or {}).get("skipped") or ()))
        today = date.fromisoformat(case["today"])
    except FileNotFoundError:
        raise CaseError(f"{folder}: no case.json there; give a folder that holds one") from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CaseError(f"{path}: not a case: {type(error).__name__}: {error}") from error
    reports = {suite.report: data for suite in suites if (data := _read(folder, suite.report)) is not None}
    return judge(job=job, manifest=suites, last_green=last, diff=changes, waivers=waivers, reports=reports, today=today)


def _read(folder: Path, name: str | None) -> bytes | None:
    if not name:
        return None
    path = (folder / name).resolve()
    if folder.resolve() not in path.parents:
        raise CaseError(f"{folder}: the report {name!r} lies outside the case's folder")
    return path.read_bytes() if path.is_file() else None


def _job(raw: dict[str, Any], folder: Path) -> Job:
    started = raw.get("started_at")
    return Job(
        sha=raw["sha"],
        started_at=datetime.fromisoformat(started) if started else None,
        conclusion=raw.get("conclusion"),
        exit_code=raw.get("exit_code"),
        platform=raw.get("platform") or "",
        log=_read(folder, raw.get("log")),
    )


def _suite(name: str, raw: dict[str, Any]) -> SuiteManifest:
    return SuiteManifest(
        name=name,
        tests=tuple(raw["tests"]),
        report=raw.get("report") or "",
        format=raw.get("format") or "",
        canary=raw.get("canary"),
    )


def _waiver(raw: dict[str, Any]) -> Exemption:
    until = raw.get("expires") or raw.get("until")
    return Exemption(
        pattern=raw["test"],
        expires=date.fromisoformat(until) if until else None,
        platform=raw.get("platform"),
        reason=raw.get("reason") or "",
    )
