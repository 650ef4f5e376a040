"""Which language a path is written in, and which of them are tests."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import PurePosixPath

GRAMMAR_VERSION = "4"
"""Part of every cache key: raise it whenever a table or a footprint of the same bytes would come out different."""


class Language(StrEnum):
    """Languages with a grammar of their own; OTHER is read by its identifiers alone, BINARY not at all."""

    C = "c"
    CPP = "cpp"
    CUDA = "cuda"
    PYTHON = "python"
    TABLEGEN = "tablegen"
    MLIR = "mlir"
    CMAKE = "cmake"
    OTHER = "other"


_SUFFIXES = {
    ".c": Language.C,
    ".h": Language.CPP,  # a header of C parses as C++, the reverse does not
    ".cc": Language.CPP,
    ".cpp": Language.CPP,
    ".cxx": Language.CPP,
    ".hh": Language.CPP,
    ".hpp": Language.CPP,
    ".hxx": Language.CPP,
    ".inc": Language.CPP,
    ".inl": Language.CPP,
    ".ipp": Language.CPP,
    ".cu": Language.CUDA,
    ".cuh": Language.CUDA,
    ".py": Language.PYTHON,
    ".pyi": Language.PYTHON,
    ".td": Language.TABLEGEN,
    ".mlir": Language.MLIR,
    ".cmake": Language.CMAKE,
}
_TEST_PART = re.compile(r"^(tests?|unittests?|lit|testing|regression)$", re.IGNORECASE)
_TEST_NAME = re.compile(r"^(test_.*|.*_test|.*Test|conftest)\.[A-Za-z]+$")


def language_of(path: str) -> Language:
    """The language that `path` says by its name."""
    name = path.rpartition("/")[2]
    if name == "CMakeLists.txt":
        return Language.CMAKE
    return _SUFFIXES.get(PurePosixPath(name).suffix.lower(), Language.OTHER)


def is_test(path: str) -> bool:
    """True for a file whose content is an expectation: by its folder (`test`, `unittest` …) or by its name."""
    *folders, name = path.split("/")
    return any(_TEST_PART.match(part) for part in folders) or _TEST_NAME.match(name) is not None
