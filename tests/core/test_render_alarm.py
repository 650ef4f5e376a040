"""The alarm's text, kept as a file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bot.core.render.dashboard import alarm_body, alarm_title
from tests.golden import same_as_golden


def test_the_alarm_says_since_when_how_long_is_allowed_and_why() -> None:
    body = alarm_body(
        since=datetime(2026, 11, 12, 8, 30, tzinfo=UTC),
        allowed=timedelta(hours=12),
        error="acme/up, branch main: it is not there, says @user: #3 <b>",
    )
    same_as_golden("alarm.md", f"{alarm_title()}\n\n{body}")


def test_without_an_error_it_points_to_the_doctor() -> None:
    body = alarm_body(since=None, allowed=timedelta(minutes=90), error="")
    assert "ever since it was installed" in body
    assert "1.5 hours" in body
    assert "graft doctor" in body
