"""Python's exceptions (and those of other languages that are printed alike): the innermost one a line tells."""

from __future__ import annotations

import re

from bot.core.signature.clean import base
from bot.core.signature.mask import mask, words
from bot.core.signature.model import CODE, HARNESS, UNKNOWN, Found, Rank
from bot.core.signature.patterns import AnyOf

_NAME = (
    r"(?:[A-Za-z_][\w$]*\.)*_?[A-Z]\w*(?:Error|Exception|Failure|Fault|Exit|Expired|Interrupt|Unavailable|Timeout"
    r"|Failed|NotFound"
    r"|Mismatch|Impossible)\d?"
)
_ANYWHERE = re.compile(rf"(?<![\w.$<])(?P<name>{_NAME})(?:\s?:\s+|\((?=['\"fr]))(?P<message>.*)$")
_EMPTY = re.compile(rf"^(?P<name>{_NAME}):(?P<message>)$")
_START = re.compile(r"^(?P<name>(?:[A-Za-z_]\w*\.)+[A-Z]\w+|[A-Z][a-z]+[A-Z]\w+): (?P<message>.*)$")
_BARE = re.compile(rf"^(?:[\w.]+ - )?(?P<name>{_NAME})(?:\(\))?$")
_ASSERT = re.compile(r"^(?:AssertionError: )?assert (?P<what>.+)$")
_NOT_RAISED = re.compile(r"^(?:Failed: )?DID NOT (?:RAISE|WARN)\b")
_WHAT = re.compile(r"^\s*what\(\):\s+(?P<message>.+)$")
_PANIC = re.compile(r"panicked at (?:'(?P<message>.+?)', )?(?P<file>[\w./-]+):\d+")
_WRAPPERS = frozenset(
    {
        "BackendCompilerFailed", "BrokenProcessPool", "CalledProcessError", "ChildFailedError", "CompilationError",
        "ConftestImportFailure", "EngineDeadError", "ExceptionGroup", "InductorError", "InterpreterError",
        "InvocationError", "LoweringException", "MLIRError", "NoValidChoicesError", "PTXASError",
        "ProcessExitedException", "ProcessRaisedException", "RayTaskError", "RemoteTraceback", "SubprocessError",
        "SystemExit", "TorchRuntimeError",
    }
)  # fmt: skip
# what code tries and does without: no root of what happens while it is handled
CONTROL_FLOW = frozenset(
    {
        "AttributeError", "Empty", "FileNotFoundError", "ImportError", "IndexError", "KeyError", "LookupError",
        "ModuleNotFoundError", "StopIteration",
    }
)  # fmt: skip
_POOR = frozenset(
    {"AssertionError", "IndexError", "KeyError", "NotImplementedError", "RecursionError", "StopIteration"}
)
_SHOWN = re.compile(r"^at \d+:\d+:")
# the cause is told elsewhere
_ELSEWHERE = re.compile(
    r"\bsee (?:the )?(?:root cause|error|stack ?trace|traceback|logs?|output|above)\b|run with \w+_DEBUG"
    r"|returned a non-zero (?:exit )?(?:code|status)",
    re.I,
)
_OF_SETTINGS = re.compile(
    r"^(?:Invalid|Bad)?\w*(?:Config|Configuration|Settings|Usage|Manifest)(?:Parse|File)?(?:Error|Exception)$"
)
_MODULE = re.compile(r"(?:No module named|Could not import module) ['\"]?(?P<module>[\w.]+)")
_IMPORT = re.compile(
    r"cannot import name '?(?P<name>\w+)'?(?: from (?:partially initialized module )?'?(?P<module>[\w.]+))?"
)
_NATIVE = re.compile(r"\._[A-Z]\w*(?:\.|$)|\.lib\w+$|_ext(?:ension)?s?$|\._\w*(?:cpp|cuda|native)\w*$")
_FOREIGN = re.compile(
    r"module '(?:test\w*|numpy|np|pandas|scipy|pytest|matplotlib|sklearn|setuptools|pkg_resources|yaml|jinja2"
    r"|packaging|pip"
    r"|distutils|collections|unittest|hypothesis|expecttest)\b"
)
_REFUSED = AnyOf(
    r"\b(?:is|are) not (?:installed|available on this|found in (?:PATH|the environment))",
    r"Please install ",
    r"pip install ",
    r"not (?:compiled|built|linked) with (?:\w+ (?:enabled|support)|support)",
    r"\b\w+ was not found\. |was requested, but \w+",
    r"binary incompatibility",
    r"numpy\S* failed to import",
    r"Python integer -?\d+ out of bounds",
)
_NUMERIC = AnyOf(
    r"(?:Tensor-likes|Scalars|Arrays?|Tensors?|outputs?|results?|values?|matrices) (?:are|is|do|does|did)(?: not|n't)"
    r"(?: almost)?(?: equal| close| match| agree)",
    r"Mismatched elements",
    r"Not equal to tolerance",
    r"not almost equal",
    r"\b(?:allclose|isclose|assert_close|assert_allclose|assert_almost_equal|assert_array\w*)\b",
    r"(?:max|greatest|mean|largest)(?:imum)? ?_?(?:abs|rel)\w*[ _]?(?:diff|err)",
    r"(?:numeric\w*|output|result|value|accuracy|data|tensor|element)s? (?:mismatch|difference|differ|check failed"
    r"|failed)",
    r"mismatch(?:es|ed)? (?:at|in|found|between|of \d|element)",
    r"exceeds? (?:the )?(?:toleran|threshold)",
    r"(?:relative|absolute|l2|max|mean|rms)[ _]err(?:or)?\b",
    r"accuracy (?:is )?(?:too low|below|fail)",
    r"\bapprox\(",
    r"cosine similarity",
    r"incorrect result",
    r"wrong (?:result|answer|output)",
)


def numeric(line: str, lowered: str) -> Found | None:
    """A comparison of numbers that failed: it has no cause in it, it stands for its test."""
    if not _NUMERIC.search(line, lowered):
        return None
    return Found("numeric", Rank.EXCEPTION, CODE, ("numeric mismatch",), line, hard=True, by_test=True)


def exception(line: str) -> tuple[str, str] | None:
    """(type, message) of the innermost exception in `line`."""
    found = _ANYWHERE.search(line) or _START.match(line)
    if not found:
        bare = _BARE.match(line)
        return (_short(bare["name"]), "") if bare else None
    name, message = found["name"], found["message"]
    for _ in range(4):
        inner = (_ANYWHERE.search(message) or _EMPTY.match(message)) if not message.startswith("No module") else None
        if not inner:
            break
        name, message = inner["name"], inner["message"]
    return _short(name), message.strip().strip("'\")(").strip()


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def is_wrapper(name: str, message: str) -> bool:
    """Whether an exception only carries another, or its message stands below the source that it shows."""
    return (
        _SHOWN.match(message) is not None
        or name in _WRAPPERS
        or (name in ("SystemError",) and "exception set" in message)
    )


def raised(name: str, message: str, line: str, frame: tuple[str, str] | None) -> Found:
    """The exception `name: message`, raised at `frame` (file, function)."""
    if _ELSEWHERE.search(message):
        return Found("elsewhere", Rank.WRAPPER, UNKNOWN, (name, mask(message)), line)
    rank = Rank.WRAPPER if is_wrapper(name, message) else Rank.EXCEPTION
    if module := _MODULE.search(message):
        cls = CODE if _NATIVE.search(module["module"]) else HARNESS
        return Found("no module", rank, cls, (module["module"],), line)
    if imported := _IMPORT.search(message):
        return Found("import", rank, CODE, (imported["name"], imported["module"] or ""), line)
    masked = mask(message)
    if _OF_SETTINGS.search(name):
        return Found("settings", rank, HARNESS, (name, masked), line)
    poor = words(masked) < 2 or name in _POOR
    where = frame or ("", "")
    key = (name, masked, *where) if poor else (masked,)
    cls = HARNESS if _FOREIGN.search(message) or _REFUSED.search(message, message.lower()) else CODE
    hard = cls == CODE and name in (
        "AssertionError",
        "TypeError",
        "AttributeError",
        "NameError",
        "SyntaxError",
        "IndentationError",
    )
    bare = not masked and not frame
    return Found("exception", rank, cls, key, line, hard=hard, by_test=bare)


def spoken(line: str, lowered: str) -> Found | None:
    """A failed assertion, a C++ `what()`, a panic: exceptions that are told in another form."""
    if found := _ASSERT.match(line):
        if told := numeric(found["what"], lowered):
            return told
        return Found("assert", Rank.EXCEPTION, CODE, ("assert", mask(found["what"])), line, hard=True, by_test=True)
    if _NOT_RAISED.match(line):
        return Found("assert", Rank.EXCEPTION, CODE, ("assert", mask(line)), line, hard=True, by_test=True)
    if found := _WHAT.match(line):
        return Found("exception", Rank.EXCEPTION, CODE, (mask(found["message"]),), line, hard=True)
    if found := _PANIC.search(line):
        return Found(
            "panic", Rank.EXCEPTION, CODE, (base(found["file"]), mask(found["message"] or "")), line, hard=True
        )
    return None
