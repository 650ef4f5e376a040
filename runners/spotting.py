"""Which program a suite's command calls: seen among the suite's processes while they run, and left alone there."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PAUSE_SECONDS = 0.1
_SHARE = 20  # so many times as long as a look took nothing is looked at
_PROC = Path("/proc")

# how many words of a command line start the program that is looked for; 0: it is another
Tool = Callable[[Sequence[str]], int]


@dataclass(frozen=True, slots=True)
class Called:
    """A program as it was called: the words that start it, before its arguments, and the environment that it had."""

    words: tuple[str, ...]
    env: Mapping[str, str]


async def spot(root: int, tool: Tool) -> Called:
    """The first process below `root` that is the tool, for as long as it takes: to be cancelled where nobody waits."""
    while True:
        began = time.monotonic()
        found = await asyncio.to_thread(look, root, tool)
        if found is not None:
            return found
        await asyncio.sleep(max(_PAUSE_SECONDS, _SHARE * (time.monotonic() - began)))


def look(root: int, tool: Tool) -> Called | None:
    """The tool among the processes that `root` is and has started, now; None where it is not, or there is no /proc."""
    waiting, known = [root], {root}
    while waiting:
        process = waiting.pop()
        called = _called(_PROC / str(process), tool)
        if called is not None:
            return called
        for child in _children(_PROC / str(process)):
            if child not in known:
                known.add(child)
                waiting.append(child)
    return None


def _called(process: Path, tool: Tool) -> Called | None:
    """None for another program, and for one that is over or not ours to look at."""
    try:
        words = _words(process / "cmdline")
        count = tool(words) if words else 0
        if not count:
            return None
        here = (process / "cwd").readlink()
        env = dict(word.partition("=")[::2] for word in _words(process / "environ"))
    except OSError:
        return None
    return Called(tuple(_whole(word, here) for word in words[:count]), env)


def _words(file: Path) -> list[str]:
    return [os.fsdecode(word) for word in file.read_bytes().split(b"\0") if word]


def _whole(word: str, here: Path) -> str:
    """A path as it is from everywhere; any other word as it is."""
    return str(here / word) if not word.startswith("-") and (here / word).is_file() else word


def _children(process: Path) -> list[int]:
    """The processes that any thread of this one has started."""
    found = []
    try:
        for thread in (process / "task").iterdir():
            found += [int(word) for word in (thread / "children").read_text().split()]
    except (OSError, ValueError):
        pass
    return found
