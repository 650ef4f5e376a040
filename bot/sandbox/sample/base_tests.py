"""The tests at the common base: pytest ones without torch, and lit ones with RUN lines."""

from __future__ import annotations

CONFTEST = '''
"""The checkout itself is what is tested."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
'''

IR = '''
"""IR, parser and printer."""

import pytest

from tilec.ir.parser import ParseError, parse_functions
from tilec.ir.printer import print_function
from tilec.ir.types import TensorType, parse_type

TEXT = """\\
func.func @axpy(%x: tensor<128xf32>, %y: tensor<128xf32>) {
  %0 = tile.constant {value = 2} : tensor<128xf32>
  %1 = tile.mul %x, %0 : tensor<128xf32>
  %2 = tile.add %1, %y : tensor<128xf32>
  tile.return %2 : tensor<128xf32>
}
"""


def test_print_what_was_parsed():
    (fn,) = parse_functions(TEXT)
    assert print_function(fn) == TEXT


def test_uses():
    (fn,) = parse_functions(TEXT)
    assert [op.name for op in fn.uses(fn.args[0])] == ["tile.mul"]


@pytest.mark.parametrize("text", ["tensor<128x64xf16>", "tensor<f32>", "tensor<4xi1>"])
def test_types(text):
    assert str(parse_type(text)) == text


def test_bytes():
    assert TensorType((8, 4), "f16").nbytes == 64


def test_unknown_element():
    with pytest.raises(ValueError, match="unknown element"):
        TensorType((4,), "f7")


def test_no_operation():
    with pytest.raises(ParseError):
        parse_functions("func.func @f() {\\n  what is this\\n}\\n")
'''

TRACE = '''
"""The frontend."""

import pytest

from tilec.frontend.trace import kernel, load
from tilec.ir.printer import print_function


def test_trace():
    @kernel(x="tensor<64xf32>", y="tensor<64xf32>")
    def axpy(x, y):
        return load(x) * 2 + load(y)

    assert [op.name for op in axpy.body] == [
        "tile.load",
        "tile.constant",
        "tile.mul",
        "tile.load",
        "tile.add",
        "tile.return",
    ]
    assert print_function(axpy).startswith("func.func @axpy(%x: tensor<64xf32>, %y: tensor<64xf32>) {")


def test_types_must_agree():
    with pytest.raises(TypeError):

        @kernel(x="tensor<64xf32>", y="tensor<32xf32>")
        def wrong(x, y):
            return x + y
'''

PASSES = '''
"""The passes."""

import pytest

from tilec.frontend.trace import kernel, load
from tilec.passes import PASSES, run_passes


def names(fn):
    return [op.name for op in fn.body]


def test_fold():
    @kernel(x="tensor<64xf32>")
    def fn(x):
        return x + (x.tracer.constant(2, x.value.type) * 3)

    assert PASSES["fold"](fn) == 1
    assert fn.body[2].attrs == {"value": 6}


def test_add_zero():
    @kernel(x="tensor<64xf32>")
    def fn(x):
        return x + 0

    assert PASSES["fold"](fn) == 1
    assert names(fn) == ["tile.constant", "tile.return"]


def test_cse():
    @kernel(x="tensor<64xf32>")
    def fn(x):
        return (x + x) * (x + x)

    assert PASSES["cse"](fn) == 1
    assert names(fn) == ["tile.add", "tile.mul", "tile.return"]


def test_dce():
    @kernel(x="tensor<64xf32>")
    def fn(x):
        x * 3
        return x + x

    assert PASSES["dce"](fn) == 2
    assert names(fn) == ["tile.add", "tile.return"]


def test_pipeline_gives_each_load_a_stage():
    @kernel(x="tensor<64xf32>", y="tensor<64xf32>", z="tensor<64xf32>")
    def fn(x, y, z):
        return load(x) + load(y) + load(z)

    assert PASSES["pipeline"](fn) == 3
    assert [op.attrs["stage"] for op in fn.body if op.name == "tile.load"] == [0, 1, 0]


def test_no_such_pass():
    @kernel(x="tensor<64xf32>")
    def fn(x):
        return x

    with pytest.raises(KeyError, match="nothing"):
        run_passes(fn, ["nothing"])
'''

LAYOUT = '''
"""Layouts."""

import pytest

from tilec.ir.types import parse_type
from tilec.passes.layout import choose_vector_width, infer_layout


@pytest.mark.parametrize(
    ("text", "width"), [("tensor<1024xf32>", 4), ("tensor<1024xf16>", 8), ("tensor<32xf32>", 1), ("tensor<64xf16>", 2)]
)
def test_vector_width(text, width):
    assert choose_vector_width(parse_type(text)) == width


def test_layout_of_a_large_tile():
    assert str(infer_layout(parse_type("tensor<1024xf32>"))) == "blocked<4x32x4>"
'''

TARGET = '''
"""Targets."""

import pytest

from tilec.target import parse_target


def test_parse():
    target = parse_target("hip:gfx942")
    assert (target.backend, target.arch, target.warp_size) == ("hip", "gfx942", 64)
    assert str(target) == "hip:gfx942"


def test_no_target():
    with pytest.raises(ValueError, match="metal"):
        parse_target("metal:3")


def test_shared_memory():
    assert parse_target("cuda:80").shared_bytes == 163 * 1024
'''

LOWER = '''
"""The lowering, line by line."""

from tilec.frontend.trace import kernel, load
from tilec.lower.llvm import lower


def test_lower():
    @kernel(x="tensor<64xf16>")
    def twice(x):
        value = load(x)
        return value + value

    text = lower(twice)
    assert "define void @twice(" in text
    assert "fadd half %0, %0" in text
    assert text.endswith("  ret void\\n}\\n")
'''

LIT_CFG = '''
"""lit's configuration: tilec-opt from this checkout, FileCheck from PATH or from Triton's wheel."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import lit.formats

root = Path(__file__).resolve().parents[2]
spec = importlib.util.find_spec("triton")
wheel = Path(spec.origin).parent / "FileCheck" if spec and spec.origin else None
filecheck = shutil.which("FileCheck") or (str(wheel) if wheel and wheel.exists() else "FileCheck")

config.name = "tilec"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = str(root / "tests" / "lit")
config.test_exec_root = os.environ.get("TILEC_LIT_OUTPUT", str(root / "build" / "lit"))
config.environment["PYTHONPATH"] = str(root)
config.substitutions.append(("tilec-opt", f"{sys.executable} -m tilec.opt"))
config.substitutions.append(("FileCheck", filecheck))
'''

LIT_FOLD = """
// RUN: tilec-opt --passes=fold %s | FileCheck %s

// CHECK-LABEL: func.func @constants
// CHECK: tile.constant {value = 6}
// CHECK-NOT: tile.mul
func.func @constants(%x: tensor<64xf32>) {
  %0 = tile.constant {value = 2} : tensor<64xf32>
  %1 = tile.constant {value = 3} : tensor<64xf32>
  %2 = tile.mul %0, %1 : tensor<64xf32>
  %3 = tile.add %x, %2 : tensor<64xf32>
  tile.return %3 : tensor<64xf32>
}
"""

LIT_CSE = """
// RUN: tilec-opt --passes=cse %s | FileCheck %s

// CHECK-LABEL: func.func @twice
// CHECK-COUNT-1: tile.add
// CHECK-NOT: tile.add
func.func @twice(%x: tensor<64xf32>) {
  %0 = tile.add %x, %x : tensor<64xf32>
  %1 = tile.add %x, %x : tensor<64xf32>
  %2 = tile.mul %0, %1 : tensor<64xf32>
  tile.return %2 : tensor<64xf32>
}
"""

LIT_LOWER = """
// RUN: tilec-opt --passes=fold --emit=llvm %s | FileCheck %s

// CHECK: define void @load
// CHECK: load float
func.func @load(%x: tensor<64xf32>) {
  %0 = tile.load %x : tensor<64xf32>
  tile.return %0 : tensor<64xf32>
}
"""
