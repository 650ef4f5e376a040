"""CTest by its JUnit file (CMake 3.21 and newer); no tests is an error there too."""

from __future__ import annotations

from bot.core.reports import parse_xml
from bot.core.validation import calls_ctest
from runners.harnesses import Collected, HarnessError, Place, Start, by_report, canary_place
from runners.process import Ended


class CTest:
    """Runs ctest."""

    def start(self, place: Place) -> Start:
        """The command with its result file."""
        if not place.suite.run:
            raise HarnessError(f"suite {place.suite.suite}: `run` is empty; write [ctest, --test-dir, build]")
        argv = (*place.suite.run, "--no-tests=error", "--output-junit", str(place.results / "ctest.xml"))
        return Start(argv, canary=_stand_in(place))

    def collect(self, place: Place, ended: Ended) -> Collected:
        """Results of the file; 8 is ctest's exit status for failed tests."""
        path = place.results / "ctest.xml"
        report = parse_xml(path.read_bytes()) if path.is_file() else None
        found = by_report(place, ended, report, name="ctest.xml", harmless=(0, 8))
        return Collected(found.outcome, found.reason, found.tests, canary=place.suite.canary)


HARNESS = CTest()


def _stand_in(place: Place) -> Start | None:
    """A test that fails, for the same ctest; None where `run` hides it in a script."""
    program = next((word for word in place.suite.run if calls_ctest((word,))), None)
    if program is None:
        return None
    there = canary_place(place).results
    there.mkdir(parents=True, exist_ok=True)
    (there / "CTestTestfile.cmake").write_text('add_test(graft_canary "false")\n')
    return Start((program, "--test-dir", str(there), "--output-junit", str(there / "ctest.xml")))
