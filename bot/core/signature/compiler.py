"""What compilers and assemblers say: grouped by message, operation, pass, asserting function, header, file."""

from __future__ import annotations

import re

from bot.core.signature.building import building, is_opaque, is_wrapper, killed, toolchain, undefined
from bot.core.signature.clean import base
from bot.core.signature.mask import mask, words
from bot.core.signature.model import CODE, Found, Rank
from bot.core.signature.patterns import AnyOf

_ERROR = re.compile(
    r"(?:: ?|^)(?:fatal +|internal compiler )?error(?P<code> [A-Z]*\d+[A-Z]?|\[[\w:-]+\])?\s?: (?P<message>.+)$", re.I
)
_OF_ITS_OWN = re.compile(r"[A-Za-z]+\d")
_NVCC_ERROR = re.compile(r"^(?P<file>[^:()\s]{1,200})\(\d+\): (?:catastrophic )?error(?: #\S+)?: (?P<message>.+)$")
_PLACE = re.compile(
    r"(?:^|[\s\"(>])(?P<file>(?:[A-Za-z]:(?=[\\/]))?[^\s:()\"]+(?: [^\s:()\"]+)?)"
    r"(?::\d+(?::\d+)?|\(\d+(?:,\d+)?\)|\":\d+:\d+\))$"
)
_TOOL = re.compile(r"^[\w./+-]+$")
# what MLIR says of an operation, which may have no place
_OF_OPERATIONS = re.compile(
    r"(?:'[\w.]+' op |failed to (?:verify|materialize|parse) |[^'`\"]{0,120}\boperation:? ['`]?[a-z]\w*\.[a-z]\w*)"
)
_OPERATION = re.compile(r"^'(?P<op>[\w.]+)' op (?P<message>.+)$")
_SUFFIX = r"\.(?:h|hh|hpp|hxx|inc|cuh|td|def)"
_HEADER = AnyOf(
    rf"'?(?P<header>\b[\w./+-]+{_SUFFIX})'? file not found",
    rf"(?P<header>\b[\w./+-]+{_SUFFIX}): No such file or directory",
    r"cannot open (?:include|source) file:? ['\"](?P<header>[^'\"]+)['\"]",
)
_OF_A_MODULE = re.compile(r"\.(?:c|cc|cpp|cxx|cu|cuh|h|hh|hpp|inc|td|m|mm|rs|go|f90|proto|def|s|tpp|ipp)$", re.I)
_CHECK = re.compile(
    r"^[A-Z][\w-]*: (?P<what>expected string not found|is (?:not )?on the (?:same|line after)|excluded string found"
    r"|no match|expected .{0,40}not found)"
)
_LLVM_ERROR = re.compile(r"\b(?:LLVM ERROR|error in backend): (?P<message>.+)$")
_SELECT = re.compile(
    r"^Cannot select: (?:intrinsic (?P<intrinsic>%?[\w.]+)|(?:0x\w+|t\d+): (?P<types>[\w,]+) = (?P<node>[\w:]+))"
)
_ASSERTS = (
    ("assertion", re.compile(r"(?P<where>.{0,900}?)Assertion [`'\"‘](?P<cond>.+?)['’`\"]? failed")),
    (
        "assertion failed",
        re.compile(
            r"Assertion failed: \(?(?P<cond>.+?)\)?, (?:function (?P<function>[\w:~<>]+), )?file (?P<where>\S+?),?"
            r" line \d+"
        ),
    ),
    ("internal assert failed", re.compile(r"(?P<cond>.{3,300}?)\s?INTERNAL ASSERT FAILED at \"?(?P<where>[^\":]+)")),
    ("check failed", re.compile(r"(?P<where>[\w./+-]*)\S* ?Check failed: (?P<cond>.+?)(?:\s\(.{0,120}\))?\s*$")),
    ("assert(", re.compile(r"(?P<where>[\w./+-]*)\S*\s?\b\w+_ASSERT\((?P<cond>.+)\)(?: failed)?$")),
    ("check(", re.compile(r"(?P<where>[\w./+-]*)\S*\s?\b\w+_CHECK\((?P<cond>.+)\) failed$")),
    ("unreachable executed", re.compile(r"UNREACHABLE executed at (?P<where>[^:!]+)(?P<cond>)")),
)
# a library's own checks are met from everywhere: the file they stand in says nothing
_SUPPORT = re.compile(
    r"^(?:Casting|SmallVector|ArrayRef|Optional|Error|StringRef|STLExtras|Alignment|ilist_iterator|APInt|TypeSize"
    r"|vector"
    r"|PointerUnion|BitVector|DenseMap|string_view|memory|optional|stl_vector)(?:\.h)?$"
)
_GENERIC = re.compile(r"^(?:cast|dyn_cast|isa|operator|front|back|at|value)$")
_TOOLS = re.compile(
    r"\b(?P<tool>ptxas|nvlink|fatbinary|nvcc|nvdisasm|cicc|llc|opt|lld|clang\+*|gcc|g\+\+|cc1plus|gfortran|hipcc"
    r"|amdclang\+*|as|cudafe\+\+)"
    r"(?: \S{1,200}?(?:, line \d+;)?)?\s{0,8}:?\s{0,8}(?:error|fatal)\s{0,8}:\s{0,8}(?P<message>.+)$"
)
_MANGLED = re.compile(r"\b_Z\w+")
_RESOURCES = re.compile(r"out of resources?:? (?P<what>[a-z][a-z ]{1,40}?),? Required", re.I)
_PASS = AnyOf(
    r"Pipeline failed while executing \[`(?P<name>[\w:-]+)`",
    r"Running pass ['\"`](?P<name>[^'\"`]+)['\"`] on (?:function|module|basic)",
    r"pass `?'?(?P<name>[\w-]+)'?`? failed",
    r"^\d+\.\s+(?P<name>Code generation|Optimizer|Per-module optimization passes|Per-function optimization)",
)
_SANITIZER = re.compile(r"(?:ERROR|WARNING|SUMMARY): (?P<tool>\w+Sanitizer): (?P<kind>[\w-]+)")
_RUNTIME_CHECK = re.compile(r"^(?P<file>\S{1,200}?):\d+:\d+: runtime error: (?P<message>.+)$")
_CHECKER = re.compile(r"^FileCheck error: (?P<what>.+)$")
_GTEST = re.compile(r"^(?P<file>unknown file|\S{1,300}\.\w+(?=:\d|\(\d))(?::\d+|\(\d+\))?: Failure$")
# compilers that leave the word out: Go's, and those of other languages whose source they show
_BARE = re.compile(
    r"^(?:vet: )?(?:\./)?(?P<file>[\w./-]{1,200}\.(?:go|rs|swift|hs|kt|scala|zig|nim|ml|f90|f|java|pyx|pxd"
    r"|proto)):(?:\d+:\d+:"
    r"|\[\d+,\d+\]) "
    r"(?!warning|note|info|remark|hint|===)(?P<message>.+)$"
)
_BAZEL = re.compile(r"^ERROR: (?P<file>\S{1,300}/BUILD(?:\.bazel)?):\d+:\d+: (?P<message>.+)$")
_SHOWN = re.compile(
    r"^Error: .{1,200} at \(\d\)|^Warning, treated as error|\[-Werror[=\]]|\bwarnings? (?:being )?treated as errors?"
)
_LINT = re.compile(r"^(?P<file>[\w./-]{1,200}\.\w+):\d+:(?:\d+:)? (?P<code>[A-Z]{1,4}\d{2,5})\b[: ]")


def diagnostic(line: str, lowered: str) -> Found | None:
    """What a compiler, an assembler, a linker or a build tool says in `line`."""
    if "out of resource" in lowered and (found := _RESOURCES.search(line)):
        return _code("resources", line, found["what"].lower())
    for read in (killed, _assertion, _sanitizer, _llvm, toolchain, _tool, building, _placed):
        if told := read(line, lowered):
            return told
    if found := _CHECKER.match(line):
        return _code("filecheck", line, mask(found["what"]))
    if found := _GTEST.match(line):
        return _code("gtest", line, base(found["file"]))
    if found := _BARE.match(line):
        return _code("compile", line, base(found["file"]), mask(found["message"]))
    if (found := _BAZEL.match(line)) and "fetch" not in lowered:
        return _code("told", line, base(found["file"]), mask(found["message"]), rank=Rank.FAULT + 1)
    if _SHOWN.search(line):
        return _code("compile", line, "", mask(line), rank=Rank.FAULT + 1)
    if found := _LINT.match(line):
        return _code("lint", line, found["code"], base(found["file"]))
    return None


def pass_of(line: str, lowered: str) -> str:
    """The pass that `line` says was running, "" if none."""
    found = _PASS.search(line, lowered)
    return found["name"] if found else ""


def _code(kind: str, line: str, *key: str, rank: int = Rank.FAULT) -> Found:
    return Found(kind, rank, CODE, key, line, hard=True)


def _placed(line: str, lowered: str) -> Found | None:
    """`file:line: error: message` in its many forms; kind `told` where only a tool's name stands before it."""
    if "error" not in lowered or is_wrapper(line, lowered):
        return None
    found = _NVCC_ERROR.match(line)
    file = base(found["file"]) if found else ""
    located = found is not None
    if found is None:
        found = _ERROR.search(line)
        if found is None:
            return None
        head = line[: found.start()]
        place = _PLACE.search(head[-300:])
        file = base(place["file"]) if place else ""
        # a number of its own is a compiler's: error[E0308], error TS2322
        coded = found["code"] is not None and _OF_ITS_OWN.search(found["code"]) is not None
        located = place is not None or coded or head.startswith(("loc(", "<unknown>", "<stdin>", "within split"))
        located = located or (head == "" and _OF_OPERATIONS.match(found["message"]) is not None)
        if not located and not _TOOL.match(head):
            return None
    return _message(found["message"].strip(), line, lowered, file, located)


def _message(message: str, line: str, lowered: str, file: str, located: bool) -> Found | None:
    if check := _CHECK.match(message):
        return _code("filecheck", line, file, check["what"])
    if header := _HEADER.search(message, lowered):
        return _code("header", line, base(header["header"]))
    if told := undefined(message, line, lowered):
        return told
    if is_opaque(message, message.lower()):
        return None
    if operation := _OPERATION.match(message):
        return _code("op", line, operation["op"], mask(operation["message"]))
    masked = mask(message)
    if _OF_A_MODULE.search(file):
        return _code("compile", line, file, masked)
    # a kernel's own file says where it was met, not what failed, unless the message is too short to tell
    return _code(
        "compile" if located and "://" not in message else "told", line, masked, file if words(masked) < 3 else ""
    )


def _llvm(line: str, lowered: str) -> Found | None:
    found = _LLVM_ERROR.search(line) if "llvm error" in lowered or "in backend" in lowered else None
    if not found:
        return None
    message = found["message"]
    if select := _SELECT.match(message):
        return _code("select", line, select["intrinsic"] or f"{select['types']} {select['node']}")
    # one rank behind: a diagnostic before it names the operation
    return _code("llvm", line, mask(message), rank=Rank.FAULT + 1)


def _assertion(line: str, lowered: str) -> Found | None:
    for word, pattern in _ASSERTS:
        found = pattern.search(line) if word in lowered else None
        if not found:
            continue
        told = found.groupdict()
        where = told.get("where") or ""
        named = re.search(r"([\w+-]+\.\w+)\"?:?\d*", where)
        name = named[1] if named else ""
        if _SUPPORT.match(name):
            name = ""
        return _code("assert", line, mask(told["cond"]), name, told.get("function") or _function(where))
    return None


def _function(signature: str) -> str:
    """The name of the function whose signature stands before an assertion, without scopes, types and parameters."""
    head = re.sub(r"^.*?:\d+: ", "", signature)
    found = re.search(r"([~\w]+)\s?(?:<[^()]{0,200}>)?\(", head)
    return found[1] if found and not _GENERIC.match(found[1]) else ""


def _sanitizer(line: str, lowered: str) -> Found | None:
    if "sanitizer" in lowered and (found := _SANITIZER.search(line)):
        return _code("sanitizer", line, found["tool"], found["kind"])
    if "runtime error" in lowered and (found := _RUNTIME_CHECK.match(line)):
        return _code("sanitizer", line, base(found["file"]), mask(found["message"]))
    return None


def _tool(line: str, lowered: str) -> Found | None:
    found = _TOOLS.search(line) if "error" in lowered or "fatal" in lowered else None
    if not found or is_wrapper(found["message"], lowered):
        return None
    message = found["message"]
    if header := _HEADER.search(message, lowered):
        return _code("header", line, base(header["header"]))
    if told := undefined(message, line, lowered):
        return told
    return _code("tool", line, found["tool"], mask(_MANGLED.sub("<symbol>", message)))
