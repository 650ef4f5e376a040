"""Result files as values: ids that meet whatever the format, and what a broken file still tells."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from bot.core.reports import key, module_of, moment, parse, parse_json, parse_log, parse_xml, running_at_end
from bot.core.validation import TestOutcome


@pytest.mark.parametrize(
    ("test", "same"),
    [
        ("a/b/test_c.py::test_d[1-x::y]", "a.b.test_c|test_d[1-x::y]"),
        ("./a/test_c.py::K::test_d", "a.test_c.K|test_d"),
        ("TRITON :: Conv/Deep.Dir/x.mlir", "TRITON.Conv.Deep_Dir|x.mlir"),
        ("TRITON :: top.mlir", "TRITON.TRITON|top.mlir"),
        ("Inst/Suite.Test/0", "Inst.Suite|Test/0"),
        ("smoke", "|smoke"),
    ],
)
def test_keys(test: str, same: str) -> None:
    assert key(test) == same


def test_modules() -> None:
    assert module_of("a/test_c.py::K::test_d[x]") == "a.test_c"
    assert module_of("S :: a/x.mlir") == "S.a"


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-11-29T02:11:09.184411+00:00", datetime(2026, 11, 29, 2, 11, 9, 184411, tzinfo=UTC)),
        ("2026-11-29T02:11:09", datetime(2026, 11, 29, 2, 11, 9, tzinfo=UTC)),
        ("2026-11-29T02:11:09.1844110Z", datetime(2026, 11, 29, 2, 11, 9, 184411, tzinfo=UTC)),
        ("2026-11-29 04:11:09+0200", datetime(2026, 11, 29, 2, 11, 9, tzinfo=UTC)),
        ("yesterday", None),
        ("2026-13-41T99:00:00", None),
        (None, None),
    ],
)
def test_times(text: str | None, at: datetime | None) -> None:
    assert moment(text) == at


def test_a_junit_element_gives_its_place_message_and_time() -> None:
    report = parse_xml(
        b"<testsuite tests='1' failures='1' timestamp='2026-11-29T02:11:09'><testcase classname='a.test_b.Kind' "
        b"name='test_c[1]' file='a/test_b.py' line='7' time='0.25'><failure message='short'>long\ntext</failure>"
        b"</testcase></testsuite>"
    )
    (test,) = report.tests
    assert (test.id, test.file, test.line, test.duration) == ("a/test_b.py::Kind::test_c[1]", "a/test_b.py", 7, 0.25)
    assert test.message == "short\nlong\ntext"
    assert (report.declared, report.declared_bad, report.complete) == (1, 1, True)
    assert test.at == datetime(2026, 11, 29, 2, 11, 9, tzinfo=UTC)


def test_a_million_levels_do_not_break_the_reader() -> None:
    assert parse_xml(b"<a>" * 200_000).tests == ()
    assert parse_json(b"[" * 200_000).readable is False


def test_a_huge_report_is_read_in_good_time() -> None:
    cases = "".join(f"<testcase classname='m.test_x' name='test[{n}]'/>" for n in range(20_000))
    whole = f"<testsuite tests='20000'>{cases}</testsuite>".encode()
    assert len(parse_xml(whole).tests) == 20_000
    assert len(parse_xml(whole.replace(b"name='test[5]'", b"name='test[5]' & ", 1)).tests) == 19_999


@pytest.mark.parametrize("filler", ["<testcase ", "<testcase name='a", '<testcase a="' * 3, "<testcase name='x'>"])
def test_hostile_xml_takes_no_quadratic_time(filler: str) -> None:
    assert parse_xml(("<a>&" + filler * 20_000).encode()).complete is False


def test_the_format_is_recognised_where_the_name_is_wrong() -> None:
    body = json.dumps({"tests": [{"name": "a", "code": "FAIL"}]}).encode()
    assert parse("junit", body).tests[0].outcome is TestOutcome.FAILED
    assert parse("lit-json", b"<testsuite><testcase name='a'/></testsuite>").tests[0].outcome is TestOutcome.PASSED
    assert parse("unheard-of", b"PASS: S :: a (1 of 1)").tests[0].outcome is TestOutcome.PASSED


def test_lines_of_gtest_and_lit_in_a_log() -> None:
    text = b"[ RUN      ] A.b\n[       OK ] A.b (0 ms)\n[ RUN      ] A.c\n"
    text += b"PASS: S :: x.t (1 of 2)\nXPASS: S :: y.t (2 of 2)\n"
    found = {test.id: test.outcome.value for test in parse_log(text).tests}
    assert found == {"A.b": "passed", "S :: x.t": "passed", "S :: y.t": "failed"}
    assert running_at_end(b"[ RUN      ] A.c\nSegmentation fault\n") == "A.c"
    assert running_at_end(b"t.py::test_a \nFatal Python error: Aborted\n") == "t.py::test_a"


def test_text_that_only_looks_like_results() -> None:
    noise = b"E   FAILED to open\nPASSED by reference\nassert x == 'a.py::test_b PASSED'\n>   t.py::x\n"
    assert parse_log(noise).tests == ()


def test_a_failure_in_a_log_is_not_taken_back() -> None:
    text = b"t.py::a FAILED [ 50%]\nt.py::a PASSED [100%]\n== 1 failed in 1s =="
    (test,) = parse_log(text).tests
    assert test.outcome is TestOutcome.FAILED


def test_rerun_lines_are_no_result() -> None:
    (test,) = parse_log(b"t.py::a RERUN [ 50%]\nt.py::a PASSED [100%]\n== 1 passed, 1 rerun in 1s ==").tests
    assert test.outcome is TestOutcome.PASSED
