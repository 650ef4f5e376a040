from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.core.bundles import cut
from bot.core.config import BundleCaps
from bot.core.types import Bundle, Grade, PlannedCommit, Verdict


def commits(*verdicts: Verdict) -> list[PlannedCommit]:
    return [PlannedCommit(f"c{place}", f"subject {place}", verdict, ()) for place, verdict in enumerate(verdicts)]


def shas(bundles: tuple[Bundle, ...]) -> list[list[str]]:
    return [[commit.sha for commit in bundle.commits] for bundle in bundles]


def caps(commits: int = 25, files: int = 150, watch: int = 10) -> BundleCaps:
    return BundleCaps(max_commits=commits, max_files=files, watch_max_commits=watch)


def test_the_caps_cut_by_commits_and_by_files() -> None:
    four = commits(*[Verdict.SAFE] * 4)
    assert shas(cut(four, together={}, paths={}, caps=caps(commits=3))) == [["c0", "c1", "c2"], ["c3"]]
    paths = {commit.sha: frozenset({commit.sha, "shared"}) for commit in four}
    assert shas(cut(four, together={}, paths=paths, caps=caps(files=3))) == [["c0", "c1"], ["c2", "c3"]]


def test_safe_and_watch_have_bundles_of_their_own_and_a_piece_is_as_near_as_its_nearest() -> None:
    mixed = commits(Verdict.SAFE, Verdict.WATCH, Verdict.SAFE, Verdict.SAFE)
    found = cut(mixed, together={"c2": frozenset({"c1"})}, paths={}, caps=caps())
    assert [(bundle.grade, [commit.sha for commit in bundle.commits]) for bundle in found] == [
        (Grade.SAFE, ["c0", "c3"]),
        (Grade.WATCH, ["c1", "c2"]),
    ]


def test_a_dependency_is_never_cut() -> None:
    five = commits(*[Verdict.SAFE] * 5)
    together = {"c4": frozenset({"c0"}), "c2": frozenset({"c0"})}
    assert shas(cut(five, together=together, paths={}, caps=caps(commits=2))) == [["c0", "c2", "c4"], ["c1", "c3"]]


def test_a_key_stands_for_what_the_bundle_holds() -> None:
    two = commits(Verdict.SAFE, Verdict.SAFE)
    first, second = cut(two, together={}, paths={}, caps=caps(commits=1))
    (whole,) = cut(two, together={}, paths={}, caps=caps())
    assert len({first.key, second.key, whole.key}) == 3
    assert cut(two, together={}, paths={}, caps=caps()) == (whole,)


@given(
    st.lists(st.sampled_from([Verdict.SAFE, Verdict.WATCH]), max_size=12),
    st.dictionaries(st.integers(0, 11), st.integers(0, 11), max_size=6),
    st.integers(1, 4),
)
def test_bundles_are_a_partition_in_order_that_cuts_no_bond(
    verdicts: list[Verdict], bonds: dict[int, int], most: int
) -> None:
    given_commits = commits(*verdicts)
    known = {commit.sha for commit in given_commits}
    together = {f"c{a}": frozenset({f"c{b}"}) for a, b in bonds.items() if f"c{a}" in known and f"c{b}" in known}
    found = shas(cut(given_commits, together=together, paths={}, caps=caps(commits=most, watch=most)))
    assert sorted(sha for bundle in found for sha in bundle) == sorted(known)
    assert all(bundle == sorted(bundle, key=lambda sha: int(sha[1:])) for bundle in found)
    for sha, others in together.items():
        assert any({sha, *others} <= set(bundle) for bundle in found)
