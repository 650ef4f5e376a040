"""Reports of L3 suites that people run by hand: kept as runs beside those of runners, void once their comment is."""

from __future__ import annotations

from bot.context import Run, RunState
from bot.core.audit import AuditKind
from bot.core.batches import key_of
from bot.core.command import values as v
from bot.core.handreport import BadReport, may_report, metrics_of, read_report
from bot.core.render.answers import Said
from bot.core.render.text import code, line, short
from bot.core.types import Level
from handlers.asked import Asked
from handlers.auditing import record
from handlers.comments import comment_facts
from handlers.fork import Fork


async def report(asked: Asked) -> Said:
    """`/report`: the numbers of a suite that was run by hand, for the head that the comment is about."""
    args, fork, pull = asked.command.args, asked.fork, asked.pull
    assert isinstance(args, v.HandReport) and pull is not None and asked.head is not None
    comment = next((c for c in await comment_facts(fork, pull.number) if c.id == asked.comment_id), None)
    if comment is None:
        return asked.refused("The comment can't be found any more.")
    if comment.edited:
        return asked.refused("The comment was edited, so the report is void: give it in a new one.")
    try:
        may_report(asked.author, args.suite, config=fork.config, people=asked.who)
        told = read_report(
            body=comment.body, suite=args.suite, head=asked.head, repository=fork.name, config=fork.config,
            comment=comment,
        )  # fmt: skip
        metrics = metrics_of(told)
    except BadReport as error:
        return asked.refused(f"The report is not taken: {line(str(error), 500)}.")
    suite = next(one for one in fork.config.validation.l3 if one.suite == args.suite)
    run = Run(
        id=key_of(fork.name, str(pull.number), asked.head, Level.L3.value, suite.suite, f"comment {comment.id}"),
        repository=fork.name,
        installation=fork.scope.installation,
        number=pull.number,
        sha=asked.head,
        base=pull.base.sha,
        level=Level.L3.value,
        suite=suite.suite,
        label="by hand",
        request={"suite": suite.model_dump(mode="json")},
        deadline=comment.created_at,
        queued_at=comment.created_at,
        state=RunState.DONE,
        outcome=told.outcome.value,
        report=told.model_dump(mode="json"),
        runner=_by_hand(comment.id),
        finished_at=comment.created_at,
    )
    body = {
        "pull": pull.number,
        "head": asked.head,
        "level": Level.L3.value,
        "suite": suite.suite,
        "run": run.id,
        "by": asked.author,
        "comment": comment.id,
        "outcome": told.outcome.value,
        "metrics": metrics,
    }
    async with fork.ctx.store.transaction() as tx:
        if await tx.create_run(run):
            await record(tx, scope=fork.scope, kind=AuditKind.RUN, body=body, at=fork.now)
    await fork.enqueue("results", f"#{pull.number}", {"number": pull.number})
    numbers = ", ".join(code(f"{name}={value:g}") for name, value in metrics.items())
    bad = f" {line(told.reason, 300)}." if told.reason and told.outcome.value != "passed" else ""
    what = f"{code(suite.suite)}, {told.outcome.value}, by {line(asked.author)}: {numbers}.{bad}"
    return asked.done(
        f"Recorded for {short(asked.head)}: {what} `/signoff l3 {suite.area}` takes from here what it leaves out. An "
        "edit or deletion of the comment takes it back."
    )


async def take_back(fork: Fork, number: int, comment_id: int) -> None:
    """The comment is gone or was edited: the report that it gave counts no more."""
    for run in await fork.ctx.store.runs(fork.name, number=number, level=Level.L3.value):
        if run.runner == _by_hand(comment_id) and await fork.ctx.store.void_run(run.id):
            await fork.enqueue("results", f"#{number}", {"number": number})


def _by_hand(comment_id: int) -> str:
    return f"comment {comment_id}"
