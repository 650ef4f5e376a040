"""Faults of GPUs and their drivers: they are asynchronous, so the fault alone is the cause, not where it was seen."""

from __future__ import annotations

import re

from bot.core.signature.mask import mask
from bot.core.signature.model import CODE, HARNESS, INFRA, UNKNOWN, Found, Rank

# what runtimes call one fault: (its name, its class, words of its message or of its enumerator)
_FAULTS: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (name, cls, re.compile(pattern, re.I))
    for name, cls, pattern in (
        ("hardware", INFRA, r"hardware error|uncorrectable|_contained\b|error_?contained"),
        ("illegal-address", CODE, r"illegal memory access|illegal_?address"),
        ("misaligned-address", CODE, r"misaligned_?\s?address"),
        ("illegal-instruction", CODE, r"illegal_?\s?instruction"),
        ("invalid-address-space", CODE, r"invalid_?\s?address_?\s?space"),
        ("invalid-program-counter", CODE, r"invalid program counter|invalid_?pc\b"),
        ("device-assert", CODE, r"device-side assert|error_?assert\b"),
        ("launch-timeout", UNKNOWN, r"launch timed out|launch_?timeout"),
        ("launch-resources", CODE, r"too many resources requested|launch_?out_?of_?resources"),
        ("launch-failure", CODE, r"(?:unspecified )?launch_?\s?fail(?:ure|ed)"),
        ("out-of-memory", CODE, r"out_?\s?of_?\s?memory|memory_?allocation|alloc_failed"),
        ("invalid-configuration", CODE, r"invalid_?\s?configuration"),
        ("device-function", CODE, r"invalid_?\s?device_?\s?function"),
        ("no-kernel-image", CODE, r"no kernel image|no_?kernel_?image|no_?binary_?for_?gpu|no binary for"),
        ("kernel-image-invalid", CODE, r"kernel image is invalid|invalid_?(?:kernel_?)?image"),
        ("resource-handle", CODE, r"invalid_?\s?(?:resource_?\s?)?handle"),
        ("device-ordinal", HARNESS, r"invalid device ordinal|error_?invalid_?device\b"),
        (
            "no-device",
            INFRA,
            r"no (?:cuda|rocm|hip|gpu)\S* (?:gpus? )?(?:\w+ )?(?:device|gpu|are)|(?:\b|error_?)no_?device|no (?:gpu"
            r"|device)s? (?:were )?(?:found"
            r"|avail|detect)",
        ),
        (
            "driver-too-old",
            INFRA,
            r"driver version is insufficient|insufficient_?driver|driver\S* (?:is )?too old",
        ),
        ("mps", INFRA, r"\bMPS (?:server|client|control|daemon)|error_?mps"),
        (
            "driver-mismatch",
            INFRA,
            r"driver(?:/library version|_?\s?mismatch)|lib_rm_version_mismatch|unsupported display driver"
            r"|compat_?not_?supported|incompatible kernel and userspace",
        ),
        ("ecc", INFRA, r"\becc\b(?! on)|ecc_?uncorrect"),
        ("device-unavailable", INFRA, r"busy or unavailable|devices_?unavailable"),
        ("system-not-ready", INFRA, r"system (?:is )?not (?:yet )?(?:initialized|ready)|system_?not_?ready"),
        ("device-lost", UNKNOWN, r"device_lost"),
        ("lost-device", INFRA, r"fallen off the bus|gpu is lost|gpu_?is_?lost|nvlink|reset required"),
        ("driver-unloading", CODE, r"driver shutting down|deinitialized|cudart_?unloading"),
        ("context-destroyed", CODE, r"context is destroyed|context_?is_?destroyed"),
        ("invalid-context", CODE, r"invalid_?\s?(?:device_?\s?)?context"),
        ("not-initialised", UNKNOWN, r"not_?\s?initialized|initialization_?\s?error|error_?uninitialized"),
        ("stream-capture", CODE, r"stream_?\s?captur|is capturing"),
        ("system-error", UNKNOWN, r"unhandled system error"),
        ("unhandled-error", UNKNOWN, r"unhandled (?:cuda|hip) error"),
        ("remote-error", UNKNOWN, r"remote process exited or"),
        ("internal-error", UNKNOWN, r"^internal error\b"),
        ("peer-access", UNKNOWN, r"peer_?\s?access"),
        ("invalid-argument", CODE, r"invalid_?\s?(?:argument|value)"),
        ("not-supported", CODE, r"not_?\s?supported"),
        ("unknown-error", UNKNOWN, r"unknown_?\s?error|error_?unknown"),
    )
)
_NOT_WHY = frozenset(
    {"system-error", "unhandled-error", "remote-error", "internal-error"}
)  # what else is said tells it
_API = (
    r"(?P<{0}>CUDA|HIP|ROCm|HSA|SYCL|XPU|Level[ -]?Zero|ZE|NPU|MUSA|cuBLAS|cuDNN|cuFFT|cuSPARSE|NCCL|RCCL|rocBLAS"
    r"|MIOpen"
    r"|hipBLAS)"
)
_TOLD = re.compile(
    r"(?:Triton Error \["
    + _API.format("triton")
    + r"\]|\b"
    + _API.format("api")
    + r"(?: (?:driver|runtime|kernel|launch|API))?(?: call)?[ _](?:error|failure|failed)"
    r"(?: in:? [^:,]{1,120}(?::\d+)?| \(?\d+\)?)?)\s*[:=,]\s*(?P<what>.{3,300})",
    re.I,
)
_ENUM = re.compile(
    r"\b(?P<api>cuda|hip|mc|musa)Error(?P<name>[A-Z]\w+)|\b(?P<api2>CUDA|HIP|HSA_STATUS|NVML|CUBLAS_STATUS"
    r"|CUDNN_STATUS|CUFFT|CUSPARSE_STATUS"
    r"|HIPBLAS_STATUS|ROCBLAS_STATUS|NVRTC|ZE_RESULT|UR_RESULT|PI)_(?:STATUS_|RESULT_)?ERROR_?(?P<name2>[A-Z]\w+)"
    r"|\b(?P<api3>CUBLAS|CUDNN|CUSPARSE|CUSOLVER|HIPBLAS|ROCBLAS|MIOPEN)_STATUS_(?P<name3>(?!SUCCESS)[A-Z]\w+)"
)
_RETURNED = re.compile(r"\b(?P<api>cud?a|hip)\w{0,40}\b.{0,200}[=:] ?\d{1,4} \((?P<what>[a-z][^)]{5,80})\)", re.I)
_MANAGEMENT = re.compile(r"\b(?P<api>AMDSMI|RSMI|NVML|DCGM)_(?:STATUS|ERROR|ST)_(?P<name>(?!SUCCESS|OK\b)[A-Z]\w+)")
_MEMORY_FAULT = re.compile(
    r"Memory access fault by GPU(?: node)?[^.]{0,120}on address.{0,60}?(?:Reason: (?P<reason>[^.]{1,80}))?\.?\s*$", re.I
)
_GPU_HANG = re.compile(r"\bHW Exception by GPU\b|\breason ?: ?GPU Hang", re.I)
_OUT_OF_MEMORY = re.compile(r"\b(?P<api>CUDA|HIP|XPU|NPU|MUSA) out of memory", re.I)
_SIZE = r"(\d{1,9}(?:\.\d{1,6})?) ?([KMGT]i?B|B|bytes)\b"
_SIZES = {
    name: re.compile(pattern, re.I)
    for name, pattern in (
        ("wanted", rf"Tried to allocate {_SIZE}"),
        ("total", rf"total capacity of {_SIZE}|{_SIZE} total capacity"),
        ("free", rf"{_SIZE} (?:is )?free"),
        ("process", rf"this process has {_SIZE} memory in use"),
        ("allocated", rf"{_SIZE} (?:is|already) allocated"),
        ("reserved", rf"{_SIZE} (?:is )?reserved"),
    )
}
_UNITS = {"B": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}
_LITTLE, _MOST = 0.25, 0.7
_GPU_GONE = re.compile(
    r"(?P<nvml>Failed to initialize NVML|nvidia-smi has failed|couldn't communicate with the NVIDIA driver)"
    r"|\bXid\b(?:.{0,60}?[:,] |=)(?P<xid>\d{1,3})\b"
    r"|(?P<bus>\bfallen off the bus)|(?P<lost>Unable to determine the device handle for GPU)"
    r"|\bError (?P<system>80[2-9]|304|34)\b: "
    r"|(?P<count>Unexpected error from (?:cuda|hip)GetDeviceCount)|(?P<unloaded>module is not loaded)"
    r"|(?P<old>(?:NVIDIA|CUDA|ROCm|AMD) driver on (?:your|this) \w+ is (?:too old|out of date))"
    r"|(?P<driver>\bdriver (?:is )?not initiali[sz]ed|\bdriver initiali[sz]ation failed|hsa api call failure"
    r"|(?:failed to load|could not insert|unable to load) .{0,40}(?:nvidia|amdgpu|kernel module)"
    r"|module build on kernel)"
    r"|(?P<toolkit>could not select device driver)"
    r"|(?P<none>No devices were found|No CUDA GPUs are available|no NVIDIA (?:GPU|driver)|Found no NVIDIA driver"
    r"|No (?:HIP|ROCm) GPUs"
    r"|no ROCm-capable device)",
    re.I,
)
_UNKNOWN_ERROR = re.compile(r"\b(?P<api>CUDA|HIP) unknown error\b", re.I)
_NO_DRIVER = re.compile(r"\b0 active drivers\b")
_ROCM = re.compile(r"\b(?:hip|rocm|amd(?:gpu)?|hsa)\b", re.I)
# what tells nothing but the state of the machine that it stands on
_ASKS = re.compile(r"^Call returned HSA_STATUS_ERROR")
_POLITE = re.compile(r"^(?:an? )|(?: (?:was|were) encountered.*| when calling .*)$", re.I)
_CODE = re.compile(r"^(?:\(?\d+\)?\s*[-,:]?\s*|Code: \d+,?\s*|Mess\w+:\s*)+", re.I)


def device_fault(line: str) -> Found | None:
    """The fault of a device, a driver or a vendor's library that `line` tells."""
    if found := _MEMORY_FAULT.search(line):
        return _found("GPU", "memory-access-fault", CODE, line, mask(found["reason"] or ""))
    if _GPU_HANG.search(line):
        return _found("GPU", "hang", UNKNOWN, line)
    if found := _OUT_OF_MEMORY.search(line):
        return _out_of_memory(found["api"], line)
    if found := _GPU_GONE.search(line):
        names = {
            "nvml": "nvml",
            "bus": "xid 79",
            "lost": "lost",
            "old": "driver-too-old",
            "toolkit": "container-toolkit",
            "driver": "driver",
            "unloaded": "driver",
            "count": "unusable",
        }
        told = next(name for name, value in found.groupdict().items() if value)
        name = names.get(told, "no-device")
        if told in ("xid", "system"):
            name = f"{told} {found[told]}"
        known = _known(line)
        maker = _maker(name, line)
        return _found("GPU", known[0] if known and name == "nvml" else name, INFRA, line, maker)
    if _ASKS.search(line):
        return _found("GPU", "driver", INFRA, line, "amd")
    if found := _UNKNOWN_ERROR.search(line):
        return _found(found["api"], "unknown-error", UNKNOWN, line)
    if _NO_DRIVER.search(line):
        return _found("GPU", "no driver", UNKNOWN, line)
    if found := _MANAGEMENT.search(line):
        known = _known(f"error {found['name']}")
        return _found("GPU", known[0] if known else found["name"].lower(), INFRA, line)
    if found := _TOLD.search(line):
        what = _CODE.sub("", found["what"])
        return _named(found["triton"] or found["api"], what, line)
    if found := _ENUM.search(line):
        name = found["name"] or found["name2"] or found["name3"]
        api = (found["api"] or found["api2"] or found["api3"]).split("_")[0]
        what = f"error {name}"
        return _named(api, what if _known(what) or not _known(line) else line, line)
    if (found := _RETURNED.search(line)) and _known(found["what"]):
        return _named("CUDA" if found["api"].lower().startswith("cu") else "HIP", found["what"], line)
    return None


def _out_of_memory(api: str, line: str) -> Found:
    if _held_by_others(line):
        return _found("GPU", "memory-of-others", INFRA, line)
    return _found(api, "out-of-memory", CODE, line)


def _held_by_others(line: str) -> bool:
    """Whether by the figures of `line` a device's memory is all but taken, hardly any of it by who asks for more."""
    sizes = {name: _size(pattern.search(line)) for name, pattern in _SIZES.items()}
    total, free, wanted = sizes["total"], sizes["free"], sizes["wanted"]
    own = sizes["process"] or (sizes["allocated"] or 0) + (sizes["reserved"] or 0)
    if not total or free is None or not wanted or not (sizes["process"] or sizes["allocated"]):
        return False
    return wanted + own <= total * _LITTLE and total - free - own >= total * _MOST


def _size(found: re.Match[str] | None) -> float | None:
    """Bytes."""
    if found is None:
        return None
    number, unit = (value for value in found.groups() if value)
    return float(number) * _UNITS[unit[0].upper()]


def _maker(name: str, line: str) -> str:
    """Whose device it is that is not there, "" where that is not told or plays no part."""
    return "amd" if name in ("no-device", "driver") and _ROCM.search(line) else ""


def _known(text: str) -> tuple[str, str] | None:
    return next(((name, cls) for name, cls, pattern in _FAULTS if pattern.search(text)), None)


def _named(api: str, what: str, line: str) -> Found:
    known = _known(what)
    if known:
        # what the machine lacks is one cause whoever asks for it
        return _found("GPU" if known[1] == INFRA else api, known[0], known[1], line, _maker(known[0], line))
    return _found(api, mask(_POLITE.sub("", what)), CODE, line)


def _found(api: str, name: str, cls: str, line: str, more: str = "") -> Found:
    rank = Rank.SPOKEN - 4 if name in _NOT_WHY else Rank.FAULT
    return Found("device", rank, cls, (api.upper(), name, more), line, hard=cls == CODE)
