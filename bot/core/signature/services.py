"""What is said by all that stands around the code: disks, networks, registries, git, runners, workflows, test tools."""

from __future__ import annotations

import re
from functools import lru_cache

from bot.core.signature import machines, networks, project, running
from bot.core.signature.clean import base
from bot.core.signature.mask import mask
from bot.core.signature.model import CODE, UNKNOWN, Found, Rank
from bot.core.signature.rule import LINE, NONE, WHO, Rule

TABLE = (
    *machines.DISK,
    *machines.MACHINE,
    *machines.BUSY,
    *networks.DNS,
    *networks.NO_NETWORK,
    *networks.MIRROR,
    *networks.NETWORK,
    *networks.CREDENTIALS,
    *project.MERGE,
    *project.LINT,
    *project.GIT,
    *project.PACKAGES,
    *project.BUILDS,
    *project.SHELL,
    *project.TEST_DATA,
    *project.COMMANDS,
    *project.TOOLS,
    *project.FILES,
    *project.WORKFLOW,
    *running.NOTHING,
    *running.TESTS,
    *running.PORTS,
    *running.WORKERS,
    *running.COLLECTIVES,
    *running.TIMEOUTS,
    *running.CHILDREN,
    *running.CRASHES,
    *running.EXITS,
    *running.DIED,
)
_LEVEL = re.compile(r"^(?:(?:fatal|error|E|ERR!|remote|npm|pip|docker|warning|W|\S{1,80}:\d+)(?: ERR!)?: ?)+", re.I)
_ASKED = tuple(
    (name, re.compile(pattern, re.I))
    for name, pattern in (
        ("images", r"docker|registry|toomanyrequests|manifest|container|ghcr|quay|\bECR\b|image"),
        ("lfs", r"\blfs\b|\bsmudge\b|over its data quota"),
        ("models", r"hugging ?face|\bhf\b"),
        ("coverage", r"codecov|coveralls"),
        ("artifacts", r"\bartifacts?\b|CreateArtifact"),
        ("python packages", r"pypi|pythonhosted|\bpip\b|\buv\b|\bwheel|HTTPSConnectionPool"),
        ("system packages", r"\bapt\b|ubuntu|debian|\bdnf\b|\byum\b|\brpm\b|archive\."),
        (
            "git",
            r"\bgit\b|unable to access '|\bRPC\b|index-pack|fetch-pack|early EOF|remote end hung up|sideband"
            r"|upload-pack|clone",
        ),
        ("github", r"github|\bactions?\b|octokit|\bAPI\b"),
        ("other packages", r"conda|\bnpm\b|\byarn\b|crates|cargo|maven|gradle|rubygems"),
        ("storage", r"\bs3\b|amazonaws|\bblob\b|azure|\bgcs\b|googleapis"),
        ("cache", r"cache"),
    )
)
# kinds that are nobody's fault but the network's, unless the tests talk to themselves
_REACHING = frozenset({"connection refused", "connection cut", "network timeout", "no route", "http 5xx", "rate limit"})
NETWORK_KINDS = _REACHING | {"dns", "tls"}
_OWN = re.compile(
    r"localhost|127\.0\.0\.1|\[?::1\]|0\.0\.0\.0|c10d|TCPStore|rdzv|rendezvous|gloo|nccl|openai(?!/)|uvicorn", re.I
)
_PLAIN_500 = re.compile(r"\b500\b|Internal Server Error", re.I)
_KNOWN_HOST = re.compile(
    r"https?://|^remote: |github|pypi|docker|registry|httpReadSeeker|failed to solve|hugging ?face"
    r"|amazonaws|azure|googleapis",
    re.I,
)
_ASKED_FOR = re.compile(r"\b(?:tried|trying|unable|failed|could not|cannot) (?:to )?allocate \d", re.I)
_OURS = re.compile(r"triton|mlir|llvm(?!-dev)|torch(?!vision)|_C\b", re.I)
_OUR_LINK = re.compile(
    rf"(?:site|dist)-packages/(?=[^,)'\" ]*(?:{_OURS.pattern}))[^,)'\"]{{1,300}}\.(?:so|dylib)\b"
    r".{0,80}Library not loaded: @",
    re.I,
)
LONGEST = 600
# said in passing by what is going on, not by what went wrong
_PASSING = re.compile(
    r"^(?:retry|retrying|re-?trying|attempt|will retry|info\b|debug\b|note\b|\s*-- |using (?!pytest\.)|set |run "
    r"|\+ |\$ |# )",
    re.I,
)


@lru_cache(maxsize=2048)
def service(line: str, *, exception: bool = False) -> Found | None:
    """What a disk, a network, a registry, git, a runner, a workflow or a test tool says in `line`."""
    if _PASSING.match(line) and not exception:
        return None
    line = line[:LONGEST]
    lowered = line.lower()
    for rule in TABLE:
        found = rule.pattern.search(line, lowered)
        if found:
            what = next((value for value in found.groupdict().values() if value), "")
            hard = rule.rank == Rank.CRASH and rule.cls == CODE
            return Found(rule.kind, rule.rank, _class(rule, line, what), _key(rule, line, found, what), line, hard=hard)
    return None


def _key(rule: Rule, line: str, found: re.Match[str], what: str) -> tuple[str, ...]:
    if what:
        return (mask(base(what)),)
    if rule.kind in _REACHING and _OWN.search(line):
        return ("its own",)
    if rule.kind == "host memory" and _ASKED_FOR.search(line):
        return ("asked for",)
    if rule.detail == LINE:
        return (mask(_LEVEL.sub("", line)),)
    if rule.detail == NONE:
        return ("",)
    asked = next((name for name, pattern in _ASKED if pattern.search(line)), "") if rule.detail == WHO else ""
    return (asked, found.re.pattern)


def _class(rule: Rule, line: str, what: str) -> str:
    if rule.kind in _REACHING and _OWN.search(line):
        return UNKNOWN
    if rule.kind == "host memory" and _ASKED_FOR.search(line):
        return UNKNOWN  # whoever asks for that much may be wrong
    if rule.kind == "http 5xx" and _PLAIN_500.search(line) and not _KNOWN_HOST.search(line):
        return UNKNOWN
    if rule.kind == "missing library" and (_OURS.search(what) or _OUR_LINK.search(line)):
        return CODE  # what was built doesn't find what it was linked with
    return rule.cls
