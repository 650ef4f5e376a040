"""Which upstream commits take others back, which bring them in again: by reference, title or reverse diff."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from bot.core.footprint import FileFootprint, Footprint
from bot.core.types import Commit

_TAGS = r"(?:\s*(?:\[[^\]]*\]|\([^)]*\)|[\w/.-]+:))*\s*"
_REVERT = re.compile(
    rf"^{_TAGS}(?:partial(?:ly)?\s+)?(?:revert(?:s|ed|ing)?|back(?:s|ed|ing)?[ -]?out|roll(?:s|ed|ing)?[ -]?back)\b",
    re.I,
)
_RELAND = re.compile(
    rf"^{_TAGS}(?:re-?land(?:s|ed|ing)?|re-?appl(?:y|ies|ied)|re-?submit|re-?introduce|re-?commit)\b", re.I
)
_DOUBLE = re.compile(r"\brevert\b[^\"']{0,12}[\"']?\s*revert\b", re.I)
_PARTIAL = re.compile(r"\bpartial(?:ly)?\b", re.I)
_SAID = re.compile(
    r"\b(revert(?:s|ing|ed)?|back(?:s|ed|ing)? ?out|re-?land(?:s|ing|ed)?|re-?appl(?:y|ies|ied))\b", re.I
)
_SHA = re.compile(r"\b[0-9a-f]{7,40}\b")
_NUMBER = re.compile(r"(?:\b[\w.-]+/[\w.-]+#|(?<![\w&])#|/pull/|\bPR ?#?)(\d{1,7})\b")
_OWN_NUMBER = re.compile(r"\s*\(#(\d+)\)\s*$")
_QUOTED = re.compile(r"[\"'“‘`](.+)[\"'”’`]")
_ELLIPSIS = re.compile(r"\s*(?:…|\.\.\.)$")
_LIKE = 0.5  # how much of what one adds the other must take away, on files that both touch


@dataclass(frozen=True, slots=True)
class Link:
    """`sha` reverts (or relands) `targets`, oldest first; `how`: body, title, diff or nothing.

    `kind`: revert or reland. `targets` is empty where none was found: such a commit is never safe. `partial`: it takes
    back only a part of them.
    """

    sha: str
    kind: str
    targets: tuple[str, ...]
    how: str
    partial: bool = False


def revert_links(
    *,
    commits: Sequence[Commit],
    older: Sequence[Commit] = (),
    numbers: Mapping[int, str] | None = None,
    footprints: Mapping[str, Footprint] | None = None,
) -> dict[str, Link]:
    """The reverts and relands among `commits` (upstream, oldest first) by sha, in that order.

    Targets are looked for in `older` (those before, landed or not) and `commits`; `numbers` maps pull requests to
    commits beyond what subjects tell; `footprints` allow the reverse diff where nothing is named.
    """
    known = _Known([*older, *commits], numbers or {}, footprints or {})
    links: dict[str, Link] = {}
    for commit in commits:
        link = _link(commit, known)
        if link is not None:
            links[commit.sha] = link
    return links


def reverted_but_carried(*, links: Mapping[str, Link], picked: Set[str]) -> dict[str, str]:
    """Commits that the fork carries while upstream has reverted them and the fork has not: target to revert.

    `links` in upstream order. One that upstream has relanded since is not among them.
    """
    carried: dict[str, str] = {}
    for link in links.values():
        if link.kind == "revert" and link.sha not in picked and not link.partial:
            carried |= {target: link.sha for target in link.targets if target in picked}
        elif link.kind == "reland":
            for target, revert in list(carried.items()):
                if target in link.targets or revert in link.targets:
                    del carried[target]
    return carried


def families(links: Mapping[str, Link]) -> tuple[tuple[str, ...], ...]:
    """Commits that belong together since one takes back or brings in again another, each family once and sorted."""
    leader: dict[str, str] = {}

    def find(sha: str) -> str:
        while leader.setdefault(sha, sha) != sha:
            sha = leader[sha]
        return sha

    for link in links.values():
        for target in link.targets:
            leader[find(target)] = find(link.sha)
    groups: dict[str, list[str]] = {}
    for sha in sorted(leader):
        groups.setdefault(find(sha), []).append(sha)
    return tuple(sorted(tuple(group) for group in groups.values()))


class _Known:
    """The commits that can be a target, found in every way in which a revert may name one."""

    def __init__(
        self, commits: Sequence[Commit], numbers: Mapping[int, str], footprints: Mapping[str, Footprint]
    ) -> None:
        self.position = {commit.sha: index for index, commit in enumerate(commits)}
        self.footprints = footprints
        self._commits = commits
        self._shas = sorted(self.position)
        self._numbers = dict(numbers)
        self._titles: dict[str, list[str]] = {}
        for commit in commits:
            number = _OWN_NUMBER.search(commit.subject)
            if number:
                self._numbers.setdefault(int(number[1]), commit.sha)
            self._titles.setdefault(_plain(commit.subject), []).append(commit.sha)
        self._undone: dict[frozenset[tuple[str, str, str]], list[str]] = {}
        for commit in commits:
            mark = _mark(footprints[commit.sha]) if commit.sha in footprints else None
            if mark:
                self._undone.setdefault(frozenset((p, new, old) for p, old, new in mark), []).append(commit.sha)

    def by_sha(self, prefix: str, before: str) -> str | None:
        found = [sha for sha in self._shas if sha.startswith(prefix)]
        return found[0] if len(found) == 1 and self.earlier(found[0], before) else None

    def by_number(self, number: int, before: str) -> str | None:
        sha = self._numbers.get(number)
        return sha if sha and self.earlier(sha, before) else None

    def by_title(self, title: str, before: str) -> str | None:
        plain = _plain(_ELLIPSIS.sub("", title))
        if len(plain) < 8:
            return None
        exact = [sha for sha in self._titles.get(plain, ()) if self.earlier(sha, before)]
        if exact:
            return exact[-1]
        if not _ELLIPSIS.search(title):
            return None
        cut = [
            s
            for known, shas in self._titles.items()
            if known.startswith(plain)
            for s in shas
            if self.earlier(s, before)
        ]
        return max(cut, key=self.position.__getitem__) if cut else None

    def by_diff(self, sha: str, *, exact: bool) -> str | None:
        """The newest earlier commit whose change this one takes back; without `exact` on the whole is enough."""
        mine = self.footprints.get(sha)
        if mine is None:
            return None
        mark = _mark(mine)
        same = [other for other in self._undone.get(mark, ()) if self.earlier(other, sha)] if mark else []
        if same or exact:
            return same[-1] if same else None
        likely = [
            (_likeness(mine, self.footprints[c.sha]), self.position[c.sha], c.sha)
            for c in self._commits
            if c.sha in self.footprints and self.earlier(c.sha, sha)
        ]
        best = max(likely, default=(0.0, 0, ""))
        return best[2] if best[0] >= _LIKE else None

    def earlier(self, sha: str, before: str) -> bool:
        return self.position[sha] < self.position[before] if sha in self.position else True


def _link(commit: Commit, known: _Known) -> Link | None:
    subject = commit.subject
    revert, reland = _REVERT.search(subject), _RELAND.search(subject)
    said = "\n".join(_sentences(commit.body))
    if not revert and not reland:
        if _named_shas(said, commit, known) and _STARTS.search(said):
            revert = _STARTS.search(said)
        else:
            undone = known.by_diff(commit.sha, exact=True)
            return Link(commit.sha, "revert", (undone,), "diff") if undone else None
    kind = "reland" if reland or _DOUBLE.search(subject) else "revert"
    for how, targets in _ways(commit, said, known):
        found = sorted(dict.fromkeys(targets), key=lambda sha: known.position.get(sha, -1))
        if found:
            partial = bool(_PARTIAL.search(subject)) or (kind == "revert" and _leaves_some(commit.sha, found, known))
            return Link(commit.sha, kind, tuple(found), how, partial)
    return Link(commit.sha, kind, (), "nothing", bool(_PARTIAL.search(subject)))


_STARTS = re.compile(r"\bthis (?:commit |patch |pr |change )?(?:partially )?reverts\b", re.I)


def _ways(commit: Commit, said: str, known: _Known) -> Iterator[tuple[str, list[str]]]:
    """Each way to name the targets, the surest first."""
    yield "body", _named_shas(said, commit, known)
    yield "body", _named_numbers(said, commit, known)
    yield "title", _titled(commit, known)
    found = known.by_diff(commit.sha, exact=False)
    yield "diff", [found] if found else []


def _named_shas(text: str, commit: Commit, known: _Known) -> list[str]:
    found = (known.by_sha(match[0], commit.sha) for match in _SHA.finditer(text))
    return [sha for sha in found if sha]


def _named_numbers(text: str, commit: Commit, known: _Known) -> list[str]:
    found = (known.by_number(int(match[1]), commit.sha) for match in _NUMBER.finditer(text))
    return [sha for sha in found if sha]


def _titled(commit: Commit, known: _Known) -> list[str]:
    """By the title in the subject: its numbers, or its words; all of several that are joined."""
    subject = _OWN_NUMBER.sub("", commit.subject)
    named = _named_numbers(subject, commit, known) + _named_shas(subject, commit, known)
    if named:
        return named
    quoted = _QUOTED.search(subject)
    bare = _RELAND.sub("", _REVERT.sub("", subject)).strip(" :-\"'“”")
    for title in dict.fromkeys((quoted[1] if quoted else bare, bare)):
        found = known.by_title(title, commit.sha)
        if found:
            return [found]
    return []


def _sentences(body: str) -> Iterator[str]:
    """The paragraphs in which the body says what it reverts or relands, with the list that follows."""
    open_list = False
    for line in body.splitlines():
        if _SAID.search(line):
            yield line
            open_list = True
        elif open_list and re.match(r"\s*(?:[-*+]|\d+[.)]|and\b|[0-9a-f]{7,40}\b|#\d)", line):
            yield line
        elif line.strip():
            open_list = False


def _plain(title: str) -> str:
    return re.sub(r"\W+", " ", _OWN_NUMBER.sub("", title)).strip().lower()


def _mark(footprint: Footprint) -> frozenset[tuple[str, str, str]]:
    return frozenset(
        (file.path, file.old_oid, file.new_oid) for file in footprint.files if file.old_oid != file.new_oid
    )


def _likeness(mine: Footprint, other: Footprint) -> float:
    """How well one takes back what the other did (0 to 1)."""
    theirs = {file.path: file for file in other.files}
    shared = [(file, theirs[file.path]) for file in mine.files if file.path in theirs]
    if not shared:
        return 0.0
    same = sum(len(a.refers & b.drops) + len(a.drops & b.refers) for a, b in shared)
    every = _size(mine.files) + _size(other.files) - same
    return same / every if every else 0.0


def _size(files: Iterable[FileFootprint]) -> int:
    return sum(len(file.refers) + len(file.drops) for file in files)


def _leaves_some(sha: str, targets: Sequence[str], known: _Known) -> bool:
    mine = known.footprints.get(sha)
    theirs = [known.footprints[target] for target in targets if target in known.footprints]
    return mine is not None and any(not other.paths <= mine.paths for other in theirs)
