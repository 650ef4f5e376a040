"""The commands themselves: each looks, acts, and says what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bot.context import Pull
from bot.core.batches import BatchState, ClosedWhy
from bot.core.command import help_text
from bot.core.command import values as v
from bot.core.command.suites import choose_suites
from bot.core.render.answers import Said
from bot.core.render.explain import explain_commit
from bot.core.render.pull import restate
from bot.core.render.results import outcome_of
from bot.core.render.text import code, line, plural, short
from bot.core.turns import Turn
from bot.core.types import Disposition, LedgerEntry, Level, Mode, Outcome, Plan
from bot.core.upkeep import Deed, upkeep
from handlers.affording import affordable, gpu_budget
from handlers.asked import Asked, Executor
from handlers.batches import add_to_note, batch_of, forget, load_batches, save_batch
from handlers.cherry_pick import close_batch, rebuild
from handlers.fork import Fork
from handlers.granting import signoff, unsign, waive
from handlers.handing import report
from handlers.plans import plan_now, stored_plan
from handlers.results import suite_states
from handlers.rollback import open_rollback, roll_back_one
from handlers.seeking import bisect
from handlers.validate import BEFORE, Target, start_level, target_of


async def validate(asked: Asked) -> Said:
    """`/validate`: queue a level's suites at the head that the comment was about, cheaper level first."""
    args, fork, pull = asked.command.args, asked.fork, asked.pull
    assert isinstance(args, v.Validate) and pull is not None
    chosen = choose_suites(config=fork.config, level=args.level, words=args.words)
    if chosen.problem:
        return asked.refused(chosen.problem)
    before = BEFORE[args.level]
    force = args.force and asked.who.can_maintain(asked.author)
    if args.force and not force:
        return asked.refused("`force=yes` is for maintainers.")
    if before is not None and fork.config.validation.of(before) and not force:
        states = [s for s in await suite_states(fork, sha=pull.head.sha, number=pull.number) if s.level is before]
        if not states or outcome_of(states) not in (Outcome.PASSED, Outcome.WAIVED):
            return asked.refused(
                f"{before.value.upper()} has not passed on {short(pull.head.sha)} yet, and a cheaper level goes first. "
                f"`/validate {before.value}` runs it; a maintainer may say `/validate {args.level.value} force=yes`."
            )
    wanted = tuple(suite.suite for suite in chosen.suites if not suite.manual)
    names, refused = await affordable(fork, args.level, wanted)
    if refused and not names:
        return asked.refused(refused)
    target = target_of(pull)
    runs = await start_level(fork, target, args.level, suites=names, again=True, turn=Turn.COMMAND) if names else []
    await fork.enqueue("results", f"#{pull.number}", {"number": pull.number})
    by_hand = [suite.suite for suite in chosen.suites if suite.manual]
    if not runs and not by_hand:
        return asked.done(f"{args.level.value.upper()} is running on {short(pull.head.sha)} already.")
    text = f"Queued on {short(pull.head.sha)}: " + (", ".join(code(run.suite) for run in runs) or "nothing") + "."
    if by_hand:
        text += f" By hand: {', '.join(map(code, by_hand))}; its owners sign its numbers with `/signoff l3 <area> …`."
    if chosen.ignored:
        text += f" Taken for prose: {', '.join(map(code, chosen.ignored))}."
    text += f" Not queued: {refused}" if refused else ""
    return asked.done(text + (" Lower levels were passed over, as asked." if force else ""))


async def ok_to_test(asked: Asked) -> Said:
    """`/ok-to-test`: this very commit of a stranger's may run."""
    fork, pull = asked.fork, asked.pull
    assert pull is not None
    await fork.put_note(f"ok-to-test:{pull.number}", {"sha": pull.head.sha, "by": asked.author})
    await fork.enqueue("validate", f"#{pull.number}", {"number": pull.number})
    return asked.done(f"{short(pull.head.sha)} may run on the runners. A push takes that back.")


async def defer(asked: Asked) -> Said:
    """`/defer`: a hole with its reason and owner."""
    args = asked.command.args
    assert isinstance(args, v.Defer)
    return await _decide(asked, args.commit, Disposition.DEFERRED, args.reason, args.owner or asked.author)


async def wont_port(asked: Asked) -> Said:
    """`/wont-port`: final."""
    args = asked.command.args
    assert isinstance(args, v.WontPort)
    return await _decide(asked, args.commit, Disposition.WONT_PORT, args.reason, asked.author)


async def skip(asked: Asked) -> Said:
    """`/skip`: without effect on this fork; final."""
    args = asked.command.args
    assert isinstance(args, v.Skip)
    return await _decide(asked, args.commit, Disposition.SKIPPED, args.reason or "no effect on this fork", asked.author)


async def pick(asked: Asked) -> Said:
    """`/pick`: a decision against it is taken back, and it is opened next, by itself, before the caps."""
    args, fork = asked.command.args, asked.fork
    assert isinstance(args, v.Pick)
    plan = await stored_plan(fork)
    sha = _commit_of(plan, args.commit)
    if plan is None or sha is None:
        return asked.refused(_unknown(args.commit))
    entry = next((e for e in plan.ledger.entries if e.sha == sha), None)
    if entry is not None and entry.disposition in (Disposition.PICKED, Disposition.EMPTY):
        return asked.refused(_there(entry))
    held = [b for b in await load_batches(fork) if b.state.in_flight and sha in b.commits]
    if held:
        return asked.refused(f"#{held[0].number} carries {short(sha)} already.")
    await fork.ctx.store.remove_decision(fork.name, sha)
    await add_to_note(fork, "urgent", [sha])
    await fork.enqueue("ingest", "repository")
    decision = LedgerEntry(sha=sha, disposition=Disposition.PENDING, by=asked.author, reason="asked for by /pick")
    text = f"{short(sha)} is taken in next, by itself and before the caps."
    if needs := _needs(plan, sha):
        text += f" It waits for {', '.join(short(need) for need in needs[:10])}."
    return Said(asked.command.text, True, text, decision)


def _needs(plan: Plan, sha: str) -> tuple[str, ...]:
    commits = [c for b in plan.bundles for c in b.commits] + [c for h in plan.chains for c in h.commits]
    return next((c.waits_for for c in (*commits, *plan.held) if c.sha == sha), ())


async def retry(asked: Asked) -> Said:
    """`/retry`: failed suites once more; a closed batch of Graft's is planned again; on the dashboard a fresh look."""
    fork, pull = asked.fork, asked.pull
    if pull is None:
        await fork.enqueue("ingest", "repository")
        return asked.done("Looking at both sides again.")
    if pull.state != "open":
        return await _again(asked, pull)
    bad = [
        s
        for s in await suite_states(fork, sha=pull.head.sha, number=pull.number)
        if s.verdict not in (None, Outcome.PASSED, Outcome.WAIVED)
    ]
    queued: list[str] = []
    told: list[str] = []
    for level in Level:
        names, refused = await affordable(fork, level, tuple(s.suite for s in bad if s.level is level))
        told += [refused] if refused else []
        if names:
            await start_level(fork, target_of(pull), level, suites=names, again=True, turn=Turn.COMMAND)
            queued += names
        here = [s for s in bad if s.level is level and s.suite in names]
        noisy = tuple(s.suite for s in here if any(metric.unsure for metric in s.metrics))
        if noisy:  # how much can be told depends on trunk's samples as well
            base = Target(pull.base.sha, pull.base.sha)
            await start_level(fork, base, level, suites=noisy, again=True, turn=Turn.COMMAND)
    await fork.enqueue("results" if bad else "validate", f"#{pull.number}", {"number": pull.number})
    if told and not queued:
        return asked.refused(" ".join(told))
    text = f"Queued again: {', '.join(map(code, queued))}." if bad else "Nothing failed; looked again."
    return asked.done(" ".join([text, *told]))


async def _again(asked: Asked, pull: Pull) -> Said:
    """A closed batch is planned again; one that landed and was taken back comes again, each commit by itself."""
    fork, batch = asked.fork, await batch_of(asked.fork, pull.number)
    if batch is None or batch.state.in_flight:
        return asked.refused("There is nothing here to do again.")
    if batch.state is BatchState.CLOSED:
        batch = replace(batch, closed_why=ClosedWhy.SUPERSEDED)
        await save_batch(fork, batch)
        await fork.github.update_pull(pull.number, body=restate(pull.body, batch))
        await fork.enqueue("ingest", "repository")
        return asked.done("Its commits are planned again.")
    plan = await stored_plan(fork)
    reverted = {e.sha for e in plan.ledger.entries if e.disposition is Disposition.REVERTED} if plan else set()
    back = [sha for sha in batch.commits if sha in reverted]
    if not back:
        return asked.refused("There is nothing here to do again.")
    await add_to_note(fork, "urgent", back)
    await fork.enqueue("ingest", "repository")
    return asked.done(f"{plural(len(back), 'commit')} of it, taken back since, come again.")


async def _held_back(fork: Fork) -> str | None:
    """Why no branch and no pull request may be written now; None where it may."""
    if fork.config.mode is Mode.OBSERVE:
        return "The mode is observe: Graft writes no branch and no pull request."
    halted = await fork.halted()
    return f"Graft is halted by {line(halted)}." if halted else None


async def rebase(asked: Asked) -> Said:
    """`/rebase`: the batch is built anew on the fork's tip, over what a person pushed."""
    fork, pull = asked.fork, asked.pull
    assert pull is not None
    batch = await batch_of(fork, pull.number)
    if batch is None:
        return asked.refused("This is no pull request of Graft's: rebase it by hand.")
    if (why_not := await _held_back(fork)) is not None:
        return asked.refused(why_not)
    await fork.fetch_fork()
    plan = await plan_now(fork)
    mine = replace(batch, paused=False)
    found = upkeep(batch=mine, head=pull.head.sha, ours=True, plan=plan, applies=False)
    if found.deed is Deed.CLOSE and found.why is not None:
        await close_batch(fork, found.batch, found.why, found.text, body=pull.body)
        await fork.enqueue("ingest", "repository")
        return asked.done(f"Closed instead:\n\n{found.text}")
    why = f"{line(asked.author)} asked. {found.text}"
    after = await rebuild(fork, found.batch, plan, expected=pull.head.sha, why=why, body=pull.body)
    if after.state is BatchState.CLOSED:
        await fork.enqueue("ingest", "repository")
        return asked.done("None of its commits applies to the fork's tip any more: closed, they are planned again.")
    if after.base != plan.fork_tip:
        return asked.refused("The branch moved meanwhile, or GitHub refused the push: the dashboard says which.")
    return asked.done(f"Built anew on {short(after.base)}: {short(after.head)}.")


async def split(asked: Asked) -> Said:
    """`/split`: the bundle is closed and its commits come back one by one (or the named ones apart)."""
    fork, pull, args = asked.fork, asked.pull, asked.command.args
    assert isinstance(args, v.Split) and pull is not None
    batch = await batch_of(fork, pull.number)
    if batch is None or len(batch.commits) < 2:
        return asked.refused("Only a bundle of two commits or more can be split.")
    if (why_not := await _held_back(fork)) is not None:
        return asked.refused(why_not)
    plan = await stored_plan(fork)
    named = [_commit_of(plan, word) for word in args.commits]
    if None in named or not set(named) <= set(batch.commits):
        return asked.refused("Name commits of this bundle, by at least seven digits or by #number.")
    apart = tuple(sha for sha in named if sha) or batch.commits
    batch = replace(batch, apart=apart, paused=batch.paused or pull.head.sha != batch.head)
    await add_to_note(fork, "split", apart)
    await close_batch(fork, batch, ClosedWhy.SPLIT, f"Split, as {line(asked.author)} asked.", body=pull.body)
    await fork.enqueue("ingest", "repository")
    return asked.done(f"Closed; {plural(len(apart), 'commit')} of it come back one by one.")


async def rollback(asked: Asked) -> Said:
    """`/rollback`: the pull request that takes a landed batch back, or one upstream commit of it, or a culprit."""
    args, fork, pull = asked.command.args, asked.fork, asked.pull
    assert isinstance(args, v.Rollback)
    if (why_not := await _held_back(fork)) is not None:
        return asked.refused(why_not)
    if pull is None or args.commit is not None:
        return await roll_back_one(asked, args.commit)
    if not pull.landed:
        return asked.refused("It has not landed: there is nothing to take back.")
    opened = await open_rollback(fork, pull, asked.author)
    if isinstance(opened, str):
        return asked.refused(opened)
    return asked.done(
        f"#{opened.number} takes it back; once it lands, its commits are pending again, and come again when asked for: "
        "`/retry` here for all of them, `/pick` for one."
    )


async def explain(asked: Asked) -> Said:
    """`/explain`: the full evidence for one commit, or for each of this batch."""
    args, fork = asked.command.args, asked.fork
    assert isinstance(args, v.Explain)
    plan = await stored_plan(fork)
    if plan is None:
        return asked.refused("There is no plan yet.")
    if args.commit is None:
        batch = await batch_of(fork, asked.number)
        if batch is None:
            return asked.refused("Name the upstream commit: `/explain <commit>`.")
        return asked.done("\n\n".join(explain_commit(plan, sha) for sha in batch.commits[:20]))
    sha = _commit_of(plan, args.commit)
    return asked.done(explain_commit(plan, sha)) if sha else asked.refused(_unknown(args.commit))


async def help_(asked: Asked) -> Said:
    """`/help`: the table of commands."""
    args = asked.command.args
    assert isinstance(args, v.Help)
    return asked.done(help_text(args.topic))


async def _decide(asked: Asked, word: str, disposition: Disposition, reason: str, owner: str) -> Said:
    fork = asked.fork
    plan = await stored_plan(fork)
    sha = _commit_of(plan, word)
    if plan is None or sha is None:
        return asked.refused(_unknown(word))
    known = next((e for e in plan.ledger.entries if e.sha == sha), None)
    if known is not None and known.disposition in (Disposition.PICKED, Disposition.EMPTY):
        return asked.refused(_there(known))
    subject = known.subject if known else ""
    entry = LedgerEntry(sha, disposition, subject, by=asked.author, reason=reason, owner=owner)
    await fork.ctx.store.save_decision(fork.scope.installation, fork.name, entry, fork.now)
    await forget(fork, "urgent", sha)
    await fork.enqueue("ingest", "repository")
    text = f"{short(sha)} is **{disposition.value.replace('_', ' ')}** now: {line(reason, 300)}."
    for batch in await load_batches(fork):
        if batch.state.in_flight and sha in batch.commits:
            left = "is built anew without it" if len(batch.commits) > 1 else "is closed"
            text += f" #{batch.number} {left}."
            if batch.paused and len(batch.commits) > 1:
                text += " Or will be, once `/rebase` gives its branch back: a person pushed to it."
    return Said(asked.command.text, True, text, entry)


def _there(entry: LedgerEntry) -> str:
    by = line(entry.by[:10] if entry.disposition is Disposition.PICKED else entry.by, 80)
    return f"{short(entry.sha)} is in the fork already ({entry.disposition.value}: {by})."


def _commit_of(plan: Plan | None, word: str) -> str | None:
    """The upstream commit that a word of a command names: digits of its hash, or #number of its pull request."""
    if plan is None:
        return None
    known = {c.sha: c.pr for b in plan.bundles for c in b.commits} | {
        c.sha: c.pr for h in plan.chains for c in h.commits
    }
    known |= {c.sha: c.pr for c in (*plan.held, *plan.settled)}
    known |= {e.sha: known.get(e.sha) for e in plan.ledger.entries}
    if word.startswith("#"):
        found = [sha for sha, pr in known.items() if pr == int(word[1:])]
    else:
        found = [sha for sha in known if sha.startswith(word.lower())]
    return found[0] if len(found) == 1 else None


def _unknown(word: str) -> str:
    return f"{code(word)} names no upstream commit that is known here, or more than one: give more digits."


EXECUTORS: Mapping[str, Executor] = {
    "validate": validate,
    "report": report,
    "signoff": signoff,
    "unsign": unsign,
    "waive": waive,
    "ok-to-test": ok_to_test,
    "defer": defer,
    "wont-port": wont_port,
    "skip": skip,
    "pick": pick,
    "retry": retry,
    "rebase": rebase,
    "split": split,
    "rollback": rollback,
    "bisect": bisect,
    "gpu-budget": gpu_budget,
    "explain": explain,
    "help": help_,
}
