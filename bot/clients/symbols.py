"""Tables and footprints kept between runs in one SQLite file: losing it costs time, never a result."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_PORTION = 500  # SQLite's oldest limit on variables in one statement is 999


class SymbolCache:
    """A `FootprintCache` on disk (or `:memory:`); safe to share between threads, and between processes by its file.

    A file that is broken, or no cache at all, is put aside and begun anew.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = str(path)
        self._lock = threading.Lock()
        self._connection = self._open()

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The values that are there; keys that are not known are left out."""
        found: dict[str, bytes] = {}
        with self._lock:
            for portion in _portions(list(dict.fromkeys(keys))):
                marks = ",".join("?" * len(portion))
                rows = self._connection.execute(f"SELECT key, value FROM kept WHERE key IN ({marks})", portion)  # noqa: S608
                found.update(rows)
        return found

    def put_many(self, values: Mapping[str, bytes]) -> None:
        """Keep these values, all or none."""
        with self._lock, self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO kept (key, value) VALUES (?, ?)", values.items())

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

    def _open(self) -> sqlite3.Connection:
        try:
            return _connect(self._path)
        except sqlite3.DatabaseError:
            if self._path == ":memory:":
                raise
            Path(self._path).replace(f"{self._path}.broken")
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    Path(self._path + suffix).unlink()
            return _connect(self._path)


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")  # a lost cache is only slow
        connection.execute("CREATE TABLE IF NOT EXISTS kept (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
        connection.commit()
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _portions(keys: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(keys), _PORTION):
        yield keys[start : start + _PORTION]
