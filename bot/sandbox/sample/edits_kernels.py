"""What commits of the backlog edit in the kernels and their tests."""

from __future__ import annotations

from bot.sandbox.sample.history import append, replace

LEGACY = (
    replace("tilec/kernels/legacy_copy.py", '"constexprs": {"BLOCK": 128}', '"constexprs": {"BLOCK": 256}'),
    replace("tilec/kernels/legacy_copy.py", "Kept for the old benchmarks.", "Kept for the old benchmarks only."),
)

SOFTMAX = (
    replace(
        "tilec/kernels/softmax.py",
        """
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + offsets, values / tl.sum(values, axis=0), mask=inside)
""",
        """
    values = tl.exp(values - tl.max(values, axis=0))
    scale = 1.0 / tl.sum(values, axis=0)
    tl.store(out + row * stride + offsets, values * scale, mask=inside)
""",
    ),
)

MATMUL_ORDER = (
    replace(
        "tilec/kernels/matmul.py",
        '"constexprs": {"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32},',
        '"constexprs": {"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 32},',
    ),
)

MATMUL_DOC = (
    replace(
        "tilec/kernels/matmul.py",
        "Product of two fp16 matrices, summed in fp32.",
        "Product of two fp16 matrices, summed and kept in fp32.",
    ),
)

MATMUL_TEST = (
    append(
        "tests/kernels/test_kernels.py",
        """

def test_matmul_one_block():
    a, b = torch.ones(32, 32).half(), torch.ones(32, 32).half()
    out = torch.empty(32, 32)
    matmul[(1, 1)](a, b, out, 32, 32, 32, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
    torch.testing.assert_close(out, torch.full((32, 32), 32.0))
""",
    ),
)
