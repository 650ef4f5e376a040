"""CTest by its JUnit file (CMake 3.21 and newer); no tests is an error there too."""

from __future__ import annotations

from bot.core.reports import parse_xml
from runners.harnesses import Collected, HarnessError, Place, Start, by_report
from runners.process import Ended


class CTest:
    """Runs ctest."""

    def start(self, place: Place) -> Start:
        """The command with its result file."""
        if not place.suite.run:
            raise HarnessError(f"suite {place.suite.suite}: `run` is empty; write [ctest, --test-dir, build]")
        return Start((*place.suite.run, "--no-tests=error", "--output-junit", str(place.results / "ctest.xml")))

    def collect(self, place: Place, ended: Ended) -> Collected:
        """Results of the file; 8 is ctest's exit status for failed tests."""
        path = place.results / "ctest.xml"
        report = parse_xml(path.read_bytes()) if path.is_file() else None
        found = by_report(place, ended, report, name="ctest.xml", harmless=(0, 8))
        return Collected(found.outcome, found.reason, found.tests, canary=place.suite.canary)


HARNESS = CTest()
