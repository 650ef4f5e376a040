"""A plan for programs: plain values in a fixed order, so that the same plan is the same text."""

from __future__ import annotations

from typing import Any

from bot.core.types import Plan, PlannedCommit, Reason


def as_dict(plan: Plan) -> dict[str, Any]:
    """The plan as JSON's values; `timings` is the only part that differs from run to run."""
    return {
        "upstream": plan.upstream_tip,
        "fork": plan.fork_tip,
        "merge_base": plan.merge_base,
        "bundles": [
            {"key": bundle.key, "grade": bundle.grade.value, "commits": [commit_dict(c) for c in bundle.commits]}
            for bundle in plan.bundles
        ],
        "chains": [
            {
                "key": chain.key,
                "lane": chain.lane,
                "levels": [level.value for level in chain.levels],
                "areas": list(chain.areas),
                "commits": [commit_dict(c) for c in chain.commits],
            }
            for chain in plan.chains
        ],
        "held": [commit_dict(c) for c in plan.held],
        "settled": [commit_dict(c) for c in plan.settled],
        "ledger": {
            "pin": plan.ledger.pin,
            "frontier": plan.ledger.frontier,
            "dispositions": {entry.sha: entry.disposition.value for entry in plan.ledger.entries},
            "holes": [
                {
                    "sha": hole.sha,
                    "subject": hole.subject,
                    "age_days": round(hole.age_days, 3),
                    "reason": hole.reason,
                    "owner": hole.owner,
                }
                for hole in plan.ledger.holes
            ],
        },
        "metrics": {
            "days_behind": round(plan.ledger.metrics.days_behind, 3),
            "backlog": plan.ledger.metrics.backlog,
            "stale_since": plan.ledger.metrics.stale_since,
        },
        "timings": plan.timings,
    }


def reason_dict(reason: Reason, most: int | None = 5) -> dict[str, Any]:
    """One reason as JSON's values, with at most so many pieces of its evidence (None: all), and how many there are."""
    return {
        "kind": reason.kind.value,
        "text": reason.text,
        "evidence": list(reason.evidence[:most]),
        "evidence_total": len(reason.evidence),
        "weight": reason.weight,
    }


def commit_dict(commit: PlannedCommit) -> dict[str, Any]:
    """One planned commit as JSON's values."""
    return {
        "sha": commit.sha,
        "pr": commit.pr,
        "subject": commit.subject,
        "verdict": commit.verdict.value,
        "reasons": [reason_dict(reason) for reason in commit.reasons],
        "waits_for": list(commit.waits_for),
        "areas": list(commit.areas),
    }


def places(plan: Plan) -> dict[str, tuple[str, PlannedCommit]]:
    """Each planned commit by sha with the words for where it is."""
    found: dict[str, tuple[str, PlannedCommit]] = {}
    for number, bundle in enumerate(plan.bundles, 1):
        where = f"bundle {number} of {len(plan.bundles)} ({bundle.key}, {bundle.grade.value})"
        found |= {commit.sha: (where, commit) for commit in bundle.commits}
    for chain in plan.chains:
        name = "lane" if chain.lane else "chain"
        for link, commit in enumerate(chain.commits, 1):
            found[commit.sha] = (f"link {link} of {len(chain.commits)} of {name} {chain.key}", commit)
    found |= {commit.sha: ("held back", commit) for commit in plan.held}
    found |= {commit.sha: ("settled: nothing is to be done", commit) for commit in plan.settled}
    return found


def explained(plan: Plan, sha: str) -> dict[str, Any] | None:
    """All that is known of one upstream commit: place, disposition, who waits for it; None if it isn't there."""
    known = places(plan)
    entry = next((entry for entry in plan.ledger.entries if entry.sha == sha), None)
    if sha not in known and entry is None:
        return None
    facts: dict[str, Any] = {"sha": sha, "place": None, "disposition": None}
    if entry is not None:
        facts |= {
            "subject": entry.subject,
            "disposition": entry.disposition.value,
            "by": entry.by or None,
            "reason": entry.reason or None,
            "owner": entry.owner,
        }
    if sha in known:
        where, commit = known[sha]
        facts |= {"place": where, **commit_dict(commit)}
        facts["reasons"] = [reason_dict(reason, None) for reason in commit.reasons]
        facts["awaited_by"] = [other for other, (_, planned) in known.items() if sha in planned.waits_for]
    return facts
