"""`graft runner`: takes validation work from the queues of its labels; holds no GitHub credential."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.terminal import say


def command(
    labels: Annotated[
        str, typer.Option("--labels", envvar="GRAFT_LABELS", help="Comma-separated: gpu,h100")
    ] = "default",
    *,
    bot: Annotated[str, typer.Option("--bot", envvar="GRAFT_BOT_URL", help="The bot's address.")] = (
        "http://127.0.0.1:8000"
    ),
    redis: Annotated[str, typer.Option("--redis", envvar="GRAFT_REDIS_URL", help="Redis or Valkey.")] = (
        "redis://127.0.0.1:6379/0"
    ),
    name: Annotated[str, typer.Option("--name", help="This runner's name; the host's by default.")] = "",
    work: Annotated[Path, typer.Option("--work", help="Folder for sources, builds, caches.")] = Path(".graft/runner"),
    gpus: Annotated[
        str, typer.Option("--gpus", help="One slot for each part between semicolons: 0;1 or 0,1;2,3. Empty: one slot.")
    ] = "",
    slots: Annotated[int, typer.Option("--slots", min=1, help="Runs at a time where no GPUs are named.")] = 1,
    keep_env: Annotated[
        list[str] | None, typer.Option("--keep-env", help="A further variable that suites may see.")
    ] = None,
    artifacts: Annotated[
        str,
        typer.Option(
            "--artifacts", envvar="GRAFT_ARTIFACTS", help="Where runs' files go: a folder, s3://bucket/prefix."
        ),
    ] = "",
    artifacts_endpoint: Annotated[
        str, typer.Option("--artifacts-endpoint", envvar="GRAFT_ARTIFACTS_ENDPOINT", help="The store's address.")
    ] = "",
    artifacts_url: Annotated[
        str, typer.Option("--artifacts-url", envvar="GRAFT_ARTIFACTS_URL", help="Their https address for readers.")
    ] = "",
    disk: Annotated[float, typer.Option("--disk", min=0.1, help="GiB that its folder may take.")] = 200,
    keep_free: Annotated[float, typer.Option("--keep-free", min=0, help="GiB of the disk that stay free.")] = 2,
    poll: Annotated[float, typer.Option("--poll", min=0.01, help="Seconds between looks at the queue.")] = 0.2,
) -> None:
    """Take validation work from a queue and report on it.

    The token comes from GRAFT_RUNNER_TOKEN or the file that GRAFT_RUNNER_TOKEN_FILE names, never by an option. Those of
    labs and of the artifacts' store are described in docs/lab-protocol.md and docs/runners.md.
    """
    from runners.artifacts import keeper_of, secrets_of
    from runners.disk import GIB, Bounds
    from runners.labs import take_credentials
    from runners.service import RunnerSettings

    names = tuple(dict.fromkeys(label.strip() for label in labels.split(",") if label.strip()))
    try:
        token = _token()
        if not names:
            raise ValueError("--labels: name at least one label")
        labs = take_credentials(os.environ)
        keeper = keeper_of(artifacts, endpoint=artifacts_endpoint, public=artifacts_url)
    except ValueError as error:
        say(str(error), err=True)
        raise typer.Exit(2) from None
    # out of this process's own environment too: nothing that is started later can inherit it
    os.environ.pop("GRAFT_RUNNER_TOKEN", None)
    visible: tuple[str | None, ...] = tuple(part.strip() for part in gpus.split(";") if part.strip()) or (None,) * slots
    settings = RunnerSettings(
        bot=bot,
        token=token,
        redis=redis,
        name=name or socket.gethostname(),
        labels=names,
        work=work.resolve(),
        gpus=visible,
        keep_env=tuple(keep_env or ()),
        poll=poll,
        labs=labs,
        artifacts=keeper,
        bounds=Bounds(most=int(disk * GIB), least_free=int(keep_free * GIB)),
        secrets=secrets_of(os.environ),
    )
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    raise typer.Exit(asyncio.run(_serve(settings)))


async def _serve(settings: object) -> int:
    from runners.protocol import RefusedError
    from runners.service import RunnerSettings, Service

    assert isinstance(settings, RunnerSettings)
    service = Service(settings)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, service.drain)
    try:
        await service.run()
    except RefusedError as error:
        say(f"the bot does not take this runner: {error}", err=True)
        return 2
    return 0


def _token() -> str:
    path = os.environ.get("GRAFT_RUNNER_TOKEN_FILE")
    if path:
        try:
            return Path(path).read_text("utf-8").strip()
        except OSError as error:
            raise ValueError(f"GRAFT_RUNNER_TOKEN_FILE names {path}, which can't be read: {error.strerror}") from error
    token = os.environ.get("GRAFT_RUNNER_TOKEN", "").strip()
    if not token:
        raise ValueError("GRAFT_RUNNER_TOKEN is not set: the bot knows the runner's token by GRAFT_RUNNER_TOKENS")
    return token
