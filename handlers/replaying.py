"""Hold the planner against what a fork's maintainers really did: decide each pick on its day, then look what landed.

`decide` is given questions, which hold no answer: the upstream commit and the fork's commit of that day. What landed is
read by `judge`, after the decision.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from bot.context import Git, PickResult
from bot.core.config import Config
from bot.core.divergence import FileDivergence
from bot.core.footprint import FootprintCache
from bot.core.history import History, read_history
from bot.core.render.plan import reason_dict
from bot.core.reverts import Link, revert_links
from bot.core.risk import RevertFacts, Trial, assess, chance_of_hand_work, verdict
from bot.core.signals import Signal, signals
from bot.core.trailers import pull_number
from bot.core.types import Commit, Plan, Reason, Verdict
from handlers.planning import make_plan, shared_history
from handlers.surveying import UpstreamVersions, WordIndex, footprints, survey

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Question:
    """What the planner may see of a pick: the upstream commit, and the fork's tip on the day it was picked."""

    upstream: str
    fork_parent: str


@dataclass(frozen=True, slots=True)
class Decided:
    """What the planner says: `tree` is what it would land, None where it lands nothing without a person."""

    question: Question
    pr: int | None
    subject: str
    verdict: Verdict
    reasons: tuple[Reason, ...]
    signals: tuple[Signal, ...]
    tree: str | None

    @property
    def chance(self) -> float:
        """How likely (0 to 1) the planner holds work by hand for."""
        return chance_of_hand_work(self.reasons)


@dataclass(frozen=True, slots=True)
class Judged:
    """A decision with what came of it. `identical`: the tree that Graft would land is the one that landed.

    None where Graft would land none. `by_hand`: the maintainers say that they resolved a conflict. `differs` are the
    paths in which the two differ (at most 20).
    """

    decided: Decided
    landed: str
    identical: bool | None
    by_hand: bool = False
    differs: tuple[str, ...] = ()


class Past:
    """Both histories, read once; knows what was there on a day."""

    def __init__(self, git: Git, *, upstream: str, fork: str, markers: Sequence[str] = ()) -> None:
        base = git.merge_base(upstream, fork)
        if base is None:
            raise ValueError(f"{upstream} and {fork} have no common ancestor in {git.path}: fetch both in full")
        self.upstream = git.commits(upstream, [base])
        self.versions = UpstreamVersions(git, base=base, commits=self.upstream)
        # a clock that never goes back: committers' clocks do
        self._times = list(accumulate((commit.committer_time for commit in self.upstream), max))
        self._position = {commit.sha: index for index, commit in enumerate(self.upstream)}
        landed = git.commits(fork, [base], first_parent=False)
        self._fork_position = {commit.sha: index for index, commit in enumerate(landed)}
        self._history: History = read_history(upstream=self.upstream, fork=landed, markers=markers)
        numbers = {number: c.sha for c in self.upstream if (number := pull_number(c.message)) is not None}
        older = shared_history(git, base)
        self.links: Mapping[str, Link] = revert_links(commits=self.upstream, older=older, numbers=numbers)

    def known_at(self, commit: Commit, upstream: str) -> int:
        """How many upstream commits could be seen on the day of the fork's `commit`, `upstream` among them."""
        return max(bisect_right(self._times, commit.committer_time), self._position.get(upstream, -1) + 1)

    def landed_at(self, upstream: str, fork_parent: str) -> bool:
        """True where the fork's history up to `fork_parent` carries the upstream commit and has not taken it back."""
        if upstream not in self._position:
            return True
        day = self._fork_position.get(fork_parent, -1)

        def until(sha: str | None) -> bool:
            return sha is not None and self._fork_position.get(sha, day + 1) <= day

        return any(until(c.sha) and not until(c.reverted_by) for c in self._history.carriers.get(upstream, ()))

    def revert_at(self, upstream: str, fork_parent: str, trial: Trial) -> RevertFacts | None:
        """What is known of a revert on that day.

        One that merges, and changes something, takes back what is there, whether or not the fork recorded it.
        """
        link = self.links.get(upstream)
        if link is None:
            return None
        there = trial.kind == "clean"
        missing = tuple(t for t in link.targets if not there and not self.landed_at(t, fork_parent))
        return RevertFacts(link.targets, missing, known=bool(link.targets), partial=link.partial, kind=link.kind)


def decide(
    git: Git,
    questions: Sequence[Question],
    *,
    past: Past,
    config: Config | None = None,
    cache: FootprintCache | None = None,
    progress: Progress | None = None,
) -> Iterator[Decided]:
    """What the planner says of each, in the order given (the order of the fork's history is quickest)."""
    commits = dict(zip([q.upstream for q in questions], git.commits_of([q.upstream for q in questions]), strict=True))
    parents = {c.sha: c for c in git.commits_of(list(dict.fromkeys(q.fork_parent for q in questions)))}
    found = footprints(git, list(commits.values()), cache=cache, progress=progress)
    ours, theirs = WordIndex(git, cache), WordIndex(git, cache)
    known: dict[str, FileDivergence] = {}
    for count, question in enumerate(questions, 1):
        commit, print_ = commits[question.upstream], found[question.upstream]
        until = past.known_at(parents[question.fork_parent], question.upstream)
        divergence = survey(
            git, fork=question.fork_parent, versions=past.versions, until=until, words=ours, known=known, cache=cache
        )
        result = git.pick(question.upstream, question.fork_parent)
        trial = _trial(result)
        reasons = assess(
            footprint=print_,
            divergence=divergence,
            trial=trial,
            ingest=config.ingest if config else None,
            revert=past.revert_at(question.upstream, question.fork_parent, trial),
            upstream_words=theirs.of(commit.parents[0]).keys() if commit.parents else None,
        )
        yield Decided(
            question=question,
            pr=pull_number(commit.message),
            subject=commit.subject,
            verdict=verdict(reasons, trial),
            reasons=reasons,
            signals=signals(print_, divergence),
            tree=result.tree,
        )
        if progress:
            progress("picks", count, len(questions))


def judge(git: Git, decided: Decided, landed: str, *, by_hand: bool = False) -> Judged:
    """What became of it: the tree that the fork's commit `landed` holds, against the tree that Graft would land."""
    if decided.tree is None:
        return Judged(decided, landed, None, by_hand)
    tree = git.tree_of(landed)
    if tree == decided.tree:
        return Judged(decided, landed, True, by_hand)
    differs = tuple(change.path for change in git.changed_files(decided.tree, tree)[:20])
    return Judged(decided, landed, False, by_hand, differs)


def window(
    git: Git,
    *,
    until: int,
    upstream: str,
    fork: str,
    config: Config | None = None,
    cache: FootprintCache | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The plan of a day (`until`, seconds since the epoch) against what the fork landed afterwards, ready for JSON.

    `identical` compares, for a commit that later landed alone, its pick on that landing's parent with what landed.
    """
    tips = {}
    for name in (upstream, fork):
        seen = git.commits(name, before=until)
        if not seen:
            raise ValueError(f"{name} has no commit before that day")
        tips[name] = seen[-1].sha
    plan = make_plan(
        git, upstream=tips[upstream], fork=tips[fork], config=config, cache=cache, now=until, progress=progress
    )
    placed = [(f"bundle {b.key}", c) for b in plan.bundles for c in b.commits]
    placed += [(f"{'lane' if chain.lane else 'chain'} {chain.key}", c) for chain in plan.chains for c in chain.commits]
    placed += [("held", c) for c in plan.held] + [("settled", c) for c in plan.settled]
    later = _landed_alone(git, plan, fork, config)
    rows: list[dict[str, Any]] = []
    with git.scratch() as scratch:
        for place, commit in placed:
            landed = later.get(commit.sha)
            rows.append(
                {
                    "upstream": commit.sha,
                    "pr": commit.pr,
                    "verdict": commit.verdict.value,
                    "place": place,
                    "landed": landed.sha if landed else None,
                    "identical": _same_as_landed(scratch, commit.sha, landed) if landed else None,
                    "reasons": [reason_dict(reason) for reason in commit.reasons],
                }
            )
    return {"upstream": plan.upstream_tip, "fork": plan.fork_tip, "picks": rows, "summary": _window_summary(plan, rows)}


def _landed_alone(git: Git, plan: Plan, fork: str, config: Config | None) -> dict[str, Commit]:
    """The fork's commits after the plan's tip that carry just one upstream commit, by that."""
    landed = git.commits(fork, [plan.fork_tip], first_parent=False)
    history = read_history(
        upstream=git.commits(plan.upstream_tip, [plan.merge_base]),
        fork=landed,
        markers=config.ingest.picked_markers if config else (),
    )
    carried: dict[str, list[str]] = {}
    for sha, carriers in history.carriers.items():
        for carrier in carriers:
            carried.setdefault(carrier.sha, []).append(sha)
    alone = {shas[0]: name for name, shas in carried.items() if len(shas) == 1}
    commits = {commit.sha: commit for commit in landed}
    return {sha: commits[name] for sha, name in alone.items() if name in commits and len(commits[name].parents) == 1}


def _same_as_landed(git: Git, upstream: str, landed: Commit) -> bool | None:
    result = git.pick(upstream, landed.parents[0])
    return None if result.tree is None else result.tree == landed.tree


def _window_summary(plan: Plan, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    def identical(verdict: Verdict) -> str:
        known = [row["identical"] for row in rows if row["verdict"] == verdict.value and row["identical"] is not None]
        return f"{sum(known)} of {len(known)}"

    return {
        "commits": len(rows),
        "in bundles": sum(len(bundle.commits) for bundle in plan.bundles),
        "bundles": len(plan.bundles),
        "in chains": sum(len(chain.commits) for chain in plan.chains),
        "chains": len(plan.chains),
        "held": len(plan.held),
        "settled": len(plan.settled),
        "safe, landed later unchanged": identical(Verdict.SAFE),
        "watch, landed later unchanged": identical(Verdict.WATCH),
        "risky, landed later unchanged": identical(Verdict.RISKY),
    }


def _trial(result: PickResult) -> Trial:
    return Trial(result.kind, tuple(conflict.path for conflict in result.conflicts))


__all__ = ["Decided", "Judged", "Past", "Question", "decide", "judge", "window"]
