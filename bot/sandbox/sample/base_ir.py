"""The compiler at the common base, front half: IR, parser, printer, frontend, targets."""

from __future__ import annotations

INIT = '''
"""tilec: a small compiler for tile kernels."""

from tilec.frontend.trace import kernel
from tilec.target import Target, parse_target

__all__ = ["Target", "kernel", "parse_target"]
'''

TYPES = '''
"""Element and tensor types of the tile IR."""

from __future__ import annotations

import re
from dataclasses import dataclass

ELEMENT_BYTES = {"i1": 1, "i32": 4, "f16": 2, "bf16": 2, "f32": 4}
_TENSOR = re.compile(r"tensor<((?:\\d+x)*)(\\w+)>")


@dataclass(frozen=True)
class TensorType:
    """A static shape and an element."""

    shape: tuple[int, ...]
    element: str

    def __post_init__(self):
        if self.element not in ELEMENT_BYTES:
            raise ValueError(f"unknown element type {self.element!r}")

    @property
    def numel(self):
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def nbytes(self):
        return self.numel * ELEMENT_BYTES[self.element]

    def __str__(self):
        return "tensor<" + "".join(f"{extent}x" for extent in self.shape) + self.element + ">"


def parse_type(text):
    """`tensor<128x64xf32>` as a TensorType."""
    match = _TENSOR.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"no tensor type: {text!r}")
    shape = tuple(int(extent) for extent in match[1].split("x") if extent)
    return TensorType(shape, match[2])
'''

OPS = '''
"""Values, operations and functions."""

from __future__ import annotations

from dataclasses import dataclass, field

from tilec.ir.types import TensorType


@dataclass(eq=False)
class Value:
    """An SSA value."""

    name: str
    type: TensorType


@dataclass(eq=False)
class Op:
    """One operation; `result` is None for stores and the return."""

    name: str
    operands: list[Value] = field(default_factory=list)
    result: Value | None = None
    attrs: dict[str, object] = field(default_factory=dict)


@dataclass(eq=False)
class Function:
    """A straight line of operations that ends in tile.return."""

    name: str
    args: list[Value] = field(default_factory=list)
    body: list[Op] = field(default_factory=list)

    def uses(self, value):
        """The operations that read a value."""
        found = []
        for op in self.body:
            if value in op.operands:
                found.append(op)
        return found

    def replace_uses(self, old, new):
        """Let every reader of one value read another."""
        for op in self.body:
            op.operands = [new if operand is old else operand for operand in op.operands]

    def erase(self, op):
        """Take out an operation that nobody reads."""
        if op.result is not None and self.uses(op.result):
            raise ValueError(f"{op.name} still has uses")
        self.body.remove(op)
'''

PRINTER = '''
"""The IR as text."""

from __future__ import annotations


def print_attrs(attrs):
    """`{stage = 1, value = 3}`."""
    if not attrs:
        return ""
    return " {" + ", ".join(f"{key} = {print_value(attrs[key])}" for key in attrs) + "}"


def print_value(value):
    """One attribute's value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    return str(value)


def print_op(op):
    """One line, without indent."""
    head = f"{op.result.name} = " if op.result is not None else ""
    operands = " " + ", ".join(operand.name for operand in op.operands) if op.operands else ""
    kind = op.result.type if op.result is not None else op.operands[0].type
    return f"{head}{op.name}{operands}{print_attrs(op.attrs)} : {kind}"


def print_function(fn):
    """A whole function."""
    args = ", ".join(f"{arg.name}: {arg.type}" for arg in fn.args)
    lines = [f"func.func @{fn.name}({args}) {{"]
    lines += ["  " + print_op(op) for op in fn.body]
    width = max(len(line) for line in lines[1:])
    assert width < 4000, "a line too long to read"
    return "\\n".join([*lines, "}"]) + "\\n"
'''

PARSER = '''
"""Text to IR: the subset of MLIR's syntax that the printer writes."""

from __future__ import annotations

import re

from tilec.ir.ops import Function, Op, Value
from tilec.ir.types import parse_type

_FUNC = re.compile(r"func\\.func @(\\w+)\\((.*)\\) \\{")
_OP = re.compile(r"(?:(%\\w+) = )?([\\w.]+)((?: ?%\\w+,?)*)(?: \\{(.*)\\})? : (\\S+)")


class ParseError(ValueError):
    """The text is no tile IR."""


def parse_value(text):
    """An attribute's value: a number, true, false or a string."""
    if text in {"true", "false"}:
        return text == "true"
    if text.startswith('"'):
        return text.strip('"')
    return float(text) if "." in text else int(text)


def parse_attrs(text):
    """The inside of the braces."""
    pairs = (part.split("=", 1) for part in (text or "").split(",") if part.strip())
    return {key.strip(): parse_value(value.strip()) for key, value in pairs}


def parse_functions(text):
    """All functions of a file."""
    functions, fn, values = [], None, {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("//")[0].strip()
        if not line:
            continue
        if match := _FUNC.fullmatch(line):
            fn, values = Function(match[1]), {}
            for arg in filter(None, (part.strip() for part in match[2].split(", "))):
                name, kind = arg.split(": ")
                values[name] = Value(name, parse_type(kind))
                fn.args.append(values[name])
            functions.append(fn)
        elif line == "}":
            fn = None
        elif fn is None:
            raise ParseError("an operation outside a function")
        else:
            fn.body.append(_parse_op(line, values))
    return functions


def _parse_op(line, values):
    match = _OP.fullmatch(line)
    if match is None:
        raise ParseError(f"no operation: {line!r}")
    operands = [values[name] for name in re.findall(r"%\\w+", match[3])]
    op = Op(match[2], operands, None, parse_attrs(match[4]))
    if match[1]:
        op.result = values[match[1]] = Value(match[1], parse_type(match[5]))
    return op
'''

TRACE = '''
"""`@kernel`: a Python function of tiles, traced into a Function."""

from __future__ import annotations

from tilec.ir.ops import Function, Op, Value
from tilec.ir.types import parse_type


class Tile:
    """A symbolic tile: what a traced function computes with."""

    def __init__(self, tracer, value):
        self.tracer = tracer
        self.value = value

    def __add__(self, other):
        return self.tracer.binary("tile.add", self, other)

    def __sub__(self, other):
        return self.tracer.binary("tile.sub", self, other)

    def __mul__(self, other):
        return self.tracer.binary("tile.mul", self, other)


class Tracer:
    """Collects operations while the function runs."""

    def __init__(self, name):
        self.fn = Function(name)
        self.count = 0

    def fresh(self, kind):
        value = Value(f"%{self.count}", kind)
        self.count += 1
        return value

    def constant(self, number, kind):
        op = Op("tile.constant", [], self.fresh(kind), {"value": number})
        self.fn.body.append(op)
        return Tile(self, op.result)

    def binary(self, name, left, right):
        if not isinstance(right, Tile):
            right = self.constant(right, left.value.type)
        if left.value.type != right.value.type:
            raise TypeError(f"{name}: {left.value.type} against {right.value.type}")
        op = Op(name, [left.value, right.value], self.fresh(left.value.type))
        self.fn.body.append(op)
        return Tile(self, op.result)

    def load(self, tile):
        op = Op("tile.load", [tile.value], self.fresh(tile.value.type))
        self.fn.body.append(op)
        return Tile(self, op.result)


def load(tile):
    """Bring a tile from global memory."""
    return tile.tracer.load(tile)


def kernel(**types):
    """`@kernel(x="tensor<128xf32>")`: the decorated function becomes its IR."""

    def decorate(function):
        tracer = Tracer(function.__name__)
        tiles = {}
        for name, text in types.items():
            value = Value(f"%{name}", parse_type(text))
            tracer.fn.args.append(value)
            tiles[name] = Tile(tracer, value)
        result = function(**tiles)
        tracer.fn.body.append(Op("tile.return", [result.value]))
        return tracer.fn

    return decorate
'''

TARGET = '''
"""What is compiled for: `cuda:90`, `hip:gfx942`."""

from __future__ import annotations

from dataclasses import dataclass

WARP_SIZE = {"cuda": 32, "hip": 64}

SHARED_BYTES = {
    "cuda:80": 166912,
    "cuda:90": 233472,
    "hip:gfx942": 65536,
}


@dataclass(frozen=True)
class Target:
    """A backend and an architecture."""

    backend: str
    arch: str

    def __str__(self):
        return f"{self.backend}:{self.arch}"

    @property
    def warp_size(self):
        return WARP_SIZE[self.backend]

    def warps(self, threads):
        """Warps that hold so many threads."""
        return threads // self.warp_size + 1

    @property
    def shared_bytes(self):
        """Shared memory that one block may use."""
        return SHARED_BYTES[str(self)]


def parse_target(text):
    """`cuda:90` as a Target."""
    backend, _, arch = text.partition(":")
    if backend not in WARP_SIZE or not arch:
        raise ValueError(f"no target: {text!r}")
    return Target(backend, arch)
'''
