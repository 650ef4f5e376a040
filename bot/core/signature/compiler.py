"""What compilers, assemblers, linkers and build tools say: grouped by message, operation, pass, symbol, header, file."""

from __future__ import annotations

import re

from bot.core.signature.clean import base
from bot.core.signature.mask import mask, words
from bot.core.signature.model import CODE, HARNESS, INFRA, UNKNOWN, Found, Rank

_PLACE = r"(?:(?P<file>(?:[A-Za-z]:)?[^:()\s\"][^:()\"]{0,300}?)(?::\d+(?::\d+)?|\(\d+(?:,\d+)?\))|loc\((?P<loc>.{1,300})\)|<unknown>:0|<stdin>:\d+:\d+|^[\w./+-]+)"
_DIAGNOSTIC = re.compile(_PLACE + r"\s*: (?:(?P<fatal>fatal )?error(?: [A-Z]*\d+)?|Error)\s?: (?P<message>.+)$")
_NVCC_STYLE = re.compile(r"^(?P<file>[^:()\s]{1,200})\(\d+\): (?:catastrophic )?error(?: #\S+)?: (?P<message>.+)$")
_OPERATION = re.compile(r"^'(?P<op>[\w.]+)' op (?P<message>.+)$")
_HEADER = re.compile(
    r"'?(?P<header>[\w./+-]+\.(?:h|hh|hpp|hxx|inc|cuh|td|def|H))'?(?: file not found|: No such file or directory)|[Cc]annot open (?:include|source) file:? ['\"](?P<other>[^'\"]+)['\"]"
)
_MODULE = re.compile(r"\.(?:c|cc|cpp|cxx|cu|cuh|h|hh|hpp|inc|td|m|mm|rs|go|f90|proto|def|s|S)$", re.I)
_CHECK = re.compile(
    r"^(?P<prefix>[A-Z][\w-]*?)(?:-(?:NEXT|SAME|DAG|NOT|LABEL|EMPTY|COUNT-\d+))*: (?P<what>expected string not found|is (?:not )?on the (?:same|line after)|is not on the line after|excluded string found|no match|expected .{0,40}not found)"
)
_LLVM_ERROR = re.compile(r"\bLLVM ERROR: (?P<message>.+)$")
_SELECT = re.compile(
    r"^Cannot select: (?:intrinsic (?P<intrinsic>%?[\w.]+)|(?:0x\w+|t\d+): (?P<types>[\w,]+) = (?P<node>[\w:]+))"
)
_ASSERTS = (
    re.compile(r"(?P<where>.{0,600}?)Assertion [`'\"‘](?P<cond>.+?)['’`\"]? failed"),
    re.compile(
        r"Assertion failed: \(?(?P<cond>.+?)\)?, (?:function (?P<function>[\w:~<>]+), )?file (?P<where>\S+?),? line \d+"
    ),
    re.compile(r"(?P<cond>.{3,300}?)\s?INTERNAL ASSERT FAILED at \"?(?P<where>[^\":]+)"),
    re.compile(r"(?P<where>\S*?)[^\w]?Check failed: (?P<cond>.+?)(?:\s\(.{0,120}\))?\s*$"),
    re.compile(r"(?P<where>\S+:\d+:)? ?(?P<cond>.{0,300}?)\bUNREACHABLE executed at (?P<other>[^:!]+)"),
)
_SUPPORT_FILE = re.compile(
    r"^(?:Casting|SmallVector|ArrayRef|Optional|optional|Error|StringRef|STLExtras|Alignment|ilist_iterator|APInt|Value|TypeSize|PointerUnion|BitVector|DenseMap|vector|string_view|memory)\.?h?$"
)
_PTXAS = re.compile(
    r"\b(?P<tool>ptxas|nvlink|fatbinary|nvcc|nvdisasm|cicc|llc|opt|lld|clang\+*|hipcc|amdclang\+*|as|cudafe\+\+)(?: \S{1,200}, line \d+;)?\s*:?\s*(?P<level>error|fatal)\s*:\s*(?P<message>.+)$"
)
_MANGLED = re.compile(r"\b_Z\w+")
_RESOURCES = re.compile(r"out of resources?:? (?P<what>[a-z][a-z ]+?),? Required", re.I)
_UNDEFINED = re.compile(
    r"undefined (?:reference to|symbol)s?:? [`'\"]?(?P<symbol>[^'`\"\n]+?)['`\"]?(?:[,;( ].{0,200})?$"
)
_LINK = re.compile(
    r"(?:(?P<dup>multiple definition of|duplicate symbol:?) [`'\"]?(?P<symbol>[^'`\"]+)|cannot find -l(?P<library>[\w+.-]+)|unable to find library -l(?P<library2>[\w+.-]+)|library not found for -l(?P<library3>[\w+.-]+)|(?P<reloc>relocation (?:R_\w+ )?.{0,60}(?:out of range|truncated|can not be used)|relocation truncated to fit))"
)
_CMAKE = re.compile(
    r"^CMake Error(?: at (?P<file>[^:]{1,300}):\d+)?(?: in [^:]{1,200}:\d+)? ?(?:\((?P<command>\w+)\))?:\s*(?P<message>.*)$"
)
_NO_RULE = re.compile(
    r"(?:ninja: error: |No rule to make target )[`']?(?P<target>[^'`,]+)['`]?.{0,200}(?:missing and no known rule|needed by|\.\s+Stop|Stop)",
    re.I,
)
_KILLED = re.compile(
    r"fatal error: Killed signal|(?:cc1plus|ld|collect2|clang\+*|nvcc|rustc|cicc|ptxas).{0,60}(?:\[Killed\]|signal 9|\(Killed\)|SIGKILL)|Killed\s.{0,60}(?:cc1plus|clang|ninja)|virtual memory exhausted",
    re.I,
)
_PASS = re.compile(
    r"Pipeline failed while executing \[`(?P<name>[\w:-]+)`|Running pass ['\"`](?P<running>[^'\"`]+)['\"`] on (?:function|module|basic)|pass `?'?(?P<other>[\w-]+)'?`? failed|^\d+\.\s+(?:MLIR Parser|(?P<stage>Code generation|Optimizer|Per-module optimization passes|Per-function optimization|<eof> parser))"
)
_OPAQUE = re.compile(
    r"PassManager::run failed|Failures have been detected while processing an MLIR pass|pass(?:es)? failed\b|failed to (?:run|apply|execute) (?:the )?pass|pass pipeline|pipeline failed while|failed to translate (?:module )?to LLVM IR|failed to legalize operations?$|Internal (?:Triton )?PTX codegen error|Failed to compile (?:the )?(?:kernel|Triton)|Triton compilation failed|compilation (?:failed|aborted)$",
    re.I,
)
_BUILD_WRAPPER = re.compile(
    r"^(?:ninja: build stopped|ninja: error: .{0,200}subcommand failed|make(?:\[\d+\])?: \*\*\*|gmake(?:\[\d+\])?: \*\*\*|FAILED: |collect2: error: ld returned|clang(?:\+\+)?(?:-\d+)?: error: (?:linker|unable to execute) command failed|\d+ errors? (?:generated|detected)|compilation terminated|error: command '.{1,200}' failed|error: subprocess-exited|-- Configuring incomplete|fatal   : Ptx assembly aborted)|returned non-zero exit status|Ptx assembly aborted|linker command failed|too many errors emitted"
)
_SANITIZER = re.compile(
    r"(?:ERROR|WARNING|SUMMARY): (?P<tool>\w+Sanitizer): (?P<kind>[\w-]+)(?: (?P<file>\S+?:\d+\S*) in (?P<function>[\w:~]+))?"
)
_RUNTIME_CHECK = re.compile(r"^(?P<file>\S{1,200}?):\d+:\d+: runtime error: (?P<message>.+)$")
_LINT = re.compile(r"^(?P<file>[\w./-]+\.\w+):\d+:(?:\d+:)? (?P<code>[A-Z]{1,4}\d{2,5})\b[: ]")


def diagnostic(line: str) -> Found | None:
    """What a compiler, an assembler, a linker or a build tool says in `line`."""
    if _KILLED.search(line):
        return Found("killed", Rank.FAULT, INFRA, ("compiler killed",), line)
    if found := _RESOURCES.search(line):
        return _code("resources", line, found["what"].lower())
    for read in (_assertion, _sanitizer, _llvm, _tool, _link, _cmake):
        if told := read(line):
            return told
    found = _DIAGNOSTIC.search(line) or _NVCC_STYLE.search(line)
    if found and not _BUILD_WRAPPER.search(line):
        return _placed(found, line)
    if found := _LINT.match(line):
        return _code("lint", line, found["code"], base(found["file"]))
    return None


def wrapper(line: str) -> Found | None:
    """What only says that something before it failed: a build tool's last words, a pass manager's."""
    if _BUILD_WRAPPER.search(line):
        return Found("wrapper", Rank.WRAPPER, CODE, ("build stopped",), line, by_test=True)
    if _OPAQUE.search(line):
        return Found("opaque", Rank.OPAQUE, CODE, ("opaque pass failure",), line, hard=True, by_test=True)
    return None


def pass_of(line: str) -> str:
    """The pass that `line` says was running, "" if none."""
    found = _PASS.search(line)
    return next((value for value in (found.groups() if found else ()) if value), "")


def _code(kind: str, line: str, *key: str, cls: str = CODE) -> Found:
    return Found(kind, Rank.FAULT, cls, key, line, hard=cls == CODE)


def _placed(found: re.Match[str], line: str) -> Found | None:
    told = found.groupdict()
    message, file = told["message"].strip(), base(told["file"] or "")
    if check := _CHECK.match(message):
        return Found("filecheck", Rank.FAULT, CODE, (file, check["what"]), line, hard=True)
    if header := _HEADER.search(message):
        return _code("header", line, base(header["header"] or header["other"]))
    if undefined := _undefined(message, line):
        return undefined
    if _OPAQUE.search(message):
        return None
    if operation := _OPERATION.match(message):
        return _code("op", line, operation["op"], mask(operation["message"]))
    masked = mask(message)
    if _MODULE.search(file):
        return _code("compile", line, file, masked)
    # a kernel's own file says where it was met, not what failed, unless the message is too short to tell
    kind = "compile" if file or told.get("loc") else "told"
    return _code(kind, line, masked, file if words(masked) < 3 else "")


def _undefined(text: str, line: str) -> Found | None:
    found = _UNDEFINED.search(text)
    return _code("undefined", line, mask(found["symbol"].split("(")[0])) if found else None


def _llvm(line: str) -> Found | None:
    found = _LLVM_ERROR.search(line)
    if not found:
        return None
    message = found["message"]
    if select := _SELECT.match(message):
        return _code("select", line, select["intrinsic"] or f"{select['types']} {select['node']}")
    rank = Rank.FAULT + 1  # the diagnostic before it names the operation
    return Found("llvm", rank, CODE, (mask(message),), line, hard=True)


def _assertion(line: str) -> Found | None:
    for pattern in _ASSERTS:
        found = pattern.search(line)
        if not found:
            continue
        told = found.groupdict()
        where = (told.get("where") or "") + (told.get("other") or "")
        file = re.search(r"([\w.+-]+\.\w+)\"?:?\d*", where)
        name = file[1] if file else ""
        function = told.get("function") or _function(where)
        key = (mask(told["cond"]), "" if _SUPPORT_FILE.match(name) else name, function)
        return _code("assert", line, *key)
    return None


def _function(signature: str) -> str:
    """The name of the function whose signature stands before an assertion, without scopes, types and parameters."""
    head = re.sub(r"^\S*?:\d+:\s*", "", signature.rpartition(".cpp:")[2] if ".cpp:" in signature else signature)
    found = re.search(r"([~\w]+)\s*(?:<[^()]{0,200}>)?\(", head)
    return found[1] if found else ""


def _sanitizer(line: str) -> Found | None:
    if found := _SANITIZER.search(line):
        return _code("sanitizer", line, found["tool"], found["kind"])
    if found := _RUNTIME_CHECK.match(line):
        return _code("sanitizer", line, base(found["file"]), mask(found["message"]))
    return None


def _tool(line: str) -> Found | None:
    found = _PTXAS.search(line)
    if not found or _BUILD_WRAPPER.search(found["message"]):
        return None
    message = found["message"]
    if header := _HEADER.search(message):
        return _code("header", line, base(header["header"] or header["other"]))
    if told := _undefined(message, line):
        return told
    return _code("tool", line, found["tool"], mask(_MANGLED.sub("<symbol>", message)))


def _link(line: str) -> Found | None:
    if told := _undefined(line, line):
        return told
    found = _LINK.search(line)
    if not found:
        return None
    library = found["library"] or found["library2"] or found["library3"]
    if library:
        return Found("link", Rank.FAULT, UNKNOWN, ("library", library), line)
    if found["symbol"]:
        return _code("link", line, "duplicate", mask(found["symbol"].split("(")[0]))
    return _code("link", line, mask(found["reloc"]))


def _cmake(line: str) -> Found | None:
    if found := _CMAKE.match(line):
        message = mask(found["message"])
        return Found(
            "cmake",
            Rank.FAULT + (0 if words(message) > 2 else 5),
            CODE,
            (base(found["file"] or ""), found["command"] or "", message),
            line,
        )
    if found := re.search(
        r"Could NOT find (?P<what>\w+)|Could not find a (?:package configuration file|configuration file for package).{0,40}?\"(?P<other>\w+)\"",
        line,
    ):
        return Found("cmake", Rank.FAULT, HARNESS, ("package", found["what"] or found["other"]), line)
    if found := _NO_RULE.search(line):
        return _code("norule", line, base(found["target"]))
    return None
