"""The compiler at the common base, back half: passes, lowering, driver."""

from __future__ import annotations

PASSES_INIT = '''
"""The passes by name, and the manager that runs a list of them."""

from __future__ import annotations

from tilec.passes.cse import cse
from tilec.passes.dce import dce
from tilec.passes.fold import fold
from tilec.passes.layout import layout
from tilec.passes.pipeline import pipeline

PASSES = {
    "fold": fold,
    "cse": cse,
    "dce": dce,
    "layout": layout,
    "pipeline": pipeline,
}
DEFAULT_PIPELINE = ("fold", "cse", "dce", "layout", "pipeline")


def run_passes(fn, names=DEFAULT_PIPELINE):
    """Run passes in order; returns how much each of them changed."""
    changes = {}
    for name in names:
        if name not in PASSES:
            raise KeyError(f"no pass is called {name!r}; there are {', '.join(sorted(PASSES))}")
        changes[name] = PASSES[name](fn)
    return changes
'''

FOLD = '''
"""Constant folding and the identities of arithmetic."""

from __future__ import annotations

import operator

FOLDERS = {"tile.add": operator.add, "tile.sub": operator.sub, "tile.mul": operator.mul}


def constants_of(fn):
    """The values that are known, by value."""
    return {op.result: op.attrs["value"] for op in fn.body if op.name == "tile.constant"}


def fold_binary(op, constants):
    """The number that an operation on two constants gives, or None."""
    if op.name not in FOLDERS or any(operand not in constants for operand in op.operands):
        return None
    left, right = (constants[operand] for operand in op.operands)
    return FOLDERS[op.name](left, right)


def add_zero(op, constants):
    """x + 0 is x."""
    if op.name == "tile.add" and constants.get(op.operands[1]) == 0:
        return op.operands[0]
    return None


RULES = [
    add_zero,
]


def simplify(op, constants):
    """The operand that an operation is equal to, or None."""
    if op.result is None or len(op.operands) != 2:
        return None
    for rule in RULES:
        if (value := rule(op, constants)) is not None:
            return value
    return None


def fold(fn):
    """Fold until nothing changes; returns the number of operations that were folded."""
    changed = 0
    constants = constants_of(fn)
    for op in list(fn.body):
        number = fold_binary(op, constants)
        if number is not None:
            op.name, op.operands, op.attrs = "tile.constant", [], {"value": number}
            constants[op.result] = number
            changed += 1
        elif (value := simplify(op, constants)) is not None:
            fn.replace_uses(op.result, value)
            fn.erase(op)
            changed += 1
    return changed
'''

CSE = '''
"""Common subexpressions: the same operation on the same operands is computed once."""

from __future__ import annotations

PURE = frozenset({"tile.add", "tile.sub", "tile.mul", "tile.constant"})


def key_of(op):
    """Two operations with equal keys compute the same."""
    return (op.name, tuple(id(operand) for operand in op.operands), str(op.result.type), op.attrs.get("value"))


def cse(fn):
    """Drop repeated pure operations; returns how many."""
    seen, dropped = {}, 0
    for op in list(fn.body):
        if op.name not in PURE:
            continue
        key = key_of(op)
        if key in seen:
            fn.replace_uses(op.result, seen[key].result)
            fn.erase(op)
            dropped += 1
        else:
            seen[key] = op
    return dropped
'''

DCE = '''
"""Dead code: what nobody reads and what has no effect goes."""

from __future__ import annotations

EFFECTS = frozenset({"tile.store", "tile.return"})


def is_dead(fn, op):
    """Whether an operation can go."""
    return op.name not in EFFECTS and not fn.uses(op.result)


def dce(fn):
    """Remove dead operations from the end on; returns how many."""
    removed = 0
    for op in reversed(list(fn.body)):
        if is_dead(fn, op):
            fn.erase(op)
            removed += 1
    return removed
'''

LAYOUT = '''
"""Layouts: how the elements of a tile are spread over threads."""

from __future__ import annotations

from dataclasses import dataclass

from tilec.ir.types import ELEMENT_BYTES


@dataclass(frozen=True)
class Layout:
    """Elements a thread holds side by side, threads in a warp, warps."""

    vector: int
    threads: int
    warps: int

    @property
    def elements(self):
        return self.vector * self.threads * self.warps

    def __str__(self):
        return f"blocked<{self.vector}x{self.threads}x{self.warps}>"


def choose_vector_width(kind):
    """Elements that one thread loads at once."""
    width = 16 // ELEMENT_BYTES[kind.element]
    while width > 1 and kind.numel % (width * 32):
        width //= 2
    return width


def choose_warps(kind, vector):
    """Warps that share a tile, four at most."""
    warps = 1
    while warps < 4 and kind.numel >= vector * 32 * warps * 2:
        warps *= 2
    return warps


def infer_layout(kind):
    """The layout of a tensor type."""
    vector = choose_vector_width(kind)
    return Layout(vector, 32, choose_warps(kind, vector))


def layout(fn):
    """Write each result's layout beside it; returns how many."""
    count = 0
    for op in fn.body:
        if op.result is not None:
            op.attrs["layout"] = str(infer_layout(op.result.type))
            count += 1
    return count
'''

PIPELINE = '''
"""Software pipelining: the loads of the next tile overlap the work on this one."""

from __future__ import annotations

DEFAULT_NUM_STAGES = 2


def loads_of(fn):
    """The loads, in order."""
    return [op for op in fn.body if op.name == "tile.load"]


def pipeline(fn, num_stages=DEFAULT_NUM_STAGES):
    """Give each load its stage; returns how many."""
    loads = loads_of(fn)
    for index, op in enumerate(loads):
        op.attrs["stage"] = index % num_stages
    return len(loads)
'''

LLVM_API = '''
"""The part of the toolchain's builder interface that the lowering calls.

Written by tools/gen_llvm_api.py for the revision in cmake/llvm-hash.txt. Do not edit.
"""

LLVM_REVISION = "5c6e2b1f0d8a4937"


def typed_ptr(element):
    return f"{element}*"


def build_load(name, element, pointer):
    return f"{name} = load {element}, {typed_ptr(element)} {pointer}"


def build_binary(name, opcode, element, left, right):
    return f"{name} = {opcode} {element} {left}, {right}"
'''

LOWER = '''
"""The tile IR as LLVM IR text."""

from __future__ import annotations

from tilec.lower import llvm_api

OPCODES = {"tile.add": "fadd", "tile.sub": "fsub", "tile.mul": "fmul"}
ELEMENTS = {"f16": "half", "bf16": "bfloat", "f32": "float", "i32": "i32", "i1": "i1"}


def element_of(kind):
    """LLVM's name of an element."""
    return ELEMENTS[kind.element]


def lower_arg(arg):
    """A parameter: a pointer to its elements."""
    return f"{llvm_api.typed_ptr(element_of(arg.type))} {arg.name}"


def lower_op(op):
    """One operation as one line, or None where nothing is to be said."""
    if op.name == "tile.load":
        return llvm_api.build_load(op.result.name, element_of(op.result.type), op.operands[0].name)
    if op.name in OPCODES:
        left, right = (operand.name for operand in op.operands)
        return llvm_api.build_binary(op.result.name, OPCODES[op.name], element_of(op.result.type), left, right)
    return None


def lower(fn):
    """A whole function."""
    args = ", ".join(lower_arg(arg) for arg in fn.args)
    lines = [f"define void @{fn.name}({args}) {{"]
    lines += [f"  {line}" for op in fn.body if (line := lower_op(op)) is not None]
    return "\\n".join([*lines, "  ret void", "}"]) + "\\n"
'''

DRIVER = '''
"""tilec-opt: reads IR, runs passes, prints what came out."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tilec.ir.parser import parse_functions
from tilec.ir.printer import print_function
from tilec.lower.llvm import lower
from tilec.passes import DEFAULT_PIPELINE, run_passes


def main(argv=None):
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="tilec-opt", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--passes", default=",".join(DEFAULT_PIPELINE), help="names with commas between")
    parser.add_argument("--emit", choices=["ir", "llvm"], default="ir")
    options = parser.parse_args(argv)
    names = [name for name in options.passes.split(",") if name]
    for fn in parse_functions(options.file.read_text()):
        run_passes(fn, names)
        sys.stdout.write(lower(fn) if options.emit == "llvm" else print_function(fn))
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''
