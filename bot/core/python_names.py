"""What the names in the Python files of one commit stand for, from their source alone."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

Body = Sequence[ast.stmt]


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
    for node in statements(tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found.update((t.id, node.value) for t in node.targets if isinstance(t, ast.Name))
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            found[node.target.id] = node.value
    return found


def statements(body: Body) -> Iterator[ast.stmt]:
    """The statements, those under if, try and with too: which branch runs is not evident, but what it may define is."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from statements([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            handlers = [line for handler in node.handlers for line in handler.body]
            yield from statements([*node.body, *handlers, *node.orelse, *node.finalbody])
        elif isinstance(node, ast.With):
            yield from statements(node.body)


def spoken(node: ast.AST) -> str:
    """The name, or dotted name of two parts, that a node is; "" for all else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""
