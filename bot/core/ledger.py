"""The ledger: what became of each upstream commit, read from the fork's history and from decisions; both pins; metrics.

How far the fork has come (the frontier). Under Graft every commit up to the frontier has a recorded disposition, so
the frontier is simply the last of an unbroken row. A fork that picked by hand recorded only what it took: what it
passed over has no record, yet was looked at. So a first reading takes as passed over what lies before the newest
*densely picked* stretch: the newest picked commit at which at least DENSE of the last STRETCH upstream commits had been
picked by other means than Graft. Before it, unrecorded commits are holes, deferred by history; beyond it, they are
pending. An isolated urgent pick, or a handful of them, makes no dense stretch and moves nothing. From there the
unbroken row goes on.

Why this rule: facebookexperimental/triton picks in upstream order with holes, block after block of 25 commits with 22
to 25 picked, and with some forty isolated picks up to 600 commits ahead. The rule gives 162 Days Behind on 2026-03-01
and 51 on 2026-08-15, as that fork reports of itself (162 in March, 50 in August), and the same within four days for
every stretch of 10 to 30. Graft's own picks are left out because bundles land out of order: a dense stretch of them
says nothing of what lies before; their bodies name what they pass over (`Graft-Held:`). What was reverted still counts
as picked here, so that a revert never moves the frontier back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from bot.core.decisions import PASSED_OVER, read_decisions
from bot.core.history import Carrier, History, LandedPullRequest, Names, read_history
from bot.core.types import Commit, Disposition, Hole, Ledger, LedgerEntry, Metrics

__all__ = ["DENSE", "STRETCH", "LandedPullRequest", "dispositions", "ledger_of", "undecided"]

STRETCH = 20
DENSE = 10
_DAY = 86400.0


def dispositions(
    *,
    upstream: Sequence[Commit],
    fork: Sequence[Commit],
    base: Commit,
    now: int,
    markers: Sequence[str] = (),
    pull_requests: Sequence[LandedPullRequest] = (),
    decisions: Sequence[LedgerEntry] = (),
    empty: Mapping[str, str] | None = None,
    skipped: Mapping[str, str] | None = None,
    owners: Mapping[str, str] | None = None,
    default_owner: str | None = None,
    reverts: Mapping[str, Sequence[str]] | None = None,
    repository: str | None = None,
    stale_since: int | None = None,
) -> Ledger:
    """Read the ledger.

    `upstream` are its first-parent commits from the merge base (`base`, not included) to its tip, `fork` all commits
    of the fork since then, both oldest first. `decisions` come from commands, the later wins; those in the texts of
    the fork rank below them, and one from before a pick of its commit is out of date once that was taken back. `empty`
    and `skipped` map upstream commits to why the planner found them so; `owners` maps them to who must act. `reverts`
    and `repository` as in `read_history`. `now` and `stale_since` in seconds since the epoch.
    Raises ValueError for a broken marker.
    """
    history = read_history(
        upstream=upstream,
        fork=fork,
        markers=markers,
        pull_requests=pull_requests,
        repository=repository,
        reverts=reverts,
    )
    landed = {commit.sha for commit in fork}
    texts = [(commit.sha, commit.message, commit.committer_time) for commit in fork]
    texts += [
        (f"#{pull.number}", pull.body, pull.landed_time)
        for pull in pull_requests
        if pull.trusted and pull.merge_sha in landed
    ]
    written = [entry for by, text, time in texts for entry in read_decisions(text, by=by, time=time)]
    return ledger_of(
        history=history,
        upstream=upstream,
        base=base,
        now=now,
        decisions=[*sorted(written, key=_decided), *sorted(decisions, key=_decided)],
        times={commit.sha: commit.committer_time for commit in fork},
        empty=empty or {},
        skipped=skipped or {},
        owners=owners or {},
        default_owner=default_owner,
        stale_since=stale_since,
    )


def ledger_of(
    *,
    history: History,
    upstream: Sequence[Commit],
    base: Commit,
    now: int,
    decisions: Sequence[LedgerEntry],
    empty: Mapping[str, str],
    skipped: Mapping[str, str],
    owners: Mapping[str, str],
    default_owner: str | None = None,
    stale_since: int | None = None,
    times: Mapping[str, int] | None = None,
) -> Ledger:
    """The ledger from a history that was read before; see `dispositions`. `times`: when fork commits were made."""
    decided = {
        sha: entry
        for sha, entry in _latest(upstream, decisions).items()
        if not _outlived(entry, history.carriers.get(sha, ()), times or {})
    }
    entries = [
        _entry(commit, history, decided.get(commit.sha), empty.get(commit.sha), skipped.get(commit.sha))
        for commit in upstream
    ]
    passed = _passed_over(upstream, history)
    entries = [
        _deferred_by_history(entry, upstream[passed])
        if index < passed and entry.disposition is Disposition.PENDING
        else entry
        for index, entry in enumerate(entries)
    ]
    entries = [_owned(entry, owners, default_owner) for entry in entries]
    pin = _row(0, [entry.disposition.final for entry in entries])
    frontier = _row(passed + 1, [entry.disposition is not Disposition.PENDING for entry in entries])
    holes = tuple(
        Hole(entry.sha, entry.subject, _days(now - commit.committer_time), entry.reason, entry.owner)
        for entry, commit in zip(entries[:frontier], upstream, strict=False)
        if not entry.disposition.final
    )
    line = [base, *upstream]
    return Ledger(
        entries=tuple(entries),
        pin=line[pin].sha if pin else None,
        frontier=line[frontier].sha if frontier else None,
        metrics=Metrics(
            days_behind=_days(line[-1].committer_time - line[frontier].committer_time),
            backlog=len(holes),
            stale_since=stale_since,
        ),
        holes=holes,
    )


def undecided(entry: LedgerEntry) -> bool:
    """True where the plan has to say what becomes of this upstream commit: nobody decided it."""
    if entry.disposition is Disposition.DEFERRED:
        return entry.by == "history"
    return entry.disposition in {Disposition.PENDING, Disposition.REVERTED}


def _latest(upstream: Sequence[Commit], decisions: Iterable[LedgerEntry]) -> dict[str, LedgerEntry]:
    names = Names(commit.sha for commit in upstream)
    latest: dict[str, LedgerEntry] = {}
    for entry in decisions:
        sha = names.find(entry.sha.lower())
        if sha is None or (entry.by == PASSED_OVER and latest.get(sha, entry).by != PASSED_OVER):
            continue  # what was merely passed over takes back no decision
        latest[sha] = entry
    return latest


def _outlived(entry: LedgerEntry, carriers: Sequence[Carrier], times: Mapping[str, int]) -> bool:
    """True where the commit was picked after that was decided of it: who did that decided anew."""
    decided = entry.time
    return decided is not None and any(times.get(carrier.sha, decided) > decided for carrier in carriers)


def _decided(entry: LedgerEntry) -> int:
    return entry.time or 0


def _entry(
    commit: Commit, history: History, decision: LedgerEntry | None, empty: str | None, skipped: str | None
) -> LedgerEntry:
    """In this order: a standing pick, a decision to leave it, a change that is there, a revert, a deferral, a rule."""

    def entry(disposition: Disposition, by: str, reason: str, owner: str | None = None) -> LedgerEntry:
        return LedgerEntry(commit.sha, disposition, commit.subject, by, reason, owner)

    carriers = history.carriers.get(commit.sha, ())
    standing = [carrier for carrier in carriers if carrier.reverted_by is None]
    if standing:
        twice = f"picked {len(standing)} times" if len(standing) > 1 else ""
        return entry(Disposition.PICKED, standing[0].sha, twice)
    if decision is not None and decision.disposition in _LEFT:
        return entry(decision.disposition, decision.by, decision.reason, decision.owner)
    if empty is not None:
        return entry(Disposition.EMPTY, "planner", empty)
    if carriers:
        reason = f"picked as {carriers[-1].sha[:12]}, taken back by {(carriers[-1].reverted_by or '')[:12]}"
        if decision is not None and decision.reason:
            reason = f"{decision.reason} ({reason})"
        return entry(Disposition.REVERTED, carriers[-1].reverted_by or "", reason, decision.owner if decision else None)
    if decision is not None and decision.disposition is Disposition.DEFERRED:
        return entry(decision.disposition, decision.by, decision.reason, decision.owner)
    if skipped is not None:
        return entry(Disposition.SKIPPED, "planner", skipped)
    return entry(Disposition.PENDING, "", "")


_LEFT = frozenset({Disposition.SKIPPED, Disposition.WONT_PORT, Disposition.EMPTY})


def _passed_over(upstream: Sequence[Commit], history: History) -> int:
    """The index of the newest upstream commit of a densely picked stretch, -1 where there is none."""
    by_hand = [any(carrier.batch is None for carrier in history.carriers.get(commit.sha, ())) for commit in upstream]
    newest, count = -1, 0
    for index, picked in enumerate(by_hand):
        count += picked - (index >= STRETCH and by_hand[index - STRETCH])
        if picked and count >= DENSE:
            newest = index
    return newest


def _deferred_by_history(entry: LedgerEntry, reached: Commit) -> LedgerEntry:
    reason = f"passed over without a record: later commits were picked, up to {reached.sha[:12]}"
    return replace(entry, disposition=Disposition.DEFERRED, by=PASSED_OVER, reason=reason)


def _owned(entry: LedgerEntry, owners: Mapping[str, str], default_owner: str | None) -> LedgerEntry:
    if entry.owner is not None or entry.disposition.final:
        return entry
    return replace(entry, owner=owners.get(entry.sha, default_owner))


def _row(start: int, holds: Sequence[bool]) -> int:
    """How far the unbroken row goes that begins at `start`: the index after its last."""
    end = start
    while end < len(holds) and holds[end]:
        end += 1
    return end


def _days(seconds: int) -> float:
    return max(0.0, seconds / _DAY)
