"""The fork's own extension: TLX, in Python, with tests of its own, on upstream's symbols."""

from __future__ import annotations

INIT = '''
"""TLX: barriers, shared-memory rings and layouts for kernels that manage their own memory."""
'''

BARRIERS = '''
"""Barriers with a phase bit, and the pass that places them."""

from __future__ import annotations

from tilec.ir.ops import Op


class Barrier:
    """Flips its phase whenever all that are expected have arrived."""

    def __init__(self, expected):
        if expected < 1:
            raise ValueError("nobody would ever arrive")
        self.expected = expected
        self.pending = expected
        self.phase = 0

    def arrive(self):
        """One has arrived; returns the phase that is waited for now."""
        self.pending -= 1
        if self.pending == 0:
            self.pending = self.expected
            self.phase = self.phase ^ 1
        return self.phase


def tlx_barriers(fn):
    """Place a barrier after the last load of a function; returns how many."""
    loads = [op for op in fn.body if op.name == "tile.load"]
    if not loads:
        return 0
    place = fn.body.index(loads[-1]) + 1
    fn.body.insert(place, Op("tlx.barrier", [loads[-1].result], None, {"expected": len(loads)}))
    return 1
'''

MEMORY = '''
"""Rings of buffers in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from tilec.target import SHARED_BYTES


@dataclass
class Ring:
    """Buffers that a producer and a consumer go around in."""

    slots: int
    filled: int = 0
    read: int = 0

    def push(self):
        """The slot to fill next."""
        if self.filled - self.read == self.slots:
            raise BufferError("the ring is full")
        self.filled += 1
        return (self.filled - 1) % self.slots

    def pop(self):
        """The slot to read next."""
        if self.filled == self.read:
            raise BufferError("the ring is empty")
        self.read += 1
        return (self.read - 1) % self.slots


def ring_for(target, kind):
    """The largest ring of a tile type that a target's shared memory holds."""
    return Ring(SHARED_BYTES[str(target)] // kind.nbytes)
'''

LAYOUTS = '''
"""Layouts of rings: one slot is laid out as upstream lays out a tile."""

from __future__ import annotations

from tilec.passes.layout import infer_layout


def ring_layout(kind, slots):
    """The slot's layout and the bytes between two slots."""
    slot = infer_layout(kind)
    return slot, -(-kind.nbytes // 128) * 128, slots


def conflict_free(kind):
    """Whether threads side by side load from banks side by side."""
    return infer_layout(kind).vector * kind.nbytes // kind.numel <= 16
'''

TEST_BARRIERS = '''
"""Barriers."""

import pytest

from third_party.tlx.barriers import Barrier, tlx_barriers
from tilec.frontend.trace import kernel, load
from tilec.passes import PASSES


def test_phase_flips_when_all_arrived():
    barrier = Barrier(2)
    assert [barrier.arrive() for _ in range(5)] == [0, 1, 1, 0, 0]


def test_nobody_expected():
    with pytest.raises(ValueError, match="nobody"):
        Barrier(0)


def test_barrier_after_the_last_load():
    @kernel(x="tensor<64xf32>", y="tensor<64xf32>")
    def fn(x, y):
        return load(x) + load(y)

    assert tlx_barriers(fn) == 1
    assert [op.name for op in fn.body] == ["tile.load", "tile.load", "tlx.barrier", "tile.add", "tile.return"]


def test_registered():
    assert PASSES["tlx-barriers"] is tlx_barriers
'''

TEST_MEMORY = '''
"""Rings."""

import pytest

from third_party.tlx.memory import Ring, ring_for
from tilec.ir.types import parse_type
from tilec.target import parse_target


def test_around():
    ring = Ring(2)
    assert [ring.push(), ring.push(), ring.pop(), ring.push()] == [0, 1, 0, 0]


def test_full():
    ring = Ring(1)
    ring.push()
    with pytest.raises(BufferError):
        ring.push()


def test_slots_on_hopper():
    assert ring_for(parse_target("cuda:90"), parse_type("tensor<2048xf16>")).slots == 57
'''

TEST_LAYOUTS = '''
"""Layouts of rings."""

from third_party.tlx.layouts import conflict_free, ring_layout
from tilec.ir.types import parse_type


def test_ring_layout():
    slot, pitch, slots = ring_layout(parse_type("tensor<1024xf32>"), 3)
    assert (str(slot), pitch, slots) == ("blocked<4x32x4>", 4096, 3)


def test_conflict_free():
    assert conflict_free(parse_type("tensor<1024xf16>"))
'''

LIT_BARRIER = """
// RUN: tilec-opt --passes=tlx-barriers %s | FileCheck %s

// CHECK-LABEL: func.func @one
// CHECK: tile.load
// CHECK-NEXT: tlx.barrier
func.func @one(%x: tensor<64xf32>) {
  %0 = tile.load %x : tensor<64xf32>
  tile.return %0 : tensor<64xf32>
}
"""

KERNEL_RING = '''
"""A persistent sum: few programs, each goes around over the blocks."""

import triton
import triton.language as tl

COMPILE = [
    {
        "kernel": "persistent_sum",
        "signature": {
            "x": "*fp32",
            "out": "*fp32",
            "n": "i32",
            "PROGRAMS": "constexpr",
            "BLOCK": "constexpr",
        },
        "constexprs": {"PROGRAMS": 4, "BLOCK": 256},
    },
]


@triton.jit
def persistent_sum(x, out, n, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(program * BLOCK, n, PROGRAMS * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(x + offsets, mask=offsets < n, other=0.0)
    tl.store(out + program, tl.sum(total, axis=0))
'''
