"""Every order of up to five events in a small world: the gate is open only where a plain oracle agrees."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest

from bot.core.comments import CommentFact
from bot.core.config import Config
from bot.core.gate import GateFacts, PullFact, SuiteResult, decide
from bot.core.owners import People
from bot.core.signoff import Change, Fingerprint, SignOff, fingerprint, sign_offs
from bot.core.types import Decision, Level, Outcome
from bot.core.waivers import Failure, JudgedWaiver, from_comments

START = datetime(2026, 11, 29, 12, tzinfo=UTC)


@cache
def file(*, keep: bool) -> Config:
    return Config.of({
        "upstream": {"repository": "a/b"},
        "areas": {"core": {"paths": ["lib/**"], "owners": ["olga", "otto"]}},
        "validation": {"l1": [{"suite": "unit", "area": "core"}]},
        "gate": {"require_signoff_from": ["core"], "keep_signoff_outside_area": keep},
    })  # fmt: skip


@dataclass(frozen=True)
class Said:
    """A comment: what it says, when (its place in time), about which head, and what became of it."""

    by: str
    body: str
    at: int
    head: int
    edited: bool = False
    deleted: bool = False


@dataclass(frozen=True)
class World:
    """Heads are numbered; `area` and `rest` are the contents of the newest one, `base` what it stands on."""

    head: int = 0
    area: int = 0
    rest: int = 0
    base: int = 0
    clock: int = 0
    expired: bool = False
    member: bool = True
    comments: tuple[Said, ...] = ()
    results: tuple[tuple[int, bool], ...] = ()
    history: tuple[tuple[int, int], ...] = ((0, 0),)


SIGN, UNSIGN = "/signoff l3 core", "/unsign l3 core"
WAIVE = '/waive unit::t until=2026-11-30 owner=@olga reason="r" plan="p"'


def push(world: World, *, area: bool) -> World:
    new = replace(world, head=world.head + 1, area=world.area + area, rest=world.rest + (not area))
    return replace(new, history=(*new.history, (new.area, new.rest)))


def base_move(world: World) -> World:
    """The base is merged in: a new head whose own change is the same."""
    new = replace(world, head=world.head + 1, base=world.base + 1)
    return replace(new, history=(*new.history, (new.area, new.rest)))


def say(by: str, body: str) -> Callable[[World], World]:
    def event(world: World) -> World:
        said = Said(by, body, world.clock, world.head)
        return replace(world, clock=world.clock + 1, comments=(*world.comments, said))

    return event


def last(change: str) -> Callable[[World], World]:
    def event(world: World) -> World:
        if not world.comments:
            return world
        changed = replace(world.comments[-1], **{change: True})  # type: ignore[arg-type]
        return replace(world, comments=(*world.comments[:-1], changed))

    return event


def report(*, good: bool) -> Callable[[World], World]:
    return lambda world: replace(world, results=(*(r for r in world.results if r[0] != world.head), (world.head, good)))


EVENTS: dict[str, Callable[[World], World]] = {
    "push to the area": lambda world: push(world, area=True),
    "push elsewhere": lambda world: push(world, area=False),
    "base moves": base_move,
    "owner signs": say("olga", SIGN),
    "other owner signs": say("otto", SIGN),
    "owner withdraws": say("olga", UNSIGN),
    "maintainer waives": say("max", WAIVE),
    "last comment edited": last("edited"),
    "last comment deleted": last("deleted"),
    "time passes": lambda world: replace(world, expired=True),
    "owner leaves": lambda world: replace(world, member=False),
    "unit passes": report(good=True),
    "unit fails": report(good=False),
}


def sha(head: int) -> str:
    return f"{head:040x}"


@cache
def prints(history: tuple[tuple[int, int], ...], *, keep: bool) -> dict[str, Fingerprint]:
    return {
        sha(head): fingerprint(
            [Change("lib/a", "0", str(area), "100644"), Change("doc/b", "0", str(rest), "100644")], file(keep=keep)
        )
        for head, (area, rest) in enumerate(history)
    }  # fmt: skip


def heard(world: World, *, forgetful: bool) -> tuple[CommentFact, ...]:
    """The comments as the events told them, or (`forgetful`) as the sweep finds them: a deleted one is not there."""
    return tuple(
        CommentFact(
            said.at, said.by, said.body, START + timedelta(minutes=said.at), sha(said.head), said.edited, said.deleted
        )
        for said in world.comments
        if not (forgetful and said.deleted)
    )  # fmt: skip


def people(*, member: bool) -> People:
    return People.of({"olga": "write" if member else "none", "otto": "read", "max": "maintain"})


@cache
def signed(
    comments: tuple[CommentFact, ...], history: tuple[tuple[int, int], ...], *, member: bool, keep: bool
) -> tuple[SignOff, ...]:
    return sign_offs(
        config=file(keep=keep), comments=comments, people=people(member=member), author="author",
        head=sha(len(history) - 1), fingerprints=prints(history, keep=keep),
    )  # fmt: skip


@cache
def waived(comments: tuple[CommentFact, ...], head: str, now: datetime) -> tuple[JudgedWaiver, ...]:
    who = people(member=True)
    return from_comments(comments=comments, people=who, head=head, pull=7, config=file(keep=True), now=now)


def facts_of(world: World, now: datetime, *, keep: bool, forgetful: bool = False) -> GateFacts:
    """What the gate is given."""
    comments, head = heard(world, forgetful=forgetful), sha(world.head)
    return GateFacts(
        PullFact(7, "author", head, files=("lib/a", "doc/b")),
        results=tuple(
            SuiteResult(
                Level.L1, "unit", sha(at), outcome=Outcome.PASSED if good else Outcome.FAILED,
                failures=() if good else (Failure(Level.L1, "unit", Outcome.FAILED, test="t"),),
            )
            for at, good in world.results
        ),
        sign_offs=signed(comments, world.history, member=world.member, keep=keep),
        waivers=waived(comments, head, now),
        people=people(member=world.member),
    )  # fmt: skip


def proved(world: World) -> bool:
    """The oracle: the last report on this head is good, or bad with a live waiver for this head."""
    here = dict(world.results).get(world.head)
    waived = any(
        said.body == WAIVE and said.head == world.head and not said.edited and not said.deleted
        for said in world.comments
    )  # fmt: skip
    return here is True or (here is False and waived and not world.expired)


def approved(world: World, *, keep: bool) -> bool:
    """The oracle: an untouched sign-off by an owner with access, not taken back later, for what the head holds now.

    Taking back is open to any owner, with or without access: doubt closes.
    """
    for said in world.comments:
        if said.body != SIGN or said.edited or said.deleted or (said.by == "olga" and not world.member):
            continue
        taken = any(o.body == UNSIGN and o.at > said.at and not o.deleted for o in world.comments)
        area, rest = world.history[said.head]
        same = said.head == world.head or (area == world.area and (keep or rest == world.rest))
        if same and not taken:
            return True
    return False


# the races of the gate at length, and all that can happen one event shorter
RACES = ("push to the area", "push elsewhere", "base moves", "owner signs", "maintainer waives", "last comment edited",
         "time passes", "unit passes", "unit fails")  # fmt: skip


def explore(names: Iterable[str], depth: int) -> tuple[set[World], int]:
    """All worlds reachable by up to `depth` events, and how many orders of events lead there."""
    seen, edge, orders = {World()}, {World(): 1}, 1
    for _ in range(depth):
        following: dict[World, int] = {}
        for world, ways in edge.items():
            for name in names:
                new = EVENTS[name](world)
                following[new] = following.get(new, 0) + ways
        orders += sum(following.values())
        edge = following
        seen |= set(following)
    return seen, orders


@pytest.mark.parametrize(("names", "depth"), [(RACES, 5), (tuple(EVENTS), 4)], ids=["races", "all"])
def test_all_orders_of_events(names: tuple[str, ...], depth: int) -> None:
    worlds, orders = explore(names, depth)
    assert orders == sum(len(names) ** length for length in range(depth + 1))
    opened = 0
    for world in worlds:
        # half the worlds stand for each kind of file
        keep = (world.head + world.clock) % 2 == 0
        now = datetime(2026, 12, 1, tzinfo=UTC) if world.expired else datetime(2026, 11, 30, 23, 59, tzinfo=UTC)
        known = file(keep=keep)
        told = decide(config=known, facts=facts_of(world, now, keep=keep), now=now)
        expected = proved(world) and approved(world, keep=keep)
        assert (told.decision is Decision.ALLOW) is expected, (world, told.missing)
        # what the events told and what a sweep finds on GitHub, where a deleted comment is gone, must not differ
        if any(said.deleted for said in world.comments):
            swept = decide(config=known, facts=facts_of(world, now, keep=keep, forgetful=True), now=now)
            assert swept.decision is told.decision, world
        opened += expected
    assert opened > 100
