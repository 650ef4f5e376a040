from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bot.core.command import BY_NAME, MAX_COMMANDS, TABLE, Command, Malformed, help_text, parse
from bot.core.command import values as v
from bot.core.command.table import Role
from bot.core.types import Level

L1, L2, L3 = Level


def args(body: str) -> list[v.Arguments]:
    found = parse(body)
    assert all(isinstance(one, Command) for one in found), found
    return [one.args for one in found if isinstance(one, Command)]


SHA = "1a2b3c4d5e"
WAIVE = '/waive unit::test_dot until=2026-12-31 owner=@octocat reason="driver" plan="new driver"'
WAIVED = v.Waive("unit::test_dot", date(2026, 12, 31), "octocat", "driver", "new driver")

READ: list[tuple[str, list[v.Arguments]]] = [
    ("/validate l2\r\nplease", [v.Validate(L2)]),  # C56
    ("/validate l2\n/validate l1", [v.Validate(L2), v.Validate(L1)]),
    ("/validate l2\r/retry\r\n/help", [v.Validate(L2), v.Retry(), v.Help()]),
    ("/validate l2 please", [v.Validate(L2)]),  # C59
    ("/validate L2, please!", [v.Validate(L2)]),
    ("/validate l2 🙏 thanks", [v.Validate(L2)]),
    ("/VALIDATE l1", [v.Validate(L1)]),
    ("/validate l2 gemm-sweep lit", [v.Validate(L2, ("gemm-sweep", "lit"))]),
    ("/validate l2 gemm-sweep, lit", [v.Validate(L2, ("gemm-sweep", "lit"))]),
    ("/validate l3 force=yes", [v.Validate(L3, (), True)]),
    ("\ufeff/retry", [v.Retry()]),
    ("/validate\u00a0l2", [v.Validate(L2)]),
    ("/validate\tl2", [v.Validate(L2)]),
    (
        '/signoff l3 recsys ne=0.8012 qps=+1.2% run=r-77 evidence=https://x.org/a?b=c note="looks good"',
        [
            v.Signoff(
                L3,
                "recsys",
                (v.MetricText("ne", 0.8012, False, "0.8012"), v.MetricText("qps", 0.012, True, "+1.2%")),
                "r-77",
                "https://x.org/a?b=c",
                "looks good",
            )
        ],
    ),
    ("/signoff l3 recsys ne=−0.5%", [v.Signoff(L3, "recsys", (v.MetricText("ne", -0.005, True, "−0.5%"),))]),
    ("/signoff l3 recsys ne=1e-3", [v.Signoff(L3, "recsys", (v.MetricText("ne", 0.001, False, "1e-3"),))]),
    ("/signoff l3 core note=“phone quotes”", [v.Signoff(L3, "core", note="phone quotes")]),
    ("/signoff l3 core note=„deutsch“", [v.Signoff(L3, "core", note="deutsch")]),
    ("/signoff l3 core note='it's fine'", [v.Signoff(L3, "core", note="it's fine")]),
    (r'/signoff l3 core note="a \"b\" \\"', [v.Signoff(L3, "core", note='a "b" \\')]),
    ("/unsign l3 recsys", [v.Unsign(L3, "recsys")]),
    ("/unsign recsys", [v.Unsign(L3, "recsys")]),
    ("/unsign", [v.Unsign(L3)]),
    (WAIVE, [WAIVED]),
    (WAIVE.replace("2026-12-31", "2026–12–31"), [WAIVED]),
    (WAIVE.replace('"driver"', "“driver”"), [WAIVED]),
    (
        WAIVE.replace("unit::test_dot", '"python/t.py::test_dot[x y=1]"'),
        [v.Waive("python/t.py::test_dot[x y=1]", date(2026, 12, 31), "octocat", "driver", "new driver")],
    ),
    (
        WAIVE.replace("unit::test_dot", "python/t.py::test_dot[dtype=fp16]"),
        [v.Waive("python/t.py::test_dot[dtype=fp16]", date(2026, 12, 31), "octocat", "driver", "new driver")],
    ),
    (
        WAIVE.replace("@octocat", "my-org/tlx"),
        [v.Waive(*(WAIVED.scope, WAIVED.until, "my-org/tlx", "driver", "new driver"))],
    ),
    (f'/defer {SHA} reason="needs LLVM" owner=@x', [v.Defer(SHA, "needs LLVM", "x")]),
    (f"/defer {SHA.upper()} reason=later", [v.Defer(SHA, "later")]),
    (f'/defer https://github.com/a/b/commit/{SHA} reason="x"', [v.Defer(SHA, "x")]),
    ('/defer #8592 reason="x"', [v.Defer("#8592", "x")]),
    ('/defer https://github.com/a/b/pull/8592 reason="x"', [v.Defer("#8592", "x")]),
    (f'/wont-port {SHA} reason="ours is better"', [v.WontPort(SHA, "ours is better")]),
    (f'/wont–port {SHA} reason="x"', [v.WontPort(SHA, "x")]),
    (f"/skip {SHA}", [v.Skip(SHA)]),
    (f"/pick {SHA} please", [v.Pick(SHA)]),
    ("/retry please", [v.Retry()]),
    ("/rebase", [v.Rebase()]),
    ("/rollback", [v.Rollback()]),
    ("/rollback 1a2b3c4", [v.Rollback("1a2b3c4")]),
    ("/explain", [v.Explain()]),
    (f"/explain {SHA}", [v.Explain(SHA)]),
    (f"/split {SHA} {SHA} abcdef0", [v.Split((SHA, "abcdef0"))]),
    ("/split", [v.Split()]),
    ("/bisect gemm-sweep please", [v.Bisect("gemm-sweep")]),
    ("/bisect stop", [v.Bisect(None, True)]),
    ("/bisect python/t.py::test[a]", [v.Bisect("python/t.py::test[a]")]),
    ("/ok-to-test", [v.OkToTest()]),
    ("/ok‑to‑test", [v.OkToTest()]),
    ("/help", [v.Help()]),
    ("/help /Waive", [v.Help("waive")]),
    ("text before\n/retry\ntext after", [v.Retry()]),
    ("> a quote\n/retry", [v.Retry()]),
    ("```\n/validate l1\n```\n/retry", [v.Retry()]),
    ("~~~\n/validate l1\n```\n~~~\n/retry", [v.Retry()]),
    ("````\n```\n/validate l1\n````\n/retry", [v.Retry()]),
    ("<!-- x -->\n/retry", [v.Retry()]),
    ("text <!-- never closed\n/retry", [v.Retry()]),
    ("a ` stray backtick\n\n/retry\n\nand ` one more", [v.Retry()]),
    ("`<!--`\n/retry\n`-->`", [v.Retry()]),
    (r"\`a" + "\n/retry\n`b", [v.Retry()]),
    ("- `a\n- b`\n/retry", [v.Retry()]),
]


@pytest.mark.parametrize(("body", "expected"), READ)
def test_what_is_read(body: str, expected: list[v.Arguments]) -> None:
    assert args(body) == expected


NONE = [
    "",
    "/validated l2",  # C57
    "> /validate l2",
    ">/validate l2",
    "please /validate l2",
    " /validate l2",
    "    /validate l2",
    "\t/validate l2",
    "- /validate l2",
    "`/validate l2`",
    "`a\n/validate l2\nb`",
    "``a ` \n/validate l2\n``",
    "```\n/validate l2\n```",
    "```sh\n/validate l2",
    "~~~\n/validate l2\n~~~",
    "  ```\n/validate l2\n  ```",
    "- a\n\n      ```\n/validate l2\n      ```",
    "<!--\n/validate l2\n-->",
    "<!--\n\n/validate l2",
    "text <!-- a\n/validate l2\n--> b",
    "<!-- a\n```\n/validate l2\n-->",
    "<pre>\n/validate l2\n</pre>",
    "<PRE>\n\n/validate l2\n\n</PRE>",
    "<details><code>\n/validate l2\n</code></details>",
    "/usr/bin/env l2",
    "/validate/l2",
    "/validate-l2",
    "/validate: l2",
    "//validate l2",
    "/\u200bvalidate l2",
    "\\/validate l2",
    "/lgtm",
    "@graft validate l2",
    "a\u2028/validate l2",
    "a\x0b/validate l2",
    "a\x85/validate l2",
]


@pytest.mark.parametrize("body", NONE)
def test_what_is_no_command(body: str) -> None:
    assert parse(body) == ()


WRONG = [
    ("/validate 12", "did you mean l2"),
    ("/validate", "level is missing"),
    ("/validate l2 foo=1", "foo= means nothing"),
    ("/validate l2 force=maybe", "yes or no"),
    ("/signoff l2 core", "only l3"),
    ("/signoff l3", "area is missing"),
    ("/signoff l3 core ne=abc", "no number"),
    ("/signoff l3 core ne=nan", "no number"),
    ("/signoff l3 core ne=inf", "no number"),
    ("/signoff l3 core ne=1e999", "no number"),
    ("/signoff l3 core ne=1 ne=2", "stands twice"),
    ("/signoff l3 core looks fine", "neither metric=value"),
    ("/signoff l3 core evidence=javascript:alert(1)", "https://"),
    ('/signoff l3 core note="never closed', "never closes"),
    ("/waive", "name one test"),
    ("/waive a b until=2026-12-31 owner=x reason=r plan=p", "name one test"),
    (WAIVE.replace("owner=@octocat", ""), "owner= is missing"),
    (WAIVE.replace('reason="driver"', ""), "reason= is missing"),
    (WAIVE.replace('reason="driver"', 'reason=" "'), "reason= is missing"),
    (WAIVE.replace('plan="new driver"', ""), "plan= is missing"),
    (WAIVE.replace("until=2026-12-31", ""), "until= is missing"),
    (WAIVE.replace("2026-12-31", "2026-02-30"), "no date"),
    (WAIVE.replace("2026-12-31", "tomorrow"), "no date"),
    (WAIVE.replace("@octocat", "@oc to"), "name one test"),
    (WAIVE.replace("@octocat", "@-x"), "names nobody"),
    (f"/defer {SHA}", "reason= is missing"),
    ('/defer reason="x"', "commit is missing"),
    ('/defer abc reason="x"', "names no commit"),
    (f'/defer {SHA} {SHA} reason="x"', "one commit at a time"),
    (f"/wont-port {SHA}", "reason= is missing"),
    ("/pick", "commit is missing"),
    ("/bisect", "missing"),
    ("/bisect a b", "too much"),
    ("/retry now=1", "means nothing"),
    (f'/defer {SHA} reason="{"x" * 4001}"', "longer than"),
    ("/signoff l3 !!a", "can't be the name"),
    ("/unsign l2 core", "nothing of l2"),
    ("/unsign l3 core tlx", "one area at a time"),
    (f"/waive {'x' * 501} until=2026-12-31 owner=x reason=r plan=p", "at most 500"),
]


@pytest.mark.parametrize(("body", "problem"), WRONG)
def test_what_gets_one_helpful_answer(body: str, problem: str) -> None:
    (found,) = parse(body)
    assert isinstance(found, Malformed)
    assert problem in found.problem
    assert found.usage == BY_NAME[found.name].syntax


def test_lines_and_places_are_counted() -> None:
    first, second = parse("hello\n/retry\n\n/validate 12")
    assert (first.line, first.index, first.text) == (2, 0, "/retry")
    assert (second.line, second.index, second.text) == (4, 1, "/validate 12")


def test_too_many_commands_are_told_once() -> None:
    found = parse("/retry\n" * 100)
    assert len(found) == MAX_COMMANDS + 1
    assert isinstance(found[-1], Malformed)


def test_every_row_reads_its_own_example_and_help_is_no_command() -> None:
    for spec in TABLE:
        (found,) = parse(spec.example)
        assert isinstance(found, Command), found
        assert found.name == spec.name
        assert spec.example in help_text(spec.name)
        assert parse(help_text(spec.name)) == ()
    assert parse(help_text()) == ()
    assert "did you mean `/waive`" in help_text("wave")
    for spec in TABLE:
        assert spec.summary in help_text()


# -- fuzz ---------------------------------------------------------------------------------------------------------

LINES = st.sampled_from(
    [row[0] for row in READ] + NONE + [row[0] for row in WRONG]
    + ["", "```", "~~~", "    ```", "`", "``", "<!--", "-->", "<pre>", "</pre>", "> ", "- ", "\\", "# h", "---"]
    + ["*", "* a", "1. a", "  - ", "   ", "\t", "  ~~~", "\t```", "<details>", "<foo>", "a `", "`a"]
)  # fmt: skip
BODIES = st.one_of(st.text(max_size=300), st.lists(st.one_of(LINES, st.text(max_size=30)), max_size=12).map("\n".join))
MARKDOWN = MarkdownIt("commonmark")


def starts_a_command(line: str) -> bool:
    match = re.match(r"/([A-Za-z][A-Za-z‐‑‒–—−-]*)(\s|$)", line)
    return match is not None and re.sub("[‐‑‒–—−]", "-", match[1]).lower() in BY_NAME


@settings(max_examples=600, deadline=None)
@given(BODIES)
@example("<!--\n```\n-->\n/retry\n```")
def test_nothing_crashes_and_only_lines_that_are_commands_run(body: str) -> None:
    only_commands_run(body)


def only_commands_run(body: str) -> None:
    """`benchmarks/comment_fuzz.py` asks it of a hundred thousand."""
    lines = re.split(r"\r\n|\n|\r", body.removeprefix("\ufeff"))
    found = parse(body)
    assert [one.index for one in found] == list(range(len(found)))
    for one in found:
        assert starts_a_command(lines[one.line - 1])
        assert lines[one.line - 1].rstrip() == one.text
    if not any(starts_a_command(line) for line in lines):
        assert found == ()


TEXTS = st.lists(st.one_of(LINES, st.text(max_size=20)), max_size=12).map("\n".join)


@settings(max_examples=500, deadline=None)
@given(TEXTS)
@example("    ```\n```\n/validate l2\n```")
@example("```\n    ```\n/validate l2\nplease")
@example("a ` b\n<!--\nc ` d\n/retry")
@example("<details>\n```\n\n```\n/retry")
@example("\t```\n```\n/validate l2\n```")
@example("\xa0```\n```\n/validate l2\n```")
@example("```\n```\xa0\n/validate l2\n```")
@example("- `a\n- b`\n/retry\n  ```\n/validate l2\n  ```\n/validate l2\nplease")
@example("/lgtm\n*\n  ~~~\n/validate l2")
@example("- \n\n  ```\n/retry")
@example("<!--\n* a\n-->\n  ```\n/validate l2")
@example("</pre>\n```\n\t\n ```\n/retry")
@example("<details>\n<!--\n\n```\n`-->`\n/retry")
@example("- x\n<details>\n\t\n  ~~~\n/validate l2")
def test_no_command_stands_in_what_commonmark_calls_code_or_html(body: str) -> None:
    nothing_in_code_runs(body)


def nothing_in_code_runs(body: str) -> None:
    """The parser is held against another one of CommonMark."""
    body = re.sub(r"[\r\x00\ufeff]", "", body)
    quiet = set()
    for token in MARKDOWN.parse(body):
        if token.type in ("fence", "code_block") and token.map:
            quiet |= set(range(token.map[0] + 1, token.map[1] + 1))
        if token.type == "html_block" and token.map and token.content.lstrip().startswith(("<!--", "<pre")):
            quiet |= set(range(token.map[0] + 1, token.map[1] + 1))
    assert not {one.line for one in parse(body)} & quiet


@given(st.lists(LINES, max_size=6).map("\n".join))
def test_what_is_quoted_or_fenced_runs_nothing(body: str) -> None:
    lines = re.split(r"\r\n|\n|\r", body.replace("`", "").replace("~", ""))
    assert parse("\n".join(f"> {line}" for line in lines)) == ()
    assert parse("\n".join(["````", *lines, "````"])) == ()
    assert parse("\n".join(f"    {line}" for line in lines)) == ()


@settings(deadline=None)
@given(st.sampled_from(["`", "```\n", "    ```\n", "~~~~\n", "<!--", "<pre>", "`\n``\n", "\\`", "<!-- -->\n", "> \n"]))
def test_long_hostile_bodies_are_read_in_linear_time(piece: str) -> None:
    assert isinstance(parse(piece * (65_536 // len(piece))), tuple)


def test_every_role_is_told_in_the_table() -> None:
    assert {spec.role for spec in TABLE} == set(Role)
