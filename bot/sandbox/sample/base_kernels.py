"""The Triton kernels at the common base, each beside the signatures that it is compiled with."""

from __future__ import annotations

INIT = '''
"""Triton kernels. Each module's COMPILE says with which argument types its kernels are compiled."""
'''

VECTOR_ADD = '''
"""Sum of two vectors."""

import triton
import triton.language as tl

COMPILE = [
    {
        "kernel": "vector_add",
        "signature": {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 256},
    },
]


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    total = tl.load(x + offsets, mask=inside) + tl.load(y + offsets, mask=inside)
    tl.store(out + offsets, total, mask=inside)
'''

SOFTMAX = '''
"""Softmax over the rows of a matrix."""

import triton
import triton.language as tl

COMPILE = [
    {
        "kernel": "softmax",
        "signature": {"x": "*fp32", "out": "*fp32", "stride": "i32", "columns": "i32", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 128},
    },
]


@triton.jit
def softmax(x, out, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    values = tl.load(x + row * stride + offsets, mask=inside, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + offsets, values / tl.sum(values, axis=0), mask=inside)
'''

MATMUL = '''
"""Product of two fp16 matrices, summed in fp32."""

import triton
import triton.language as tl

COMPILE = [
    {
        "kernel": "matmul",
        "signature": {
            "a": "*fp16",
            "b": "*fp16",
            "c": "*fp32",
            "m": "i32",
            "n": "i32",
            "k": "i32",
            "BLOCK_M": "constexpr",
            "BLOCK_N": "constexpr",
            "BLOCK_K": "constexpr",
        },
        "constexprs": {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32},
    },
]


@triton.jit
def matmul(a, b, c, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        left = tl.load(
            a + rows[:, None] * k + depth[None, :], mask=(rows[:, None] < m) & (depth[None, :] < k), other=0.0
        )
        right = tl.load(
            b + depth[:, None] * n + columns[None, :], mask=(depth[:, None] < k) & (columns[None, :] < n), other=0.0
        )
        total += tl.dot(left, right)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=inside)
'''

LEGACY_COPY = '''
"""A copy without a mask, from before tl.load took one. Kept for the old benchmarks."""

import triton
import triton.language as tl

COMPILE = [
    {
        "kernel": "legacy_copy",
        "signature": {"x": "*fp32", "out": "*fp32", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 128},
    },
]


@triton.jit
def legacy_copy(x, out, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets))
'''

TEST_KERNELS = '''
"""The kernels in Triton's interpreter, against torch."""

import os

import pytest

os.environ.setdefault("TRITON_INTERPRET", "1")
torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tilec.kernels.matmul import matmul  # noqa: E402
from tilec.kernels.softmax import softmax  # noqa: E402
from tilec.kernels.vector_add import vector_add  # noqa: E402


@pytest.mark.parametrize("n", [1, 255, 1000])
def test_vector_add(n):
    x, y = torch.randn(n), torch.randn(n)
    out = torch.empty(n)
    vector_add[((n + 255) // 256,)](x, y, out, n, BLOCK=256)
    torch.testing.assert_close(out, x + y)


@pytest.mark.parametrize("columns", [1, 100, 128])
def test_softmax(columns):
    x = torch.randn(5, columns)
    out = torch.empty_like(x)
    softmax[(5,)](x, out, columns, columns, BLOCK=128)
    torch.testing.assert_close(out, torch.softmax(x, dim=1))


def test_matmul_ragged():
    a, b = torch.randn(40, 33).half(), torch.randn(33, 50).half()
    out = torch.empty(40, 50)
    matmul[(2, 2)](a, b, out, 40, 50, 33, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
    torch.testing.assert_close(out, a.float() @ b.float(), atol=1e-2, rtol=1e-2)
'''
