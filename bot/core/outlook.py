"""What a batch is to the plan that it comes from: its commits, what lands around it, what it leaves behind."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.batches import Batch
from bot.core.decisions import PASSED_OVER
from bot.core.ledger import undecided
from bot.core.types import Disposition, LedgerEntry, Plan, PlannedCommit, Verdict


def planned(plan: Plan, shas: Sequence[str]) -> list[PlannedCommit]:
    """The commits as planned; of one that is decided by now, or unknown, what the ledger knows."""
    known = {c.sha: c for b in plan.bundles for c in b.commits}
    known |= {c.sha: c for chain in plan.chains for c in chain.commits}
    known |= {c.sha: c for c in (*plan.held, *plan.settled)}
    subjects = {entry.sha: entry.subject for entry in plan.ledger.entries}
    return [known.get(sha) or PlannedCommit(sha, subjects.get(sha, ""), Verdict.SAFE, ()) for sha in shas]


def passed_over(plan: Plan, batch: Batch) -> tuple[LedgerEntry, ...]:
    """The undecided commits before the batch's last one that chains, lanes and holds keep back: triaged, and left.

    Written into the body, so that landing the batch moves the frontier past them as holes with their reason.
    """
    order = [entry.sha for entry in plan.ledger.entries]
    last = max((order.index(sha) for sha in batch.commits if sha in order), default=0)
    before = {entry.sha for entry in plan.ledger.entries[:last] if entry.disposition is Disposition.PENDING}
    kept = [(commit, f"in chain {chain.key}") for chain in plan.chains for commit in chain.commits]
    kept += [(commit, "held") for commit in plan.held]
    place = {sha: index for index, sha in enumerate(order)}
    found = [(commit, where) for commit, where in kept if commit.sha in before and commit.sha not in batch.commits]
    return tuple(
        LedgerEntry(
            commit.sha,
            Disposition.DEFERRED,
            commit.subject,
            by=PASSED_OVER,
            reason=f"{where}: {max(commit.reasons, key=lambda r: r.weight).text if commit.reasons else ''}",
        )
        for commit, where in sorted(found, key=lambda pair: place[pair[0].sha])
    )


def link_states(plan: Plan, batch: Batch) -> list[tuple[PlannedCommit, str]]:
    """The links of the batch's chain, each with the words for where it stands."""
    decided = {e.sha: e for e in plan.ledger.entries if not undecided(e)}
    taken_back = {e.sha for e in plan.ledger.entries if e.disposition is Disposition.REVERTED}

    def state(sha: str) -> str:
        if sha in batch.commits:
            return "**this pull request**"
        if sha in decided:
            return decided[sha].disposition.value.replace("_", " ")
        if sha in taken_back:
            return "the fork took it back: `/pick` takes it in again"
        return "opens when the one before has landed"

    return [(link, state(link.sha)) for link in planned(plan, batch.chain)]


def pin_after(plan: Plan, commits: Sequence[str]) -> str | None:
    """Where the contiguous pin stands once these commits have landed."""
    landing = frozenset(commits)
    pin = plan.ledger.pin
    passed = pin is None
    for entry in plan.ledger.entries:
        if not passed:
            passed = entry.sha == pin
            continue
        if not entry.disposition.final and entry.sha not in landing:
            break
        pin = entry.sha
    return pin
