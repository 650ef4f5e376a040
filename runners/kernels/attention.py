"""Flash attention forward and backward, causal or not, with lengths that no tile divides."""

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
def forward_kernel(
    q, k, v, out, lse, length, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr
):  # fmt: skip
    base = tl.program_id(1).to(tl.int64) * length * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    wide = tl.arange(0, D)
    x = tl.load(q + base + rows[:, None] * D + wide, mask=rows[:, None] < length, other=0.0)
    best = tl.full((BM,), -float("inf"), tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    end = length
    if CAUSAL:
        end = tl.minimum(length, (tl.program_id(0) + 1) * BM)
    for first in range(0, end, BN):
        columns = first + tl.arange(0, BN)
        keys = tl.load(k + base + columns[None, :] * D + wide[:, None], mask=columns[None, :] < length, other=0.0)
        scores = tl.dot(x, keys) * scale
        seen = columns[None, :] < length
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows[:, None])
        scores = tl.where(seen, scores, -float("inf"))
        new = tl.maximum(best, tl.max(scores, 1))
        powers = tl.exp(scores - new[:, None])
        decay = tl.exp(best - new)
        values = tl.load(v + base + columns[:, None] * D + wide, mask=columns[:, None] < length, other=0.0)
        weight = weight * decay + tl.sum(powers, 1)
        total = total * decay[:, None] + tl.dot(powers.to(values.dtype), values)
        best = new
    result = total / weight[:, None]
    tl.store(out + base + rows[:, None] * D + wide, result.to(out.dtype.element_ty), mask=rows[:, None] < length)
    tl.store(lse + tl.program_id(1) * length + rows, best + tl.log(weight), mask=rows < length)


@triton.jit
def backward_kernel(
    q, k, v, do, lse, delta, dq, dk, dv, length, scale,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    base = head * length * D
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    wide = tl.arange(0, D)
    inside = columns[:, None] < length
    keys = tl.load(k + base + columns[:, None] * D + wide, mask=inside, other=0.0)
    values = tl.load(v + base + columns[:, None] * D + wide, mask=inside, other=0.0)
    grad_k = tl.zeros((BN, D), tl.float32)
    grad_v = tl.zeros((BN, D), tl.float32)
    for first in range(0, length, BM):
        rows = first + tl.arange(0, BM)
        there = rows[:, None] < length
        x = tl.load(q + base + rows[:, None] * D + wide, mask=there, other=0.0)
        g = tl.load(do + base + rows[:, None] * D + wide, mask=there, other=0.0)
        logs = tl.load(lse + head * length + rows, mask=rows < length, other=0.0)
        sums = tl.load(delta + head * length + rows, mask=rows < length, other=0.0)
        seen = there & (columns[None, :] < length)
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows[:, None])
        powers = tl.where(seen, tl.exp(tl.dot(x, tl.trans(keys)) * scale - logs[:, None]), 0.0)
        grad_v += tl.dot(tl.trans(powers.to(g.dtype)), g)
        inner = (powers * (tl.dot(g, tl.trans(values)) - sums[:, None]) * scale).to(x.dtype)
        grad_k += tl.dot(tl.trans(inner), x)
        tl.atomic_add(dq + base + rows[:, None] * D + wide, tl.dot(inner, keys), mask=there, sem="relaxed")
    tl.store(dk + base + columns[:, None] * D + wide, grad_k, mask=inside)
    tl.store(dv + base + columns[:, None] * D + wide, grad_v, mask=inside)


def _attention(heads: int, length: int, wide: int, *, causal: bool, backward: bool) -> Callable[[str], Pairs]:
    def run(device: str) -> Pairs:
        import torch

        generator = torch.Generator().manual_seed(length)
        q, k, v, g = (torch.randn(heads, length, wide, generator=generator).half().to(device) for _ in range(4))
        out, lse = torch.empty_like(q), torch.empty(heads, length, device=device)
        scale = wide**-0.5
        constants = {"D": wide, "BM": 16, "BN": 16, "CAUSAL": causal}
        grid = (triton.cdiv(length, 16), heads)
        forward_kernel[grid](q, k, v, out, lse, length, scale, **constants)
        exact = [tensor.double().requires_grad_() for tensor in (q, k, v)]
        scores = exact[0] @ exact[1].transpose(1, 2) * scale
        if causal:
            hidden = torch.ones(length, length, dtype=torch.bool, device=device).triu(1)
            scores = scores.masked_fill(hidden, float("-inf"))
        want = torch.softmax(scores, dim=-1) @ exact[2]
        if not backward:
            return [(out, want.detach()), (lse, torch.logsumexp(scores, -1).detach())]
        want.backward(g.double())
        delta = (out.float() * g.float()).sum(-1)
        grads = [torch.zeros(heads, length, wide, device=device) for _ in range(3)]
        backward_kernel[grid](q, k, v, g, lse, delta, *grads, length, scale, **constants)
        return [(got, tensor.grad) for got, tensor in zip(grads, exact, strict=True)]

    return run


def _variants(names: Sequence[str], kind: str, causal: bool, singles: Sequence[str]) -> Variant:
    pointers = dict.fromkeys(names, kind) | dict.fromkeys(singles, "fp32")
    return Variant(
        f"{kind}-d64{'-causal' if causal else ''}",
        typed(pointers, ("length",), ("scale",)),
        {"D": 64, "BM": 64, "BN": 64, "CAUSAL": causal},
        {"num_warps": 4, "num_stages": 2},
    )


CHECKS = (
    Check(
        "attention_forward",
        forward_kernel,
        [
            _variants(("q", "k", "v", "out"), kind, causal, ("lse",))
            for kind in ("fp16", "bf16")
            for causal in (False, True)
        ],
        [
            Case("2x33x32", _attention(2, 33, 32, causal=False, backward=False), 5e-3, 5e-3),
            Case("1x50x16-causal", _attention(1, 50, 16, causal=True, backward=False), 5e-3, 5e-3),
            Case("1x1x16-causal", _attention(1, 1, 16, causal=True, backward=False), 5e-3, 5e-3),
        ],
    ),
    Check(
        "attention_backward",
        backward_kernel,
        [
            _variants(("q", "k", "v", "do"), kind, causal, ("lse", "delta", "dq", "dk", "dv"))
            for kind in ("fp16", "bf16")
            for causal in (False, True)
        ],
        [
            Case("1x33x16", _attention(1, 33, 16, causal=False, backward=True), 2e-2, 2e-2),
            Case("2x20x32-causal", _attention(2, 20, 32, causal=True, backward=True), 2e-2, 2e-2),
        ],
    ),
)
