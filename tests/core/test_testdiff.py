"""What a change did to tests, from the files alone: deletions and renames are seen, what merely vanished is not."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from bot.core.manifest import TestChanges, adjust
from bot.core.testdiff import Sources, changes_of, files_of, root_of

T = "t/test_a.py"
TESTS = (f"{T}::test_one", f"{T}::test_two[1]", f"{T}::test_two[2]", f"{T}::TestC::test_in")
SOURCE = """
import pytest
def test_one(): assert 1
@pytest.mark.parametrize("n", [1, 2])
def test_two(n): assert n
class TestC:
    def test_in(self): assert "c"
"""


def edited(old: str, new: str, source: str = SOURCE) -> dict[str, str]:
    assert old in source, old
    return {T: source.replace(old, new)}


def sources(
    after: dict[str, str],
    before: dict[str, str] | None = None,
    renames: dict[str, str] | None = None,
    paths: tuple[str, ...] = (),
) -> Sources:
    old = {T: SOURCE} if before is None else before
    return Sources(
        before={path: text.encode() for path, text in old.items()},
        after={path: text.encode() for path, text in after.items()},
        renames=renames or {},
        paths=frozenset({*old, *paths}),
    )


def expected(tests: tuple[str, ...], given: Sources) -> set[str]:
    return set(adjust(tests=tests, changes=changes_of(tests=tests, sources=given)))


def less(*gone: str) -> set[str]:
    return set(TESTS) - set(gone)


TWO = (f"{T}::test_two[1]", f"{T}::test_two[2]")
CASES = {
    "nothing": ({T: SOURCE}, set(TESTS)),
    "a body changes": (edited("assert 1", "assert 2"), set(TESTS)),
    "a function goes": (edited("def test_one(): assert 1\n", ""), less(TESTS[0])),
    "a function is renamed": (edited("test_one", "test_uno"), less(TESTS[0]) | {f"{T}::test_uno"}),
    "a parametrised function is renamed": (
        edited("test_two", "test_three"),
        less(*TWO) | {f"{T}::test_three[1]", f"{T}::test_three[2]"},
    ),
    "a class is renamed": (edited("TestC", "TestD"), less(TESTS[3]) | {f"{T}::TestD::test_in"}),
    "a class goes": (edited('class TestC:\n    def test_in(self): assert "c"\n', ""), less(TESTS[3])),
    "a value goes": (edited("[1, 2]", "[1]"), less(TWO[1])),
    "a value comes": (edited("[1, 2]", "[1, 2, 3]"), less() | {f"{T}::test_two[3]"}),
    "values get names": (
        edited("[1, 2]", "[pytest.param(1, id='a'), pytest.param(2, id='b')]"),
        less(*TWO) | {f"{T}::test_two[a]", f"{T}::test_two[b]"},
    ),
    "values that are not evident": (edited("[1, 2]", "values()"), less(*TWO) | {f"{T}::test_two"}),
    "a parameter more": (
        edited("@pytest", "@pytest.mark.parametrize('m', [7, 8])\n@pytest"),
        less(*TWO) | {f"{T}::test_two[{n}-{m}]" for n in (1, 2) for m in (7, 8)},
    ),
    "parameters go": (edited('@pytest.mark.parametrize("n", [1, 2])\n', ""), less(*TWO) | {f"{T}::test_two"}),
    "a test comes": (
        edited("class TestC", "def test_new(): pass\nclass TestC"),
        less() | {f"{T}::test_new"},
    ),
    "a test comes that a mark may leave out": (
        edited("class TestC", "@pytest.mark.slow\ndef test_new(): pass\nclass TestC"),
        less(),
    ),
    "a helper comes": (edited("class TestC", "def helper(): pass\nclass TestC"), less()),
    "under a condition it is still there": (
        edited("def test_one(): assert 1", "if pytest:\n    def test_one(): assert 1"),
        less(),
    ),
    "the whole file may be skipped": (edited("import pytest", "import pytest\npytest.importorskip('x')"), {T}),
    "a broken file excuses nothing": ({T: "def ("}, set(TESTS)),
    "the file goes": ({}, set()),
}


@pytest.mark.parametrize("case", CASES)
def test_one_file(case: str) -> None:
    after, wanted = CASES[case]
    assert expected(TESTS, sources(after)) == wanted


def test_a_renamed_file_takes_its_tests_along() -> None:
    moved = "u/test_b.py"
    given = sources({moved: SOURCE.replace("def test_one(): assert 1\n", "")}, renames={T: moved})
    assert expected(TESTS, given) == {test.replace(T, moved) for test in TESTS[1:]}


def test_a_deleted_folder() -> None:
    tests = (*TESTS, "t/sub/test_x.py::test_x", "other/test_y.py::test_y")
    old = {T: SOURCE, "t/sub/test_x.py": "def test_x(): pass"}
    assert expected(tests, sources({}, old, paths=("other/test_y.py",))) == {"other/test_y.py::test_y"}


def test_a_test_that_moves_to_another_file_is_expected_there() -> None:
    other = "t/test_b.py"
    tests = (*TESTS, f"{other}::test_b")
    old = {T: SOURCE, other: "def test_b(): pass\n"}
    new = edited("def test_one(): assert 1\n", "") | {other: "def test_b(): pass\ndef test_one(): assert 1\n"}
    assert expected(tests, sources(new, old)) == less(TESTS[0]) | {f"{other}::test_b", f"{other}::test_one"}


def test_ids_relative_to_a_folder_of_the_repository() -> None:
    deep = f"python/{T}"
    given = sources({deep: SOURCE.replace("[1, 2]", "[2]")}, {deep: SOURCE}, paths=("elsewhere/x.py",))
    assert expected(TESTS, given) == less(TWO[0])
    assert root_of([T], {deep, "elsewhere/x.py"}) == "python/"
    assert files_of(TESTS, {deep}) == {T: deep}
    assert expected(TESTS, sources({}, {"sub/t/test_a.py": SOURCE}, paths=(T,))) == set(TESTS)  # another of that name


def test_what_a_suite_does_not_run_as_a_whole_is_not_asked_of_it() -> None:
    """A filter left test_one out before: who knows whether it wants the new one."""
    new = edited("class TestC", "def test_new(): pass\nclass TestC")
    assert expected(TESTS[1:], sources(new)) == less(TESTS[0])


def test_a_new_file_is_expected_where_its_folder_is_run() -> None:
    new = {
        T: SOURCE,
        "t/test_n.py": "def test_n(): pass",
        "u/test_n.py": "def test_n(): pass",
        "t/x.py": "def test(): 1",
    }
    assert expected(TESTS, sources(new)) == less() | {"t/test_n.py::test_n"}
    assert expected(TESTS, sources(new, paths=("t/test_not_run.py",))) == less()


@pytest.mark.parametrize(
    "source",
    [
        edited("def test_one", "@pytest.mark.skip(reason='x')\ndef test_one"),
        edited("def test_one", "@pytest.mark.skipif(True, reason='x')\ndef test_one"),
        edited("def test_one(): assert 1", "def test_one():\n    pytest.skip('x')"),
    ],
)
def test_a_skip_that_the_change_adds_is_named(source: dict[str, str]) -> None:
    found = changes_of(tests=TESTS, sources=sources(source))
    assert found.skipped == (TESTS[0],)
    again = sources(source, {T: source[T]})
    assert changes_of(tests=TESTS, sources=again).skipped == ()


def test_a_value_that_the_change_marks_as_skipped() -> None:
    marked = "pytest.param(2, marks={})"
    for mark, skipped in (
        ("pytest.mark.skip", (f"{T}::test_two",)),
        ("[pytest.mark.slow, pytest.mark.skipif(True, reason='x')]", (f"{T}::test_two",)),
        ("pytest.mark.xfail", ()),
    ):
        after = edited("[1, 2]", f"[1, {marked.format(mark)}]")
        assert changes_of(tests=TESTS, sources=sources(after)).skipped == skipped
        assert expected(TESTS, sources(after)) == set(TESTS)
        named = edited(
            '@pytest.mark.parametrize("n", [1, 2])', f'N = [1, {marked.format(mark)}]\n@pytest.mark.parametrize("n", N)'
        )
        assert changes_of(tests=TESTS, sources=sources(named)).skipped == skipped
        assert changes_of(tests=TESTS, sources=sources(after, before=after)).skipped == ()


def test_parameters_that_stand_in_another_file() -> None:
    source = SOURCE.replace("import pytest", "import pytest\nfrom shapes import SHAPES").replace("[1, 2]", "SHAPES")
    old = {T: source, "t/shapes.py": "SHAPES = [1, 2]"}
    given = sources({T: source, "t/shapes.py": "SHAPES = [1, 2] + [5]"}, old)
    assert expected(TESTS, given) == less() | {f"{T}::test_two[5]"}
    fixture = "import pytest\n@pytest.fixture(params=[{}])\ndef n(request): return request.param\n"
    plain = SOURCE.replace('@pytest.mark.parametrize("n", [1, 2])\n', "")
    old = {T: plain, "t/conftest.py": fixture.format("1, 2")}
    given = sources({T: plain, "t/conftest.py": fixture.format("1, 2, 3")}, old)
    assert expected(TESTS, given) == less(*TWO) | {f"{T}::test_two"}  # any of them


def test_inherited_tests_go_with_their_class() -> None:
    source = "class Base:\n    def test_a(self): pass\n    def test_b(self): pass\nclass TestX(Base): pass\n"
    tests = (f"{T}::TestX::test_a", f"{T}::TestX::test_b")
    new = {T: source.replace("    def test_b(self): pass\n", "")}
    assert expected(tests, sources(new, {T: source})) == {tests[0]}


LIT = ("TRITON :: Conversion/a.mlir", "TRITON :: Conversion/b.mlir")
RUN = "// RUN: opt %s\n"


@pytest.mark.parametrize(
    ("after", "renames", "wanted", "skipped"),
    [
        ({"test/Conversion/b.mlir": RUN + "x"}, {}, {LIT[1]}, ()),
        (
            {"test/Conversion/c.mlir": RUN, "test/Conversion/b.mlir": RUN},
            {"test/Conversion/a.mlir": "test/Conversion/c.mlir"},
            {"TRITON :: Conversion/c.mlir", LIT[1]},
            (),
        ),
        (
            {"test/Conversion/a.mlir": RUN, "test/Conversion/b.mlir": RUN, "test/Conversion/n.mlir": RUN},
            {},
            {*LIT, "TRITON :: Conversion/n.mlir"},
            (),
        ),
        (
            {
                "test/Conversion/a.mlir": RUN,
                "test/Conversion/b.mlir": RUN,
                "test/Conversion/n.mlir": "no line of lit's",
            },
            {},
            {*LIT},
            (),
        ),
        (
            {"test/Conversion/a.mlir": "// REQUIRES: gpu\n" + RUN, "test/Conversion/b.mlir": RUN},
            {},
            {*LIT},
            (LIT[0],),
        ),
        ({}, {}, set(), ()),
    ],
)
def test_lit(after: dict[str, str], renames: dict[str, str], wanted: set[str], skipped: tuple[str, ...]) -> None:
    old = {"test/Conversion/a.mlir": RUN, "test/Conversion/b.mlir": RUN}
    given = sources(after, old, renames)
    assert expected(LIT, given) == wanted
    assert changes_of(tests=LIT, sources=given).skipped == skipped


G = "unittest/a.cpp"
GTEST = """
TEST(Layout, Swizzle) { EXPECT_EQ(1, 1); }
TEST_F(Layout, Blocked) { EXPECT_EQ(2, 2); }
TEST_P(Shapes, Fits) { EXPECT_EQ(3, 3); }
INSTANTIATE_TEST_SUITE_P(All, Shapes, ::testing::Values(1, 2));
"""
GTESTS = ("Layout.Swizzle", "Layout.Blocked", "All/Shapes.Fits/0", "All/Shapes.Fits/1")


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("EXPECT_EQ(1, 1)", "EXPECT_EQ(1, 2)", set(GTESTS)),
        ("TEST(Layout, Swizzle) { EXPECT_EQ(1, 1); }", "", set(GTESTS[1:])),
        ("Layout, Swizzle", "Layout, Swizzled", {"Layout.Swizzled", *GTESTS[1:]}),
        ("Layout, Swizzle", "Layout, DISABLED_Swizzle", set(GTESTS[1:])),
        ("TEST_P(Shapes, Fits)", "TEST_P(Shapes, Holds)", {*GTESTS[:2], "All/Shapes.Holds/0", "All/Shapes.Holds/1"}),
        ("Values(1, 2)", "Values(1)", set(GTESTS[:3])),
        ("(All, Shapes", "(Some, Shapes", set(GTESTS[:2])),
        ("TEST_P", "TEST(Layout, New) { int n; }\nTEST_P", {*GTESTS, "Layout.New"}),
    ],
)
def test_gtest(old: str, new: str, wanted: set[str]) -> None:
    assert old in GTEST
    assert expected(GTESTS, sources({G: GTEST.replace(old, new)}, {G: GTEST})) == wanted


def test_the_deepest_word_counts() -> None:
    """A function deleted from a renamed file is deleted; one renamed while its folder is renamed keeps its own name."""
    tests = ("a/t.py::f[1]", "a/t.py::g", "a/t.py::h")
    changes = TestChanges(deleted=("a/t.py::g",), renamed={"a/": "b/", "a/t.py::h": "c/t.py::i"})
    assert adjust(tests=tests, changes=changes) == ("b/t.py::f[1]", "c/t.py::i")


def test_a_folder_of_a_thousand_files_is_renamed(tmp_path: Path) -> None:
    text = textwrap.dedent(SOURCE)
    old = {f"old/test_{n}.py": text for n in range(1000)}
    renames = {path: path.replace("old/", "new/") for path in old}
    tests = tuple(test.replace(T, path) for path in old for test in TESTS)
    given = sources({renames[path]: source for path, source in old.items()}, old, renames)
    assert expected(tests, given) == {test.replace("old/", "new/") for test in tests}
