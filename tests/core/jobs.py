"""Jobs and reports to judge: the tests of one suite of pytest, their elements in JUnit, and the judgement over them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any
from xml.sax.saxutils import quoteattr

from bot.core.jobreports import Job
from bot.core.judge import Judgement, LastGreen, judge
from bot.core.manifest import Exemption, SuiteManifest, TestChanges

SHA = "5f3c9a1be2d04c7790aa18b3f6d2e4c5a7b90812"
STARTED = datetime(2026, 11, 29, 2, 10, tzinfo=UTC)
TODAY = date(2026, 11, 29)
CORE = "python/test/unit/language/test_core.py"
TLX = "python/test/unit/language/test_tlx_dot.py"
TESTS = (
    *(f"{CORE}::test_dot[{m}-{n}-float16]" for m in (16, 32) for n in (16, 32)),
    f"{CORE}::test_reduce",
    f"{CORE}::TestAtomic::test_add",
    f"{TLX}::test_async_dot",
    f"{TLX}::test_async_dot_scaled",
)
ALL = sorted(TESTS)
IN_TLX = [test for test in ALL if test.startswith(TLX)]
LIT = tuple(f"TRITON :: {path}" for path in ("Conversion/a_to_b.mlir", "Conversion/Deep.Dir/x.mlir", "top.mlir"))
GTEST = ("LinearLayout.Identity", "LinearLayout.Zeros", "Shapes/Swizzle.Test/0", "Shapes/Swizzle.Test/1")


def case(test: str, body: str = "", **attributes: str) -> str:
    """A JUnit element as pytest writes it."""
    path, *inner, name = test.partition("[")[0].split("::")
    name += test.partition("[")[1] + test.partition("[")[2]
    classname = ".".join([path.removesuffix(".py").replace("/", "."), *inner])
    more = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
    return f"<testcase classname={quoteattr(classname)} name={quoteattr(name)} time='0.01'{more}>{body}</testcase>"


def junit(
    cases: list[str],
    *,
    tests: int | None = None,
    failures: int = 0,
    at: str = "2026-11-29T02:11:09.18+00:00",
    extra: str = "",
    head: str = "<?xml version='1.0' encoding='utf-8'?>",
) -> bytes:
    count = len(cases) if tests is None else tests
    return (
        f"{head}<testsuites name='pytest tests'><testsuite name='pytest' errors='0' failures='{failures}' "
        f"tests='{count}' timestamp='{at}'>{extra}{''.join(cases)}</testsuite></testsuites>"
    ).encode()


def passing(tests: tuple[str, ...] | list[str] = TESTS) -> list[str]:
    return [case(test) for test in tests]


FAIL = "<failure message='Mismatched elements'>E   Mismatched elements</failure>"
SKIP = "<skipped type='pytest.skip' message='requires a GPU'>requires a GPU</skipped>"


def run(
    report: bytes | None = None,
    *,
    suites: tuple[SuiteManifest, ...] | None = None,
    reports: dict[str, bytes] | None = None,
    kind: str = "junit",
    tests: tuple[str, ...] = TESTS,
    conclusion: str | None = "success",
    exit_code: int | None = 0,
    log: str | None = None,
    skipped: tuple[str, ...] = (),
    diff: TestChanges | None = None,
    waivers: tuple[Exemption, ...] = (),
    canary: str | None = None,
) -> Judgement:
    return judge(
        job=Job(SHA, STARTED, conclusion, exit_code, "h100", log.encode() if log is not None else None),
        manifest=suites or (SuiteManifest("unit", tests, "unit.xml", kind, canary),),
        last_green=LastGreen(skipped),
        diff=diff or TestChanges(),
        waivers=waivers,
        reports=reports if reports is not None else ({} if report is None else {"unit.xml": report}),
        today=TODAY,
    )


def red(report: bytes | None = None, **more: Any) -> Judgement:
    return run(report, **{"conclusion": "failure", "exit_code": 1, **more})


def says(judgement: Judgement, verdict: str, missing: list[str] | tuple[str, ...] = ()) -> None:
    assert (judgement.verdict.value, sorted(judgement.missing)) == (verdict, sorted(missing)), judgement.findings
