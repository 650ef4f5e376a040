"""The one table of commands: name, syntax, who may, where, what it does, and how its words are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from bot.core.command import values as v
from bot.core.command.words import WordError, Words, dashed, day, number
from bot.core.types import Level

MAX_TEXT = 4000
_SHA = re.compile(r"[0-9a-fA-F]{7,40}")
_PR = re.compile(r"#[0-9]{1,9}")
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}(/[A-Za-z0-9._-]{1,100})?")
_AREA = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,63}")
_POLITE = frozenset(
    ("please", "pls", "plz", "thanks", "thank", "thx", "ty", "you", "now", "again", "kindly", "asap", "and", "then",
     "for", "me", "too", "also", "here", "cc", "ok", "okay", "hi")
)  # fmt: skip


class Role(StrEnum):
    """What the writer of a command must be; a maintainer may do all but sign for an area that is not theirs."""

    ANYONE = "anyone"
    WRITE = "write"
    OWNER = "owner"
    MAINTAIN = "maintain"


class Where(StrEnum):
    """Where a command is understood."""

    PULL = "pull"
    ISSUE = "issue"
    DASHBOARD = "dashboard"


@dataclass(frozen=True, slots=True)
class Spec:
    """One row: `read` turns words into arguments or raises WordError."""

    name: str
    syntax: str
    role: Role
    where: frozenset[Where]
    summary: str
    example: str
    read: Callable[[Words], v.Arguments]


def _text(words: Words, key: str, *, needed: bool = True) -> str | None:
    value = words.get(key)
    if value is None or not value.strip():
        if needed:
            raise WordError(f'{key}= is missing: write {key}="…"')
        return None
    if len(value) > MAX_TEXT:
        raise WordError(f"{key}= is longer than {MAX_TEXT} characters: link to the rest")
    return value.strip()


def _needed(words: Words, key: str) -> str:
    value = _text(words, key)
    assert value is not None
    return value


def _only(words: Words, *keys: str) -> None:
    for key, _ in words.pairs:
        if key not in keys:
            known = f"; known here: {', '.join(f'{name}=' for name in keys)}" if keys else ""
            raise WordError(f"{key}= means nothing here{known}")


def _plain(words: Words) -> list[str]:
    """The plain words without politeness and emoji."""
    kept = (word.rstrip(",;") for word in words.plain)
    return [word for word in kept if word.lower().rstrip(".!?:") not in _POLITE and any(c.isalnum() for c in word)]


def _level(words: list[str]) -> Level:
    if not words:
        raise WordError("the level is missing: l1, l2 or l3")
    text = words.pop(0)
    try:
        return Level(text.lower().rstrip(".!?:"))
    except ValueError:
        digit = next((char for char in text[-1:] if char in "123"), "")
        meant = f"did you mean l{digit}? " if digit else ""
        raise WordError(f"{text!r} is no level: {meant}write l1, l2 or l3") from None


def _commit(text: str) -> str:
    last = text.rstrip("/").rsplit("/", 1)[-1] if text.startswith(("https://", "http://")) else text
    if text != last and "/pull/" in text:
        last = f"#{last}"
    if _SHA.fullmatch(last):
        return last.lower()
    if _PR.fullmatch(last):
        return last
    raise WordError(f"{text!r} names no commit: write at least 7 digits of its hash, or #1234 for an upstream request")


def _one_commit(words: Words) -> str:
    plain = _plain(words)
    if not plain:
        raise WordError("the upstream commit is missing: at least 7 digits of its hash, or #1234")
    if len(plain) > 1:
        raise WordError(f"one commit at a time, and text in quotes after reason=: {plain[1]!r} is neither")
    return _commit(plain[0])


def _login(text: str) -> str:
    login = text.removeprefix("@")
    if not _LOGIN.fullmatch(login):
        raise WordError(f"{text!r} names nobody: write @login or @organisation/team")
    return login


def _validate(words: Words) -> v.Validate:
    _only(words, "force")
    plain = _plain(words)
    level = _level(plain)
    force = words.get("force")
    if force not in (None, "yes", "no"):
        raise WordError("force= is yes or no")
    return v.Validate(level, tuple(plain), force == "yes")


def _area(plain: list[str]) -> str:
    if not plain:
        raise WordError("the area is missing, as the file .github/graft.yml names it")
    area = plain.pop(0)
    if not _AREA.fullmatch(area):
        raise WordError(f"{area!r} can't be the name of an area")
    return area


def _signoff(words: Words) -> v.Signoff:
    plain = _plain(words)
    level = _level(plain)
    if level is not Level.L3:
        raise WordError(f"only l3 is signed off; {level.value} is proved by its runs")
    area = _area(plain)
    if plain:
        raise WordError(f'{plain[0]!r} is neither metric=value nor text in quotes: write note="…"')
    metrics = []
    for name, text in words.pairs:
        if name not in ("run", "evidence", "note"):
            try:
                value, relative = number(text)
            except WordError as error:
                raise WordError(f"{name}: {error}") from None
            metrics.append(v.MetricText(name, value, relative, text))
    evidence = _text(words, "evidence", needed=False)
    if evidence is not None and not re.fullmatch(r"https?://[^\s<>\"']+", evidence):
        raise WordError("evidence= is an address that begins with https://")
    run, note = (_text(words, key, needed=False) for key in ("run", "note"))
    return v.Signoff(level, area, tuple(metrics), run, evidence, note)


def _report(words: Words) -> v.HandReport:
    _only(words)
    plain = _plain(words)
    level = _level(plain) if plain and plain[0].lower() in ("l1", "l2", "l3") else Level.L3
    if level is not Level.L3:
        raise WordError(f"only l3 has suites that people run; {level.value} is proved by its runs")
    if len(plain) != 1:
        raise WordError("name one suite of l3, and put its report below, in a fence named graft-report")
    return v.HandReport(plain[0])


def _unsign(words: Words) -> v.Unsign:
    _only(words)
    plain = _plain(words)
    level = _level(plain) if plain and plain[0].lower() in ("l1", "l2", "l3") else Level.L3
    if level is not Level.L3:
        raise WordError(f"only l3 is signed off, so there is nothing of {level.value} to take back")
    area = _area(plain) if plain else None
    if plain:
        raise WordError(f"one area at a time: {plain[0]!r} is too much")
    return v.Unsign(level, area)


def _waive(words: Words) -> v.Waive:
    _only(words, "until", "owner", "reason", "plan")
    if len(words.plain) != 1:
        raise WordError(
            "name one test, suite or suite#metric, in quotes where it holds spaces; text goes in quotes after its key"
        )
    scope = words.plain[0].strip()
    if not scope or len(scope) > 500:
        raise WordError("the scope is one test, suite or suite#metric of at most 500 characters")
    until, owner, reason, plan = (_needed(words, key) for key in ("until", "owner", "reason", "plan"))
    return v.Waive(scope, day(until), _login(owner), reason, plan)


def _defer(words: Words) -> v.Defer:
    _only(words, "reason", "owner")
    owner = _text(words, "owner", needed=False)
    return v.Defer(_one_commit(words), _needed(words, "reason"), _login(owner) if owner else None)


def _wont_port(words: Words) -> v.WontPort:
    _only(words, "reason")
    return v.WontPort(_one_commit(words), _needed(words, "reason"))


def _skip(words: Words) -> v.Skip:
    _only(words, "reason")
    return v.Skip(_one_commit(words), _text(words, "reason", needed=False))


def _pick(words: Words) -> v.Pick:
    _only(words)
    return v.Pick(_one_commit(words))


def _explain(words: Words) -> v.Explain:
    _only(words)
    return v.Explain(_one_commit(words) if _plain(words) else None)


def _rollback(words: Words) -> v.Rollback:
    _only(words)
    return v.Rollback(_one_commit(words) if _plain(words) else None)


def _split(words: Words) -> v.Split:
    _only(words)
    return v.Split(tuple(dict.fromkeys(_commit(word) for word in _plain(words))))


def _bisect(words: Words) -> v.Bisect:
    _only(words)
    plain = [word for word in words.plain if word.strip()]
    stop = bool(plain) and plain[0].lower() == "stop"
    plain = plain[1:] if stop else plain
    plain = plain[:1] + [word for word in plain[1:] if word.lower().rstrip(".!?:") not in _POLITE]
    if len(plain) > 1:
        raise WordError(f"one suite or test, in quotes where it holds spaces: {plain[1]!r} is too much")
    if not plain and not stop:
        raise WordError("the suite or test is missing")
    return v.Bisect(plain[0] if plain else None, stop)


def _gpu_budget(words: Words) -> v.GpuBudget:
    _only(words, "add")
    plain, text = _plain(words), words.get("add")
    area = _area(plain) if plain or text is not None else None
    if plain:
        raise WordError(f"one area at a time: {plain[0]!r} is too much")
    if text is None:
        return v.GpuBudget(area)
    hours, relative = number(text.lower().removesuffix("h"))
    if relative or not 0 < abs(hours) <= 100_000:
        raise WordError(f"add={text} is no number of GPU hours: write it as in add=20")
    return v.GpuBudget(area, hours)


def _help(words: Words) -> v.Help:
    plain = _plain(words)
    return v.Help(dashed(plain[0]).lower().removeprefix("/") if plain else None)


def _bare(arguments: v.Arguments) -> Callable[[Words], v.Arguments]:
    def read(words: Words) -> v.Arguments:
        _only(words)
        return arguments

    return read


_PULL = frozenset({Where.PULL})
_PULL_AND_DASHBOARD = frozenset({Where.PULL, Where.DASHBOARD})
_ALL = frozenset(Where)

TABLE: tuple[Spec, ...] = (
    Spec("validate", "/validate l1|l2|l3 [suite …] [force=yes]", Role.WRITE, _PULL,
         "Run a level on this head commit, or some of its suites. `force=yes` (maintainers): no wait for lower levels.",
         "/validate l2 gemm-sweep", _validate),
    Spec("signoff", "/signoff l3 <area> metric=value … [run=…] [evidence=<url>] [note=\"…\"]", Role.OWNER, _PULL,
         "Approve an area's L3 numbers for this head commit.", "/signoff l3 recsys ne=0.8012 qps=+1.2%", _signoff),
    Spec("report", "/report l3 <suite>", Role.OWNER, _PULL,
         "Give the report of an L3 suite run by hand on this head; it stands below, in a fence `graft-report`.",
         "/report l3 ranking-model", _report),
    Spec("unsign", "/unsign [l3] [<area>]", Role.OWNER, _PULL,
         "Take a sign-off back.", "/unsign l3 recsys", _unsign),
    Spec("waive", "/waive <test | suite | suite#metric> until=YYYY-MM-DD owner=@x reason=\"…\" plan=\"…\"",
         Role.MAINTAIN, _PULL, "Land in spite of one failure, until the end of that day (UTC). L3 needs two people.",
         "/waive unit::test_dot until=2026-12-31 owner=@octocat reason=\"driver bug\" plan=\"new driver on the 20th\"",
         _waive),
    Spec("defer", "/defer <commit> reason=\"…\" [owner=@x]", Role.WRITE, _PULL_AND_DASHBOARD,
         "Leave an upstream commit for later; it stays a hole with its reason and owner.",
         "/defer 1a2b3c4 reason=\"needs the new LLVM\"", _defer),
    Spec("wont-port", "/wont-port <commit> reason=\"…\"", Role.MAINTAIN, _PULL_AND_DASHBOARD,
         "Never take this upstream commit.", "/wont-port 1a2b3c4 reason=\"replaced by TLX\"", _wont_port),
    Spec("skip", "/skip <commit> [reason=\"…\"]", Role.WRITE, _PULL_AND_DASHBOARD,
         "Record that an upstream commit has no effect on this fork.", "/skip 1a2b3c4", _skip),
    Spec("pick", "/pick <commit>", Role.WRITE, _PULL_AND_DASHBOARD,
         "Take this upstream commit in now, also where it was deferred.", "/pick 1a2b3c4", _pick),
    Spec("retry", "/retry", Role.WRITE, _PULL_AND_DASHBOARD, "Do again what failed here.", "/retry", _bare(v.Retry())),
    Spec("rebase", "/rebase", Role.WRITE, _PULL, "Build this batch anew on the fork's tip.", "/rebase",
         _bare(v.Rebase())),
    Spec("split", "/split [<commit> …]", Role.WRITE, _PULL,
         "Take these upstream commits out of the batch; without any, halve it.", "/split 1a2b3c4", _split),
    Spec("rollback", "/rollback [<commit>]", Role.MAINTAIN, frozenset({Where.PULL, Where.ISSUE}),
         "Open the revert of this batch, or of one upstream commit of it; on a breakage, of its culprit.",
         "/rollback 1a2b3c4", _rollback),
    Spec("explain", "/explain [<commit>]", Role.ANYONE, _ALL,
         "Say why an upstream commit, or this batch, stands where it stands.", "/explain 1a2b3c4", _explain),
    Spec("bisect", "/bisect <suite | test | suite#metric>, or /bisect stop", Role.WRITE, _ALL,
         "Find the commit that broke it; `stop` ends the search.", "/bisect gemm-sweep", _bisect),
    Spec("ok-to-test", "/ok-to-test", Role.WRITE, _PULL,
         "Let a stranger's pull request, at this head commit, run on the runners.", "/ok-to-test", _bare(v.OkToTest())),
    Spec("gpu-budget", "/gpu-budget [<area>] [add=<hours>]", Role.WRITE, _PULL_AND_DASHBOARD,
         "Tell the GPU hours that areas have used this month; `add=` (maintainers) allows an area more this month.",
         "/gpu-budget recsys add=20", _gpu_budget),
    Spec("help", "/help [command]", Role.ANYONE, _ALL, "Tell the commands.", "/help waive", _help),
)  # fmt: skip

BY_NAME: dict[str, Spec] = {spec.name: spec for spec in TABLE}
