"""What is logged of an error names no local variable: some of them are tokens."""

from __future__ import annotations

import logging

import pytest

from bot.logs import configure


@pytest.mark.parametrize("as_json", [True, False])
def test_a_traceback_shows_no_local_variable(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    log = configure(as_json=as_json)
    token = "".join(["ghs_", "secret"])
    try:
        raise ValueError("it broke")
    except ValueError:
        log.exception("ours")
        logging.getLogger("library").exception("theirs")
    said = capsys.readouterr().err
    assert said.count("it broke") >= 2
    assert token not in said
