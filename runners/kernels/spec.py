"""A kernel check as a value: what to compile for which targets, what to run on which shapes, within which tolerance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of compiling a kernel: types of its arguments, values of its constants, compiler options.

    `targets` keeps it to architectures that have what it needs (empty: all), as `cuda:90` or `hip:gfx942`; `holds` are
    words that the compiler's own form of the kernel (ttgir) must hold: what was asked and left undone is a failure.
    """

    name: str
    signature: Mapping[str, str]
    constants: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    targets: Sequence[str] = ()
    holds: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """One shape to run: `run(device)` gives pairs of what the kernel says and what float64 says.

    A pair agrees where |got - want| <= atol + rtol * |want| everywhere and neither is NaN alone. `dots_bf16` marks what
    the interpreter can't compute: bf16 operands of `tl.dot` come out wrong there without an error. `needs` is what not
    every GPU has ("fp8": e4m3 as NVIDIA and gfx950 have it), `gib` the GPU memory that it takes, if that is much.
    """

    name: str
    run: Callable[[str], Sequence[tuple[Any, Any]]]
    rtol: float
    atol: float
    dots_bf16: bool = False
    native_only: bool = False
    needs: str = ""
    gib: float = 0.0


@dataclass(frozen=True, slots=True)
class Check:
    """A kernel with its variants and cases."""

    name: str
    kernel: Any
    variants: Sequence[Variant] = ()
    cases: Sequence[Case] = ()


@dataclass(frozen=True, slots=True)
class Timing:
    """What is timed: `prepare(device)` gives a call of the kernel; `flops` of one call, where they are what matters."""

    kernel: str
    name: str
    dtype: str
    prepare: Callable[[str], Callable[[], object]]
    flops: float = 0.0


def typed(pointers: Mapping[str, str], integers: Sequence[str] = (), floats: Sequence[str] = ()) -> dict[str, str]:
    """A signature: pointers by element type, 32-bit integers, fp32 scalars; constants are added when compiled."""
    return (
        {name: f"*{kind}" for name, kind in pointers.items()}
        | dict.fromkeys(integers, "i32")
        | dict.fromkeys(floats, "fp32")
    )
