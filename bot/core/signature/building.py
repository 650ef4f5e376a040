"""What linkers and build tools say, and what only repeats that a build failed."""

from __future__ import annotations

import re

from bot.core.signature.clean import base
from bot.core.signature.mask import mask, words
from bot.core.signature.model import CODE, HARNESS, INFRA, UNKNOWN, Found, Rank
from bot.core.signature.patterns import AnyOf

_KILLED = AnyOf(
    r"fatal error: Killed signal",
    r"(?:cc1plus|ld|collect2|clang|nvcc|rustc|cicc|ptxas).{0,60}(?:\[Killed\]|signal 9|\(Killed\)|SIGKILL)",
    r"Killed\s.{0,60}(?:cc1plus|clang|ninja)",
    r"virtual memory exhausted",
    r"unable to execute command: Killed",
    r"died due to signal 9\b",
    r"^g?make(?:\[\d+\])?: \*\*\* \[.{0,300}\.(?:o|obj|lo)\] (?:Killed|Error 137)$",
)
_HOST_COMPILER = (
    r"^(?:\d+>)?(?:\S*[/\\])?(?:cc1\w*|collect2|lto1|lto-wrapper|f951|as|ld(?:\.\w+)?|link|clang\S*|g?cc|[gc]\+\+"
    r"|rustc|cl)(?:\.exe)?"
)
_EXHAUSTED = AnyOf(
    r"\bcompiler is out of heap space\b",
    r"\binternal heap limit reached\b",
    r"\berror LNK1102\b",
    r"\berror C3859\b.{0,40}\bvirtual memory\b",
    rf"{_HOST_COMPILER} ?: (?:(?:fatal )?error ?: |internal compiler error: |final link failed: )*"
    r"(?:out of memory|memory exhausted|cannot allocate memory)\b",
)
_UNDEFINED = re.compile(
    r"undefined (?:reference to|symbols?):? [`'\"]?(?P<symbol>[^'`\"\n]+?)['`\"]?(?:[,;( ].{0,200})?$", re.I
)
_LINK = AnyOf(
    r"(?:multiple definition of|duplicate symbol:?) [`'\"]?(?P<symbol>[^'`\"]+)",
    r"cannot find -l(?P<library>[\w+.-]+)",
    r"unable to find library -l(?P<library>[\w+.-]+)",
    r"library not found for -l(?P<library>[\w+.-]+)",
    r"(?P<relocation>relocation (?:R_\w+ )?.{0,60}(?:out of range|truncated|can not be used))",
    r"(?P<relocation>relocation truncated to fit)",
)
_CMAKE = re.compile(
    r"^CMake Error(?: at (?P<file>[^:]{1,300}):\d+)?(?: in [^:]{1,200}:\d+)? ?(?:\((?P<command>\w+)\))?:\s*"
    r"(?P<message>.*)$"
)
_STEP = re.compile(r"^(?:\w+ ){1,2}step for \S+ failed")
_CMAKE_CALLED = AnyOf(
    r"Could not create named generator \S+",
    r"CMake [\d.]+ or higher is required",
    r"unable to find a build program",
    r"The source directory .{1,200} does not (?:exist|appear to contain)",
    r"No such preset",
)
_FETCHES = re.compile(
    r"^CMake Error.{0,400}(?:Failed to clone (?:the )?(?:git )?repository|downloading ['\"]?\S{1,300}['\"]? failed"
    r"|(?:failed|unable) to (?:download|fetch|clone) .{0,200}://|Each download failed)"
    r"|^\s*error: downloading '\S{1,300}' failed",
    re.I,
)
_TESTS_COMPILER = re.compile(r"^CMake(?:Test|Determine)\w{1,20}Compiler")
# a compiler that doesn't fit what stands around it
_TOOLCHAIN = AnyOf(
    r"nvcc fatal\s*: (?P<host>Failed to preprocess host compiler|Host compiler|Cannot find compiler)",
    r"#error -- (?P<version>unsupported .{1,60} version)",
    r"The \w+ compiler identification is (?P<unknown>unknown)",
    r"No (?P<none>CMAKE_\w+_COMPILER) could be found",
    r"is not able to (?P<simple>compile a simple test program)",
    r"Microsoft (?P<visual>Visual C\+\+) .{1,20} is required",
    r"find (?P<batch>vcvarsall)",
    r"(?:cannot|can't|could not|unable to|failed to) find (?:an? |the |any )?(?:working |suitable |host )?"
    r"(?P<language>C|C\+\+|CUDA|Fortran|host) compiler",
)
_PACKAGE = AnyOf(
    r"Could not find (?P<what>\w+) \(missing",
    r"Could not find (?P<what>\w+)$",
    r"Could not find a (?:package configuration file|configuration file for package).{0,40}?\"(?P<what>\w+)\"",
)
_NO_RULE = AnyOf(
    r"ninja: error: [`'](?P<target>[^'`,]+)['`].{0,200}(?:missing and no known rule|needed by)",
    r"No rule to make target [`']?(?P<target>[^'`,]+)['`]?.{0,200}(?:needed by|Stop)",
)
# what was asked for by name, not what something else needs
_NO_TARGET = re.compile(
    r"(?:ninja: error: unknown target|No rule to make target) ['`]?(?P<target>[\w./-]+)['`]?(?:\.? {1,2}Stop|,? did|$)"
)
_WRAPPERS = AnyOf(
    r"^ninja: build stopped",
    r"^ninja: error: .{0,200}subcommand failed",
    r"^g?make(?:\[\d+\])?: \*\*\*",
    r"^FAILED: (?:\[code=\d+\] )?[\w./+-]+\.\w+",
    r"^collect2: error: ld returned",
    r"clang\S*: error: (?:linker|unable to execute) command failed",
    r"^\d+ (?:warnings? and \d+ )?errors? (?:generated|detected)",
    r"^compilation terminated",
    r"^error: command '.{1,200}' failed",
    r"^error: subprocess-exited",
    r"^-- Configuring incomplete",
    r"Ptx assembly aborted",
    r"returned non-zero exit status",
    r"returned status code \d+:?$",
    r"linker command failed",
    r"too many errors emitted",
    r"^error: (?:could not compile|aborting due to|build failed)",
)
_SAYS_NOTHING = re.compile(r"^ninja: build stopped")
# what ran, by its wrapper, and whether that was a build
_RAN = re.compile(
    r"^g?make(?:\[\d+\])?: \*\*\* \[(?:\S+:\d+: )?[\w./-]*(?:test|check|bench|run|install)\w*\]"
    r"|returned non-zero exit status"
    r"|returned status code|^error: command '",
    re.I,
)
_BUILT = re.compile(
    r"\b(?:cmake|ninja|make|nvcc|hipcc|gcc|g\+\+|clang\S*|c\+\+|cc|setup\.py|wheel|cargo|bazel|ptxas|llc"
    r"|build\w*)\b(?!: \*\*\*)"
)
_SIGNALLED = re.compile(r"\b(?:Error|code|status) (?:124|134|137|139)$|\] Killed$")
_OPAQUE = AnyOf(
    r"PassManager::run failed",
    r"Failures have been detected while processing an MLIR pass",
    r"\bpass(?:es)? failed\b",
    r"failed to (?:run|apply|execute) (?:the )?pass",
    r"pass pipeline.{0,40}\b(?:fail|error)|\b(?:fail\w*|error)\b.{0,60}pass pipeline",
    r"pipeline failed while",
    r"failed to translate (?:module )?to LLVM IR",
    r"failed to legalize operations?$",
    r"Internal (?:Triton )?PTX codegen error",
    r"Failed to compile (?:the )?(?:kernel|Triton)",
    r"Triton compilation failed",
    r"\bcompilation (?:failed|aborted)$",
)


def toolchain(line: str, lowered: str) -> Found | None:
    """What says in `line` that a compiler doesn't fit the machine it stands on."""
    found = _TOOLCHAIN.search(line, lowered)
    return Found("toolchain", Rank.FAULT, HARNESS, (mask(found.group()),), line) if found else None


def killed(line: str, lowered: str) -> Found | None:
    """That a compiler had taken too much of the machine's memory: it was stopped, or says so itself."""
    if _KILLED.search(line, lowered):
        return Found("killed", Rank.FAULT, INFRA, ("compiler killed",), line)
    if _EXHAUSTED.search(line, lowered):
        return Found("killed", Rank.FAULT, INFRA, ("compiler out of memory",), line)
    return None


def building(line: str, lowered: str) -> Found | None:
    """What a linker or a build tool says in `line`."""
    if told := undefined(line, line, lowered):
        return told
    if found := _LINK.search(line, lowered):
        return _linked(found.groupdict(), line)
    if told := unfetched(line):
        return told
    if found := _CMAKE_CALLED.search(line, lowered):
        return Found("cmake", Rank.FAULT, HARNESS, ("called", mask(found.group())), line)
    if found := _CMAKE.match(line):
        message = mask(found["message"])
        if _STEP.match(found["message"]):
            return Found("wrapper", Rank.WRAPPER, UNKNOWN, ("step", message), line)
        rank = Rank.FAULT + (0 if words(message) > 2 else 5)
        if _TESTS_COMPILER.match(base(found["file"] or "")):
            return Found("toolchain", Rank.FAULT + 5, HARNESS, (base(found["file"]),), line)
        return Found("cmake", rank, CODE, (base(found["file"] or ""), found["command"] or "", message), line)
    if found := _PACKAGE.search(line, lowered):
        return Found("cmake", Rank.FAULT, HARNESS, ("package", found["what"]), line)
    if found := _NO_TARGET.search(line):
        return Found("no target", Rank.FAULT, HARNESS, (base(found["target"]),), line)
    if found := _NO_RULE.search(line, lowered):
        return Found("no rule", Rank.FAULT, CODE, (base(found["target"]),), line, hard=True)
    return None


def unfetched(line: str) -> Found | None:
    """What a build says of sources that it could not fetch: what the network said of it stands before or after."""
    return Found("download", Rank.SERVICE + 5, INFRA, ("build",), line) if _FETCHES.search(line) else None


def undefined(text: str, line: str, lowered: str) -> Found | None:
    """A symbol that `text`, of `line`, says is not defined."""
    found = _UNDEFINED.search(text) if "undefined " in lowered else None
    if not found:
        return None
    return Found("undefined", Rank.FAULT, CODE, (mask(found["symbol"].split("(")[0]),), line, hard=True)


def _linked(told: dict[str, str | None], line: str) -> Found:
    if library := told.get("library"):
        return Found("library", Rank.FAULT, UNKNOWN, (library,), line)
    if symbol := told.get("symbol"):
        return Found("duplicate", Rank.FAULT, CODE, (mask(symbol.split("(")[0]),), line, hard=True)
    return Found("relocation", Rank.FAULT, CODE, (mask(told.get("relocation") or ""),), line, hard=True)


def is_wrapper(line: str, lowered: str) -> bool:
    """Whether `line` only says that a build tool gave up."""
    return _WRAPPERS.search(line, lowered) is not None and not _SIGNALLED.search(line)


def is_opaque(line: str, lowered: str) -> bool:
    """Whether `line` says that a compiler's pass failed and not why."""
    return "legalize operation '" not in lowered and _OPAQUE.search(line, lowered) is not None


def wrapper(line: str, lowered: str) -> Found | None:
    """What only says that something before it failed: a build tool's last words, a pass manager's."""
    if is_wrapper(line, lowered):
        cls = UNKNOWN if _SAYS_NOTHING.search(line) or (_RAN.search(line) and not _BUILT.search(line)) else CODE
        return Found("wrapper", Rank.WRAPPER, cls, (mask(line),), line, by_test=True)
    if is_opaque(line, lowered):
        return Found("opaque", Rank.OPAQUE, CODE, ("opaque pass failure",), line, hard=True, by_test=True)
    return None
