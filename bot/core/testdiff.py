"""What a change did to a suite's tests, read from the files before and after it: pure, nothing is run.

Tests are found in Python files (pytest), in lit's files, and by the TEST macros of GoogleTest. What can't be read
changes nothing: then what ran before has to run again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bot.core import pytest_source
from bot.core.manifest import TestChanges
from bot.core.pytest_source import SourceTest
from bot.core.python_names import Library, parse

_TEST_FILE = re.compile(r"(^|/)(test_[^/]*|[^/]*_test)\.py$")
_MACRO = re.compile(
    rb"^[ \t]*(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)[ \t]*\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE
)
_INSTANCES = re.compile(
    rb"^[ \t]*INSTANTIATE_TEST_(?:SUITE|CASE)_P\s*\(\s*(\w*)\s*,\s*(\w+)\s*,(.*?)\)\s*;", re.M | re.S
)
_CPP = (".cpp", ".cc", ".cxx", ".cu", ".h", ".hpp")
_LIT_SKIPS = re.compile(rb"\b(?:REQUIRES|UNSUPPORTED):.*")


@dataclass(frozen=True, slots=True)
class Sources:
    """Files by their path in the repository: those that differ, and unchanged ones whose tests depend on them.

    `renames` are old path to new path; `paths` are all files of the tree before.
    """

    before: Mapping[str, bytes]
    after: Mapping[str, bytes]
    renames: Mapping[str, str] = field(default_factory=dict)
    paths: Collection[str] = ()


@dataclass
class _Found:
    deleted: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    added: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def gone(self, tests: Iterable[str]) -> None:
        self.deleted.extend(tests)


def changes_of(*, tests: Sequence[str], sources: Sources) -> TestChanges:
    """The changes to these tests (ids of one suite's last good run), and the tests beside them that were added.

    A test is `added` only where the suite plainly runs all of its file, folder or group. An id without parameters among
    the added stands for any parametrisation of that function.
    """
    found = _Found()
    python = [test for test in tests if "::" in test.partition("[")[0]]
    lit = [test for test in tests if " :: " in test]
    other = [test for test in tests if "::" not in test.partition("[")[0] and "." in test]
    if python:
        _Python([test for test in python if " :: " not in test], sources, found).run()
    if lit:
        _lit(lit, sources, found)
    if other:
        _gtest(other, sources, found)
    return TestChanges(
        deleted=tuple(dict.fromkeys(found.deleted)),
        renamed=found.renamed,
        added=tuple(dict.fromkeys(found.added)),
        files=tuple(sorted({*sources.before, *sources.after})),
        skipped=tuple(dict.fromkeys(found.skipped)),
    )


def files_of(tests: Iterable[str], paths: Collection[str]) -> dict[str, str]:
    """The file in the repository of each file that pytest ids name; ids may be relative to a folder of it."""
    inside = sorted({test.partition("::")[0] for test in tests if "::" in test and " :: " not in test})
    root = root_of(inside, paths)
    return {} if root is None else {path: root + path for path in inside if root + path in paths}


def root_of(inside: Sequence[str], paths: Collection[str]) -> str | None:
    """The folder (with its slash, or "") that paths of ids are relative to: the one where most of them are files."""
    known = paths if isinstance(paths, set | frozenset) else frozenset(paths)
    roots = {path[: -len(name)] for name in inside[:3] for path in known if ("/" + path).endswith("/" + name)}
    counted = {root: sum(root + name in known for name in inside) for root in sorted(roots, key=len)}
    return max(counted, key=counted.__getitem__, default=None) if counted else None


class _Python:
    def __init__(self, tests: Sequence[str], sources: Sources, found: _Found) -> None:
        self.sources, self.found = sources, found
        self.by_file: dict[str, list[str]] = {}
        for test in tests:
            self.by_file.setdefault(test.partition("::")[0], []).append(test)
        self.root = root_of(sorted(self.by_file), sources.paths)
        self.trees = [_trees(sources.before), _trees(sources.after)]
        self.libraries = [Library(trees) for trees in self.trees]

    def run(self) -> None:
        if self.root is None:
            return
        files = {
            name: self.root + name
            for name in self.by_file
            if self.root + name in self.sources.before or self.root + name in self.sources.renames
        }
        gone: list[tuple[str, SourceTest]] = []
        fresh: list[tuple[str, SourceTest, bool]] = []
        for name, path in files.items():
            new_path = self.sources.renames.get(path, path)
            new_name = self._inside(new_path)
            if new_path not in self.sources.after:
                self.found.gone([name])
                gone += [(name, test) for test in (self._tests(0, path) or {}).values()]
                continue
            if new_name != name:
                self.found.renamed[name] = new_name
            old, new = self._tests(0, path), self._tests(1, new_path)
            if old is not None and new is not None:
                skips = [pytest_source.module_skips(self.trees[side][at]) for side, at in ((0, path), (1, new_path))]
                if skips[1] - skips[0]:
                    self._may_be_skipped(name, new_name)
                    continue
                self._file(name, new_name, old, new, gone, fresh)
        for path in self._new_files(files):
            tests = (self._tests(1, path) or {}).values()
            fresh += [(self._inside(path), test, True) for test in tests if test.collected]
        self._pair(gone, fresh)

    def _may_be_skipped(self, name: str, new_name: str) -> None:
        """A file that may now be skipped as a whole: something of it has to report, if only the skip."""
        self.found.renamed.pop(name, None)
        self.found.gone([name])
        self.found.added.append(new_name)
        self.found.skipped.append(new_name)

    def _file(
        self,
        name: str,
        new_name: str,
        old: Mapping[str, SourceTest],
        new: Mapping[str, SourceTest],
        gone: list[tuple[str, SourceTest]],
        fresh: list[tuple[str, SourceTest, bool]],
    ) -> None:
        ran: dict[str, set[str]] = {}
        for test in self.by_file[name]:
            function, bracket, rest = test[len(name) + 2 :].partition("[")
            ran.setdefault(function, set()).add(rest[:-1] if bracket else "")
        gone += [(name, old[function]) for function in ran if function in old and function not in new]
        whole = all(function in ran for function, test in old.items() if test.collected)
        fresh += [(new_name, test, whole) for function, test in new.items() if function not in old and test.collected]
        for function in ran.keys() & old.keys() & new.keys():
            was, now = old[function], new[function]
            if now.skips - was.skips:
                self.found.skipped.append(f"{new_name}::{function}")
            if was.parameters != now.parameters:
                self._parameters(name, new_name, was, now, ran[function])

    def _parameters(self, name: str, new_name: str, was: SourceTest, now: SourceTest, ran: set[str]) -> None:
        """What became of the parameters: by id where the source names the very ids that ran, else any will do."""
        before = {""} if was.ids == () else set(was.ids or ())
        after = {""} if now.ids == () else set(now.ids or ())
        if before != ran or not after:
            self.found.gone([f"{name}::{was.name}"])
            self.found.added.append(f"{new_name}::{now.name}")
            return
        self.found.gone(_id(name, was.name, lost) for lost in sorted(before - after))
        self.found.added += [_id(new_name, now.name, new) for new in sorted(after - before)]

    def _pair(self, gone: Sequence[tuple[str, SourceTest]], fresh: Sequence[tuple[str, SourceTest, bool]]) -> None:
        """A test that went and one that came with the same body are one that was renamed or moved."""
        came: dict[str, list[tuple[str, SourceTest, bool]]] = {}
        for one in fresh:
            came.setdefault(one[1].body, []).append(one)
        taken: set[tuple[str, str]] = set()
        for name, test in gone:
            there = [one for one in came.get(test.body, ()) if (one[0], one[1].name) not in taken]
            there.sort(key=lambda one: (one[0] != name, one[1].name != test.name))
            if there and there[0][1].parameters == test.parameters:
                new_name, new, _ = there[0]
                taken.add((new_name, new.name))
                self.found.renamed[f"{name}::{test.name}"] = f"{new_name}::{new.name}"
            else:
                self.found.gone([f"{name}::{test.name}"])
        for name, test, whole in fresh:
            if whole and (name, test.name) not in taken and not test.marks:
                one_by_one = [_id(name, test.name, each) for each in test.ids] if test.ids else [f"{name}::{test.name}"]
                self.found.added += one_by_one

    def _new_files(self, known: Mapping[str, str]) -> list[str]:
        """New test files in folders of which the suite runs every test file."""
        assert self.root is not None
        ran = {self.root + name for name in self.by_file}
        arrived = set(self.sources.renames.values())
        found = []
        for path in sorted(self.sources.after.keys() - self.sources.before.keys() - arrived):
            folder = path.rpartition("/")[0]
            beside = {p for p in self.sources.paths if p.rpartition("/")[0] == folder and _TEST_FILE.search(p)}
            tree = self.trees[1].get(path)
            alone = tree is None or pytest_source.module_skips(tree)
            if _TEST_FILE.search(path) and path.startswith(self.root) and beside and beside <= ran and not alone:
                found.append(path)
        return found

    def _inside(self, path: str) -> str:
        assert self.root is not None
        return path.removeprefix(self.root)

    def _tests(self, side: int, path: str) -> dict[str, SourceTest] | None:
        """The tests of a file before (0) or after (1); None where it can't be read."""
        tree = self.trees[side].get(path)
        return None if tree is None else pytest_source.tests_of(path, tree, self.libraries[side])


def _trees(files: Mapping[str, bytes]) -> dict[str, ast.Module]:
    parsed = {path: parse(source) for path, source in files.items() if path.endswith(".py")}
    return {path: tree for path, tree in parsed.items() if tree is not None}


def _id(file: str, function: str, parameters: str) -> str:
    return f"{file}::{function}[{parameters}]" if parameters else f"{file}::{function}"


def _lit(tests: Sequence[str], sources: Sources, found: _Found) -> None:
    parts = {test: test.split(" :: ", 1) for test in tests}
    for suite in sorted({part[0] for part in parts.values()}):
        mine = {part[1]: test for test, part in parts.items() if part[0] == suite}
        root = root_of(sorted(mine), sources.paths)
        if root is None:
            continue
        for inside, test in mine.items():
            path = root + inside
            new = sources.renames.get(path, path)
            if path in sources.before or path in sources.renames:
                if new not in sources.after or not new.startswith(root):
                    found.gone([test])
                elif new != path:
                    found.renamed[test] = f"{suite} :: {new.removeprefix(root)}"
            if path in sources.before and new in sources.after:
                before = set(_LIT_SKIPS.findall(sources.before[path]))
                if set(_LIT_SKIPS.findall(sources.after[new])) - before:
                    found.skipped.append(f"{suite} :: {new.removeprefix(root)}")
        folders = {(name.rpartition("/")[0], name.rpartition(".")[2]) for name in mine}
        for path in sorted(sources.after.keys() - sources.before.keys() - set(sources.renames.values())):
            inside = path.removeprefix(root)
            text = sources.after[path]
            plain = b"RUN:" in text and not re.search(rb"\b(?:REQUIRES|UNSUPPORTED|XFAIL):", text)
            if path.startswith(root) and (inside.rpartition("/")[0], inside.rpartition(".")[2]) in folders and plain:
                found.added.append(f"{suite} :: {inside}")


def _gtest(tests: Sequence[str], sources: Sources, found: _Found) -> None:
    old, new = _macros(sources.before), _macros(sources.after)
    was, now = _instances(sources.before), _instances(sources.after)
    came = {pair: macro for pair, macro in new.items() if pair not in old}
    names: dict[tuple[str, str], tuple[str, str]] = {}
    for pair in (pair for pair in old if pair not in new):
        match = next((p for p, macro in came.items() if macro[1] == old[pair][1] and p not in names.values()), None)
        if match is not None:
            names[pair] = match
    for test in tests:
        suite, name = _named(test)
        to_suite, to_name = names.get((suite, name), (suite, name))
        if to_name.startswith("DISABLED_") or ((suite, name) in old and (to_suite, to_name) not in new):
            found.gone([test])
        elif (to_suite, to_name) != (suite, name):
            group, _, rest = test.partition(".")
            found.renamed[test] = f"{group.replace(suite, to_suite)}.{rest.replace(name, to_name, 1)}"
        elif was.get(suite) != now.get(suite) and "/" in test:
            # how many values there are is not evident; the first of each instantiation that is left has to run
            left = {prefix for prefix, _ in now.get(suite, ())}
            if test.partition("/")[0] not in left or not test.endswith("/0"):
                found.gone([test])
        if (suite, name) in old and (suite, name) in new and _skips(new, suite, name) and not _skips(old, suite, name):
            found.skipped.append(test)
    groups = {_named(test)[0] for test in tests}
    for (suite, name), (kind, _) in came.items():
        plain = kind in (b"TEST", b"TEST_F") and suite in groups and not name.startswith("DISABLED_")
        if plain and (suite, name) not in names.values():
            found.added.append(f"{suite}.{name}")


def _macros(files: Mapping[str, bytes]) -> dict[tuple[str, str], tuple[bytes, bytes]]:
    """Each TEST of the C++ files by suite and name: its kind, and its text without white space."""
    found = {}
    for path, text in files.items():
        if not path.endswith(_CPP):
            continue
        matches = list(_MACRO.finditer(text))
        for match, after in zip(matches, [*matches[1:], None], strict=True):
            body = text[match.end() : after.start() if after is not None else len(text)]
            found[match[2].decode(), match[3].decode()] = (match[1], b"".join(body.split()))
    return found


def _instances(files: Mapping[str, bytes]) -> dict[str, frozenset[tuple[str, bytes]]]:
    found: dict[str, frozenset[tuple[str, bytes]]] = {}
    for path, text in files.items():
        for match in _INSTANCES.finditer(text) if path.endswith(_CPP) else ():
            one = (match[1].decode(), b"".join(match[3].split()))
            found[match[2].decode()] = found.get(match[2].decode(), frozenset()) | {one}
    return found


def _skips(macros: Mapping[tuple[str, str], tuple[bytes, bytes]], suite: str, name: str) -> bool:
    return b"GTEST_SKIP" in macros[suite, name][1]


def _named(test: str) -> tuple[str, str]:
    """Suite and name as the source has them: `Inst/Suite.Name/0` and `Suite/0.Name` are `Suite`, `Name`."""
    group, _, name = test.partition(".")
    words = group.split("/")
    suite = words[-2] if len(words) > 1 and words[-1].isdigit() else words[-1]
    return suite, name.partition("/")[0]
