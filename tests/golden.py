"""Texts that people will read, kept as files: GRAFT_GOLDEN=write writes them anew, to be looked at in the diff."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def same_as_golden(name: str, text: str) -> None:
    path = FOLDER / name
    if os.environ.get("GRAFT_GOLDEN") == "write":
        path.write_text(text + "\n", encoding="utf-8")
    assert path.is_file(), f"{name} is not there yet: run with GRAFT_GOLDEN=write and read what it writes"
    assert text + "\n" == path.read_text(encoding="utf-8")
