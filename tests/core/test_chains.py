from __future__ import annotations

import pytest

from bot.core.chains import Groups, Tie, chain_of, gather, global_name, rules_met, telling
from bot.core.config import Ingest, RiskRule
from bot.core.footprint import Footprint
from bot.core.markers import unread_markers
from bot.core.types import Commit, Disposition, Ledger, LedgerEntry, Level, Metrics, PlannedCommit, Verdict
from tests.core.test_lineage import touched

LONGEST = Ingest().chain.max_links


def test_groups_join_and_keep_the_order_in_which_they_began() -> None:
    groups = Groups()
    for name in "abcde":
        groups.add(name)
    groups.join(["d", "b"])
    groups.join(["d", "e"])
    groups.join([])
    assert groups.members() == [["a"], ["b", "d", "e"], ["c"]]
    assert groups.find("e") == "b"
    assert "e" in groups
    assert "f" not in groups


@pytest.mark.parametrize(
    ("sizes", "mates", "lengths"),
    [
        ((3, 2), {"0.0": Tie.LEANS, "1.0": Tie.NEAR}, [6]),
        ((LONGEST - 1, 2), {"0.0": Tie.LEANS, "1.1": Tie.LEANS}, [LONGEST - 1, 3]),
        ((LONGEST - 1, 2), {"0.0": Tie.REPLACES, "1.1": Tie.LEANS}, [LONGEST, 2]),
        ((LONGEST, 2), {"0.0": Tie.REPLACES, "1.1": Tie.NEAR}, [LONGEST, 3]),
        ((LONGEST, 2), {"0.0": Tie.REPLACES}, [LONGEST, 2, 1]),
        ((LONGEST, 2), {"0.0": Tie.FAMILY, "1.1": Tie.FAMILY}, [LONGEST + 3]),
    ],
)
def test_a_commit_goes_where_it_belongs_most_and_chains_stay_of_a_size_that_can_be_landed(
    sizes: tuple[int, ...], mates: dict[str, Tie], lengths: list[int]
) -> None:
    groups = Groups()
    order: dict[str, int] = {}
    for place, size in enumerate(sizes):
        names = [f"{place}.{link}" for link in range(size)]
        for name in names:
            groups.add(name)
            order[name] = len(order)
        groups.join(names)
    gather(groups, "new", mates, order, longest=LONGEST)
    assert [len(group) for group in groups.members()] == lengths
    assert groups.size("new") == next(len(group) for group in groups.members() if "new" in group)


@pytest.mark.parametrize(
    ("name", "tells"),
    [
        ("load", False),
        ("attributes", False),
        ("a", False),
        ("make_tensor_descriptor", True),
        ("tt.load_it", True),
        ("isTransposed", True),
        ("__init__", False),
        ("BLOCK_K", False),
    ],
)
def test_names_that_mean_one_thing(name: str, tells: bool) -> None:
    assert telling(name) is tells


@pytest.mark.parametrize(
    ("name", "means_one_thing"),
    [
        ("rocdl.wait.asyncmark", True),
        ("TRITON_EXT_ENABLED", True),
        ("__APPLE__", False),
        ("DIRECTORY", False),
        ("output_path", False),
        ("NUM_SLICES", False),
    ],
)
def test_words_that_mean_the_same_in_all_files(name: str, means_one_thing: bool) -> None:
    assert global_name(name) is means_one_thing


def test_a_chain_is_named_by_its_first_link_and_needs_what_its_rules_say() -> None:
    rules = (
        RiskRule(name="pins", paths=("hash.txt",), levels=(Level.L3, Level.L1), areas=("core",)),
        RiskRule(name="other", paths=("z",), levels=(Level.L2,)),
    )
    met = rules_met(Footprint("c0", (touched("hash.txt"),)), rules)
    assert [rule.name for rule in met] == ["pins"]
    links = [PlannedCommit(f"c{n}", "", Verdict.RISKY, (), areas=("own",)) for n in range(2)]
    chain = chain_of(links, {"c0": met}, lane=True)
    assert (chain.levels, chain.areas, chain.lane) == ((Level.L1, Level.L3), ("core", "own"), True)
    assert chain.key == chain_of(links[:1], {}, lane=False).key


def test_how_a_fork_seems_to_record_its_picks() -> None:
    shas = [f"{n:040x}" for n in range(4)]
    entries = tuple(
        LedgerEntry(sha, Disposition.PICKED if place == 0 else Disposition.PENDING) for place, sha in enumerate(shas)
    )
    ledger = Ledger(entries, None, None, Metrics(0, 0))
    fork = [
        Commit(str(place), "t", (), "n", "e", 0, "+0000", 0, f"Pick\n\nBackport Revision: {sha}\nReverts commit {sha}")
        for place, sha in enumerate([*shas, "f" * 40])
    ]
    assert unread_markers(fork, ledger) == [("Backport Revision: ", 3)]
