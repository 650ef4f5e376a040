from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.audit import (
    GENESIS,
    ApprovalRecord,
    AuditKind,
    Entry,
    ExceptionRecord,
    FaultKind,
    HmacSigner,
    LevelRecord,
    PatchFate,
    PatchRecord,
    SyncRecord,
    append,
    canonical,
    checkpoint,
    find_checkpoints,
    from_line,
    genuine,
    to_line,
    verify,
    verify_lines,
)
from bot.core.audit.chain import digest
from bot.core.types import Decision, Level, Outcome

NOW = datetime(2026, 11, 29, 12, 0, 0, 123456, tzinfo=UTC)
REPOSITORY = "acme-fork/tilec"
SIGNER = HmacSigner(b"a key of at least sixteen bytes")


def chain(length: int, repository: str = REPOSITORY) -> list[Entry]:
    entries: list[Entry] = []
    for n in range(length):
        body = {"pull": n, "decision": "allow", "note": "é\n", "values": [0.8012, None, True]}
        at = NOW + timedelta(seconds=n)
        entries.append(
            append(entries[-1] if entries else None, repository=repository, installation=1, kind=AuditKind.GATE,
                   body=body, at=at)
        )  # fmt: skip
    return entries


CHAIN = chain(12)
LINES = [to_line(entry) for entry in CHAIN]


def rehashed(entry: Entry, **more: Any) -> Entry:
    changed = replace(entry, **more)
    return replace(changed, hash=digest(changed))


def test_a_chain_holds() -> None:
    found = verify(CHAIN)
    assert found.ok
    assert (found.count, found.sequence, found.head) == (12, 12, CHAIN[-1].hash)
    assert CHAIN[0].previous == GENESIS
    assert verify([]).ok
    assert verify([]).head == GENESIS
    assert verify_lines(line + "\n" for line in LINES).ok
    assert [from_line(line) for line in LINES] == CHAIN


def kinds(entries: list[Entry]) -> list[tuple[FaultKind, int]]:
    return [(fault.kind, fault.sequence) for fault in verify(entries).faults]


def test_a_changed_entry_is_named() -> None:
    for n, entry in enumerate(CHAIN):
        for change in (
            {"body": entry.body | {"decision": "block"}},
            {"at": entry.at + timedelta(microseconds=1)},
            {"kind": "merge"},
            {"installation": 2},
            {"hash": "0" * 64},
            {"previous": "1" * 64},
        ):
            changed = [*CHAIN[:n], replace(entry, **change), *CHAIN[n + 1 :]]
            assert kinds(changed) == [(FaultKind.CHANGED, n + 1)], change


def test_a_changed_entry_with_a_hash_made_anew_is_named_by_its_link() -> None:
    for n in range(11):
        changed = [*CHAIN[:n], rehashed(CHAIN[n], body={"decision": "block"}), *CHAIN[n + 1 :]]
        assert kinds(changed) == [(FaultKind.UNLINKED, n + 2)]


def test_a_removed_entry_is_named() -> None:
    for n in range(11):
        assert kinds([*CHAIN[:n], *CHAIN[n + 1 :]]) == [(FaultKind.REMOVED, n + 1)]
    text = verify([*CHAIN[:3], *CHAIN[6:]]).faults[0].text
    assert text == "entries 4 to 6 are missing"


def test_an_added_entry_is_named() -> None:
    assert kinds([*CHAIN[:5], CHAIN[2], *CHAIN[5:]]) == [(FaultKind.ADDED, 3)]
    forged = rehashed(CHAIN[4], body={"forged": True})
    assert (FaultKind.ADDED, 5) in kinds([*CHAIN[:5], forged, *CHAIN[5:]])
    alien = chain(3, "other/fork")[2]
    assert (FaultKind.ADDED, 3) in kinds([*CHAIN[:5], alien, *CHAIN[5:]])
    late = append(CHAIN[3], repository=REPOSITORY, installation=1, kind="gate", body={}, at=NOW)
    assert (FaultKind.ADDED, 5) in kinds([*CHAIN, late])


def test_a_reordered_entry_is_named() -> None:
    for n in range(11):
        swapped = [*CHAIN[:n], CHAIN[n + 1], CHAIN[n], *CHAIN[n + 2 :]]
        assert kinds(swapped) == [(FaultKind.REORDERED, n + 1)]


def test_a_first_entry_that_is_none_is_named() -> None:
    assert kinds([rehashed(CHAIN[0], previous="1" * 64)]) == [(FaultKind.UNLINKED, 1)]


def test_what_no_chain_shows_a_checkpoint_does() -> None:
    points = [checkpoint(CHAIN[4], signer=SIGNER), checkpoint(CHAIN[9], signer=SIGNER)]
    assert verify(CHAIN, checkpoints=points).ok
    cut = verify(CHAIN[:7], checkpoints=points).faults
    assert [(fault.kind, fault.sequence) for fault in cut] == [(FaultKind.REMOVED, 10)]
    anew: list[Entry] = []
    for entry in CHAIN:
        body = entry.body | ({"decision": "block"} if entry.sequence == 5 else {})
        anew.append(
            append(anew[-1] if anew else None, repository=REPOSITORY, installation=1, kind=entry.kind, body=body,
                   at=entry.at)
        )  # fmt: skip
    assert verify(anew).ok
    assert [fault.sequence for fault in verify(anew, checkpoints=points).faults] == [5, 10]


def test_checkpoints_are_found_in_comments_and_held_to_their_key() -> None:
    point = checkpoint(CHAIN[4], signer=SIGNER)
    text = f"hello\n```\n{point.line}\n```\n{point.line.replace(' 5 ', ' 6 ')}\n"
    claimed = find_checkpoints([text, "nothing"])
    assert len(claimed) == 2
    assert genuine(claimed, repository=REPOSITORY, signer=SIGNER) == (point,)
    assert genuine(claimed, repository="other/fork", signer=SIGNER) == ()
    assert genuine(claimed, repository=REPOSITORY, signer=HmacSigner(b"another key of sixteen")) == ()
    assert genuine([replace(point, signature="abc")], repository=REPOSITORY, signer=SIGNER) == ()
    with pytest.raises(ValueError, match="16 bytes"):
        HmacSigner(b"short")
    with pytest.raises(ValueError, match="16 bytes"):
        HmacSigner.of_secret(b"\n" * 20)


@settings(max_examples=400, deadline=None)
@given(st.integers(0, len(LINES) - 1), st.integers(0, 10_000), st.integers(1, 127))
def test_one_flipped_byte_is_found_and_named(line: int, place: int, flip: int) -> None:
    raw = bytearray(LINES[line].encode())
    raw[place % len(raw)] ^= flip
    text = raw.decode("utf-8", "replace")
    found = verify_lines([*LINES[:line], text, *LINES[line + 1 :]])
    assert not found.ok
    named = any(fault.sequence == line + 1 or f"line {line + 1} " in fault.text for fault in found.faults)
    assert named or any(f"place {line + 1}" in fault.text for fault in found.faults), found.faults


@given(st.lists(st.integers(0, 11), max_size=16))
def test_any_other_list_of_true_entries_has_a_fault(picked: list[int]) -> None:
    found = verify([CHAIN[n] for n in picked])
    assert found.ok is (picked == list(range(len(picked))))


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=4), st.datetimes(timezones=st.just(UTC)))
def test_any_body_survives_its_line(body: dict[str, Any], at: datetime) -> None:
    entry = append(None, repository="a/b", installation=1, kind="x", body=body, at=at)
    line = to_line(entry)
    assert from_line(line) == entry
    assert "\n" not in line
    assert verify_lines([line]).ok


def test_what_is_no_entry_is_refused() -> None:
    entry = CHAIN[0]
    for body in ({"a": float("nan")}, {"a": object()}, {"a": {1, 2}}):
        with pytest.raises((ValueError, TypeError)):
            append(None, repository="a/b", installation=1, kind="x", body=body, at=NOW)
    with pytest.raises(ValueError, match="time zone"):
        append(None, repository="a/b", installation=1, kind="x", body={}, at=datetime(2026, 1, 1))
    with pytest.raises(ValueError, match="can't go on"):
        append(entry, repository="c/d", installation=1, kind="x", body={}, at=NOW)
    good = json.loads(LINES[0])
    changes: tuple[dict[str, object], ...] = (
        {"more": 1},
        {"version": 2},
        {"sequence": "1"},
        {"sequence": True},
        {"body": []},
        {"kind": 3},
        {"at": "x"},
    )
    wrongs: list[object] = [[], {"kind": "gate"}, *(good | change for change in changes)]
    for wrong in wrongs:
        with pytest.raises(ValueError):
            from_line(canonical(wrong))
    assert verify([replace(entry, body={"a": float("nan")})]).faults[0].kind is FaultKind.CHANGED


def test_the_form_of_a_line_counts() -> None:
    spaced = LINES[3].replace('"gate"', ' "gate"')
    found = verify_lines([*LINES[:3], spaced, *LINES[4:]])
    assert [(fault.kind, fault.sequence) for fault in found.faults] == [(FaultKind.CHANGED, 4)]
    broken = verify_lines([*LINES[:3], "{", *LINES[4:]])
    assert [fault.kind for fault in broken.faults] == [FaultKind.UNREADABLE, FaultKind.REMOVED]
    assert verify_lines(["[" * 100_000]).faults[0].kind is FaultKind.UNREADABLE


def test_times_are_the_same_moment_in_any_zone() -> None:
    tokyo = timezone(timedelta(hours=9))
    one = append(None, repository="a/b", installation=1, kind="x", body={}, at=NOW)
    other = append(None, repository="a/b", installation=1, kind="x", body={}, at=NOW.astimezone(tokyo))
    assert one == other


def test_the_record_of_a_sync_is_a_body() -> None:
    record = SyncRecord(
        pull=12, batch="k7", head="a" * 40, upstream_base="b" * 40, upstream_target="c" * 40, rollback_to="d" * 40,
        decision=Decision.ALLOW,
        patches=(PatchRecord("e" * 40, "Wider loads", PatchFate.KEPT),),
        levels=(LevelRecord(Level.L1, {"unit": Outcome.PASSED}, ("r1",)),
                LevelRecord(Level.L2, {"gemm": Outcome.FAILED}, ("r2",), failed_at="gemm", may_go_on=True)),
        approvals=(ApprovalRecord("rita", "recsys", {"ne": "0.8012"}, 77),),
        exceptions=(ExceptionRecord("gemm#p95", ("max", "ada"), "2026-12-31", "driver"),),
    )  # fmt: skip
    entry = append(None, repository="a/b", installation=1, kind=AuditKind.SYNC, body=record.body(), at=NOW)
    assert verify_lines([to_line(entry)]).ok
    assert entry.body["levels"][1]["failed_at"] == "gemm"
    assert entry.body["approvals"][0]["metrics"] == {"ne": "0.8012"}
