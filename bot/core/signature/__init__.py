"""The normalised error: the same cause gives the same signature whatever the test, address, line or time."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bot.core.signature.building import building, wrapper
from bot.core.signature.clean import Line, base, clean, function_of, named_test, of_setup
from bot.core.signature.clouds import stock
from bot.core.signature.compiler import diagnostic, pass_of
from bot.core.signature.device import device_fault
from bot.core.signature.dump import frame_of
from bot.core.signature.exceptions import CONTROL_FLOW, exception, numeric, raised, refused, spoken
from bot.core.signature.frameworks import framework
from bot.core.signature.mask import mask, words
from bot.core.signature.model import CODE, HARNESS, INFRA, UNKNOWN, Found, Rank, Signature
from bot.core.signature.patterns import AnyOf
from bot.core.signature.services import NETWORK_KINDS, service
from bot.core.signature.speakers import speaker
from bot.core.signature.trouble import claim, tells, trouble
from bot.core.signature.wording import computed, guess

__all__ = ["Signature", "signature"]

_FEW_LINES = 12  # of more lines than these most are not about the failure
_WARNED = 35  # a warning stands behind an error of the same kind
_HANDLING = "During handling of the above exception"
_SPEAKS = re.compile(
    r"\b(?:error|fatal|fail(?:ed|ure)?|cannot|can't|could not|couldn't|unable|invalid|unexpected|unsupported|unknown"
    r"|missing|not found|denied|refused|abort(?:ed)?|panic|crash(?:ed)?)\b"
)
_OPEN = re.compile(r"No such file or directory:$")
_OPEN_ERROR = re.compile(r":\d+: (?:fatal )?error:$")
_PATTERN = re.compile(r"^(?:\S+:\d+:\d+: .*|//|#|;)\s*")
# a compiler's input, printed
_PRINTED = re.compile(r"^(?:%[\w#:]+(?:, %[\w#:]+)* = |#\w+ = #|module attributes|\^bb\d)")
_SHOWN = re.compile(r": at \d+:\d+:")
_CARET = re.compile(r"^[\^~]+$")
_NOTE = re.compile(r"^(?:note|hint|help|info|remark): ", re.I)
# the words of a tool that runs tests, which no compiler uses
_OF_TESTING = re.compile(
    r"\bpytest\.\w|\bpytest-(?!timeout)\w|\brequires pytest|\bconftest\b|\bfixtures?\b|\bparametri[sz]e|\"\w+\" mark\b"
)
_EXIT = AnyOf(
    r"(?:Process completed with|exited with|returned|Got|failed with)(?: non-zero)? ?(?:an )?(?:exit )?(?:code"
    r"|status)(?!:? [45]\d\d\b)",
    r"exit (?:code|status)",
    r"Post job cleanup",
    r"^=+ .{0,300}(?:passed|failed|error).{0,100} =+$",
    r"BUILD_FAILURE",
    r"^Traceback",
    r"most recent call last",
    r"^\d+ failed",
    r"short test summary",
    r"The above exception was",
)
# what a run says before and after whatever happens
_QUIET = re.compile(
    r"^(?:##\[(?:end)?group\]|##\[section\]|Traceback |(?:linux|darwin|win32) -- Python |platform \w+ -- "
    r"|Set up job|Post job|Downloading |Cleaning up|rootdir: |plugins: "
    r"|collect(?:ed|ing) |=+ .* =+$|\d+ (?:failed|passed)\b)"
)
_COMPLETED = re.compile(r"^(?:Error: )?Process completed with exit code \d")
_TRACED = re.compile(r"^\+{1,4} (?:sudo |timeout \S+ |time )*(?P<command>[\w./-]+)(?: |$)")
_PASSED = re.compile(r"\bPASSED\b(?: +\[ *\d+%\])?$|^PASS(?:ED)?: ")
# commands that ask the machine or a service, nothing of the code under test
_OUTSIDE = frozenset(
    {
        "amd-smi", "apt", "apt-get", "aws", "az", "curl", "dnf", "docker", "gcloud", "modprobe", "mount", "nvidia-smi",
        "podman", "rocm-smi", "rsync", "scp", "ssh", "systemctl", "wget", "yum",
    }
)  # fmt: skip
_OF_RUNNERS = frozenset({"runner lost", "runner stopped", "runner error"})
# kinds told by words that a program may use as well
_OF_ANY_WORDS = _OF_RUNNERS | {
    "machinery",
    "trouble",
    "checksum",
    "container start",
    "host memory",
    "connection cut",
    "file held",
}
_FETCHED = re.compile(r"://|download|archive|package|wheel|layer|zip|tar\b|gz\b|whl\b|index|file", re.I)
# what is said of a model by its name: of one that is not there as of one that could not be asked for
_NOT_LOADED = re.compile(
    r"\bInvalid repository ID\b|\bnot a valid model identifier\b|\bCan't load (?:the )?(?:tokenizer|config\w*|model"
    r"|feature|image processor)\b"
)
_TEMPORARY = re.compile(r"[/\\](?:te?mp|tmp\w+)[/\\]|\btempdir\b", re.I)
_OF_THE_RUNNER = re.compile(
    r"[/\\](?:_work|_actions|_tool|_temp|workspace|jenkins|actions-runner|hostedtoolcache|agent)[/\\]", re.I
)
_TEST_FRAME = re.compile(r"^test_\w+$")


@dataclass
class _Reading:
    """What has been met on the way through a text."""

    found: list[Found] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    frame: tuple[str, str] | None = None
    tool: bool = False  # the last frame is the test tool's own
    crashed: str = ""  # where an interpreter was when it died
    dying: bool = False
    test_frame: str = ""
    running: str = ""  # a compiler's pass
    asked: str = ""  # the last command that a shell traced
    passing: bool = False  # tests were passing to the end
    native: str = ""  # a native stack's first own frame
    harness: bool = False
    first: str = ""  # the first line that says anything
    lines: list[str] = field(default_factory=list)  # the messages
    shown: bool = False  # an exception showed the source it was raised for: its message follows the caret


def signature(text: str, test: str | None = None) -> Signature:
    """The signature of a failure's text; `test` is the node id, used where the text says nothing of the cause."""
    reading = _read(clean(text))
    where = function_of(test or next(iter(reading.tests), None)) or reading.test_frame
    best = min(reading.found, key=lambda found: (found.rank, found.kind == "spoken"), default=None)
    if best and (best.kind == "no package" or _of_the_hub(best, reading)):
        best = _unreached(reading) or best
    if best and best.kind == "killed":
        best = _stopped_for(best, reading)
    if best is None or (_ended(best) and not where and reading.first != mask(best.title)):
        said = where or reading.first
        return _signature("nothing", (said or "no text",), _guessed(reading), test or reading.first or "no text")
    key = (mask(best.title),) if best.kind == "exit" else best.key
    if best.kind == "test hung":
        key = (where,)
    elif best.by_test and where:
        key = (where,) if best.kind in ("numeric", "opaque") else (where, *best.key)
    elif best.kind == "opaque" and reading.running:
        key = (reading.running,)
    elif best.rank == Rank.TIMEOUT and reading.asked:
        key = (base(reading.asked), *best.key)
    elif best.rank == Rank.CRASH and best.cls == CODE:
        key = (*best.key, _crashed_at(reading) or where)
    elif best.kind == "sanitizer" and reading.native:
        key = (*best.key, reading.native)
    return _signature(best.kind, key, _class(best, reading), best.title)


def _ended(found: Found) -> bool:
    """Whether it only says that a process or a step has ended."""
    return found.kind == "exit" or _COMPLETED.match(found.title) is not None


def _stopped_for(killed: Found, reading: _Reading) -> Found:
    """What ran out of time before it was stopped, `killed` itself where nothing did."""
    before = reading.found[: reading.found.index(killed)]
    return next((found for found in before if found.rank == Rank.TIMEOUT), killed)


def _of_the_hub(best: Found, reading: _Reading) -> bool:
    """Whether it comes of a model that was not loaded."""
    told = best.rank == Rank.EXCEPTION and not best.hard
    return told and any(_NOT_LOADED.search(found.title) for found in reading.found)


def _unreached(reading: _Reading) -> Found | None:
    """What a warning told of the network before a package was not found: the index could not be asked."""
    return next((found for found in reading.found if found.cls == INFRA and found.kind in NETWORK_KINDS), None)


def _crashed_at(reading: _Reading) -> str:
    if reading.native or reading.running:
        return reading.native or reading.running
    return reading.crashed or (":".join(reading.frame) if reading.frame else "")


def _guessed(reading: _Reading) -> str:
    """The class by words alone, where nothing that has been met says more than that something is wrong."""
    others = [found for found in reading.found if not _ended(found) and found.kind not in ("spoken", "wrapper")]
    if others:
        return CODE if all(found.kind == "test failed" for found in others) else UNKNOWN
    said = [found.title for found in reading.found if found.kind == "spoken"]
    if any(_OF_TESTING.search(line) for line in said):
        return HARNESS
    few = [line for line in reading.lines if not _EXIT.search(line, line.lower())]
    return guess(said or (few if len(few) <= _FEW_LINES else []))


def _class(best: Found, reading: _Reading) -> str:
    """The class of what was found; never infra where code alone can have done something else in the text."""
    if best.cls == INFRA and any(found.hard and found.title != best.title for found in reading.found):
        return UNKNOWN
    if best.cls == INFRA and best.kind in _OF_ANY_WORDS and computed(best.title):
        return UNKNOWN
    if best.rank == Rank.TIMEOUT and base(reading.asked) in _OUTSIDE:
        return INFRA
    if best.kind == "job time limit" and reading.passing:
        return HARNESS  # the limit is too short for what it has to hold
    if reading.harness and best.kind in ("exception", "assert"):
        return HARNESS
    return _guessed(reading) if best.kind in ("exit", "spoken") else best.cls


def _read(lines: Sequence[Line]) -> _Reading:
    reading = _Reading()
    for index, line in enumerate(lines):
        reading.harness = reading.harness or line.harness
        if line.frame:
            _at(line.frame, line.tool, reading)
        elif line.text.startswith(_HANDLING) and not line.source:
            reading.found = [
                found for found in reading.found if found.kind != "exception" or found.key[0] not in CONTROL_FLOW
            ]
        elif traced := None if line.source else _TRACED.match(line.text):
            reading.asked = traced["command"]
        elif not line.source:
            after = next((line.text for line in lines[index + 1 : index + 3] if not line.source), "")
            _hear(line, (lines[index - 1].text if index else "", after), reading)
    return reading


def _at(frame: tuple[str, str], tool: bool, reading: _Reading) -> None:
    """Where an interpreter was."""
    if frame[1] == "<module>" and "." not in frame[0]:
        return  # a command's launcher, in whatever ran
    reading.tool = tool
    if reading.dying:
        reading.crashed, reading.dying = ":".join(frame), False
    if reading.frame is None or not _foreign_frame(frame):
        reading.frame = frame
    if _TEST_FRAME.match(frame[1]):
        reading.test_frame = f"{frame[0]}::{frame[1]}"


def _hear(line: Line, around: tuple[str, str], reading: _Reading) -> None:
    """A message, with the lines before and after it."""
    text, lowered = line.text, line.text.lower()
    reading.dying = reading.dying or (not reading.crashed and "most recent call first" in text)
    reading.running = reading.running or pass_of(text, lowered)
    reading.native = reading.native or frame_of(text)
    reading.passing = reading.passing or bool(_PASSED.search(text))
    if told := named_test(text):
        reading.tests.append(told[0])
        text = told[1]
    quiet = line.warning or _QUIET.search(text) is not None
    if not quiet:
        reading.first = reading.first or _telling(text)
        reading.lines.append(text)
    if not text or _NOTE.match(text) or _PRINTED.match(text):
        return
    found = _line(text, around, reading)
    if found and _COMPLETED.match(text):
        found = replace(found, rank=Rank.WRAPPER + 5)  # how a step ended tells less than what it said
    reading.shown = reading.shown or _SHOWN.search(text) is not None
    if reading.shown and _CARET.match(around[0]) and (found is None or found.rank >= Rank.SPOKEN):
        found = Found("exception", Rank.EXCEPTION, CODE, (mask(text),), text)
    if found and not (quiet and found.kind == "exit"):
        reading.found.append(replace(found, rank=found.rank + _WARNED) if line.warning else found)


def _telling(text: str) -> str:
    masked = mask(text)
    return masked if words(masked) > 1 else ""


def _foreign_frame(frame: tuple[str, str]) -> bool:
    return frame[0] in ("threading.py", "runpy.py", "importlib", "<string>", "python.py", "runner.py")


def _line(text: str, around: tuple[str, str], reading: _Reading) -> Found | None:
    """What one line says, the most telling reading first."""
    if _OPEN.search(text) or _OPEN_ERROR.search(text):
        text = f"{text} {around[1]}"
    error = exception(text)
    lowered = text.lower()
    if found := device_fault(text):
        return found
    name = error[0] if error else None
    outside = _outside(text, name)
    if outside and outside.rank == Rank.PHYSICAL:
        return outside
    if found := wrapper(text, lowered):
        return found
    machinery = None if error and claim(text, name) else speaker(text)
    found = _with_around(diagnostic(text, lowered), *around)
    if found and not (found.kind == "told" and (outside or machinery or trouble(text, exception=name))):
        return found
    if found := numeric(text, lowered):
        return found
    if error and outside and outside.rank < Rank.CRASH:
        started = outside.kind == "no such file" and reading.frame == ("subprocess.py", "_execute_child")
        return replace(outside, rank=Rank.EXCEPTION, cls=HARNESS if started else outside.cls)
    if found := _machinery(text, name, outside, machinery):
        return found
    claims = name in (None, "AssertionError")  # what other exceptions claim is their message
    told = None if error and refused(text) else framework(text, lowered, claims=claims) or spoken(text, lowered)
    if found := told:
        return found
    if found := trouble(text, exception=name):
        return replace(found, rank=Rank.EXCEPTION) if error else found
    return _raised(*error, text, reading) if error else _last(text, lowered)


def _raised(name: str, message: str, text: str, reading: _Reading) -> Found:
    """An exception, which is the harness's where the tool that runs the tests or what prepares them raised it."""
    found = raised(name, message, text, reading.frame)
    if found.kind in ("import", "no module"):
        broken = reading.tool
    else:
        broken = reading.tool or (of_setup(reading.frame) and name != "AssertionError")
    return replace(found, cls=HARNESS, hard=False) if broken and found.cls == CODE else found


def _machinery(text: str, exception: str | None, outside: Found | None, machinery: Found | None) -> Found | None:
    """What stands around the code says, by the tables (`outside`), or by who speaks where they don't decide."""
    if outside and outside.rank == Rank.TIMEOUT and (machine := trouble(text, exception=exception)):
        if outside.kind == "collective timeout" and machine.key[0] == "rpc":
            return outside  # who waited for the others says it in a service's words
        return replace(machine, rank=Rank.TIMEOUT)  # what was waited for was a machine
    crashed = outside is not None and outside.rank == Rank.CRASH  # by a word that anything may be called with
    if machinery and machinery.kind == "shell" and (outside is None or outside.cls == CODE):
        return machinery
    if outside and outside.kind == "job time limit":
        return outside  # whoever says so
    ended = machinery is not None and machinery.kind == "exit" and outside is not None and outside.cls != INFRA
    if machinery is None or (outside and outside.cls != UNKNOWN and not crashed and not ended):
        return outside
    # words that others use as well make the key where they tell enough: a machine says one thing in many ways
    plain = trouble(text, exception=exception) if machinery.cls == INFRA else None
    return plain if plain and tells(plain) else machinery


def _outside(text: str, exception: str | None) -> Found | None:
    """What the line says of what stands around the code; nothing where the code only speaks of it."""
    found = service(text, exception=exception is not None)
    if found is None or found.cls not in (INFRA, UNKNOWN):
        return found
    if found.kind in NETWORK_KINDS:
        found = stock(text) or found  # the answer tells more than how it came
    if found.kind == "file held" and (_TEMPORARY.search(text) or (exception and not _OF_THE_RUNNER.search(text))):
        return None  # the program holds it itself
    own = exception == "RuntimeError" and (
        found.kind in _OF_RUNNERS  # a node of a graph, an instance of a class
        or (found.kind == "checksum" and not _FETCHED.search(text))
    )
    return None if own or claim(text, exception) else found


def _last(text: str, lowered: str) -> Found | None:
    """A line that says that something ended badly, and no more."""
    if _EXIT.search(text, lowered):
        return Found("exit", Rank.WRAPPER + 5, UNKNOWN, ("exit",), text, by_test=True)
    if _SPEAKS.search(lowered):
        masked = mask(text)
        return Found("spoken", Rank.SPOKEN, UNKNOWN, (masked,), text) if words(masked) > 1 else None
    return None


def _with_around(found: Found | None, before: str, after: str) -> Found | None:
    """A diagnostic whose message stands on the line before or after it, with that line."""
    if found is None:
        return found
    if found.kind == "gtest":
        return replace(found, key=(*found.key, mask(after)), title=f"{found.title} {after}")
    if found.kind == "filecheck":
        return replace(found, key=(*found.key, mask(_PATTERN.sub("", after))))
    if found.kind == "cmake" and found.key[-1] == "":
        whole = f"{found.title} {after}"
        told = building(whole, whole.lower()) or found
        return replace(told, rank=max(told.rank, found.rank))
    if found.kind == "assert" and found.key[0] == "":
        return replace(found, key=(mask(before), *found.key[1:]), title=f"{before} {found.title}")
    return found


def _signature(kind: str, key: tuple[str, ...], cls: str, title: str) -> Signature:
    whole = "\x1f".join((kind, *key))
    return Signature(
        hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:16], cls, " ".join(title.split())[:200]
    )
