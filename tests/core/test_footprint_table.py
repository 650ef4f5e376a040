"""Symbols by language: what is defined, what its signature and body are, what can be believed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.footprint import TOP, Language, SymbolTable, Tables, is_test, language_of, symbols_of

CPP = b"""
#include <vector>
namespace mlir::triton {
namespace {
static int helper(int a, const Bar &b) { return a + b.x(); }
} // namespace
template <typename T> class Box : public Base<T> {
public:
  Box();
  int get(int z) const { return z; }
  int held = 3;
  enum class Kind { First, Second };
};
int Box::late(int z) { return 1; }
LogicalResult Pass::Inner::run(Operation *op) { int local = 3; auto f = [](int q) { return q; }; return success(); }
using Alias = int;
typedef int Old;
#define CALL(x) helper(x)
int counter = 3;
extern int declared(int);
std::unique_ptr<Pass> createPass();
const char *const *deep(int a) { return 0; }
Value &byReference() {}
} // namespace mlir::triton
TEST_F(LayoutTest, Inverts) { EXPECT_EQ(1, 1); }
"""
TABLEGEN = b"""
include "Base.td"
class Base<string mnemonic, list<Trait> traits = []> : Op<Dialect, mnemonic, traits> { let x = 1; }
def TTG_LocalAllocOp : TTG_Op<"local_alloc", [A, B]> {
  let summary = "x";
  let arguments = (ins Optional<TT_Tensor>:$src, OptionalAttr<I32Attr>:$alignment_bytes);
  let results = (outs TTG_MemDescType:$result);
}
def MyPipeline : Pass<"my-pipeline", "mlir::ModuleOp"> { let summary = "y"; }
multiclass Many<int x> { def one : Base<x>; }
defm All : Many<3>;
"""
PYTHON = b"""
import os
LIMIT = 3
def outer(a, b=1):
    def inner(): pass
    return a
@jit
def kernel(x): return 1
class Thing(Base):
    size: int = 3
    def __init__(self):
        self.width = 1
        self.width = 2
    @property
    def area(self): return self.width
"""
CMAKE = b"""
function(add_thing name)
  set(local 1)
endfunction()
macro(do_it)
endmacro()
add_library(Core a.cpp b.cpp)
add_triton_library(Extra c.cpp DEPENDS Core)
add_subdirectory(lib)
set(VERSION 3)
option(WITH_X "x" ON)
"""
MLIR = b"""
#blocked = #ttg.blocked<{sizePerThread = [1]}>
module {
  // CHECK-LABEL: first
  tt.func public @first(%arg0: !tt.ptr<f32>) -> i32 {
    %0 = tt.call @other(%arg0) : (!tt.ptr<f32>) -> i32
    tt.return %0 : i32
  }
  func.func private @second(i32) -> i32
}
"""


def names(text: bytes, language: Language) -> set[str]:
    return {d.name for d in symbols_of(text, language).definitions if d.name != TOP}


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (
            Language.CPP,
            CPP,
            {
                "helper",
                "Box",
                "Box.Box",
                "Box.get",
                "Box.held",
                "Box.Kind",
                "Box.Kind.First",
                "Box.Kind.Second",
                "Box.late",
                "Pass.Inner.run",
                "Alias",
                "Old",
                "CALL",
                "counter",
                "declared",
                "createPass",
                "deep",
                "byReference",
                "LayoutTest.Inverts",
            },
        ),
        (Language.CUDA, b"__global__ void run(float *x) { x[threadIdx.x] = 0; }", {"run"}),
        (Language.C, b"struct s { int f; };\nstatic int go(void) { goto end; end: return 0; }\n", {"s", "s.f", "go"}),
        (
            Language.TABLEGEN,
            TABLEGEN,
            {
                "Base",
                "TTG_LocalAllocOp",
                "TTG_LocalAllocOp.src",
                "TTG_LocalAllocOp.alignment_bytes",
                "TTG_LocalAllocOp.result",
                "MyPipeline",
                "Many",
                "Many.one",
                "All",
            },
        ),
        (
            Language.PYTHON,
            PYTHON,
            {"LIMIT", "outer", "kernel", "Thing", "Thing.size", "Thing.__init__", "Thing.width", "Thing.area"},
        ),
        (Language.CMAKE, CMAKE, {"add_thing", "do_it", "Core", "Extra", "VERSION", "WITH_X"}),
        (Language.MLIR, MLIR, {"first", "second"}),
        (Language.OTHER, b"anything\n", set()),
    ],
)
def test_each_language_says_what_it_defines(language: Language, text: bytes, expected: set[str]) -> None:
    assert names(text, language) == expected


def test_tablegen_defines_what_is_generated_from_it() -> None:
    by_name = {d.name: d for d in symbols_of(TABLEGEN, Language.TABLEGEN).definitions}
    assert by_name["TTG_LocalAllocOp"].names == ("TTG_LocalAllocOp", "LocalAllocOp", "ttg.local_alloc")
    assert by_name["TTG_LocalAllocOp.alignment_bytes"].names[1:] == ("getAlignmentBytes", "getAlignmentBytesMutable")
    assert "createMyPipeline" in by_name["MyPipeline"].names


@pytest.mark.parametrize(
    ("language", "old", "new", "signature", "body"),
    [
        (Language.CPP, b"int f(int a) { return a; }", b"int f(int a) { return a + 1; }", False, True),
        (Language.CPP, b"int f(int a) { return a; }", b"int f(int a, int b) { return a; }", True, False),
        (
            Language.CPP,
            b"int f(int a) { return a; }",
            b"int f(int a)\n{\n  // why\n  return a; /* so */\n}",
            False,
            False,
        ),
        (Language.CPP, b'int f() { return g("// x"); }', b'int f() { return g("// y"); }', False, True),
        (Language.PYTHON, b"def f(a):\n    return 1\n", b"def f(a):\n    return 2\n", False, True),
        (Language.PYTHON, b"def f(a):\n    return 1\n", b"def f(a, b=1):\n    return 1\n", True, False),
        (Language.PYTHON, b"def f(a):\n    return 1\n", b"def f(a):\n    # why\n    return 1  # so\n", False, False),
        (Language.PYTHON, b"def f(a):\n    return 1\n", b"@jit\ndef f(a):\n    return 1\n", True, False),
        (Language.PYTHON, b"f = 1\n", b"f = 2\n", False, True),
        (Language.CMAKE, b"add_library(f a.cpp)\n", b"add_library(f a.cpp b.cpp)\n", False, True),
        (
            Language.MLIR,
            b"func.func @f() {\n  // CHECK: a\n  return\n}\n",
            b"func.func @f() {\n  // CHECK: b\n  return\n}\n",
            False,
            True,
        ),
    ],
)
def test_signature_and_body_are_told_apart(
    language: Language, old: bytes, new: bytes, signature: bool, body: bool
) -> None:
    before, after = ({d.name: d for d in symbols_of(t, language).definitions}["f"] for t in (old, new))
    assert (before.signature != after.signature, before.body != after.body) == (signature, body)


def test_a_class_changes_only_where_its_own_text_does() -> None:
    old = b"class A:\n    x = 1\n    def m(self):\n        return 1\n"
    new = old.replace(b"return 1", b"return 2")
    before, after = ({d.name: d for d in symbols_of(t, Language.PYTHON).definitions} for t in (old, new))
    assert before["A"] == after["A"]
    assert before["A.m"].body != after["A.m"].body


def test_what_stands_outside_all_symbols_is_the_top() -> None:
    old, new = (
        symbols_of(t, Language.PYTHON)
        for t in (b"import a\n\ndef f(): pass\n", b"import a\nimport b\n\ndef f(): pass\n")
    )
    assert old.definitions[0].name == TOP
    assert old.definitions[0].names == ()
    assert old.definitions[0].body != new.definitions[0].body
    assert old.definitions[1].body == new.definitions[1].body


def test_broken_text_is_not_trusted_and_a_small_break_is() -> None:
    assert not symbols_of(b"}}}} ((( class \n" * 40, Language.CPP).parsed
    assert symbols_of(CPP + b"\nint broken( {\n", Language.CPP).definitions
    assert not symbols_of(b"\0\1\2", Language.CPP).parsed


@settings(deadline=None)
@given(st.binary(max_size=300), st.sampled_from(list(Language)))
def test_any_bytes_give_a_table_that_survives_the_cache(blob: bytes, language: Language) -> None:
    table = symbols_of(blob, language)
    assert SymbolTable.decode(table.encode()) == table
    assert all(1 <= d.start <= d.end for d in table.definitions)


def test_a_broken_cache_entry_is_refused() -> None:
    with pytest.raises(ValueError, match="symbol table"):
        SymbolTable.decode(b"nonsense")


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("lib/A.cpp", Language.CPP),
        ("include/A.h", Language.CPP),
        ("a/b.cu", Language.CUDA),
        ("x.c", Language.C),
        ("CMakeLists.txt", Language.CMAKE),
        ("cmake/X.cmake", Language.CMAKE),
        ("a.td", Language.TABLEGEN),
        ("t/a.mlir", Language.MLIR),
        ("a.py", Language.PYTHON),
        ("README.md", Language.OTHER),
        ("Makefile", Language.OTHER),
        (".gitignore", Language.OTHER),
    ],
)
def test_language_by_name(path: str, language: Language) -> None:
    assert language_of(path) is language


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("test/Conversion/a.mlir", True),
        ("python/test/unit/x.py", True),
        ("unittest/A/B.cpp", True),
        ("a/test_b.py", True),
        ("lib/LayoutTest.cpp", True),
        ("pkg/tests/data.txt", True),
        ("lib/Latest.cpp", False),
        ("lib/Contest/a.cpp", False),
    ],
)
def test_what_is_a_test(path: str, expected: bool) -> None:
    assert is_test(path) is expected


VERSIONS = st.lists(
    st.sampled_from([b"int f() { return 1; }\n", b"int g(int a);\n", b"// x\n", b"class C {\n int m();\n};\n", b"\n"])
)


@settings(deadline=None)
@given(st.lists(VERSIONS.map(b"".join), min_size=1, max_size=6))
def test_reading_by_the_difference_gives_the_same_table(versions: list[bytes]) -> None:
    reader, before = Tables(keep=2), None
    for number, text in enumerate(versions):
        oid = str(number)
        assert reader.of(oid, text, Language.CPP, before=before) == symbols_of(text, Language.CPP)
        before = oid


@pytest.mark.parametrize(
    "text", [CPP, CPP.replace(b"\n", b"\r\n"), b"}}}}\n" + CPP, b"int f();\r int g();\n", b"\0", b"int last();"]
)
def test_whatever_came_before_the_table_is_the_same(text: bytes) -> None:
    for first in (CPP, b"", text, b"int last();\n"):
        reader = Tables()
        reader.of("1", first, Language.CPP)
        assert reader.of("2", text, Language.CPP, before="1") == symbols_of(text, Language.CPP)
