"""What speaks against landing a commit unchanged: facts with their evidence and their size, not yet weighed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from math import log2

from bot.core.divergence import Divergence, FileDivergence
from bot.core.footprint import TOP, FileFootprint, Footprint, is_test
from bot.core.types import ReasonKind

_SHOWN = 5
_COMMON = 0.02  # a name in more than this share of the fork's files says nothing of who uses what
_RARE = 12  # … but one in no more files than this is never common
_SHORTEST = 3  # letters; a shorter name is a local variable's
_SMALL = 40  # changed lines up to which a commit's size is no signal
_PIN = re.compile(
    r"(^|/)[^/]*(llvm|toolchain|nvidia|cuda|rocm|hip|clang|gcc|rust|sysroot|compiler)[^/]*"
    r"(hash|version|revision|rev|pin|tag|commit)s?[^/]*$|(^|/)rust-toolchain(\.toml)?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Signal:
    """One fact. `name` is what its weight is learned under; `size` (over 0) how strong it is, 1 for a single case."""

    name: str
    kind: ReasonKind
    text: str
    evidence: tuple[str, ...]
    size: float


def signals(footprint: Footprint, divergence: Divergence) -> tuple[Signal, ...]:
    """The signals of a commit whose weight is learned from history, in the order of their names."""
    found = [*_by_file(footprint, divergence), *_by_name(footprint, divergence), *_by_extent(footprint)]
    return tuple(sorted(found, key=lambda signal: signal.name))


def toolchain_pins(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths that pin a toolchain: a hash, a version or a revision of LLVM, CUDA, ROCm, a compiler."""
    return tuple(sorted(path for path in paths if _PIN.search(path)))


def specific(name: str, divergence: Divergence) -> bool:
    """True where a name is rare enough in the fork for its uses to mean the same thing."""
    short = name.rpartition(".")[2]
    if len(short) < _SHORTEST or (short.startswith("__") and short.endswith("__")):
        return False
    return divergence.files_with(name) <= max(_RARE, _COMMON * divergence.size)


def vanished(footprint: Footprint, divergence: Divergence) -> Iterator[str]:
    """Names that upstream is about to lose and the fork's own code refers to.

    They are gone symbols, the stems of gone files, and words that stand nowhere in the fork but where the commit drops
    them and in the fork's own lines.
    """
    gone = set(footprint.removed)
    for file in footprint.files:
        old = file.old_path if file.status == "R" else file.path if file.status == "D" else None
        if old is not None:
            stem = old.rpartition("/")[2].partition(".")[0]
            if stem != file.path.rpartition("/")[2].partition(".")[0] or file.status == "D":
                gone.add(stem)
    dropped: dict[str, set[str]] = {}
    for file in footprint.files:
        for name in file.drops:
            dropped.setdefault(name, set()).add(file.old_path or file.path)
    referred = footprint.referred
    for name, paths in dropped.items():
        if name in gone or name in referred or name in footprint.defined:
            continue
        users = {use.path for use in divergence.uses(name)}
        if users and divergence.files_with(name) <= len(users | paths):
            gone.add(name)
    yield from (name for name in sorted(gone) if divergence.uses(name))


def _by_file(footprint: Footprint, divergence: Divergence) -> Iterator[Signal]:
    forked = [(f, d) for f in footprint.files if (d := _of(f, divergence.files)) is not None]
    same = sorted({f"{f.path}: {name}" for f, d in forked for name in _same(f, d)})
    if same:
        yield _signal("same_symbol", ReasonKind.CHANGES_FORKED_SYMBOL, "changes what the fork has changed too", same)
    tops = [f.path for f, d in forked if f.top and TOP in d.changed]
    if tops:
        yield _signal(
            "same_top",
            ReasonKind.FORKED_FILE,
            "changes imports, lists or settings of files whose own the fork changed",
            tops,
        )
    code = [f.path for f, _ in forked if not is_test(f.path)]
    if code:
        yield _signal("forked_file", ReasonKind.FORKED_FILE, "changes files that the fork has changed", code)
    tests = [f.path for f, _ in forked if is_test(f.path)]
    if tests:
        yield _signal(
            "forked_test", ReasonKind.FORKED_TEST, "changes tests whose expectations the fork has changed", tests
        )


def _by_name(footprint: Footprint, divergence: Divergence) -> Iterator[Signal]:
    gone = [name for name in vanished(footprint, divergence) if specific(name, divergence)]
    if gone:
        text = "removes or renames what the fork's own code refers to"
        yield _signal("used_gone", ReasonKind.CHANGES_USED_SYMBOL, text, _used(gone, divergence), len(gone))
    resigned = _specific_users(footprint.resigned - set(gone), divergence)
    if resigned:
        text = "gives another signature to what the fork's own code uses"
        yield _signal(
            "used_signature", ReasonKind.CHANGES_USED_SYMBOL, text, _used(resigned, divergence), len(resigned)
        )
    bodies = _specific_users(footprint.changed - footprint.resigned, divergence)
    if bodies:
        text = "changes the behaviour of what the fork's own code uses"
        yield _signal("used_body", ReasonKind.CHANGES_USED_SYMBOL, text, _used(bodies, divergence), len(bodies))
    code = frozenset().union(*(f.refers for f in footprint.files if not is_test(f.path)))
    refers = sorted(n for n in code if divergence.resigned(n) and specific(n, divergence))
    if refers:
        where = [f"{name} ({divergence.resigned(name)[0]})" for name in refers]
        text = "newly refers to what has another signature in the fork"
        yield _signal("refers_signature", ReasonKind.REFERS_FORKED_SYMBOL, text, where, len(refers))


def _by_extent(footprint: Footprint) -> Iterator[Signal]:
    tests = sorted(f.path for f in footprint.files if is_test(f.path) and f.status != "D")
    if tests:
        text = "comes with tests that have never run on the fork"
        yield _signal("tests", ReasonKind.TESTED_BEHAVIOUR, text, tests)
    lines = sum(hunk.old_lines + hunk.new_lines for f in footprint.files for hunk in f.hunks)
    if lines > _SMALL:
        yield Signal(
            "extent",
            ReasonKind.EXTENT,
            f"changes {lines} lines in {len(footprint.files)} files",
            (),
            log2(lines / _SMALL),
        )


def _of(file: FileFootprint, files: Mapping[str, FileDivergence]) -> FileDivergence | None:
    return files.get(file.path) or files.get(file.old_path or file.path)


def _same(file: FileFootprint, fork: FileDivergence) -> Set[str]:
    """The symbols of a file that both change, and those that both bring."""
    theirs = fork.changed | fork.removed
    names = {s.name for s in file.symbols if s.what != "defined" and (s.name in theirs or s.old in theirs)}
    return names | {s.name for s in file.symbols if s.what in ("defined", "renamed") and s.name in fork.added}


def _specific_users(names: Iterable[str], divergence: Divergence) -> list[str]:
    return sorted(name for name in names if divergence.uses(name) and specific(name, divergence))


def _used(names: Iterable[str], divergence: Divergence) -> list[str]:
    places = ((name, divergence.uses(name)[0]) for name in names)
    return [f"{name} ({use.path}:{use.line})" for name, use in places]


def _signal(name: str, kind: ReasonKind, text: str, evidence: Collection[str], count: int | None = None) -> Signal:
    return Signal(name, kind, text, tuple(evidence)[:_SHOWN], log2(1 + (len(evidence) if count is None else count)))
