"""Credentials for labs: read by name, taken away, and what is wrong with them said."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.labs import credentials, take_credentials


def test_credentials_are_read_by_name_and_taken_away(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-a-file\n")
    environment = {
        "GRAFT_LAB_MAIN_URL": "https://Lab.example.com/api",
        "GRAFT_LAB_MAIN_TOKEN": "abc",
        "GRAFT_LAB_TWO_B_URL": "http://127.0.0.1:81",
        "GRAFT_LAB_TWO_B_TOKEN_FILE": str(tmp_path / "token"),
        "PATH": "/bin",
    }
    found = take_credentials(environment)
    assert {name: (one.origin, one.token) for name, one in found.items()} == {
        "main": ("https://lab.example.com:443", "abc"),
        "two-b": ("http://127.0.0.1:81", "from-a-file"),
    }
    assert environment == {"PATH": "/bin"}
    assert "abc" not in repr(found)
    for bad, words in (
        ({"GRAFT_LAB_X_TOKEN": "a"}, "GRAFT_LAB_X_URL is not set"),
        ({"GRAFT_LAB_X_URL": "https://h"}, "has to give a token"),
        ({"GRAFT_LAB_X_URL": "ftp://h", "GRAFT_LAB_X_TOKEN": "a"}, "is no address of a lab"),
        ({"GRAFT_LAB_X_URL": "https://h", "GRAFT_LAB_X_TOKEN_FILE": "/nowhere"}, "can't be read"),
        ({"GRAFT_LAB_X_URL": "https://h", "GRAFT_LAB_X_TOKEN": "a\nb"}, "of one line"),
    ):
        with pytest.raises(ValueError, match=words):
            credentials(bad)
