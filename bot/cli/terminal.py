"""What is shown on a terminal: text that comes from repositories and services can't command it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from bot.core.render.text import printable

if TYPE_CHECKING:
    from rich.text import Text


def say(text: object, *, err: bool = False) -> None:
    """Write it and a line's end, without control characters; `err`: to standard error."""
    typer.echo(printable(str(text)), err=err)


def emit(text: str) -> None:
    """Write for another program, as it is, to standard output."""
    typer.echo(text)


def plain(text: object, style: str = "") -> Text:
    """For a table or a console of rich: no control characters, and nothing of it is markup."""
    from rich.text import Text

    return Text(printable(str(text)), style)
