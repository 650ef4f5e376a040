"""Which tests a Python file holds, read from its source alone: names, parameters where they are evident, skips."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bot.core.pytest_ids import ids_of, mark_name
from bot.core.python_names import Body, Library, Names, definitions, spoken, statements

_DEPTH = 6  # names that lead to names: deep enough for real files, and an end for what leads to itself
_SKIPPING = ("skip", "skipTest", "SkipTest")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class SourceTest:
    """One test function as the file shows it.

    `body` and `parameters` are fingerprints, alike where nothing changed. `ids` are its parameter ids as pytest writes
    them: () without parameters, None where they are not evident. `marks` are those that select or skip it.
    """

    name: str
    body: str
    parameters: str
    ids: tuple[str, ...] | None
    skips: frozenset[str]
    marks: frozenset[str]
    collected: bool


def tests_of(path: str, tree: ast.Module, library: Library) -> dict[str, SourceTest]:
    """The test functions of a file by name (`test_x`, `Class::test_x`), inherited ones where the class is at hand."""
    imports: dict[str, tuple[str, str]] = {}
    for node in statements(tree.body):
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            imports |= {alias.asname or alias.name: (module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            imports |= {alias.asname or alias.name: ("", alias.name) for alias in node.names}
    names = Names(path, definitions(tree), imports, library)
    outer = _marks_of(names.own.get("pytestmark"))
    return {test.name: test for test in _tests(tree.body, (), True, outer, names)}


def module_skips(tree: ast.Module) -> frozenset[str]:
    """The statements by which the file as a whole may be skipped when it is loaded."""
    return frozenset(
        ast.dump(call)
        for node in statements(tree.body)
        if isinstance(node, ast.Expr | ast.Assign)
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and _is_module_skip(call)
    )


def _is_module_skip(call: ast.Call) -> bool:
    called = ast.unparse(call.func).rpartition(".")[2]
    return called == "importorskip" or (called == "skip" and any(w.arg == "allow_module_level" for w in call.keywords))


def _tests(
    body: Body, path: tuple[str, ...], collected: bool, marks: tuple[ast.expr, ...], names: Names
) -> Iterator[SourceTest]:
    for node in statements(body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _test(node, path, collected, marks, names)
        elif isinstance(node, ast.ClassDef):
            members = list(_members(node, names, _DEPTH))
            inner = next((found for m in reversed(members) if (found := _pytestmark(m))), ())
            plain = not any(isinstance(m, ast.FunctionDef) and m.name == "__init__" for m in members)
            unit = any(ast.unparse(base).endswith("TestCase") for base in node.bases)
            is_test = collected and ((node.name.startswith("Test") and plain) or unit)
            nearer = (*reversed(node.decorator_list), *inner, *marks)
            yield from _tests(members, (*path, node.name), is_test, nearer, names)


def _members(node: ast.ClassDef, names: Names, depth: int) -> Iterator[ast.stmt]:
    """What the class holds, after what it inherits from classes that are at hand."""
    for base in reversed(node.bases) if depth else ():
        parent = names.find(base.id) if isinstance(base, ast.Name) else None
        if isinstance(parent, ast.ClassDef) and parent is not node:
            yield from _members(parent, names, depth - 1)
    yield from node.body


def _test(
    node: _Function, path: tuple[str, ...], collected: bool, outer: tuple[ast.expr, ...], names: Names
) -> SourceTest:
    marks = (*reversed(node.decorator_list), *outer)
    arguments = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    fixtures = [found for name in arguments if (found := _fixture(name, names)) is not None]
    sources = [*fixtures, *_reached([*marks, *fixtures], names)]
    generated = [names.find("pytest_generate_tests")]
    kinds = frozenset(kind for mark in marks if (kind := mark_name(mark)) and kind != "parametrize")
    calls = [call for call in ast.walk(node) if isinstance(call, ast.Call)]
    skips = [call for call in calls if ast.unparse(call.func).rpartition(".")[2] in _SKIPPING]
    skips_marks = [mark for mark in marks if mark_name(mark).startswith("skip")]
    return SourceTest(
        name="::".join((*path, node.name)),
        body=_dump([node.args, *node.body]),
        parameters=_dump(
            [
                *(mark for mark in marks if not mark_name(mark).startswith(("skip", "xfail"))),
                *sources,
                *filter(None, generated),
            ]
        ),
        ids=ids_of(marks, names),
        skips=frozenset(ast.dump(skip) for skip in (*skips, *skips_marks, *_skipped_values([*marks, *sources]))),
        marks=kinds,
        collected=collected and node.name.startswith("test"),
    )


def _skipped_values(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """The values of a parametrisation that have a mark of their own by which they may be skipped."""
    for call in (call for node in nodes for call in ast.walk(node) if isinstance(call, ast.Call)):
        if ast.unparse(call.func).rpartition(".")[2] == "param":
            own = [mark for word in call.keywords if word.arg == "marks" for mark in _marks_of(word.value)]
            if any(mark_name(mark).startswith("skip") for mark in own):
                yield call


def _fixture(name: str, names: Names) -> ast.AST | None:
    found = names.find(name)
    if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef):
        with_params = [d for d in found.decorator_list if isinstance(d, ast.Call) and "fixture" in ast.unparse(d.func)]
        return ast.Tuple(elts=list(with_params), ctx=ast.Load()) if with_params else None
    return None


def _reached(nodes: Iterable[ast.AST], names: Names) -> list[ast.AST]:
    """The definitions that the nodes lead to by name."""
    reached: dict[str, ast.AST] = {}
    edge = list(nodes)
    for _ in range(_DEPTH):
        step = {spoken(n) for node in edge for n in ast.walk(node)} - reached.keys() - {""}
        found = {name: node for name in sorted(step) if (node := names.find(name)) is not None}
        if not found:
            break
        reached |= found
        edge = list(found.values())
    return [reached[name] for name in sorted(reached)]


def _dump(nodes: Iterable[ast.AST]) -> str:
    return "\n".join(ast.dump(node) for node in nodes)


def _pytestmark(node: ast.stmt) -> tuple[ast.expr, ...]:
    if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets):
        return _marks_of(node.value)
    return ()


def _marks_of(value: ast.AST | None) -> tuple[ast.expr, ...]:
    if isinstance(value, ast.List | ast.Tuple):
        return tuple(value.elts)
    return (value,) if isinstance(value, ast.expr) else ()
