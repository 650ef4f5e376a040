"""Whatever both sides did, a plan is a partition in upstream order whose bundles land early without a difference."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.core.types import Plan
from tests.clients.test_git import lines
from tests.handlers.two_sides import Pair, config, everything


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path / "work", {"a.txt": lines(), "b.txt": lines(), "ci/x.yml": lines(), "hash.txt": "1\n"})


steps = st.lists(
    st.tuples(
        st.sampled_from(["a.txt", "b.txt"]),
        st.integers(0, 6),
        st.sampled_from(["edit", "edit", "add", "revert", "move"]),
    ),
    min_size=1,
    max_size=7,
)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(upstream=steps, fork=st.lists(st.tuples(st.sampled_from(["a.txt", "b.txt"]), st.integers(0, 6)), max_size=3))
def test_any_plan_is_a_partition_in_order_whose_bundles_land_early_without_a_difference(
    tmp_path_factory: pytest.TempPathFactory, upstream: list[tuple[str, int, str]], fork: list[tuple[str, int]]
) -> None:
    pair = Pair(tmp_path_factory.mktemp("any") / "work", {"a.txt": lines(), "b.txt": lines()})
    pair.work.git("checkout", "-q", "main")
    made = [play(pair, number, step) for number, step in enumerate(upstream)]
    for number, (name, line) in enumerate(fork):
        pair.work.git("checkout", "-q", "fork")
        text = (pair.work.path / name).read_text().split("\n")
        text[line * 4] = f"fork {number}"
        pair.fork(f"fork {number}", {name: "\n".join(text)})
    plan = pair.plan(config(bundle={"max_commits": 2, "watch_max_commits": 1}))
    assert sorted(commit.sha for commit in everything(plan)) == sorted(made)
    order = {sha: index for index, sha in enumerate(made)}
    for commits in [*(bundle.commits for bundle in plan.bundles), *(chain.commits for chain in plan.chains)]:
        positions = [order[commit.sha] for commit in commits]
        assert positions == sorted(positions)
    for commit in everything(plan):
        assert all(order[need] < order[commit.sha] for need in commit.waits_for)
    assert landed_early(pair, plan) == landed_in_order(pair, made)


def play(pair: Pair, number: int, step: tuple[str, int, str]) -> str:
    """Make one upstream commit."""
    name, line, action = step
    file = pair.work.path / name
    if action == "revert" and number:
        pair.work.git("revert", "--no-edit", "HEAD")
        return pair.work.git("rev-parse", "HEAD")
    if action == "edit" and file.exists():
        text = file.read_text().split("\n")
        text[line * 4] = f"upstream {number}"
        return pair.work.commit(f"edit {number}", {name: "\n".join(text)})
    if action == "move" and file.exists():
        pair.work.git("mv", name, f"moved-{number}-{name}")
        return pair.work.commit(f"move {number}", {})
    return pair.work.commit(f"add {number}", {f"new{number}.py": f"x{number} = {number}\n"})


def landed_in_order(pair: Pair, made: list[str]) -> str:
    """By git itself: each commit picked in upstream order, the conflicting ones passed over."""
    tip = pair.work.git("rev-parse", "fork")
    for sha in made:
        tree = pair.work.cherry_pick(sha, tip)
        if tree is not None:
            tip = pair.work.git("commit-tree", "-p", tip, "-m", "tip", tree)
    return pair.work.git("rev-parse", f"{tip}^{{tree}}")


def landed_early(pair: Pair, plan: Plan) -> str:
    """By git itself: each bundle as a branch of its own on the fork, merged; then the rest that is clean, in order."""
    fork = tip = pair.work.git("rev-parse", "fork")
    for bundle in plan.bundles:
        head = fork
        for commit in bundle.commits:
            tree = pair.work.cherry_pick(commit.sha, head)
            assert tree is not None
            head = pair.work.git("commit-tree", "-p", head, "-m", "pick", tree)
        merged = pair.work.git("merge-tree", "--write-tree", tip, head).split("\n")[0]
        tip = pair.work.git("commit-tree", "-p", tip, "-p", head, "-m", "merge", merged)
    late = {commit.sha for chain in plan.chains for commit in chain.commits} | {commit.sha for commit in plan.held}
    for sha in pair.work.git("rev-list", "--reverse", "--first-parent", "main").split():
        if sha in late and (tree := pair.work.cherry_pick(sha, tip)) is not None:
            tip = pair.work.git("commit-tree", "-p", tip, "-m", "tip", tree)
    return pair.work.git("rev-parse", f"{tip}^{{tree}}")
