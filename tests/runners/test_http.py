"""The http harness against a lab over real HTTP: what it says, what it fails to say, and who sees the credential."""

from __future__ import annotations

import asyncio
import json
import re
import textwrap
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response

from bot.clients.store import RunState, Store
from bot.core.config import Suite, load
from bot.core.types import Level, Outcome
from bot.core.validation import Report, RunRequest
from runners.execute import Machine, Work, execute
from runners.harnesses.lab_answers import Status
from runners.labs import Credential, origin
from runners.redact import redactor
from tests.handlers.runs import gated
from tests.runners.hired import hired
from tests.runners.lab import CANARY, PASS, TOKEN, Lab, lab
from tests.runners.world import commit, world

COMMIT = "1" * 40
OTHER = {"repository": "a/b", "commit": "2" * 40}


@pytest.fixture
async def there() -> AsyncIterator[Lab]:
    async with lab() as made:
        yield made


def request(url: str, *, timeout: str = "60s", credential: str | None = "main", expected: tuple[str, ...] = (),
            unanswered: str = "20s", **suite: Any) -> RunRequest:  # fmt: skip
    said = {"url": url, "poll": "0.01s", "unanswered": unanswered, "credential": credential}
    made = Suite.model_validate({"suite": "s", "harness": "http", "timeout": timeout, "lab": said, **suite})
    return RunRequest(
        run_id="r1", repository="a/b", commit=COMMIT, level=Level.L2, suite=made, git_path="/x", expected=expected
    )


async def hand(
    tmp_path: Path, asked: RunRequest, *, cancelled: asyncio.Event | None = None, output: list[str] | None = None,
    at: str | None = None,
) -> Report:  # fmt: skip
    assert asked.suite.lab is not None
    shown = {"main": Credential("main", origin(at or asked.suite.lab.url), TOKEN)}
    said = output if output is not None else []
    work = Work(
        request=asked, source=tmp_path, folder=tmp_path, cache=tmp_path, machine=Machine("one", labs=shown),
        output=said.append, redact=redactor([TOKEN]), cancelled=cancelled,
    )  # fmt: skip
    return await execute(work)


async def test_a_lab_s_report_is_the_run_s(there: Lab, tmp_path: Path) -> None:
    there.answers = {
        "log": f"begin\nAuthorization: Bearer {TOKEN}\nend\n",
        "report": {
            "outcome": "passed",
            "tests": [{**PASS, "message": f"by {TOKEN}"}],
            "measurements": [{"metric": "ne", "samples": [0.8]}],
            "environment": {"host": "lab-7", "gpus": [{"index": 0, "model": "H100"}]},
            "gpu_seconds": 40.5,
        },
    }
    said: list[str] = []
    report = await hand(tmp_path, request(there.url, run=["train", "--steps", "9"]), output=said)
    assert report.outcome is Outcome.PASSED, report
    assert [(m.metric, m.samples) for m in report.measurements] == [("ne", (0.8,))]
    assert (report.environment.runner, report.environment.host, report.gpu_seconds) == ("one", "lab-7", 40.5)
    assert (report.subject.commit, report.level, report.manifest.canary) == (COMMIT, Level.L2, None)
    assert report.log_tail.splitlines() == ["begin", "Authorization: Bearer ***", "end"]
    assert TOKEN not in report.model_dump_json() + "".join(said)
    job = there.jobs["r1-1"]
    assert (job["commit"], job["command"], job["level"]) == (COMMIT, ["train", "--steps", "9"], "l2")
    assert not there.deleted


@pytest.mark.parametrize(
    ("said", "outcome", "words"),
    [
        ({"report": {"outcome": "passed", "tests": [PASS]}}, Outcome.OMITTED, "1 of 2 expected tests did not report"),
        ({"report": {"outcome": "passed", "tests": []}}, Outcome.OMITTED, ""),
        (
            {"report": {"outcome": "passed", "tests": [PASS, {"id": "b", "outcome": "failed"}]}},
            Outcome.FAILED,
            "1 of 2 tests failed",
        ),
        ({"report": {"outcome": "timed_out", "tests": [PASS]}}, Outcome.TIMED_OUT, ""),
        ({"report": {"outcome": "passed", "manifest": {"canary": False}, "tests": [PASS]}}, Outcome.INFRA, "blind"),
        ({"report": {"outcome": "passed", "tests": [PASS, {**CANARY, "outcome": "passed"}]}}, Outcome.INFRA, "blind"),
        ({"report": {"outcome": "passed", "tests": [PASS, {**CANARY, "outcome": "skipped"}]}}, Outcome.INFRA, "blind"),
        (
            {"report": {"outcome": "passed", "subject": {"repository": "a/b", "commit": "2" * 40}}},
            Outcome.INFRA,
            "2222",
        ),
        ({"report": {"outcome": "passed", "suite": "other"}}, Outcome.INFRA, "other, not"),
        ({"report": {"outcome": "fine"}}, Outcome.INFRA, "not valid: outcome"),
        ({"report": {"tests": [PASS]}}, Outcome.INFRA, "not valid: outcome"),
        ({"report": {"outcome": "passed", "measurements": [{"metric": "x", "samples": []}]}}, Outcome.INFRA, "samples"),
        ({"report": None}, Outcome.INFRA, "no result"),
        ({"report": {"outcome": "passed"}, "junit": "<testsuite/>"}, Outcome.INFRA, "two results"),
        ({"junit": "<testsuites><testsuite><testcase"}, Outcome.INFRA, "JUnit"),
        ({"junit": ""}, Outcome.INFRA, "JUnit"),
        ({"junit": '<testsuite tests="1"><testcase name="b"><failure/></testcase></testsuite>'}, Outcome.FAILED, ""),
        ({"junit": '<testsuite tests="3" failures="2"></testsuite>'}, Outcome.FAILED, "counts 2 failures"),
        ({"junit": '<testsuite tests="0"></testsuite>'}, Outcome.OMITTED, ""),
        ({"state": "error", "reason": "no machine is free"}, Outcome.INFRA, "could not run the job: no machine"),
        ({"state": "cancelled"}, Outcome.INFRA, "cancelled the job: no reason"),
        ({"state": "finished"}, Outcome.INFRA, "state"),
        ({"commit": "2" * 40}, Outcome.INFRA, "is about commit '2222"),
        ({"job": "job-9"}, Outcome.INFRA, "is about job 'job-9'"),
        ({"key": "r2-1"}, Outcome.INFRA, "is about submission 'r2-1'"),
        ({"protocol": 2}, Outcome.INFRA, "protocol"),
    ],
)
async def test_what_a_lab_says_counts_as_what_it_is(
    there: Lab, tmp_path: Path, said: dict[str, Any], outcome: Outcome, words: str
) -> None:
    there.answers = {"report": {"outcome": "passed", "tests": [PASS]}, **said}
    if "junit" in said and "report" not in said:
        del there.answers["report"]
    report = await hand(tmp_path, request(there.url, expected=("model::converges", "b")))
    assert (report.outcome, words in report.reason) == (outcome, True), report.reason


@pytest.mark.parametrize("name", ['name="graft::canary"', 'classname="graft" name="canary"'])
async def test_a_lab_that_adds_the_canary_shows_that_it_reports_failures(there: Lab, tmp_path: Path, name: str) -> None:
    there.answers = {"report": {"outcome": "passed", "tests": [PASS, CANARY]}}
    report = await hand(tmp_path, request(there.url, expected=("model::converges",)))
    assert (report.outcome, report.manifest.canary) == (Outcome.PASSED, True), report.reason
    assert [test.id for test in report.tests] == ["model::converges"]  # it is none of the suite's
    assert (there.jobs["r1-1"]["canary"], there.jobs["r1-1"]["add_canary"]) == (None, "graft::canary")

    bad = f'<testcase {name}><failure message="it has to"/></testcase>'
    there.answers = {"junit": f'<testsuite tests="2" failures="1"><testcase name="b"/>{bad}</testsuite>'}
    again = request(there.url).model_copy(update={"attempt": 2})
    report = await hand(tmp_path, again)
    assert (report.outcome, report.manifest.canary, [t.id for t in report.tests]) == (Outcome.PASSED, True, ["b"])

    # a suite that names its own is asked for that one, which has to be there
    own = request(there.url, canary="model::breaks").model_copy(update={"attempt": 3})
    report = await hand(tmp_path, own)
    assert (report.outcome, report.manifest.canary) == (Outcome.FAILED, False), report.reason
    assert (there.jobs["r1-3"]["canary"], there.jobs["r1-3"]["add_canary"]) == ("model::breaks", None)


async def test_junit_that_is_whole_passes(there: Lab, tmp_path: Path) -> None:
    there.answers = {"junit": '<testsuite name="s" tests="1"><testcase classname="m" name="converges"/></testsuite>'}
    report = await hand(tmp_path, request(there.url))
    assert (report.outcome, [test.outcome.value for test in report.tests]) == (Outcome.PASSED, ["passed"]), report


async def test_a_submission_said_twice_is_one_job(there: Lab, tmp_path: Path) -> None:
    def twist(what: str, count: int, job: dict[str, Any]) -> Response | None:
        if what == "post" and count < 4:
            bad = [
                Response(status_code=502),
                Response('{"protocol": 1, "jo'),
                JSONResponse({}, 429, {"Retry-After": "0"}),
            ]
            return bad[count - 1]
        if what == "get" and count < 3:
            return Response(b"<html>a proxy is restarting</html>", 503)
        return None

    there.twist = twist
    report = await hand(tmp_path, request(there.url))
    assert report.outcome is Outcome.PASSED, report
    assert (there.count("post"), list(there.jobs)) == (4, ["r1-1"])
    again = await hand(tmp_path, request(there.url).model_copy(update={"attempt": 2}))
    assert (again.outcome, list(there.jobs)) == (Outcome.PASSED, ["r1-1", "r1-2"])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Response('{"protocol": 1, "key": "r1'), "cut off"),
        (Response(status_code=500), "500"),
        (JSONResponse({"error": "slow down"}, 429, {"Retry-After": "3600"}), "429"),
        (Response(status_code=404), "knows no job job-1 any more (404)"),
        (Response(status_code=403), "403"),
        (Response("[" * 100_000), "can't be read"),
        (Response(b'{"protocol": "\xff"}'), "can't be read"),
        (Response(status_code=303), "more than 5 redirects"),
    ],
)
async def test_a_lab_that_gives_no_usable_answer_is_infra_and_its_job_is_called_off(
    there: Lab, tmp_path: Path, answer: Response, words: str
) -> None:
    there.twist = lambda what, _count, _job: answer if what == "get" else None
    report = await hand(tmp_path, request(there.url, unanswered="2s"))
    assert (report.outcome, words in report.reason) == (Outcome.INFRA, True), report.reason
    assert there.deleted == ["r1-1"]


async def test_a_lab_that_hangs_or_is_not_there_is_infra(tmp_path: Path) -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        report = await hand(tmp_path, request(f"http://127.0.0.1:{port}", unanswered="0.3s"))
        assert (report.outcome, "no usable answer for 0.3 s" in report.reason) == (Outcome.INFRA, True), report.reason
    report = await hand(tmp_path, request(f"http://127.0.0.1:{port}", unanswered="0.3s"))
    assert (report.outcome, "ConnectError" in report.reason) == (Outcome.INFRA, True), report.reason


async def test_a_redirect_is_followed_at_home_and_nowhere_else(there: Lab, tmp_path: Path) -> None:
    home = there.url.replace("/api", "/moved")
    assert (await hand(tmp_path, request(home))).outcome is Outcome.PASSED
    async with lab() as other:
        other.token = None
        for attempt, what in enumerate(("post", "get"), 2):

            def twist(asked: str, _count: int, _job: dict[str, Any], what: str = what) -> Response | None:
                return RedirectResponse(f"{other.url}/runs/job-1", 307) if asked == what else None

            there.twist = twist
            report = await hand(tmp_path, request(there.url).model_copy(update={"attempt": attempt}))
            assert report.outcome is Outcome.INFRA
            assert f"redirects to another host, which is not followed: http://127.0.0.1:{other.port}" in report.reason
        assert not other.asked


async def test_the_credential_goes_to_its_lab_only_and_must_be_there(there: Lab, tmp_path: Path) -> None:
    for asked, at, words in (
        (request(there.url), "https://lab.example.com", "is for https://lab.example.com:443, the suite's lab is"),
        (request(there.url, credential="other-lab"), None, "set GRAFT_LAB_OTHER_LAB_URL and GRAFT_LAB_OTHER_LAB_TOKEN"),
    ):
        report = await hand(tmp_path, asked, at=at)
        assert (report.outcome, words in report.reason) == (Outcome.INFRA, True), report.reason
    assert not there.asked
    report = await hand(tmp_path, request(there.url, credential=None))
    assert (report.outcome, "401" in report.reason, "credential" in report.reason) == (Outcome.INFRA, True, True)
    assert {header for _, header in there.asked} == {None}


async def test_the_time_limit_and_the_word_to_stop_call_the_job_off(there: Lab, tmp_path: Path) -> None:
    there.looks_until_done = 1_000_000
    late = await hand(tmp_path, request(there.url, timeout="0.5s"))
    assert (late.outcome, there.deleted) == (Outcome.TIMED_OUT, ["r1-1"]), late
    assert "the lab was told" in late.reason
    stop = asyncio.Event()
    task = asyncio.create_task(hand(tmp_path, request(there.url).model_copy(update={"attempt": 2}), cancelled=stop))
    async with asyncio.timeout(30):
        while "r1-2" not in there.jobs or not there.jobs["r1-2"]["looks"]:  # noqa: ASYNC110 - it is on the lab
            await asyncio.sleep(0.01)
    stop.set()
    assert (await task).outcome is Outcome.CANCELLED
    assert there.deleted == ["r1-1", "r1-2"]


async def test_a_job_whose_number_was_never_learned_is_called_off_by_its_key(there: Lab, tmp_path: Path) -> None:
    there.twist = lambda what, _count, _job: Response(status_code=502) if what == "post" else None
    report = await hand(tmp_path, request(there.url, unanswered="0.3s"))
    assert (report.outcome, there.deleted) == (Outcome.INFRA, ["r1-1"]), report


async def test_a_run_goes_through_a_runner_to_a_lab_and_is_called_off_when_superseded(
    there: Lab, tmp_path: Path, sqlite_store: Store
) -> None:
    async with world(tmp_path, sqlite_store) as bot:
        made = commit(tmp_path / "fork", {"a": "b"})
        bot.publish(tmp_path / "fork")
        shown = {"main": Credential("main", origin(there.url), TOKEN)}
        service = bot.runner(labs=shown)
        suite = request(there.url).suite
        run = await bot.done(await bot.offer(made, suite, expected=("model::converges",)))
        assert run.outcome == Outcome.PASSED, run.report
        assert not list((tmp_path / "runner-one" / "objects").iterdir())
        log = (bot.context.settings.data / "runs" / run.id / "1.log").read_text()
        assert "job job-1: done" in log
        assert TOKEN not in log
        there.looks_until_done = 1_000_000
        second = await bot.offer(made, suite)
        await bot.until(second, lambda run: run.state is RunState.LEASED)
        await there.until_asked("get")
        await bot.store.finish_run(second, outcome="cancelled", report=None, now=datetime.now(UTC))
        async with asyncio.timeout(60):
            while service._active:  # noqa: ASYNC110 - the runner has no event for it
                await asyncio.sleep(0.02)
        assert there.deleted == [f"{second}-1"]


async def test_the_page_on_the_protocol_shows_what_is_said(there: Lab, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "lab-protocol.md").read_text()
    submitted, status, report = (
        json.loads(textwrap.dedent(part).replace("<40 hex digits>", COMMIT))
        for part in re.findall(r"^ *```json\n(.*?)^ *```", page, re.DOTALL | re.MULTILINE)
    )
    there.answers = {"report": report}
    asked = request(there.url, metrics=["ne"], run=submitted["command"], timeout="4h")
    assert (await hand(tmp_path, asked)).outcome is Outcome.PASSED
    assert {*submitted} == {*there.jobs["r1-1"]} - {"job", "looks"}
    assert submitted["add_canary"] == there.jobs["r1-1"]["add_canary"]
    assert Status.model_validate(status).model_dump(exclude_none=True) == status
    yaml = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0]
    suite = load("upstream: {repository: a/b}\nareas: {}\n" + yaml).validation.l3[0]
    assert (suite.lab is not None and suite.lab.credential, suite.metrics) == ("servicelab", ("ne", "qps"))


HANDED = """
upstream: {repository: up/pkg}
mode: act
default_owner: mark
areas:
  core: {paths: [lib/**], owners: [olga]}
validation:
  l1:
    - {suite: model, area: core, harness: http, run: [train], retries: 0,
       lab: {url: "<url>", credential: main, poll: 0.01s, unanswered: 20s}}
"""


async def test_a_lab_that_showed_its_canary_on_trunk_is_blind_without_it(there: Lab, tmp_path: Path) -> None:
    async with gated(tmp_path, config=HANDED.replace("<url>", there.url)) as fork:
        shown = {"main": Credential("main", origin(there.url), TOKEN)}
        async with hired(fork, tmp_path / "runner", labs=shown) as runner:
            await runner.works()  # it never showed one
            number = await fork.opens("walter", "small", {"other.txt": "two\n"})
            await runner.works()
            assert fork.gate(number).startswith("allow")
            assert "no canary" in "\n".join(fork.world.comments(number))

            there.answers = {"report": {"outcome": "passed", "tests": [PASS, CANARY]}}
            await fork.sets({"docs/text.txt": "two\n"})
            await runner.works()
            await fork.pushes("walter", "small", {"other.txt": "three\n"})
            await runner.works()
            assert fork.gate(number).startswith("allow")
            assert "no canary" not in fork.world.comments(number)[0]

            there.answers = {"report": {"outcome": "passed", "tests": [PASS]}}  # somebody broke its reporting
            await fork.pushes("walter", "small", {"other.txt": "four\n"})
            await runner.works()
            check = fork.check(fork.head(number), "graft/l1")
            assert (check.conclusion, check.title) == ("failure", "L1 infra")
            assert "the harness is blind" in check.summary

            # set up otherwise, it begins anew
            changed = HANDED.replace("<url>", there.url).replace("[train]", "[train, --all]")
            await fork.sets({".github/graft.yml": changed})
            await runner.works()
            await fork.pushes("walter", "small", {"other.txt": "five\n"})
            await runner.works()
            assert fork.gate(number).startswith("allow")
