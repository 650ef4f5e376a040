"""Commit messages as the ledger: what they say was picked or reverted, and how Graft writes its own.

Text from upstream is made inert before it is written anywhere: it mentions nobody, closes nothing, leaves no
cross-reference on anybody's timeline, skips no continuous integration and hides nothing in HTML comments, yet a person
reads what upstream wrote, and `revive` gives it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from bot.core.types import Commit

_T = TypeVar("_T")

ZERO_WIDTH = "\u200b"
SUBJECT_LIMIT = 200
"""Longest subject of a pick, in characters: GitHub refuses a pull request title of 256 and more."""

_HEX = r"[0-9a-f]{7,64}"
_PICK = re.compile(
    rf"\(\s*cherry[\s-]+picked\s+from\s+commit:?\s+[`\[]?({_HEX})[`\]]?(?:\([^()\s]*\))?\s*\)", re.IGNORECASE
)
_SPACE = rf"[ \t{ZERO_WIDTH}]*"
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
_REFERENCE = rf"(?:({_NAME}/{_NAME}){_SPACE})?#{_SPACE}(\d+)"
_UPSTREAM_PULL = re.compile(rf"^[ \t>*-]*upstream-pr{_SPACE}:{_SPACE}{_REFERENCE}\b", re.IGNORECASE | re.MULTILINE)
_BATCH = re.compile(r"^[ \t>*-]*graft-batch[ \t]*:[ \t]*([\w.-]+)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_REVERT = re.compile(
    rf"\b(?:this\s+)?reverts\s+(?:commits?\s+)((?:[`\[]?\b{_HEX}\b[`\]]?(?:\s*,\s*(?:and\s+)?|\s+and\s+)?)+)",
    re.IGNORECASE,
)
_REVERT_PULL = re.compile(
    rf"^[ \t]*(?:this[ \t]+)?reverts[ \t]+(?:pull[ \t]+request[ \t]+)?{_REFERENCE}\b", re.IGNORECASE | re.MULTILINE
)
_IDENTITIES = (
    re.compile(r"^[ \t]*differential[ \t]+revision[ \t]*:\s*(?:https?://\S*/)?(D\d+)\b", re.IGNORECASE | re.MULTILINE),
    re.compile(r"^[ \t]*change-id[ \t]*:[ \t]*(I[0-9a-f]{8,40})\b", re.IGNORECASE | re.MULTILINE),
    re.compile(r"^[ \t]*fbshipit-source-id[ \t]*:[ \t]*([0-9a-f]{12,40})\b", re.IGNORECASE | re.MULTILINE),
)
_REVERTED_IDENTITIES = (
    re.compile(r"^[ \t]*original[ \t]+phabricator[ \t]+diff[ \t]*:[ \t]*(D\d+)\b", re.IGNORECASE | re.MULTILINE),
    re.compile(r"^[ \t]*this[ \t]+diff[ \t]+reverts[ \t]+(D\d+)\b", re.IGNORECASE | re.MULTILINE),
    re.compile(r"^[ \t]*original[ \t]+commit[ \t]+changeset[ \t]*:[ \t]*([0-9a-f]{12,40})\b", re.I | re.MULTILINE),
)
_PULL_NUMBER = re.compile(rf"\(#{ZERO_WIDTH}?(\d+)\)\s*$")
_MERGED_PULL = re.compile(r"^Merge pull request #(\d+) from ")


@dataclass(frozen=True, slots=True)
class PullReference:
    """A pull request by number; `repository` is None where the text names none: then it is that text's own."""

    repository: str | None
    number: int


@dataclass(frozen=True, slots=True)
class Trailers:
    """What one text (a commit message or a pull request body) records; each value once, in the order of the text.

    `identities` name the change itself in systems that keep names across rewrites (Gerrit, Phabricator), and
    `reverted_identities` the change that it takes back.
    """

    picks: tuple[str, ...] = ()
    upstream_pulls: tuple[PullReference, ...] = ()
    reverts: tuple[str, ...] = ()
    reverted_pulls: tuple[PullReference, ...] = ()
    identities: tuple[str, ...] = ()
    reverted_identities: tuple[str, ...] = ()
    batches: tuple[str, ...] = ()


@lru_cache(maxsize=64)
def compile_markers(markers: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """The fork's own patterns of how picks were recorded; ValueError says which one is wrong and how to mend it."""
    compiled = []
    for number, marker in enumerate(markers):
        where = f"ingest.picked_markers[{number}] ({marker!r})"
        try:
            pattern = re.compile(marker, re.IGNORECASE | re.MULTILINE)
        except re.error as error:
            raise ValueError(f"{where} is no regular expression: {error}") from error
        if "sha" not in pattern.groupindex:
            raise ValueError(f"{where} has no group named sha: write (?P<sha>[0-9a-f]{{40}}) where the commit stands")
        compiled.append(pattern)
    return tuple(compiled)


def parse(text: str, markers: Sequence[str] = ()) -> Trailers:
    """Read all that a commit message or a pull request body records; raises ValueError for a broken marker.

    Case, line ends and white space do not matter; one text may record any number of picks (a squash does).
    """
    return _parse(text, tuple(markers))


# a plan reads the same messages twice, a worker every half hour
@lru_cache(maxsize=8192)
def _parse(text: str, markers: tuple[str, ...]) -> Trailers:
    text = _unix(text)
    return Trailers(
        picks=_once(pick_mentions(text, markers)),
        upstream_pulls=_once(_pull(match) for match in _UPSTREAM_PULL.finditer(text)),
        reverts=_once(
            sha.lower() for match in _REVERT.finditer(text) for sha in re.findall(rf"\b{_HEX}\b", match[1], re.I)
        ),
        reverted_pulls=_once(_pull(match) for match in _REVERT_PULL.finditer(text)),
        identities=_once(match[1] for pattern in _IDENTITIES for match in pattern.finditer(text)),
        reverted_identities=_once(match[1] for pattern in _REVERTED_IDENTITIES for match in pattern.finditer(text)),
        batches=_once(match[1] for match in _BATCH.finditer(text)),
    )


def pick_mentions(text: str, markers: Sequence[str] = ()) -> tuple[str, ...]:
    """The commits that the text records as picked, as often as it does, in its order."""
    text = _unix(text)
    picks = {(match.start(1), match[1].lower()) for match in _PICK.finditer(text)}
    for pattern in compile_markers(tuple(markers)):
        picks |= {(match.start("sha"), match["sha"].lower()) for match in pattern.finditer(text) if match["sha"]}
    return tuple(sha for _, sha in sorted(picks))


def pull_number(message: str) -> int | None:
    """The number of the pull request that landed as this commit, as GitHub writes it into the subject; else None."""
    subject = message.split("\n", 1)[0]
    match = _PULL_NUMBER.search(subject) or _MERGED_PULL.match(subject)
    return int(match[1]) if match else None


# each pattern's first group stays, a zero-width space follows it: what GitHub looks for is no longer there
_LIVE = (
    re.compile(r"(?<![A-Za-z0-9_])(@)(?=[A-Za-z0-9_])"),  # mentions of people and teams
    re.compile(r"(#)(?=\d|[xX][0-9a-fA-F])"),  # references, and the HTML entities that would spell them
    re.compile(r"(?<![A-Za-z0-9])(GH\\?-)(?=\d)", re.IGNORECASE),
    re.compile(r"(&)(?=(?:commat|num|sol|colon|period|lowbar|dash|hyphen|lbrack|lsqb|bsol);)", re.IGNORECASE),
    re.compile(r"(\[)(?=(?:skip ci|ci skip|no ci|skip actions|actions skip)\])", re.IGNORECASE),
    re.compile(r"(?<!\w)(skip-checks)(?=\s*:)", re.IGNORECASE),
    re.compile(r"(<)(?=!--)"),  # hidden text, and Graft's own markers
)
_PULL_PATH = r"\\?/\\?(?:issues|pulls?|discussions)\\?/+"
_GITHUB_PULL = re.compile(
    rf"(?<![\w.])(https?://)(?:www\.)?github\.com(?=/{_NAME}/{_NAME}/(?:issues|pulls?|discussions)/\d)", re.IGNORECASE
)
_REDIRECT = "redirect.github.com"
_PULL_LINK = re.compile(rf"(https?://{re.escape(_REDIRECT)}/{_NAME}/{_NAME})?({_PULL_PATH})(?=\d)", re.IGNORECASE)


def inert(text: str) -> str:
    """The same text to the eye, to GitHub without mention, reference, closing keyword, CI switch or HTML comment.

    Fit for commit messages and for markdown. Doing it twice changes nothing more. Links to pull requests and issues on
    github.com go through GitHub's own redirecting host, which opens them and records no reference.
    """
    text = _GITHUB_PULL.sub(rf"\1{_REDIRECT}", text)
    text = _PULL_LINK.sub(lambda link: link[0] if link[1] else link[2] + ZERO_WIDTH, text)
    for pattern in _LIVE:
        text = pattern.sub(rf"\1{ZERO_WIDTH}", text)
    return text


def revive(text: str) -> str:
    """What `inert` was given (zero-width spaces that were already in it are lost)."""
    return text.replace(ZERO_WIDTH, "").replace(f"//{_REDIRECT}/", "//github.com/")


def without_picks(text: str, markers: Sequence[str] = ()) -> str:
    """The same text to the eye, recording no pick: upstream's own trailers must not speak in the fork's name."""
    for pattern in (_PICK, *compile_markers(tuple(markers))):
        group = "sha" if "sha" in pattern.groupindex else 1
        # broken once, a greedy pattern of the fork's may still find enough of the sha further on
        for _ in range(8):
            found = [match.start(group) for match in pattern.finditer(text) if match[group]]
            for start in reversed(found):
                text = text[: start + 4] + ZERO_WIDTH + text[start + 4 :]
            if not found:
                break
    return text


_KEPT_TRAILER = re.compile(
    r"^[ \t]*(co-authored-by|signed-off-by)[ \t]*:[ \t]*([^<>\n]*?)[ \t]*<([\w.+-]*[a-z0-9_]@[\w.-]+)>[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_OURS = re.compile(r"^([ \t>*-]*(?:upstream|graft)-)(?=[\w-]+[ \t]*:)", re.IGNORECASE | re.MULTILINE)


def pick_message(
    commit: Commit,
    *,
    upstream_repository: str,
    pr: int | None,
    batch: str,
    markers: Sequence[str] = (),
) -> str:
    """The message of the pick of an upstream commit: its own, inert, co-authors kept, with Graft's trailers.

    `upstream_repository` is owner/name, `pr` its pull request if known, `batch` the key of the batch that carries the
    pick. The subject is capped at SUBJECT_LIMIT characters, the rest of it opens the body. `parse` of the result gives
    back exactly this commit's sha, whatever upstream's message holds.
    """
    message = without_picks(_unix(commit.message).replace("\0", ""), markers)
    kept = _once(_kept(match) for match in _KEPT_TRAILER.finditer(message))
    message = _OURS.sub(rf"\1{ZERO_WIDTH}", _KEPT_TRAILER.sub("", message))
    subject, _, body = message.strip().partition("\n")
    subject, rest = _capped(subject.strip() or f"Pick {commit.sha[:12]}")
    body = re.sub(r"\n{3,}", "\n\n", body).strip("\n").rstrip()
    parts = [without_picks(inert(part), markers) for part in (subject, rest, body) if part]
    trailers = [*kept]
    if pr is not None:
        trailers.append(f"Upstream-PR: {inert(f'{upstream_repository}#{pr}')}")
    trailers += [f"Graft-Batch: {batch}", f"(cherry picked from commit {commit.sha})"]
    return "\n\n".join([*parts, "\n".join(trailers)]) + "\n"


def _kept(match: re.Match[str]) -> str:
    name = "-".join(word.capitalize() if i == 0 else word.lower() for i, word in enumerate(match[1].split("-")))
    return f"{name}: {inert(match[2])} <{match[3]}>"


def _capped(subject: str) -> tuple[str, str]:
    if len(subject) <= SUBJECT_LIMIT:
        return subject, ""
    cut = subject.rfind(" ", SUBJECT_LIMIT // 2, SUBJECT_LIMIT - 1)
    cut = cut if cut > 0 else SUBJECT_LIMIT - 1
    return f"{subject[:cut].rstrip()}…", f"…{subject[cut:].lstrip()}"


def _pull(match: re.Match[str]) -> PullReference:
    return PullReference(match[1], int(match[2]))


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _once(values: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(values))
