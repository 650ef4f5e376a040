"""What is timed on a GPU: the kernels in shapes of practice, with tiles fit for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton

from runners.kernels import attention, matmul, pointwise, specialised
from runners.kernels.spec import Timing

_TILE = {"BM": 128, "BN": 128, "BK": 64}
Prepare = Callable[[str], Callable[[], object]]


def _stages() -> dict[str, int]:
    """As many stages as fit: AMD's local memory holds fewer tiles."""
    import torch

    return {"num_stages": 2 if torch.version.hip else 3}


def _fused(n: int) -> Prepare:
    def prepare(device: str) -> Callable[[], object]:
        import torch

        x, y, out = (torch.randn(n, device=device) for _ in range(3))
        return lambda: pointwise.fused_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, 1, BLOCK=1024)

    return prepare


def _softmax(rows: int, columns: int) -> Prepare:
    def prepare(device: str) -> Callable[[], object]:
        import torch

        x, out = (torch.randn(rows, columns, device=device) for _ in range(2))
        block = triton.next_power_of_2(columns)
        return lambda: pointwise.softmax_kernel[(rows,)](x, out, columns, columns, BLOCK=block, num_warps=8)

    return prepare


def _layer_norm(rows: int, columns: int) -> Prepare:
    def prepare(device: str) -> Callable[[], object]:
        import torch

        x, out = (torch.randn(rows, columns, device=device, dtype=torch.float16) for _ in range(2))
        weight, bias = (torch.randn(columns, device=device, dtype=torch.float16) for _ in range(2))
        block = triton.next_power_of_2(columns)
        kernel = pointwise.layer_norm_kernel[(rows,)]
        return lambda: kernel(x, weight, bias, out, columns, 1e-5, BLOCK=block, num_warps=8)

    return prepare


def _operands(device: str, size: int) -> tuple[Any, Any, Any]:
    import torch

    a, b = (torch.randn(size, size, device=device, dtype=torch.float16) for _ in range(2))
    return a, b, torch.empty(size, size, device=device, dtype=torch.float16)


def _matmul(size: int) -> Prepare:
    def prepare(device: str) -> Callable[[], object]:
        a, b, c = _operands(device, size)
        kernel = matmul.matmul_kernel[(triton.cdiv(size, 128), triton.cdiv(size, 128))]
        return lambda: kernel(
            a, b, c, size, size, size, *a.stride(), *b.stride(), **_TILE, PRECISION="ieee", num_warps=8, **_stages()
        )

    return prepare


def _specialised(size: int) -> Prepare:
    def prepare(device: str) -> Callable[[], object]:
        import torch

        matmul.with_allocator(device)
        a, b, c = _operands(device, size)
        programs = torch.cuda.get_device_properties(0).multi_processor_count
        kernel = specialised.persistent_kernel[(programs,)]
        return lambda: kernel(
            a, b, c, size, size, size, **_TILE, PROGRAMS=programs, SPECIALIZE=True, num_warps=4, **_stages()
        )

    return prepare


def _attention(heads: int, length: int, wide: int) -> Prepare:
    def prepare(device: str) -> Callable[[], object]:
        import torch

        q, k, v = (torch.randn(heads, length, wide, device=device, dtype=torch.float16) for _ in range(3))
        out, lse = torch.empty_like(q), torch.empty(heads, length, device=device)
        kernel = attention.forward_kernel[(triton.cdiv(length, 128), heads)]
        return lambda: kernel(
            q, k, v, out, lse, length, wide**-0.5, D=wide, BM=128, BN=64, CAUSAL=True, num_warps=8, **_stages()
        )

    return prepare


TIMINGS = (
    Timing("fused", "16777216", "fp32", _fused(1 << 24)),
    Timing("softmax", "8192x4096", "fp32", _softmax(8192, 4096)),
    Timing("layer_norm", "8192x4096", "fp16", _layer_norm(8192, 4096)),
    Timing("matmul", "4096x4096x4096", "fp16", _matmul(4096), flops=2 * 4096**3),
    Timing("specialised_persistent_matmul", "4096x4096x4096", "fp16", _specialised(4096), flops=2 * 4096**3),
    # causal: half of the scores
    Timing("attention_forward", "64x4096x64-causal", "fp16", _attention(64, 4096, 64), flops=2 * 64 * 4096**2 * 64),
)
