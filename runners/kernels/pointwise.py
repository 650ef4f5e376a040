"""Element-wise, row-wise and atomic kernels: ragged ends, huge strides, masked tails, integer wrap."""

# a kernel's arguments have Triton's types, its capitals are constants
# ruff: noqa: D103, N803
# mypy: disable-error-code="untyped-decorator, no-untyped-def"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import triton
import triton.language as tl

from runners.kernels.spec import Case, Check, Variant, typed

Pairs = Sequence[tuple[Any, Any]]


@triton.jit
def fused_kernel(x, y, out, n, stride, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(x + offsets.to(tl.int64) * stride, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(y + offsets, mask=mask, other=1.0).to(tl.float32)
    inner = 0.7978845608 * (a + 0.044715 * a * a * a)
    gelu = 0.5 * a * (1.0 + (2.0 / (1.0 + tl.exp(-2.0 * inner)) - 1.0))
    tl.store(out + offsets, (gelu * b + tl.where(b > 0, a, 0.0)).to(out.dtype.element_ty), mask=mask)


@triton.jit
def softmax_kernel(x, out, columns, row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    values = tl.load(x + row * row_stride + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + offsets, (powers / tl.sum(powers, axis=0)).to(out.dtype.element_ty), mask=mask)


@triton.jit
def layer_norm_kernel(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    values = tl.load(x + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(values, axis=0) / columns
    centred = tl.where(mask, values - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    scale = tl.load(weight + offsets, mask=mask, other=0.0).to(tl.float32)
    shift = tl.load(bias + offsets, mask=mask, other=0.0).to(tl.float32)
    result = centred / tl.sqrt(variance + eps) * scale + shift
    tl.store(out + row * columns + offsets, result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def histogram_kernel(values, counts, largest, n, bins, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    found = tl.load(values + offsets, mask=mask, other=0)
    tl.atomic_add(counts + found % bins, 1, mask=mask, sem="relaxed")
    tl.atomic_max(largest, tl.max(tl.where(mask, found, -2147483648), axis=0))


def _fused(n: int, stride: int, dtype: str) -> Callable[[str], Pairs]:
    def run(device: str) -> Pairs:
        import torch

        generator = torch.Generator().manual_seed(n + stride)
        kind = getattr(torch, dtype)
        whole = torch.randn(max(1, n) * stride, generator=generator).to(kind).to(device)
        x, y = whole[:: stride or 1][:n], torch.randn(max(1, n), generator=generator).to(kind).to(device)[:n]
        out = torch.full((max(1, n),), float("nan"), dtype=kind, device=device)[:n]
        fused_kernel[(triton.cdiv(max(1, n), 128),)](whole, y, out, n, stride, BLOCK=128)
        a, b = x.double(), y.double()
        want = torch.nn.functional.gelu(a, approximate="tanh") * b + torch.where(b > 0, a, torch.zeros_like(a))
        return [(out, want)]

    return run


def _far_apart(n: int, stride: int) -> Callable[[str], Pairs]:
    """Elements so far apart that 32 bits don't count to the last; only they are ever written."""

    def run(device: str) -> Pairs:
        import torch

        generator = torch.Generator().manual_seed(n)
        whole = torch.empty(n * stride, dtype=torch.float16, device=device)
        x = whole[::stride][:n]
        x.copy_(torch.randn(n, generator=generator).half())
        y, out = torch.ones(n, dtype=torch.float16, device=device), torch.empty(n, dtype=torch.float16, device=device)
        fused_kernel[(triton.cdiv(n, 128),)](whole, y, out, n, stride, BLOCK=128)
        a = x.double()
        return [(out, torch.nn.functional.gelu(a, approximate="tanh") + a)]

    return run


def _softmax(rows: int, columns: int, padding: int, scale: float) -> Callable[[str], Pairs]:
    def run(device: str) -> Pairs:
        import torch

        generator = torch.Generator().manual_seed(rows * columns)
        whole = (torch.randn(rows, columns + padding, generator=generator) * scale).to(device)
        out = torch.empty(rows, columns, device=device)
        block = triton.next_power_of_2(columns)
        softmax_kernel[(rows,)](whole, out, columns, whole.stride(0), BLOCK=block)
        return [(out, torch.softmax(whole[:, :columns].double(), dim=1))]

    return run


def _layer_norm(rows: int, columns: int, offset: float) -> Callable[[str], Pairs]:
    def run(device: str) -> Pairs:
        import torch

        generator = torch.Generator().manual_seed(columns)
        x, weight, bias = (
            torch.randn(size, generator=generator).to(device) for size in ((rows, columns), (columns,), (columns,))
        )
        x = x + offset
        out = torch.empty_like(x)
        layer_norm_kernel[(rows,)](x, weight, bias, out, columns, 1e-5, BLOCK=triton.next_power_of_2(columns))
        want = torch.nn.functional.layer_norm(x.double(), (columns,), weight.double(), bias.double(), 1e-5)
        return [(out, want)]

    return run


def _histogram(n: int, bins: int) -> Callable[[str], Pairs]:
    def run(device: str) -> Pairs:
        import torch

        values = torch.randint(0, 1000, (n,), generator=torch.Generator().manual_seed(n), dtype=torch.int32).to(device)
        counts = torch.zeros(bins, dtype=torch.int32, device=device)
        largest = torch.full((1,), -1, dtype=torch.int32, device=device)
        histogram_kernel[(triton.cdiv(n, 256),)](values, counts, largest, n, bins, BLOCK=256)
        return [(counts, torch.bincount(values.long() % bins, minlength=bins)), (largest, values.max().reshape(1))]

    return run


@triton.jit
def wrong_kernel(x, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets) + 1.0)


def _wrong(device: str) -> Pairs:
    import torch

    x = torch.arange(8, dtype=torch.float32, device=device)
    out = torch.empty_like(x)
    wrong_kernel[(1,)](x, out, BLOCK=8)
    return [(out, x.double())]


# wrong in its result, and (a block that is no power of two) for every compiler: both have to be noticed
CANARY = Check(
    "wrong_on_purpose",
    wrong_kernel,
    [Variant("odd-block", typed({"x": "fp32", "out": "fp32"}), {"BLOCK": 1000})],
    [Case("off-by-one", _wrong, 1e-3, 1e-3)],
)

_BLOCK = {"BLOCK": 1024}
CHECKS = (
    Check(
        "fused",
        fused_kernel,
        [
            Variant(kind, typed(dict.fromkeys(("x", "y", "out"), kind), ("n", "stride")), _BLOCK)
            for kind in ("fp32", "fp16", "bf16")
        ],
        [
            Case("n1-float32", _fused(1, 1, "float32"), 1e-5, 1e-6),
            Case("n1000003mod-float32", _fused(1009, 1, "float32"), 1e-5, 1e-6),
            Case("n517-stride4099-float32", _fused(517, 4099, "float32"), 1e-5, 1e-6),
            Case("n129-stride3-float16", _fused(129, 3, "float16"), 2e-3, 2e-3),
            Case("n530-past-2e31-float16", _far_apart(530, 4_100_003), 4e-3, 4e-3, native_only=True, gib=4.5),
            Case("n300-bfloat16", _fused(300, 1, "bfloat16"), 1.6e-2, 1.6e-2),
        ],
    ),
    Check(
        "softmax",
        softmax_kernel,
        [
            Variant(kind, typed({"x": kind, "out": kind}, ("columns", "row_stride")), {"BLOCK": 4096}, {"num_warps": 8})
            for kind in ("fp32", "bf16")
        ],
        [
            Case("1x1", _softmax(1, 1, 0, 1.0), 1e-5, 1e-6),
            Case("7x17-padded", _softmax(7, 17, 5, 1.0), 1e-5, 1e-6),
            Case("3x1000-large-values", _softmax(3, 1000, 24, 60.0), 1e-4, 1e-6),
        ],
    ),
    Check(
        "layer_norm",
        layer_norm_kernel,
        [
            Variant(
                "fp16", typed(dict.fromkeys(("x", "weight", "bias", "out"), "fp16"), ("columns",), ("eps",)), _BLOCK
            ),
            Variant(
                "fp32", typed(dict.fromkeys(("x", "weight", "bias", "out"), "fp32"), ("columns",), ("eps",)), _BLOCK
            ),
        ],
        [
            Case("5x1", _layer_norm(5, 1, 0.0), 1e-5, 1e-5),
            Case("3x769", _layer_norm(3, 769, 0.0), 1e-4, 1e-5),
            # the mean is far from zero: a one-pass variance would cancel
            Case("2x511-far-mean", _layer_norm(2, 511, 1000.0), 1e-2, 1e-2),
        ],
    ),
    Check(
        "histogram",
        histogram_kernel,
        [Variant("i32", typed(dict.fromkeys(("values", "counts", "largest"), "i32"), ("n", "bins")), _BLOCK)],
        [Case("n1-bins7", _histogram(1, 7), 0, 0), Case("n2049-bins13", _histogram(2049, 13), 0, 0)],
    ),
)
