"""L3 by hand: an owner gives a report in a comment; it is kept, audited, signed from, and void once it is edited."""

from __future__ import annotations

import json
from pathlib import Path

from tests.handlers.pair import FORK
from tests.handlers.runs import Gated, gated


def block(fork: Gated, number: int, **metrics: float) -> str:
    told = {"suite": "model", "commit": fork.head(number), "metrics": metrics}
    return f"/report l3 model\n\n```graft-report\n{json.dumps(told)}\n```\n"


async def test_an_owner_gives_a_report_and_signs_from_it(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        world, store = fork.world, fork.world.context.store
        number = await fork.opens("walter", "core", {"lib/code.txt": "two\n"})
        await fork.proved(number)
        head = fork.head(number)
        assert "does not own core" in await world.says("mark", number, block(fork, number, ne=0.8))
        assert "holds no fence" in await world.says("olga", number, "/report l3 model")
        assert "declares no metric" in await world.says("olga", number, block(fork, number, nee=0.8))
        assert not [run for run in await store.runs(FORK, level="l3") if run.suite == "model"]

        # over the budget: kept as it is, and no sign-off stands on it
        answer = await world.says("olga", number, block(fork, number, ne=0.95))
        assert f"Recorded for `{head[:10]}`: `model`, passed, by olga: `ne=0.95`." in answer
        assert "above 0.9" in await world.says("tina", number, "/signoff l3 core")
        assert fork.gate(number).startswith("block: core: not signed off")

        # a better one: kept with who and when, and another owner signs from it
        world.sandbox.advance(1)
        comment = await world.sandbox.as_user("olga").comment(FORK, number, block(fork, number, ne=0.8012))
        await world.settle()
        (run, _) = [run for run in await store.runs(FORK, head, "l3") if run.suite == "model"]
        assert run.report is not None
        assert (run.outcome, run.report["measurements"][0]["samples"]) == ("passed", [0.8012])
        entry = [
            row.body for row in await store.audit_entries(FORK) if row.kind == "run" and row.body["suite"] == "model"
        ][-1]
        assert (entry["by"], entry["comment"], entry["head"]) == ("olga", comment["id"], head)
        assert entry["metrics"] == {"ne": 0.8012}
        assert "model" in next(body for body in world.comments(number) if "graft:results" in body)
        assert "is not what the report says" in await world.says("tina", number, "/signoff l3 core ne=0.79")
        assert "tina signed area" in await world.says("tina", number, "/signoff l3 core")
        assert fork.gate(number).startswith("allow")

        # edited, it counts no more: neither as a run nor for what was signed from it
        world.sandbox.advance(5)
        await world.sandbox.as_user("olga").edit_comment(FORK, comment["id"], block(fork, number, ne=0.8011))
        await world.settle()
        assert (await store.run(run.id)).outcome == "cancelled"  # type: ignore[union-attr]
        assert fork.gate(number).startswith("block: core: not signed off")
        assert "above 0.9" in fork.gate(number)  # the older report is what is left

        # pushed since: the report was of another commit
        await world.says("olga", number, block(fork, number, ne=0.8))
        assert "tina signed area" in await world.says("tina", number, "/signoff l3 core")
        old = block(fork, number, ne=0.8)
        await fork.pushes("walter", "core", {"lib/code.txt": "three\n"})
        await fork.proved(number)
        assert "it is a report of commit" in await world.says("olga", number, old)
        assert "ne is missing" in await world.says("tina", number, "/signoff l3 core")
        assert not await world.failures()
