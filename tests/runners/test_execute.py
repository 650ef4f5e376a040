"""What is around every suite: its environment and limits, the machine's health, its end."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from bot.core.config import Suite
from bot.core.types import Level, Outcome
from bot.core.validation import RunRequest
from runners import environment
from runners.execute import Work, execute
from tests.runners.suite import pytests, run


async def test_the_memory_limit_ends_a_suite(tmp_path: Path) -> None:
    hungry = "import time\ndef test_a():\n    kept = bytearray(300_000_000)\n    time.sleep(60)\n"
    report = await pytests(tmp_path, hungry, memory_gib=0.2)
    assert report.outcome is Outcome.FAILED
    assert "memory limit" in report.reason


async def test_the_child_sees_no_credential_and_folders_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GRAFT_RUNNER_TOKEN", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "GRAFT_REDIS_URL", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "secret-value")
    script = f"import os, json; json.dump(dict(os.environ), open({str(tmp_path / 'seen')!r}, 'w'))"
    await run(tmp_path, {}, harness="command", run=["python", "-c", script])
    seen = json.loads((tmp_path / "seen").read_text())
    assert "secret-value" not in seen.values()
    assert seen["HOME"] == str(tmp_path / "run" / "home")
    assert seen["TRITON_CACHE_DIR"].startswith(str(tmp_path / "cache"))


async def test_a_hanging_nvidia_smi_hangs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nsleep 600\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    health = await environment.probe(seconds=0.3)
    assert health.ok is False
    assert "did not answer" in health.text
    tool.write_text(
        "#!/bin/sh\ncase $1 in --query*) echo '0, NVIDIA H100, GPU-1, 550.1, 81559, 1980, 2619, 0';"
        " echo '1, NVIDIA H100, GPU-2, 550.1, 81559, 1980, 2619, 0';; *) echo '| CUDA Version: 12.4 |';; esac\n"
    )
    health = await environment.probe(visible="1")
    assert (health.ok, [gpu.uuid for gpu in health.gpus], health.gpus[0].cuda) == (True, ["GPU-2"], "12.4")
    assert (await environment.probe(visible="7")).ok is False


async def test_cancelling_ends_it(tmp_path: Path) -> None:
    request = RunRequest(
        run_id="r", repository="a/b", commit="1" * 40, level=Level.L1, git_path="/x",
        suite=Suite.model_validate({"suite": "s", "harness": "command", "run": ["sleep", "600"]}),
    )  # fmt: skip
    stop = asyncio.Event()
    (tmp_path / "results").mkdir()
    work = Work(request=request, source=tmp_path, folder=tmp_path, cache=tmp_path / "c", cancelled=stop)
    task = asyncio.create_task(execute(work))
    await asyncio.sleep(0.3)
    stop.set()
    assert (await task).outcome is Outcome.CANCELLED
