"""What the other commits of the backlog edit, each for itself."""

from __future__ import annotations

from bot.sandbox.sample.history import append, rename, replace, write

README_TYPO = (
    replace("README.md", "A small compiler for tile kernels: a Python", "A small compiler for tile kernels; a Python"),
)

MUL_ONE = (
    replace(
        "tilec/passes/fold.py",
        """
RULES = [
    add_zero,
""",
        '''
def mul_one(op, constants):
    """x * 1 is x."""
    if op.name == "tile.mul" and constants.get(op.operands[1]) == 1:
        return op.operands[0]
    return None


RULES = [
    mul_one,
    add_zero,
''',
    ),
    append(
        "tests/unit/test_passes.py",
        """

def test_mul_one():
    @kernel(x="tensor<64xf32>")
    def fn(x):
        return x * 1

    assert PASSES["fold"](fn) == 1
""",
    ),
)

WARPS = (
    replace(
        "tilec/target.py",
        """
        return threads // self.warp_size + 1
""",
        """
        return -(-threads // self.warp_size)
""",
    ),
)

NIGHTLY_TIME = (replace(".github/workflows/nightly.yml", "0 3 * * *", "0 5 * * *"),)

RENAME_CSE = (
    rename("tilec/passes/cse.py", "tilec/passes/common_subexpr.py"),
    replace(
        "tilec/passes/__init__.py", "from tilec.passes.cse import cse", "from tilec.passes.common_subexpr import cse"
    ),
    rename("tests/lit/cse.mlir", "tests/lit/common_subexpr.mlir"),
)

VECTOR_WIDTH = (
    replace(
        "tilec/passes/layout.py",
        """
    width = 16 // ELEMENT_BYTES[kind.element]
    while width > 1 and kind.numel % (width * 32):
        width //= 2
    return width
""",
        """
    width = max(1, 16 // ELEMENT_BYTES[kind.element])
    while width > 1 and kind.shape[-1] % width:
        width //= 2
    return min(width, max(1, kind.numel // 32))
""",
    ),
)

CSE_ATTRS = (
    replace(
        "tilec/passes/common_subexpr.py",
        """
    return (op.name, tuple(id(operand) for operand in op.operands), str(op.result.type), op.attrs.get("value"))
""",
        """
    attrs = tuple(sorted((name, repr(value)) for name, value in op.attrs.items()))
    return (op.name, tuple(id(operand) for operand in op.operands), str(op.result.type), attrs)
""",
    ),
)

NEGATIVE = (
    replace(
        "tilec/ir/parser.py",
        '    if text in {"true", "false"}:\n',
        '    text = text.strip()\n    if text in {"true", "false"}:\n',
    ),
    append(
        "tests/unit/test_ir.py",
        """

def test_negative_constant():
    text = TEXT.replace("value = 2", "value = -2")
    assert print_function(parse_functions(text)[0]) == text
""",
    ),
)

RENAME_API = (
    replace(
        "tilec/passes/layout.py",
        '''
def infer_layout(kind):
    """The layout of a tensor type."""
''',
        '''
def assign_layout(kind):
    """The layout of a tensor type."""
''',
    ),
    replace("tilec/passes/layout.py", "str(infer_layout(op.result.type))", "str(assign_layout(op.result.type))"),
    replace(
        "tests/unit/test_layout.py",
        "import choose_vector_width, infer_layout",
        "import assign_layout, choose_vector_width",
    ),
    replace("tests/unit/test_layout.py", "str(infer_layout(parse_type(", "str(assign_layout(parse_type("),
)

DOCS_PASSES = (
    replace(
        "docs/passes.md", "| fold | constants and identities |", "| fold | constants, and identities such as x + 0 |"
    ),
)

EMPTY_FUNCTION = (
    replace(
        "tilec/ir/printer.py",
        "    width = max(len(line) for line in lines[1:])\n",
        "    width = max((len(line) for line in lines[1:]), default=0)\n",
    ),
    write(
        "tests/unit/test_printer.py",
        '''
"""The printer alone."""

from tilec.ir.ops import Function
from tilec.ir.printer import print_function


def test_empty_function():
    assert print_function(Function("f")) == "func.func @f() {\\n}\\n"
''',
    ),
)

REGISTER_REASSOCIATE = (
    write(
        "tilec/passes/reassociate.py",
        '''
"""Reassociation: (x + 1) + 2 has its constants side by side as x + (1 + 2)."""

from __future__ import annotations

from tilec.passes.fold import constants_of


def reassociate(fn):
    """Count the sums whose constants could meet; they are marked for fold."""
    constants, count = constants_of(fn), 0
    producers = {op.result: op for op in fn.body if op.result is not None}
    for op in fn.body:
        if op.name != "tile.add" or op.operands[1] not in constants:
            continue
        inner = producers.get(op.operands[0])
        if inner is not None and inner.name == "tile.add" and inner.operands[1] in constants:
            op.attrs["reassociate"] = True
            count += 1
    return count
''',
    ),
    replace(
        "tilec/passes/__init__.py",
        """
from tilec.passes.pipeline import pipeline
""",
        """
from tilec.passes.pipeline import pipeline
from tilec.passes.reassociate import reassociate
""",
    ),
    replace(
        "tilec/passes/__init__.py",
        """
    "pipeline": pipeline,
""",
        """
    "pipeline": pipeline,
    "reassociate": reassociate,
""",
    ),
)

NUM_SMS = (
    replace(
        "tilec/target.py",
        """
def parse_target(text):
""",
        '''
MULTIPROCESSORS = {"cuda:80": 108, "cuda:90": 132, "hip:gfx942": 304}


def waves(target, blocks):
    """How often the whole device is filled by so many blocks."""
    return -(-blocks // MULTIPROCESSORS[str(target)])


def parse_target(text):
''',
    ),
)

RESERVE = (
    replace(
        "tilec/target.py",
        """
    "cuda:80": 166912,
    "cuda:90": 233472,
""",
        """
    "cuda:80": 166912,
    "cuda:90": 232448,
""",
    ),
)

REUSE = (
    replace(
        "tilec/ir/ops.py",
        """
    def erase(self, op):
""",
        '''
    def reusable(self, value):
        """Whether a value's buffer is free again after its last reader."""
        return value not in self.args and len(self.uses(value)) == 1

    def erase(self, op):
''',
    ),
)

NO_REUSE = (
    replace(
        "tilec/ir/ops.py",
        '''
    def reusable(self, value):
        """Whether a value's buffer is free again after its last reader."""
        return value not in self.args and len(self.uses(value)) == 1

''',
        "",
    ),
)

LIT_DCE = (
    write(
        "tests/lit/dce.mlir",
        """
// RUN: tilec-opt --passes=dce %s | FileCheck %s

// CHECK-LABEL: func.func @unused
// CHECK-NOT: tile.mul
// CHECK: tile.add
func.func @unused(%x: tensor<64xf32>) {
  %0 = tile.mul %x, %x : tensor<64xf32>
  %1 = tile.add %x, %x : tensor<64xf32>
  tile.return %1 : tensor<64xf32>
}
""",
    ),
)

NEGATE = (
    replace(
        "tilec/frontend/trace.py",
        """
    def __mul__(self, other):
        return self.tracer.binary("tile.mul", self, other)
""",
        """
    def __mul__(self, other):
        return self.tracer.binary("tile.mul", self, other)

    def __neg__(self):
        return self * -1
""",
    ),
    append(
        "tests/unit/test_trace.py",
        """

def test_negate():
    @kernel(x="tensor<64xf32>")
    def fn(x):
        return -x

    assert [op.name for op in fn.body] == ["tile.constant", "tile.mul", "tile.return"]
""",
    ),
)

STORE = (
    append(
        "tilec/frontend/__init__.py",
        '''

def signature_of(fn):
    """A function's parameters as text."""
    return ", ".join(f"{arg.name.removeprefix('%')}: {arg.type}" for arg in fn.args)
''',
    ),
    append(
        "tests/unit/test_trace.py",
        """

def test_signature():
    @kernel(x="tensor<64xf32>")
    def fn(x):
        return x

    assert signature_of(fn) == "x: tensor<64xf32>"
""",
    ),
    replace(
        "tests/unit/test_trace.py",
        "from tilec.frontend.trace",
        "from tilec.frontend import signature_of\nfrom tilec.frontend.trace",
    ),
)

RENAME_DOCS = (
    rename("docs/dev/setup.md", "docs/contributing/setup.md"),
    rename("docs/dev/review.md", "docs/contributing/review.md"),
    rename("docs/dev/tests.md", "docs/contributing/tests.md"),
    replace("README.md", "See docs/dev.", "See docs/contributing."),
)

DOCS_TESTS = (replace("docs/contributing/tests.md", "Keep each under a second.", "Keep each well under a second."),)

CI_CACHE = (replace(".github/workflows/ci.yml", "      - run: lit tests/lit\n", "      - run: lit -v tests/lit\n"),)
