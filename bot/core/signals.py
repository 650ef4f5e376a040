"""What speaks against landing a commit unchanged: facts with their evidence and their size, not yet weighed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from keyword import kwlist
from math import log2

from bot.core.divergence import Divergence, FileDivergence
from bot.core.footprint import TOP, FileFootprint, Footprint, Language, is_test, language_of
from bot.core.types import ReasonKind

_COMMON = 0.02  # a name in more than this share of the fork's files says nothing of who uses what
_RARE = 12  # … but one in no more files than this is never common
_SHORTEST = 3  # letters; a shorter name is a local variable's
_FEW_PLACES = 4  # up to which the number of hunks is no signal
_PROGRAMS = frozenset({Language.PYTHON, Language.C, Language.CPP, Language.CUDA})
_KEYWORDS = frozenset(kwlist) | {
    "auto", "bool", "case", "char", "const", "constexpr", "default", "delete", "double", "enum", "explicit",
    "extern", "float", "foreach", "inline", "int", "long", "namespace", "new", "nullptr", "operator", "override",
    "private", "protected", "public", "return", "short", "signed", "sizeof", "static", "static_cast", "std",
    "string", "struct", "switch", "template", "this", "typedef", "typename", "union", "unsigned", "using", "virtual",
    "void", "def",
}  # fmt: skip
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_TOOLS = frozenset(
    ["llvm", "toolchain", "nvidia", "cuda", "rocm", "hip", "clang", "gcc", "rust", "sysroot", "compiler", "ptxas"]
)
_PINS = frozenset(["hash", "version", "revision", "rev", "pin", "tag", "commit"])


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
    found = [*_by_file(footprint, divergence), *_by_name(footprint, divergence), *_by_extent(footprint, divergence)]
    return tuple(sorted(found, key=lambda signal: signal.name))


def toolchain_pins(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths that pin a toolchain: a hash, a version or a revision of LLVM, CUDA, ROCm, a compiler.

    The name says both in words of their own, and it is no source of a program: what is pinned stands in a file of data.
    """
    return tuple(sorted(path for path in paths if _pins(path)))


def _pins(path: str) -> bool:
    name = path.rpartition("/")[2]
    if name in {"rust-toolchain", "rust-toolchain.toml"}:
        return True
    words = {word.lower() for word in _WORD.findall(name)}
    words |= {word.removesuffix("s") for word in words}
    data = language_of(path) in {Language.OTHER, Language.CMAKE}
    return data and not words.isdisjoint(_TOOLS) and not words.isdisjoint(_PINS)


def constants(footprint: Footprint, divergence: Divergence) -> tuple[str, ...]:
    """The constants whose value a commit changes and that the fork's own code uses, each with where."""
    names = {
        name
        for file in footprint.files
        for symbol in file.symbols
        if symbol.what in ("signature", "body") and _constant(symbol.kind, file.language)
        for name in symbol.names
    }
    return tuple(_used(_specific_users(names, divergence), divergence))


def _constant(kind: str, language: Language) -> bool:
    return kind in {"variable", "macro", "enumerator"} or (kind == "field" and language is Language.PYTHON)


def specific(name: str, divergence: Divergence) -> bool:
    """True where a name is rare enough in the fork for its uses to mean the same thing."""
    short = name.rpartition(".")[2]
    if len(short) < _SHORTEST or short in _KEYWORDS or (short.startswith("__") and short.endswith("__")):
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
    referred = sorted(name for name in footprint.referred if divergence.changed(name) and specific(name, divergence))
    signatures = [name for name in referred if divergence.resigned(name)]
    for name, text, names in (
        ("refers_changed", "newly refers to what the fork has changed", referred),
        ("refers_signature", "newly refers to what has another signature in the fork", signatures),
    ):
        if names:
            where = [f"{symbol} ({divergence.changed(symbol)[0]})" for symbol in names]
            yield _signal(name, ReasonKind.REFERS_FORKED_SYMBOL, text, where, len(names))


def _by_extent(footprint: Footprint, divergence: Divergence) -> Iterator[Signal]:
    tests = sorted(f.path for f in footprint.files if is_test(f.path) and f.status != "D")
    if tests:
        text = "comes with tests that have never run on the fork"
        yield _signal("tests", ReasonKind.TESTED_BEHAVIOUR, text, tests)
    run = sorted(f.path for f in footprint.files if is_test(f.path) and f.status != "D" and f.language in _PROGRAMS)
    if run:
        text = "comes with tests that run programs, which need machines and versions as upstream has them"
        yield _signal("tests_run", ReasonKind.TESTED_BEHAVIOUR, text, run)
    folders = {_folder(file.path) for file in footprint.files}
    near = sorted(path for folder in folders for path in divergence.changed_in(folder))
    if near:
        text = f"works in folders in which the fork has changed {len(near)} files"
        yield _signal("neighbours", ReasonKind.FORKED_FILE, text, near)
    files = len(footprint.files)
    if files > 1:
        yield Signal("files", ReasonKind.EXTENT, f"touches {files} files", (), log2(files))
    places = sum(len(file.hunks) for file in footprint.files)
    if places > _FEW_PLACES:
        yield Signal("places", ReasonKind.EXTENT, f"changes {places} places", (), log2(places / _FEW_PLACES))


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


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
    return Signal(name, kind, text, tuple(evidence), log2(1 + (len(evidence) if count is None else count)))
