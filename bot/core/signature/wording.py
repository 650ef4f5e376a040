"""What no rule decides, by its words: a linear model whose weights were learned from texts written for it.

It is asked only where every rule left a text at `unknown` and nothing in it is a compiler's, a test's or an
exception's; it says infra only where the words are plainly those of machines and none is one that compilers and tests
use. The weights (words.json) are learned by `benchmarks/signature_words.py`, which prints how far they carry to
families of failures that were left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import exp

from bot.core.signature.model import CODE, HARNESS, INFRA, UNKNOWN

MOST_LINES, MOST_WORDS = 12, 120
_STEM = 6
_EMPTY = frozenset(
    [
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "but",
        "by",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "of",
        "on",
        "or",
        "so",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "they",
        "this",
        "to",
        "was",
        "were",
        "when",
        "where",
        "which",
        "while",
        "will",
        "with",
    ]
)
_WORD = re.compile(r"[A-Za-z][a-z]+|[A-Z]{2,}")
# of the program under test, whatever else a line says
_OF_PROGRAMS = re.compile(
    r"\b(?:ops?|operands?|operations?|kernels?|tensors?|dtypes?|shapes?|strides?|layouts?|loops?|warps?|tiles?"
    r"|regist(?:er|ers)"
    r"|operators?|lower(?:ed|ing)|legali[sz]\w*|pass|passes|compil\w*|pars\w+|assert\w*|expect\w*|rais(?:e|es|ed)"
    r"|types?|infer\w*"
    r"|variables?|functions?|arguments?|symbols?|pointers?|graphs?|pipelines?|modules?|instructions?|vector\w*"
    r"|matri\w+|dialects?"
    r"|identifiers?|inclusions?|headers?|class|method|attribute|import\w*|undeclared|undefined|syntax|test_\w+|tests?"
    r"|bool|i\d+|f\d+"
    r"|sig[a-z]{3,4}|interrupt\w*|cancel\w*|copy|events?|fence|barrier|stage)\b|%\w|::|#\w",
    re.I,
)
# of what is computed and compiled: no machine says it, whoever seems to speak
_COMPUTED = re.compile(
    r"(?<![/\\.\w-])(?:ops?|operands?|tensors?|dtypes?|shapes?|strides?|layouts?|loops?|warps?|tiles?|lower(?:ed|ing)"
    r"|unify"
    r"|legali[sz]\w*|compiled?|matri(?:x|ces)|dialects?|insertion point|cannot select|mfma|wmma|LDS|sm_\d+|mock\w*"
    r"|unexpected token|operator|registers?"
    r"|in function|inputs?|evaluated?|graphs?|reward|nan|NaN"
    r"|probabilit\w+|tolerance|terminators?|non-terminator|gradients?|simulation|diverged|linked list"
    r"|solver|allocator|pass(?= ['`\"])|lhs|rhs|strides)(?![/\\\w-]|\.\w)"
)
_LEAST = {INFRA: 0.7, CODE: 0.6, HARNESS: 0.6}
_SPEAKS, _LEAST_SPEAKING = 30, 3  # hundredths; words
_LEAST_DOUBT = 0.12  # how likely code may be where infra is said


def features(lines: Sequence[str]) -> list[str]:
    """The stems of the words of `lines` and their pairs, each once."""
    said = (word.lower() for word in _WORD.findall(" ".join(lines[:MOST_LINES])))
    stems = [word[:_STEM] for word in said if word not in _EMPTY][:MOST_WORDS]
    return list(dict.fromkeys([*stems, *(f"{one} {other}" for one, other in pairwise(stems))]))


def guess(lines: Sequence[str]) -> str:
    """The class of a text by its words, `unknown` where they don't tell it."""
    found = features(lines)
    chances = _chances(found)
    best = max(chances, key=lambda cls: chances[cls])
    if best == UNKNOWN or chances[best] < _LEAST[best]:
        return UNKNOWN
    if best == INFRA and (
        chances[CODE] > _LEAST_DOUBT
        or _speaking(found) < _LEAST_SPEAKING
        or any(_OF_PROGRAMS.search(line) or computed(line) for line in lines)
    ):
        return UNKNOWN
    return best


def computed(line: str) -> bool:
    """Whether the line speaks of what is computed, which is never a machine's trouble."""
    return _COMPUTED.search(line) is not None


def _speaking(found: Sequence[str]) -> int:
    """How many single words tell machines from code by themselves: of words that were never met none does."""
    classes, _, weights = _model()
    infra, code = classes.index(INFRA), classes.index(CODE)
    told = (weights[word] for word in found if word in weights and " " not in word)
    return sum(weight[infra] - weight[code] >= _SPEAKS for weight in told)


def _chances(found: Sequence[str]) -> dict[str, float]:
    classes, bias, weights = _model()
    sums = list(bias)
    for feature in found:
        for index, weight in enumerate(weights.get(feature, ())):
            sums[index] += weight / 100
    most = max(sums)
    shares = [exp(value - most) for value in sums]
    return {cls: share / sum(shares) for cls, share in zip(classes, shares, strict=True)}


@cache
def _model() -> tuple[list[str], list[float], Mapping[str, list[int]]]:
    read = json.loads((files(__package__) / "words.json").read_text("utf-8"))
    return read["classes"], read["bias"], read["weights"]
