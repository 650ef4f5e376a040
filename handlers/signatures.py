"""Give each failure of a report its signature, so that failures of one cause stand together."""

from __future__ import annotations

from bot.core.signature import signature
from bot.core.validation import Report


def sign(report: Report) -> Report:
    """The report with the signature of every failing test."""
    tests = tuple(
        test.model_copy(update={"signature": signature(test.message, test.id).key}) if test.outcome.bad else test
        for test in report.tests
    )
    return report.model_copy(update={"tests": tests})
