"""Decisions as lines: written, read back, inert."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.decisions import decision_line, read_decisions
from bot.core.trailers import inert
from bot.core.types import Disposition, LedgerEntry

SHA = "ab" * 20


@given(
    st.sampled_from([Disposition.DEFERRED, Disposition.SKIPPED, Disposition.WONT_PORT, Disposition.EMPTY]),
    st.none() | st.sampled_from(["octocat", "my-org/tlx"]),
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp", "Cf"]), max_size=40),
)
def test_a_line_is_read_back(disposition: Disposition, owner: str | None, reason: str) -> None:
    entry = LedgerEntry(SHA, disposition, by="#7", reason=" ".join(reason.split()), owner=owner)
    line = decision_line(entry)
    (found,) = read_decisions(f"Bundle\r\n\r\n- {line}\r\nmore", by="#7")
    assert found.disposition is disposition
    assert (found.sha, found.by, found.owner) == (SHA, "#7", owner)
    assert found.reason.removeprefix("- ") == entry.reason.removeprefix("- ")
    assert inert(line) == line


def test_what_git_records_is_no_decision() -> None:
    with pytest.raises(ValueError, match="picked is no decision"):
        decision_line(LedgerEntry(SHA, Disposition.PICKED))


@pytest.mark.parametrize("text", ["Graft-Deferred:", f"see Graft-Deferred: {SHA} x", "Graft-Deferred: not-a-sha"])
def test_other_text_is_no_decision(text: str) -> None:
    assert read_decisions(text, by="x") == ()


def test_the_mention_of_an_owner_is_not_needed() -> None:
    (found,) = read_decisions(f"graft-wont-port: {SHA} owner=@me Fixes #1", by="x")
    assert (found.owner, found.reason, found.disposition) == ("me", "Fixes #1", Disposition.WONT_PORT)
