from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.cli.pair import open_pair
from bot.core.config import load
from bot.core.types import Plan, Verdict
from bot.sandbox.sample import Sample, build
from handlers.planning import make_plan
from tests.handlers.two_sides import bundled, chained, everything, of


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return build(tmp_path_factory.mktemp("sample") / "pair")


@pytest.fixture(scope="module")
def plan(sample: Sample) -> Iterator[Plan]:
    with open_pair(Path(sample.upstream), Path(sample.fork)) as pair:
        text = pair.git.read_file(pair.fork, ".github/graft.yml")
        assert text is not None
        yield make_plan(pair.git, upstream=pair.upstream, fork=pair.fork, config=load(text.decode()), now=1_790_000_000)


def test_the_sample_is_partitioned(sample: Sample, plan: Plan) -> None:
    wanted = {*sample.undecided, *sample.reverted_in_fork}
    assert sorted(commit.sha for commit in everything(plan)) == sorted(wanted)


def test_its_chain_is_found_in_order(sample: Sample, plan: Plan) -> None:
    chain = next(chain for chain in chained(plan) if sample.chain[0] in chain)
    assert chain[: len(sample.chain)] == list(sample.chain)


def test_each_role_has_its_place(sample: Sample, plan: Plan) -> None:
    roles, early = sample.roles, set(bundled(plan))
    lanes = {chain.commits[0].sha for chain in plan.chains if chain.lane}
    assert roles["pin_bump"] in lanes
    assert {commit.sha for commit in plan.held} == {roles["pin_dependent"], roles["pin_dependent_2"]}
    assert [roles["rename_api"], roles["rename_dependent"]] in chained(plan)
    assert [roles["reverted"], roles["revert"], roles["reland"]] in chained(plan)
    assert {of(plan, roles[name]).verdict for name in ("conflict", "mechanical_conflict")} == {Verdict.CONFLICT}
    for role in (
        "docs_readme",
        "renamed_file",
        "edit_in_renamed_file",
        "renamed_folder",
        "edit_in_renamed_folder",
        "merge",
    ):
        assert roles[role] in early
    settled = {commit.sha: commit.verdict for commit in plan.settled}
    assert settled[roles["already_there"]] is Verdict.EMPTY
    assert settled[roles["fork_deleted_file"]] is Verdict.EMPTY
    assert settled[roles["empty"]] is Verdict.EMPTY
    assert settled[roles["ci_only"]] is Verdict.SKIPPED


def test_who_is_out_says_why_and_what_it_waits_for(plan: Plan) -> None:
    for commit in everything(plan):
        assert commit.reasons
    for commit in plan.held:
        assert commit.waits_for
