"""What a lab asks to wait for, in both of HTTP's ways."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from runners.harnesses.lab_answers import Answer, retry_after


@pytest.mark.parametrize(
    ("said", "low", "high"),
    [("7", 7, 7), ("999999", 3600, 3600), ("soon", None, None), ("-3", None, None), ("", None, None)],
)
def test_retry_after_is_bounded(said: str, low: float | None, high: float | None) -> None:
    assert retry_after(Answer(429, {"retry-after": said}, b"")) == low == high


def test_retry_after_may_be_a_date() -> None:
    for when, low, high in ((timedelta(minutes=5), 200, 300), (timedelta(hours=-1), 0, 0)):
        said = format_datetime(datetime.now(UTC) + when, usegmt=True)
        found = retry_after(Answer(503, {"retry-after": said}, b""))
        assert found is not None
        assert low <= found <= high
