"""After each run of trunk only those gates are looked at again that may say something else; requests are counted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bot.clients.github.models import BranchRef, Pull
from bot.core.types import Level
from handlers.fork import open_fork
from handlers.regating import concerned
from handlers.validate import Target, start_level
from tests.handlers.runs import CONFIG, Gated, gated

PATH = re.compile(r"/pulls/(\d+)/reviews")


def looked_at(fork: Gated) -> tuple[set[int], int]:
    """The pull requests whose gate was decided since the last call, and how many requests there were in all."""
    requests = fork.world.sandbox.state.requests
    found = {int(match[1]) for _, path, _ in requests if (match := PATH.search(path))}
    count = len(requests)
    requests.clear()
    return found, count


NOW: dict[str, Any] = {
    "files": "a", "halted": "", "broken": [["docs", "k1", 5]], "measured": {"l2/speed": ["r1"], "l3/model": []},
}  # fmt: skip
MINE: dict[str, Any] = {**NOW, "head": "h", "touched": ["core"], "measured": {"l2/speed": ["r1"]}}


@pytest.mark.parametrize(
    ("change", "mine", "asked"),
    [
        ({}, MINE, False),
        ({"files": "b"}, MINE, True),
        ({"halted": "#1"}, MINE, True),
        ({}, {**MINE, "halted": "#1"}, True),
        ({"broken": []}, MINE, False),
        ({"broken": []}, {**MINE, "touched": ["docs"]}, True),
        ({"broken": [["core", "k2", 0], ["docs", "k1", 5]]}, MINE, True),
        ({"broken": [["docs", "k1", 6]]}, {**MINE, "touched": ["docs"]}, True),
        ({"measured": {"l2/speed": ["r2", "r1"]}}, MINE, True),
        ({"measured": {}}, MINE, True),
        ({"measured": {"l2/speed": ["r1"], "l3/model": ["r9"]}}, MINE, False),
        # what is not known of a pull request counts against skipping it
        ({}, None, True),
        ({}, {**MINE, "head": "older"}, True),
        ({}, {**MINE, "touched": None}, True),
    ],
)
def test_who_is_concerned(change: dict[str, Any], mine: dict[str, Any] | None, asked: bool) -> None:
    pull = Pull(number=7, head=BranchRef(sha="h"))
    found = concerned(now={**NOW, **change}, pulls=[pull], known={7: mine})
    assert found == ([7] if asked else [])


async def test_only_the_gates_that_may_say_something_else_are_asked(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        world = fork.world
        files = ("docs/text.txt", "other.txt", "lib/code.txt", "more.txt", "README", "notes.txt")
        numbers = [await fork.opens("walter", f"change-{n}", {name: "two\n"}) for n, name in enumerate(files)]
        docs, beside, core = numbers[:3]
        for number in numbers:
            await fork.ends(number)
        await world.says("maria", core, "/validate l2")
        await fork.ends(core, level="l2", measured={"ms": [101.0]})
        await fork.ends(None, level="l2", measured={"ms": [100.0]})
        await fork.ends(None)
        looked_at(fork)

        # trunk is green again, as before: nobody is asked, however many are open
        store = world.context.store
        tips = [run for run in await store.trunk_runs("acme/pkg") if run.level == "l1"]
        assert tips
        await world.ask("triage", "trunk")
        await world.settle()
        gates, few = looked_at(fork)
        assert gates == set()

        # it breaks where `docs` is: those who touch it, and no other; mended, the same
        await fork.sets({"other2.txt": "x\n"})
        gates, _ = looked_at(fork)
        assert gates == set()
        await fork.ends(None, "side", failed=["docs/test_text.py::test_spelling"])
        gates, _ = looked_at(fork)
        assert gates == {docs}
        assert fork.gate(docs).startswith("block: trunk is red in docs")
        await fork.ends(None, "unit")
        await fork.sets({"other2.txt": "y\n"})
        await fork.ends(None, passed=["docs/test_text.py::test_spelling", "tests/test_all.py::test_fine"])
        gates, _ = looked_at(fork)
        assert gates == {docs}
        assert fork.gate(docs).startswith("allow")

        # trunk is measured anew: whoever holds numbers against it
        tip = world.git("rev-parse", "main")
        await start_level(await open_fork(world.context, world.scope), Target(tip, tip), Level.L2, again=True)
        await fork.ends(None, level="l2", measured={"ms": [80.0]})
        gates, _ = looked_at(fork)
        assert gates == {core}
        assert "80 became 101" in fork.gate(core)

        # the fork's file, a halt and a change of members concern all; so does what nobody noted yet
        issue = await world.sandbox.as_user("walter").open_issue("acme/pkg", "Stop", labels=["graft:halt"])
        await world.settle()
        assert looked_at(fork)[0] == set(numbers)
        assert fork.gate(beside).startswith("block: halted by")
        await world.sandbox.as_user("walter").close("acme/pkg", issue["number"])
        await world.settle()
        assert looked_at(fork)[0] == set(numbers)
        await world.ask("gate_all", "repository!1", {"event": "membership"})
        await world.settle()
        assert looked_at(fork)[0] == set(numbers)
        await store.remove_note(world.installation, "acme/pkg", f"gate-facts:{beside}")
        await world.ask("gate_all")
        await world.settle()
        assert looked_at(fork)[0] == {beside}
        await fork.sets({".github/graft.yml": CONFIG + "nonsense: 1\n"})
        await fork.sets({".github/graft.yml": CONFIG})
        assert looked_at(fork)[0] == set(numbers)
        assert fork.gate(beside).startswith("allow")

        # and the sweep looks at all of them, whatever was noted
        await fork.sweep()
        gates, many = looked_at(fork)
        assert gates == set(numbers)
        assert few < many / 4
        assert not await world.failures()
