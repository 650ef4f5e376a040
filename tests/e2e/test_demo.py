"""The whole loop by the command that a newcomer types: undisturbed, and with every process killed on the way."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bot.sandbox.driver import Sandbox
from bot.sandbox.processes import Processes, free_port
from bot.sandbox.sample import build
from bot.sandbox.stage import read_manifest, set_up
from bot.sandbox.story import Story, facts

ROOT = Path(__file__).parent.parent.parent
MARKER = "<!-- graft:"


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "bot.cli", "demo", "--once", "--json"],
        cwd=ROOT, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-6_000:]
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def by_kind(told: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [row for row in told["pull_requests"] if row["kind"] == kind]


@pytest.mark.timeout(1200)
def test_the_loop_comes_to_its_end(undisturbed: dict[str, Any]) -> None:
    told = undisturbed
    merged = [row for row in by_kind(told, "bundle") if row["state"] == "merged"]
    assert merged and all(row["commits"] for row in merged)
    conflicts = by_kind(told, "conflict")
    assert conflicts and all(row["state"] == "draft" for row in conflicts)
    persons = by_kind(told, "person")
    assert [row["state"] for row in persons] == ["merged"]

    links = [row for row in by_kind(told, "chain") if row["state"] == "merged"]
    assert [row["position"] for row in links] == list(range(1, len(links) + 1)), "the links landed in order"
    assert len(links) > 1 and len({row["chain"] for row in links}) == 1

    gated = [row for row in (*links, *persons) if row["gate"]["before"]]
    assert gated
    for row in gated:
        assert row["gate"]["before"]["decision"] in ("block", "pending") and row["gate"]["before"]["reason"]
        assert row["gate"]["after"]["decision"] == "allow"
    before = [row["gate"]["before"] for row in gated]
    assert any(g["decision"] == "block" and any("not signed off" in m for m in g["missing"]) for g in before)
    assert any(row["refused"] for row in links), "GitHub itself refused the merge before the gate was open"

    (breakage,) = told["breakages"]
    assert {"trunk-breakage", "area:tlx", "level:l1"} <= set(breakage["labels"])
    assert breakage["owners"]
    assert told["metrics"]["backlog"] >= 0 and told["metrics"]["days_behind"] >= 0
    assert len(told["ledger"]["frontier"]) == 40


class Saboteur:
    """Kills a process without a word when the story reaches a step, and starts it again."""

    def __init__(self, processes: Processes) -> None:
        self.processes = processes
        self.killed: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._plan = {
            "ticks a box": "worker",
            "Graft opened #1:": "valkey",
            "can't land yet": "serve",
            ": /validate l2": "runner",
            "/signoff l3 core": "worker",
            "/ok-to-test": "valkey",
        }

    def say(self, what: str, _: str) -> None:
        for words, name in self._plan.items():
            if words in what:
                del self._plan[words]
                self._tasks.append(asyncio.create_task(self._strike(name)))
                return

    async def _strike(self, name: str) -> None:
        program = self.processes.programs[name]
        await program.kill()
        await asyncio.sleep(0.5)
        await self.processes.restart(name)
        self.killed.append(name)

    async def rest(self) -> None:
        await asyncio.gather(*self._tasks)


@pytest.mark.timeout(1200)
async def test_killing_every_process_on_the_way_changes_nothing(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    sample = build(tmp_path / "sample", stage=0)
    processes = Processes(tmp_path, web_port=free_port())
    saboteur = Saboteur(processes)
    async with Sandbox(tmp_path / "github") as sandbox:
        manifest = read_manifest(ROOT / "app.yml")
        stage = set_up(sandbox, sample, manifest=manifest, webhook_url=f"{processes.url}/webhook", secret="secret")
        story = Story(stage, saboteur.say)
        try:
            await processes.start(stage)
            await story.play()
            await saboteur.rest()
        finally:
            await processes.stop()
        assert sorted(set(saboteur.killed)) == ["runner", "serve", "valkey", "worker"]
        assert sandbox.state.violations == []
        told = facts(story)
        assert outline(told) == outline(undisturbed)
        for issue in sandbox.state.known_repository(stage.fork).issues.values():
            marks = Counter(c.body.split("-->")[0] for c in issue.comments if c.body.startswith(MARKER))
            assert all(count == 1 for count in marks.values()), f"#{issue.number} says something twice: {marks}"


def outline(told: dict[str, Any]) -> dict[str, Any]:
    """What must be the same whatever was killed: what landed and what trunk says; not numbers, times, shas of picks."""
    rows = told["pull_requests"]
    landed = sorted((row["kind"], tuple(row["commits"])) for row in rows if row["state"] == "merged")
    in_flight = Counter(sha for row in rows if row["state"] != "closed" for sha in row["commits"])
    assert all(count == 1 for count in in_flight.values()), f"picked twice: {in_flight}"
    return {
        "landed": landed,
        "conflicts": sorted(tuple(row["commits"]) for row in rows if row["kind"] == "conflict"),
        "breakages": [
            (b["title"], sorted(name for name in b["labels"] if not name.startswith("state:")), b["owners"])
            for b in told["breakages"]
        ],
        "ledger": told["ledger"],
        "backlog": told["metrics"]["backlog"],
    }
