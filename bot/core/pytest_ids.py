"""The ids of parametrised tests as pytest writes them, where the source makes them evident."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence

from bot.core.python_names import Names, spoken

_DEPTH = 6  # names that lead to names: deep enough for real files, and an end for what leads to itself
_MOST = 20_000  # parameter sets that are worth to be written out


def mark_name(mark: ast.expr) -> str:
    """The name of a pytest mark; "" for any other decorator."""
    called = mark.func if isinstance(mark, ast.Call) else mark
    words = ast.unparse(called).split(".")
    if len(words) >= 2 and words[-2] == "mark":
        return words[-1]
    return words[-1] if words[-1] in ("skip", "skipIf", "skipUnless") else ""


def ids_of(marks: tuple[ast.expr, ...], names: Names) -> tuple[str, ...] | None:
    """The ids of all combinations of the parametrize marks, nearest first as pytest joins them."""
    rows: list[list[str]] = []
    for mark in marks:
        if mark_name(mark) == "parametrize":
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
        named = names.find(spoken(node))
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
        named = names.find(spoken(node))
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
