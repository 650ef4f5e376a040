"""What is said by all that stands around the code: disks, networks, registries, git, runners, workflows, test tools."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.core.signature.clean import base
from bot.core.signature.mask import mask
from bot.core.signature.model import CODE, HARNESS, INFRA, UNKNOWN, Found, Rank


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of line: its named groups, masked, tell one cause of the kind from another."""

    kind: str
    cls: str
    pattern: re.Pattern[str]
    rank: int
    detail: str  # what tells causes of this kind apart, besides named groups: NONE, WHO is asked, the whole LINE


NONE, WHO, LINE = "none", "who", "line"


def _rules(cls: str, rank: int, detail: str, *table: tuple[str, str]) -> tuple[Rule, ...]:
    return tuple(Rule(kind, cls, re.compile(pattern, re.I), rank, detail) for kind, pattern in table)


_DISK = _rules(
    INFRA, Rank.PHYSICAL, NONE,
    ("disk full", r"No space left on device|not enough (?:free )?(?:disk )?space|\bENOSPC\b|out of disk space|disk (?:is )?full|insufficient (?:disk )?space|There is not enough space on the disk"),
    ("disk quota", r"Disk quota exceeded|\bEDQUOT\b|over (?:its |your )?(?:disk|storage) quota"),
    ("disk i/o", r"Input/output error|\bEIO\b|Remote I/O error"),
    ("read-only disk", r"Read-only file system|\bEROFS\b"),
    ("stale mount", r"Stale (?:NFS )?file handle|Transport endpoint is not connected|\bESTALE\b|Structure needs cleaning"),
)  # fmt: skip
_MACHINE = _rules(
    INFRA, Rank.SERVICE, NONE,
    ("shared memory", r"insufficient shared memory|(?:shm|shared memory).{0,40}(?:too small|not enough)|killed by signal: Bus error|unable to (?:open|write|mmap) shared memory"),
    ("network mount", r"(?:No such file or directory|cannot access|not found|unavailable).{0,20}'?/(?:mnt|nfs|net|gvfs|shared|efs|fsx)/(?P<what>[^'\s]+)"),
    ("host memory", r"Cannot allocate memory|oom-?kill|OOM[- ]?Killed|Out of memory: Killed|\bENOMEM\b|MemoryError|killed by the (?:OOM|kernel)|ran out of (?:host )?memory|system is (?:running )?low on memory"),
    ("runner lost", r"(?:runner|agent|node|worker|executor|machine|instance|pod|job).{0,60}(?P<what>lost communication|lost connection|was lost|has been lost|went away|is offline|went offline|not reachable|unreachable|disconnected|stopped responding|failed to come online|is unhealthy|did(?: not|n't) (?:respond|connect))|(?P<other>lost (?:communication|connection|contact)) (?:with|to) the (?:server|runner|agent|node)"),
    ("runner stopped", r"(?:runner|agent|node|instance|pod|machine).{0,40}(?:received a (?P<what>shutdown)|(?P<down>shutting down)|(?:was|has been) (?P<how>shut ?down|terminated|evicted|preempted|reclaimed|deleted))|(?P<signal>shutdown) signal|(?P<spot>spot (?:instance )?(?:interruption|termination))|(?P<pre>preempted|preemption)|(?P<slurm>NODE_?FAIL|NODE FAILURE)|(?P<ev>Evicted)"),
    ("runner error", r"(?:hosted|self-hosted) runner (?P<what>encountered|failed)|runner.{0,30}(?P<did>encountered an error|internal error|failed to (?:start|initiali[sz]e|provision|acquire))|(?:could not|unable to|failed to) (?P<get>acquire|provision|allocate|start|schedule) (?:a |the |an )?(?:runner|agent|machine|node|instance|vm|pod)|job was not (?P<acq>acquired) by Runner|(?P<none>No) (?:hosted )?(?:runner|agent|machine)s? (?:matching|available|found|online|could be)|(?P<wait>waiting) for a (?:hosted )?runner"),
    ("ci service", r"(?:GitHub Actions|Azure Pipelines|actions service|pipelines? service).{0,60}(?:unavailable|error|outage|degraded)|internal (?:server )?error.{0,40}(?:correlation|try again)|An error occurred while provisioning|We are currently experiencing"),
    ("cache service", r"(?:reserve|save|restore|download)\w* ?cache.{0,80}(?:fail|unable|error|respond)|(?:fail|unable)\w* (?:to )?(?:save|restore|reserve|download)\w* (?:the )?cache|cache (?:service|server).{0,60}(?:respond|fail|unavail|error|down)|sccache.{0,80}(?:server|timed out|startup|couldn't connect)"),
    ("artifact service", r"(?:fail|unable)\w* (?:to )?(?:create|upload|finali[sz]e|download|list)\w* ?artifact.{0,120}(?:respon|request|ECONN|timeout|timed|5\d\d|network|service|retry|attempt)|artifact (?:upload|download) (?:failed|timed out)"),
    ("docker daemon", r"Cannot connect to the Docker daemon|docker(?: daemon)? (?:is not running|failed to start)|docker\.sock.{0,60}(?:refused|denied|no such)|failed to (?:register layer|start (?:shim|container)|create (?:shim|containerd) task)|containerd.{0,40}(?:unavailable|fail)|error during connect"),
    ("missing library", r"(?P<what>lib[\w+-]+\.so(?:\.\d+)*): cannot open shared object file|(?:cannot|could not) (?:open|load|find)(?: shared)? (?:object|library).{0,20}?(?P<other>lib[\w+-]+\.so)"),
    ("system call", r"(?:errno 1\b|\[Errno 1\]|\bEPERM\b).{0,40}|Operation not permitted"),
    ("slow clock", r"certificate is not yet valid|clock skew"),
)  # fmt: skip
_BUSY = _rules(
    INFRA, Rank.SERVICE, LINE,
    ("device busy", r"Device or resource busy|Text file busy|(?:Unable to create|could not lock).{0,200}\.lock'?:? ?(?:File exists)?|Could not get lock|is (?:held|locked) by (?:another )?process"),
)  # fmt: skip
_CREDENTIALS = _rules(
    INFRA, Rank.SERVICE, LINE,
    ("credentials", r"not authorized to perform|AccessDenied|Access Denied|Could not assume role|ExpiredToken|token (?:has |is )?expired|Credentials could not be loaded|(?:could not|unable to|failed to) (?:load|locate|get|retrieve|refresh) (?:the )?credentials|InvalidClientTokenId|Permission denied \(publickey|Host key verification failed|could not read (?:Username|Password)|terminal prompts disabled|Bad credentials|Authentication failed|authentication required"),
)  # fmt: skip
_NO_NETWORK = _rules(
    INFRA, Rank.SERVICE, NONE,
    ("dns", r"Could not resolve (?:host|proxy)|Temporary failure (?:in name resolution|resolving)|Name or service not known|nodename nor servname|getaddrinfo|NameResolutionError|no such host|Failed to resolve|\bEAI_AGAIN\b|\bENOTFOUND\b|unable to resolve host|server misbehaving|DNS (?:lookup|resolution)"),
    ("tls", r"(?:SSL|TLS)(?::| )[\w ]{0,30}(?:error|failed|handshake|failure|verify|alert)|CERTIFICATE_VERIFY_FAILED|handshake (?:timeout|failed|failure)|certificate (?:verify failed|has expired|problem|signed by unknown)|gnutls_handshake|SSL_ERROR|SSLError|SSLEOFError|server certificate verification failed|x509:"),
    ("connection refused", r"(?<!127.0.0.1)(?:Connection refused|\bECONNREFUSED\b|refused to connect)"),
    ("no route", r"No route to host|Network is unreachable|\bENETUNREACH\b|\bEHOSTUNREACH\b|Host is (?:down|unreachable)|couldn't connect to (?:server|host|'https?:)|Could not connect to (?!.{0,10}display)|Failed to connect to|Failed to establish a new connection|Max retries exceeded|Unable to connect to"),
)  # fmt: skip
_NETWORK = _rules(
    INFRA, Rank.SERVICE, WHO,
    ("rate limit", r"toomanyrequests|\b429\b(?= ?:? ?Too|.{0,12}error)|Too Many Requests|rate limit(?:ed)?(?: (?:exceeded|reached|hit))?|pull rate limit|secondary rate|(?:error|status|code|HTTP)\W{0,12}429\b"),
    ("connection cut", r"Connection (?:was )?(?:reset|aborted|broken|closed)(?: by| without|\b)|\bECONNRESET\b|\bEPIPE\b|RemoteDisconnected|Remote end closed|remote end hung up|early EOF|RPC failed|unexpected disconnect|IncompleteRead|ChunkedEncodingError|socket hang up|Recv failure|Send failure|transfer closed|unexpected EOF|invalid index-pack output|ProtocolError|ServerDisconnected|Empty reply from server|stream .{0,20}not closed cleanly|Broken pipe.{0,30}(?:ssh|remote|upload)|curl: ?\((?:18|52|55|56|92)\)"),
    ("network timeout", r"Connection timed out|(?:Read|Connect|Connection|Request|Socket|Network|Gateway|handshake|i/o|Client\.Timeout)[ _-]?(?:timed?[ _-]?out|timeout)|\bETIMEDOUT\b|\bESOCKETTIMEDOUT\b|ConnectTimeout\w*|ReadTimeout\w*|timed? ?out (?:while )?(?:connecting|reading|downloading|fetching|waiting for (?:server|response|connection))|Operation timed out after|Operation too slow|context deadline exceeded|failed to connect to .{1,200}after \d+ ms"),
    ("http 5xx", r"\b(?:50[0-9]|52\d)\b[ :,-]{1,3}(?:Internal Server|Bad Gateway|Service|Gateway|Server)|(?:HTTP(?:Error|/\d\S*)?|status(?: code)?|error|code|responded with|returned error)\W{1,4}(?:code )?5(?:0\d|2\d)\b|Internal Server Error|Bad Gateway|Service (?:Temporarily )?Unavailable|Gateway Time-?out|server (?:is )?(?:temporarily )?(?:unavailable|overloaded)|unicorn!"),
    ("download", r"(?:failed|unable|could not|cannot|error)(?: to)? (?:download|fetch|retriev|pull)\w*\b.{0,200}(?:https?://|after \d+ (?:attempts|retries|tries))|(?:giving up|failed) after \d+ (?:attempts|retries|tries)"),
    ("mirror", r"Hash Sum mismatch|File has unexpected size|Mirror sync in progress|Unable to fetch some archives|Failed to fetch (?!.{0,80}40[134])|does not have a Release file|Some index files failed to download|Clearsigned file isn't valid|rpmdb|repomd\.xml|Cannot download"),
    ("checksum", r"(?:checksum|digest|hash|sha256)(?: sum)? (?:mismatch|did not match|does not match|verification failed|check failed)|DO NOT MATCH THE HASHES|(?:corrupt(?:ed)?|truncated) (?:download|archive|zip|tar|gzip|layer|file)|unexpected end of (?:file|data|archive)|BadZipFile|not in gzip format|zlib.{0,30}(?:error|incorrect)|CRC (?:check )?fail|object file .{1,80} is empty|loose object .{0,80}corrupt"),
    ("quota", r"quota (?:exceeded|has been|limit)|over its data quota|storage quota|billing|spending limit|recent account payments"),
)  # fmt: skip
_GIT = _rules(
    HARNESS, Rank.SERVICE, LINE,
    ("git ref", r"(?:couldn't find remote ref|Remote branch|pathspec|reference is not a tree|bad revision|unknown revision|ambiguous argument|invalid reference|not our ref|not a valid object name|unadvertised object|not a commit|did not match any file|bad object|unable to read tree|Needed a single revision|no merge base|did not contain)\b"),
    ("git ownership", r"dubious ownership|safe\.directory"),
    ("git access", r"Repository not found|invalid credentials|Support for password authentication|does not appear to be a git repository|Write access to repository not granted|unable to access .{1,200}(?:returned )?error: 40[134]"),
    ("git repository", r"not a git repository|refusing to (?:merge unrelated|fetch into)|shallow (?:update|clone|file)|submodule .{0,120}(?:not initialized|fail|no url|no submodule mapping)|No url found for submodule|destination path .{1,200}already exists|would be overwritten|Please tell me who you are|empty ident name|no submodule mapping"),
    ("git push", r"! \[(?:remote )?rejected\]|failed to push some refs|protected branch|non-fast-forward|GH\d{3}:"),
)  # fmt: skip
_MERGE = _rules(
    CODE, Rank.SERVICE, LINE,
    ("merge conflict", r"CONFLICT \((?P<what>[\w/ ]+)\)|Merge conflict in (?P<other>\S+)|could not apply [0-9a-f]{7}|patch (?:does not apply|failed:)|hunks? FAILED|Automatic merge failed"),
)  # fmt: skip
_LINT = _rules(
    CODE, Rank.SERVICE, NONE,
    ("lint", r"^(?P<hook>[\w /().-]{2,80}?)\.{3,}(?:\([^)]*\))?Failed$|hook id: (?P<what>[\w-]+)|(?P<tool>would reformat|files? would be reformatted|code should be clang-formatted|files were modified by this hook|Imports are incorrectly sorted)"),
)  # fmt: skip
_PACKAGES = _rules(
    HARNESS, Rank.SERVICE, LINE,
    ("no package", r"No matching distribution found for (?P<what>[\w.\[\]-]+)|Could not find a version that satisfies the requirement (?P<other>[\w.\[\]-]+)|Unable to locate package (?P<apt>\S+)|(?:E: )?Package '?(?P<apt2>[\w.+-]+)'? has no installation candidate|No package (?P<rpm>\S+) available|No match for argument:? (?P<dnf>\S+)|PackagesNotFoundError|404 .{0,30}npm|E404|Version '.{1,40}' for '(?P<apt3>[\w.+-]+)' was not found|no matching package named [`'](?P<crate>[\w-]+)|(?:nothing provides|PackageNotFound\w*:?) '?(?P<conda>[\w-]+)"),
    ("package conflict", r"ResolutionImpossible|(?:conflicting|incompatible) dependenc|dependency (?:conflict|resol)|unmet dependencies|have conflicting|requires .{1,80}, but you(?:'ll)? have|No solution found when resolving|because .{1,80} depends on|UnsatisfiableError|held broken packages|version solving failed"),
    ("python version", r"requires (?:a different )?Python|Requires-Python|python_requires|Python (?:version )?.{1,40}(?:is not supported|not supported|is required|or (?:newer|later|higher))|is not a supported wheel on this platform|Version .{1,20} with arch .{1,20} not found"),
    ("managed environment", r"externally-managed-environment|Can not perform a '--user' install|uninstall-no-record|Cannot uninstall (?P<what>\S+)"),
    ("requirements file", r"Could not open requirements file|Invalid requirement|does not appear to be a Python project|Neither 'setup.py' nor|No such extra"),
    ("image missing", r"manifest (?:for .{1,200}? )?(?:not found|unknown)|pull access denied|repository does not exist|No such image|denied: requested access|no matching manifest for|invalid reference format|unauthorized: (?:authentication|access)"),
    ("image build", r"failed to solve|Dockerfile parse error|COPY failed|failed to compute cache key|unknown instruction|dockerfile:\d+"),
)  # fmt: skip
_BUILDS = _rules(
    CODE, Rank.OPAQUE, NONE,
    ("package build", r"Failed (?:building|to build) (?:wheel|editable|one or more wheels)(?: for (?P<what>\S+))?|Failed to build (?P<other>[\w-]+)|metadata-generation-failed|Preparing metadata .{0,40}error|build backend|BackendUnavailable"),
)  # fmt: skip
_SHELL = _rules(
    HARNESS, Rank.EXCEPTION, LINE,
    ("command missing", r"(?P<what>[\w./+-]+): (?:command )?not found$|(?:command not found|not recognized as an internal)\W*(?P<other>[\w.-]*)|exec: \"?(?P<exec>[\w./-]+)\"?: (?:executable file not found|stat)|executable file not found|env: ['‘]?(?P<env>[\w.-]+)['’]?: No such file|(?P<sh>[\w./-]+): No such file or directory$(?<=directory)(?<!fatal)|'(?P<win>\w+)' is not recognized|bad interpreter"),
    ("command denied", r"(?P<what>[\w./+-]+): Permission denied$"),
    ("shell syntax", r"syntax error near unexpected token|unexpected end of file$|unexpected EOF while looking|bad substitution|\[: .{0,40}(?:unary|binary|integer|too many)|: not a valid identifier|invalid option"),
)  # fmt: skip
_FILES = _rules(
    CODE, Rank.EXCEPTION, LINE,
    ("no such file", r"No such file or directory:? ['\"](?P<what>[^'\"]+)|(?:cannot|can't|could not|unable to) (?:open|stat|access|read)(?: file)? [`'\"](?P<other>[^'\"]+)['\"]"),
)  # fmt: skip
_TOOLS = _rules(
    UNKNOWN, Rank.EXCEPTION, NONE,
    ("tool missing", r"(?:cannot|can't|could not|unable to|failed to) (?:find|locate) (?:(?:the|executable|binary|program|tool|command) )*[`'\"]?(?P<what>[a-z_]+)[\w.-]*[`'\"]?(?: (?:executable|binary|program|in PATH|on PATH|in \$PATH).*)?\.?$|(?P<other>[\w-]+) (?:executable )?not found (?:in|on) (?:your |the )?\$?PATH"),
)  # fmt: skip
_WORKFLOW = _rules(
    HARNESS, Rank.SERVICE, LINE,
    ("workflow syntax", r"Invalid workflow file|workflow is not valid|Unrecognized (?:named-value|function)|Unexpected (?:value|symbol|input)|(?:error|problem) parsing .{0,60}(?:ya?ml|workflow)|You have an error in your ya?ml|Required property is missing|(?:mapping|sequence|block|scalar)\w* .{0,40}(?:not allowed|expected|found)|yaml: (?:line|unmarshal)|expected <block end>|ScannerError|ParserError|could not find expected ':'|did not find expected|template is not valid|TemplateValidationException|not a valid (?:event|runner|shell)"),
    ("workflow action", r"Unable to resolve action|Can't find 'action|unable to find version|Could not find file .{0,200}action\.ya?ml|Missing download info for|(?:deprecated|no longer supported) version of [`'\"]?actions|uses a deprecated|not allowed (?:to be used )?in .{1,80}(?:repository|enterprise)|The process '.{1,200}' failed because one or more lines"),
    ("workflow input", r"Input (?:required and not supplied|'.{1,80}' is not)|Input '?.{1,60}'? (?:is )?required|not supplied: (?P<what>[\w-]+)|(?:environment variable|secret|parameter|argument) .{0,60}(?:is not set|not set|is required|is missing|must be set|undefined)|unbound variable|parameter (?:null or )?not set"),
    ("workflow rights", r"Resource not accessible by (?:integration|personal)|Must have admin rights|insufficient (?:scope|permission|privilege)|missing (?:the )?`?\w+`? (?:scope|permission)|(?:HTTP(?:Error)?|status(?: code)?|error|code|responded with)\W{1,4}(?:code )?40[13]\b|\b40[13][ :,-]{1,3}(?:Client Error|Forbidden|Unauthorized)"),
    ("artifact missing", r"(?:Artifact|artifacts?) .{0,80}(?:not found|does not exist)|Unable to (?:find|download) (?:any |an )?artifact|No files were found with the provided path|no artifacts? (?:found|matching)"),
    ("not found", r"\b404[ :,-]{1,3}(?:Client Error|Not Found)|(?:HTTP(?:Error)?|status(?: code)?|error|code)\W{1,4}(?:code )?404\b"),
)  # fmt: skip
_NOTHING = _rules(
    HARNESS, Rank.SERVICE, NONE,
    ("nothing collected", r"no tests (?:ran|collected|found|were found|to run)|collected 0 items|/ 0 selected|\b(?:\d+ deselected in|0 tests? (?:ran|run|executed))|No tests were found|did not discover any tests|did not contain any tests|found no collectors|Ran 0 tests|Total Discovered Tests: 0"),
)  # fmt: skip
_TESTS = _rules(
    HARNESS, Rank.SERVICE, LINE,
    ("tests not found", r"file or directory not found: (?P<what>\S+)|not found: (?P<other>\S+::\S+)|No such (?:test|module|suite)|warning: input '(?P<lit>[^']+)' contained no tests"),
    ("test arguments", r"unrecognized arguments: (?P<what>-{0,2}[\w-]+)|(?:error|usage): (?:unrecognized|argument|the following arguments|unknown option|no such option)|invalid choice|No such option|unknown (?:hook|mark|option|argument)|not found in `?markers|required plugins?|Unknown config option|unknown command line (?:option|argument)"),
    ("test fixture", r"fixture '(?P<what>\w+)' not found|ScopeMismatch|recursive dependency involving fixture|fixture .{1,60}called directly|duplicate parametrization|function uses no (?:argument|fixture)|In .{1,80}: indirect fixture"),
    ("test collection", r"import file mismatch|ConftestImportFailure|ImportPathMismatchError|while loading conftest|duplicate(?:d)? test|Different tests were collected between"),
    ("test configuration", r"lit(?:\.py)?: .{1,200}: (?:fatal|error): |lit: fatal|unable to (?:load|parse) (?:config|.{1,80}lit)|lit\.(?:site\.)?cfg|unsupported test format|should extend from .{0,60}TestCase|Torch not compiled with CUDA|pytest: error|invalid ini|pyproject\.toml.{0,60}(?:error|invalid)|plugin.{0,40}(?:could not|not) (?:be )?(?:import|load|found|register)"),
    ("test runner bug", r"pluggy\.\w+|assert not crashitem|_pytest\.\w+\.(?:Internal|Outcome)\w*"),
)  # fmt: skip
_WORKERS = _rules(
    UNKNOWN, Rank.CRASH, NONE,
    ("worker crashed", r"worker '?gw\d+'? crashed|worker .{0,30}crashed while running"),
    ("port in use", r"address already in use|EADDRINUSE"),
    ("worker down", r"node down: (?P<what>.{1,60})|replacing crashed worker"),
    ("worker died", r"(?:worker|process|subprocess|rank|child|engine|actor).{0,40}(?:died unexpectedly|terminated (?:unexpectedly|abruptly)|exited unexpectedly|was killed|has died|died with)|DataLoader worker .{0,40}(?:killed|exited)|BrokenProcessPool|process pool was terminated|(?:signal|SIG)\W?(?:9|KILL)\b|^Killed\b"),
)  # fmt: skip
_COLLECTIVES = _rules(
    UNKNOWN, Rank.TIMEOUT, NONE,
    ("collective timeout", r"(?:\b(?:NCCL|RCCL|Gloo)\b|ProcessGroup\w+|collective|watchdog|\bbarrier\b|rendezvous|TCPStore|\bstore\b).{0,160}(?:timeout|timed out|time out)|Watchdog caught"),
)  # fmt: skip
_TIMEOUTS = _rules(
    UNKNOWN, Rank.TIMEOUT, LINE,
    ("job time limit", r"(?:exceeded|reached) the maximum execution time|job .{0,80}(?:exceeded|ran longer|timed out)|CANCELLED .{0,80}DUE TO TIME LIMIT|action '.{1,120}' has timed out|has timed out after \d+ minutes|step .{0,60}timed out|maximum (?:execution|run|job) time"),
    ("test hung", r"Failed: Timeout|\bTimeout ?[>(] ?>?\d|^[+~-]{3,} Timeout [+~-]{3,}$|reached timeout of \d"),
    ("test time limit", r"Timeout ?[>(:]\s?\d|Timeout >|Failed: Timeout|TimeoutExpired|timed out after|reached timeout|Test(?:ing)? timed? ?out|\*\*\*Timeout|timeout: (?:sending|the monitored)|exceeded (?:the )?(?:time ?out|time limit|deadline)|Timeout(?:Error)?\b|\b(?:timed out|timeout)$|timed out\b|hung\b.{0,30}(?:seconds|min)|returning 124"),
    ("cancelled", r"The (?:operation|run|job|workflow) was cancell?ed|Canceling since a higher priority|cancell?ed by|operation was cancell?ed|KeyboardInterrupt"),
)  # fmt: skip
_CRASHES = _rules(
    CODE, Rank.CRASH, NONE,
    ("segfault", r"Segmentation fault|^Stack dump:|\bSIGSEGV\b|signal 11\b|access violation|0xC0000005|invalid memory reference"),
    ("bus error", r"\bBus error\b|\bSIGBUS\b"),
    ("floating point exception", r"Floating point exception|\bSIGFPE\b"),
    ("illegal instruction", r"Illegal instruction|\bSIGILL\b"),
    ("stack overflow", r"stack overflow|stack smashing"),
    ("heap corruption", r"double free|free\(\): invalid|malloc\(\): |corrupted (?:size|double|unsorted)|munmap_chunk|invalid next size"),
    ("abort", r"\bAborted\b|\bSIGABRT\b|\bAbort trap|IOT instruction|terminate called without|signal 6\b"),
)  # fmt: skip
_EXITS = _rules(
    UNKNOWN, Rank.OPAQUE + 5, NONE,
    ("killed", r"exit(?:ed)?(?: with)?(?: exit)?(?: status| code)?:? (?:137|-9)\b|returned non-zero exit status 137"),
    ("time limit", r"exit(?:ed)?(?: with)?(?: exit)?(?: status| code)?:? 124\b"),
)  # fmt: skip
_DIED = _rules(
    CODE, Rank.OPAQUE + 5, NONE,
    ("segfault", r"exit(?:ed)?(?: with)?(?: exit)?(?: status| code)?:? (?:139|-11|3221225477)\b|died with <Signals\.SIGSEGV"),
    ("abort", r"exit(?:ed)?(?: with)?(?: exit)?(?: status| code)?:? (?:134|-6)\b|died with <Signals\.SIGABRT"),
)  # fmt: skip
_TABLE = (
    *_DISK,
    *_MACHINE,
    *_BUSY,
    *_NO_NETWORK,
    *_NETWORK,
    *_CREDENTIALS,
    *_MERGE,
    *_LINT,
    *_GIT,
    *_PACKAGES,
    *_BUILDS,
    *_SHELL,
    *_FILES,
    *_TOOLS,
    *_WORKFLOW,
    *_NOTHING,
    *_TESTS,
    *_WORKERS,
    *_COLLECTIVES,
    *_TIMEOUTS,
    *_CRASHES,
    *_EXITS,
    *_DIED,
)
_ANY = re.compile("|".join(f"(?:{re.sub(r'[(][?]P<[^>]+>', '(?:', rule.pattern.pattern)})" for rule in _TABLE), re.I)
_LEVEL = re.compile(r"^(?:(?:fatal|error|E|ERR!|remote|npm|pip|docker|warning|W|\S{1,80}:\d+)(?: ERR!)?: ?)+", re.I)
_ASKED = tuple(
    (name, re.compile(pattern, re.I))
    for name, pattern in (
        ("images", r"docker|registry|toomanyrequests|manifest|container|ghcr|quay|\bECR\b|image"),
        ("python packages", r"pypi|pythonhosted|\bpip\b|\buv\b|\bwheel|HTTPSConnectionPool"),
        ("system packages", r"\bapt\b|ubuntu|debian|\bdnf\b|\byum\b|\brpm\b|archive\."),
        ("git", r"\bgit\b|\bRPC\b|index-pack|fetch-pack|early EOF|remote end hung up|sideband|upload-pack|clone"),
        ("models", r"hugging ?face|\bhf\b"),
        ("github", r"github|\bactions?\b|octokit|\bAPI\b"),
        ("other packages", r"conda|\bnpm\b|\byarn\b|crates|cargo|maven|gradle|rubygems"),
        ("storage", r"\bs3\b|amazonaws|blob|azure|gcs|googleapis"),
        ("cache", r"cache"),
    )
)
_LOCAL = re.compile(r"localhost|127\.0\.0\.1|\[?::1\]?|0\.0\.0\.0")
_OURS = re.compile(r"triton|mlir|llvm(?!-dev)|torch(?!vision)|_C\b", re.I)
# said in passing by what is going on, not by what went wrong
_PASSING = re.compile(
    r"^(?:retry|retrying|re-?trying|attempt|will retry|info\b|debug\b|note\b|\s*-- |using |set |run |\+ |\$ |# )", re.I
)


def service(line: str, *, exception: bool = False) -> Found | None:
    """What a disk, a network, a registry, git, a runner, a workflow or a test tool says in `line`."""
    if (_PASSING.match(line) and not exception) or not _ANY.search(line):
        return None
    for rule in _TABLE:
        found = rule.pattern.search(line)
        if found:
            what = next((value for value in found.groupdict().values() if value), "")
            hard = rule.rank == Rank.CRASH and rule.cls == CODE
            return Found(rule.kind, rule.rank, _class(rule, line, what), (_key(rule, line, what),), line, hard=hard)
    return None


def _key(rule: Rule, line: str, what: str) -> str:
    if what:
        return mask(base(what))
    if rule.detail == LINE:
        return mask(_LEVEL.sub("", line))
    if rule.detail == WHO:
        return next((name for name, pattern in _ASKED if pattern.search(line)), "")
    return ""


def _class(rule: Rule, line: str, what: str) -> str:
    if (
        rule.cls == INFRA
        and rule.kind in ("connection refused", "connection cut", "network timeout", "no route")
        and _LOCAL.search(line)
    ):
        return UNKNOWN
    if rule.kind == "missing library" and _OURS.search(what):
        return CODE
    return rule.cls
