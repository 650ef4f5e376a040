"""One suite by two harnesses, both really run by a runner on the sandbox's commits: where they disagree, it is said."""

from __future__ import annotations

from pathlib import Path

from tests.handlers.pair import FORK, Clone, pair
from tests.handlers.runs import PEOPLE, Gated
from tests.runners.hired import hired

TEST = "tests/test_table.py::test_the_table"
CONFIG = """
upstream: {repository: up/pkg}
mode: act
default_owner: mark
areas:
  core: {paths: [lib/**], owners: [olga]}
validation:
  l1:
    - suite: unit
      area: core
      run: [python, -m, pytest, -q, tests]
      second: {harness: command, run: [python, check.py]}
"""
# pytest's looks at half of the table only; the other reads all of it
FILES = {
    "lib/table.txt": "1\n2\n",
    "tests/test_table.py": "def test_the_table():\n    assert open('lib/table.txt').readline() == '1\\n'\n",
    "check.py": f"""import json, os
good = open("lib/table.txt").read() == "1\\n2\\n"
test = {{"id": "{TEST}", "outcome": "passed" if good else "failed", "message": "a wrong row"}}
with open(os.environ["GRAFT_RESULTS"], "w") as file:
    json.dump({{"tests": [test]}}, file)
raise SystemExit(not good)
""",
}


def _make(upstream: Clone, fork: Clone, shas: dict[str, str]) -> None:
    fork.commit("Our own", FILES)


async def test_two_harnesses_prove_a_suite_and_where_they_disagree_it_is_said(tmp_path: Path) -> None:
    async with pair(tmp_path, make=_make, config=CONFIG, people=PEOPLE) as world:
        fork, store = Gated(world), world.context.store
        await fork.start()
        async with hired(fork, tmp_path / "runner") as runner:
            await runner.works()
            trunk = await store.runs(FORK, trunk=True, capacity=None)
            assert {(run.capacity, run.outcome, run.report and run.report["harness"]) for run in trunk} == {
                ("", "passed", "pytest"),
                ("second", "passed", "command"),
            }
            number = await fork.opens("walter", "small", {"lib/table.txt": "1\n3\n"})
            await runner.works()
            check = fork.check(fork.head(number), "graft/l1")
            assert (check.conclusion, check.title) == ("failure", "L1 disagreed")
            comment = "\n".join(world.comments(number))
            assert f"| `{TEST}` | passed | failed |" in comment
            assert "a wrong row" in comment
            assert "graft run l1 --suite unit --second" in comment
            assert f"unit disagreed: {TEST} (passed on default, failed on default)" in fork.gate(number)

            await fork.pushes("walter", "small", {"lib/table.txt": "1\n2\n", "other.txt": "harmless\n"})
            await runner.works()
            check = fork.check(fork.head(number), "graft/l1")
            assert (check.conclusion, check.title) == ("success", "L1 passed")
