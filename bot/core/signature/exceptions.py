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
_WHAT = re.compile(r"^\s*(?:what\(\):\s+|C\+\+ exception with description \")(?P<message>.+?)(?:\" thrown in .+)?$")
# memory that was asked for and not given: it is not said whether too much was asked for
_NOT_GIVEN = re.compile(
    r"^(?:(?:std::)?bad_alloc|bad allocation)\W*$|^Unable to allocate [\d.]+ \wi?B for an array"
    r"|^(?:Java heap space|GC overhead limit exceeded|Metaspace)\b",
    re.I,
)
_SETTINGS_ALONE = re.compile(r"^[\w ]{0,60}: (?P<name>Invalid\w*(?:Config|Configuration|Settings|Manifest)\w*Error):?$")
_FATAL = re.compile(r"^Fatal Python error: (?P<where>\w+: )?(?P<message>.+)$")
_PANIC = re.compile(r"panicked at (?:'(?P<message>.+?)', )?(?P<file>[\w./-]+):\d+")
# exceptions of the tools that run tests, by the module that they are of
_OF_TOOLS = re.compile(
    r"(?<![\w.])(?:_?pytest|pluggy|xdist|execnet|coverage|hypothesis|lit|tox|nox|unittest\.loader|pytest_\w+)\."
    r"(?:\w+\.)*(?!Failed\b|Flaky|Deadline|Multiple|PytestUn(?:raisable|handledThread))[A-Z]\w+\s?: "
)
# of one test run twice with two outcomes, or too slowly
_UNRELIABLE = re.compile(r"\bhypothesis\.errors\.(?:Flaky|Deadline)|\bunreliable (?:results|test timings)")
# that a process has ended, and not why
_ENDED = re.compile(
    r"^\W*(?:sub)?(?:process|worker|child|rank|command|job|task|program|script|server|engine)\w*\b.{0,200}?\b(?:exit\w*"
    r"|terminat\w+|fail\w*|end\w*|died|return\w*|finish\w*)\b(?: with)?(?: an?)?(?: non-?zero)?"
    r"(?: (?:error|exit|return))*(?: (?:code|status))+:? ?-?\d+(?: before \w+ ready)?\W*$"
    r"|^\W*(?:[\w-]+ ){0,2}(?:server|process|worker|child|subprocess|engine|task|job)(?:es|s)? (?:exited|died"
    r"|stopped|terminated"
    r"|ended|crashed|quit)(?: unexpectedly| prematurely| abnormally| early)?(?: before \w+ \w+)?\W*$"
    r"|^\W*[\w/.-]*test[\w/.-]* failed!?\W*$|^Cmd\('\w+'\) failed due to: exit code",
    re.I,
)
_BUILDS = re.compile(
    r"\b(?:cmake|ninja|make|nvcc|hipcc|gcc|g\+\+|clang|c\+\+|cc|setup\.py|wheel|cargo|bazel|ptxas|llc)\b"
)
_ENDS = frozenset(
    {
        "ActorDiedError", "BrokenProcessPool", "CalledProcessError", "ChildFailedError", "EngineDeadError",
        "ProcessExitedException", "RayTaskError", "SubprocessError", "SystemExit", "WorkerCrashedError",
    }
)  # fmt: skip
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
    r"\blook at the (?:errors?|logs?)\b|\bsee (?:the )?(?:root cause|error|stack ?trace|traceback|logs?|output"
    r"|above)\b|\bcheck (?:the )?(?:root cause|stack ?trace|traceback|logs?)\b|run with \w+_DEBUG"
    r"|returned a non-zero (?:exit )?(?:code|status)|communicator was aborted",
    re.I,
)
_LISTED = re.compile(r"\{[^{}]*\}")  # which of several it was
_OF_SETTINGS = re.compile(
    r"^(?:Invalid|Bad)?\w*(?:Config|Configuration|Settings|Usage|Manifest)(?:Parse|File)?(?:Error|Exception)$"
)
_ABSENT = re.compile(r"Missing\w*Dependenc|DependencyNotFound|DistributionNotFound|VersionConflict|PackageNotFound")
_MODULE = re.compile(r"(?:No module named|Could not import module) ['\"]?(?P<module>[\w.]+)")
_IMPORT = re.compile(
    r"cannot import name '?(?P<name>\w+)'?(?: from (?:partially initialized module )?'?(?P<module>[\w.]+))?"
)
_NATIVE = re.compile(r"\._[A-Z]\w*(?:\.|$)|\.lib\w+$|_ext(?:ension)?s?$|\._\w*(?:cpp|cuda|native)\w*$")
# packages that tests and builds stand on: what one of them lacks is a matter of its version
_PACKAGES = (
    r"(?:_?pytest|conftest|unittest|hypothesis|expecttest|xdist|pluggy|coverage|tests?|numpy|np|pandas|scipy|matplotlib"
    r"|sklearn|yaml"
    r"|jinja2|markupsafe|packaging|pip|distutils|setuptools|pkg_resources|wheel|collections|typing_extensions"
    r"|transformers|tokenizers|huggingface_hub|datasets|accelerate|requests|urllib3|werkzeug|flask|click"
    r"|pydantic\w*|google"
    r"|cryptography|OpenSSL|docutils|sphinx|pybind11|ml_dtypes|einops|tabulate|filecheck|lit)"
)
_FOREIGN = re.compile(
    rf"module '(?:test\w*|{_PACKAGES})\b|^(?:module|type object) .{1, 80} has no attribute '(?:test_\w+|Test[A-Z]\w*)"
    rf"|attempted relative import with no known"
    r"|\bfixture\(\) (?:got|takes|missing)|Plugin (?:name )?already registered"
)
_FOREIGN_MODULE = re.compile(rf"^{_PACKAGES}(?:\.|$)")
_REFUSED = AnyOf(
    r"\b(?:is|are) not (?:installed|available on this|found in (?:PATH|the environment))",
    r"Please install ",
    r"pip install ",
    r"not (?:compiled|built|linked) with (?:\w+ (?:enabled|support)|support)",
    r"\b\w+ was not found\. |was requested, but \w+",
    r"binary incompatibility",
    r"numpy\S* failed to import",
    r"Python integer -?\d+ out of bounds",
    r"\b(?:tests?|suite|benchmark|machine|system|host)\b (?:needs?|requires?|has|must have) (?:at least |only )?"
    r"(?:\d+|an?|no|two|four|eight|more) (?:\w+ ){0,2}(?:gpus?|devices|cores|cpus|machines)\b",
    r"^\W*(?:CUDA|ROCm|HIP|XPU|MPS|NPU|GPUs?|MPI|OpenCL|Vulkan|Metal|Docker)(?: (?:devices?|drivers?|runtime"
    r"|toolkit|GPUs?"
    r"|support|backend))? (?:must be|needs? to be|has to be|is not|isn't|are not) (?:available|installed|present)\b",
    r"^\W*Neither \w+ nor \w+ is available",
    r"must run at .{0,30}Hz",
    r"[\w-]+ ?(?:[<>=!~]=|<|>) ?\d+\.\d[\d.,<>=!~ ]* (?:is|are) (?:required|needed)",
    r"(?:was|were) not found and (?:is|are) required",
    r"No package metadata was found",
    r"download=True",
    r"(?:compiled|built) without \w+ support|^\W*numpy is not available",
    r"\btests? (?:must|should|needs? to) be (?:run|launched|started) (?:with|under|by|from)\b",
    r"\bmemory (?:used|held|taken|allocated) by (?:another process(?! \w)|other processes)",
    r"please (?:use|run|call) .{0,80}\bdownload",
    r"Can't find model '",
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
    masked = mask(message)
    if _ELSEWHERE.search(message):
        return Found("elsewhere", Rank.WRAPPER, UNKNOWN, (name, _LISTED.sub("", masked)), line)
    if _ENDED.match(message) or (name in _ENDS and not _BUILDS.search(message)):
        return Found("ended", Rank.WRAPPER, UNKNOWN, (name, mask(message)), line, by_test=True)
    if (name == "MemoryError" and not masked) or _NOT_GIVEN.match(message):
        return Found("host memory", Rank.EXCEPTION, UNKNOWN, (masked or name,), line, by_test=True)
    if name in ("DistError", "DistNetworkError", "DistStoreError"):
        return Found("exception", Rank.EXCEPTION, UNKNOWN, (name, masked), line)
    if _UNRELIABLE.search(line):
        return Found("unreliable", Rank.EXCEPTION, UNKNOWN, (name,), line, by_test=True)
    if _OF_TOOLS.search(line):
        rank = Rank.WRAPPER if message.startswith("usage: ") else Rank.EXCEPTION
        return Found("test tool", rank, HARNESS, (name, masked), line)
    rank = Rank.WRAPPER if is_wrapper(name, message) else Rank.EXCEPTION
    if module := _MODULE.search(message):
        cls = CODE if _NATIVE.search(module["module"]) else HARNESS
        return Found("no module", rank, cls, (module["module"],), line)
    if imported := _IMPORT.search(message):
        cls = HARNESS if _FOREIGN_MODULE.search(imported["module"] or "") else CODE
        return Found("import", rank, cls, (imported["name"], imported["module"] or ""), line)
    if _OF_SETTINGS.search(name) or _ABSENT.search(name):
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


def refused(line: str) -> bool:
    """Whether an exception says that something that the tests need is not installed, or is of another version."""
    return _REFUSED.search(line, line.lower()) is not None


def spoken(line: str, lowered: str) -> Found | None:
    """A failed assertion, a C++ `what()`, a panic: exceptions that are told in another form."""
    if found := _ASSERT.match(line):
        if told := numeric(found["what"], lowered):
            return told
        return Found("assert", Rank.EXCEPTION, CODE, ("assert", mask(found["what"])), line, hard=True, by_test=True)
    if _NOT_RAISED.match(line):
        return Found("assert", Rank.EXCEPTION, CODE, ("assert", mask(line)), line, hard=True, by_test=True)
    if found := _WHAT.match(line):
        if _NOT_GIVEN.match(found["message"]):
            return Found("host memory", Rank.EXCEPTION, UNKNOWN, (mask(found["message"]),), line, by_test=True)
        return Found("exception", Rank.EXCEPTION, CODE, (mask(found["message"]),), line, hard=True)
    if found := _SETTINGS_ALONE.match(line):
        return Found("settings", Rank.EXCEPTION, HARNESS, (found["name"],), line)
    if found := _FATAL.match(line):
        starts = (found["where"] or "").startswith(("init", "config", "preconfig"))
        key = (mask(found["message"]),)
        return Found("fatal", Rank.CRASH, HARNESS if starts else CODE, key, line, hard=not starts)
    if found := _PANIC.search(line):
        return Found(
            "panic", Rank.EXCEPTION, CODE, (base(found["file"]), mask(found["message"] or "")), line, hard=True
        )
    return None
