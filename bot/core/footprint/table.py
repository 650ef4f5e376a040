"""The symbols that one blob defines: a pure function of bytes and language, compact and cacheable by blob id."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import accumulate
from typing import Protocol

from tree_sitter import Node, QueryCursor, Tree

from bot.core.footprint.grammars import parser, query
from bot.core.footprint.hunks import hunks
from bot.core.footprint.languages import GRAMMAR_VERSION, Language
from bot.core.footprint.lexer import code_of

TOP = "<top>"
TOP_KIND = "top"
_SCOPE_KINDS = frozenset({"class", "enum", "def"})
_OPAQUE_KINDS = frozenset({"function", "macro"})  # what is defined inside is local
_WRAPPED_KINDS = frozenset({"function", "class", "variable"})
_WRAPPERS = frozenset({"decorated_definition", "template_declaration"})  # a decorator is part of the signature
_LARGEST = 4_000_000  # bytes; beyond, a file is generated and its symbols say nothing
_TRUSTED_SHARE = 0.7  # of a file's bytes outside broken regions, below which its table is not to be trusted
_OPERANDS = re.compile(rb"let\s+(?:arguments|results)\s*=\s*\((.*?)\)\s*;", re.DOTALL)
_OPERAND = re.compile(rb"([^,()]*(?:\([^()]*\)[^,()]*)*):\s*\$([A-Za-z_]\w*)")
_MNEMONIC = re.compile(rb"<\s*\"([a-z][\w.]*)\"")
_PASS = re.compile(rb":\s*Pass\s*<")


class FootprintCache(Protocol):
    """Keeps tables and footprints between runs; a key says all that its value depends on."""

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The values that are there; keys that are not known are left out."""

    def put_many(self, values: Mapping[str, bytes]) -> None:
        """Keep these values."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition: lines from 1, both included; hashes ignore comments and white space.

    `name` is qualified by its classes (`Class.name`, no namespaces); `kind` is function, class, variable, macro, def,
    operand, target …; `aliases` are the names that it has elsewhere (what TableGen generates from it).
    """

    name: str
    kind: str
    start: int
    end: int
    signature: str
    body: str
    aliases: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """The name without its classes: what a reference shows."""
        return self.name.rpartition(".")[2]

    @property
    def names(self) -> tuple[str, ...]:
        """All names by which other code can refer to it; a file's top level has none."""
        return () if self.kind == TOP_KIND else (self.short, *self.aliases)


@dataclass(frozen=True, slots=True)
class SymbolTable:
    """What a blob defines, in order of lines. `parsed` is False where its grammar failed on a good part of it."""

    language: Language
    definitions: tuple[Definition, ...]
    parsed: bool = True

    def encode(self) -> bytes:
        """A compact form for the cache."""
        rows = [[d.name, d.kind, d.start, d.end, d.signature, d.body, *d.aliases] for d in self.definitions]
        return zlib.compress(json.dumps([self.language.value, self.parsed, rows], separators=(",", ":")).encode(), 1)

    @classmethod
    def decode(cls, raw: bytes) -> SymbolTable:
        """The inverse of `encode`; raises ValueError where `raw` is none."""
        try:
            language, parsed, rows = json.loads(zlib.decompress(raw))
        except zlib.error as error:
            raise ValueError(f"not a symbol table: {error}") from error
        definitions = (
            Definition(name, kind, start, end, signature, body, tuple(aliases))
            for name, kind, start, end, signature, body, *aliases in rows
        )
        return cls(Language(language), tuple(definitions), parsed)


def table_key(oid: str, language: Language) -> str:
    """The cache's key for a blob's table."""
    return f"table:{GRAMMAR_VERSION}:{language.value}:{oid}"


def symbols_of(blob: bytes, language: Language) -> SymbolTable:
    """The symbols that `blob` defines, its top level first; OTHER has nothing but that."""
    if language is Language.OTHER:
        return SymbolTable(language, (_top(blob, [], language),))
    if not _readable(blob):
        return SymbolTable(language, (), parsed=False)
    return _table(parser(language).parse(blob), blob, language)


class Tables:
    """Makes tables, and reads a file's next version by what differs from the one before: the same table in less time.

    `keep` is how many parsed files it holds on to, about ten times their text each.
    """

    def __init__(self, keep: int = 256) -> None:
        self._keep = keep
        self._trees: dict[tuple[str, Language], tuple[Tree, bytes]] = {}

    def of(self, oid: str, blob: bytes, language: Language, *, before: str | None = None) -> SymbolTable:
        """The table of the blob `oid`; `before` is the id of one that it is likely to resemble."""
        if language is Language.OTHER or not _readable(blob):
            return symbols_of(blob, language)
        known = self._trees.pop((before or oid, language), None)
        plain = known is not None and b"\r" not in blob and b"\r" not in known[1]  # the grammar counts other line ends
        tree = _next(known[0], known[1], blob, language) if known and plain else None
        # how a parser recovers from an error depends on what it has seen before: such a file is read in full
        if tree is None or tree.root_node.has_error:
            tree = parser(language).parse(blob)
        self._trees[oid, language] = (tree, blob)
        while len(self._trees) > self._keep:
            del self._trees[next(iter(self._trees))]
        return _table(tree, blob, language)


def _readable(blob: bytes) -> bool:
    return len(blob) <= _LARGEST and b"\0" not in blob[:8192]


def _next(tree: Tree, old: bytes, new: bytes, language: Language) -> Tree:
    """The tree of `new` by way of that of `old`."""
    edited = tree.copy()
    offsets = [0, *accumulate(map(len, old.splitlines(keepends=True)))]
    rows = new.splitlines(keepends=True)
    for hunk in reversed(hunks(old, new)):
        start = offsets[hunk.old_start - 1]
        end = offsets[hunk.old_start - 1 + hunk.old_lines]
        text = b"".join(rows[hunk.new_start - 1 : hunk.new_start - 1 + hunk.new_lines])
        row = hunk.old_start - 1
        edited.edit(start, end, start + len(text), (row, 0), _point(row, old[start:end]), _point(row, text))
    return parser(language).parse(new, edited)


def _point(row: int, text: bytes) -> tuple[int, int]:
    """Where `text` ends that begins at the start of a row."""
    return row + text.count(b"\n"), len(text) - text.rfind(b"\n") - 1


def _table(tree: Tree, blob: bytes, language: Language) -> SymbolTable:
    root = tree.root_node
    found = [_Found(kind, nodes) for kind, nodes in _matches(root, language)]
    found.sort(key=lambda f: (f.start, -f.end))
    definitions = [_top(blob, found, language), *_definitions(blob, language, found)]
    return SymbolTable(language, tuple(definitions), parsed=not root.has_error or _sound(root, len(blob)))


def _top(blob: bytes, found: Sequence[_Found], language: Language) -> Definition:
    """What stands outside all definitions (includes, imports, lists), as a symbol that nothing can refer to."""
    parts, at = [], 0
    for item in found:
        if item.start >= at:
            parts.append(blob[at : item.start])
            at = item.end
    parts.append(blob[at:])
    return Definition(TOP, TOP_KIND, 1, blob.count(b"\n") + 1, "", _digest(b"\n".join(parts), language))


class _Found:
    """One match of the query, before it is named."""

    __slots__ = ("body", "command", "end", "first_line", "holes", "kind", "last_line", "name", "start")

    def __init__(self, kind: str, nodes: dict[str, Node]) -> None:
        whole = nodes["def"]
        if kind in _WRAPPED_KINDS and whole.parent is not None and whole.parent.type in _WRAPPERS:
            whole = whole.parent
        self.kind = kind
        self.start, self.end = whole.start_byte, whole.end_byte
        self.first_line, self.last_line = whole.start_point[0] + 1, whole.end_point[0] + 1
        self.name = nodes["name"]
        self.body = nodes["body"].start_byte if "body" in nodes else self.end
        self.command = nodes.get("command")
        self.holes: list[tuple[int, int]] = []


def _matches(root: Node, language: Language) -> Iterator[tuple[str, dict[str, Node]]]:
    for _, captures in QueryCursor(query(language)).matches(root):
        kind, nodes = "", {}
        for name, caught in captures.items():
            if name.startswith("def."):
                kind = name[4:]
                nodes["def"] = caught[0]
            else:
                nodes[name] = caught[0]
        if kind:
            yield kind, nodes


def _sound(root: Node, size: int) -> bool:
    """True where what the grammar could not read is a small share of the file."""
    broken, stack = 0, [root]
    while stack:
        node = stack.pop()
        if node.is_error or node.is_missing:
            broken += node.end_byte - node.start_byte
        elif node.has_error:
            stack.extend(node.children)
    return broken <= (1 - _TRUSTED_SHARE) * max(size, 1)


def _definitions(blob: bytes, language: Language, found: list[_Found]) -> Iterator[Definition]:
    scopes: list[tuple[_Found, str]] = []
    named: list[tuple[_Found, str]] = []
    seen: set[tuple[int, int, str]] = set()
    for item in found:
        while scopes and scopes[-1][0].end <= item.start:
            scopes.pop()
        attribute = item.kind == "attribute"
        holders = [s for s in scopes if s[0].kind in _SCOPE_KINDS]
        if not attribute and any(s[0].kind in _OPAQUE_KINDS for s in scopes):
            continue
        name = _name(item, language)
        key = (item.start, item.end, name)
        if not name or key in seen:
            continue
        seen.add(key)
        if holders:
            name = f"{holders[-1][1]}.{name}"
        if scopes and not attribute and scopes[-1][0].kind in _SCOPE_KINDS:
            scopes[-1][0].holes.append((item.start, item.end))
        named.append((item, name))
        if item.kind in _SCOPE_KINDS or item.kind in _OPAQUE_KINDS:
            scopes.append((item, name))
    attributes: set[str] = set()
    for item, name in named:
        if item.kind == "attribute":
            if name in attributes:
                continue
            attributes.add(name)
        yield from _finish(blob, language, item, name)


def _finish(blob: bytes, language: Language, item: _Found, name: str) -> Iterator[Definition]:
    text = blob[item.start : item.end]
    if item.kind == "target" or (language is Language.PYTHON and item.body == item.end):
        item.body = item.name.end_byte  # what is assigned, or listed, is no signature
    if item.kind == "attribute":  # where it is first set says little of what it is
        yield Definition(name, item.kind, item.first_line, item.last_line, "", "")
        return
    signature = _digest(blob[item.start : item.body], language)
    parts, at = [], item.body
    for start, end in item.holes:
        if start >= at:
            parts.append(blob[at:start])
            at = end
    parts.append(blob[at : item.end])
    definition = Definition(
        name, item.kind, item.first_line, item.last_line, signature, _digest(b"\n".join(parts), language)
    )
    if language is not Language.TABLEGEN or item.kind != "def":
        yield definition
        return
    yield replace(definition, aliases=_generated(name, text))
    for block in _OPERANDS.finditer(text):
        first = item.first_line + text[: block.start()].count(b"\n")
        for operand in _OPERAND.finditer(block[1]):
            line = first + block[1][: operand.end()].count(b"\n")
            short = operand[2].decode("ascii")
            accessor = "get" + "".join(part[:1].upper() + part[1:] for part in short.split("_"))
            yield Definition(
                f"{name}.{short}",
                "operand",
                line,
                line,
                _digest(operand[1], language),
                "",
                (accessor, f"{accessor}Mutable"),
            )


def _generated(name: str, text: bytes) -> tuple[str, ...]:
    """The names that TableGen makes from a record: the class without its dialect's prefix, the mnemonic, a pass."""
    prefix, cut, rest = name.rpartition(".")[2].partition("_")
    aliases = [rest] if cut and rest else []
    if _PASS.search(text[:400]):
        aliases.append(f"create{name}")
    mnemonic = _MNEMONIC.search(text[:400])
    if mnemonic and cut:
        aliases.append(f"{prefix.lower()}.{mnemonic[1].decode('ascii')}")
    return tuple(aliases)


def _name(item: _Found, language: Language) -> str:
    node = item.name
    if language in (Language.C, Language.CPP, Language.CUDA):
        found: Node | None = node
        while found is not None and found.type not in _NAME_TYPES:
            inner = found.child_by_field_name("declarator")
            found = inner if inner is not None else next(iter(found.named_children), None)
        text = _text(found) if found is not None else ""
        if _TEST_MACRO.fullmatch(text):  # gtest's macros look like functions that are all of one name
            suite = _TEST_NAME.search(_text(node))
            text = f"{suite[1]}.{suite[2]}" if suite else text
        return re.sub(r"<[^<>]*(?:<[^<>]*>[^<>]*)*>", "", re.sub(r"\s+", "", text)).replace("::", ".").strip(".")
    if language is Language.MLIR:
        return _text(node).lstrip("@").strip('"')
    if item.command is not None and _text(item.command).lower() in _NOT_DEFINING:
        return ""
    return _text(node)


_TEST_MACRO = re.compile(r"(?:TYPED_)?TEST(?:_[FP])?")
_TEST_NAME = re.compile(r"\(\s*(\w+)\s*,\s*(\w+)\s*\)")
_NAME_TYPES = frozenset(
    {
        "identifier",
        "type_identifier",
        "field_identifier",
        "qualified_identifier",
        "destructor_name",
        "operator_name",
        "operator_cast",
        "template_type",
        "template_function",
        "namespace_identifier",
        "primitive_type",
    }
)
_NOT_DEFINING = frozenset(
    {
        "add_definitions",
        "add_compile_options",
        "add_compile_definitions",
        "add_link_options",
        "add_subdirectory",
        "add_dependencies",
    }
)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _digest(text: bytes, language: Language) -> str:
    return blake2b(code_of(text, language), digest_size=8).hexdigest()
