from __future__ import annotations

import pytest

from bot.core.footprint import FileFootprint, Footprint, Hunk, Language
from bot.core.lineage import Lineage, textual


def touched(
    path: str, *hunks: tuple[int, int, int, int], status: str = "M", old: str | None = None, **more: bool
) -> FileFootprint:
    return FileFootprint(
        path=path,
        old_path=old,
        status=status,
        old_oid="1",
        new_oid="2",
        mode_changed=False,
        language=Language.OTHER,
        binary=more.get("binary", False),
        parsed=True,
        hunks=tuple(Hunk(*hunk) for hunk in hunks),
        symbols=(),
        top=False,
        refers=frozenset(),
        drops=frozenset(),
    )


def below(*files: FileFootprint) -> list[set[int]]:
    """What each of these single-file commits touches, by their places."""
    lineage = Lineage()
    return [set(lineage.add(Footprint(str(place), (file,)), place)[0]) for place, file in enumerate(files)]


@pytest.mark.parametrize(
    ("first", "second", "depends"),
    [
        ((10, 1, 10, 1), (10, 1, 10, 1), True),
        ((10, 1, 10, 1), (11, 1, 11, 1), True),
        ((10, 1, 10, 1), (9, 1, 9, 1), True),
        ((10, 1, 10, 1), (12, 1, 12, 1), False),
        ((10, 1, 10, 1), (8, 1, 8, 1), False),
        ((10, 0, 10, 3), (13, 0, 13, 1), True),
        ((10, 0, 10, 3), (14, 0, 14, 1), False),
        ((10, 0, 10, 3), (10, 0, 10, 1), True),
        ((10, 0, 10, 3), (14, 1, 14, 1), False),
        ((10, 2, 10, 0), (10, 1, 10, 1), True),
        ((10, 2, 10, 0), (9, 1, 9, 1), True),
        ((10, 2, 10, 0), (11, 1, 11, 1), False),
        ((10, 2, 10, 0), (8, 1, 8, 1), False),
    ],
)
def test_a_commit_stands_on_whose_lines_it_touches(
    first: tuple[int, int, int, int], second: tuple[int, int, int, int], depends: bool
) -> None:
    assert below(touched("a", first), touched("a", second)) == [set(), {0} if depends else set()]


def test_lines_are_followed_as_others_move_them() -> None:
    found = below(
        touched("a", (50, 1, 50, 1)),
        touched("a", (10, 0, 10, 7)),
        touched("a", (57, 1, 57, 1)),
        touched("a", (1, 5, 1, 0)),
        touched("a", (52, 1, 52, 1)),
    )
    assert found == [set(), set(), {0}, set(), {2}]


def test_several_hunks_of_one_commit_are_in_the_lines_of_before() -> None:
    found = below(
        touched("a", (10, 1, 10, 3), (20, 1, 22, 1)), touched("a", (22, 1, 22, 1)), touched("a", (11, 1, 11, 1))
    )
    assert found == [set(), {0}, {0}]


def test_a_renamed_file_takes_its_lines_along_and_its_old_name_is_free_of_them() -> None:
    found = below(
        touched("a", (10, 1, 10, 1)),
        touched("b", status="R", old="a"),
        touched("b", (10, 1, 10, 1)),
        touched("a", (1, 0, 1, 5), status="A"),
        touched("b", (30, 1, 30, 1)),
    )
    assert found == [set(), set(), {0}, {1}, set()]


def test_an_added_file_is_stood_on_by_all_that_change_it_and_a_deletion_by_all_that_come_back() -> None:
    found = below(
        touched("a", (1, 0, 1, 5), status="A"),
        touched("a", (100, 1, 100, 1)),
        touched("a", (1, 5, 1, 0), status="D"),
        touched("a", (1, 0, 1, 5), status="A"),
    )
    assert found == [set(), {0}, {0, 1}, {2}]


def test_a_binary_file_is_one_whole() -> None:
    assert below(touched("a", binary=True), touched("a", binary=True), touched("a", (9, 1, 9, 1))) == [set(), {0}, {1}]


def test_near_is_wider_than_touching() -> None:
    one = Footprint("one", (touched("a", (10, 1, 10, 1)),))
    two = Footprint("two", (touched("a", (13, 1, 13, 1)),))
    three = Footprint("three", (touched("a", (20, 1, 20, 1)),))
    found = textual([one, two, three])
    assert (found["two"].touches, found["two"].near) == (frozenset(), frozenset({"one"}))
    assert (found["three"].touches, found["three"].near) == (frozenset(), frozenset())


@pytest.mark.parametrize(
    ("first", "second", "replaces"),
    [
        ((10, 1, 10, 1), (10, 1, 10, 1), True),
        ((10, 1, 10, 1), (11, 1, 11, 1), False),
        ((10, 0, 10, 3), (11, 1, 11, 0), True),
        ((10, 0, 10, 3), (13, 0, 13, 1), False),
        ((10, 2, 10, 0), (10, 1, 10, 1), False),
        ((10, 2, 10, 0), (9, 2, 9, 2), True),
    ],
)
def test_whose_lines_a_commit_replaces(
    first: tuple[int, int, int, int], second: tuple[int, int, int, int], replaces: bool
) -> None:
    one, two = (Footprint(name, (touched("a", hunk),)) for name, hunk in (("one", first), ("two", second)))
    assert textual([one, two])["two"].replaces == (frozenset({"one"}) if replaces else frozenset())
