"""An append-only chain of entries: each holds the hash of the one before, so that no change stays unseen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Protocol

GENESIS = "0" * 64
VERSION = 1
_FIELDS = ("version", "repository", "installation", "sequence", "kind", "at", "body", "previous", "hash")


class AuditKind(StrEnum):
    """What an entry tells."""

    SYNC = "sync"
    GATE = "gate"
    RUN = "run"
    COMMAND = "command"
    SIGNOFF = "signoff"
    WAIVER = "waiver"
    DECISION = "decision"
    PULL = "pull"
    MERGE = "merge"
    BREAKAGE = "breakage"
    ROLLBACK = "rollback"
    CONFIG = "config"
    HALT = "halt"
    CHECKPOINT = "checkpoint"


class EntryLike(Protocol):
    """What verifying needs of an entry; a row of the store has it too."""

    @property
    def repository(self) -> str:
        """The repository, owner/name."""

    @property
    def installation(self) -> int:
        """The installation of the App."""

    @property
    def sequence(self) -> int:
        """Its number, from 1."""

    @property
    def kind(self) -> str:
        """What it tells."""

    @property
    def body(self) -> Mapping[str, Any]:
        """The facts, as JSON."""

    @property
    def previous(self) -> str:
        """The hash of the entry before."""

    @property
    def hash(self) -> str:
        """Its own hash."""

    @property
    def at(self) -> datetime:
        """When it was written, aware."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: `sequence` counts from 1 within a repository, `at` is in UTC, hashes are SHA-256 in hex."""

    repository: str
    installation: int
    sequence: int
    kind: str
    body: dict[str, Any]
    previous: str
    hash: str
    at: datetime


def canonical(value: object) -> str:
    """The one JSON text of a value; raises ValueError on NaN and infinity, TypeError on what JSON does not hold."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _facts(entry: EntryLike) -> dict[str, Any]:
    return {
        "version": VERSION, "repository": entry.repository, "installation": entry.installation,
        "sequence": entry.sequence, "kind": str(entry.kind), "at": _moment(entry.at), "body": entry.body,
        "previous": entry.previous,
    }  # fmt: skip


def digest(entry: EntryLike) -> str:
    """The hash that an entry must carry."""
    return hashlib.sha256(canonical(_facts(entry)).encode()).hexdigest()


def append(
    head: EntryLike | None, *, repository: str, installation: int, kind: str, body: Mapping[str, Any], at: datetime
) -> Entry:
    """The entry that follows `head` (None: the first); raises ValueError or TypeError on a body that is no JSON."""
    if at.tzinfo is None:
        raise ValueError("the moment of an entry has no time zone")
    if head is not None and head.repository != repository:
        raise ValueError(f"the chain of {head.repository} can't go on with an entry of {repository}")
    plain: dict[str, Any] = json.loads(canonical(dict(body)))
    draft = Entry(
        repository, installation, head.sequence + 1 if head else 1, str(kind), plain, head.hash if head else GENESIS,
        "", at.astimezone(UTC),
    )  # fmt: skip
    return Entry(
        draft.repository, draft.installation, draft.sequence, draft.kind, plain, draft.previous, digest(draft), draft.at
    )


def to_line(entry: EntryLike) -> str:
    """An entry as one line of JSON Lines, without the line break."""
    return canonical({**_facts(entry), "hash": entry.hash})


def from_line(line: str) -> Entry:
    """An entry from its line; raises ValueError with what is wrong. Its hash is not checked here."""
    raw = json.loads(line)
    if not isinstance(raw, dict) or set(raw) != set(_FIELDS):
        raise ValueError(f"an entry has the fields {', '.join(_FIELDS)}")
    if raw["version"] != VERSION:
        raise ValueError(f"version {raw['version']!r} is not known, this program reads version {VERSION}")
    numbers = all(type(raw[key]) is int for key in ("installation", "sequence"))
    if not numbers or not all(isinstance(raw[key], str) for key in ("repository", "kind", "at", "previous", "hash")):
        raise ValueError("a field has the wrong type")
    if not isinstance(raw["body"], dict):
        raise ValueError("body is no mapping")
    at = datetime.fromisoformat(raw["at"].removesuffix("Z")).replace(tzinfo=UTC)
    return Entry(
        raw["repository"], raw["installation"], raw["sequence"], raw["kind"], raw["body"], raw["previous"],
        raw["hash"], at,
    )  # fmt: skip


class FaultKind(StrEnum):
    """What was done to a chain."""

    CHANGED = "changed"
    REMOVED = "removed"
    ADDED = "added"
    REORDERED = "reordered"
    UNLINKED = "unlinked"
    UNREADABLE = "unreadable"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault; `sequence` of the entry concerned (0: none can be named)."""

    kind: FaultKind
    sequence: int
    text: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What verifying found: how many entries, the last one's number and hash, the faults."""

    count: int
    sequence: int
    head: str
    faults: tuple[Fault, ...]

    @property
    def ok(self) -> bool:
        """True where no fault was found."""
        return not self.faults


class CheckpointLike(Protocol):
    """A witness kept elsewhere: at this sequence number the hash was this one."""

    @property
    def sequence(self) -> int:
        """Its number, from 1."""

    @property
    def hash(self) -> str:
        """Its own hash."""


def verify(entries: Iterable[EntryLike], *, checkpoints: Sequence[CheckpointLike] = ()) -> Verification:
    """Every fault of one repository's chain from its first entry, in the order in which it is stored.

    An end that was cut off, and a chain written anew from the start, show only against checkpoints.
    """
    listed = list(entries)
    faults: list[Fault] = []
    kept: dict[int, EntryLike] = {}
    broken: set[int] = set()
    last = 0
    for place, entry in enumerate(listed, 1):
        number = entry.sequence
        if not _intact(entry):
            broken.add(number)
            faults.append(Fault(FaultKind.CHANGED, number, f"entry {number} (place {place}) was changed"))
        if number in kept or entry.repository != listed[0].repository:
            faults.append(Fault(FaultKind.ADDED, number, f"entry {number} (place {place}) was added"))
            continue
        if number < last:
            text = f"entry {number} (place {place}) stands after entry {last}: the order was changed"
            faults.append(Fault(FaultKind.REORDERED, number, text))
        last = max(last, number)
        kept[number] = entry
    faults += _gaps(kept)
    faults += _links(kept, broken)
    faults += _witnesses(kept, checkpoints)
    head = kept[last].hash if kept else GENESIS
    return Verification(len(listed), last, head, tuple(faults))


def _intact(entry: EntryLike) -> bool:
    try:
        return digest(entry) == entry.hash
    except (ValueError, TypeError):
        return False


def _gaps(kept: Mapping[int, EntryLike]) -> Iterator[Fault]:
    expected = 1
    for number in sorted(kept):
        if number > expected:
            what = f"entry {expected} is" if number == expected + 1 else f"entries {expected} to {number - 1} are"
            yield Fault(FaultKind.REMOVED, expected, f"{what} missing")
        expected = number + 1


def _links(kept: Mapping[int, EntryLike], broken: set[int]) -> Iterator[Fault]:
    """Links that do not hold although both entries carry their own right hash: one was replaced, hash and all."""
    for number in sorted(kept):
        before = kept.get(number - 1)
        expected = before.hash if before is not None else GENESIS if number == 1 else kept[number].previous
        if kept[number].previous != expected and not {number, number - 1} & broken:
            text = f"entry {number} was chained to another entry {number - 1}: one of the two was replaced"
            yield Fault(FaultKind.UNLINKED, number, text if before else "entry 1 is not the first: what was before it?")


def _witnesses(kept: Mapping[int, EntryLike], checkpoints: Sequence[CheckpointLike]) -> Iterator[Fault]:
    end = max(kept, default=0)
    for point in checkpoints:
        entry = kept.get(point.sequence)
        if point.sequence > end:
            text = f"the chain ends at entry {end}, a checkpoint saw entry {point.sequence}: the end was cut off"
            yield Fault(FaultKind.REMOVED, point.sequence, text)
        elif entry is not None and entry.hash != point.hash:
            text = f"at entry {point.sequence} a checkpoint saw another hash: what is before it was written anew"
            yield Fault(FaultKind.CHECKPOINT, point.sequence, text)


def verify_lines(lines: Iterable[str], *, checkpoints: Sequence[CheckpointLike] = ()) -> Verification:
    """Verify an exported chain, byte for byte: a line that is not its entry's one text was changed."""
    entries: list[Entry] = []
    faults: list[Fault] = []
    for place, line in enumerate(lines, 1):
        text = line.removesuffix("\n")
        try:
            entry = from_line(text)
        except (ValueError, RecursionError) as error:
            faults.append(Fault(FaultKind.UNREADABLE, 0, f"line {place} can't be read: {error}"))
            continue
        entries.append(entry)
        if _intact(entry) and to_line(entry) != text:
            faults.append(Fault(FaultKind.CHANGED, entry.sequence, f"line {place} was changed in its form"))
    found = verify(entries, checkpoints=checkpoints)
    return Verification(found.count, found.sequence, found.head, (*faults, *found.faults))
