"""The fork's history read as facts: which of its commits carry which upstream commit, and which were taken back.

What counts is what the texts record (trailers, markers, pull request bodies, revert lines); no title and no patch that
looks alike makes a commit picked. Texts which came along with a pick (upstream's own trailers and revert lines) do not
count. A title can only take back: a commit `Revert "<title>"` that names nothing else makes the newest commit of just
that title pending again, and if that was wrong, the trial pick finds the change there (`empty`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bot.core.trailers import PullReference, Trailers, parse, pick_mentions, pull_number, revive
from bot.core.types import Commit

_REVERT_TITLE = re.compile(
    r"^(?:\[[^\]]*\]\s*)*(?:revert|back\s*-?out)\b(?:\s+D\d+)?\s*:?\s*(.*)$", re.IGNORECASE | re.DOTALL
)
_OUR_BRANCHES = "graft/"
_NUMBERS = re.compile(r"(?:\s*\(#\d+\))+\s*$")


@dataclass(frozen=True, slots=True)
class LandedPullRequest:
    """A pull request of the fork that has landed; `landed_time` in seconds since the epoch.

    `merge_sha` is the fork commit that GitHub names as its landing, `head` its branch. A body speaks for the fork only
    when `trusted`: its author is Graft or may write to the fork, since authors may edit bodies after landing.
    """

    number: int
    merge_sha: str
    title: str
    body: str
    head: str
    landed_time: int
    trusted: bool = True


@dataclass(frozen=True, slots=True)
class Carrier:
    """A fork commit that carries an upstream commit; `reverted_by` the fork commit that took it back and stands."""

    sha: str
    batch: str | None = None
    reverted_by: str | None = None


@dataclass(frozen=True, slots=True)
class History:
    """What the fork's commits say of upstream's, by upstream commit, carriers oldest first.

    `unknown` holds (fork commit, named commit) where no such upstream commit is in the range; `unresolved_reverts` the
    fork commits that say they take something back without naming anything that could be found.
    """

    carriers: Mapping[str, tuple[Carrier, ...]] = field(default_factory=dict)
    unknown: tuple[tuple[str, str], ...] = ()
    unresolved_reverts: tuple[str, ...] = ()

    def standing(self, sha: str) -> tuple[Carrier, ...]:
        """The carriers of an upstream commit that nobody has taken back."""
        return tuple(carrier for carrier in self.carriers.get(sha, ()) if carrier.reverted_by is None)

    @property
    def duplicates(self) -> dict[str, tuple[Carrier, ...]]:
        """Upstream commits that more than one standing fork commit carries."""
        found = {sha: self.standing(sha) for sha in self.carriers}
        return {sha: carriers for sha, carriers in found.items() if len(carriers) > 1}


class Names:
    """Looks up commits by full or abbreviated names; an abbreviation that fits two commits names none."""

    def __init__(self, shas: Iterable[str]) -> None:
        self._sorted = sorted(shas)

    def find(self, name: str) -> str | None:
        """The one commit of that name, or None."""
        at = bisect_left(self._sorted, name)
        if at == len(self._sorted) or not self._sorted[at].startswith(name):
            return None
        if at + 1 < len(self._sorted) and self._sorted[at + 1].startswith(name):
            return None
        return self._sorted[at]


def read_history(
    *,
    upstream: Sequence[Commit],
    fork: Sequence[Commit],
    markers: Sequence[str] = (),
    pull_requests: Sequence[LandedPullRequest] = (),
    repository: str | None = None,
    reverts: Mapping[str, Sequence[str]] | None = None,
) -> History:
    """Read what the fork carries of upstream.

    `upstream` and `fork` are the commits since the merge base, oldest first (the fork's all, not its first-parent line
    alone, where it lands by merge commits). `repository` is the fork's owner/name, to tell its pull requests from
    upstream's in revert lines. `reverts` maps fork commits to the fork commits they take back, where that was found by
    other means (a reverse diff). Raises ValueError for a broken marker.
    """
    return _Reader(upstream, fork, tuple(markers), pull_requests, repository).read(reverts or {})


class _Reader:
    def __init__(
        self,
        upstream: Sequence[Commit],
        fork: Sequence[Commit],
        markers: tuple[str, ...],
        pull_requests: Sequence[LandedPullRequest],
        repository: str | None,
    ) -> None:
        self.markers, self.repository = markers, repository
        self.upstream = {commit.sha: commit for commit in upstream}
        self.upstream_names = Names(self.upstream)
        self.upstream_pulls: dict[int, list[str]] = defaultdict(list)
        for commit in upstream:
            if (number := pull_number(commit.message)) is not None:
                self.upstream_pulls[number].append(commit.sha)
        self.fork = fork
        self.position = {commit.sha: index for index, commit in enumerate(fork)}
        self.fork_names = Names(self.position)
        self.texts = {commit.sha: parse(commit.message, markers) for commit in fork}
        self.landed: dict[str | int, list[LandedPullRequest]] = defaultdict(list)
        for pull in sorted(pull_requests, key=lambda pull: pull.number):
            # GitHub may name a commit that is not the one which landed: then the subject's number tells
            self.landed[pull.merge_sha if pull.merge_sha in self.position else pull.number].append(pull)
        self.carried: dict[str, list[str]] = defaultdict(list)  # upstream commit -> fork commits
        self.picks: set[str] = set()
        self.titles: dict[str, str] = {}
        self.batches: dict[str, str] = {}
        self.names: dict[str | int, list[str]] = defaultdict(list)  # pull request number, identity -> fork commits
        self.in_batch: dict[str, list[str]] = defaultdict(list)
        self.reverters: dict[str, list[str]] = defaultdict(list)  # fork commit -> those that take it back
        # (upstream commit, fork commit that carries others too) -> those that take just that one out of it
        self.taken_out: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.unknown: list[tuple[str, str]] = []
        self.unresolved: list[str] = []

    def read(self, reverts: Mapping[str, Sequence[str]]) -> History:
        for commit in self.fork:
            explained = self._read_message(commit)
            said, targets, parts = self._targets(commit, explained)
            targets |= {sha for sha in reverts.get(commit.sha, ()) if self._before(sha, commit.sha)}
            for target in targets:
                self.reverters[target].append(commit.sha)
            for part in parts:
                if part[1] not in targets:
                    self.taken_out[part].append(commit.sha)
            if said and not targets and not parts:
                self.unresolved.append(commit.sha)
            for carriers in self.carried.values() if targets else ():
                # what a commit takes back it can't bring: its text quotes the other's trailer
                if commit.sha in carriers and targets.intersection(carriers):
                    carriers[:] = [sha for sha in carriers if sha != commit.sha]
            number = self._read_names(commit)
            for pull in (*self.landed.get(commit.sha, ()), *(self.landed.pop(number, ()) if number else ())):
                self._read_body(commit.sha, pull)
        standing = self._standing(len(self.fork))
        return History(
            carriers={
                full: tuple(
                    Carrier(sha, self.batches.get(sha), self._taken_back(full, sha, standing))
                    for sha in dict.fromkeys(shas)
                )
                for full, shas in self.carried.items()
                if shas
            },
            unknown=tuple(dict.fromkeys(self.unknown)),
            unresolved_reverts=tuple(self.unresolved),
        )

    def _read_message(self, commit: Commit) -> Trailers:
        """Note what the message carries; return what it says only because a picked commit's own message says it."""
        found = self.texts[commit.sha]
        if not found.picks:
            return Trailers()
        known = {name: full for name in found.picks if (full := self.upstream_names.find(name))}
        theirs = [parse(self.upstream[full].message, self.markers) for full in known.values()]
        quoted = self._quoted(commit.message, known) if any(text.picks for text in theirs) else frozenset()
        for name, full in known.items():
            if name not in quoted:
                self._carry(full, commit.sha, found.batches)
        missing = [name for name in found.picks if name not in known and name not in quoted]
        self._read_unknown(commit.sha, missing, found)
        return Trailers(
            reverts=tuple(sha for text in theirs for sha in text.reverts),
            reverted_pulls=tuple(pull for text in theirs for pull in text.reverted_pulls),
            reverted_identities=tuple(name for text in theirs for name in text.reverted_identities),
        )

    def _quoted(self, message: str, known: Mapping[str, str]) -> frozenset[str]:
        """The names that stand in a message only because the message of a picked commit holds them.

        Graft breaks those when it writes a pick, git does not: what is broken was not counted in the first place.
        """
        mentions = Counter(pick_mentions(message, self.markers))
        broken = Counter(pick_mentions(revive(message), self.markers)) - mentions
        for full in known.values():
            for name, count in Counter(pick_mentions(self.upstream[full].message, self.markers)).items():
                if known.get(name) != full:
                    mentions[name] -= max(0, count - broken[name])
        return frozenset(name for name, count in mentions.items() if count <= 0)

    def _read_unknown(self, sha: str, missing: Sequence[str], found: Trailers) -> None:
        """Upstream rewrote its history, or the commit is a branch's: then the pull request number may still name it."""
        numbers = [self.upstream_pulls.get(pull.number, []) for pull in found.upstream_pulls]
        loose = [shas[0] for shas in numbers if len(shas) == 1 and sha not in self.carried.get(shas[0], ())]
        if missing and len(loose) == len(missing):
            for full in loose:
                self._carry(full, sha, found.batches)
        else:
            self.unknown.extend((sha, name) for name in missing)

    def _carry(self, full: str, sha: str, batches: Sequence[str]) -> None:
        self.carried[full].append(sha)
        self.picks.add(sha)
        if batches:
            self.batches[sha] = batches[-1]

    def _read_names(self, commit: Commit) -> int | None:
        """Note by what names later texts may speak of this commit; return its pull request's number."""
        number = pull_number(commit.message)
        theirs = self.upstream_pulls.get(number, ()) if number else ()
        if any(commit.sha in self.carried.get(sha, ()) for sha in theirs):
            number = None  # a pick keeps upstream's subject, and with it upstream's number
        if number is not None:
            self.names[number].append(commit.sha)
        self.titles[_NUMBERS.sub("", revive(commit.subject))] = commit.sha
        for identity in self.texts[commit.sha].identities:
            self.names[identity].append(commit.sha)
        for batch in self.texts[commit.sha].batches:
            self.in_batch[batch].append(commit.sha)
        return number

    def _taken_back(self, full: str, sha: str, standing: Mapping[str, str | None]) -> str | None:
        """The standing commit that takes an upstream commit's carrier back, or just that one out of it."""
        parts = (one for one in self.taken_out.get((full, sha), ()) if standing.get(one, one) is None)
        return standing[sha] or next(parts, None)

    def _targets(self, commit: Commit, explained: Trailers) -> tuple[bool, set[str], set[tuple[str, str]]]:
        """Whether the message says that it takes something back, and the earlier fork commits that it means.

        Where it names an upstream commit that came with others in one fork commit, it means only that part: (upstream
        commit, fork commit).
        """
        text = self.texts[commit.sha]
        targets: set[str] = set()
        parts: set[tuple[str, str]] = set()
        shas = [sha for sha in text.reverts if sha not in explained.reverts]
        pulls = [pull for pull in text.reverted_pulls if self._ours(pull) and pull not in explained.reverted_pulls]
        identities = [name for name in text.reverted_identities if name not in explained.reverted_identities]
        for name in shas:
            if full := self.fork_names.find(name):
                targets |= self._brought_by(full)
            elif (full := self.upstream_names.find(name)) and commit.sha not in self.carried.get(full, ()):
                for carrier in self.carried.get(full, ()):
                    if self._carries_more(carrier, full):
                        parts.add((full, carrier))
                    else:
                        targets.add(carrier)
        for pull in pulls:
            targets |= {sha for landed in self.names.get(pull.number, ()) for sha in self._brought_by(landed)}
        targets |= self._by_identity(commit.sha, identities)
        title = None if commit.sha in self.picks else _REVERT_TITLE.match(revive(commit.subject))
        if title is not None and not targets and not parts:
            targets |= self._by_title(title[1])
        said = bool(shas or pulls or identities or title)
        return (
            said,
            {sha for sha in targets if self._before(sha, commit.sha)},
            {part for part in parts if self._before(part[1], commit.sha)},
        )

    def _carries_more(self, sha: str, full: str) -> bool:
        """Whether a fork commit carries other upstream commits beside this one."""
        return any(sha in shas for other, shas in self.carried.items() if other != full)

    def _by_title(self, title: str) -> set[str]:
        title = _NUMBERS.sub("", title)
        if len(title) > 1 and title[0] == title[-1] and title[0] in "\"'":
            title = title[1:-1]
        landed = self.titles.get(_NUMBERS.sub("", title)) if title else None
        return {landed} if landed else set()

    def _by_identity(self, sha: str, identities: Sequence[str]) -> set[str]:
        """A source id names one commit; a review's number names its reverts too, so the newest is meant."""
        sources = [name for name in identities if not name.startswith("D")]
        found = {
            shas[-1]
            for source in sources
            for name, shas in self.names.items()
            if isinstance(name, str) and name.startswith(source)
        }
        return (found or {self.names[name][-1] for name in identities if self.names.get(name)}) - {sha}

    def _ours(self, pull: PullReference) -> bool:
        return pull.repository is None or (
            self.repository is not None and pull.repository.lower() == self.repository.lower()
        )

    def _before(self, sha: str, other: str) -> bool:
        return sha in self.position and self.position[sha] < self.position[other]

    def _brought_by(self, sha: str) -> set[str]:
        """The commit, and with a merge commit all that it brought in."""
        commit = self.fork[self.position[sha]]
        if len(commit.parents) < 2:
            return {sha}
        before, brought = self._reachable(commit.parents[:1]), self._reachable(commit.parents[1:])
        return {sha} | (brought - before)

    def _reachable(self, shas: Sequence[str]) -> set[str]:
        seen: set[str] = set()
        waiting = list(shas)
        while waiting:
            sha = waiting.pop()
            if sha in self.position and sha not in seen:
                seen.add(sha)
                waiting.extend(self.fork[self.position[sha]].parents)
        return seen

    def _read_body(self, landing: str, pull: LandedPullRequest) -> None:
        """A body carries what a squash dropped: only what no commit up to the landing carries already and still."""
        if not pull.trusted:
            self.names[pull.number].append(landing)
            return
        found = parse(pull.body, self.markers)
        if pull.head.startswith(_OUR_BRANCHES):
            self.batches.setdefault(landing, pull.head)
        self.names[pull.number] += [sha for batch in found.batches for sha in self.in_batch[batch]] + [landing]
        for name in found.picks:
            full = self.upstream_names.find(name)
            if full is None:
                self.unknown.append((landing, name))
                continue
            earlier = list(self.carried.get(full, ()))
            if any(sha in self.reverters or (full, sha) in self.taken_out for sha in earlier):
                standing = self._standing(self.position[landing] + 1)
                earlier = [sha for sha in earlier if self._taken_back(full, sha, standing) is None]
            if not earlier:
                self._carry(full, landing, found.batches)

    def _standing(self, end: int) -> dict[str, str | None]:
        """For each of the first `end` fork commits the standing commit that takes it back, or None where it stands."""
        reverted_by: dict[str, str | None] = {}
        for commit in reversed(self.fork[:end]):
            reverted_by[commit.sha] = next(
                (sha for sha in self.reverters.get(commit.sha, ()) if reverted_by[sha] is None),
                None,
            )
        return reverted_by
