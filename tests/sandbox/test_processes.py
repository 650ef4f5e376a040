"""Programs that are killed come up again, whatever took their port for a moment."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

import pytest

from bot.sandbox.processes import Processes, Program, free_port, valkey_command


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    found = Processes(tmp_path, web_port=free_port())
    command = valkey_command(found.redis_port, tmp_path)
    found.programs["valkey"] = Program("valkey", command, dict(os.environ), tmp_path / "valkey.log")
    return found


async def test_one_whose_port_is_taken_for_a_moment_is_started_anew(processes: Processes) -> None:
    program = processes.programs["valkey"]
    await processes.restart("valkey")
    await program.kill()
    taken = socket.socket()
    taken.bind(("127.0.0.1", processes.redis_port))
    again = asyncio.create_task(processes.restart("valkey"))
    try:
        while "in use" not in program.tail(100_000):
            assert not again.done()
            await asyncio.sleep(0.02)
        taken.close()
        await again
        reader, writer = await asyncio.open_connection("127.0.0.1", processes.redis_port)
        writer.write(b"PING\r\n")
        assert await reader.readline() == b"+PONG\r\n"
        writer.close()
        await writer.wait_closed()
    finally:
        taken.close()
        await processes.stop()


async def test_one_that_runs_and_does_not_listen_gets_no_second_beside_it(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("bot.sandbox.processes._LOOKS", 2)
    deaf = [sys.executable, "-c", "print('begun', flush=True); import time; time.sleep(1000)"]
    program = processes.programs["valkey"] = Program("valkey", deaf, dict(os.environ), tmp_path / "deaf.log")
    try:
        with pytest.raises(RuntimeError, match="does not listen"):
            await processes.restart("valkey")
        while not program.tail():
            assert program.running
            await asyncio.sleep(0.02)
        assert program.running
        assert program.tail() == "begun\n"
    finally:
        await processes.stop()


def test_a_port_is_none_that_outgoing_connections_are_given() -> None:
    assert {free_port() < 32_768 for _ in range(50)} == {True}
