"""C42: the steps of a search on one machine: neither a build nor a compiled kernel of one commit is met by another."""

from __future__ import annotations

from pathlib import Path

from bot.clients.store import Run, Store
from bot.core.config import Suite
from bot.core.types import Outcome
from bot.core.validation import Report, RunRequest
from handlers.hearing import judge_report
from tests.runners.world import TOKEN, commit, world

SUITE = Suite.model_validate(
    {
        "suite": "unit",
        "build": ["sh", "-c", "cp version.txt built.txt"],
        "run": ["python", "-m", "pytest", "t"],
        "timeout": "60s",
        "env": {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    }
)
TEST = """
import os
from pathlib import Path
MINE = Path("version.txt").read_text()
def test_the_loaded_build_is_of_this_commit():
    assert Path("built.txt").read_text() == MINE
def test_the_kernels_are_of_this_commit():
    for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH"):
        cache = Path(os.environ[name])
        cache.mkdir(parents=True, exist_ok=True)
        assert {path.name for path in cache.iterdir()} <= {f"kernel-{MINE}"}
        (cache / f"kernel-{MINE}").touch()
"""


async def test_c42_each_step_loads_what_its_own_commit_built(tmp_path: Path, sqlite_store: Store) -> None:
    async with world(tmp_path, sqlite_store, tokens=f"one={TOKEN}") as bot:
        fork = tmp_path / "fork"
        shas = [commit(fork, {"t/test_a.py": TEST, "version.txt": f"v{n}"}) for n in range(3)]
        bot.publish(fork)
        bot.runner()
        for place in (0, 2, 1, 0, 2):
            run: Run = await bot.done(await bot.offer(shas[place], SUITE))
            report = Report.model_validate(run.report)
            assert run.outcome == Outcome.PASSED, report
            assert report.subject.commit == shas[place]

        # a report that says another commit was loaded is no step: it shows nothing
        (runner,) = [one for one in await sqlite_store.runners() if one.name == run.runner]
        subject = report.subject.model_copy(update={"commit": shas[1]})
        body = report.model_copy(update={"subject": subject}).model_dump_json().encode()
        judged = judge_report(run, RunRequest.model_validate(run.request), body, runner=runner)
        assert judged.outcome is Outcome.INFRA and "about something else" in judged.reason
