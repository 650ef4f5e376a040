"""May this land? One pure function of facts to allow, pending or block, with the tree of reasons.

The base branch is no exemption: a check stands on a commit, and a pull request may be turned to another base after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from bot.core.config import Config
from bot.core.gate.facts import (
    GateFacts,
    GateReason,
    GateResult,
    PullFact,
    PullKind,
    ReasonCode,
    ReviewState,
    SuiteResult,
)
from bot.core.gate.levels import bystander, level_reason, node
from bot.core.gate.required import Required, required
from bot.core.owners import People, areas_of, owners_of, plain
from bot.core.signoff import SignOff, declared
from bot.core.types import Decision, Level
from bot.core.waivers import JudgedWaiver, WaiverState

WAIVERS_FILE = ".github/graft-waivers.yml"
_CODES = ReasonCode


def decide(*, config: Config | None, facts: GateFacts, now: datetime) -> GateResult:
    """The gate's decision for the head commit of `facts.pull` at the moment `now` (aware).

    What is missing, unknown or cut counts against it. `config` None: the fork's file is missing or broken.
    """
    if now.tzinfo is None:
        raise ValueError("now has no time zone: give an aware time")
    facts = _as_of(facts, now)
    pull = facts.pull
    if config is None:
        return _result(facts, [_broken(facts)])
    if pull.kind is PullKind.PERSON and not config.gate.persons and facts.halted is False:
        text = "the file does not put people's pull requests under this gate (gate.persons: false)"
        return _result(facts, [GateReason(_CODES.EXEMPT, "persons", Decision.ALLOW, text)])
    reasons = [*_first(facts)]
    if pull.files is None:
        return _result(facts, [*reasons, _unreadable()])
    needs = required(config=config, pull=pull)
    areas = tuple(area for area, _ in needs.areas)
    levels = [
        level_reason(config=config, facts=facts, level=level, why=why, areas=areas, touched=needs.touched)
        for level, why in needs.levels
    ]
    reasons += [node(_CODES.ROOT, "levels", "Levels of validation", levels)] if levels else []
    reasons += _sign_offs(config, facts, needs)
    reasons += _reviews(config, facts, needs)
    reasons += _trunk(config, facts, needs)
    reasons += _waivers(facts, needs)
    return _result(facts, reasons, tuple(level for level, _ in needs.levels), areas)


def decide_group(
    *, config: Config | None, head: str, members: Sequence[GateFacts], results: Sequence[SuiteResult], now: datetime
) -> GateResult:
    """The decision for a merge queue's group: each member on its own head, and L1 on the group's own commit."""
    if not members:
        text = "which pull requests are in this group is not known"
        leaf = GateReason(_CODES.FILES, "members", Decision.BLOCK, text, ("maintainers",), "queue them again")
        return _group(head, [leaf])
    reasons = []
    for facts in sorted(members, key=lambda member: member.pull.number):
        tree = decide(config=config, facts=facts, now=now).tree
        number = facts.pull.number
        reasons.append(replace(tree, key=f"#{number}", text=f"#{number}: {tree.text}"))
    if config is not None and Level.L1 in config.gate.levels:
        files = [member.pull.files for member in members]
        pull = PullFact(members[0].pull.number, "", head, files=sum((names or () for names in files), ()))
        facts = _as_of(replace(members[0], pull=pull, results=tuple(results), waivers=()), now)
        touched = areas_of(pull.files or (), config)
        why = "the merge queue"
        reasons.append(level_reason(config=config, facts=facts, level=Level.L1, why=why, areas=(), touched=touched))
    return _group(head, reasons)


def _group(head: str, reasons: list[GateReason]) -> GateResult:
    tree = node(_CODES.ROOT, "group", f"May the group {head[:10]} land?", reasons)
    return GateResult(tree.decision, head, tree)


def _as_of(facts: GateFacts, now: datetime) -> GateFacts:
    """The facts with waivers lapsed that ended since they were judged."""

    def lapse(judged: JudgedWaiver) -> JudgedWaiver:
        if judged.holds and now >= judged.waiver.ends:
            text = f"lapsed at {judged.waiver.ends:%Y-%m-%d %H:%M} UTC"
            return replace(judged, state=WaiverState.LAPSED, text=text)
        return judged

    filed = None if facts.file_waivers is None else tuple(map(lapse, facts.file_waivers))
    return replace(facts, waivers=tuple(map(lapse, facts.waivers)), file_waivers=filed)


def _result(
    facts: GateFacts, reasons: list[GateReason], levels: tuple[Level, ...] = (), areas: tuple[str, ...] = ()
) -> GateResult:
    if not reasons:
        reasons = [GateReason(_CODES.EXEMPT, "nothing", Decision.ALLOW, "the file asks for nothing here")]
    tree = node(_CODES.ROOT, "gate", f"May {facts.pull.head[:10]} land?", reasons)
    return GateResult(tree.decision, facts.pull.head, tree, levels, areas)


def _broken(facts: GateFacts) -> GateReason:
    found = "; ".join(facts.config_problems[:5]) or "it could not be read"
    text = f".github/graft.yml of the default branch is broken: {found}"
    return GateReason(_CODES.CONFIG, "config", Decision.BLOCK, text, ("maintainers",), "mend .github/graft.yml")


def _unreadable() -> GateReason:
    text = "the list of changed files is cut or can't be read, so what is required is not known"
    how = "split the change into smaller pull requests"
    return GateReason(_CODES.FILES, "files", Decision.BLOCK, text, ("author",), how)


def _first(facts: GateFacts) -> Iterator[GateReason]:
    """What stands before any level: the halt, the draft, what a resolution left behind, an unread plan."""
    pull = facts.pull
    if facts.halted is not False:
        by = f" by {facts.halted_by}" if facts.halted_by else ""
        text = (
            f"halted{by}: an issue labelled graft:halt is open"
            if facts.halted
            else "whether Graft is halted is unknown"
        )
        yield GateReason(_CODES.HALT, "halt", Decision.BLOCK, text, ("maintainers",), "close the issue graft:halt")
    if pull.draft:
        who = pull.author if pull.kind is PullKind.PERSON else "maintainers"  # Graft can't mark its own
        yield GateReason(_CODES.DRAFT, "draft", Decision.PENDING, "it is a draft", (who,), "mark it ready for review")
    yield from _listed(pull.conflict_markers, _CODES.MARKERS, "markers", "conflict markers are left in", "resolve them")
    yield from _listed(
        pull.open_findings, _CODES.FINDINGS, "findings", "a person has to confirm of the resolution",
        "approve the pull request after looking at each, or mend it",
    )  # fmt: skip
    if pull.risks is None:
        text = "the plan of this batch could not be read, so its risks are not known"
        yield GateReason(_CODES.FILES, "risks", Decision.BLOCK, text, ("maintainers",), "/retry")


def _listed(found: tuple[str, ...] | None, code: ReasonCode, key: str, text: str, command: str) -> Iterator[GateReason]:
    if found is None:
        yield GateReason(
            code, key, Decision.BLOCK, f"not known whether {text}: not checked", ("maintainers",), "/retry"
        )
    elif found:
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        yield GateReason(code, key, Decision.BLOCK, f"{text}: {', '.join(found[:5])}{more}", ("author",), command)


def _sign_offs(config: Config, facts: GateFacts, needs: Required) -> list[GateReason]:
    leaves = [_sign_off(config, facts, area, why) for area, why in needs.areas]
    return [node(_CODES.ROOT, "signoffs", "Sign-offs by area", leaves)] if leaves else []


def _sign_off(config: Config, facts: GateFacts, area: str, why: str) -> GateReason:
    owners = owners_of(area, config)
    given = [sign_off for sign_off in facts.sign_offs if sign_off.area == area]
    standing = sorted({sign_off.by for sign_off in given if sign_off.stands})
    if standing:
        return GateReason(_CODES.SIGNOFF, area, Decision.ALLOW, f"{area}: signed off by {', '.join(standing)}", owners)
    metrics = "".join(f" {metric}=…" for metric in dict.fromkeys(metric for _, metric in declared(area, config)))
    void = dict.fromkeys(f"{sign_off.by}: {sign_off.text}" for sign_off in sorted(given, key=_newest))
    was = f" ({'; '.join(void)})" if void else ""
    text = f"{area}: not signed off, required by {why}{was}"
    if not owners:
        text = f"{area}: nobody can sign off, it has no owner in .github/graft.yml and there is no default_owner"
    return GateReason(_CODES.SIGNOFF, area, Decision.BLOCK, text, owners, f"/signoff l3 {area}{metrics}")


def _newest(sign_off: SignOff) -> tuple[int, str, str]:
    return -sign_off.comment_id, sign_off.by, sign_off.text


def _reviews(config: Config, facts: GateFacts, needs: Required) -> list[GateReason]:
    """Changes asked for by those who may write hold it; a resolved conflict needs the approval of who owns it."""
    if facts.reviews is None:
        text = "the reviews can't be read"
        return [GateReason(_CODES.REVIEW, "reviews", Decision.BLOCK, text, ("maintainers",), "/retry")]
    leaves = []
    against = {r.login for r in facts.reviews if r.state is ReviewState.CHANGES_REQUESTED}
    for login in sorted(name for name in against if _may_hold(facts.people, name)):
        text = f"{login} asked for changes"
        leaves.append(
            GateReason(_CODES.REVIEW, login, Decision.BLOCK, text, (login,), "a new review, or its dismissal")
        )
    if needs.reviewers_of is not None:
        leaves += [_approval(config, facts, area) for area in needs.reviewers_of or ("",)]
    return [node(_CODES.ROOT, "reviews", "Reviews", leaves)] if leaves else []


def _may_hold(people: People, login: str) -> bool:
    """Those who may write hold a change up, and those of whom it is not known."""
    return people.can_write(login) or not people.asked_about(login)


def _approval(config: Config, facts: GateFacts, area: str) -> GateReason:
    """The approval of a resolved conflict, on this very commit, by someone who answers for the stage concerned."""
    owners = owners_of(area, config) if area else ()
    fit = sorted({
        review.login
        for review in facts.reviews or ()
        if review.state is ReviewState.APPROVED
        and review.head == facts.pull.head
        and plain(review.login) != plain(facts.pull.author)
        and facts.people.can_write(review.login)
        and (facts.people.is_one_of(review.login, owners) if owners else facts.people.can_maintain(review.login))
    })  # fmt: skip
    of = f"of {area}" if area else "by a maintainer"
    if fit:
        text = f"the resolution was approved {of}: {', '.join(fit)}"
        return GateReason(_CODES.REVIEW, area or "maintainer", Decision.ALLOW, text, owners)
    text = f"the resolution of a conflict needs an approval {of} on this commit"
    return GateReason(
        _CODES.REVIEW, area or "maintainer", Decision.BLOCK, text, owners or ("maintainers",), "approve in a review"
    )


def _trunk(config: Config, facts: GateFacts, needs: Required) -> list[GateReason]:
    watched = set(config.gate.trunk_red_blocks) & set(needs.touched)
    if not watched:
        return []
    if facts.breakages is None:
        text = "the state of trunk is not known"
        return [GateReason(_CODES.TRUNK, "trunk", Decision.BLOCK, text, ("maintainers",), "/retry")]
    leaves = []
    for breakage in sorted(set(facts.breakages), key=lambda item: (item.key, item.area or "", item.issue or 0)):
        if breakage.area in watched and breakage.key not in facts.pull.fixes:
            issue = f" (#{breakage.issue})" if breakage.issue else ""
            text = f"trunk is red in {breakage.area}: {breakage.key}{issue}"
            owners = owners_of(breakage.area, config) if breakage.area else ()
            leaves.append(GateReason(_CODES.TRUNK, breakage.key, Decision.BLOCK, text, owners, "mend trunk first"))
    return [node(_CODES.ROOT, "trunk", "Trunk", leaves)] if leaves else []


def _waivers(facts: GateFacts, needs: Required) -> list[GateReason]:
    """Lapsed waivers of the fork's file: red for their owner's pull requests and their areas, and for nobody else.

    A change of that file itself is how they are mended, so it is not held up by them.
    """
    if facts.file_waivers is None:
        text = f"{WAIVERS_FILE} is broken or can't be read"
        return [GateReason(_CODES.WAIVER, "file", Decision.BLOCK, text, ("maintainers",), f"mend {WAIVERS_FILE}")]
    leaves = []
    lapsed = {judged for judged in facts.file_waivers if judged.state is WaiverState.LAPSED}
    for judged in sorted(lapsed, key=lambda j: (j.waiver.scope, j.waiver.owner, j.waiver.until)):
        waiver = judged.waiver
        if WAIVERS_FILE in (facts.pull.files or ()) or bystander(judged, facts.pull, needs.touched, facts):
            continue
        text = f"the waiver of {waiver.scope} {judged.text}"
        how = f"take it out of {WAIVERS_FILE}, with the failure mended, or waived anew"
        leaves.append(GateReason(_CODES.WAIVER, waiver.scope, Decision.BLOCK, text, (waiver.owner,), how))
    return [node(_CODES.ROOT, "waivers", "Lapsed waivers", leaves)] if leaves else []
