"""All batches of the sample pair landed in random orders: the same tree, the ledger complete, the pins right."""

from __future__ import annotations

import contextlib
import random
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bot.core.types import BatchKind, Disposition
from bot.sandbox.driver import Sandbox
from bot.sandbox.person import Refused
from bot.sandbox.sample import Sample, build
from bot.sandbox.stage import read_manifest, set_up
from handlers.fork import open_fork
from tests.handlers.pair import Clone, Pair, bot
from tests.world import ROOT, SECRET

pytestmark = pytest.mark.timeout(600)


async def test_any_order_comes_to_the_same(tmp_path: Path) -> None:
    sample = build(tmp_path / "sample", stage=0)
    trees = [await landed(sample, tmp_path / str(seed), random.Random(seed), told=seed == 1) for seed in (1, 2, 3)]
    assert len(set(trees)) == 1


async def landed(sample: Sample, tmp_path: Path, chance: random.Random, *, told: bool) -> str:
    """Land everything; gives the tree that the fork's main branch then has.

    `told`: every webhook comes. Otherwise none does but those of comments, and only the schedule makes Graft look.
    """
    async with Sandbox(tmp_path / "sandbox") as sandbox:
        staged = set_up(
            sandbox, sample, manifest=read_manifest(ROOT / "app.yml"), webhook_url="", secret=SECRET, gate=False
        )
        async with bot(tmp_path / "data", sandbox, staged.app) as (context, clock):
            clone = Clone(tmp_path / "clone", sample.fork)
            p = Pair(sandbox, staged.app, context, clock, clone, clone, fork_name=sample.fork_name)
            no_runs(p)
            if not told:
                for event in sorted({*staged.app.events} - {"issue_comment", "installation"}):
                    sandbox.faults.drop_deliveries(100_000, event=event)
            p.installation = staged.install()
            await p.settle()
            await land_all(p, chance, p.settle if told else p.ingest)
            plan = await p.plan()
            assert await p.failures() == []
            open_yet = {e.subject: e.disposition for e in plan.ledger.entries if not e.disposition.final}
            assert open_yet == {}
            assert plan.ledger.pin == plan.ledger.frontier == plan.upstream_tip
            assert plan.ledger.metrics.backlog == 0
            assert plan.ledger.metrics.days_behind == 0
            # nothing came twice
            fork = await open_fork(context, p.scope)
            carried = [e.by for e in plan.ledger.entries if e.disposition is Disposition.PICKED]
            assert all(fork.git.resolve(by) for by in carried)
            assert not [e for e in plan.ledger.entries if "times" in e.reason]
            return p.git("rev-parse", "main^{tree}")


def no_runs(p: Pair) -> None:
    """The same file without suites and caps: what runs is another test's matter."""
    import yaml

    p.fork.get(p.repository.path, "main")
    path = p.fork.path / ".github/graft.yml"
    config = yaml.safe_load(path.read_text())
    config.pop("validation", None)
    for area in config.get("areas", {}).values():
        area.pop("suites", None)
    config["mode"] = "act"
    config["ingest"]["caps"] = {"open_bundles": 50, "open_chains": 50, "pull_requests_per_day": 500}
    p.fork.time = int(subprocess.check_output(["git", "-C", str(p.fork.path), "log", "-1", "--format=%ct"]))
    p.fork.commit("No suites, no caps", {".github/graft.yml": yaml.safe_dump(config)})
    p.sandbox.push_ref(p.fork_name, "main", source=p.fork.path)


async def land_all(p: Pair, chance: random.Random, look: Callable[[], Awaitable[None]]) -> None:
    """Merge some of what is open, in a random order and by a random button, until nothing is left; ask for the rest."""
    owner = next(iter(p.repository.collaborators))
    user = p.sandbox.as_user(owner)
    for _ in range(30):
        ready = p.pulls()
        if not ready:
            reverted = [e.sha for e in (await p.plan()).ledger.entries if e.disposition is Disposition.REVERTED]
            if not reverted:
                return
            await user.comment(p.fork_name, p.dashboard().number, "\n".join(f"/pick {sha}" for sha in reverted))
            await p.settle()
            continue
        chance.shuffle(ready)
        for pull in ready[: chance.randint(len(ready) // 2 + 1, len(ready))]:
            batch = next(b for b in await p.batches() if b.number == pull.number)
            if batch.kind is BatchKind.CONFLICT:
                resolve(p, batch.commits[0], pull.pull.head_ref, owner)
                if pull.pull.draft:
                    await user.ready_for_review(p.fork_name, pull.number)
            with contextlib.suppress(Refused):  # what landed a moment ago is in the way: built anew at the next look
                await user.merge_pull(p.fork_name, pull.number, chance.choice(["merge", "squash", "rebase"]))
        await look()
    raise AssertionError(f"still open: {[pull.title for pull in p.pulls()]}")


def resolve(p: Pair, upstream_commit: str, branch: str, login: str) -> None:
    """A person takes upstream's side of what conflicts, wherever markers are left."""
    p.fork.get(p.repository.path, branch)
    left = p.fork.git("grep", "-l", "-E", "^<<<<<<< ", "HEAD") if marked(p) else ""
    files = [line.partition(":")[2] for line in left.splitlines()]
    p.fork.commit("Resolve the conflict", {name: theirs((p.fork.path / name).read_text()) for name in files})
    p.sandbox.push_ref(p.fork_name, branch, source=p.fork.path, login=login)


def marked(p: Pair) -> bool:
    found = subprocess.run(["git", "grep", "-q", "-E", "^<<<<<<< ", "HEAD"], cwd=p.fork.path, check=False)
    return found.returncode == 0


def theirs(text: str) -> str:
    """The text with upstream's side of each conflict."""
    kept: list[str] = []
    side = "both"
    for line in text.splitlines(keepends=True):
        if line.startswith("<<<<<<< "):
            side = "ours"
        elif line.startswith("||||||| ") and side == "ours":
            side = "base"
        elif line.startswith("=======") and side in ("ours", "base"):
            side = "theirs"
        elif line.startswith(">>>>>>> ") and side == "theirs":
            side = "both"
        elif side in ("both", "theirs"):
            kept.append(line)
    return "".join(kept)
