"""Sign-offs and waivers as commands: nothing is stored, the comment is what counts; the answer says what it is worth.

The answer is judged by the very facts that the gate decides on.
"""

from __future__ import annotations

from bot.core.command import values as v
from bot.core.render.answers import Said
from bot.core.render.text import code, line, short
from bot.core.waivers import WaiverState, scope_problem
from handlers.asked import Asked
from handlers.signing import given


async def signoff(asked: Asked) -> Said:
    """`/signoff`: whether it stands, else why not."""
    args, pull = asked.command.args, asked.pull
    assert isinstance(args, v.Signoff) and pull is not None
    signed = (await given(asked.fork, pull)).sign_offs
    mine = [one for one in signed if one.comment_id == asked.comment_id and one.area == args.area]
    if not mine:
        return asked.refused("The sign-off can't be found in the comment any more.")
    if not mine[-1].stands:
        return asked.refused(f"It does not stand: {line(mine[-1].text, 400)}.")
    kept = (
        "A push that does not touch the area keeps it."
        if asked.fork.config.gate.keep_signoff_outside_area
        else "A push voids it."
    )
    return asked.done(
        f"{line(asked.author)} signed area {code(args.area)} off for {short(pull.head.sha)}. {kept} "
        f"`/unsign l3 {args.area}` takes it back."
    )


async def unsign(asked: Asked) -> Said:
    """`/unsign`: what it took back."""
    args, pull = asked.command.args, asked.pull
    assert isinstance(args, v.Unsign) and pull is not None
    taken = {
        f"{code(one.area)} by {line(one.by)}"
        for one in (await given(asked.fork, pull)).sign_offs
        if one.void is not None and one.void.value == "withdrawn" and args.area in (None, one.area)
    }
    if not taken:
        return asked.refused("There is no sign-off here that you could take back.")
    return asked.done(f"Taken back: {', '.join(sorted(taken))}.")


async def waive(asked: Asked) -> Said:
    """`/waive`: whether it holds, and what it must match."""
    args, fork, pull = asked.command.args, asked.fork, asked.pull
    assert isinstance(args, v.Waive) and pull is not None
    found = await given(fork, pull)
    problem = scope_problem(args.scope, config=fork.config, failures=found.heard.failures, known=found.heard.passed)
    if problem:
        return asked.refused(line(problem, 400))
    judged = found.waivers
    mine = [
        one
        for one in judged
        if one.waiver.scope == args.scope
        and (one.waiver.comment_id == asked.comment_id or asked.author in one.waiver.by)
    ]
    best = next((one for one in mine if one.holds), mine[0] if mine else None)
    if best is None:
        return asked.refused("The waiver can't be found in the comment any more.")
    if best.state is WaiverState.NEEDS_SECOND:
        return asked.done(f"Noted, and it does not hold yet: {code(args.scope)} {line(best.text, 300)}.")
    if not best.holds:
        return asked.refused(f"It does not hold: {line(best.text, 400)}.")
    covered = [failure for failure in found.heard.failures if best.waiver.covers(failure)]
    left = sorted({failure.name for failure in covered if not best.exempts(failure, head=pull.head.sha)})
    more = f"; of L3 not yet for {', '.join(map(code, left[:5]))}: that takes two maintainers." if left else ""
    by = ", ".join(line(name) for name in best.waiver.by)
    return asked.done(
        f"Waived until the end of {best.waiver.until.isoformat()} (UTC) by {by}: {code(args.scope)}. "
        f"{line(best.text, 300)}{more}"
    )
