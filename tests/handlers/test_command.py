"""Commands on real comments: what runs, once, for which commit; what is refused; and that each ends in an answer."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from bot.core.audit import HmacSigner, find_checkpoints, genuine, verify
from tests.handlers.pair import FORK
from tests.handlers.runs import Gated, gated
from tests.world import ROOT


def answers(fork: Gated, number: int, comment: int) -> list[str]:
    """All that was said to one comment."""
    return [c for c in fork.world.comments(number) if f"answer-to {comment} " in c or f"answer-to-edit {comment} " in c]


async def test_what_is_a_command_runs_once_for_the_commit_that_was_meant(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        world, sandbox = fork.world, fork.world.sandbox
        number = await fork.opens("walter", "small", {"lib/code.txt": "two\n"})
        await fork.ends(number)
        walter = sandbox.as_user("walter")

        # C56: several in one comment, carriage returns, prose around them; each runs and has its answer
        answer = await world.says("walter", number, "/validate l2\r\nplease\r\n/explain\r\n/validate l1 please\r\n")
        assert answer.count("✅") + answer.count("❌") == 3
        assert sorted(run.suite for run in await fork.waiting(number)) == ["side", "speed", "unit"]
        await fork.ends(None, level="l2", measured={"ms": [1.0]})
        await fork.ends(number, level="l2", measured={"ms": [1.0]})
        await fork.ends(number)

        # C57: quoted, fenced, hidden, mid-line, a longer word, the bot's own help, and a bot's comment: nothing
        before = len(world.comments(number))
        quiet = "> /validate l1\n\n```\n/validate l1\n```\n<!--\n/validate l1\n-->\nsay /validate l1\n/validated"
        await walter.comment(FORK, number, quiet)
        await world.settle()
        assert len(world.comments(number)) == before + 1
        await world.says("rita", number, "/help")
        assert not await fork.waiting(number)

        # C59: what can't be read gets one helpful answer
        assert "l1, l2 or l3" in await world.says("walter", number, "/validate 12")

        # an edit adds a command: it alone runs, however the lines move; taken out and put back it does not run again
        comment = await walter.comment(FORK, number, "/retry")
        await world.settle()
        sandbox.advance(2)
        await walter.edit_comment(FORK, comment["id"], "first\n/validate l1 unit\n/retry")
        await world.settle()
        assert [run.suite for run in await fork.waiting(number)] == ["unit"]
        assert len(answers(fork, number, comment["id"])) == 2
        assert "`/retry`" not in answers(fork, number, comment["id"])[1]
        await fork.ends(number)
        for text in ("nothing", "/retry\n/validate l1 unit"):
            sandbox.advance(2)
            await walter.edit_comment(FORK, comment["id"], text)
            await world.settle()
        assert not await fork.waiting(number)
        assert len(answers(fork, number, comment["id"])) == 2

        # the same delivery twice is one command
        sandbox.faults.duplicate_deliveries(times=1, event="issue_comment", action="created")
        assert "Queued" in await world.says("walter", number, "/validate l1 side")
        assert len(await fork.ends(number)) == 1

        # C60: pushed before the command is handled: refused, and said again it is about the new head
        comment = await walter.comment(FORK, number, "/validate l1")
        await sandbox.settle()
        await fork.pushes("walter", "small", {"lib/code.txt": "three\n"})
        (said,) = answers(fork, number, comment["id"])
        assert "Refused: it is not known which commit was meant (the head moved while your comment came" in said
        assert await fork.ends(number) == ["side", "unit"]  # the new head's own
        assert "Queued" in await world.says("walter", number, "/validate l1")
        await fork.ends(number)

        # C67: no access, on an issue, on a closed pull request
        assert "takes write access" in await world.says("sam", number, "/validate l1")
        issue = await walter.open_issue(FORK, "A question")
        assert "is not understood here" in await world.says("walter", issue["number"], "/validate l1")
        await walter.close(FORK, number)
        await world.settle()
        assert "closed" in await world.says("walter", number, "/validate l1")
        assert not await fork.waiting(number)
        assert not await world.failures()

        await _audited(fork)


async def _audited(fork: Gated) -> None:
    """All of it is in the audit, unbroken; its end is witnessed on the dashboard; what is changed after is found."""
    world, store = fork.world, fork.world.context.store
    rows = await store.audit_entries(FORK)
    assert {row.kind for row in rows} >= {"command", "gate"}
    assert verify(rows).ok
    for _ in range(2):
        await world.ask("witness")
        await world.settle()
    texts = [comment.body for comment in world.dashboard().comments if "graft-checkpoint" in comment.body]
    signer = HmacSigner.of_secret(world.app.private_key.encode())
    points = genuine(find_checkpoints(texts), repository=FORK, signer=signer)
    assert [point.sequence for point in points] == [rows[-1].sequence]
    assert verify(rows, checkpoints=points).ok
    assert verify(rows[:-1]).ok
    assert not verify(rows[:-1], checkpoints=points).ok

    database = world.context.settings.store_url.removeprefix("sqlite:///")
    with sqlite3.connect(database) as connection:
        changed = connection.execute(
            "update audit set body = replace(body, 'block', 'allow') where kind = 'gate' and body like '%block%'"
        ).rowcount
    connection.close()
    assert changed
    found = verify(await store.audit_entries(FORK), checkpoints=points)
    assert len(found.faults) == changed
    done = await asyncio.to_thread(
        subprocess.run,
        [
            sys.executable,
            "-m",
            "bot.cli",
            "audit",
            "verify",
            "-r",
            FORK,
            "--database",
            f"sqlite:///{database}",
            "--json",
        ],
        capture_output=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert {fault["entry"] for fault in json.loads(done.stdout)["faults"]} == {f.sequence for f in found.faults}


async def test_a_command_is_about_the_head_that_it_was_written_under_however_late_it_is_read(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        world, sandbox = fork.world, fork.world.sandbox
        number = await fork.opens("walter", "small", {"lib/code.txt": "two\n"})
        await fork.ends(number)
        maria, first = sandbox.as_user("maria"), fork.head(number)

        # C60: its webhook is lost, a push follows, and GitHub delivers it again: it is about what maria saw
        sandbox.faults.drop_deliveries(event="issue_comment", times=1)
        lost = await maria.comment(FORK, number, "/validate l2 force=yes")
        sandbox.advance(1)
        signed = await sandbox.as_user("tina").comment(FORK, number, "/signoff l3 core ne=0.8")
        await world.settle()
        second = await fork.pushes("walter", "small", {"lib/code.txt": "three\n"})
        await fork.ends(number)
        sandbox.advance(60)
        assert sandbox.redeliver_failed() == 1
        await world.settle()
        (said,) = answers(fork, number, lost["id"])
        assert f"Refused: the comment was about `{first[:10]}`, and the head is `{second[:10]}` by now" in said
        assert not await fork.waiting(number, "l2")
        assert answers(fork, number, signed["id"])[0].count("✅") == 1
        assert "pushed since" in fork.gate(number)

        # an edit adds a command to a comment of an older head: which one is meant can't be told; a new comment can
        sandbox.advance(2)
        await maria.edit_comment(FORK, lost["id"], "/ok-to-test")
        await world.settle()
        assert f"written at {first[:10]} and edited at {second[:10]}" in answers(fork, number, lost["id"])[-1]
        assert "say it again in a new comment" in answers(fork, number, lost["id"])[-1]

        # the webhook of a push is lost: what is said after it is about it, what was said before is not
        sandbox.advance(2)
        sandbox.faults.drop_deliveries(event="issue_comment", times=1)
        before = await maria.comment(FORK, number, "/validate l1 unit")
        sandbox.faults.drop_deliveries(event="pull_request", times=1)
        await fork.pushes("walter", "small", {"lib/code.txt": "four\n"})
        answer = await world.says("maria", number, "/validate l1 side")
        assert "Queued" in answer or "is running" in answer, answer
        sandbox.faults.drop_deliveries(event="pull_request", times=1)  # not even delivered again
        sandbox.redeliver_failed()
        await world.settle()
        assert "Refused" in answers(fork, number, before["id"])[0]

        # nothing is known any more, and the branch's repository is pushed to all the time: said again, it is known
        store = world.context.store
        await store.remove_note(world.installation, FORK, f"heads:{number}")
        world.fork_commits("Elsewhere", {"other.txt": "x\n"})
        sandbox.faults.drop_deliveries(event="issue_comment", times=1)
        late = await maria.comment(FORK, number, "/validate l1 unit")
        sandbox.advance(2)
        world.fork_commits("Elsewhere", {"other.txt": "y\n"})
        await world.settle()
        sandbox.redeliver_failed()
        await world.settle()
        assert "nobody saw when it moved" in answers(fork, number, late["id"])[0]
        sandbox.advance(30)
        world.fork_commits("Elsewhere", {"other.txt": "z\n"})
        assert "Refused" not in await world.says("maria", number, "/validate l1 unit")


async def test_every_command_ends_in_an_answer(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        world, sandbox = fork.world, fork.world.sandbox
        number = await fork.opens("walter", "small", {"other.txt": "two\n"})
        await fork.ends(number)
        walter = sandbox.as_user("walter")

        # GitHub fails each time that the command needs it: told after the third try
        world.failing = True
        sandbox.faults.fail("forbidden", path=rf"/repos/{FORK}/collaborators/walter/permission", times=1000)
        lost = await walter.comment(FORK, number, "/validate l1")
        for _ in range(4):
            await world.settle()
            world.clock.forward(minutes=5)
        sandbox.faults.clear()
        await world.settle()
        (said,) = answers(fork, number, lost["id"])
        assert "❌" in said
        assert "given up" in said
        assert not await fork.waiting(number)

        # the answer itself can't be written, and the job is given up: the watchdog takes it up again
        sandbox.faults.fail("forbidden", method="POST", path=r"/reactions", times=1000)
        comment = await walter.comment(FORK, number, "/validate l1 side")
        for _ in range(12):
            await world.settle()
            world.clock.forward(minutes=4)
        assert not answers(fork, number, comment["id"])
        assert await world.context.store.unanswered_commands(world.clock())
        world.clock.forward(hours=2)
        sandbox.faults.clear()
        await world.ask("unanswered", "everything")
        await world.settle()
        (said,) = answers(fork, number, comment["id"])
        assert "Nothing came of it within 60 minutes" in said
        assert not await world.context.store.unanswered_commands(world.clock())

        # one whose comment is gone by then needs no answer, and is not asked about for ever
        sandbox.faults.fail("forbidden", method="POST", path=r"/reactions", times=1000)
        comment = await walter.comment(FORK, number, "/validate l1 unit")
        await world.settle()
        sandbox.faults.clear()
        await walter.delete_comment(FORK, comment["id"])
        await world.settle()
        assert not await world.context.store.unanswered_commands(world.clock() + timedelta(days=1))
