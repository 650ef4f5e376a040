"""The machine as a suite finds it: GPUs by a bounded probe, versions, and an environment without credentials."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.core.validation import Environment, Gpu
from runners.process import MARK, captured

PROBE_SECONDS = 10.0
_KEEP = (
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "TERM",
    "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "ROCM_HOME", "HIP_PATH", "NVIDIA_DRIVER_CAPABILITIES",
    "VIRTUAL_ENV", "CONDA_PREFIX", "CC", "CXX", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
)  # fmt: skip
_QUERY = "index,name,uuid,driver_version,memory.total,clocks.sm,clocks.mem,ecc.errors.uncorrected.volatile.total"


@dataclass(frozen=True, slots=True)
class Health:
    """What the probe found; `ok` None where there is nothing to probe."""

    ok: bool | None
    text: str
    gpus: tuple[Gpu, ...] = ()


async def probe(*, visible: str | None = None, seconds: float = PROBE_SECONDS) -> Health:
    """Ask the driver for its GPUs, for at most `seconds`: a driver that hangs is an answer too (not healthy)."""
    if shutil.which("nvidia-smi") is None:
        return Health(None, "no nvidia-smi: no GPU of NVIDIA's to probe")
    try:
        query = (f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits")
        listing = await captured("nvidia-smi", *query, seconds=seconds)
        header = await captured("nvidia-smi", seconds=seconds)
    except TimeoutError:
        return Health(False, f"nvidia-smi did not answer within {seconds:g} s")
    except OSError as error:
        return Health(False, f"nvidia-smi can't be run: {error}")
    if listing.exit_code != 0:
        return Health(False, f"nvidia-smi failed: {(listing.output + listing.errors).strip()[:300]}")
    cuda = header.output.partition("CUDA Version:")[2].split("|")[0].strip() if header.exit_code == 0 else ""
    lines = listing.output.splitlines()
    gpus = tuple(gpu for line in lines if (gpu := _gpu(line, cuda)) is not None)
    chosen = _chosen(gpus, visible)
    sick = [line for line in lines if line.rpartition(",")[2].strip() not in ("0", "[N/A]", "N/A")]
    if not chosen:
        return Health(False, "the driver shows none of the GPUs that this runner may use", gpus)
    if sick:
        return Health(False, f"uncorrected ECC errors: {'; '.join(sick)[:300]}", chosen)
    return Health(True, f"{len(chosen)} GPU(s)", chosen)


def _gpu(line: str, cuda: str) -> Gpu | None:
    parts = [part.strip() for part in line.split(",")]
    if len(parts) < 7 or not parts[0].isdigit():
        return None
    memory, sm, mem = (int(part) if part.isdigit() else None for part in parts[4:7])
    return Gpu(
        index=int(parts[0]), model=parts[1], uuid=parts[2], driver=parts[3], cuda=cuda,
        memory_mib=memory, sm_clock_mhz=sm, memory_clock_mhz=mem,
    )  # fmt: skip


def _chosen(gpus: tuple[Gpu, ...], visible: str | None) -> tuple[Gpu, ...]:
    if visible is None:
        return gpus
    names = {name.strip() for name in visible.split(",") if name.strip()}
    return tuple(gpu for gpu in gpus if str(gpu.index) in names or gpu.uuid in names)


def version_of(package: str) -> str | None:
    """The installed version of a package, without importing it."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def describe(*, runner: str, labels: Sequence[str], before: Health, after: Health | None = None) -> Environment:
    """Where a suite ran, as the report carries it."""
    return Environment(
        runner=runner,
        labels=tuple(labels),
        host=socket.gethostname(),
        platform=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        torch=version_of("torch"),
        triton=version_of("triton"),
        gpus=before.gpus,
        cpus=os.cpu_count(),
        healthy_before=before.ok,
        healthy_after=after.ok if after is not None else None,
        health=before.text if after is None or after.ok is not False else after.text,
    )


def child_environment(
    *,
    home: Path,
    cache: Path,
    mark: str,
    commit: str,
    visible: str | None,
    keep: Sequence[str] = (),
    extra: Mapping[str, str] | None = None,
    source: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """What the suite's process sees: a short list of harmless variables, folders of its own, no credential.

    Compiler caches lie under `cache`, which is of one commit, so that no kernel of another commit is ever loaded.
    """
    outside = os.environ if source is None else source
    env = {name: outside[name] for name in (*_KEEP, *keep) if name in outside}
    here = str(Path(sys.executable).parent)
    env["PATH"] = os.pathsep.join(dict.fromkeys([here, *env.get("PATH", os.defpath).split(os.pathsep)]))
    temporary = home / "tmp"
    for folder in (home, temporary, cache):
        folder.mkdir(parents=True, exist_ok=True)
    env |= {
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "XDG_CACHE_HOME": str(cache / "xdg"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "CUDA_CACHE_PATH": str(cache / "cuda"),
        "PYTHONPYCACHEPREFIX": str(cache / "pyc"),
        "PYTHONUNBUFFERED": "1",
        "CI": "true",
        "GRAFT_COMMIT": commit,
        MARK: mark,
    }
    if visible is not None:
        env |= {"CUDA_VISIBLE_DEVICES": visible, "HIP_VISIBLE_DEVICES": visible}
    return env | dict(extra or {})
