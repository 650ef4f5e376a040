"""The waivers that stand in the fork's own file, and the questions to the owners of those that end."""

from __future__ import annotations

from collections.abc import Sequence

from bot.context import Context, Job
from bot.core.batches import key_of
from bot.core.owners import People, mentionable
from bot.core.render.text import line, marker
from bot.core.waivers import JudgedWaiver, WaiverFileError, asks, judge, read_file
from handlers.dashboard import dashboard_issue
from handlers.fork import FOLDER, Fork, open_fork
from handlers.people import people

WAIVERS_PATH = f"{FOLDER}/graft-waivers.yml"


async def file_waivers(fork: Fork) -> tuple[JudgedWaiver, ...] | None:
    """Each waiver of the file as it is worth now; none without the file, None where it can't be read."""
    raw = await fork.files.read(WAIVERS_PATH)
    if raw is None:
        return ()
    try:
        waivers = read_file(raw.decode("utf-8"))
    except (WaiverFileError, UnicodeDecodeError):
        return None
    return tuple(judge(waiver, config=fork.config, now=fork.now) for waiver in waivers)


async def waivers(ctx: Context, job: Job) -> None:
    """Job `waivers`: the owners of the file's waivers that end soon, or have ended, are asked once on the dashboard."""
    fork = await open_fork(ctx, job.scope)
    filed = await file_waivers(fork)
    if not asks(filed or ()):
        return
    number = await dashboard_issue(fork)
    if number is not None:
        await _ask(fork, number, filed or (), await people(fork, [], waivers=filed or ()))


async def ask_in_pull(fork: Fork, number: int, given: Sequence[JudgedWaiver], who: People) -> None:
    """Ask the owners of a pull request's own waivers, once for each question."""
    if asks(given):
        owners = [judged.waiver.owner for judged in given]
        if not all(who.asked_about(owner) for owner in owners):
            who = await people(fork, owners)
        await _ask(fork, number, given, who)


async def _ask(fork: Fork, number: int, judged: Sequence[JudgedWaiver], who: People) -> None:
    for ask in asks(judged):
        asked = mentionable([ask.owner], people=who, default=fork.config.default_owner)
        names = " ".join(f"@{owner}" for owner in asked.owners)
        hidden = marker(f"waiver-ask {key_of(ask.key)}")
        warnings = "".join(f"\n\n⚠️ {line(warning)}" for warning in asked.warnings)
        await fork.github.upsert_comment(number, hidden, f"{hidden}\n{names} {line(ask.text, 400)}{warnings}")
