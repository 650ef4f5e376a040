"""What is wrong with a fork's file, told so that it can be mended: line, path, what, near match, how."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from bot.core import paths
from bot.core.strict_yaml import Document, Path
from bot.core.types import Level

if TYPE_CHECKING:
    from bot.core.config import Config, Second, Suite

_AREA = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_OWNER = re.compile(r"@?[A-Za-z0-9][A-Za-z0-9-]{0,38}(/[A-Za-z0-9._-]{1,100})?")
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
MAX_REGEX = 500
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing wrong: the line (from 1), the dotted path, what is wrong, and how to mend it."""

    line: int
    path: str
    text: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"line {self.line}: {self.path or 'the file'}: {self.text}{hint}"


class ConfigError(ValueError):
    """A file that can't be used; `problems` in the order of their lines."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("\n".join(map(str, self.problems)))


def dotted(path: Path) -> str:
    """A path as people write it: `validation.l1[0].timeout`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def near(word: str, known: Iterable[str]) -> str:
    """`did you mean …?` for the nearest known word, else the list of them."""
    names = list(known)
    found = get_close_matches(word, names, 1, 0.6)
    return f"did you mean {found[0]}?" if found else f"known: {', '.join(sorted(names)) or 'none'}"


def of_model(error: ValidationError, document: Document, model: type[BaseModel]) -> list[Problem]:
    """The problems that the model found."""
    out = []
    for item in error.errors(include_url=False):
        path: Path = tuple(item["loc"])
        text, hint = _told(item, model, path)
        out.append(Problem(document.line(path), dotted(path), text, hint))
    return out


def _told(item: Any, model: type[BaseModel], path: Path) -> tuple[str, str]:
    kind, given = item["type"], item.get("input")
    if kind == "extra_forbidden":
        return "there is no such key", near(str(path[-1]), _fields(model, path[:-1]))
    if kind == "missing":
        return "is missing", "add it"
    if kind == "value_error":
        return str(item["ctx"]["error"]), ""
    if kind in ("enum", "literal_error"):
        words = re.findall(r"'([^']+)'", item["ctx"]["expected"])
        return f"{given!r} is not one of its words", near(str(given), words)
    if kind == "string_type":
        return f"{given!r} is no text", "put it in quotes"
    if kind == "tuple_type":
        return f"{given!r} is no list", "write it as [a, b], or one line each with a dash"
    if kind in ("model_type", "dict_type", "model_attributes_type"):
        known = _fields(model, path)
        return f"{given!r} is no mapping", f"its keys: {', '.join(sorted(known))}" if known else "write key: value"
    return f"{given!r}: {item['msg'][:1].lower()}{item['msg'][1:]}", ""


def _fields(model: type[BaseModel], path: Path) -> list[str]:
    """The keys known at a path below a model."""
    here: Any = model
    for part in path:
        if isinstance(here, type) and issubclass(here, BaseModel):
            field = here.model_fields.get(str(part))
            here = field.annotation if field else None
        elif get_origin(here) is tuple:
            here = get_args(here)[0]
        elif get_origin(here) is dict:
            here = get_args(here)[1]
        else:
            return []
        if get_origin(here) is UnionType:
            here = get_args(here)[0]
    if isinstance(here, type) and issubclass(here, BaseModel):
        return list(here.model_fields)
    return []


Found = tuple[Path, str, str]


def cross_checks(config: Config, document: Document) -> list[Problem]:
    """What no single value shows: names that point nowhere, patterns that mean nothing, things told twice."""
    found = [
        *_names(config), *_references(config), *_patterns(config), *_markers(config), *_suites(config),
        *_other_ci(config), *_owners(config),
    ]  # fmt: skip
    return [Problem(document.line(path), dotted(path), text, hint) for path, text, hint in found]


def _names(config: Config) -> Iterator[Found]:
    if not _REPOSITORY.fullmatch(config.upstream.repository):
        yield ("upstream", "repository"), f"{config.upstream.repository!r} is no repository", "write owner/name"
    for path, branch in ((("upstream", "branch"), config.upstream.branch), (("fork", "branch"), config.fork.branch)):
        if not branch or branch.startswith(("-", "/", "refs/")) or re.search(r"[\s~^:?*\[\\\x00-\x1f]|\.\.|@{", branch):
            yield path, f"{branch!r} is no name of a branch", "write it without refs/heads/"
    named = {suite.area for level in Level for suite in config.validation.of(level)}
    named |= {one.area for one in config.triage.other_ci}
    for name, area in config.areas.items():
        if not _AREA.fullmatch(name):
            yield ("areas", name), f"{name!r} can't be typed in /signoff", "use letters, digits, - _ and ."
        if not area.paths and not area.symbols and not area.suites and name not in named:
            yield ("areas", name), "nothing belongs to it", "give it paths, symbols or suites"
    seen: set[str] = set()
    for place, rule in enumerate(config.ingest.risk):
        if rule.name in seen:
            yield ("ingest", "risk", place, "name"), f"the rule {rule.name} stands twice", "give it another name"
        seen.add(rule.name)
        if not rule.paths and not rule.symbols:
            yield ("ingest", "risk", place), f"the rule {rule.name} hits nothing", "give it paths or symbols"


def _references(config: Config) -> Iterator[Found]:
    """Areas and suites that are named and not there."""
    suites = {suite.suite for level in Level for suite in config.validation.of(level)}
    for name, area in config.areas.items():
        for place, suite in enumerate(area.suites):
            if suite not in suites:
                yield ("areas", name, "suites", place), f"there is no suite {suite!r}", near(suite, suites)
        paid = (*config.validation.l2, *config.validation.l3)
        if area.gpu_hours_per_month is not None and not any(
            (suite.area == name or suite.suite in area.suites) and not suite.manual for suite in paid
        ):
            text = f"no suite of l2 or l3 that runs belongs to {name}"
            yield ("areas", name, "gpu_hours_per_month"), text, "name it as the area of one, or drop this"
    for path, area_name in _area_names(config):
        if area_name not in config.areas and not (path[:2] == ("gate", "require_signoff_from") and area_name == "area"):
            yield path, f"there is no area {area_name!r}", near(area_name, config.areas)


def _area_names(config: Config) -> Iterator[tuple[Path, str]]:
    for level in Level:
        for place, suite in enumerate(config.validation.of(level)):
            if suite.area is not None:
                yield ("validation", level.value, place, "area"), suite.area
    for place, one in enumerate(config.triage.other_ci):
        if one.area is not None:
            yield ("triage", "other_ci", place, "area"), one.area
    yield from _required_areas(config)
    for at, name in enumerate(config.gate.trunk_red_blocks):
        yield ("gate", "trunk_red_blocks", at), name


def _required_areas(config: Config) -> Iterator[tuple[Path, str]]:
    for place, risk in enumerate(config.ingest.risk):
        for at, name in enumerate(risk.areas):
            yield ("ingest", "risk", place, "areas", at), name
    for place, rule in enumerate(config.gate.rules):
        for at, name in enumerate(rule.areas):
            yield ("gate", "rules", place, "areas", at), name
    for at, name in enumerate(config.gate.require_signoff_from):
        yield ("gate", "require_signoff_from", at), name


def _patterns(config: Config) -> Iterator[Found]:
    groups: list[tuple[Path, tuple[str, ...]]] = [(("ingest", "skip"), config.ingest.skip)]
    groups += [(("areas", name, "paths"), area.paths) for name, area in config.areas.items()]
    groups += [(("ingest", "risk", at, "paths"), rule.paths) for at, rule in enumerate(config.ingest.risk)]
    groups += [(("gate", "rules", at, "paths"), rule.paths) for at, rule in enumerate(config.gate.rules)]
    for pattern in config.ingest.pins:
        wrong = paths.problem(pattern) or ("a pin is named, not excepted" if pattern.startswith("!") else None)
        if wrong is not None:
            yield ("ingest", "pins", pattern), wrong, ""
    for path, patterns in groups:
        for at, pattern in enumerate(patterns):
            wrong = paths.problem(pattern)
            if wrong is not None:
                yield (*path, at), wrong, ""
    symbols: list[tuple[Path, tuple[str, ...]]] = [
        (("areas", n, "symbols"), a.symbols) for n, a in config.areas.items()
    ]
    symbols += [(("ingest", "risk", at, "symbols"), rule.symbols) for at, rule in enumerate(config.ingest.risk)]
    for path, patterns in symbols:
        for at, pattern in enumerate(patterns):
            if not pattern.strip():
                yield (*path, at), "an empty pattern hits nothing", "write a name, or * for all"


def _markers(config: Config) -> Iterator[Found]:
    for at, marker in enumerate(config.ingest.picked_markers):
        path: Path = ("ingest", "picked_markers", at)
        if len(marker) > MAX_REGEX:
            yield path, f"longer than {MAX_REGEX} characters", "write a shorter expression"
            continue
        try:
            groups = re.compile(marker).groupindex
        except re.error as error:
            yield path, f"no regular expression: {error}", "mind YAML's quotes: single ones keep backslashes"
            continue
        if "sha" not in groups:
            yield path, "has no group named sha", "write the hash as (?P<sha>[0-9a-f]{40})"


def _suites(config: Config) -> Iterator[Found]:
    for level in Level:
        seen: set[str] = set()
        for place, suite in enumerate(config.validation.of(level)):
            path: Path = ("validation", level.value, place)
            if suite.suite in seen:
                yield (*path, "suite"), f"the suite {suite.suite} stands twice in {level.value}", "rename one"
            seen.add(suite.suite)
            if suite.manual and level is not Level.L3:
                yield (*path, "manual"), "only L3 is proved by hand", "move it to l3, or let it run"
            if suite.manual and suite.area is None:
                yield path, f"{suite.suite} is run by hand and nobody signs for it", "name its area"
            if level is not Level.L3 and not suite.runner:
                yield (*path, "runner"), "no runner has an empty label", "name a label, as in [gpu]"
            yield from (((*path, *below), text, hint) for below, text, hint in (*_lab(suite), *_second(suite)))


def _other_ci(config: Config) -> Iterator[Found]:
    own = {suite.suite for level in Level for suite in config.validation.of(level)}
    for place, one in enumerate(config.triage.other_ci):
        path: Path = ("triage", "other_ci", place)
        if one.suite in own:
            yield (*path, "suite"), f"the suite {one.suite} is one that Graft runs itself", "give it another name"
        if (one.workflow is None) == (not one.checks):
            yield path, f"{one.suite} needs a workflow or checks, not both", "name one of them"
        elif one.workflow is not None and not one.artifacts:
            yield path, f"no artifact of {one.workflow} is read", "name them, as in artifacts: [junit*]"
        elif one.checks and one.artifacts:
            yield (*path, "artifacts"), "check runs leave no artifacts", "name the workflow in place of its checks"
        elif one.workflow is not None and one.app is not None:
            yield (*path, "app"), "a workflow's App is GitHub Actions", "leave it out"


def _lab(suite: Suite) -> Iterator[Found]:
    """What a suite says of an outside lab; paths below the suite."""
    lab = suite.lab
    if lab is None:
        if suite.harness == "http":
            yield ("harness",), "the http harness needs a lab", "write lab: {url: https://…}"
        return
    if suite.harness != "http":
        yield ("lab",), f"a lab runs nothing for harness {suite.harness}", "write harness: http, or drop the lab"
    if suite.build:
        yield ("build",), "a lab builds what it runs itself", "drop it"
    try:
        url = urlsplit(lab.url)
        sound = bool(url.hostname) and url.port != 0 and url.scheme in ("https", "http") and "@" not in url.netloc
    except ValueError:
        sound = False
    if not sound or url.query or url.fragment:
        yield ("lab", "url"), f"{lab.url!r} is no lab's address", "write https://host/path, without user or query"
    elif url.scheme == "http" and url.hostname not in _LOOPBACK:
        yield ("lab", "url"), "what is sent there can be read on the way", "write https://"
    for name in ("poll", "unanswered"):
        if getattr(lab, name) <= timedelta(0):
            yield ("lab", name), "is no time at all", "write it as in 15s"


def _second(suite: Suite) -> Iterator[Found]:
    """What a suite says of where it is proved once more; paths below the suite."""
    yield from _labels(("runner",), suite.runner)
    other, here = suite.second, ("second",)
    if other is None:
        return
    yield from _labels((*here, "runner"), other.runner)
    if suite.manual or suite.harness == "http":
        yield here, "only what runs on runners is proved a second time", "drop it, or let a suite of its own do it"
    if not (other.runner or other.workflow or other.harness):
        yield here, "nothing says where or how", "name runner labels, a workflow or a harness"
    if other.runner and set(other.runner) == set(suite.runner) and not other.harness:
        yield (*here, "runner"), "is the pool that proves it already", "name other labels"
    yield from ((("second", *below), text, hint) for below, text, hint in _second_way(other))


def _second_way(other: Second) -> Iterator[Found]:
    """How it is proved a second time; paths below `second`."""
    if other.runner and other.workflow:
        yield (), "runner and workflow are two capacities", "name one of them"
    if other.workflow and (other.harness or other.run or other.env):
        yield (), f"{other.workflow} says itself what it runs", "drop harness, run and env"
    if other.ref and not other.workflow:
        yield ("ref",), "only a workflow is started on a ref", "drop it"
    if other.harness == "http":
        yield ("harness",), "a lab is named by a suite", "give it a suite of its own"
    elif other.harness and not other.run and other.harness != "kernels":
        yield ("run",), f"is missing: {other.harness} runs nothing by itself", "write its command"
    if other.run and not other.harness:
        yield ("run",), "no harness says how its results are read", "name the harness"


def _labels(path: Path, labels: Iterable[str]) -> Iterator[Found]:
    for at, label in enumerate(labels):
        if ":" in label:
            yield (*path, at), f"the label {label!r} holds a colon", "no runner can have it: name another"


def _owners(config: Config) -> Iterator[Found]:
    for name, area in config.areas.items():
        for at, owner in enumerate(area.owners):
            if not _OWNER.fullmatch(owner):
                yield ("areas", name, "owners", at), f"{owner!r} names nobody", "write a login or organisation/team"
    default = config.default_owner
    if default is not None and not _OWNER.fullmatch(default):
        yield ("default_owner",), f"{default!r} names nobody", "write a login or organisation/team"
    for path, name in _required_areas(config):
        known = config.areas.get(name)
        if known is not None and not known.owners and not default:
            yield path, f"nobody could sign off {name}: it has no owners", "give it owners, or set default_owner"
