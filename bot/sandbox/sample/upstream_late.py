"""Upstream, stage two: what lands while the story is under way."""

from __future__ import annotations

from bot.sandbox.sample import edits_lowering as lowering
from bot.sandbox.sample import edits_pipeline as pipeline
from bot.sandbox.sample.history import Change, append, at, replace, write
from bot.sandbox.sample.people import INES, KENJI, OLU, RAVI, ZOFIA

WIDTH_LIMIT = (
    replace(
        "tilec/passes/layout.py",
        """
    width = max(1, 16 // ELEMENT_BYTES[kind.element])
    while width > 1 and kind.shape[-1] % width:
""",
        """
    width = max(1, MAX_VECTOR_BYTES // ELEMENT_BYTES[kind.element])
    while width > 1 and kind.shape[-1] % width:
""",
    ),
    replace(
        "tilec/passes/layout.py",
        """
from tilec.ir.types import ELEMENT_BYTES
""",
        """
from tilec.ir.types import ELEMENT_BYTES

MAX_VECTOR_BYTES = 16
""",
    ),
)

DCE_DOC = (
    replace(
        "tilec/passes/dce.py",
        '"""Remove dead operations from the end on; returns how many."""',
        '"""Remove dead operations from the end on, readers before what they read; returns how many."""',
    ),
)

LAYOUT_CACHE = (
    append(
        "tilec/passes/layout.py",
        '''

def layouts_of(fn):
    """The layouts of a function's parameters, by name."""
    return {arg.name: assign_layout(arg.type) for arg in fn.args}
''',
    ),
    write(
        "tests/unit/test_layouts_of.py",
        '''
"""Layouts of parameters."""

from tilec.frontend.trace import kernel
from tilec.passes.layout import layouts_of


def test_layouts_of_parameters():
    @kernel(x="tensor<1024xf32>")
    def fn(x):
        return x

    assert {name: str(value) for name, value in layouts_of(fn).items()} == {"%x": "blocked<4x32x4>"}
''',
    ),
)


DOC_TARGETS = (
    replace(
        "README.md", "`cuda:80`, `cuda:90` and `hip:gfx942`.", "`cuda:80`, `cuda:90`, `hip:gfx942` and `hip:gfx950`."
    ),
)

LAYER_NORM = (
    write(
        "tilec/kernels/layer_norm.py",
        '''
"""Layer norm over the rows of a matrix, without weights."""

import triton
import triton.language as tl

COMPILE = [
    {
        "kernel": "layer_norm",
        "signature": {"x": "*fp32", "out": "*fp32", "columns": "i32", "eps": "fp32", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 128},
    },
]


@triton.jit
def layer_norm(x, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    values = tl.load(x + row * columns + offsets, mask=inside, other=0.0)
    mean = tl.sum(values, axis=0) / columns
    centred = tl.where(inside, values - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / columns
    tl.store(out + row * columns + offsets, centred / tl.sqrt(variance + eps), mask=inside)
''',
    ),
    replace(
        "tests/kernels/test_kernels.py",
        "from tilec.kernels.matmul import matmul  # noqa: E402\n",
        "from tilec.kernels.layer_norm import layer_norm  # noqa: E402\n"
        "from tilec.kernels.matmul import matmul  # noqa: E402\n",
    ),
    append(
        "tests/kernels/test_kernels.py",
        """

def test_layer_norm():
    x = torch.randn(3, 100)
    out = torch.empty_like(x)
    layer_norm[(3,)](x, out, 100, 1e-5, BLOCK=128)
    torch.testing.assert_close(out, torch.nn.functional.layer_norm(x, (100,)), atol=1e-4, rtol=1e-4)
""",
    ),
)

PARSE_COMMENT = (
    replace(
        "tilec/ir/parser.py",
        """
        line = raw.split("//")[0].strip()
""",
        """
        line = raw.partition("//")[0].strip()
""",
    ),
)


ROWS = (
    replace(
        "tilec/kernels/vector_add.py",
        '"constexprs": {"BLOCK": 256},',
        '"constexprs": {"BLOCK": 512},',
    ),
)

CI_PINS = (replace(".github/workflows/ci.yml", "actions/checkout@v4", "actions/checkout@v5"),)

ERASE_MESSAGE = (
    replace(
        "tilec/ir/ops.py",
        """
            raise ValueError(f"{op.name} still has uses")
""",
        """
            raise ValueError(f"{op.name} still has {len(self.uses(op.result))} uses")
""",
    ),
)

MORE_TYPES = (
    replace(
        "tests/unit/test_ir.py",
        '["tensor<128x64xf16>", "tensor<f32>", "tensor<4xi1>"]',
        '["tensor<128x64xf16>", "tensor<f32>", "tensor<4xi1>", "tensor<2x3x4xbf16>"]',
    ),
)

LATE: tuple[Change, ...] = (
    Change("layout: name the widest load (#147)\n", INES, at(11, 23, 9), WIDTH_LIMIT, "conflict_dependent"),
    Change("dce: say in which order (#148)\n", KENJI, at(11, 23, 14), DCE_DOC, "dce_doc"),
    Change(
        "layout: layouts of a function's parameters (#149)\n", INES, at(11, 24, 9), LAYOUT_CACHE, "rename_dependent"
    ),
    Change("lower: name the address spaces (#150)\n", RAVI, at(11, 24, 12), lowering.GENERIC_SPACE, "pin_dependent_2"),
    Change("docs: all targets (#151)\n", ZOFIA, at(11, 24, 16), DOC_TARGETS, "docs_targets"),
    Change("A kernel for layer norm (#152)\n", OLU, at(11, 25, 10), LAYER_NORM, "layer_norm"),
    Change("parser: cut comments once (#153)\n", KENJI, at(11, 25, 15), PARSE_COMMENT, "parse_comment"),
    Change("pipeline: count what is peeled off (#154)\n", INES, at(11, 26, 9), pipeline.EPILOGUE, "chain_5"),
    Change(
        "vector_add: larger blocks (#155)\n\nCo-authored-by: Inês Carvalho <ines@acme.example>\n",
        OLU,
        at(11, 26, 14),
        ROWS,
        "unicode_author",
    ),
    Change("ci: a newer checkout (#156)\n", RAVI, at(11, 26, 17), CI_PINS, "ci_pins"),
    Change("ir: say how many uses are left (#157)\n", KENJI, at(11, 27, 9), ERASE_MESSAGE, "erase_message"),
    Change("tests: types of three extents (#158)\n", KENJI, at(11, 27, 11), MORE_TYPES, "test_only"),
)
