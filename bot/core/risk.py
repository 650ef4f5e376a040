"""Why an upstream commit is safe, near the fork's own, or risky: typed reasons with evidence and learned weights.

A reason's weight is the chance (0 to 1) that it alone makes work by hand; the chances of several join as independent
ones do. What history can't teach (a rule of the fork's file, a revert without its target) weighs what is fixed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import exp

from bot.core.config import Ingest
from bot.core.divergence import Divergence
from bot.core.footprint import Footprint, Language
from bot.core.paths import matches, matches_name
from bot.core.signals import Signal, constants, signals, toolchain_pins
from bot.core.types import Reason, ReasonKind, Verdict
from bot.core.weights import BASE, SAFE_BELOW, WATCH_BELOW, WEIGHTS

_CERTAIN = 1.0
_STRONG = 0.9
_NEVER_SAFE = 0.07  # what is too large to be read, can't be, or changes what the fork counts on is never called safe
FORK_LACKS = "the fork does not hold it"  # a note of a trial


@dataclass(frozen=True, slots=True)
class Trial:
    """What the trial pick said: clean, empty or conflict, with the paths in conflict.

    `no_effect`: the change is empty only since the fork deleted what it touches. `notes`: of a path in conflict, what
    stands in the way where it is not its text.
    """

    kind: str
    conflicts: tuple[str, ...] = ()
    no_effect: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unlanded:
    """What only unlanded upstream commits before this one bring: names and paths with the commit that brings each."""

    symbols: Mapping[str, str] = field(default_factory=dict)
    signatures: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RevertFacts:
    """For a revert or reland: the targets found, and of those the ones the fork has not landed.

    `known` is False where none was found.
    """

    targets: tuple[str, ...] = ()
    unlanded: tuple[str, ...] = ()
    known: bool = True
    partial: bool = False
    kind: str = "revert"


def assess(
    *,
    footprint: Footprint,
    divergence: Divergence,
    trial: Trial,
    ingest: Ingest | None = None,
    unlanded: Unlanded | None = None,
    revert: RevertFacts | None = None,
    upstream_words: Set[str] | None = None,
    known: Sequence[Signal] | None = None,
) -> tuple[Reason, ...]:
    """The reasons, heaviest first; INDEPENDENT alone where nothing speaks against it.

    `upstream_words`: the identifiers of upstream's tree before the commit, where they are known. `known`: the signals
    of this commit, where they were looked for before.
    """
    found = [
        *_of_trial(trial),
        *_of_rules(footprint, ingest or Ingest()),
        *_of_revert(revert),
        *_leaning(footprint, divergence, unlanded or Unlanded(), upstream_words),
        *_unreadable(footprint, ingest or Ingest()),
        *_of_constants(footprint, divergence),
        *(
            Reason(s.kind, s.text, s.evidence, _weight(WEIGHTS.get(s.name, 0.0) * s.size))
            for s in (signals(footprint, divergence) if known is None else known)
        ),
    ]
    if not found:
        return (
            Reason(
                ReasonKind.INDEPENDENT, "touches nothing of the fork's own, and nothing of that uses what it changes"
            ),
        )
    return tuple(sorted(found, key=lambda reason: (-reason.weight, reason.kind.value, reason.text)))


def verdict(reasons: Sequence[Reason], trial: Trial) -> Verdict:
    """What the reasons come to; the trial pick decides first.

    What a commit has to do with the fork can make it risky; that it is large, only one to watch.
    """
    if trial.kind == "conflict":
        return Verdict.CONFLICT
    if trial.kind == "empty":
        return Verdict.EMPTY
    if chance_of_hand_work(reasons) < SAFE_BELOW:
        return Verdict.SAFE
    near = chance_of_hand_work([reason for reason in reasons if reason.kind is not ReasonKind.EXTENT])
    return Verdict.WATCH if near < WATCH_BELOW else Verdict.RISKY


def chance_of_hand_work(reasons: Sequence[Reason]) -> float:
    """How likely (0 to 1) the pick needs a change by hand."""
    unchanged = exp(-BASE)
    for reason in reasons:
        unchanged *= 1 - reason.weight
    return 1 - unchanged


def _weight(hazard: float) -> float:
    return round(1 - exp(-hazard), 4)


def _of_trial(trial: Trial) -> Iterator[Reason]:
    if trial.kind == "conflict":
        told = (f"{path}: {trial.notes[path]}" if path in trial.notes else path for path in trial.conflicts)
        yield Reason(ReasonKind.CONFLICT, _conflict(trial), tuple(told), _CERTAIN)
    elif trial.kind == "empty" and trial.no_effect:
        yield Reason(ReasonKind.NO_EFFECT, "changes only files that the fork deleted")
    elif trial.kind == "empty":
        yield Reason(ReasonKind.ALREADY_THERE, "the fork holds this change already")


def _conflict(trial: Trial) -> str:
    if not trial.conflicts:
        return "does not merge with the fork"
    first, *others = trial.conflicts
    more = f" and {len(others)} more file{'s' if len(others) > 1 else ''}" if others else ""
    if {trial.notes.get(path) for path in trial.conflicts} == {FORK_LACKS}:
        return f"changes {first}{more}, which the fork does not hold"
    return f"does not merge in {first}{more}"


def _of_rules(footprint: Footprint, ingest: Ingest) -> Iterator[Reason]:
    paths = sorted(footprint.paths)
    names = sorted(footprint.changed | footprint.defined | footprint.removed)
    pins: list[str] = list(toolchain_pins(paths))
    for rule in ingest.risk:
        hits = [path for path in paths if matches(path, rule.paths)] + [
            n for n in names if matches_name(n, rule.symbols)
        ]
        if hits and rule.toolchain:
            pins += hits
        elif hits:
            yield Reason(ReasonKind.RULE, f"the fork's file calls it risky: {rule.name}", tuple(hits), _STRONG)
    if pins:
        yield Reason(ReasonKind.TOOLCHAIN, "moves the toolchain", tuple(dict.fromkeys(pins)), _STRONG)


def _of_revert(revert: RevertFacts | None) -> Iterator[Reason]:
    if revert is None:
        return
    does = "brings in again" if revert.kind == "reland" else "takes back"
    if not revert.known:
        yield Reason(ReasonKind.REVERT, f"{does} a commit that is not found", (), _STRONG)
    elif revert.unlanded:
        yield Reason(ReasonKind.REVERT, f"{does} what the fork has not landed", revert.unlanded, _STRONG)


def _leaning(
    footprint: Footprint, divergence: Divergence, unlanded: Unlanded, upstream_words: Set[str] | None
) -> Iterator[Reason]:
    words, defined = divergence.words, footprint.defined
    missing = [name for name in footprint.referred if name not in words and name not in defined]
    brought = {name for name in missing if name in unlanded.symbols}
    if upstream_words is not None:
        code = _names_in_code(footprint)
        brought.update(name for name in missing if name in code and name in upstream_words)
    paths = sorted(p for p in footprint.paths if p in unlanded.paths)
    if brought or paths:
        known = unlanded.symbols
        evidence = [f"{name} ({known[name][:12]})" if name in known else name for name in sorted(brought)]
        evidence += [f"{path} ({unlanded.paths[path][:12]})" for path in paths]
        yield Reason(ReasonKind.LEANS_ON_UNLANDED, "uses what the fork has not landed", tuple(evidence), _STRONG)


def _names_in_code(footprint: Footprint) -> frozenset[str]:
    """What the commit newly refers to that can be a name: no word of a text; in MLIR, whose comments count, an op."""
    return frozenset(
        name
        for file in footprint.files
        if file.language is not Language.OTHER
        for name in file.refers
        if file.language is not Language.MLIR or "." in name
    )


def _of_constants(footprint: Footprint, divergence: Divergence) -> Iterator[Reason]:
    """Another value merges, compiles, and may still be wrong for who counts on the old one."""
    if found := constants(footprint, divergence):
        text = "changes the value of what the fork's own code uses"
        yield Reason(ReasonKind.CHANGES_USED_SYMBOL, text, found, _NEVER_SAFE)


def _unreadable(footprint: Footprint, ingest: Ingest) -> Iterator[Reason]:
    unparsed = sorted(file.path for file in footprint.files if not file.parsed)
    if unparsed:
        text = "files could not be read by their grammar, so their symbols are not known"
        yield Reason(ReasonKind.UNPARSABLE, text, tuple(unparsed), _NEVER_SAFE)
    if len(footprint.files) > ingest.max_files:
        yield Reason(
            ReasonKind.TOO_LARGE, f"touches {len(footprint.files)} files, over {ingest.max_files}", (), _NEVER_SAFE
        )
