"""The commits that can have brought a breakage, the likeliest first, each with the evidence that speaks for it."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,}")
_PATH = re.compile(r"[\w./+-]*[\w+-]\.(?:pyi?|cpp|cc|cxx|cu|cuh|c|h|hpp|td|mlir|ll|inc|cmake|txt|toml|ya?ml|rs)\b")
_CANNOT_BUILD = re.compile(
    r"(?:^|/)(?:docs?|\.github/ISSUE_TEMPLATE)/|\.(?:md|rst|png|svg|jpe?g|gif)$|(?:^|/)(?:LICENSE|OWNERS|CODEOWNERS)$"
)
_COMMON_WORDS = (
    "assert assertion error errors errno exception expected failed failure file from import line lines raise raised "
    "self test tests traceback recent call last module return none true false with were that this python site packages "
    "pytest should must have been value values type types name names object found runtimeerror valueerror typeerror "
    "assertionerror keyerror attributeerror importerror indexerror args kwargs float int32 int64 float32 float16 "
    "tensor torch triton device cuda main func function void const auto static inline namespace include class "
    "struct else while print using"
)
_COMMON = frozenset(_COMMON_WORDS.split())
_MOST_WORDS = 400


@dataclass(frozen=True, slots=True)
class Candidate:
    """One commit between last green and first red: the files that it changes, the words on its changed lines.

    `carries` names the upstream commits that it takes in, where it is a bundle; `number` its pull request.
    """

    sha: str
    subject: str
    author: str = ""
    files: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    carries: tuple[str, ...] = ()
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Suspect:
    """A candidate with its share of the suspicion (all shares sum to 1) and the reasons, strongest first."""

    sha: str
    subject: str
    author: str
    share: float
    evidence: tuple[str, ...]
    carries: tuple[str, ...] = ()
    number: int | None = None


def words_of(text: str) -> frozenset[str]:
    """The names in a failure's text or on a diff's changed lines that can tell one commit from another."""
    found: dict[str, None] = {}
    for match in _WORD.finditer(text):
        word = match[0]
        if word.lower() not in _COMMON and not word.isdigit():
            found.setdefault(word)
            if len(found) >= _MOST_WORDS:
                break
    return frozenset(found)


def paths_of(text: str) -> frozenset[str]:
    """The source files that a failure's text names."""
    return frozenset(match[0].lstrip("./") for match in _PATH.finditer(text))


def changed_words(diff: str) -> frozenset[str]:
    """The names on the added and removed lines of a unified diff, and of the functions that its hunks name."""
    lines = []
    for line in diff.splitlines():
        if line.startswith("@@"):
            lines.append(line.rpartition("@@")[2])
        elif line[:1] in "+-" and not line.startswith(("+++", "---")):
            lines.append(line[1:])
    return words_of("\n".join(lines))


def cannot_break(files: Sequence[str]) -> bool:
    """Whether a commit changes nothing that is built or run: documents and pictures only."""
    return bool(files) and all(_CANNOT_BUILD.search(file) for file in files)


def rank(
    *, candidates: Sequence[Candidate], tests: Iterable[str], texts: Iterable[str], newest: Collection[str] = ()
) -> tuple[Suspect, ...]:
    """The candidates by how much speaks against them; those that can't change what runs are left out.

    `tests` are the ids of the failing tests, `texts` what they said, `newest` the candidates at which the failure
    changed to this one (the others were tested and failed otherwise).
    """
    text = "\n".join(texts)
    ids = tuple(tests)
    named = paths_of(text) | {file for test in ids for file in paths_of(test.split("::", 1)[0])}
    said = words_of(text) | words_of(" ".join(ids))
    usual = _usual(candidates)
    scored: list[tuple[float, Candidate, tuple[str, ...]]] = []
    for one in candidates:
        if cannot_break(one.files):
            continue
        score, evidence = 1.0, []
        if files := _hit(one.files, named):
            score *= 1 + 4 * len(files) / (len(files) + 1)
            evidence.append(f"it changes {', '.join(files[:3])}, which the failure names")
        if words := sorted((one.words & said) - usual, key=lambda word: (-len(word), word)):
            score *= 1 + 3 * len(words) / (len(words) + 2)
            evidence.append(f"it changes lines with {', '.join(words[:4])}, as in the failure")
        if one.sha in newest and len(newest) < len(candidates):
            score *= 3
            evidence.append("the failure changed to this one between the tested commits around it")
        if one.carries:
            score *= 1 + math.log2(1 + len(one.carries)) / 2
            evidence.append(f"it takes in {len(one.carries)} upstream commits")
        scored.append((score, one, tuple(evidence)))
    whole = sum(score for score, _, _ in scored)
    suspects = [
        Suspect(
            one.sha, one.subject, one.author, round(score / whole, 4), _only(evidence, scored), one.carries, one.number
        )
        for score, one, evidence in scored
    ]
    return tuple(sorted(suspects, key=lambda suspect: -suspect.share))


def _only(evidence: tuple[str, ...], scored: Sequence[object]) -> tuple[str, ...]:
    return ("it is the only commit between last green and first red", *evidence) if len(scored) == 1 else evidence


def _usual(candidates: Sequence[Candidate]) -> frozenset[str]:
    """The words that most candidates change: they tell none apart."""
    counts: dict[str, int] = {}
    for one in candidates:
        for word in one.words:
            counts[word] = counts.get(word, 0) + 1
    return frozenset(word for word, count in counts.items() if len(candidates) > 3 and count > len(candidates) / 2)


def _hit(files: Sequence[str], named: frozenset[str]) -> list[str]:
    """The changed files that the text names, by their whole path or by a tail of it."""
    return [
        file
        for file in files
        if any(file == path or path.endswith("/" + file) or file.endswith("/" + path) for path in named)
    ]
