"""Reverts and relands: found by reference, title or reverse diff; families; what the fork still carries."""

from __future__ import annotations

from hashlib import sha1

import pytest

from bot.core.footprint import FileFootprint, Footprint, Language
from bot.core.reverts import Link, families, revert_links, reverted_but_carried
from bot.core.types import Commit


def commit(number: int, subject: str, body: str = "") -> Commit:
    sha = sha1(str(number).encode(), usedforsecurity=False).hexdigest()
    return Commit(sha, "t" * 40, (), "a", "a@x", number, "+0000", number, f"{subject}\n\n{body}" if body else subject)


A = commit(1, "Add a fast path to the scheduler (#11)")
B = commit(2, "Teach the printer about layouts (#12)")
C = commit(3, "Bump to llvm/llvm-project@0a83e96f66 (#13)")


def links_of(*commits: Commit, footprints: dict[str, Footprint] | None = None) -> dict[str, Link]:
    return revert_links(commits=[A, B, C, *commits], footprints=footprints)


@pytest.mark.parametrize(
    ("subject", "body", "kind", "targets", "how"),
    [
        (
            'Revert "Add a fast path to the scheduler (#11)" (#20)',
            f"This reverts commit {A.sha}.",
            "revert",
            [A],
            "body",
        ),
        ("Undo the fast path (#20)", f"This reverts commit {A.sha[:9]}.", "revert", [A], "body"),
        ("[backend] Revert the fast path (#20)", "Reverts acme/compiler#11", "revert", [A], "body"),
        ('Revert "Add a fast path to the scheduler" (#20)', "", "revert", [A], "title"),
        ('Revert "Add a fast path to the sched… (#20)', "", "revert", [A], "title"),
        ('Revert "Bump to llvm/llvm-project@0a83e96f66" (#20)', "", "revert", [C], "title"),
        ("Partially revert #12 (#20)", "", "revert", [B], "title"),
        ("Back out two changes (#20)", f"This reverts commits:\n- {A.sha}\n- {B.sha}\n", "revert", [A, B], "body"),
        ("Revert #11 and #12 (#20)", "", "revert", [A, B], "title"),
        ('Reland "Add a fast path to the scheduler" (#20)', "", "reland", [A], "title"),
        ("Reapply the printer (#20)", "relands #12 with a fix", "reland", [B], "body"),
        ("Revert the thing nobody remembers (#20)", "It broke.", "revert", [], "nothing"),
        ("Revert to an older look (#20)", "See #12 for why we want it.", "revert", [], "nothing"),
    ],
)
def test_the_target_is_found(subject: str, body: str, kind: str, targets: list[Commit], how: str) -> None:
    link = links_of(commit(9, subject, body))[commit(9, subject, body).sha]
    assert (link.kind, link.targets, link.how) == (kind, tuple(t.sha for t in targets), how)


@pytest.mark.parametrize(
    "subject",
    ["Add a revert button (#20)", "Convert layouts (#20)", "Fix what #11 broke (#20)", "Irreversible passes (#20)"],
)
def test_what_only_sounds_like_a_revert_is_none(subject: str) -> None:
    assert not links_of(commit(9, subject, "Follows up on #11."))


def test_a_revert_never_points_to_a_later_commit() -> None:
    early = commit(0, 'Revert "Add a fast path to the scheduler" (#5)')
    links = revert_links(commits=[early, A])
    assert links[early.sha].targets == ()


def test_partial_is_said() -> None:
    late = commit(9, "Partially revert #12 (#20)")
    assert links_of(late)[late.sha].partial


def footprint(of: Commit, *files: tuple[str, str, str, str, str]) -> Footprint:
    """Each file as path, id before, id after, words gone, words come."""
    return Footprint(
        of.sha,
        tuple(
            FileFootprint(
                path,
                None,
                "M",
                old,
                new,
                False,
                Language.CPP,
                False,
                True,
                (),
                (),
                False,
                frozenset(come.split()),
                frozenset(gone.split()),
            )
            for path, old, new, gone, come in files
        ),
    )


def test_a_reverse_diff_tells_what_no_message_does() -> None:
    silent = commit(9, "Restore the old order (#20)")
    prints = {
        A.sha: footprint(A, ("a.cpp", "1", "2", "x", "y")),
        B.sha: footprint(B, ("b.cpp", "1", "2", "x", "y")),
        silent.sha: footprint(silent, ("a.cpp", "2", "1", "y", "x")),
    }
    assert links_of(silent, footprints=prints)[silent.sha] == Link(silent.sha, "revert", (A.sha,), "diff")


def test_a_named_revert_without_a_target_is_found_by_what_it_takes_back() -> None:
    vague = commit(9, "Revert the scheduler change (#20)")
    prints = {
        A.sha: footprint(A, ("a.cpp", "1", "2", "slow old", "fast lane extra"), ("t.py", "1", "2", "", "check")),
        B.sha: footprint(B, ("a.cpp", "2", "3", "k", "l")),
        vague.sha: footprint(vague, ("a.cpp", "3", "4", "fast lane extra", "slow old")),
    }
    link = links_of(vague, footprints=prints)[vague.sha]
    assert (link.targets, link.how, link.partial) == ((A.sha,), "diff", True)


def test_one_commit_that_reverts_two_and_their_relands_are_one_family() -> None:
    both = commit(5, "Revert #11 and #12 (#21)")
    first, second = commit(6, 'Reland "Add a fast path to the scheduler" (#22)'), commit(7, "Reland #12 (#23)")
    links = links_of(both, first, second)
    assert families(links) == (tuple(sorted(c.sha for c in (A, B, both, first, second))),)


def test_a_revert_of_a_revert_is_a_reland_of_it() -> None:
    revert = commit(5, 'Revert "Add a fast path to the scheduler" (#21)')
    again = commit(6, 'Revert "Revert "Add a fast path to the scheduler" (#21)" (#22)')
    links = links_of(revert, again)
    assert links[again.sha].kind == "reland"
    assert set(links[again.sha].targets) <= {revert.sha, A.sha}
    assert families(links) == (tuple(sorted(c.sha for c in (A, revert, again))),)


def test_what_the_fork_carries_though_upstream_reverted_it() -> None:
    revert = commit(5, 'Revert "Add a fast path to the scheduler" (#21)')
    assert reverted_but_carried(links=links_of(revert), picked=frozenset({A.sha, B.sha})) == {A.sha: revert.sha}
    assert not reverted_but_carried(links=links_of(revert), picked=frozenset({B.sha}))
    assert not reverted_but_carried(links=links_of(revert), picked=frozenset({A.sha, revert.sha}))


def test_what_upstream_relanded_is_carried_rightly() -> None:
    revert = commit(5, 'Revert "Add a fast path to the scheduler" (#21)')
    again = commit(6, 'Reapply "Add a fast path to the scheduler" (#21) (#22)')
    assert not reverted_but_carried(links=links_of(revert, again), picked=frozenset({A.sha}))


def test_pull_request_numbers_from_elsewhere_are_known() -> None:
    plain = commit(4, "No number in the subject")
    late = commit(9, "Revert #77 (#90)")
    link = revert_links(commits=[plain, late], numbers={77: plain.sha})[late.sha]
    assert link.targets == (plain.sha,)
