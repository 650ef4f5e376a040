"""What the toolchain bump, its dependents, and the reverted change of the lowering edit."""

from __future__ import annotations

from bot.sandbox.sample.history import append, overwrite, replace

PIN_BUMP = (
    overwrite("cmake/llvm-hash.txt", "9b47d03a6e1c52f8a4d1b9c07e35f268d90a1e7b\n"),
    replace("tilec/lower/llvm_api.py", 'LLVM_REVISION = "5c6e2b1f0d8a4937"', 'LLVM_REVISION = "9b47d03a6e1c52f8"'),
    replace(
        "tilec/lower/llvm_api.py",
        """
def typed_ptr(element):
    return f"{element}*"


def build_load(name, element, pointer):
    return f"{name} = load {element}, {typed_ptr(element)} {pointer}"
""",
        """
def opaque_ptr(space=0):
    return f"ptr addrspace({space})" if space else "ptr"


def build_load(name, element, pointer):
    return f"{name} = load {element}, {opaque_ptr()} {pointer}"
""",
    ),
    replace(
        "tilec/lower/llvm.py",
        """
    return f"{llvm_api.typed_ptr(element_of(arg.type))} {arg.name}"
""",
        """
    return f"{llvm_api.opaque_ptr()} {arg.name}"
""",
    ),
)

VECTORIZE = (
    replace(
        "tilec/lower/llvm.py",
        """
ELEMENTS = {"f16": "half", "bf16": "bfloat", "f32": "float", "i32": "i32", "i1": "i1"}
""",
        '''
ELEMENTS = {"f16": "half", "bf16": "bfloat", "f32": "float", "i32": "i32", "i1": "i1"}
VECTOR_ELEMENTS = 4


def vector_of(kind):
    """LLVM's vector type where the elements of a tile allow one."""
    element = ELEMENTS[kind.element]
    return f"<{VECTOR_ELEMENTS} x {element}>" if kind.numel % VECTOR_ELEMENTS == 0 else element
''',
    ),
)

UNVECTORIZE = (
    replace(
        "tilec/lower/llvm.py",
        '''
VECTOR_ELEMENTS = 4


def vector_of(kind):
    """LLVM's vector type where the elements of a tile allow one."""
    element = ELEMENTS[kind.element]
    return f"<{VECTOR_ELEMENTS} x {element}>" if kind.numel % VECTOR_ELEMENTS == 0 else element
''',
        "",
    ),
)

PIN_DEPENDENT = (
    replace(
        "tilec/lower/llvm.py",
        """
def lower_op(op):
""",
        '''
def lower_shared(name, kind):
    """A buffer in shared memory: its address, in address space 3."""
    shared, generic = llvm_api.opaque_ptr(3), llvm_api.opaque_ptr()
    return f"{name} = addrspacecast {shared} @shared to {generic} ; {kind.nbytes} bytes"


def lower_op(op):
''',
    ),
    append(
        "tests/unit/test_lower.py",
        """

def test_shared():
    assert lower_shared("%s", parse_type("tensor<64xf16>")).startswith("%s = addrspacecast ptr addrspace(3)")
""",
    ),
    replace(
        "tests/unit/test_lower.py",
        "from tilec.lower.llvm import lower\n",
        "from tilec.ir.types import parse_type\nfrom tilec.lower.llvm import lower, lower_shared\n",
    ),
)

GENERIC_SPACE = (
    replace(
        "tilec/lower/llvm.py",
        '''
    """A buffer in shared memory: its address, in address space 3."""
''',
        '''
    """A buffer in shared memory: its address, from address space 3 to the generic one."""
''',
    ),
)
