"""What is wrong, or must be looked at, in a resolved pick, whoever resolved it: a pure function of the texts.

Blocking findings can't land: conflict markers, text that no longer parses. The others ask a person to confirm: an added
line of upstream's that is lost, doubled or was adapted, a removed one that is kept, a symbol of the fork's own that is
gone, a file changed that the pick does not touch. They are told by symbol: a lost call builds and passes its tests.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from functools import lru_cache

import yaml

from bot.core.footprint import Definition, Language, language_of, references, symbols_of
from bot.core.footprint.grammars import parser

_MARKER = re.compile(rb"(<{7,}|>{7,}|\|{7,})(?: .*)?")
_SEPARATOR = re.compile(rb"={7,}")
_PROSE = (".rst", ".md", ".txt", ".markdown", ".adoc")
_SIGNIFICANT = re.compile(rb"\w")
_WORD = re.compile(rb"[A-Za-z_]\w*")
_CALL = re.compile(rb"([A-Za-z_]\w*)\s*[(<]")
_ALIKE = 0.75
"""Share of equal characters from which a line counts as an adapted form of another."""


class FindingKind(StrEnum):
    """What was found in a resolution."""

    MARKER = "marker"
    UNPARSABLE = "unparsable"
    LOST = "lost"
    DOUBLED = "doubled"
    ADAPTED = "adapted"
    KEPT = "kept"
    FORK_SYMBOL_LOST = "fork_symbol_lost"
    OUTSIDE = "outside"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: where, in which symbol, since which line (from 1, of the result where it is there), what exactly.

    `blocking` can't be confirmed away. `orphaned` names symbols that the pick brings and nothing uses any more.
    """

    kind: FindingKind
    path: str
    text: str
    symbol: str | None = None
    line: int | None = None
    evidence: tuple[str, ...] = ()
    orphaned: tuple[str, ...] = ()

    @property
    def blocking(self) -> bool:
        """True where nobody's word lets it land."""
        return self.kind in (FindingKind.MARKER, FindingKind.UNPARSABLE)

    @property
    def confirm(self) -> bool:
        """True where a person must say that it is meant."""
        return not self.blocking and self.kind is not FindingKind.ADAPTED


@dataclass(frozen=True, slots=True)
class ResolvedFile:
    """One file that the pick or its resolution changes; None where a side lacks it.

    `base` and `theirs` are upstream's before and after its commit, `ours` the fork's before, `after` what is to land.
    """

    path: str
    base: bytes | None
    theirs: bytes | None
    ours: bytes | None
    after: bytes | None


def check(files: Sequence[ResolvedFile]) -> tuple[Finding, ...]:
    """All findings, the blocking ones first, then in the order of the files."""
    found: list[Finding] = []
    used = Counter(word for file in files if file.after for word in _referred(file.path, file.after))
    for file in files:
        found += _markers(file)
        found += _unparsable(file)
        if file.base == file.theirs:
            found += _outside(file)
        else:
            found += _lines(file, used)
    found += _fork_symbols(files)
    return tuple(sorted(found, key=lambda finding: not finding.blocking))


def markers(path: str, *, before: bytes, after: bytes, theirs: bytes = b"") -> tuple[int, ...]:
    """The lines (from 1) of `after` that are conflict markers, and were neither in `before` nor are upstream's own.

    In prose a row of `=` under a title is none, nor is a table's row.
    """
    known = Counter(_unended(before)) | Counter(_unended(theirs))
    lines = _unended(after)
    prose = path.lower().endswith(_PROSE)
    sure: list[int] = []
    doubtful: list[int] = []
    for index, line in enumerate(lines):
        if not (_MARKER.fullmatch(line) or _SEPARATOR.fullmatch(line)):
            continue
        if known[line] > 0:
            known[line] -= 1
        elif line[:1] == b"=":
            if not (prose and _underlines(lines, index)):
                (doubtful if prose or len(line) > 7 else sure).append(index + 1)
        elif prose and line[:1] == b"|":
            doubtful.append(index + 1)
        else:
            sure.append(index + 1)
    return tuple(sorted(sure + doubtful)) if sure else ()


def _underlines(lines: Sequence[bytes], index: int) -> bool:
    above = lines[index - 1].strip() if index else b""
    title_below = index + 2 < len(lines) and lines[index + 2] == lines[index] and bool(lines[index + 1].strip())
    return title_below or (bool(above) and not _MARKER.fullmatch(above) and not _SEPARATOR.fullmatch(above))


def _markers(file: ResolvedFile) -> list[Finding]:
    if file.after is None:
        return []
    lines = markers(file.path, before=file.ours or b"", after=file.after, theirs=file.theirs or b"")
    if not lines:
        return []
    text = _unended(file.after)
    evidence = tuple(f"{line}: {_shown(text[line - 1])}" for line in lines[:9])
    return [Finding(FindingKind.MARKER, file.path, "holds conflict markers", line=lines[0], evidence=evidence)]


def _unparsable(file: ResolvedFile) -> list[Finding]:
    if not file.after:
        return []
    why = faults(file.path, file.after)
    sides = [side for side in (file.ours, file.theirs) if side is not None]
    if not why or (sides and len(why) <= max(len(faults(file.path, side)) for side in sides)):
        return []
    line, text = why[0]
    return [Finding(FindingKind.UNPARSABLE, file.path, f"no longer parses: {text}", line=line)]


def faults(path: str, text: bytes) -> list[tuple[int, str]]:
    """What keeps a text from parsing, as (line, what); one entry at most where the parser stops at the first."""
    suffix = path.rpartition(".")[2].lower()
    try:
        if suffix in ("py", "pyi"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ast.parse(text)
        elif suffix == "json":
            json.loads(text)
        elif suffix == "toml":
            tomllib.loads(text.decode())
        elif suffix in ("yml", "yaml"):
            list(yaml.parse(text, Loader=yaml.SafeLoader))
    except (ValueError, SyntaxError, RecursionError, MemoryError, yaml.YAMLError) as error:
        return [(_line_of(error), str(error).split("\n", 1)[0])]
    language = language_of(path)
    if language in (Language.OTHER, Language.PYTHON):
        return []
    found, waiting = [], [parser(language).parse(text).root_node]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            found.append((node.start_point[0] + 1, f"near {_shown((node.text or b'')[:60]) or 'a missing token'}"))
        elif node.has_error:
            waiting.extend(node.children)
    return sorted(found)


def _line_of(error: Exception) -> int:
    mark = getattr(error, "problem_mark", None)
    line = mark.line + 1 if mark is not None else getattr(error, "lineno", None)
    return line if isinstance(line, int) else 1


def _outside(file: ResolvedFile) -> list[Finding]:
    if file.after == file.ours:
        return []
    what = "removes" if file.after is None else "adds" if file.ours is None else "changes"
    lines = _changed_lines(file.ours or b"", file.after or b"")
    text = f"the resolution {what} this file, which upstream's commit does not touch"
    return [Finding(FindingKind.OUTSIDE, file.path, text, evidence=tuple(lines[:9]))]


def _changed_lines(before: bytes, after: bytes) -> list[str]:
    gone, new = Counter(_unended(before)), Counter(_unended(after))
    return [f"-{_shown(line)}" for line in (gone - new).elements()] + [
        f"+{_shown(line)}" for line in (new - gone).elements()
    ]


def _lines(file: ResolvedFile, used: Counter[str]) -> list[Finding]:
    """Upstream's added and removed lines against what the fork's file gained and lost, told by symbol."""
    if file.theirs is None or file.after is None:
        return _whole(file)
    base, theirs, ours, after = (_counts(side) for side in (file.base, file.theirs, file.ours, file.after))
    gained = after - ours
    added, removed = theirs - base, base - theirs
    lost = Counter({line: count - gained[line] for line, count in added.items() if after[line] < theirs[line]})
    doubled = Counter(
        {line: gained[line] - count for line, count in added.items() if after[line] > max(theirs[line], ours[line])}
    )
    kept = Counter({line: min(count, after[line]) for line, count in removed.items() if after[line] >= ours[line]})
    own = [line for line in gained if not added[line]]
    adapted = {line: twin for line in +lost if (twin := _twin(line, own)) is not None}
    brought = _new_names(file) if lost else set()
    result = []
    for kind, text, lines, side in (
        (FindingKind.LOST, "lines that upstream adds are missing", [x for x in +lost if x not in adapted], file.theirs),
        (FindingKind.DOUBLED, "lines stand more often than upstream has them", list(+doubled), file.after),
        (FindingKind.KEPT, "lines that upstream removes are still there", list(+kept), file.after),
        (FindingKind.ADAPTED, "lines of upstream's were adapted", list(adapted), file.theirs),
    ):
        for symbol, where in _by_symbol(file.path, side, lines).items():
            evidence = tuple(
                _shown(line) + (f" → {_shown(adapted[line])}" if kind is FindingKind.ADAPTED else "")
                for _, line in where[:9]
            )
            words = {word for _, line in where for word in references(line, Language.OTHER)}
            orphaned = sorted(words & brought & {w for w in words if used[w] <= 1}) if kind is FindingKind.LOST else []
            shown = f"{len(where)} {text}" if len(where) > 1 else text.replace("lines", "a line", 1)
            result.append(Finding(kind, file.path, shown, symbol, where[0][0] or None, evidence, tuple(orphaned)))
    return result


def _whole(file: ResolvedFile) -> list[Finding]:
    """A file that one side lacks: what upstream deletes or the result drops."""
    if file.theirs is None and file.after is not None:
        return [Finding(FindingKind.KEPT, file.path, "upstream removes this file, the result keeps it")]
    if file.theirs is not None and file.ours is not None:
        return [Finding(FindingKind.LOST, file.path, "the result drops a file that upstream changes")]
    if file.theirs is not None and file.base is None:
        return [Finding(FindingKind.LOST, file.path, "the result lacks a file that upstream adds")]
    return []


def _by_symbol(path: str, text: bytes, lines: Iterable[bytes]) -> dict[str | None, list[tuple[int, bytes]]]:
    wanted = set(lines)
    if not wanted:
        return {}
    spans = _definitions(path, text)
    result: dict[str | None, list[tuple[int, bytes]]] = defaultdict(list)
    seen: set[bytes] = set()
    for number, raw in enumerate(_unended(text), 1):
        line = raw.strip()
        if line in wanted and line not in seen:
            seen.add(line)
            holders = [d for d in spans if d.start <= number <= d.end]
            result[min(holders, key=lambda d: d.end - d.start).name if holders else None].append((number, line))
    return result


@lru_cache(maxsize=64)
def _definitions(path: str, text: bytes) -> tuple[Definition, ...]:
    return tuple(d for d in symbols_of(text, language_of(path)).definitions if d.names)


def _new_names(file: ResolvedFile) -> set[str]:
    before = {d.short for d in _definitions(file.path, file.base or b"")}
    return {d.short for d in _definitions(file.path, file.theirs or b"")} - before


def _referred(path: str, text: bytes) -> Iterable[str]:
    for word, lines in references(text, language_of(path)).items():
        for _ in lines:
            yield word


def _fork_symbols(files: Sequence[ResolvedFile]) -> list[Finding]:
    """Symbols that the fork alone had, gone from all the files together."""
    gone: list[tuple[str, Definition]] = []
    for file in (file for file in files if file.ours is not None and file.ours not in (file.base, file.after)):
        sides = [side for side in (file.base, file.theirs, file.after) if side is not None]
        known = {d.name for side in sides for d in _definitions(file.path, side)}
        gone += [(file.path, d) for d in _definitions(file.path, file.ours or b"") if d.name not in known]
    left = {d.name for file in files if gone and file.after for d in _definitions(file.path, file.after)}
    return [
        Finding(FindingKind.FORK_SYMBOL_LOST, path, f"the fork's own {d.kind} {d.name} is gone", d.name)
        for path, d in gone
        if d.name not in left
    ]


def _twin(line: bytes, candidates: Sequence[bytes]) -> bytes | None:
    """The new line that is this one in an adapted form: alike, and with all that it calls."""
    best, share = None, _ALIKE
    calls = set(_CALL.findall(line))
    for candidate in candidates:
        matcher = SequenceMatcher(None, line, candidate, autojunk=False)
        if matcher.real_quick_ratio() < share or matcher.quick_ratio() < share or matcher.ratio() < share:
            continue
        if calls <= set(_WORD.findall(candidate)):
            best, share = candidate, matcher.ratio()
    return best


def _counts(text: bytes | None) -> Counter[bytes]:
    return Counter(line for line in map(bytes.strip, _unended(text or b"")) if _SIGNIFICANT.search(line))


def _unended(text: bytes) -> list[bytes]:
    return [line.rstrip(b"\r") for line in text.split(b"\n")]


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return text if len(text) <= 160 else f"{text[:159]}…"
