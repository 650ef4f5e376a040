"""Tables, footprints and trial picks kept between runs in one SQLite file: losing it costs time, never a result.

A row knows the day on which it was last of use. When the file is opened, what nobody has used for AGE days goes, and of
a file that has outgrown its size what was not used for longest.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

AGE = 60
"""Days."""
SIZE = 2 << 30
"""Bytes."""
_DAY = 86400
_PORTION = 500  # SQLite's oldest limit on variables in one statement is 999


class SymbolCache:
    """A `FootprintCache` on disk (or `:memory:`); safe to share between threads, and between processes by its file.

    A file that is broken, or no cache at all, is put aside and begun anew.
    """

    def __init__(self, path: Path | str, *, size: int = SIZE, clock: Callable[[], float] = time.time) -> None:
        """`size`: bytes that the file may hold when it is opened; `clock` in seconds since the epoch."""
        self._path = str(path)
        self._today = int(clock() // _DAY)
        self._lock = threading.Lock()
        self._connection = self._open()
        with contextlib.suppress(sqlite3.OperationalError):  # another is writing for long: cut next time
            self._prune(size)

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The values that are there; keys that are not known are left out."""
        found: dict[str, bytes] = {}
        with self._lock:
            for portion in _portions(list(dict.fromkeys(keys))):
                marks = ",".join("?" * len(portion))
                rows = self._connection.execute(
                    f"SELECT key, value, day FROM kept WHERE key IN ({marks})",  # noqa: S608 - marks alone
                    portion,
                )
                old: list[tuple[int, str]] = []
                for key, value, day in rows:
                    found[key] = value
                    if day < self._today:
                        old.append((self._today, key))
                if old:
                    with contextlib.suppress(sqlite3.OperationalError), self._connection:  # another is writing for long
                        self._connection.executemany("UPDATE kept SET day = ? WHERE key = ?", old)
        return found

    def put_many(self, values: Mapping[str, bytes]) -> None:
        """Keep these values, all or none."""
        with self._lock, self._connection:
            rows = [(key, value, self._today) for key, value in values.items()]
            self._connection.executemany("INSERT OR REPLACE INTO kept (key, value, day) VALUES (?, ?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _prune(self, size: int) -> None:
        with self._connection:
            self._connection.execute("DELETE FROM kept WHERE day < ?", (self._today - AGE,))
        while self._used() > size:
            with self._connection:
                gone = self._connection.execute("DELETE FROM kept WHERE day = (SELECT min(day) FROM kept)").rowcount
            if gone <= 0:
                return

    def _used(self) -> int:
        """Bytes of the file that hold something; what was deleted is free for what comes."""
        pages, free, each = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * each)

    def _open(self) -> sqlite3.Connection:
        try:
            return _connect(self._path, self._today)
        except sqlite3.DatabaseError:
            if self._path == ":memory:":
                raise
            Path(self._path).replace(f"{self._path}.broken")
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    Path(self._path + suffix).unlink()
            return _connect(self._path, self._today)


def _connect(path: str, today: int) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")  # a lost cache is only slow
        connection.execute(
            "CREATE TABLE IF NOT EXISTS kept"
            " (key TEXT PRIMARY KEY, value BLOB NOT NULL, day INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID"
        )
        if all(column[1] != "day" for column in connection.execute("PRAGMA table_info(kept)")):
            with contextlib.suppress(sqlite3.OperationalError):  # another process was first
                connection.execute(f"ALTER TABLE kept ADD COLUMN day INTEGER NOT NULL DEFAULT {today}")
        connection.execute("CREATE INDEX IF NOT EXISTS kept_by_day ON kept (day)")
        connection.commit()
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _portions(keys: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(keys), _PORTION):
        yield keys[start : start + _PORTION]
