"""Which tests a Python file holds, read from its source alone: names, parameters where they are evident, skips."""

from __future__ import annotations

import ast
import itertools
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_DEPTH = 6  # names that lead to names: deep enough for real files, and an end for what leads to itself
_MOST = 20_000  # parameter sets that are worth to be written out
_SKIPPING = ("skip", "skipTest", "SkipTest")
_LEFT_OUT = ("skip", "xfail")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Body = Sequence[ast.stmt]


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


class Library:
    """The files of one commit that are at hand, by path: what names in them stand for."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self._trees = trees
        self._known: dict[str, dict[str, ast.AST]] = {}
        self._stems: dict[str, list[str]] = {}
        for path in trees:
            self._stems.setdefault(path.rpartition("/")[2], []).append(path)

    def of(self, path: str) -> Mapping[str, ast.AST]:
        """What the names at a file's module level stand for."""
        if path not in self._known:
            self._known[path] = definitions(self._trees[path])
        return self._known[path]

    def imported(self, module: str, name: str) -> ast.AST | None:
        """A name of a module, by the file whose path ends with the module's; None where it is not at hand."""
        tail = module.lstrip(".").replace(".", "/") + ".py"
        for path in self._stems.get(tail.rpartition("/")[2], ()):
            if ("/" + path).endswith("/" + tail) and name in self.of(path):
                return self.of(path)[name]
        return None

    def shared(self, path: str, name: str) -> ast.AST | None:
        """A name (of a fixture) in the nearest conftest.py that is at hand."""
        around = [c for c in self._stems.get("conftest.py", ()) if path.startswith(c.removesuffix("conftest.py"))]
        for conftest in sorted(around, key=len, reverse=True):
            if name in self.of(conftest):
                return self.of(conftest)[name]
        return None


@dataclass(frozen=True, slots=True)
class Names:
    """What names in one file stand for."""

    path: str
    own: Mapping[str, ast.AST]
    imports: Mapping[str, tuple[str, str]]
    library: Library

    def find(self, name: str) -> ast.AST | None:
        """The definition of a name, or of a dotted one of an imported module; None where no file at hand has it."""
        if name in self.own:
            return self.own[name]
        first, dot, rest = name.partition(".")
        if first in self.imports:
            module, original = self.imports[first]
            inside = f"{module}.{original}" if module.strip(".") else original
            return self.library.imported(inside, rest) if dot else self.library.imported(module, original)
        return None if dot else self.library.shared(self.path, name)


def parse(source: bytes) -> ast.Module | None:
    """The file's tree; None where it is no Python of ours."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what an invalid escape in the fork's file is worth is not ours to say
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def definitions(tree: ast.Module) -> dict[str, ast.AST]:
    """What each name at module level was last bound to."""
    found: dict[str, ast.AST] = {}
    for node in _statements(tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found.update((t.id, node.value) for t in node.targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            found[node.target.id] = node.value
    return found


def tests_of(path: str, tree: ast.Module, library: Library) -> dict[str, SourceTest]:
    """The test functions of a file by name (`test_x`, `Class::test_x`), inherited ones where the class is at hand."""
    imports: dict[str, tuple[str, str]] = {}
    for node in _statements(tree.body):
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
        for node in _statements(tree.body)
        if isinstance(node, ast.Expr | ast.Assign)
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and _is_module_skip(call)
    )


def _is_module_skip(call: ast.Call) -> bool:
    called = ast.unparse(call.func).rpartition(".")[2]
    return called == "importorskip" or (called == "skip" and any(w.arg == "allow_module_level" for w in call.keywords))


def _tests(
    body: _Body, path: tuple[str, ...], collected: bool, marks: tuple[ast.expr, ...], names: Names
) -> Iterator[SourceTest]:
    for node in _statements(body):
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
    kinds = frozenset(kind for mark in marks if (kind := _mark_name(mark)) and kind != "parametrize")
    calls = [call for call in ast.walk(node) if isinstance(call, ast.Call)]
    skips = [call for call in calls if ast.unparse(call.func).rpartition(".")[2] in _SKIPPING]
    skips_marks = [mark for mark in marks if _mark_name(mark).startswith("skip")]
    return SourceTest(
        name="::".join((*path, node.name)),
        body=_dump([node.args, *node.body]),
        parameters=_dump(
            [
                *(mark for mark in marks if not _mark_name(mark).startswith(("skip", "xfail"))),
                *sources,
                *filter(None, generated),
            ]
        ),
        ids=_ids(marks, names),
        skips=frozenset(ast.dump(skip) for skip in (*skips, *skips_marks, *_skipped_values([*marks, *sources]))),
        marks=kinds,
        collected=collected and node.name.startswith("test"),
    )


def _skipped_values(nodes: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """The values of a parametrisation that have a mark of their own by which they may be skipped."""
    for call in (call for node in nodes for call in ast.walk(node) if isinstance(call, ast.Call)):
        if ast.unparse(call.func).rpartition(".")[2] == "param":
            own = [mark for word in call.keywords if word.arg == "marks" for mark in _marks_of(word.value)]
            if any(_mark_name(mark).startswith("skip") for mark in own):
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
        step = {_spoken(n) for node in edge for n in ast.walk(node)} - reached.keys() - {""}
        found = {name: node for name in sorted(step) if (node := names.find(name)) is not None}
        if not found:
            break
        reached |= found
        edge = list(found.values())
    return [reached[name] for name in sorted(reached)]


def _spoken(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""


def _dump(nodes: Iterable[ast.AST]) -> str:
    return "\n".join(ast.dump(node) for node in nodes)


def _statements(body: _Body) -> Iterator[ast.stmt]:
    """The statements, those under if, try and with too: which branch runs is not evident, but what it may define is."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from _statements([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            handlers = [line for handler in node.handlers for line in handler.body]
            yield from _statements([*node.body, *handlers, *node.orelse, *node.finalbody])
        elif isinstance(node, ast.With):
            yield from _statements(node.body)


def _pytestmark(node: ast.stmt) -> tuple[ast.expr, ...]:
    if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets):
        return _marks_of(node.value)
    return ()


def _marks_of(value: ast.AST | None) -> tuple[ast.expr, ...]:
    if isinstance(value, ast.List | ast.Tuple):
        return tuple(value.elts)
    return (value,) if isinstance(value, ast.expr) else ()


def _mark_name(mark: ast.expr) -> str:
    """The name of a pytest mark; "" for any other decorator."""
    called = mark.func if isinstance(mark, ast.Call) else mark
    words = ast.unparse(called).split(".")
    if len(words) >= 2 and words[-2] == "mark":
        return words[-1]
    return words[-1] if words[-1] in ("skip", "skipIf", "skipUnless") else ""


def _ids(marks: tuple[ast.expr, ...], names: Names) -> tuple[str, ...] | None:
    """The ids of all combinations of the parametrize marks, nearest first as pytest joins them."""
    rows: list[list[str]] = []
    for mark in marks:
        if _mark_name(mark) == "parametrize":
            row = _row(mark, names) if isinstance(mark, ast.Call) else None
            if row is None:
                return None
            rows.append(row)
    count = 1
    for row in rows:
        count *= len(row)
    if not rows or count > _MOST:
        return None if rows else ()
    ids = tuple("-".join(combined) for combined in itertools.product(*rows))
    return ids if len(set(ids)) == len(ids) else None


def _row(call: ast.Call, names: Names) -> list[str] | None:
    """The ids of one parametrize mark; None where they are not evident."""
    given = {word.arg: word.value for word in call.keywords}
    first = call.args[0] if call.args else given.get("argnames")
    second = call.args[1] if len(call.args) > 1 else given.get("argvalues")
    arguments = _constant(first, names)
    if isinstance(arguments, str):
        arguments = [word.strip() for word in arguments.split(",") if word.strip()]
    values = _elements(second, names, _DEPTH)
    if not isinstance(arguments, list) or not values:
        return None
    told: list[str | None] = [None] * len(values)
    if "ids" in given and not (isinstance(given["ids"], ast.Constant) and given["ids"].value is None):
        texts = _elements(given["ids"], names, _DEPTH)
        if texts is None or len(texts) != len(values):
            return None
        told = [_scalar(text, names) for text in texts]
        if None in told:
            return None
    found: list[str] = []
    for index, value in enumerate(values):
        name = told[index] or _value_id(value, [str(a) for a in arguments], index, names)
        if name is None:
            return None
        found.append(name)
    return found


def _value_id(value: ast.expr, arguments: list[str], index: int, names: Names) -> str | None:
    parts: Sequence[ast.expr] = [value]
    if isinstance(value, ast.Call):
        own = {word.arg: word.value for word in value.keywords}
        if ast.unparse(value.func).rpartition(".")[2] != "param":
            return None
        if "id" in own:
            return _scalar(own["id"], names)
        parts = value.args
    elif len(arguments) > 1:
        inner = _elements(value, names, _DEPTH)
        if inner is None:
            return None
        parts = inner
    if len(parts) != len(arguments):
        return None
    written = []
    for argument, part in zip(arguments, parts, strict=True):
        text = _scalar(part, names)
        if text is None:
            if not isinstance(part, ast.List | ast.Tuple | ast.Dict | ast.Set):
                return None
            text = f"{argument}{index}"
        written.append(text)
    return "-".join(written)


def _elements(node: ast.expr | None, names: Names, depth: int) -> list[ast.expr] | None:
    """The elements of a list that is written out, named, added up or counted by range."""
    if node is None or depth == 0:
        return None
    if isinstance(node, ast.List | ast.Tuple):
        return None if any(isinstance(e, ast.Starred) for e in node.elts) else list(node.elts)
    if isinstance(node, ast.Name | ast.Attribute):
        named = names.find(_spoken(node))
        return _elements(named, names, depth - 1) if isinstance(named, ast.expr) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _elements(node.left, names, depth - 1), _elements(node.right, names, depth - 1)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        bounds = [_constant(argument, names) for argument in node.args]
        if bounds and all(isinstance(bound, int) for bound in bounds):
            numbers = range(*(int(str(bound)) for bound in bounds))
            return [ast.Constant(number) for number in numbers] if len(numbers) <= _MOST else None
    return None


def _constant(node: ast.expr | None, names: Names) -> object:
    """The value of a literal or of a name that stands for one; None where it is not evident."""
    if isinstance(node, ast.Name | ast.Attribute):
        named = names.find(_spoken(node))
        node = named if isinstance(named, ast.expr) else None
    if node is None:
        return None
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return list(value) if isinstance(value, tuple) else value


def _scalar(node: ast.expr, names: Names) -> str | None:
    """How pytest writes a string, number, truth value or None in an id; None for all else."""
    value = _constant(node, names)
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() and value else None
    if isinstance(value, bool | int | float):
        return str(value)
    return "None" if isinstance(node, ast.Constant) and node.value is None else None
