"""The canary of a suite: a test that must fail, so that a harness which reports no failure is found out.

Whether a run has one for sure is told by the suite's harness and command.
"""

from __future__ import annotations

from bot.core.config import Suite

_LIT = frozenset({"lit", "lit.py", "llvm-lit", "lit.main"})
_BUILD_TOOLS = frozenset({"bazel", "cmake", "just", "make", "ninja"})
_WITH_CANARY = frozenset({"pytest", "kernels", "gtest", "command", "bench", "torchrun"})


def is_canary(test: str, canary: str) -> bool:
    """Whether the test is the declared canary: the very id, or one that ends with it after a separator."""
    return test == canary or test.endswith(("::" + canary, "." + canary, "/" + canary, " " + canary))


def has_canary(suite: Suite) -> bool:
    """Whether a run of the suite has a canary for sure: its harness adds one or brings a stand-in, or the suite names
    its own. Where a build tool calls lit, or a script ctest, it has to be found first; a lab may add one.
    """
    if suite.canary is not None or suite.harness in _WITH_CANARY:
        return True
    return (suite.harness == "lit" and calls_lit(suite.run)) or (suite.harness == "ctest" and calls_ctest(suite.run))


def calls_lit(run: tuple[str, ...]) -> bool:
    """Whether a command is lit itself."""
    return lit_at(run) is not None


def lit_at(run: tuple[str, ...]) -> int | None:
    """Which word of a command is lit; None where it is none of them. A target or a folder of that name is not it."""
    first = _file_name(run[0]) if run else ""
    for at, word in enumerate(run if first not in _BUILD_TOOLS else ()):
        name = _file_name(word)
        folder = name == "lit" and "/" in word and at > 0 and not first.startswith("python")
        if name in _LIT and not folder:
            return at
    return None


def _file_name(word: str) -> str:
    return word.rpartition("/")[2]


def calls_ctest(run: tuple[str, ...]) -> bool:
    """Whether a command is ctest itself."""
    return any(word.rpartition("/")[2] == "ctest" for word in run)
