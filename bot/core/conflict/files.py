"""Whole files in conflict: their hunks judged, what is mechanical filled in, the rest left marked for a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bot.core.conflict.marked import Marked, MarkersBroken, read_marked
from bot.core.conflict.merge import merge
from bot.core.conflict.rules import HunkClass, HunkVerdict, Place, judge
from bot.core.conflict.tokens import joined, open_brackets, style_of, values
from bot.core.footprint import language_of
from bot.core.paths import matches
from bot.core.resolution import faults

CI_PATHS = (".github/**", ".gitlab-ci.yml", ".gitlab/**", ".circleci/**", ".azure-pipelines/**", ".buildkite/**")
"""Where continuous integration is set up: what the fork deleted there stays deleted."""

PinPolicy = Literal["fork", "upstream"]


@dataclass(frozen=True, slots=True)
class FileConflict:
    """One file that did not merge.

    `marked` is git's text with diff3 markers, where there is one; a side is None where it lacks the file. `moved` is
    where the fork keeps the file by another name that git did not find, with its text; `later` the file as upstream has
    it at its tip, which tells where the fork took a later commit first.
    """

    path: str
    kind: str
    base: bytes | None
    ours: bytes | None
    theirs: bytes | None
    marked: bytes | None = None
    moved: tuple[str, bytes] | None = None
    later: bytes | None = None


@dataclass(frozen=True, slots=True)
class FileResolution:
    """What became of one file.

    `text` is what to write to `path` (None and `deleted`: remove it); where `resolved` is False it still holds the
    markers of the hunks that a person must decide. Whatever a rule resolved wants a look: `review` says so.
    """

    path: str
    resolved: bool
    text: bytes | None
    deleted: bool
    hunks: tuple[HunkVerdict, ...]

    @property
    def review(self) -> bool:
        """True where a rule wrote something that no side had written."""
        return any(hunk.resolution is not None for hunk in self.hunks) or self.deleted

    @property
    def cls(self) -> HunkClass:
        """The class of the hardest hunk."""
        return max((hunk.cls for hunk in self.hunks), key=_HARDNESS.index, default=HunkClass.MECHANICAL)


_HARDNESS = [HunkClass.MECHANICAL, HunkClass.API, HunkClass.SEMANTIC, HunkClass.UNKNOWN]


def resolve(
    conflicts: Sequence[FileConflict], *, pins: Mapping[str, PinPolicy] | None = None
) -> tuple[FileResolution, ...]:
    """Resolve what is mechanical in each file; `pins` says by path pattern whose version pin stands.

    The last pattern that hits decides. Only the hunks in conflict are chosen by it: the rest of the file is merged.
    """
    return tuple(resolve_file(conflict, pins=pins or {}) for conflict in conflicts)


def resolve_file(conflict: FileConflict, *, pins: Mapping[str, PinPolicy]) -> FileResolution:
    """Resolve what is mechanical in one file."""
    policies = [policy for pattern, policy in pins.items() if matches(conflict.path, [pattern])]
    if policies and (pinned := _pinned(conflict, policies[-1])) is not None:
        return pinned
    if conflict.ours is None or conflict.theirs is None:
        return _one_sided(conflict)
    if conflict.marked is None or b"\0" in conflict.marked[:8192]:
        return _open(conflict, conflict.marked, HunkClass.UNKNOWN, "no-text", f"{conflict.kind}: no text to merge")
    try:
        marked = read_marked(conflict.marked)
    except MarkersBroken as error:
        return _open(conflict, conflict.marked, HunkClass.UNKNOWN, "broken-markers", str(error))
    if not marked.hunks:
        return _open(conflict, conflict.marked, HunkClass.UNKNOWN, "no-hunks", f"{conflict.kind}: the text merged")
    verdicts = _judged(conflict, marked)
    text = marked.filled([verdict.resolution for verdict in verdicts])
    if text is None:
        return FileResolution(conflict.path, False, _partly(marked, verdicts), False, verdicts)
    if _breaks(conflict, text):
        verdicts = tuple(
            HunkVerdict(
                HunkClass.UNKNOWN, "unparsable", (f"by the rule {v.rule} the file no longer parses",), line=v.line
            )
            for v in verdicts
        )
        return FileResolution(conflict.path, False, conflict.marked, False, verdicts)
    return FileResolution(conflict.path, True, text, False, verdicts)


def _judged(conflict: FileConflict, marked: Marked) -> tuple[HunkVerdict, ...]:
    style = style_of(language_of(conflict.path))
    later = joined(values(conflict.later, style)) if conflict.later else ""
    before = b""
    verdicts: list[HunkVerdict] = []
    for index, hunk in enumerate(marked.hunks):
        before += marked.merged[index]
        place = Place(
            conflict.path,
            open_brackets(before, style),
            tuple(marked.merged[index].splitlines(keepends=True)[-3:]),
            tuple(marked.merged[index + 1].splitlines(keepends=True)[:3]),
            later,
        )
        verdicts.append(judge(hunk, place))
        before += hunk.ours
    return tuple(verdicts)


def _partly(marked: Marked, verdicts: Sequence[HunkVerdict]) -> bytes | None:
    return marked.filled(
        [
            hunk.marked if verdict.resolution is None else verdict.resolution
            for hunk, verdict in zip(marked.hunks, verdicts, strict=True)
        ]
    )


def _breaks(conflict: FileConflict, text: bytes) -> bool:
    sides = [side for side in (conflict.ours, conflict.theirs) if side is not None]
    return len(faults(conflict.path, text)) > max(len(faults(conflict.path, side)) for side in sides)


def _one_sided(conflict: FileConflict) -> FileResolution:
    """One side lacks the file."""
    if conflict.ours is None and conflict.moved is not None and conflict.base and conflict.theirs:
        return _moved(conflict, conflict.moved, conflict.base, conflict.theirs)
    if conflict.ours is None and conflict.theirs is not None and matches(conflict.path, CI_PATHS):
        reason = "the fork deleted this file of upstream's continuous integration: it stays deleted"
        verdict = HunkVerdict(HunkClass.MECHANICAL, "ci-deleted", (reason,), b"")
        return FileResolution(conflict.path, True, None, True, (verdict,))
    if conflict.ours is None:
        text = "the fork deleted a file that upstream changes"
        return _open(conflict, conflict.theirs, HunkClass.SEMANTIC, "deleted-in-fork", text)
    text = "upstream deletes a file that the fork has changed"
    return _open(conflict, conflict.ours, HunkClass.SEMANTIC, "deleted-upstream", text)


def _moved(conflict: FileConflict, moved: tuple[str, bytes], base: bytes, theirs: bytes) -> FileResolution:
    """Upstream's change made in the file where the fork keeps it."""
    path, text = moved
    merged = merge(*(side.splitlines(keepends=True) for side in (base, text, theirs)))
    if merged is None:
        why = f"the fork keeps this file as {path}, where both sides change the same lines"
        return _open(conflict, None, HunkClass.SEMANTIC, "moved", why)
    result = b"".join(merged)
    verdict = HunkVerdict(HunkClass.MECHANICAL, "moved", (f"the fork keeps this file as {path}",), result)
    return FileResolution(path, True, result, False, (verdict,))


def _pinned(conflict: FileConflict, policy: PinPolicy) -> FileResolution | None:
    """The pin's side in every hunk; None where the file has no such hunks and one of the sides lacks it."""
    mine = policy == "fork"
    evidence = (f"a version pin: {'the fork' if mine else 'upstream'}'s stands by `ingest.pins`",)
    if conflict.ours is None or conflict.theirs is None:
        return None
    try:
        marked = read_marked(conflict.marked or b"")
    except MarkersBroken:
        return None
    if not marked.hunks:
        text = conflict.ours if mine else conflict.theirs
        return FileResolution(conflict.path, True, text, False, (_pin(evidence, text),))
    verdicts = tuple(_pin(evidence, hunk.ours if mine else hunk.theirs, hunk.line) for hunk in marked.hunks)
    text = marked.filled([verdict.resolution for verdict in verdicts]) or b""
    return FileResolution(conflict.path, True, text, False, verdicts)


def _pin(evidence: tuple[str, ...], text: bytes, line: int = 0) -> HunkVerdict:
    return HunkVerdict(HunkClass.MECHANICAL, "pin", evidence, text, line)


def _open(conflict: FileConflict, text: bytes | None, cls: HunkClass, rule: str, why: str) -> FileResolution:
    return FileResolution(conflict.path, False, text, False, (HunkVerdict(cls, rule, (why,)),))
