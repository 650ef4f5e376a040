"""`graft audit`: show, export and verify the audit of a fork, from the store or from an exported file."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.cli.terminal import emit, plain, say
from bot.core.audit import Entry, HmacSigner, Verification, find_checkpoints, from_line, genuine, to_line, verify_lines
from bot.core.audit.checkpoint import Checkpoint

app = typer.Typer(no_args_is_help=True, help="Show, export or verify the audit.")

Repository = Annotated[str | None, typer.Option("--repository", "-r", help="The fork, owner/name, in the store.")]
Database = Annotated[str | None, typer.Option("--database", help="The store's URL; by default that of the settings.")]
File = Annotated[Path | None, typer.Option("--file", "-f", help="An exported file (JSON Lines) instead of the store.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print for programs.")]
PAGE = 1000


class NoAudit(Exception):
    """There is nothing to read: what, where, how to mend."""


@app.command()
def show(
    repository: Repository = None,
    database: Database = None,
    file: File = None,
    kind: Annotated[str | None, typer.Option(help="Only entries of this kind, as gate or sync.")] = None,
    last: Annotated[int, typer.Option(min=1, help="How many of the newest entries.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Show the newest entries, oldest first."""
    try:
        entries = [from_line(line) for line in _lines(repository, database, file)]
    except (NoAudit, ValueError) as error:
        raise _stop(f"the audit can't be shown: {error}; `graft audit verify` says more") from None
    chosen = [entry for entry in entries if kind in (None, entry.kind)][-last:]
    if as_json:
        emit("\n".join(to_line(entry) for entry in chosen))
        return
    from rich.console import Console
    from rich.table import Column, Table

    table = Table("entry", "when (UTC)", "kind", Column("what", overflow="ellipsis", no_wrap=True), box=None)
    for entry in chosen:
        table.add_row(str(entry.sequence), f"{entry.at:%Y-%m-%d %H:%M:%S}", plain(entry.kind), plain(_shown(entry)))
    Console().print(table)


@app.command()
def export(
    repository: Repository = None,
    database: Database = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file; by default standard output.")] = None,
) -> None:
    """Write all entries as JSON Lines, the form that `verify --file` reads."""
    try:
        lines = _lines(repository, database, None)
        if output is None:
            for line in lines:
                emit(line)
            return
        with output.open("w", encoding="utf-8", newline="\n") as out:
            count = sum(1 for _ in map(out.write, (f"{line}\n" for line in lines)))
    except (NoAudit, OSError) as error:
        raise _stop(str(error)) from None
    say(f"{count} entries written to {output}", err=True)


@app.command()
def verify(
    repository: Repository = None,
    database: Database = None,
    file: File = None,
    checkpoints: Annotated[
        Path | None, typer.Option(help="Text that holds checkpoints, as copied from the dashboard issue.")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(help="The App's private key, which the checkpoints are signed with.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Prove that no entry was changed, removed, added or moved (exit 0 proved, 1 a fault was found, 2 not readable)."""
    try:
        lines = list(_lines(repository, database, file))
        points = _checkpoints(checkpoints, key_file, repository or _named(lines))
    except (NoAudit, OSError, ValueError) as error:
        raise _stop(str(error)) from None
    if len(lines) > 20_000:
        say(f"verifying {len(lines)} entries …", err=True)
    found = verify_lines(lines, checkpoints=points)
    if as_json:
        emit(json.dumps(_report(found, points)))
    else:
        say(_told(found, points))
    raise typer.Exit(0 if found.ok else 1)


def _stop(text: str) -> typer.Exit:
    say(text, err=True)
    return typer.Exit(2)


def _shown(entry: Entry) -> str:
    return " ".join(
        f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in entry.body.items()
    )


def _named(lines: list[str]) -> str:
    """The repository that an export is of, by its first readable line."""
    for line in lines:
        try:
            return from_line(line).repository
        except ValueError:
            continue
    return ""


def _checkpoints(path: Path | None, key_file: Path | None, repository: str) -> tuple[Checkpoint, ...]:
    if path is None:
        return ()
    if key_file is None:
        raise NoAudit("checkpoints prove nothing without the key that signed them: add --key-file")
    claimed = find_checkpoints([path.read_text(encoding="utf-8")])
    kept = genuine(claimed, repository=repository, signer=HmacSigner.of_secret(key_file.read_bytes()))
    if not kept:
        raise NoAudit(f"{path} holds no checkpoint of {repository or 'this audit'} that this key signed")
    if len(kept) < len(claimed):
        say(f"{len(claimed) - len(kept)} checkpoints were not signed with this key or are of others", err=True)
    return kept


def _report(found: Verification, points: tuple[Checkpoint, ...]) -> dict[str, Any]:
    faults = [{"kind": fault.kind.value, "entry": fault.sequence, "text": fault.text} for fault in found.faults]
    return {
        "ok": found.ok, "entries": found.count, "last": found.sequence, "head": found.head,
        "checkpoints": len(points), "faults": faults,
    }  # fmt: skip


def _told(found: Verification, points: tuple[Checkpoint, ...]) -> str:
    lines = [f"{fault.kind.value}: {fault.text}" for fault in found.faults]
    if found.ok:
        against = f", held against {len(points)} checkpoints" if points else ""
        lines.append(f"{found.count} entries, unbroken up to {found.sequence} ({found.head[:16]}…){against}")
        if not points:
            lines.append("Without checkpoints an end that was cut off, or a chain written anew, does not show.")
    else:
        lines.append(f"{len(found.faults)} faults in {found.count} entries")
    return "\n".join(lines)


def _lines(repository: str | None, database: str | None, file: Path | None) -> Iterable[str]:
    """The entries as lines; raises NoAudit."""
    if file is not None:
        return _file_lines(file)
    return iter(asyncio.run(_stored(repository, database)))


def _file_lines(path: Path) -> Iterator[str]:
    try:
        with sys.stdin if str(path) == "-" else path.open(encoding="utf-8", newline="\n") as source:
            for line in source:
                yield line.removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise NoAudit(f"{path} can't be read: {error}") from error


async def _stored(repository: str | None, database: str | None) -> list[str]:
    from bot.clients.store import Store, StoreUnavailable
    from bot.settings import Settings, SettingsError

    if repository is None:
        raise NoAudit("which fork? add --repository owner/name, or --file for an exported audit")
    if database is not None and "://" not in database:
        raise NoAudit(f"{database} is no database's URL: write sqlite:///path or postgresql://…")
    try:
        url = database or Settings.load().store_url
        store = await Store.open(url, migrate=False)
    except (SettingsError, StoreUnavailable, ValueError) as error:
        raise NoAudit(f"the store can't be opened: {error}") from error
    lines: list[str] = []
    try:
        since = 0
        while page := await store.audit_entries(repository, since=since, limit=PAGE):
            lines += [to_line(row) for row in page]
            since = page[-1].sequence
    except StoreUnavailable as error:
        raise NoAudit(f"the store does not answer: {error}") from error
    finally:
        await store.close()
    if not lines:
        raise NoAudit(f"the store holds no audit of {repository}")
    return lines
