"""Upstream's first ten commits after the common base: those that the fork has mostly taken in already."""

from __future__ import annotations

from bot.sandbox.sample.history import Change, append, at, replace, write
from bot.sandbox.sample.people import INES, KENJI, OLU, RAVI, ZOFIA

FOLD_SUB_SELF = (
    replace(
        "tilec/passes/fold.py",
        """
RULES = [
    add_zero,
]
""",
        '''
def sub_zero(op, constants):
    """x - 0 is x."""
    if op.name == "tile.sub" and constants.get(op.operands[1]) == 0:
        return op.operands[0]
    return None


RULES = [
    add_zero,
    sub_zero,
]
''',
    ),
    append(
        "tests/unit/test_passes.py",
        """

def test_sub_zero():
    @kernel(x="tensor<64xf32>")
    def fn(x):
        return x - 0

    assert PASSES["fold"](fn) == 1
""",
    ),
)

STABLE_ATTRS = (
    replace(
        "tilec/ir/printer.py",
        'for key in attrs) + "}"',
        'for key in sorted(attrs)) + "}"',
    ),
)

DOCUMENT_LAYOUTS = (
    write(
        "docs/layouts.md",
        """
# Layouts

`blocked<VxTxW>`: V elements side by side in a thread, T threads in a warp, W warps. A thread loads 16 bytes at once
where the tile is large enough.
""",
    ),
)

CHECK_EXTENTS = (
    replace(
        "tilec/ir/types.py",
        """
            raise ValueError(f"unknown element type {self.element!r}")
""",
        """
            raise ValueError(f"unknown element type {self.element!r}")
        if any(extent < 1 for extent in self.shape):
            raise ValueError(f"a tile of {self.shape} holds nothing")
""",
    ),
    append(
        "tests/unit/test_ir.py",
        """

def test_empty_tile():
    with pytest.raises(ValueError, match="holds nothing"):
        parse_type("tensor<0x4xf32>")
""",
    ),
)

NUMEL = (
    replace("tilec/ir/types.py", "import re\nfrom dataclasses", "import math\nimport re\nfrom dataclasses"),
    replace(
        "tilec/ir/types.py",
        """
        count = 1
        for extent in self.shape:
            count *= extent
        return count
""",
        """
        return math.prod(self.shape)
""",
    ),
)

CI_PYTHON = (replace(".github/workflows/ci.yml", '["3.11", "3.12"]', '["3.11", "3.12", "3.13"]'),)

DCE_EFFECTS = (
    replace(
        "tilec/passes/dce.py",
        """
    return op.name not in EFFECTS and not fn.uses(op.result)
""",
        """
    return op.name not in EFFECTS and not op.attrs.get("volatile") and not fn.uses(op.result)
""",
    ),
)

GFX950 = (
    replace(
        "tilec/target.py",
        """
    "hip:gfx942": 65536,
""",
        """
    "hip:gfx942": 65536,
    "hip:gfx950": 163840,
""",
    ),
    append(
        "tests/unit/test_target.py",
        """

def test_gfx950():
    assert parse_target("hip:gfx950").shared_bytes == 160 * 1024
""",
    ),
)

FAST_USES = (
    replace(
        "tilec/ir/ops.py",
        """
        found = []
        for op in self.body:
            if value in op.operands:
                found.append(op)
        return found
""",
        """
        return [op for op in self.body if any(operand is value for operand in op.operands)]
""",
    ),
)

PARSE_LINES = (
    replace(
        "tilec/ir/parser.py",
        """
            raise ParseError("an operation outside a function")
        else:
            fn.body.append(_parse_op(line, values))
""",
        """
            raise ParseError(f"line {number}: an operation outside a function")
        else:
            fn.body.append(_parse_op(line, values, number))
""",
    ),
    replace(
        "tilec/ir/parser.py",
        """
def _parse_op(line, values):
    match = _OP.fullmatch(line)
    if match is None:
        raise ParseError(f"no operation: {line!r}")
""",
        """
def _parse_op(line, values, number):
    match = _OP.fullmatch(line)
    if match is None:
        raise ParseError(f"line {number}: no operation: {line!r}")
""",
    ),
)

EARLY: tuple[Change, ...] = (
    Change("Fold subtraction of zero (#101)\n", INES, at(11, 2, 9), FOLD_SUB_SELF, "fold_sub"),
    Change("Print attributes in a stable order (#102)\n", KENJI, at(11, 2, 15), STABLE_ATTRS, "stable_attrs"),
    Change("Document the layouts (#103)\n", ZOFIA, at(11, 3, 10), DOCUMENT_LAYOUTS, "document_layouts"),
    Change("Refuse tiles that hold nothing (#104)\n", KENJI, at(11, 3, 16), CHECK_EXTENTS, "check_extents"),
    Change("Let math.prod count the elements (#105)\n", OLU, at(11, 4, 9), NUMEL, "numel"),
    Change("ci: test on Python 3.13 (#106)\n", RAVI, at(11, 4, 11), CI_PYTHON, "ci_only"),
    Change(
        "dce: keep volatile operations (#107)\n\nA load from a mailbox is read for its effect.\n",
        INES,
        at(11, 4, 17),
        DCE_EFFECTS,
        "picked_then_reverted",
    ),
    Change("Add the target hip:gfx950 (#108)\n", OLU, at(11, 5, 10), GFX950, "gfx950"),
    Change("Look uses up by identity (#109)\n", KENJI, at(11, 5, 14), FAST_USES, "fast_uses"),
    Change("Parser: name the line of an error (#110)\n", KENJI, at(11, 6, 9), PARSE_LINES, "parse_lines"),
)
