"""Zips of strangers: broken, locked, lying about their size, with names that are paths."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.core.reports.archive import ArchiveError, read_archive


def zipped(files: Mapping[str, bytes]) -> bytes:
    """A zip of these files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def xml(name: str) -> bool:
    return name.endswith(".xml")


def test_only_what_is_wanted_is_unpacked_and_names_are_only_names() -> None:
    data = zipped({"../../etc/a.xml": b"<a/>", "/b.xml": b"<b/>", "core.dump": b"0" * 10_000_000, "c/": b""})
    assert read_archive(data, wanted=xml, most_bytes=100) == (("../../etc/a.xml", b"<a/>"), ("/b.xml", b"<b/>"))


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "no whole zip"),
        (b"PK\x05", "no whole zip"),
        (zipped({"a.xml": b"<a/>" * 1000})[:-30], "no whole zip"),
        (zipped({"a.xml": b"0" * 5_000_000}), "more than 1000000 bytes"),
        (zipped({f"{n}.xml": b"0" * 400_000 for n in range(3)}), "more than 1000000 bytes"),  # together
        (zipped({f"{n}.xml": b"" for n in range(11)}), "11 files, more than 10"),
    ],
)
def test_what_is_broken_or_too_much_is_refused(data: bytes, word: str) -> None:
    with pytest.raises(ArchiveError, match=word):
        read_archive(data, wanted=xml, most_files=10, most_bytes=1_000_000)


def test_what_it_says_of_its_sizes_is_not_believed() -> None:
    data = bytearray(zipped({"a.xml": b"0" * 5_000_000}))
    central = data.index(b"PK\x01\x02")
    data[central + 24 : central + 28] = struct.pack("<I", 10)  # it says that it unpacks to ten bytes
    with pytest.raises(ArchiveError):
        read_archive(bytes(data), wanted=xml, most_bytes=1_000_000)


def test_a_locked_one_is_refused() -> None:
    data = bytearray(zipped({"a.xml": b"<a/>"}))
    central = data.index(b"PK\x01\x02")
    data[central + 8] |= 1
    data[6] |= 1
    with pytest.raises(ArchiveError, match="password"):
        read_archive(bytes(data), wanted=xml)


@given(st.binary(max_size=400), st.integers(0, 300), st.binary(min_size=1, max_size=8))
@example(b"", 135, b"\0")  # a file without a name
def test_whatever_it_is_nothing_else_is_raised(noise: bytes, at: int, change: bytes) -> None:
    good = bytearray(zipped({"a.xml": b"<a>text</a>", "b.xml": b"<b/>"}))
    good[at : at + len(change)] = change
    for data in (noise, bytes(good)):
        try:
            found = read_archive(data, wanted=lambda _: True)
        except ArchiveError:
            continue
        assert all(isinstance(content, bytes) for _, content in found)
