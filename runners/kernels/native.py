"""On this machine's GPU: what it can't check, what a fault leaves of it, and times by its own clock (CUDA events)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from runners.kernels.spec import Case, Timing

WARMUP, SAMPLES = 10, 50
_FLUSHED = 256 * 1024 * 1024  # more than any second-level cache
_GIB = 1024**3


def lacking(case: Case) -> str:
    """What this GPU lacks for the case; empty where nothing."""
    import torch

    if case.needs == "fp8" and not _has_fp8():
        return f"{torch.cuda.get_device_name()} has no fp8 of this form"
    free, _ = torch.cuda.mem_get_info()
    if case.gib * _GIB > free:
        return f"needs {case.gib:g} GiB of GPU memory, {free / _GIB:.1f} are free"
    return ""


def _has_fp8() -> bool:
    import torch

    if torch.version.hip:
        return "gfx95" in str(torch.cuda.get_device_properties(0).gcnArchName)
    major, minor = torch.cuda.get_device_capability()
    return bool((major, minor) >= (8, 9))


def broken() -> str:
    """Why the GPU can do nothing more in this process (a fault leaves nothing of it); empty where it can."""
    import torch

    try:
        torch.cuda.synchronize()
    except Exception as error:  # torch and the driver have no common type for it
        return f"{type(error).__name__}: {str(error).splitlines()[0][:300]}"
    return ""


def tidy() -> None:
    """Give back what a case took, so that the next one finds the memory as the first did."""
    import torch

    torch.cuda.empty_cache()


def time_all(timings: Iterable[Timing], entry: Callable[..., dict[str, Any]], result: dict[str, list[Any]]) -> None:
    """Time each on the GPU: tests `time::…`, and samples in milliseconds with cold caches as measurements."""
    fault = broken()
    for timing in timings:
        name = f"time::{timing.kernel}[{timing.name}]"
        if fault:
            result["tests"].append(entry(name, "not_run", 0.0, f"the GPU is at fault since an earlier check: {fault}"))
            continue
        try:
            samples = _samples(timing.prepare("cuda"))
        except Exception as error:  # whatever a kernel raises is its failure
            result["tests"].append(entry(name, "failed", 0.0, f"{type(error).__name__}: {str(error)[-4000:]}"))
            fault = broken()
            continue
        finally:
            if not fault:
                tidy()
        result["tests"].append(entry(name, "passed", sum(samples) / 1000))
        about = {
            "kernel": timing.kernel,
            "shape": timing.name,
            "dtype": timing.dtype,
            "warmup": WARMUP,
            "iterations": 1,
        }
        result["measurements"].append(
            {**about, "metric": "time", "unit": "ms", "samples": samples, "higher_is_better": False}
        )
        if timing.flops:
            rates = [timing.flops / sample / 1e9 for sample in samples]
            result["measurements"].append(
                {**about, "metric": "rate", "unit": "TFLOP/s", "samples": rates, "higher_is_better": True}
            )


def _samples(run: Callable[[], object]) -> list[float]:
    """Milliseconds of single calls, each after the caches were overwritten; compiling and warm-up not counted."""
    import torch

    for _ in range(WARMUP):
        run()
    torch.cuda.synchronize()
    over = torch.empty(_FLUSHED, dtype=torch.int8, device="cuda")
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(SAMPLES)]
    for begin, end in pairs:
        over.zero_()
        begin.record()
        run()
        end.record()
    torch.cuda.synchronize()
    return [float(begin.elapsed_time(end)) for begin, end in pairs]
