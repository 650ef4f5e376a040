"""Plan: read both histories, try each undecided commit in memory, decide, and prove what may land early."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from bot.context import Git, PickResult
from bot.core.candidates import Candidate, Draft, Surroundings, skipped_by_rule
from bot.core.config import Config, Ingest
from bot.core.divergence import Divergence
from bot.core.footprint import Footprint, FootprintCache
from bot.core.ledger import LandedPullRequest, dispositions, undecided
from bot.core.lineage import Below, textual
from bot.core.owners import owners_of
from bot.core.plan import draft
from bot.core.reverts import revert_links
from bot.core.risk import FORK_LACKS, Trial
from bot.core.trailers import pull_number
from bot.core.types import Commit, Disposition, Ledger, LedgerEntry, Plan, Reason, ReasonKind, Verdict
from handlers.moves import read_layout
from handlers.outlining import outlines
from handlers.proving import Proof, prove
from handlers.surveying import UpstreamVersions, footprints, survey

Progress = Callable[[str, int, int], None]
_ROUNDS = 12
_SHARED = 20_000  # commits: months of the largest projects, read in a second
_NOBODY: frozenset[str] = frozenset()


class CannotPlan(Exception):
    """The two sides give nothing to plan: the message says what and how to mend it."""


@dataclass
class Clock:
    """Seconds by phase."""

    spent: dict[str, float] = field(default_factory=dict)
    _at: float = field(default_factory=time.perf_counter)

    def lap(self, phase: str) -> None:
        """All since the last lap was `phase`."""
        now = time.perf_counter()
        self.spent[phase] = self.spent.get(phase, 0.0) + now - self._at
        self._at = now


@dataclass(frozen=True, slots=True)
class Range:
    """Both histories since they parted, oldest first; `upstream` along first parents, `fork` all."""

    base: str
    upstream_tip: str
    fork_tip: str
    upstream: tuple[Commit, ...]
    fork: tuple[Commit, ...]


def read_range(git: Git, *, upstream: str, fork: str) -> Range:
    """The range between two refs or shas of one repository. Raises CannotPlan."""
    tips = {name: git.resolve(name) for name in (upstream, fork)}
    missing = [name for name, sha in tips.items() if sha is None]
    if missing:
        raise CannotPlan(f"{git.path} has no commit {missing[0]!r}: fetch it, or name another ref")
    upstream_tip, fork_tip = tips[upstream] or "", tips[fork] or ""
    base = git.merge_base(upstream_tip, fork_tip)
    if base is None:
        raise CannotPlan(
            f"{upstream} and {fork} have no common ancestor: is the one a fork of the other, and are both complete"
            " (no shallow clone)?"
        )
    return Range(
        base,
        upstream_tip,
        fork_tip,
        tuple(git.commits(upstream_tip, [base])),
        tuple(git.commits(fork_tip, [upstream_tip], first_parent=False)),
    )


def shared_history(git: Git, base: str) -> list[Commit]:
    """What both sides hold up to where they part, oldest first: a revert may name what landed long ago."""
    return git.commits(base, newest=_SHARED)


def read_ledger(
    git: Git,
    *,
    upstream: str,
    fork: str,
    config: Config | None = None,
    pull_requests: Sequence[LandedPullRequest] = (),
    decisions: Sequence[LedgerEntry] = (),
    now: int,
    plan: Plan | None = None,
    repository: str | None = None,
) -> Ledger:
    """The ledger of what the repository holds; `now` in seconds since the epoch. `plan` adds what is known to be empty
    or skipped; `repository` is the fork's owner/name. Raises CannotPlan, and ValueError for a broken marker.
    """
    settled = plan.settled if plan is not None else ()
    return _ledger(
        git,
        read_range(git, upstream=upstream, fork=fork),
        config,
        pull_requests,
        decisions,
        now,
        empty={c.sha: c.reasons[0].text for c in settled if c.verdict is Verdict.EMPTY},
        skipped={c.sha: c.reasons[0].text for c in settled if c.verdict is Verdict.SKIPPED},
        repository=repository,
    )


def make_plan(
    git: Git,
    *,
    upstream: str,
    fork: str,
    config: Config | None = None,
    cache: FootprintCache | None = None,
    pull_requests: Sequence[LandedPullRequest] = (),
    decisions: Sequence[LedgerEntry] = (),
    now: int,
    progress: Progress | None = None,
    repository: str | None = None,
) -> Plan:
    """The plan for two refs or shas of one repository; writes nothing there. `now` in seconds since the epoch.

    `repository` is the fork's owner/name, which tells its pull requests from upstream's in what texts refer to.

    Raises CannotPlan where there is nothing to plan, GitError where the repository is broken.
    """
    clock = Clock()
    span = read_range(git, upstream=upstream, fork=fork)
    ledger = _ledger(git, span, config, pull_requests, decisions, now, repository=repository)
    clock.lap("history")
    with git.scratch() as scratch:
        plan = _plan(scratch, span, ledger, config, cache, progress, clock)
    final = _ledger(
        git,
        span,
        config,
        pull_requests,
        decisions,
        now,
        empty={c.sha: c.reasons[0].text for c in plan.settled if c.verdict is Verdict.EMPTY},
        skipped={c.sha: c.reasons[0].text for c in plan.settled if c.verdict is Verdict.SKIPPED},
        owners=_owners(plan, config),
        repository=repository,
    )
    clock.lap("ledger")
    return replace(plan, ledger=final, timings={phase: round(spent, 4) for phase, spent in clock.spent.items()})


def deleted_by_fork(git: Git, *, upstream: str, base: str) -> frozenset[str]:
    """The files that the fork (`base`, its tip) deleted, and what upstream renames them to: they stay away."""
    return read_layout(git, upstream=upstream, base=base).deleted


def _plan(
    git: Git,
    span: Range,
    ledger: Ledger,
    config: Config | None,
    cache: FootprintCache | None,
    progress: Progress | None,
    clock: Clock,
) -> Plan:
    entries = {entry.sha: entry for entry in ledger.entries}
    pending = [commit for commit in span.upstream if undecided(entries[commit.sha])]
    first = (
        next((index for index, commit in enumerate(span.upstream) if commit.sha == pending[0].sha), 0) if pending else 0
    )
    tail = span.upstream[first:] if pending else ()
    ingest = config.ingest if config is not None else Ingest()
    keep = deleted_by_fork(git, upstream=span.upstream_tip, base=span.fork_tip)
    paths = {
        sha: frozenset(path for change in changes for path in change.paths)
        for sha, changes in git.changes_of(pending).items()
    }
    tried = [commit.sha for commit in pending if not skipped_by_rule(paths[commit.sha], ingest)]
    clock.lap("history")
    with ThreadPoolExecutor(1) as pool:
        whole = [commit for commit in tail if undecided(entries[commit.sha]) or _absent(entries[commit.sha])]
        reading = pool.submit(_read, Git(git.path), span, whole, cache, progress)
        results: dict[str, PickResult] = {}
        for result in git.picks(tried, span.fork_tip, keep_deleted=keep, kept=cache):
            results[result.commit] = result
            if progress is not None:
                progress("trial picks", len(results), len(tried))
        clock.lap("trial picks")
        read, divergence = reading.result()
    drawn = outlines(git, tail)
    found = {**drawn, **read}
    clock.lap("footprints and divergence")
    below = textual(drawn[commit.sha] for commit in tail)
    pending_shas = frozenset(commit.sha for commit in pending)
    numbers = {number: c.sha for c in span.upstream if (number := pull_number(c.message)) is not None}
    around = Surroundings(
        divergence=divergence,
        config=config,
        links=revert_links(
            commits=tail,
            older=[*shared_history(git, span.base), *span.upstream[:first]],
            numbers=numbers,
            footprints=found,
        ),
        landed=frozenset(sha for sha, entry in entries.items() if entry.disposition is Disposition.PICKED),
        absent={sha: found[sha] for sha, entry in entries.items() if sha in found and _absent(entry)},
        given_up=frozenset(sha for sha, e in entries.items() if e.disposition is Disposition.WONT_PORT),
        moved={sha: (_taken_back(entries[sha]), ()) for sha in pending_shas if _reverted(entries[sha])},
    )
    candidates = [
        _candidate(commit, found[commit.sha], below[commit.sha], results.get(commit.sha)) for commit in pending
    ]
    clock.lap("links")
    proved = _proved(git, span, candidates, around, results, keep, cache, progress, clock)
    return Plan(
        upstream_tip=span.upstream_tip,
        fork_tip=span.fork_tip,
        merge_base=span.base,
        bundles=proved.bundles,
        chains=proved.chains,
        held=proved.held,
        settled=proved.settled,
        ledger=ledger,
    )


def _read(
    git: Git, span: Range, tail: Sequence[Commit], cache: FootprintCache | None, progress: Progress | None
) -> tuple[dict[str, Footprint], Divergence]:
    with git:
        found = footprints(git, tail, cache=cache, progress=progress)
        versions = UpstreamVersions(git, base=span.base, commits=span.upstream)
        return found, survey(git, fork=span.fork_tip, versions=versions, cache=cache, progress=progress)


def _candidate(commit: Commit, footprint: Footprint, below: Below, result: PickResult | None) -> Candidate:
    if result is None:
        return Candidate(commit, footprint, Trial("clean"), below)
    paths = tuple(conflict.path for conflict in result.conflicts)
    no_effect = result.kind == "empty" and bool(result.kept_deleted)
    trial = Trial(result.kind, paths, no_effect, dict(_notes(result)))
    return Candidate(commit, footprint, trial, below, result.kept_deleted, result.error)


def _notes(result: PickResult) -> Iterator[tuple[str, str]]:
    """What stands in the way of each file's merge where it is not its text."""
    for conflict in result.conflicts:
        if conflict.kind in {"modify/delete", "rename/delete"}:
            yield conflict.path, FORK_LACKS if conflict.ours_oid is None else "upstream deletes it"
        elif conflict.base_oid is None and conflict.ours_oid and conflict.theirs_oid:
            yield conflict.path, "both added it"
        elif conflict.kind != "contents":
            yield conflict.path, conflict.kind


def _proved(
    git: Git,
    span: Range,
    candidates: Sequence[Candidate],
    around: Surroundings,
    results: Mapping[str, PickResult],
    keep: frozenset[str],
    cache: FootprintCache | None,
    progress: Progress | None,
    clock: Clock,
) -> Draft:
    """The draft whose bundles have been shown to land early; what the proof refuses goes to the chains."""
    reference = next((r.tree for r in reversed(list(results.values())) if r.tree is not None), None) or git.tree_of(
        span.fork_tip
    )
    clean = frozenset(sha for sha, result in results.items() if result.kind != "conflict")
    for count in range(_ROUNDS):
        made = draft(candidates, around)
        clock.lap("decision")
        proof = prove(
            git,
            draft=made,
            candidates=candidates,
            fork=span.fork_tip,
            reference=reference,
            clean=clean,
            keep_deleted=keep,
            kept=cache,
            progress=progress,
            desperate=count == _ROUNDS - 2,
        )
        clock.lap("proof")
        if proof.holds:
            return made
        around = _after(around, proof)
    raise CannotPlan("the proof of independence does not settle: report this with both repositories' tips")


def _after(around: Surroundings, proof: Proof) -> Surroundings:
    moved = {**proof.moved, **around.moved}
    tied = {**around.tied}
    for sha, mates in proof.tied.items():
        tied[sha] = tied.get(sha, _NOBODY) | mates
    return replace(around, moved=moved, tied=tied)


def _ledger(
    git: Git,
    span: Range,
    config: Config | None,
    pull_requests: Sequence[LandedPullRequest],
    decisions: Sequence[LedgerEntry],
    now: int,
    *,
    empty: Mapping[str, str] | None = None,
    skipped: Mapping[str, str] | None = None,
    owners: Mapping[str, str] | None = None,
    repository: str | None = None,
) -> Ledger:
    return dispositions(
        upstream=span.upstream,
        fork=span.fork,
        base=git.commit(span.base),
        now=now,
        markers=config.ingest.picked_markers if config is not None else (),
        pull_requests=pull_requests,
        decisions=decisions,
        empty=empty,
        skipped=skipped,
        owners=owners,
        repository=repository,
        default_owner=config.default_owner if config is not None else None,
    )


def _owners(plan: Plan, config: Config | None) -> dict[str, str]:
    """Who must act on each commit of the plan: the first owner of its first area."""
    if config is None:
        return {}
    commits = [c for bundle in plan.bundles for c in bundle.commits]
    commits += [c for chain in plan.chains for c in chain.commits] + list(plan.held)
    named = {c.sha: owners_of(area, config) for c in commits for area in c.areas[:1]}
    return {sha: owners[0] for sha, owners in named.items() if owners}


def _absent(entry: LedgerEntry) -> bool:
    return entry.disposition is Disposition.WONT_PORT or (
        entry.disposition is Disposition.DEFERRED and entry.by != "history"
    )


def _reverted(entry: LedgerEntry) -> bool:
    return entry.disposition is Disposition.REVERTED


def _taken_back(entry: LedgerEntry) -> Reason:
    return Reason(ReasonKind.REVERT, f"the fork took it back: {entry.reason}", (entry.by,), 1.0)


__all__ = ["CannotPlan", "deleted_by_fork", "make_plan", "read_ledger", "read_range"]
