"""What is kept is found again, also by another process, and a broken file is only slow."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from functools import partial
from pathlib import Path

import pytest

from bot.clients.symbols import AGE, SymbolCache


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    with SymbolCache(path) as cache:
        cache.put_many({f"k{n}": b"v%d" % n for n in range(1200)})
        cache.put_many({"k1": b"new"})
    with SymbolCache(path) as again, SymbolCache(path) as beside:
        found = again.get_many([*(f"k{n}" for n in range(1200)), "unknown", "k1"])
        assert len(found) == 1200
        assert found["k1"] == b"new"
        beside.put_many({"late": b"1"})
        assert again.get_many(["late"]) == {"late": b"1"}
        assert again.get_many([]) == {}


def test_a_broken_file_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    path.write_bytes(b"this is no database, and long enough to be looked at" * 100)
    with SymbolCache(path) as cache:
        assert cache.get_many(["a"]) == {}
        cache.put_many({"a": b"1"})
        assert cache.get_many(["a"]) == {"a": b"1"}
    assert (tmp_path / "kept.db.broken").exists()


def test_threads_may_share_it() -> None:
    with SymbolCache(":memory:") as cache:

        def write(start: int) -> None:
            for n in range(start, start + 50):
                cache.put_many({f"k{n}": b"x"})

        threads = [threading.Thread(target=write, args=(50 * n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(cache.get_many([f"k{n}" for n in range(200)])) == 200


def test_what_nobody_used_for_long_goes(tmp_path: Path) -> None:
    path, day = tmp_path / "kept.db", 86400
    with SymbolCache(path, clock=lambda: 0) as cache:
        cache.put_many({"used": b"1", "unused": b"2"})
    with SymbolCache(path, clock=lambda: AGE * day) as cache:
        assert cache.get_many(["used"]) == {"used": b"1"}
    with SymbolCache(path, clock=lambda: (AGE + 1) * day) as cache:
        assert cache.get_many(["used", "unused"]) == {"used": b"1"}


def test_a_file_that_has_outgrown_its_size_loses_what_is_oldest(tmp_path: Path) -> None:
    path, day, size = tmp_path / "kept.db", 86400, 1 << 20
    for count in range(12):
        with SymbolCache(path, size=size, clock=partial(int, count * day)) as cache:
            cache.put_many({f"{count}-{n}": os.urandom(10_000) for n in range(20)})
    with SymbolCache(path, size=size, clock=lambda: 12 * day) as cache:
        assert cache.get_many(["0-0", "0-19", "3-0"]) == {}
        assert len(cache.get_many(["11-0", "11-19"])) == 2
    assert path.stat().st_size < 2 * size  # what was freed has been used again


def test_a_file_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "kept.db"
    with contextlib.closing(sqlite3.connect(path)) as old, old:
        old.execute("CREATE TABLE kept (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
        old.execute("INSERT INTO kept VALUES ('a', x'31')")
    for _ in range(2):
        with SymbolCache(path) as cache:
            assert cache.get_many(["a"]) == {"a": b"1"}


def test_who_only_reads_waits_for_no_writer_longer_than_it_must(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, day = tmp_path / "kept.db", 86400
    with SymbolCache(path, clock=lambda: 0) as cache:
        cache.put_many({"a": b"1"})
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, **more: connect(path, **{**more, "timeout": 0}))
    with contextlib.closing(connect(path)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with SymbolCache(path, clock=lambda: day) as reader:
            assert reader.get_many(["a"]) == {"a": b"1"}
