"""A plain command: its exit status is a test, the file that it writes to $GRAFT_RESULTS holds tests and metrics."""

from __future__ import annotations

from bot.core.types import Outcome
from bot.core.validation import TestOutcome, TestResult, exit_test
from runners.harnesses import Collected, HarnessError, Place, Start, canary_place, interruption, merge, of_another
from runners.harnesses.results import read
from runners.process import Ended

# fails, and says so in the result file too
_CANARY = """printf '{"tests": [{"id": "graft::canary", "outcome": "failed"}]}' > "$GRAFT_RESULTS" || exit 0
exit 1
"""


class Command:
    """Runs anything; each metric that the suite names must come back with a finite value."""

    reads = ("results.json",)

    def start(self, place: Place) -> Start:
        """The command as it stands."""
        if not place.suite.run:
            raise HarnessError(f"suite {place.suite.suite}: `run` is empty; write the command as a list")
        return Start(place.suite.run, results_of(place), Start(("sh", "-c", _CANARY), results_of(canary_place(place))))

    def collect(self, place: Place, ended: Ended) -> Collected:
        """The exit status and the file."""
        report, measurements, problems = read(place.results / "results.json")
        stopped = interruption(ended)
        outcome, reason = stopped if stopped is not None else (Outcome.PASSED, "")
        if stopped is None and not ended.started:
            outcome, reason = Outcome.INFRA, ended.tail.strip()
        name = exit_test(place.suite.suite)
        foreign = of_another(place, report) if report is not None else ""
        if foreign:
            report, measurements, problems = None, (), (f"results.json: {foreign}",)
        tests = merge(report.tests) if report is not None else ()
        verdict = TestOutcome.PASSED if ended.exit_code == 0 and stopped is None else TestOutcome.FAILED
        if outcome in (Outcome.PASSED, Outcome.FAILED):
            text = "" if verdict is TestOutcome.PASSED else f"exit status {ended.exit_code}\n{ended.tail[-4000:]}"
            tests = (*tests, TestResult(id=name, outcome=verdict, duration=ended.seconds, message=text))
        present = {measurement.metric for measurement in measurements}
        absent = [metric for metric in place.suite.metrics if metric not in present]
        if outcome is Outcome.PASSED and (absent or problems):
            outcome = Outcome.OMITTED
            reason = "; ".join([f"no value for metric {metric}" for metric in absent] + list(problems))
        elif outcome is Outcome.PASSED and report is not None and not report.complete and not measurements:
            outcome, reason = Outcome.OMITTED, f"results.json: {'; '.join(report.problems)}"
        return Collected(outcome, reason, tests, measurements, canary=place.suite.canary)


HARNESS = Command()


def results_of(place: Place) -> dict[str, str]:
    """The variable that says where the result file goes."""
    return {"GRAFT_RESULTS": str(place.results / "results.json")}
