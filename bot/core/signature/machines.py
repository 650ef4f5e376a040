"""How machines, disks, containers, runners and their services fail: never the fault of the code."""

from __future__ import annotations

from bot.core.signature.model import INFRA, Rank
from bot.core.signature.rule import LINE, NONE, PHRASE, rules

# what a runner keeps for itself, beside what it has checked out
_RUNNERS_OWN = (
    r"[/\\\\](?:_diag[/\\\\]|_staging[/\\\\]|_tool\b|_temp_\w+[/\\\\]|_(?:runner_file_commands|github_\w+)\b|hostedtoolcache\b"
    r"|_work[/\\\\]_\w+|actions?-runners?[/\\\\][\w.-]*(?:[/\\\\](?:bin|externals)\b[^'\"]*)?['\"])"
)
_LEFT = r"[/\\\\](?:_work|workspace|builds?)[/\\\\]"
# a folder that outlives the job; caches of test tools and what stands in a temporary folder are the tests' own
_CACHES = (
    r"(?![^'\"\s]{0,300}(?:pytest|mypy_cache|ruff_cache|__pycache__|AppData)|(?:/var)?/tmp/|/var/folders/)[^'\"\s]{0,300}[/\\\\]"
    r"(?:[\w.]+[-_])*\.?caches?(?:[-_]\w+)*(?:[/\\\\'\"\s:]|$)"
)
DISK = rules(
    INFRA,
    Rank.PHYSICAL,
    NONE,
    (
        "disk full",
        r"No space left on device",
        r"not enough (?:free )?disk space",
        r"not enough space (?:left )?on",
        r"\bENOSPC\b",
        r"out of disk space",
        r"disk (?:is )?full",
        r"insufficient disk space",
        r"There is not enough space on the disk",
    ),
    (
        "disk quota",
        r"Disk quota exceeded",
        r"\bEDQUOT\b",
        r"over (?:its |your )?(?:disk|storage) quota",
    ),
    (
        "disk i/o",
        r"Input/output error",
        r"\bEIO\b",
        r"Remote I/O error",
    ),
    (
        "read-only disk",
        r"Read-only file system",
        r"\bEROFS\b",
    ),
    (
        "node pressure",
        r"(?:node|host|machine) (?:was|is) low on (?:the )?resource:? ?\[?(?P<what>[\w-]+)",
        r"\bnode had condition: \[?(?P<condition>\w+Pressure)",
    ),
    (
        "stale mount",
        r"Stale (?:NFS )?file handle",
        r"[Tt]ransport endpoint (?:is not connected|shutdown)",
        r"\bESTALE\b",
        r"Structure needs cleaning",
    ),
)
MACHINE = rules(
    INFRA,
    Rank.SERVICE,
    PHRASE,
    (
        "shared memory",
        r"insufficient shared memory",
        r"(?:shm|shared memory).{0,40}(?:too small|not enough)",
        r"killed by signal: Bus error",
        r"unable to (?:open|write|mmap) shared memory",
    ),
    (
        "device node",
        r"(?P<what>/dev/(?:kfd|dri|nvidia|infiniband|shm|fuse|kvm)\b[\w/-]{0,40}).{0,60}(?:denied|not permitted"
        r"|No such|cannot"
        r"|fail|busy|not found|does not exist)",
        r"(?:Unable|cannot|could not|fail).{0,40}(?P<node>/dev/(?:kfd|dri|nvidia|infiniband|fuse|kvm)\b[\w/-]{0,40})",
    ),
    (
        "gpu count",
        r"(?:fail\w*|unable|could not|couldn't|cannot|did(?: not|n't)) (?:to )?(?:detect|find|see|access"
        r"|enumerate)\b.{0,40}\bGPUs?\b"
        r".{0,40}\b(?:runner|host|machine|node)\b",
        r"\bGPUs? (?:on|in) (?:this|the) (?:runner|host|machine|node)\b.{0,60}\b(?:but|only|found|detected|lists?"
        r"|missing)\b",
        r"\bnvidia-installer\b",
    ),
    (
        "network mount",
        r"(?:No such file or directory|cannot access|not found|unavailable).{0,20}"
        r"(?:/[\w.-]{1,40}){0,3}/(?:gvfs|nfs|efs|fsx|smb|cifs|lustre|gpfs|cvmfs|afs)/(?P<what>[^'\s]+)",
    ),
    (
        "host memory",
        r"Cannot allocate memory",
        r"oom-?kill",
        r"OOM[- ]?Killed",
        r"Out of memory: Killed",
        r"\bENOMEM\b",
        r"killed by the (?:OOM|kernel)",
        r"ran out of (?:host )?memory",
        r"(?:system is (?:running )?|node running )low on memory",
        r"pthread_create failed: Resource",
        r"Out of memory, malloc failed",
    ),
    (
        "runner lost",
        r"(?:runner|agent|node|machine|instance|pod).{0,60}(?P<what>lost communication|lost connection|was lost"
        r"|has been lost|went away|is offline|went offline|stopped responding|failed to come online)",
        r"(?:runner|agent|machine|pod).{0,60}(?P<what>not reachable|unreachable|disconnected|is unhealthy"
        r"|did(?: not|n't) (?:respond|connect))",
        r"(?P<what>stopped hearing) from",
        r"\b(?:agent|runner) process .{0,60}(?P<ended>exited unexpectedly)",
        r"(?P<healthy>healthy network connection)",
        r"(?P<what>lost (?:communication|connection|contact)) (?:with|to) (?:the|a) (?:remote )?(?:server|runner"
        r"|agent|node|daemon|host)",
        r"\b(?:runner|agent|node|instance) (?P<lost>lost|disappeared|went offline|died)\b",
    ),
    (
        "runner stopped",
        r"(?:runner|agent|node|instance|pod|machine).{0,40}received a (?P<what>shutdown)",
        r"(?:runner|agent|node|instance|pod|machine).{0,40}(?P<what>shutting down)",
        r"(?:runner|agent|node|instance|pod|machine).{0,40}(?:was|has been)"
        r" (?P<what>shut ?down|stopped(?! responding)|terminated|deallocated|evicted|preempted|reclaimed|deleted)",
        r"(?P<what>shutdown) signal",
        r"(?P<what>spot (?:instance )?(?:interruption|termination))",
        r"(?:instance|node|vm|job|task|machine|spot).{0,30}(?P<what>preempt)",
        r"(?P<what>NODE_?FAIL|NODE FAILURE)",
        r"CANCELLED .{0,80}DUE TO (?P<what>PREEMPT)",
        r"\breason\W{0,20}(?P<what>Evicted)",
        r"^(?P<what>Evicted)\b",
    ),
    (
        "runner error",
        r"(?:hosted|self-hosted) runner (?P<what>encountered|failed)",
        r"runner.{0,30}(?P<did>encountered an error|internal error|failed to (?:start|initiali[sz]e|provision"
        r"|acquire))",
        r"(?:could not|unable to|failed to) (?P<get>acquire|provision|allocate|start|schedule) (?:a |the "
        r"|an )?(?:runner|agent|machine|node|instance|vm|pod)",
        r"job was not (?P<acq>acquired) by Runner",
        r"(?P<session>session) for this (?:runner|agent)",
        r"(?P<fit>No) (?:compatible|suitable|idle|free) (?:runner|agent|machine)s?",
        r"(?P<none>No) (?:hosted )?(?:runner|agent|machine)s? (?:matching|available|found|online|could be)",
        r"\b(?P<none>no|any) (?:\w{1,20} )?(?:runner|agent|machine|executor)s? (?:(?:of|with|for) .{1,60} )?"
        r"(?:(?:is|are) )?(?:online|connected|registered)\b",
        r"(?P<wait>waiting) for a (?:hosted )?runner",
    ),
    (
        "ci service",
        r"(?:GitHub Actions|Azure Pipelines|actions service|pipelines? service).{0,60}(?:unavailable|error|outage"
        r"|degraded)",
        r"internal (?:server )?error.{0,40}(?:correlation|try again)",
        r"An error occurred while provisioning",
        r"We are currently experiencing",
        r"\bservices? (?:aren't|are not|isn't|is not) available right now",
        r"has encountered an internal error when running",
    ),
    (
        "cache service",
        r"(?:reserve|save|restore|download)\w* ?cache.{0,80}(?:fail|unable|error|respond)",
        r"(?:fail|unable)\w* (?:to )?(?:save|restore|reserve|download)\w* (?:the )?cache",
        r"cache (?:service|server).{0,60}(?:respond|fail|unavail|error|down)",
        r"sccache: error: (?P<what>[^:,]{1,80}(?:: [^:,{]{1,100}){0,2})",
        r"sccache.{0,80}(?:server|timed out|startup|couldn't connect)",
    ),
    (
        "artifact service",
        r"(?:fail|unable)\w* (?:to )?(?:create|upload|finali[sz]e|download|list)\w* ?artifact.{0,120}"
        r"\b(?P<what>E(?:NOTFOUND|CONN[A-Z]+|TIMEDOUT|AI_AGAIN|PIPE|(?:HOST|NET)UNREACH))\b",
        r"(?:fail|unable)\w* (?:to )?(?:create|upload|finali[sz]e|download"
        r"|list)\w* ?artifact(?!.{0,200}\b409\b).{0,120}(?:respon"
        r"|request|ECONN|timeout|timed|5\d\d|network|service|retry|attempt)",
        r"artifact (?:upload|download) (?:failed|timed out)",
        r"error (?:up|down)loading (?:the |an? )?artifacts?\b",
    ),
    (
        "cluster event",
        r"\b(?P<what>FailedScheduling|FailedMount|FailedAttachVolume|FailedCreatePodSandBox|NodeNotReady"
        r"|NetworkNotReady|FailedKillPod"
        r"|ErrImagePull|ImagePullBackOff|SystemOOM|FreeDiskSpaceFailed|ImageGCFailed|ContainerGCFailed"
        r"|NodeHasDiskPressure|TaintManagerEviction"
        r"|Multi-Attach error)\b",
        r"Back-off (?P<what>pulling) image",
    ),
    (
        "container start",
        r"(?:unable|failed) to (?P<what>retrieve|attach|inspect|remove|prune|restart) (?:the |a )?container\b",
        r"OCI runtime create failed(?!.{0,200}executable file not found)",
        r"nvidia-container-cli",
        r"failed to create (?:shim |containerd )?task(?!.{0,200}executable file not found)",
        r"error during container init",
        r"Docker (?:start|create|run) fail",
    ),
    (
        "docker socket",
        r"permission denied while trying to connect to the Docker",
        r"docker\.sock.{0,60}denied",
    ),
    (
        "docker daemon",
        r"Cannot connect to the Docker daemon",
        r"docker(?: daemon)? (?:is not running|failed to start)",
        r"docker\.sock.{0,60}(?:refused|no such)",
        r"failed to (?:register layer|start (?:shim|container))",
        r"failed to create (?:shim|containerd) task(?!.{0,200}executable file not found)",
        r"containerd.{0,40}(?:unavailable|fail)",
        r"error during connect",
        r"container not found \(\"",
    ),
    (
        "missing library",
        r"(?P<what>lib[\w+-]+\.so(?:\.\d+)*): cannot open shared object file",
        r"Library not loaded: \S{0,200}?(?P<dylib>lib[\w+-]+)[\w.]*\.dylib",
        r"(?:couldn't|could not|cannot|can't|unable to) find (?P<find>lib[\w+-]+\.so)",
        r"(?:cannot|could not) (?:open|load|find)(?: shared)? (?:object|library).{0,20}?(?P<other>lib[\w+-]+\.so)",
    ),
    (
        "runner's folders",
        rf"the file ['\"][^'\"]{{0,300}}{_RUNNERS_OWN}[^'\"]{{0,300}}['\"]? already exists",
        rf"could not find (?:a part of the path|file) (?!.{{0,300}}action\.ya?ml)['\"][^'\"]{{0,300}}{_RUNNERS_OWN}",
        rf"access to the path ['\"][^'\"]{{0,300}}(?:{_RUNNERS_OWN}|{_LEFT})[^'\"]{{0,300}}['\"]? is denied",
        rf"the directory is not empty\W{{0,5}}[^'\"]{{0,300}}(?:{_RUNNERS_OWN}|{_LEFT})",
        rf"(?:cannot|could not) create ['\"][^'\"]{{0,300}}{_RUNNERS_OWN}.{{0,300}}"
        r" because a file or directory with the same",
        r"cannot create directory ['‘]/__\w(?:/[^'’]{0,100})?['’]: permission denied",
    ),
    (
        "file held",  # of Windows: whoever has a file open keeps all others from removing it
        r"\b(?:files?|folder|directory|workspace|path|handle)\b.{0,400}\b(?:being used|in use|held open|opened|locked)"
        r" by another (?:process|program|application)\b(?! \w)",
        r"\bunable to delete ['\"][^'\"]{1,300}['\"]\. Tried \d+ times\b",
        r"\bEBUSY: resource busy or locked\b",
        r"\bsharing violation\b",
        r"\bcannot delete workspace\b",
    ),
    (
        "cache denied",
        rf"(?:permission denied|EACCES|access (?:is )?denied)\b[^'\"/]{{0,60}}['\"]{_CACHES}",
        rf"(?:cannot|could not|unable to|failed to|can't|couldn't) (?:\w+ ){{1,4}}['\"‘]?{_CACHES}.{{0,200}}"
        r"(?:permission denied|EACCES|not permitted)",
        rf"\b(?:mkdir|open|unlink|rename|chmod|stat) ['\"]?{_CACHES}[^'\"]{{0,200}}: permission denied",
        r"\bcache (?:folder|dir|directory|path|location)\b.{0,200}\b(?:not writable|isn't writable|not owned by"
        r"|no write (?:access|permission)|permission denied)",
    ),
    (
        "workspace",  # what an earlier job left on the machine, of another user's
        r"(?:cannot remove|failed to remove|unlink|rmdir|scandir|rm -rf|unable to (?:clean|delete|remove)).{0,200}"
        rf"{_LEFT}.{{0,200}}(?:permission denied|not permitted|is denied|EACCES|EPERM|busy)",
        rf"(?:EACCES|EPERM)[^']{{0,80}}(?:unlink|rmdir|rm|scandir|lstat) '[^']{{0,200}}{_LEFT}",
        r"unable to be removed.{0,80}(?:EACCES|EPERM|EBUSY)",
    ),
    (
        "system call",
        r"(?:errno 1: |\[Errno 1\]|\bEPERM\b).{0,40}",
        r"Operation not permitted",
    ),
    (
        "slow clock",
        r"certificate is not yet valid",
        r"clock skew",
    ),
)
BUSY = rules(
    INFRA,
    Rank.SERVICE,
    LINE,
    (
        "device busy",
        r"Device or resource busy",
        r"(?:Unable to create|could not lock).{0,200}\.lock'?:? ?(?:File exists)?",
        r"could not lock config file\b.{0,300}: File exists",
        r"dpkg was interrupted",
        r"another installation is (?:already )?in progress",
        r"already in use by (?:another )?process",
        r"Could not get lock (?P<lock>[\w./-]+)",
        r"is (?:held|locked) by (?:another )?process",
    ),
)
