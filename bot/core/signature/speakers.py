"""Who speaks: what a scheduler, a container runtime, a driver or a kernel calls an error is the machinery's trouble.

A line's speaker stands at its start. What it says of its own business is infra in whatever words; what it says of how
it was called is the caller's mistake, and what it says of the program that it ran is the program's affair.
"""

from __future__ import annotations

import re

from bot.core.signature.mask import mask
from bot.core.signature.model import CODE, HARNESS, INFRA, UNKNOWN, Found, Rank

_KINDS = (
    (
        "scheduler",
        r"mpirun|mpiexec|prte\w*|orted?|srun|salloc|sbatch|squeue|scontrol|slurm(?:stepd|d|ctld|dbd|_\w+)?|qsub"
        r"|bsub|pbs_\w+|condor_\w+|flux(?:-\w+)*"
        r"|kubelet|kube-[\w-]+|k3s|nomad|FailedScheduling|FailedMount|FailedAttachVolume|FailedCreatePodSandBox",
    ),
    (
        "container",
        r"docker(?:d|-proxy)?|Error response from daemon|containerd(?:-shim[\w-]*)?|podman|buildah|runc|crun|cri-?o"
        r"|conmon"
        r"|nerdctl|buildkitd?|nvidia-c(?:ontainer[\w-]*|tk)|enroot[\w-]*|pyxis|apptainer|singularity|devmapper"
        r"|overlayfs|cni|colima|lima",
    ),
    (
        "driver",
        r"NVRM|NVML|nvidia(?:-(?!c(?:ontainer|tk))[\w-]+)?|nv-[\w-]+|dcgmi?|amdgpu|amdkfd|kfd\w*|rocm[-_]?smi\w*"
        r"|rocminfo"
        r"|amd-?smi\w*|hl-smi|modprobe|insmod|depmod|dkms|xpu-smi|xpumcli|i915|\[drm[^\]]*\]+"
        r"|hsa api call failure[^:]{0,80}|nvsm|fabricmanager",
    ),
    (
        "kernel",
        r"kernel|earlyoom|EXT4-fs|XFS|BTRFS|nvme\w*|mlx\d\w*|ib_\w+|pcieport|EDAC|mce|md/\w+|ata\d[\d.]*|sd[a-z]\d*"
        r"|blk_\w+"
        r"|Lustre\w*"
        r"|NFS|nfs\d?|systemd(?:-\w+)?|udevd?|watchdog(?=: BUG)|thermal|ACPI|DMAR|IOMMU|AMD-Vi|Memory cgroup",
    ),
    (
        "agent",
        r"ccache|distcc|icecc|goma|reclient|buildkite-agent|gitlab-runner|hudson[\w.]*|jenkins[\w.]*|remoting|jnlp"
        r"|actions-runner|cloud-init"
        r"|amazon-ssm-agent"
        r"|kex_\w+|ssh_\w+|dirmngr",
    ),
    (
        "transfer",
        r"curl|wget|ssh(?:-\w+)?|scp|sftp|rsync|rclone|aria2c|azcopy|gsutil|s3cmd|mount(?:\.\w+)*|umount(?:\.\w+)*"
        r"|fusermount\d?|gpg|E",
    ),
)
# a step's own commands
_SHELL = re.compile(
    r"^(?P<tool>jq|parse error|yq|sed|awk|cp|mv|rm|cat|cd|ls|find|grep|mkdir|chmod|chown|ln|unzip|zip|xargs|tee|head"
    r"|tail|sort|cut"
    r"|date|env|sudo|install|source|pushd|popd|sha256sum|base64|envsubst|realpath|readlink|stat|touch): (?P<said>.+)$"
)
# such of them as are words
_WORDS = frozenset(
    ["find", "cat", "cut", "sort", "stat", "touch", "head", "tail", "tee", "date", "install", "ls", "env", "cp", "mv"]
)
_OF_FILES = re.compile(
    r"no such (?:file|command)|cannot \w+(?: \w+)* ['‘/]|invalid (?:option|\w+ ['‘])|missing (?:file |destination )"
    r"|(?:missing|extra) operand|unrecognized option|permission denied"
    r"|(?:not|is) a directory|unknown (?:option|predicate)"
    r"|illegal option|error (?:reading|writing)|read-only",
    re.I,
)
_SPEAKER = re.compile(
    r"^(?:kernel: )?(?:\[ *\d+\.\d+\] )?(?:fatal: |ERROR:|Error: |error: |Warning )?(?:"
    + "|".join(f"(?P<{name}>{words})" for name, words in _KINDS)
    + r")(?: error| warning)?(?:\[\d+\]| ?\(\w{1,20}\)|-\d+| (?:[\da-f]{4}:)?[\da-f]{2}:[\da-f]{2}\.\d"
    r"| \(device [\w-]+\))?(?:: "
    r"| (?=[\[*]))(?P<said>.+)$"
)
# speakers whose names are also those of programs and words: they have to speak of machines
_NAMESAKES = re.compile(
    r"^(?:kernel|thermal|nvidia\S*|amdgpu\S*|amdkfd|flux\S*|nomad|singularity|remoting|lima|colima|goma|reclient"
    r"|i915|sd\w*|ib_\w+|mlx\w+|blk_\w+|nv-\S+|kfd\S*|rclone|curl|wget|ssh\S*|scp|sftp|rsync|gpg|runc|crun|install"
    r"|mount|dkms|mce|e|hudson\S*|jenkins\S*"
    r"|kube-\S+|nvme\w*|ata\S+|md/\w+|xfs|nfs\d?|iommu|acpi)$"
)
_OF_MACHINES = re.compile(
    r"\b(?:devices?|drivers?|hosts?|nodes?|gpus?|cpus?|pci\w*|nvlink|nvml|firmware|fabric|module|memory|oom\w*"
    r"|disks?|volumes?"
    r"|mount(?:ed|ing| point)|fs|options?|urls?|peer|resolve\w*|ssl|tls|http\S*|keys?|files?|directory|recv|receive\w*"
    r"|filesystem|I/O|sectors?|journal|controller|controllers|port|link|links|sockets?|connect\w*|network|timeout"
    r"|timed out|server|service|daemon|process|processes|pid|cgroup|container|image|registry|agent|channel|queue|ring"
    r"|reset|xid|ecc|temperature|power|clock|lockup|hung|stuck|kill\w*|permission|fetch|mirror|lock|mode|bus"
    r"|interrupt|offline"
    r"|watchdog|modprobe|library|version|space|blocked|page|corrupt\w*|vm|slave|certificate|token|auth\w*)\b",
    re.I,
)
_OF_TESTS = re.compile(r"\b(?:tests?|test_\w+|cuda:\d)\b")
_UCX = re.compile(
    r"^(?:\[\S{1,80}(?: {1,4}:\d+)?\] {1,4}\S{1,200}:\d+ {1,4}(?:UCX|UCC|OFI|PSM\d?) {1,4}(?:ERROR"
    r"|FATAL) {1,4}|libfabric:\S{1,200}<(?:warn|error)> ?)(?P<said>.+)$"
)
_NCCL = re.compile(r"^(?:(?:\S{1,200}:\d+:\d+ )?\[\d+\] )?(?:\S{1,200}:\d+ )?(?:NCCL|RCCL) WARN (?P<said>.+)$")
_OF_NETWORKS = re.compile(r"\bibv?_\w+|\b(?:connect|bind|accept|socket|recv|send|poll)\w*\b|\bIB\b|NET/", re.I)
# how the speaker was called
_CALLED = re.compile(
    r"^usage|returned error: 4(?!08|29)\d\d|unrecognized|unknown (?:flag|option|command|shorthand|argument|runtime)"
    r"|invalid (?:option|argument"
    r"|reference|partition"
    r"|account|qos|spec|mount|publish|format|value|time|feature|characters)|is not a \w+ command|syntax error"
    r"|requires? (?:at least|exactly|a )|no such (?:option|command)|must (?:be|specify)|not specified"
    r"|missing (?:operand|argument|url)"
    r"|URL (?:using|rejected|malformed)|illegal|bad/|bad (?:parameter|request|argument|flag)|malformed",
    re.I,
)
_ABSENT = re.compile(
    r"no such (?:file|container|image|object|volume|network|service)|does not exist|not found|already (?:exists"
    r"|in use by container)"
    r"|permission denied",
    re.I,
)
# how the program ended that the speaker ran
_RAN = re.compile(
    r"exit(?:ed)?\b.{0,20}\b(?:code|status|with)|\bexited\b|step (?:aborted|terminated)|core dumped|task \d|tasks \d"
    r"|terminated by signal|job step \S+ (?:aborted|cancelled)|\bCANCELLED\b|returned an error code"
    r"|Problem executing scripts",
    re.I,
)
_TRAPPED = re.compile(r"\bsegfault at\b|\bgeneral protection\b|\btrap (?:invalid opcode|int3|divide)|\btraps: ", re.I)
_TROUBLED = re.compile(
    r"error|fail|fault|time[d -]?out|unable|cannot|can't|can not|couldn't|could not|not (?!set\b)|n't |lost|reset"
    r"|corrupt|hung|stuck"
    r"|unrecoverable|dead|down\b|panic|abort|refused|denied|exceed|overflow|expired|unexpected|\bbad\b|missing"
    r"|\bno \b|less than"
    r"|unauthorized|warn|kill|unreachable|throttl|lockup|\bXid\b|insufficient|low (?:on|memory)|full\b|invalid"
    r"|disconnect|reject|inactive|\bclosed\b",
    re.I,
)
_LONGEST = 600


def speaker(line: str) -> Found | None:
    """What the machinery says of itself in `line`, None where nothing of it speaks or it says that all is well."""
    line = line[:_LONGEST]
    if found := _NCCL.match(line):
        cls = INFRA if _OF_NETWORKS.search(found["said"]) else UNKNOWN
        return Found("machinery", Rank.SERVICE, cls, ("nccl", mask(found["said"])), line)
    if found := _UCX.search(line):
        return Found("machinery", Rank.SERVICE, INFRA, ("ucx", mask(found["said"])), line)
    if (found := _SHELL.match(line)) and (found["tool"] not in _WORDS or _OF_FILES.search(found["said"])):
        return Found("shell", Rank.SERVICE, HARNESS, (found["tool"], mask(found["said"])), line)
    found = _SPEAKER.match(line)
    if found is None:
        return None
    name = next(kind for kind, _ in _KINDS if found[kind])
    said = found["said"]
    if name in ("driver", "kernel") and _TRAPPED.search(said):
        return Found("segfault", Rank.CRASH, CODE, ("",), line, hard=True)
    if name in ("scheduler", "container", "transfer") and _RAN.search(said):
        return Found("exit", Rank.WRAPPER + 5, UNKNOWN, ("exit",), line, by_test=True)
    if not _TROUBLED.search(line) and not _CALLED.search(said):
        return None
    if _NAMESAKES.match(found[name].lower()) and (not _OF_MACHINES.search(said) or _OF_TESTS.search(said)):
        return None
    return Found("machinery", Rank.SERVICE, _whose(name, said), (found[name].lower(), mask(said)), line)


def _whose(name: str, said: str) -> str:
    if name in ("driver", "kernel", "agent"):
        return INFRA
    if _CALLED.search(said):
        return HARNESS
    if _ABSENT.search(said):
        return UNKNOWN if name == "scheduler" else HARNESS
    return INFRA
