"""A zip that code under test has written, read in memory: no name in it is a path, what it unpacks to has a limit."""

from __future__ import annotations

import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable

MOST_FILES = 2_000
MOST_BYTES = 128 * 1024 * 1024  # of all files together, unpacked
_PIECE = 1 << 20
# zipfile lets out what it trips over: an empty name is an IndexError up to Python 3.11
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    ArithmeticError,
    LookupError,
    RuntimeError,
    OSError,
    ValueError,
)


class ArchiveError(ValueError):
    """The archive can't be read whole, and why: broken, locked, or more in it than is read."""


def read_archive(
    data: bytes, *, wanted: Callable[[str], bool], most_files: int = MOST_FILES, most_bytes: int = MOST_BYTES
) -> tuple[tuple[str, bytes], ...]:
    """The files whose name is `wanted`, as (name, content) in the archive's order; a name may come twice.

    What the archive says of its sizes is not believed. Raises ArchiveError.
    """
    found: list[tuple[str, bytes]] = []
    left = most_bytes
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [one for one in archive.infolist() if not one.is_dir() and wanted(one.filename)]
            if len(entries) > most_files:
                raise ArchiveError(f"it holds {len(entries)} files, more than {most_files}")
            for entry in entries:
                if entry.flag_bits & 1:
                    raise ArchiveError("a file in it is locked by a password")
                content = bytearray()
                with archive.open(entry) as file:
                    while piece := file.read(min(_PIECE, left - len(content) + 1)):
                        content += piece
                        if len(content) > left:
                            raise ArchiveError(f"it unpacks to more than {most_bytes} bytes")
                left -= len(content)
                found.append((entry.filename, bytes(content)))
    except _BROKEN as error:
        if isinstance(error, ArchiveError):
            raise
        raise ArchiveError(f"it is no whole zip: {error}") from error
    return tuple(found)
