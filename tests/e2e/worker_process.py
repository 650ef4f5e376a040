"""A worker process with one slow handler: reacts to a comment and answers it, with time to be killed in between."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from bot.clients.store import Job
from bot.context import Context, open_context
from bot.logs import configure
from bot.settings import Settings
from bot.worker import Worker
from handlers import Cron, Trigger
from handlers.redeliver import redeliver

MARKER = "<!-- answers {} -->"


async def answer(context: Context, job: Job) -> None:
    """Answer the comment once, however often this is begun."""
    repository = context.github.repository(job.installation, job.repository)
    comment = int(job.payload["comment"])
    await repository.react(comment, "eyes")
    await asyncio.sleep(0.1)
    await repository.upsert_comment(int(job.payload["number"]), MARKER.format(comment), "Done.")
    await asyncio.sleep(0.1)


async def main() -> None:
    """Work until killed."""
    async with open_context(Settings.load(), configure(as_json=True)) as context:
        await Worker(
            context,
            jobs={"answer": answer, "redeliver": redeliver},
            triggers=[Trigger("issue_comment", ("created",), "answer", "event")],
            crons=[Cron("redeliver", timedelta(seconds=1), per_repository=False)],
        ).run()


if __name__ == "__main__":
    asyncio.run(main())
