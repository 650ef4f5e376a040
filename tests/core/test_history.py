"""History: who carries what, and what was taken back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.core.history import History, LandedPullRequest, Names, read_history
from bot.core.trailers import pick_message
from bot.core.types import Commit


def make(sha: str, message: str = "", parents: tuple[str, ...] = ()) -> Commit:
    return Commit(sha, "t" * 40, parents, "Ann", "a@x.org", 0, "+0000", 0, message or f"Commit {sha[:4]}")


def u(number: int, message: str = "") -> Commit:
    return make(f"a{number:02d}".ljust(40, "0"), message or f"Upstream {number} (#{number})")


def f(number: int, message: str = "", parents: tuple[str, ...] = ()) -> Commit:
    return make(f"f{number:02d}".ljust(40, "0"), message or f"Fork {number}", parents)


def pick(number: int, *picked: Commit) -> Commit:
    trailers = "\n".join(f"(cherry picked from commit {commit.sha})" for commit in picked)
    return f(number, f"{picked[0].subject}\n\n{trailers}")


def reading(upstream: list[Commit], fork: list[Commit], *pulls: LandedPullRequest, **more: object) -> History:
    return read_history(upstream=upstream, fork=fork, pull_requests=pulls, **more)  # type: ignore[arg-type]


def pull(number: int, merge: Commit, body: str, *, trusted: bool = True) -> LandedPullRequest:
    return LandedPullRequest(number, merge.sha, "t", body, "graft/bundle/k", 0, trusted)


U = [u(n) for n in range(1, 6)]


def standing(history: History) -> set[str]:
    return {sha for sha in history.carriers if history.standing(sha)}


def test_c4_picked_reverted_and_the_revert_reverted() -> None:
    first = pick(1, U[0])
    second = f(2, f'Revert "{first.subject}"\n\nThis reverts commit {first.sha}.')
    third = f(3, f'Revert "{second.subject}"\n\nThis reverts commit {second.sha}.')
    fourth = f(4, f"This reverts commit {third.sha}.")
    for end, stands in ((1, True), (2, False), (3, True), (4, False)):
        history = reading(U, [first, second, third, fourth][:end])
        assert bool(history.standing(U[0].sha)) is stands
    assert history.carriers[U[0].sha][0].reverted_by == second.sha


def test_c4_by_review_numbers_and_source_ids() -> None:
    source = "0123456789abcdef0123456789abcdef01234567"
    first = f(1, f"{pick(1, U[0]).message}\n\nDifferential Revision: D1\n\nfbshipit-source-id: {source}")
    second = f(
        2,
        "Revert D1: x\n\nDifferential Revision:\nD1\n\nOriginal commit changeset: 0123456789ab\n\n"
        "Original Phabricator Diff: D1\n\nfbshipit-source-id: " + "9" * 40,
    )
    third = f(3, "Revert D2: Revert D1: x\n\nOriginal commit changeset: 999999999999\n\nOriginal Phabricator Diff: D1")
    by_number = f(3, "Revert D2: Revert D1: x\n\nDifferential Revision: D2\n\nOriginal Phabricator Diff: D1")
    assert not standing(reading(U, [first, second]))
    assert standing(reading(U, [first, second, third])) == {U[0].sha}
    assert standing(reading(U, [first, second, by_number])) == {U[0].sha}


def test_c4_picked_again_after_a_revert() -> None:
    first = pick(1, U[0])
    history = reading(U, [first, f(2, f"This reverts commit {first.sha[:12]}"), pick(3, U[0])])
    assert [carrier.reverted_by is None for carrier in history.carriers[U[0].sha]] == [False, True]


def test_c17_the_same_commit_picked_twice_is_said() -> None:
    history = reading(U, [pick(1, U[0], U[0]), pick(2, U[1]), pick(3, U[0])])
    assert standing(history) == {U[0].sha, U[1].sha}
    assert [c.sha for c in history.duplicates[U[0].sha]] == [f(1).sha, f(3).sha]
    assert len(history.duplicates) == 1


def test_c18_a_squash_that_drops_all_trailers_is_read_from_the_body() -> None:
    squash = f(1, "Bundle (#7)")
    body = "".join(f"| {c.subject} | (cherry picked from commit {c.sha}) |\r\n" for c in U) + "Graft-Batch: k1\r\n"
    history = reading(U, [squash], pull(7, squash, body))
    assert standing(history) == {c.sha for c in U}
    assert history.carriers[U[0].sha][0].batch == "k1"
    unnamed = reading(U, [squash], pull(7, squash, body.replace("Graft-Batch: k1", "")))
    assert unnamed.carriers[U[0].sha][0].batch == "graft/bundle/k"
    assert not standing(reading(U, [squash], pull(7, squash, body, trusted=False)))
    # GitHub named another commit as the landing: the number in the subject tells
    assert standing(reading(U, [squash], replace(pull(7, squash, body), merge_sha="0" * 40))) == {c.sha for c in U}
    assert not standing(reading(U, [squash, f(2, f"This reverts commit {squash.sha}")], pull(7, squash, body)))


def test_a_body_says_nothing_new_where_commits_carry_it() -> None:
    picks = [pick(1, U[0]), pick(2, U[1])]
    body = "".join(f"(cherry picked from commit {c.sha})" for c in U[:3])
    history = reading(U, picks, pull(7, picks[1], body))
    assert not history.duplicates
    assert [c.sha for c in history.carriers[U[2].sha]] == [picks[1].sha]
    # taken back in between: the body tells of a second landing
    squash = f(9, "Again (#8)")
    again = reading(U, [*picks, f(3, f"This reverts commit {picks[0].sha}"), squash], pull(8, squash, body))
    assert [c.sha for c in again.standing(U[0].sha)] == [squash.sha]


def test_c18_sixty_picks_joined_in_one_body_of_which_one_reverts_another() -> None:
    many = [u(n) for n in range(1, 60)]
    many.append(u(60, f'Revert "Upstream 3 (#3)" (#60)\n\nThis reverts commit {many[2].sha}.\nReverts #3'))
    message = "Bundle (#7)\n\n" + "\n\n".join(
        f"* {pick_message(c, upstream_repository='o/r', pr=n, batch='k')}" for n, c in enumerate(many)
    )
    history = reading(many, [f(1, message)])
    assert standing(history) == {c.sha for c in many}
    assert history.unresolved_reverts == ()


def test_upstreams_own_trailers_do_not_speak_for_the_fork() -> None:
    theirs = u(9, f"Reland\n\n(cherry picked from commit {U[0].sha})")
    by_git = f(1, f"{theirs.message}\n(cherry picked from commit {theirs.sha})")
    assert standing(reading([*U, theirs], [by_git])) == {theirs.sha}
    assert reading([*U, theirs], [by_git]).unknown == ()
    backport = u(8, f"Backport\n\n(cherry picked from commit {'d' * 40})")
    picked = reading([backport], [f(1, f"{backport.message}\n(cherry picked from commit {backport.sha})")])
    assert (standing(picked), picked.unknown) == ({backport.sha}, ())
    by_graft = f(2, pick_message(theirs, upstream_repository="o/r", pr=9, batch="k"))
    assert standing(reading([*U, theirs], [by_graft])) == {theirs.sha}
    both = f(3, f"{pick(3, U[0]).message}\n\n{by_graft.message}")
    assert standing(reading([*U, theirs], [both])) == {theirs.sha, U[0].sha}


def test_a_revert_that_quotes_the_trailer_is_no_pick() -> None:
    first = pick(1, U[0])
    quoting = f(2, f"Revert\n\nThis reverts commit {first.sha}.\n\n> (cherry picked from commit {U[0].sha})")
    assert not standing(reading(U, [first, quoting]))


def test_a_merge_that_is_taken_back_takes_all_it_brought() -> None:
    root = f(1)
    side = [replace(pick(2, U[0]), parents=(root.sha,)), replace(pick(3, U[1]), parents=(f(2).sha,))]
    merge = f(4, "Merge pull request #5 from o/x", (root.sha, side[1].sha))
    other = replace(pick(5, U[2]), parents=(merge.sha,))
    line = [root, *side, merge, other]
    assert len(standing(reading(U, line))) == 3
    taken = f(6, f"This reverts commit {merge.sha}, reversing\nchanges made to {root.sha}.")
    assert standing(reading(U, [*line, taken])) == {U[2].sha}


@pytest.mark.parametrize(
    ("message", "repository", "stands"),
    [
        ("Reverts #7", None, False),
        ("Reverts my-org/fork#7", "My-Org/fork", False),
        ("Reverts my-org/fork#7", None, True),
        ("Reverts o/upstream#7", "my-org/fork", True),
        ("Reverts #8", None, True),
    ],
)
def test_reverts_by_pull_request(message: str, repository: str | None, stands: bool) -> None:
    squash = f(1, f"Fix (#7)\n\n(cherry picked from commit {U[0].sha})")
    history = reading(U, [squash, f(2, message)], repository=repository)
    assert bool(standing(history)) is stands


def test_upstreams_number_in_a_pick_is_not_the_forks() -> None:
    landed = pick(1, U[0])  # its subject ends with upstream's (#1)
    history = reading(U, [landed, f(2, "Reverts #1")])
    assert standing(history) == {U[0].sha}
    assert history.unresolved_reverts == (f(2).sha,)


def test_reverts_by_pull_request_of_a_batch_that_landed_by_rebase() -> None:
    picks = [f(n, pick_message(c, upstream_repository="o/r", pr=n, batch="k")) for n, c in enumerate(U)]
    landing = pull(70, picks[-1], "Graft-Batch: k")
    assert not standing(reading(U, [*picks, f(9, "Reverts #70")], landing))


@pytest.mark.parametrize(
    "title",
    [
        'Revert "Upstream 1 (#1)"',
        'Back out "Upstream 1 (#1)" (#9)',
        "Revert D5: Upstream 1",
        '[x] Revert "Upstream 1"',
    ],
)
def test_a_title_takes_back_and_never_makes_picked(title: str) -> None:
    assert not standing(reading(U, [pick(1, U[0]), f(2, title)]))
    assert not reading(U, [f(1, "Upstream 1 (#1)")]).carriers


def test_a_revert_of_something_unknown_is_said() -> None:
    history = reading(U, [pick(1, U[0]), f(2, "Back out the thing"), f(3, f"This reverts commit {'b' * 40}")])
    assert history.unresolved_reverts == (f(2).sha, f(3).sha)
    assert standing(history) == {U[0].sha}


def test_a_revert_found_by_other_means_counts() -> None:
    assert not standing(reading(U, [pick(1, U[0]), f(2)], reverts={f(2).sha: [f(1).sha]}))
    assert standing(reading(U, [pick(1, U[0]), f(2)], reverts={f(1).sha: [f(2).sha]}))


def test_a_forks_revert_that_names_upstreams_commit() -> None:
    assert not standing(reading(U, [pick(1, U[0]), f(2, f"Take back\n\nThis reverts commit {U[0].sha}.")]))


def test_c23_a_rewritten_upstream_is_found_by_pull_request() -> None:
    gone = replace(u(2), sha="e" * 40)
    picked = f(1, pick_message(gone, upstream_repository="o/r", pr=2, batch="k"))
    assert standing(reading(U, [picked])) == {U[1].sha}
    assert reading(U, [pick(1, gone)]).unknown == ((f(1).sha, gone.sha),)


def test_markers_and_abbreviations() -> None:
    marked = f(1, f"x\nReactor Backport Revision: {U[0].sha}\n(cherry picked from commit {u(2).sha[:12]})")
    history = reading([U[0], U[1]], [marked], markers=[r"Reactor Backport Revision: (?P<sha>[0-9a-f]{40})"])
    assert standing(history) == {U[0].sha, U[1].sha}
    assert Names(c.sha for c in U).find("a0") is None


def test_a_revert_that_names_an_upstream_commit_takes_just_that_out_of_a_bundle() -> None:
    bundle = pick(1, U[0], U[1], U[2])
    out = f(2, f'Revert "{U[1].subject}"\n\nThis reverts commit {U[1].sha}.')
    back = f(3, f"This reverts commit {out.sha}.")
    again = pick(4, U[1])
    both = {U[0].sha, U[2].sha}
    assert standing(reading(U, [bundle, out])) == both
    assert reading(U, [bundle, out]).carriers[U[1].sha][0].reverted_by == out.sha
    assert reading(U, [bundle, out]).unresolved_reverts == ()
    assert standing(reading(U, [bundle, out, back])) == both | {U[1].sha}
    assert [c.sha for c in reading(U, [bundle, out, again]).standing(U[1].sha)] == [again.sha]
    # one that is taken back whole is taken back whole
    whole = f(5, f"This reverts commit {bundle.sha}.")
    assert standing(reading(U, [bundle, out, whole])) == set()
    # a body that brings it again counts, since what was there is out
    squash = f(6, "Take it in again (#7)")
    assert standing(reading(U, [bundle, out, squash], pull(7, squash, pick(9, U[1]).message))) == both | {U[1].sha}
