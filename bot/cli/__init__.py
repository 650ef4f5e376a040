"""The `graft` command: one module a sub-command, loaded only when it is the one that was called."""

from __future__ import annotations

import importlib
import sys

import typer

# name: (module, what it does); the module holds `command` (a function) or `app` (a Typer with sub-commands)
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("bot.cli.demo", "Run the whole loop on this machine, in an embedded world."),
    "serve": ("bot.cli.serve", "Serve the webhook and the runners' endpoint."),
    "worker": ("bot.cli.worker", "Work off what the webhooks and the schedule ask for."),
    "runner": ("bot.cli.runner", "Take validation work from a queue and report on it."),
    "plan": ("bot.cli.plan", "Say which upstream commits are safe, which belong together, and why."),
    "replay": ("bot.cli.replay", "Hold the planner against what a fork's maintainers really did."),
    "run": ("bot.cli.run", "Run a level on this checkout, exactly as a runner does."),
    "bisect": ("bot.cli.bisect", "Find the commit that broke a test or moved a metric, on this machine."),
    "judge": ("bot.cli.judge", "Judge one job's reports against what it had to run."),
    "signature": ("bot.cli.signature", "Normalise failure texts to signatures and classes."),
    "ledger": ("bot.cli.ledger", "Show, verify or rebuild what became of each upstream commit."),
    "audit": ("bot.cli.audit", "Show, export or verify the audit."),
    "doctor": ("bot.cli.doctor", "Say what is parked, stale or broken."),
}


def build(arguments: list[str]) -> typer.Typer:
    """The Typer application with only what `arguments` call for; all names where they call for nothing known."""
    root = typer.Typer(
        name="graft",
        no_args_is_help=True,
        add_completion=False,
        help="Keeps a downstream fork alive.",
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    root.callback()(_root)
    called = next((word for word in arguments if not word.startswith("-")), None)
    for name, (module_name, summary) in COMMANDS.items():
        if name == called:
            module = importlib.import_module(module_name)
            if hasattr(module, "app"):
                root.add_typer(module.app, name=name, help=summary)
            else:
                root.command(name)(module.command)
        elif called not in COMMANDS:
            root.command(name, help=summary)(_placeholder)
    return root


def _root() -> None:
    """Keeps a downstream fork alive."""


def _placeholder() -> None:  # pragma: no cover - listed in the help, never run: a called command is loaded above
    """Stand in the list of commands."""


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] == ["runner"] and "--help" not in sys.argv:
        from runners.hidden import hide

        hide()  # before anything is read from the environment
    build(sys.argv[1:])()
