"""Which commits the fork's file lets the planner skip."""

from __future__ import annotations

import pytest

from bot.core.candidates import skipped_by_rule
from bot.core.config import Ingest


@pytest.mark.parametrize(
    ("paths", "skip", "skipped"),
    [
        ({".github/workflows/ci.yml"}, [".github/**"], True),
        ({".github/a.yml", "docs/b.md"}, [".github/**", "docs/**"], True),
        ({".github/a.yml", "lib/b.cpp"}, [".github/**"], False),
        ({".github/a.yml"}, [], False),
        # one that changes no file is empty, and not skipped
        (set(), ["**"], False),
    ],
)
def test_only_what_changes_nothing_else_is_skipped(paths: set[str], skip: list[str], skipped: bool) -> None:
    assert skipped_by_rule(paths, Ingest.model_validate({"skip": skip})) is skipped
