"""How test tools, workers, clocks and processes fail."""

from __future__ import annotations

from bot.core.signature.model import CODE, HARNESS, UNKNOWN, Rank
from bot.core.signature.rule import LINE, NONE, rules

NOTHING = rules(
    HARNESS,
    Rank.SERVICE,
    NONE,
    (
        "nothing collected",
        r"no tests (?:ran|collected|found|to run)",
        r"collected 0 items",
        r"/ 0 selected",
        r"\b(?:\d+ deselected in|0 tests? (?:ran|run|executed))",
    ),
    ("no tests of a build", r"No tests were found", r"No test configuration file found", r"no tests were found"),
    ("lit discovers none", r"did not discover any tests", r"did not contain any tests", r"Total Discovered Tests: 0"),
    ("no test functions", r"Ran 0 tests", r"Running 0 tests"),
)
TESTS = rules(
    HARNESS,
    Rank.SERVICE,
    LINE,
    (
        "tests not found",
        r"file or directory not found: (?P<what>\S+)",
        r"not found: (?P<other>\S+::\S+)",
        r"found no collectors for (?P<node>\S+)",
        r"No such (?:test|module|suite)",
        r"warning: input '(?P<lit>[^']+)' contained no tests",
    ),
    (
        "test arguments",
        r"unrecognized arguments: (?P<what>-{0,2}[\w-]+)",
        r"(?:error|usage): (?:unrecognized|argument|the following arguments|unknown option|no such option)",
        r"invalid choice",
        r"No such option",
        r"no option named",
        r"^lit: error: ",
        r"unknown (?:hook|mark|option|argument)",
        r"not found in `?markers",
        r"required plugins?",
        r"Unknown config option",
        r"unknown command line (?:option|argument)",
    ),
    (
        "test fixture",
        r"fixture '(?P<what>\w+)' not found",
        r"ScopeMismatch",
        r"recursive dependency involving fixture",
        r"fixture .{1,60}called directly",
        r"duplicate parametrization",
        r"function uses no (?:argument|fixture)",
        r"In .{1,80}: indirect fixture",
    ),
    (
        "test collection",
        r"import file mismatch",
        r"ConftestImportFailure",
        r"ImportPathMismatchError",
        r"while loading conftest",
        r"duplicate(?:d)? test",
        r"(?P<xdist>Different tests were collected between)",
    ),
    (
        "test configuration",
        r"lit(?:\.py)?: .{1,200}: (?:fatal|error): ",
        r"lit: fatal",
        r"unable to (?:load|parse) (?:config|.{1,80}lit)",
        r"lit\.(?:site\.)?cfg",
        r"unsupported test format",
        r"Could not find executable",
        r"Required test coverage|Coverage failure: ",
        r"functions are not natively supported",
        r"No data to report",
        r"should extend from .{0,60}TestCase",
        r"Torch not compiled with CUDA",
        r"pytest: error",
        r"outside of a test\b",
        r"^\[XPASS\(strict\)\]",
        r"invalid ini",
        r"(?:Cannot load|Error importing|Could not load) plugin",
        r"(?:pyproject\.toml|setup\.cfg|tox\.ini|pytest\.ini)\S*: .{0,30}(?:cannot|invalid|expected|unexpected)",
        r"pyproject\.toml.{0,60}(?:error|invalid)",
        r"plugin.{0,40}(?:could not|not) (?:be )?(?:import|load|found|register)",
    ),
    (
        "test runner bug",
        r"pluggy\.\w+",
        r"assert not crashitem",
        r"_pytest\.\w+\.(?:Internal|Outcome)\w*",
    ),
)
PORTS = rules(
    HARNESS,
    Rank.CRASH,
    NONE,
    (
        "port in use",
        r"(?:address|port:? \d+)(?: is)? already in use(?! by)",
        r"\bport\w*(?: at|:)? \d+\b.{0,40}\b(?:not available|already (?:used|bound|taken)|is (?:in use|used))",
        r"EADDRINUSE",
    ),
)
WORKERS = rules(
    UNKNOWN,
    Rank.CRASH,
    NONE,
    (
        "worker crashed",
        r"worker '?gw\d+'? crashed",
        r"worker .{0,30}crashed while running",
        r"maximum crashed workers reached",
    ),
    (
        "worker down",
        r"node down: (?P<what>.{1,60})",
        r"replacing crashed worker",
    ),
    (
        "pool broken",
        r"BrokenProcessPool",
        r"process pool was terminated",
    ),
    (
        "killed",
        r"(?:signal|SIG)\W?(?:9|KILL)\b",
        r"^Killed\b",
        r"(?:^|\bline \d+: {1,4}|^\S+: )\d+ Killed(?:: 9)? +(?:\S*/)?(?P<what>[\w.+-]+)",
    ),
    (
        "terminated",
        r"(?:^|\bline \d+: {1,4}|^\S+: )\d+ (?:Terminated|Hangup|Interrupt)(?:: \d+)? +(?:\S*/)?(?P<what>[\w.+-]+)",
    ),
    (
        "worker died",
        r"(?:worker|process|subprocess|rank|child|engine|actor).{0,40}(?:died unexpectedly"
        r"|terminated (?:unexpectedly|abruptly)|exited unexpectedly|was killed|has died|died with)",
        r"DataLoader worker .{0,40}(?:killed|exited)",
    ),
)
COLLECTIVES = rules(
    UNKNOWN,
    Rank.TIMEOUT,
    NONE,
    (
        "collective timeout",
        r"(?:\b(?:NCCL|RCCL|Gloo)\b|ProcessGroup\w+|collective|watchdog|\bbarrier\b|rendezvous|TCPStore"
        r"|\bstore\b).{0,160}(?:timeout|timed out|time out)",
        r"Watchdog caught",
    ),
)
TIMEOUTS = rules(
    UNKNOWN,
    Rank.TIMEOUT,
    LINE,
    (
        "job time limit",
        r"(?:exceeded|reached) the maximum execution time",
        r"job .{0,80}(?:exceeded|ran longer|timed out)",
        r"CANCELLED .{0,80}(?P<slurm>DUE TO TIME LIMIT)",
        r"action '.{1,120}' has timed out",
        r"has timed out after \d+ minutes",
        r"step .{0,60}timed out",
        r"maximum (?:execution|run|job) time",
    ),
    (
        "test hung",
        r"Failed: Timeout",
        r"\bTimeout ?[>(] ?>?\d",
        r"^[+~-]{3,} Timeout [+~-]{3,}$",
        r"reached timeout of \d",
        r"\b(?P<silent>(?:seconds|minutes) without (?:any )?output)\b",
    ),
    (
        "test time limit",
        r"Timeout ?[>(:]\s?\d",
        r"Timeout >",
        r"Failed: Timeout",
        r"TimeoutExpired",
        r"tim(?:ed|ing) out after",
        r"(?:failed|did not|didn't|never) (?:to )?(?:start|respond|finish|complete|become ready"
        r"|come up)\w* (?:in time|within)\b",
        r"reached timeout",
        r"Test(?:ing)? timed? ?out",
        r"\*\*\*Timeout",
        r"timeout: (?:sending|the monitored)",
        r"exceed(?:ed|s) (?:the )?(?:time ?out|time limit|deadline)",
        r"Timeout(?:Error)?\b",
        r"\b(?:timed out|timeout)$",
        r"timed out\b",
        r"hung\b.{0,30}(?:seconds|min)",
        r"returning 124",
    ),
    (
        "cancelled",
        r"The (?:operation|run|job|workflow) was cancell?ed",
        r"Canceling since a higher priority",
        r"cancell?ed by",
        r"operation was cancell?ed",
        r"KeyboardInterrupt",
    ),
)
# told by who had started it, who knows no more: the shell, the process that waits for its children
CHILDREN = rules(
    UNKNOWN,
    Rank.CRASH,
    NONE,
    (
        "child crashed",
        r"(?:^|\bline \d+: {1,4}|^\S+: )\d+ (?P<what>Segmentation fault|Aborted|Bus error|Floating point exception"
        r"|Illegal instruction|Trace/breakpoint trap|Abort trap|IOT instruction)(?:: \d+)? *(?:\(core dumped\))? +"
        r"(?:sudo |time |env )?(?:\w+=\S+ )*(?:\S*/)?(?:python[\d.]*|py\.?test[\d.]*|torchrun|ctest|lit|llvm-lit"
        r"|tox|nox|ray|mpirun|accelerate|coverage|uv|poetry|make)\b",
        r"\bprocess(?:es)? \d+ (?:was |were )?terminated with signal (?P<signal>SIG(?!KILL|TERM|INT)[A-Z]+)",
    ),
)
CRASHES = rules(
    CODE,
    Rank.CRASH,
    NONE,
    (
        "segfault",
        r"Segmentation fault",
        r"^Stack dump:",
        r"\bSIGSEGV\b",
        r"signal 11\b",
        r"access violation",
        r"0xC0000005",
        r"invalid memory reference",
    ),
    (
        "bus error",
        r"\bBus error\b",
        r"\bSIGBUS\b",
    ),
    (
        "floating point exception",
        r"Floating point exception",
        r"\bSIGFPE\b",
    ),
    (
        "illegal instruction",
        r"Illegal instruction",
        r"\bSIGILL\b",
    ),
    (
        "stack overflow",
        r"stack overflow",
        r"stack smashing",
    ),
    (
        "heap corruption",
        r"double free",
        r"free\(\): invalid",
        r"malloc\(\): ",
        r"corrupted (?:size|double|unsorted)",
        r"munmap_chunk",
        r"invalid next size",
    ),
    (
        "abort",
        r"(?<!been )(?<!network )(?<!step )(?<!job )\bAborted\b(?!: | with)",
        r"\bSIGABRT\b",
        r"\bAbort trap",
        r"IOT instruction",
        r"terminate called without",
        r"signal 6\b",
    ),
)
EXITS = rules(
    UNKNOWN,
    Rank.OPAQUE + 5,
    NONE,
    (
        "killed",
        r"exit(?:ed)?(?: with)?(?: exit)?(?: status| code)?:? (?:137|-9)\b",
        r"returned non-zero exit status 137",
        r"\bError 137$",
    ),
    (
        "terminated",
        r"exit(?:ed)?(?: with)?(?: exit)?(?: status| code)?:? (?:143|130|-15|-2)\b",
    ),
    (
        "time limit",
        r"exit(?:ed)?(?: with)?(?: exit)?(?: status| code)?:? 124\b",
    ),
)
DIED = rules(
    CODE,
    Rank.OPAQUE + 5,
    NONE,
    (
        "segfault",
        r"exit(?:ed)?(?: with)?(?: exit)?(?: status| code)?:? (?:139|-11|3221225477)\b",
        r"died with <Signals\.SIGSEGV",
    ),
    (
        "abort",
        r"exit(?:ed)?(?: with)?(?: exit)?(?: status| code)?:? (?:134|-6)\b",
        r"died with <Signals\.SIGABRT",
    ),
)
