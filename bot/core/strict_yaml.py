"""YAML as plain data with the line of every key: no duplicate keys, no tags, no alias bombs, no huge files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

MAX_BYTES = 256 * 1024
MAX_NODES = 20_000
MAX_DEPTH = 50
Path = tuple[str | int, ...]
_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "timestamp", "map", "seq")
)


class YamlError(ValueError):
    """Text that is not read; `line` counts from 1 (0: not known)."""

    def __init__(self, text: str, line: int = 0, path: Path = ()) -> None:
        super().__init__(text)
        self.text = text
        self.line = line
        self.path = path


@dataclass(frozen=True, slots=True)
class Document:
    """The data, and the line (from 1) of each key and list item by its path."""

    data: Any
    lines: dict[Path, int]

    def line(self, path: Path) -> int:
        """The line of a path, or of the nearest one above it that stands in the text."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def load_yaml(text: str) -> Document:
    """The document of a text, None where it is empty; raises YamlError with the line."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise YamlError(f"the file is larger than {MAX_BYTES // 1024} KiB")
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        reader = _Reader(loader)
        return Document(reader.read(root, (), 0) if root is not None else None, reader.lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(f"no valid YAML: {error.problem or error.context}", mark.line + 1 if mark else 0) from error
    except yaml.YAMLError as error:
        place = getattr(error, "position", 0)
        raise YamlError(f"no valid YAML: {error}".split("\n", 1)[0], text.count("\n", 0, place) + 1) from error
    except RecursionError as error:
        raise YamlError("the file is nested too deeply") from error
    finally:
        if loader is not None:
            loader.dispose()


class _Reader:
    """From composed nodes to data; every visit counts, so that aliases can't multiply without end."""

    def __init__(self, loader: yaml.SafeLoader) -> None:
        self.loader = loader
        self.lines: dict[Path, int] = {}
        self.visits = 0

    def read(self, node: yaml.Node, path: Path, depth: int) -> Any:
        line = node.start_mark.line + 1
        self.visits += 1
        if self.visits > MAX_NODES or depth > MAX_DEPTH:
            raise YamlError("the file is too large once its aliases are followed, or nested too deeply", line, path)
        self.lines.setdefault(path, line)
        if node.tag not in _TAGS:
            raise YamlError(f"the tag {node.tag} is not read here", line, path)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*path, place), depth + 1) for place, item in enumerate(node.value)]
        try:
            return self.loader.construct_object(node)
        except ValueError as error:
            raise YamlError(f"{node.value!r} can't be read: {error}", line, path) from error

    def _mapping(self, node: yaml.MappingNode, path: Path, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key_node, value in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != "tag:yaml.org,2002:str":
                written = key_node.value if isinstance(key_node, yaml.ScalarNode) else "a list or mapping"
                raise YamlError(f"the key {written} is no text: put it in quotes (merge keys are not read)", line, path)
            key: str = key_node.value
            if key in out:
                first = self.lines[(*path, key)]
                raise YamlError(f"the key {key} stands twice, first in line {first}", line, (*path, key))
            self.lines[(*path, key)] = line
            out[key] = self.read(value, (*path, key), depth + 1)
        return out
