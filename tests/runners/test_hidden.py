"""A suite finds none of the runner's credentials, not in its own environment and not in /proc."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot.clients.store import Store
from bot.core.config import Suite
from bot.core.types import Outcome
from bot.core.validation import Report
from runners.hidden import secret_variables
from tests.runners.world import TOKEN, commit, world

# the needles are put together at run time, so that the search does not find itself
SEARCH = """
import json, os, pathlib
needles = [b"token-of-the-" + b"first-runner", b"lab-" + b"token-xyz", b"aws-" + b"secret-xyz", b"gh-" + b"token-xyz"]
found, looked = [], 0
for name in os.listdir("/proc"):
    for part in ("environ", "cmdline"):
        try:
            text = pathlib.Path("/proc", name, part).read_bytes()
        except OSError:
            continue
        looked += 1
        found += [(name, part, needle.decode()[:4]) for needle in needles if needle in text]
with open(os.environ["GRAFT_RESULTS"], "w") as file:
    json.dump({"tests": [{"id": "hidden", "outcome": "failed" if found else "passed", "message": str(found)}],
               "metrics": {"looked": looked}}, file)
"""


@pytest.mark.parametrize(
    "program", [["-m", "bot.cli"], [str(Path(sys.executable).with_name("graft"))]], ids=["module", "script"]
)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no /proc")
async def test_no_suite_reads_the_runner_s_credentials(tmp_path: Path, sqlite_store: Store, program: list[str]) -> None:
    async with world(tmp_path, sqlite_store) as bot:
        sha = commit(tmp_path / "fork", {"search.py": SEARCH})
        bot.publish(tmp_path / "fork")
        process = subprocess.Popen(  # noqa: ASYNC220 - it is ended, not waited for
            [sys.executable, *program, "runner", "--bot", bot.url, "--name", "one",
             "--work", str(tmp_path / "work"), "--poll", "0.05"],
            env={
                "PATH": os.environ["PATH"], "HOME": str(tmp_path), "GRAFT_RUNNER_TOKEN": TOKEN,
                "GRAFT_REDIS_URL": bot.redis.replace("redis://", "redis://default:@"),
                "GRAFT_LAB_MAIN_URL": "https://lab.example.com", "GRAFT_LAB_MAIN_TOKEN": "lab-token-xyz",
                "AWS_SECRET_ACCESS_KEY": "aws-secret-xyz", "GITHUB_TOKEN": "gh-token-xyz",
            },
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            suite = Suite.model_validate(
                {"suite": "s", "harness": "command", "run": ["python", "search.py"], "metrics": ["looked"]}
            )
            run = await bot.done(await bot.offer(sha, suite))
            report = Report.model_validate(run.report)
            assert run.outcome == Outcome.PASSED, report
            assert report.measurements[0].samples[0] > 4
        finally:
            process.terminate()
            # it may be waiting for an answer of the bot, which is in this very loop
            await asyncio.to_thread(process.wait)


def test_what_looks_like_a_credential() -> None:
    environment = {
        "GRAFT_RUNNER_TOKEN": "a", "AWS_SECRET_ACCESS_KEY": "a", "AWS_ACCESS_KEY_ID": "a", "DB_PASSWORD": "a",
        "GRAFT_REDIS_URL": "redis://u:pw@h/0", "OTHER_API_KEY": "a",
        "PATH": "/bin", "GRAFT_BOT_URL": "https://h:443/x", "GRAFT_RUNNER_TOKEN_FILE": "/run/t", "LANG": "C",
        "REDIS": "redis://h:6379/0", "KEYBOARD": "us",
    }  # fmt: skip
    assert list(secret_variables(environment)) == [
        "GRAFT_RUNNER_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "DB_PASSWORD", "GRAFT_REDIS_URL",
        "OTHER_API_KEY",
    ]  # fmt: skip


# a filter by which the kernel refuses prctl(PR_SET_DUMPABLE, …) to the process and to all that it becomes
REFUSED = """
import ctypes, struct, sys, platform
number = {"x86_64": 157, "aarch64": 167}[platform.machine()]
steps = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x15, 0, 1, 4), (0x06, 0, 0, 0x50001),
         (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
kernel = ctypes.CDLL(None, use_errno=True)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
if kernel.prctl(38, 1, 0, 0, 0) or kernel.prctl(22, 2, program, 0, 0):
    sys.exit(77)
"""
HIDES = "import os\nfrom runners.hidden import hide\nhide()\nprint(os.environ['MY_TOKEN'])\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel is not Linux")
@pytest.mark.parametrize("refused", [True, False])
def test_it_is_said_once_where_the_kernel_refuses(tmp_path: Path, refused: bool) -> None:
    (tmp_path / "hides.py").write_text(HIDES)
    start = f"import os, sys\nos.execv(sys.executable, [sys.executable, {str(tmp_path / 'hides.py')!r}])\n"
    done = subprocess.run(
        [sys.executable, "-c", (REFUSED if refused else "") + start],
        env={"PATH": os.environ["PATH"], "MY_TOKEN": "xyz", "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("this machine lets no process filter its own calls")
    assert (done.returncode, done.stdout) == (0, "xyz\n"), done.stderr
    assert done.stderr.count("the kernel refuses") == refused
    assert ("Operation not permitted" in done.stderr) == refused
