"""Warp-specialised kernels by descriptors: a persistent matrix product and attention, split by the compiler."""

# a kernel's arguments have Triton's types, its capitals are constants
# ruff: noqa: D103, N803
# mypy: disable-error-code="untyped-decorator, no-untyped-def"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import triton
import triton.language as tl

from runners.kernels.matmul import _operands, with_allocator
from runners.kernels.spec import Case, Check, Variant, typed

Pairs = Sequence[tuple[Any, Any]]
# what shows in the compiler's own form that it was split: asked for and not done would be no error
SPLIT = ("ttg.warp_specialize", "partition0")
_TARGETS = ("cuda:90", "cuda:100")


@triton.jit
def persistent_kernel(
    a, b, c, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr, SPECIALIZE: tl.constexpr,
):  # fmt: skip
    left = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    right = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    out = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    across = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * across, PROGRAMS, warp_specialize=SPECIALIZE):
        row, column = (tile // across) * BM, (tile % across) * BN
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            total = tl.dot(left.load([row, k * BK]), right.load([column, k * BK]).T, total)
        out.store([row, column], total.to(c.dtype.element_ty))


@triton.jit
def attention_kernel(
    q, k, v, out, length, scale,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, SPECIALIZE: tl.constexpr,
):  # fmt: skip
    # a descriptor for each head: its bounds keep a ragged end from the next one
    head = tl.program_id(1).to(tl.int64) * length * D
    first_row = tl.program_id(0) * BM
    queries = tl.make_tensor_descriptor(q + head, shape=[length, D], strides=[D, 1], block_shape=[BM, D])
    keys = tl.make_tensor_descriptor(k + head, shape=[length, D], strides=[D, 1], block_shape=[BN, D])
    values = tl.make_tensor_descriptor(v + head, shape=[length, D], strides=[D, 1], block_shape=[BN, D])
    results = tl.make_tensor_descriptor(out + head, shape=[length, D], strides=[D, 1], block_shape=[BM, D])
    rows = first_row + tl.arange(0, BM)
    x = queries.load([first_row, 0])
    best = tl.full((BM,), -float("inf"), tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    end = length
    if CAUSAL:
        end = tl.minimum(length, first_row + BM)
    for first in tl.range(0, end, BN, warp_specialize=SPECIALIZE):
        columns = first + tl.arange(0, BN)
        scores = tl.dot(x, keys.load([first, 0]).T) * scale
        seen = columns[None, :] < length
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows[:, None])
        scores = tl.where(seen, scores, -1.0e6)
        new = tl.maximum(best, tl.max(scores, 1))
        powers = tl.exp(scores - new[:, None])
        decay = tl.exp(best - new)
        weight = weight * decay + tl.sum(powers, 1)
        total = tl.dot(powers.to(v.dtype.element_ty), values.load([first, 0]), total * decay[:, None])
        best = new
    results.store([first_row, 0], (total / weight[:, None]).to(out.dtype.element_ty))


def _persistent(m: int, n: int, k: int, tile: tuple[int, int, int]) -> Callable[[str], Pairs]:
    def run(device: str) -> Pairs:
        import torch

        with_allocator(device)
        a, b = _operands(device, m, n, k, "float16")
        c = torch.zeros(m, n, device=device, dtype=torch.float16)
        bm, bn, bk = tile
        persistent_kernel[(3,)](
            a, b.T.contiguous(), c, m, n, k,
            BM=bm, BN=bn, BK=bk, PROGRAMS=3, SPECIALIZE=True, num_warps=4, num_stages=3,
        )  # fmt: skip
        return [(c, a.double() @ b.double())]

    return run


def _attention(heads: int, length: int, wide: int, tile: tuple[int, int], *, causal: bool) -> Callable[[str], Pairs]:
    def run(device: str) -> Pairs:
        import torch

        with_allocator(device)
        generator = torch.Generator().manual_seed(length)
        q, k, v = (torch.randn(heads, length, wide, generator=generator).half().to(device) for _ in range(3))
        out = torch.zeros_like(q)
        scale = wide**-0.5
        attention_kernel[(triton.cdiv(length, tile[0]), heads)](
            q, k, v, out, length, scale,
            D=wide, BM=tile[0], BN=tile[1], CAUSAL=causal, SPECIALIZE=True, num_warps=4, num_stages=3,
        )  # fmt: skip
        scores = q.double() @ k.double().transpose(1, 2) * scale
        if causal:
            hidden = torch.ones(length, length, dtype=torch.bool, device=device).triu(1)
            scores = scores.masked_fill(hidden, float("-inf"))
        return [(out, torch.softmax(scores, dim=-1) @ v.double())]

    return run


def _variant(name: str, signature: dict[str, str], constants: dict[str, Any]) -> Variant:
    options = {"num_warps": 4, "num_stages": 3}
    return Variant(name, signature, {**constants, "SPECIALIZE": True}, options, _TARGETS, SPLIT)


_SPLIT_TILE = (128, 64)
_PRODUCT = typed({"a": "fp16", "b": "fp16", "c": "fp16"}, ("M", "N", "K"))
_HEADS = typed(dict.fromkeys(("q", "k", "v", "out"), "fp16"), ("length",), ("scale",))
CHECKS = (
    Check(
        "specialised_persistent_matmul",
        persistent_kernel,
        [_variant("fp16", _PRODUCT, {"BM": 128, "BN": 128, "BK": 64, "PROGRAMS": 132})],
        [
            Case("50x40x72", _persistent(50, 40, 72, (16, 16, 32)), 2e-3, 2e-3),
            # tiles that the compiler does split; too slow anywhere else
            Case("700x520x200-split", _persistent(700, 520, 200, (128, 128, 64)), 2e-3, 2e-2, native_only=True),
        ],
    ),
    Check(
        "specialised_attention",
        attention_kernel,
        [
            _variant(f"fp16-{'causal' if causal else 'full'}", _HEADS, {"D": 64, "BM": 128, "BN": 64, "CAUSAL": causal})
            for causal in (False, True)
        ],
        [
            Case("2x33x16", _attention(2, 33, 16, (16, 16), causal=False), 5e-3, 5e-3),
            Case("2x50x16-causal", _attention(2, 50, 16, (16, 16), causal=True), 5e-3, 5e-3),
            Case("3x1000x64-split", _attention(3, 1000, 64, (128, 64), causal=False), 5e-3, 5e-3, native_only=True),
            Case(
                "3x1000x64-causal-split", _attention(3, 1000, 64, (128, 64), causal=True), 5e-3, 5e-3, native_only=True
            ),
        ],
    ),
)
