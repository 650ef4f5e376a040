from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bot.cli.audit import app
from bot.clients.store import Store
from bot.clients.store.models import Scope
from bot.core.audit import AuditKind, HmacSigner
from handlers.auditing import record, witness

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SCOPE = Scope(1, "acme-fork/tilec")
KEY = "a key of at least sixteen bytes"


async def fill(url: str, count: int = 5) -> str:
    """An audit of `count` entries, each in a transaction of its own; gives the checkpoint's line."""
    store = await Store.open(url, migrate=False)
    for n in range(count):
        async with store.transaction() as tx:
            kind = AuditKind.MERGE if n == 3 else AuditKind.GATE
            await record(tx, scope=SCOPE, kind=kind, body={"pull": n, "value": 0.5, "text": "é"}, at=NOW + timedelta(n))
    point = await witness(store, scope=SCOPE, signer=HmacSigner.of_secret(KEY.encode()))
    await store.close()
    assert point is not None
    return point.line


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def audited(store_url: str, tmp_path: Path) -> tuple[str, Path, Path, Path]:
    """The store's URL, the export of its audit, the comment with a checkpoint, the key."""
    line = asyncio.run(fill(store_url))
    file, comment, key = tmp_path / "audit.jsonl", tmp_path / "comment.md", tmp_path / "key"
    comment.write_text(f"Checkpoint:\n\n    {line}\n")
    key.write_text(KEY + "\n")
    done = run("export", "-r", SCOPE.repository, "--database", store_url, "-o", file)
    assert done.exit_code == 0, done.output
    return store_url, file, comment, key


def test_the_store_and_its_export_verify(audited: tuple[str, Path, Path, Path]) -> None:
    url, file, comment, key = audited
    for source in (("-r", SCOPE.repository, "--database", url), ("--file", file)):
        done = run("verify", *source, "--json", "--checkpoints", comment, "--key-file", key)
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        assert (found["ok"], found["entries"], found["checkpoints"]) == (True, 5, 1)
    plain = run("verify", "--file", file)
    assert "5 entries, unbroken" in plain.output
    assert "cut off" in plain.output


def test_a_fault_is_named_with_exit_status_1(audited: tuple[str, Path, Path, Path]) -> None:
    _, file, comment, key = audited
    file.write_text(file.read_text().replace('"pull":2', '"pull":9'))
    done = run("verify", "--file", file)
    assert done.exit_code == 1
    assert "entry 3 (place 3) was changed" in done.output
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:2]))
    assert run("verify", "--file", file).exit_code == 0
    cut = run("verify", "--file", file, "--checkpoints", comment, "--key-file", key)
    assert cut.exit_code == 1
    assert "the end was cut off" in cut.output


def test_show_tells_the_newest_of_a_kind(audited: tuple[str, Path, Path, Path]) -> None:
    url, file, _, _ = audited
    done = run("show", "-r", SCOPE.repository, "--database", url, "--kind", "merge")
    assert done.exit_code == 0
    assert "pull=3" in done.output
    assert "pull=2" not in done.output
    rows = run("show", "--file", file, "--last", "2", "--json").stdout.splitlines()
    assert [json.loads(row)["sequence"] for row in rows] == [4, 5]


def test_what_can_not_be_read_has_exit_status_2(audited: tuple[str, Path, Path, Path], tmp_path: Path) -> None:
    url, file, comment, key = audited
    other = tmp_path / "other"
    other.write_text("nothing")
    for arguments, says in (
        (("verify", "--file", tmp_path / "none"), "can't be read"),
        (("show", "--file", tmp_path / "none"), "can't be read"),
        (("verify", "--database", url), "add --repository"),
        (("export", "-r", "no/such", "--database", url), "holds no audit of no/such"),
        (("verify", "-r", "a/b", "--database", "nonsense"), "no database's URL"),
        (("verify", "-r", "a/b", "--database", "mysql://x/y"), "can't be opened"),
        (("verify", "--file", file, "--checkpoints", comment), "--key-file"),
        (("verify", "--file", file, "--checkpoints", other, "--key-file", key), "holds no checkpoint"),
        (("show", "--file", other), "verify"),
        (("export", "-r", SCOPE.repository, "--database", url, "-o", tmp_path), "Is a directory"),
    ):
        done = run(*arguments)
        assert done.exit_code == 2, (arguments, done.output)
        assert says in done.output


def test_export_to_standard_output_is_read_from_standard_input(audited: tuple[str, Path, Path, Path]) -> None:
    url, file, comment, key = audited
    done = run("export", "-r", SCOPE.repository, "--database", url)
    assert done.stdout == file.read_text()
    garbled = "{\n" + done.stdout
    both = CliRunner().invoke(app, ["verify", "--file", "-"], input=done.stdout)
    assert both.exit_code == 0, both.output
    assert CliRunner().invoke(app, ["verify", "--file", "-"], input=garbled).exit_code == 1
    comment.write_text(comment.read_text() + comment.read_text().replace(" 5 ", " 4 "))
    some = run("verify", "--file", file, "--checkpoints", comment, "--key-file", key)
    assert "1 checkpoints were not signed" in some.output


async def test_what_fails_leaves_no_entry(store: Store) -> None:
    """The entry is written with what it records, or not at all."""
    with pytest.raises(RuntimeError):
        async with store.transaction() as tx:
            await record(tx, scope=SCOPE, kind=AuditKind.GATE, body={}, at=NOW)
            raise RuntimeError
    assert await store.audit_head(SCOPE.repository) is None
    assert await witness(store, scope=SCOPE, signer=HmacSigner.of_secret(KEY.encode())) is None
