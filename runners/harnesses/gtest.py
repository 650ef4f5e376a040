"""GoogleTest binaries: an XML file for each, the log's own lines where a crash left none."""

from __future__ import annotations

from bot.core.reports import ParsedReport, parse_log, parse_xml, running_at_end
from bot.core.types import Outcome
from bot.core.validation import TestOutcome, TestResult
from runners.harnesses import Collected, HarnessError, Place, Start, by_report, canary_place, fill, interruption, merge
from runners.process import Ended

# what a test binary with one failing test prints, writes and returns
_CANARY = """
echo '[ RUN      ] Graft.canary'
echo '[  FAILED  ] Graft.canary (0 ms)'
case "$GTEST_OUTPUT" in xml:*/) out="${GTEST_OUTPUT#xml:}canary.xml";; *) exit 0;; esac
cat > "$out" <<'END' || exit 0
<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="1" failures="1" disabled="0" errors="0" name="AllTests">
<testsuite name="Graft" tests="1" failures="1" disabled="0" errors="0">
<testcase name="canary" status="run" result="completed" time="0" classname="Graft"><failure message="it has to"/>
</testcase></testsuite></testsuites>
END
exit 1
"""


class GTest:
    """Runs a binary, or a script that runs several; each writes its XML through GTEST_OUTPUT."""

    reads = ("*.xml",)

    def start(self, place: Place) -> Start:
        """The command; the results folder collects one file for each binary."""
        if not place.suite.run:
            raise HarnessError(f"suite {place.suite.suite}: `run` is empty; write the test binary's path")
        # with a trailing slash each binary names its file after itself
        stand_in = Start(("sh", "-c", _CANARY), {"GTEST_OUTPUT": f"xml:{canary_place(place).results}/"})
        return Start(place.suite.run, {"GTEST_OUTPUT": f"xml:{place.results}/"}, stand_in)

    def collect(self, place: Place, ended: Ended) -> Collected:
        """All files; after a crash what the log shows: the test that was running failed, the rest is `not_run`."""
        files = [parse_xml(path.read_bytes()) for path in sorted(place.results.glob("*.xml"))]
        report = _joined(files)
        if interruption(ended) is None or not ended.crashed:
            found = by_report(place, ended, report, name="XML file of gtest")
            return Collected(found.outcome, found.reason, found.tests, canary=place.suite.canary)
        log = parse_log(ended.tail.encode())
        tests = list(merge([*(report.tests if report is not None else ()), *log.tests]))
        reason = f"crashed with {ended.signal_name}"
        running = running_at_end(ended.tail.encode())
        if running is not None:
            tests.append(TestResult(id=running, outcome=TestOutcome.FAILED, message=f"{reason} while it ran"))
        return Collected(Outcome.FAILED, reason, fill(tests, place.expected, reason))


HARNESS = GTest()


def _joined(files: list[ParsedReport]) -> ParsedReport | None:
    if not files:
        return None
    times = [file.at for file in files if file.at is not None and file.zoned]
    bad = [file.declared_bad for file in files if file.declared_bad is not None]
    return ParsedReport(
        tests=tuple(test for file in files for test in file.tests),
        complete=all(file.complete for file in files),
        readable=all(file.readable for file in files),
        at=min(times, default=None),
        commit=next((file.commit for file in files if file.commit is not None), None),
        declared_bad=sum(bad) if bad else None,
        problems=tuple(problem for file in files for problem in file.problems),
    )
