"""Matrix products: fp16, tf32, fp8, bf16; ragged, transposed, grouped, persistent, by descriptors, warp-specialised."""

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
def matmul_kernel(
    a, b, c, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = K - k * BK
        a_at = a + rows[:, None].to(tl.int64) * stride_am + (k * BK + inner)[None, :] * stride_ak
        b_at = b + (k * BK + inner)[:, None].to(tl.int64) * stride_bk + columns[None, :] * stride_bn
        x = tl.load(a_at, mask=(rows[:, None] < M) & (inner[None, :] < left), other=0.0)
        y = tl.load(b_at, mask=(inner[:, None] < left) & (columns[None, :] < N), other=0.0)
        total = tl.dot(x, y, total, input_precision=PRECISION)
    at = c + rows[:, None] * N + columns[None, :]
    tl.store(at, total.to(c.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def persistent_kernel(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr
):  # fmt: skip
    across = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * across, PROGRAMS):
        rows = (tile // across) * BM + tl.arange(0, BM)
        columns = (tile % across) * BN + tl.arange(0, BN)
        inner = tl.arange(0, BK)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            x = tl.load(a + rows[:, None] * K + k + inner, mask=(rows[:, None] < M) & (k + inner < K), other=0.0)
            y = tl.load(
                b + (k + inner)[:, None] * N + columns, mask=((k + inner)[:, None] < K) & (columns < N), other=0.0
            )
            total = tl.dot(x, y, total)
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty), mask=mask)


@triton.jit
def grouped_kernel(
    a, b, c, sizes, starts, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    group = tl.program_id(0)
    count = tl.load(sizes + group)
    start = tl.load(starts + group)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    for first in range(0, count, BM):
        rows = first + tl.arange(0, BM)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            x = tl.load(
                a + (start + rows)[:, None] * K + k + inner, mask=(rows[:, None] < count) & (k + inner < K), other=0.0
            )
            y_at = b + group * K * N + (k + inner)[:, None] * N + columns
            y = tl.load(y_at, mask=((k + inner)[:, None] < K) & (columns < N), other=0.0)
            total = tl.dot(x, y, total)
        mask = (rows[:, None] < count) & (columns[None, :] < N)
        tl.store(c + (start + rows)[:, None] * N + columns[None, :], total.to(c.dtype.element_ty), mask=mask)


@triton.jit
def descriptor_kernel(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIALIZE: tl.constexpr
):  # fmt: skip
    left = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    right = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    out = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=SPECIALIZE):
        x = left.load([row, k * BK])
        y = right.load([column, k * BK])
        total = tl.dot(x, y.T, total)
    out.store([row, column], total.to(c.dtype.element_ty))


def with_allocator(device: str) -> None:
    """Descriptors made on the GPU lie in memory that the launcher asks for."""
    import torch

    if device != "cpu":
        triton.set_allocator(lambda size, _align, _stream: torch.empty(size, dtype=torch.int8, device=device))


def _operands(device: str, m: int, n: int, k: int, dtype: str, *, transposed: bool = False) -> tuple[Any, Any]:
    import torch

    generator = torch.Generator().manual_seed(m * 7919 + n * 31 + k)
    kind = getattr(torch, dtype)
    a = torch.randn(m, k, generator=generator).to(kind).to(device)
    b = torch.randn(k, n, generator=generator).to(kind).to(device)
    return (a.T.contiguous().T, b.T.contiguous().T) if transposed else (a, b)


def _matmul(
    m: int, n: int, k: int, dtype: str, precision: str = "ieee", *, transposed: bool = False
) -> Callable[[str], Pairs]:
    def run(device: str) -> Pairs:
        import torch

        a, b = _operands(device, m, n, k, dtype, transposed=transposed)
        c = torch.empty(m, n, device=device, dtype=torch.float32)
        matmul_kernel[(triton.cdiv(m, 16), triton.cdiv(n, 16))](
            a, b, c, m, n, k, *a.stride(), *b.stride(), BM=16, BN=16, BK=32, PRECISION=precision
        )
        # by way of fp32, which holds fp8 exactly: not every device turns fp8 into fp64
        return [(c, a.float().double() @ b.float().double())]

    return run


def _persistent(m: int, n: int, k: int) -> Callable[[str], Pairs]:
    def run(device: str) -> Pairs:
        import torch

        a, b = _operands(device, m, n, k, "float16")
        c = torch.empty(m, n, device=device, dtype=torch.float32)
        persistent_kernel[(3,)](a, b, c, m, n, k, BM=16, BN=16, BK=32, PROGRAMS=3)
        return [(c, a.double() @ b.double())]

    return run


def _grouped(sizes: tuple[int, ...], n: int, k: int) -> Callable[[str], Pairs]:
    def run(device: str) -> Pairs:
        import torch

        generator = torch.Generator().manual_seed(sum(sizes))
        counts = torch.tensor(sizes, dtype=torch.int32)
        starts = (torch.cumsum(counts, 0) - counts).to(torch.int32)
        a = torch.randn(max(1, sum(sizes)), k, generator=generator).half().to(device)
        b = torch.randn(len(sizes), k, n, generator=generator).half().to(device)
        c = torch.zeros(max(1, sum(sizes)), n, device=device)
        grid = (len(sizes), triton.cdiv(n, 16))
        grouped_kernel[grid](a, b, c, counts.to(device), starts.to(device), n, k, BM=16, BN=16, BK=32)
        parts = [
            a[start : start + size].double() @ b[index].double()
            for index, (start, size) in enumerate(zip(starts.tolist(), sizes, strict=True))
        ]
        return [(c[: sum(sizes)], torch.cat(parts))]

    return run


def _descriptor(m: int, n: int, k: int) -> Callable[[str], Pairs]:
    def run(device: str) -> Pairs:
        import torch

        with_allocator(device)
        a, b = _operands(device, m, n, k, "float16")
        c = torch.zeros(m, n, device=device, dtype=torch.float32)
        grid = (triton.cdiv(m, 16), triton.cdiv(n, 16))
        descriptor_kernel[grid](a, b.T.contiguous(), c, m, n, k, BM=16, BN=16, BK=32, SPECIALIZE=False)
        return [(c, a.double() @ b.double())]

    return run


_SIZES = ("M", "N", "K")
_STRIDES = ("stride_am", "stride_ak", "stride_bk", "stride_bn")
_TILE = {"BM": 128, "BN": 128, "BK": 64}
_WIDE = {"num_warps": 8, "num_stages": 3}
# e4m3 as NVIDIA and gfx950 have it; gfx942 has a form of its own (e4b8), sm_80 none
_FP8 = ("cuda:90", "cuda:100", "hip:gfx950")


def _plain(kind: str, precision: str, targets: Sequence[str] = (), block: int = 64) -> Variant:
    return Variant(
        f"{kind}-{precision}",
        typed({"a": kind, "b": kind, "c": "fp32"}, (*_SIZES, *_STRIDES)),
        {**_TILE, "BK": block, "PRECISION": precision},
        {"num_warps": 8, "num_stages": 2},
        targets,
    )


def _same(kind: str, name: str, constants: dict[str, Any], targets: Sequence[str] = ()) -> Variant:
    return Variant(name, typed({"a": kind, "b": kind, "c": "fp16"}, _SIZES), {**_TILE, **constants}, _WIDE, targets)


CHECKS = (
    Check(
        "matmul",
        matmul_kernel,
        [
            _plain("fp16", "ieee"),
            _plain("bf16", "ieee"),
            _plain("fp32", "tf32", ("cuda:80", "cuda:90", "cuda:100"), 32),
            _plain("fp32", "ieee", (), 32),
            _plain("fp8e4nv", "ieee", _FP8),
            _plain("fp8e4b8", "ieee", ("hip:gfx942",)),
            _plain("fp8e5", "ieee"),
        ],
        [
            Case("1x1x1-float16", _matmul(1, 1, 1, "float16"), 1e-3, 1e-3),
            Case("17x33x65-float16", _matmul(17, 33, 65, "float16"), 1e-3, 1e-3),
            Case("33x16x97-float16-transposed", _matmul(33, 16, 97, "float16", transposed=True), 1e-3, 1e-3),
            Case("17x19x40-float32-ieee", _matmul(17, 19, 40, "float32"), 1e-5, 1e-5),
            Case("17x19x40-float32-tf32", _matmul(17, 19, 40, "float32", "tf32"), 1e-2, 2e-2),
            Case("20x18x64-float8_e4m3fn", _matmul(20, 18, 64, "float8_e4m3fn"), 2e-2, 2e-2, needs="fp8"),
            Case("16x16x48-bfloat16", _matmul(16, 16, 48, "bfloat16"), 1e-2, 1e-2, dots_bf16=True),
        ],
    ),
    Check(
        "persistent_matmul",
        persistent_kernel,
        [_same("fp16", "fp16", {"PROGRAMS": 132})],
        [Case("50x35x40", _persistent(50, 35, 40), 1e-3, 1e-3)],
    ),
    Check(
        "grouped_matmul",
        grouped_kernel,
        [
            Variant(
                "fp16",
                typed({"a": "fp16", "b": "fp16", "c": "fp32", "sizes": "i32", "starts": "i32"}, ("N", "K")),
                _TILE,
                _WIDE,
            )
        ],
        [Case("sizes-17-0-1-33", _grouped((17, 0, 1, 33), 20, 40), 1e-3, 1e-3)],
    ),
    Check(
        "descriptor_matmul",
        descriptor_kernel,
        [
            _same("fp16", "fp16", {"SPECIALIZE": False}),
            Variant(
                "fp16-warp-specialised",
                typed({"a": "fp16", "b": "fp16", "c": "fp16"}, _SIZES),
                {**_TILE, "SPECIALIZE": True},
                {"num_warps": 4, "num_stages": 3},
                ("cuda:90", "cuda:100"),
                ("ttg.warp_specialize", "partition0"),
            ),
        ],
        [Case("32x48x64", _descriptor(32, 48, 64), 1e-3, 1e-3), Case("20x24x40", _descriptor(20, 24, 40), 1e-3, 1e-3)],
    ),
)
