"""Compile a kernel for a GPU that need not be there, and read registers, spills and shared memory from the binary."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runners.kernels.spec import Check, Variant

TARGETS = ("cuda:80", "cuda:90", "cuda:100", "hip:gfx942", "hip:gfx950")
# bytes of shared memory (LDS) that one block may have
SHARED_LIMIT = {
    "cuda:80": 166_912,
    "cuda:90": 232_448,
    "cuda:100": 232_448,
    "hip:gfx942": 65_536,
    "hip:gfx950": 163_840,
}
_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")


@dataclass(frozen=True, slots=True)
class Resources:
    """What a compiled kernel takes of the GPU; memory in bytes. `spills` are bytes (NVIDIA) or registers (AMD)."""

    registers: int | None
    spills: int | None
    shared: int
    binary: int

    def as_metrics(self) -> dict[str, tuple[float, str]]:
        """Each value with its unit; what could not be read is left out."""
        found = {"registers": (self.registers, "registers"), "spills": (self.spills, "spills")}
        known = {name: (float(value), unit) for name, (value, unit) in found.items() if value is not None}
        return known | {"shared_memory": (float(self.shared), "bytes"), "binary": (float(self.binary), "bytes")}


def compile_for(check: Check, variant: Variant, target: str) -> Resources:
    """Compile for `cuda:<capability>` or `hip:<architecture>`. Raises what the compiler raises, and RuntimeError where
    the result holds no binary, wants more shared memory than the GPU has, or lacks what the variant asks for.
    """
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler import compile as build

    backend, _, arch = target.partition(":")
    gpu = GPUTarget("cuda", int(arch), 32) if backend == "cuda" else GPUTarget("hip", arch, 64)
    names = list(check.kernel.arg_names)
    signature = {name: variant.signature.get(name, "constexpr") for name in names}
    source = ASTSource(fn=check.kernel, signature=signature, constexprs=dict(variant.constants))
    compiled = build(source, target=gpu, options=dict(variant.options))
    binary = compiled.asm.get("cubin" if backend == "cuda" else "hsaco")
    if not binary:
        raise RuntimeError(f"no {'cubin' if backend == 'cuda' else 'hsaco'} came out")
    undone = [word for word in variant.holds if word not in str(compiled.asm.get("ttgir", ""))]
    if undone:
        raise RuntimeError(f"the compiler was asked for it and left it undone: no {', no '.join(undone)} in its ttgir")
    shared = int(compiled.metadata.shared)
    if shared > SHARED_LIMIT.get(target, shared):
        raise RuntimeError(f"wants {shared} bytes of shared memory, {target} has {SHARED_LIMIT[target]}")
    registers, spills = _nvidia(binary) if backend == "cuda" else _amd(str(compiled.asm.get("amdgcn", "")))
    return Resources(registers, spills, shared, len(binary))


def _nvidia(cubin: bytes) -> tuple[int | None, int | None]:
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not tool.exists():
        return None, None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        said = subprocess.run(
            [str(tool), "--dump-resource-usage", file.name], capture_output=True, text=True, timeout=60, check=False
        )
    found = _USAGE.search(said.stdout)
    return (int(found[1]), int(found[2]) + int(found[4])) if found is not None else (None, None)


def _amd(assembly: str) -> tuple[int | None, int | None]:
    """From the metadata that the assembler text ends with: vector registers, and both kinds of spilled registers."""
    numbers = _fields(assembly)
    spills = [numbers[name] for name in ("vgpr_spill_count", "sgpr_spill_count") if name in numbers]
    return numbers.get("vgpr_count"), sum(spills) if spills else None


def _fields(assembly: str) -> Mapping[str, int]:
    return {name: int(value) for name, value in re.findall(r"\.(\w+):\s+(\d+)\s*$", assembly, re.MULTILINE)}


def wanted(variant: Variant, targets: tuple[str, ...]) -> list[str]:
    """The targets of the list that the variant is made for."""
    return [target for target in targets if not variant.targets or target in variant.targets]


def describe(error: BaseException) -> str:
    """An error of the compiler as a message: its type and last lines."""
    text: Any = str(error).strip()
    return f"{type(error).__name__}: {text[-6000:]}"
