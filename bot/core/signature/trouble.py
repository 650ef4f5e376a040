"""Trouble of machines and services in whatever words: something that is not the code, and that it is not well.

The tables of bot.core.signature.machines and networks hold phrases; this reads what they don't: a noun of the
machinery with a predicate of failure, the numbers and names that systems give their errors, and codes that services
answer with.
"""

from __future__ import annotations

import re

from bot.core.signature.clouds import stock
from bot.core.signature.mask import mask
from bot.core.signature.model import INFRA, UNKNOWN, Found, Rank

# what a program raises about its own values: whatever it speaks of, no machine failed
PROGRAM_ERRORS = frozenset(
    {
        "ArithmeticError", "AssertionError", "AttributeError", "IndexError", "KeyError", "LookupError", "NameError",
        "NotImplementedError", "OverflowError", "RecursionError", "StopIteration", "TypeError", "UnboundLocalError",
        "UnicodeDecodeError", "UnicodeEncodeError", "ValueError", "ZeroDivisionError",
    }
)  # fmt: skip
_CLAIMS = re.compile(r"^(?:assert\b|(?:Failed: )?DID NOT RAISE|Regex pattern did not match|Expected\b.{0,200}\bgot\b)")


_LONGEST = 600


def _any(*phrases: str) -> str:
    return "|".join(phrases)


# of each kind the nouns that mean nothing else, and those that compilers and tests use as well: a node of a graph
_NOUNS = (
    (
        "gpu",
        _any(
            r"NVML|NVSwitch|fabric ?manager|device plugin|MPS server|/dev/(?:kfd|dri|nvidia)\S*",
            r"(?:nvidia|cuda|rocm|amdgpu|display)[ -]driver|MIG(?: mode)?",
        ),
        r"GPUs?",
    ),
    (
        "cluster",
        r"host ?engine|kubelet|kube-?apiserver|slurm\w*|srun|sbatch|salloc|nvidia\.com/gpu",
        r"nodes?|pods?|cluster|reservation|instance capacity",
    ),
    (
        "runner",
        r"(?:self-hosted|hosted|enabled) runners?|launcher for agent|virtual machine|hypervisor|host machine"
        r"|spot instance",
        r"runners?|agents?|instances?|VM|spot",
    ),
    (
        "container",
        r"containerd|docker(?:d|hub)?|podman|cri-o|ErrImagePull|ImagePullBackOff|daemon",
        r"containers?|image",
    ),
    (
        "network",
        _any(
            r"the channel|container registry|package mirror|load balancer|remote (?:server|host)|nameserver",
            r"conda\w*http\w*",
        ),
        r"network|registry|mirror|proxy|gateway|endpoint|backend|bucket",
    ),
    (
        "storage",
        r"NFS|ephemeral-storage|device mapper|block device",
        r"disk|volume|mount|filesystem|file system|storage",
    ),
    ("clock", r"InRelease|system clock", r"certificate"),
)
# predicates that only a machine has, those that anything can have, and those that stand before their noun
_ONLY = _any(
    r"not reachable|not been heard from|marked as lost|cannot receive messages|evicted|preempted|reclaimed|drained",
    r"rebooted|cordoned|low on resource\w*|under pressure|offline|unhealthy|not be scheduled|in maintenance",
    r"has died|(?:un|de)registered|disappeared|health ?check (?:failed|aborted|failure)|thermal (?:slowdown|violation)",
    r"needs? to be (?:replaced|reset|rebooted|serviced)|remapping failure|requires? (?:a )?(?:reset|reboot)",
    r"not (?:yet )?(?:ready|online|healthy|mounted|acquired|valid yet)|temporarily unavailable|interruption",
)
_ANY = _any(
    r"not (?:yet |been |fully |currently ){0,3}(?:running|available|responding|initiali[sz]ed|valid)|unreachable"
    r"|unavailable|clos(?:ed|ing) down",
    r"lost|gone|terminat\w+|too old|out of date|exhausted|insufficient|degraded|unresponsive|overloaded|fail(?:ed|ure)",
    r"time(?:d)? out|stopped|disconnected|crash(?:ed)?|shut(?:ting)? down|interrupted|no enabled|CONNECTION FAILED",
)
_BEFORE = _any(
    r"Insufficient|sufficient|No enabled|terminat(?:ed|ion) of|waiting for|error dialing|Failed to pull|not reach",
    r"unable to establish a connection to.{0,20}|Unable to (?:open|allocate|reach|contact|schedule|provision|dial"
    r"|enable|reset|query)",
    r"lost (?:connection|contact) (?:to|with)|no space on",
)
_EDGE, _END = r"(?<![\w.'\"-])", r"(?![\w'\"(-])"


def _grammar() -> re.Pattern[str]:
    forms = []
    for name, sure, doubtful in _NOUNS:
        forms.append(rf"(?P<{name}>{_EDGE}(?:{sure}){_END}.{{0,80}}?{_EDGE}(?:{_ONLY}|{_ANY}){_END})")
        forms.append(rf"(?P<{name}_only>{_EDGE}(?:{doubtful}){_END}.{{0,60}}?{_EDGE}(?:{_ONLY}){_END})")
        forms.append(rf"(?P<{name}_had>{_EDGE}(?:{_BEFORE})\b.{{0,30}}?{_EDGE}(?:{sure}|{doubtful}){_END})")
    return re.compile("|".join(forms), re.I)


_SAID = _grammar()
_WORD = re.compile(rf"\b(?:{_ONLY}|{_ANY}|{_BEFORE})(?!\w)", re.I)
_ANYTHINGS = re.compile(
    r"\b(?:fail\w*|lost|gone|terminat\w+|stopped|crash\w*|time(?:d)? out|interrupted|exhausted)$", re.I
)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")  # NodeNotReady
# the kernel's own log: its part, and that it is not well
_KERNEL = re.compile(
    r"^(?:kernel: )?(?:\[ *\d+\.\d+\] )?"
    r"(?P<part>(?-i:watchdog: BUG|BUG(?=: (?:soft|hard|unable|kernel|workqueue))|INFO: task"
    r"|mce|EDAC|EXT4-fs|XFS|Buffer I/O|nvme\d*|blk\w*|pcieport|AER|mlx\d\w*"
    r"|amdgpu(?=:? [\da-f]{4}:|: )|NVRM|thermal|CPU\d+(?=: )|NMI))\b.{0,80}?\b"
    r"(?P<what>soft lockup|hard lockup|hung|blocked for more|Hardware Error|Machine Check|link (?:is )?down"
    r"|I/O error|error|throttled|timeout|reset)",
    re.I,
)
_PLAINLY = re.compile(
    r"(?P<quota>\bquota\b.{0,60}\bexceeded|exceed\w* .{0,40}\bquota\b)"
    r"|(?P<memory>(?:out[- ]of[- ]memory|OOM)[ -]killer)|(?P<network>network (?:error|failure|outage|problem"
    r"|connectivity)s?\b|\bCall to ibv?_\w{1,40} failed|networking (?:issue|problem|error)s?\b|bad network)"
    r"|(?P<blamed>\b(?:caused by|due to|because of) (?:an? |the )?.{0,40}\b(?:fabric|nvswitch|hardware|firewall"
    r"|network|infrastructure"
    r"|driver|dns|proxy)\b)"
    r"|(?P<exhausted>\b(?:could not find an available|no (?:free|available|more)|out of|exhausted (?:all )?)\b.{0,40}"
    r"\b(?:ip(?:v4)? address|address pool|ports?|subnets?|licen[sc]es?|executors?)\b)"
    r"|(?P<pools>\ball (?:\w+ ){0,2}(?:address pools?|addresses|ports|executors) (?:have been|are)\b)"
    r"|(?P<retries>\b(?:transport|download|upload|connect\w*|http\w*|requests?|fetch\w*|artifact|host|server"
    r"|service|remote"
    r"|network|push|pull|job)\b.{0,80}(?:retry count(?:er)? exceeded|retries exhausted|maximum (?:number of )?retries))"
    r"|(?P<lock>\block\b.{0,80}(?:/|\bfile\b|\bdevice\b).{0,80}\b(?:another|other) process (?:holds|has|is using|owns))"
    r"|(?P<system>\((?:system|runner system|infrastructure) failure\)|infrastructure (?:failure|error)"
    r"|\brunner system failure)",
    re.I,
)
_EITHER = re.compile(r"\b(?:possibly|may be|might be|either)\b.{0,80}\bor\b", re.I)  # who names two causes knows none
_ERRNO = re.compile(
    r"\[Errno (?P<number>\d{1,3})\]|\berrno[ =:]+(?P<bare>\d{1,3})\b|\bos error (?P<rust>\d{1,3})\b", re.I
)
# Linux: I/O, no device, busy, disk, quota, and all that a network says
_MACHINES = frozenset({5, 6, 12, 16, 19, 28, 30, 100, 101, 102, 103, 104, 108, 110, 111, 112, 113, 116, 117, 121, 122})
_ANYONES = frozenset({11, 23, 24, 32})  # processes, files, pipes: the code can use them up as well
_NODE = re.compile(
    r"\b(?P<name>E(?:CONN(?:RESET|REFUSED|ABORTED)|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH))\b"
)
_AWS = re.compile(
    r"\b[Aa]n? (?:client )?error (?:occurred )?\((?P<code>\w+)\)(?: occurred)? when calling the \w+ operation"
)
_AWS_BUSY = re.compile(
    r"SlowDown|Skewed|Capacity|Throttl|Unavailable|Timeout|InternalError|LimitExceeded|TooManyRequests", re.I
)
_GRPC = re.compile(r"\bcode = (?P<code>Unavailable|DeadlineExceeded|ResourceExhausted|Unknown|Internal)\b|"
                   r"\bStatusCode\.(?P<python>UNAVAILABLE|DEADLINE_EXCEEDED|RESOURCE_EXHAUSTED)\b"
                   r"|StatusRuntimeException: (?P<java>UNAVAILABLE|INTERNAL|DEADLINE_EXCEEDED|RESOURCE_EXHAUSTED)\b"
    r"|\b(?P<said>UNAVAILABLE|DEADLINE_EXCEEDED): ")  # fmt: skip
_ENDED = re.compile(r"\bexit(?:ed)? ?(?:code|status|with)", re.I)
_SPELT = r"(?:[A-Z][a-z]+ (?:Error|Unavailable|Gateway|Timeout)|GET|HEAD|PUT|POST)\b"
_HTTP = re.compile(
    r"\b(?:HTTP(?:/\d\S*)?|status(?: code)?|response|respon\w+ with|returned|replied)\W{1,4}(?:\w+ ){0,2}?"
    rf"(?P<status>5\d\d|429|000)\b|\b(?P<first>5\d\d|429) (?:status|response|error) code\b|(?:^\W*"
    rf"|: )(?P<spelt>5\d\d) {_SPELT}",
    re.I,
)
_DAEMON = re.compile(
    r"\b(?P<name>nvidia-persistenced|nv-(?:fabricmanager|hostengine)|fabric ?manager|slurmd|kubelet|dockerd?|containerd"
    r"|munged?|sssd|autofs|chronyd) (?:daemon )?(?:is not|isn't|failed|crashed|exited|died|could ?n[o']t)",
    re.I,
)
_API_SERVER = re.compile(r"^Error from server \((?P<code>InternalError|ServiceUnavailable|\w*Timeout|TooManyRequests)")
_FORK = re.compile(r"\bfork: (?:retry: )?Resource temporarily unavailable")
_OWN = re.compile(r"localhost|127\.0\.0\.1|\[?::1\]|uvicorn|testserver|mock", re.I)


def claim(line: str, exception: str | None) -> bool:
    """Whether the line is what code says of values: a failed assertion, or an exception about a program's own ones."""
    return exception in PROGRAM_ERRORS or _CLAIMS.match(line) is not None


def trouble(line: str, *, exception: str | None) -> Found | None:
    """What is wrong with a machine or a service by `line`, in which an exception of that name stands (None: none)."""
    if claim(line, exception):
        return None
    line = line[:_LONGEST]
    if found := _number(line) or _answer(line, exception):
        return found
    if exception is not None and not _speaks_of_outside(exception):
        return None
    line = _HUMP.sub(" ", line)
    said = _SAID.search(line) if _WORD.search(line) else None
    if said is None:
        return None
    noun, words = next((name, value) for name, value in said.groupdict().items() if value)
    if exception is not None and _ANYTHINGS.search(words):
        return None  # what a program raises itself may have failed, or lost something, without any machine
    what = [match[0].lower() for match in _WORD.finditer(words)]
    return _found(line, noun.partition("_")[0], " ".join(what) or mask(words.lower()), rank=Rank.SPOKEN)


def tells(found: Found) -> bool:
    """Whether the words of a trouble say more than that something failed."""
    return _ANYTHINGS.search(found.key[-1]) is None


def _number(line: str) -> Found | None:
    if _FORK.search(line):
        return _found(line, "process", "fork")
    found = _ERRNO.search(line)
    if found is None:
        node = _NODE.search(line)
        return _found(line, "network", node["name"]) if node and not _OWN.search(line) else None
    number = int(found["number"] or found["bare"] or found["rust"])
    if number in _ANYONES:
        return _found(line, "errno", str(number), cls=UNKNOWN)
    if number not in _MACHINES or _OWN.search(line):
        return None
    return _found(line, "errno", str(number))


def _answer(line: str, exception: str | None) -> Found | None:
    if told := stock(line):
        return told
    if found := _AWS.search(line):
        return _found(line, "aws", found["code"]) if _AWS_BUSY.search(found["code"]) else None
    if (found := _GRPC.search(line)) and not _ENDED.search(line):
        return _found(line, "rpc", (found["code"] or found["python"] or found["java"] or found["said"]).lower())
    if (found := _HTTP.search(line)) and not _OWN.search(line):
        if found["status"] == "500" and exception and "://" not in line:
            return None  # any server's own mistake
        return _found(line, "http", found["status"] or found["first"] or found["spelt"])
    if found := _API_SERVER.search(line):
        return _found(line, "api server", found["code"])
    if found := _DAEMON.search(line):
        return _found(line, "daemon", found["name"].lower())
    if (found := _PLAINLY.search(line)) and not _EITHER.search(line):
        return _found(line, "plainly", next(name for name, value in found.groupdict().items() if value))
    if found := _KERNEL.search(line):
        return _found(line, "kernel", f"{found['part']} {found['what']}".lower())
    return None


def _speaks_of_outside(exception: str) -> bool:
    """Whether an exception of that name may tell of machines and services."""
    return exception in (
        "RuntimeError",
        "OSError",
        "IOError",
        "Exception",
        "Error",
        "SystemError",
        "EnvironmentError",
    ) or (
        re.search(
            r"HTTP|Http|Connection|Network|Timeout|Unavailable|Socket|Client|Remote|Cluster|Docker|Driver|Lock"
            r"|Node(?:Died|Lost|Fail)|AllocationFailed",
            exception,
        )
        is not None
    )


def _found(line: str, noun: str, word: str, *, cls: str = INFRA, rank: int = Rank.SERVICE) -> Found:
    return Found("trouble", rank, cls, (noun, word), line)
