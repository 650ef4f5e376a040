"""How test frameworks of any language say that a test failed, and checkers that memory was misused: always the code."""

from __future__ import annotations

import re

from bot.core.signature.mask import mask
from bot.core.signature.model import CODE, Found, Rank
from bot.core.signature.patterns import AnyOf

_FAILED = AnyOf(
    r"^\s*--- FAIL: (?P<test>\S+)",
    r"^\s*not ok \d+ - (?P<test>.+?)(?: # .*)?$",
    r"^test (?P<test>[\w:]+) \.\.\. FAILED$",
    r"^\[ {2}FAILED {2}\] (?P<test>[\w/.]+)",
    r"^(?:FAIL|ERROR): (?P<test>\w+ \([\w.]+\))",
    r"^\s*\d+ - (?P<test>\S+) \((?:Failed|SEGFAULT|ILLEGAL|BUS_ERROR|Subprocess aborted|NUMERICAL)\)",
    r"^\d+/\d+ Test +#\d+: (?P<test>\S+) [. ]*\*{3}(?:Failed|Exception)",
    r"^\*{10,} TEST '(?P<test>[^']+)' FAILED \*+$",
    r"^The following tests FAILED",
    r"^Assert\.\w+\(\) Failure",
    r"^Failed Tests \(\d+\):",
    r"^Failed example:",
    r"^FAILED TEST: (?P<test>.+)$",
    r"^Error compiling ",
    r"^\d+% tests passed, [1-9]\d* tests? failed",
    r"^FAILED \((?:failures|errors)=",
    r"^\s*(?:✕|✗|✘|✖|×|●) (?P<test>\S.*)$",
    r"^(?:FAIL|FAILED)\t(?P<test>\S+)\t",
    r"^//\S+\s+FAILED in \d",
)
_CLAIM = re.compile(
    r"\b(?:expected|wanted?|should (?:be|have|equal))\b.{0,200}\b(?:got|but (?:got|was|found|received)|actual(?:ly)?"
    r"|received"
    r"|instead)\b|\bgot\b.{0,120}\b(?:want|expected)\b|^(?:REQUIRE|CHECK|EXPECT|ASSERT)\w*\s?\("
    r"|\bwaiting for expect\(|\bhas failed \[",
    re.I,
)
_MEMORY = re.compile(
    r"^={2}\d+={2} {1,2}(?P<valgrind>Invalid (?:read|write|free)|Conditional jump|Use of uninitiali[sz]ed"
    r"|Mismatched free"
    r"|.{0,80}definitely lost)"
    r"|^={9} {1,8}(?P<cuda>Invalid|Program hit|Race reported|Potential|Uninitialized|Out-of-|Misaligned|Barrier error"
    r"|Leaked)"
)
_COUNTER = re.compile(r"^(?:Falsifying|Minimal failing|Shrunk|Counter-?) ?example\b", re.I)


def framework(line: str, lowered: str, *, claims: bool = True) -> Found | None:
    """What a test framework or a checker of memory says in `line` of the code under test; with `claims`, of values."""
    if found := _MEMORY.match(line):
        return Found("sanitizer", Rank.FAULT, CODE, (mask(found["valgrind"] or found["cuda"]),), line, hard=True)
    if found := _FAILED.search(line, lowered):
        test = found.groupdict().get("test") or ""
        return Found("test failed", Rank.OPAQUE, CODE, (mask(test),), line, hard=True)
    if _COUNTER.match(line):
        return Found("test failed", Rank.OPAQUE, CODE, ("example",), line, hard=True, by_test=True)
    if claims and _CLAIM.search(line):
        return Found("claim", Rank.SPOKEN - 1, CODE, (mask(line),), line, by_test=True)
    return None
