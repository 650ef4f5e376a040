"""What is kept is found again, also by another process, and a broken file is only slow."""

from __future__ import annotations

import threading
from pathlib import Path

from bot.clients.symbols import SymbolCache


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
