"""The waivers that stand in the fork's own file, read from the default branch."""

from __future__ import annotations

from bot.core.waivers import JudgedWaiver, WaiverFileError, judge, read_file
from handlers.fork import Fork

WAIVERS_PATH = ".github/graft-waivers.yml"


async def file_waivers(fork: Fork) -> tuple[JudgedWaiver, ...] | None:
    """Each waiver of the file as it is worth now; none without the file, None where it can't be read."""
    raw = await fork.github.file(WAIVERS_PATH, None)
    if raw is None:
        return ()
    try:
        waivers = read_file(raw.decode("utf-8"))
    except (WaiverFileError, UnicodeDecodeError):
        return None
    return tuple(judge(waiver, config=fork.config, now=fork.now) for waiver in waivers)
