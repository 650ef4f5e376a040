"""CTest by its JUnit file (CMake 3.21 and newer); no tests is an error there too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bot.core.canary import calls_ctest
from bot.core.reports import parse_xml
from runners.harnesses import Collected, HarnessError, Hidden, Place, Start, by_report, canary_place, found_in
from runners.process import Ended
from runners.spotting import Called


class CTest:
    """Runs ctest."""

    reads = ("ctest.xml",)

    def start(self, place: Place) -> Start:
        """The command with its result file."""
        if not place.suite.run:
            raise HarnessError(f"suite {place.suite.suite}: `run` is empty; write [ctest, --test-dir, build]")
        report = str(place.results / "ctest.xml")
        argv = (*place.suite.run, "--no-tests=error", "--output-junit", report)
        program = next((word for word in place.suite.run if calls_ctest((word,))), None)
        if program is not None:
            return Start(argv, canary=_stand_in(place, (program,)))

        def tool(words: Sequence[str]) -> int:
            return int(calls_ctest(tuple(words[:1])) and report in words)

        def stand_in(called: Called | None) -> Start | None:
            if called is not None:
                return _stand_in(place, called.words, called.env)
            configured = _configured(place.source)
            return _stand_in(place, (configured,)) if configured is not None else None

        return Start(argv, hidden=Hidden(tool, stand_in))

    def collect(self, place: Place, ended: Ended) -> Collected:
        """Results of the file; 8 is ctest's exit status for failed tests."""
        path = place.results / "ctest.xml"
        report = parse_xml(path.read_bytes()) if path.is_file() else None
        found = by_report(place, ended, report, name="ctest.xml", harmless=(0, 8))
        return Collected(found.outcome, found.reason, found.tests, canary=place.suite.canary)


HARNESS = CTest()


def _stand_in(place: Place, program: Sequence[str], env: Mapping[str, str] | None = None) -> Start:
    """A test that fails, for the same ctest."""
    there = canary_place(place).results
    there.mkdir(parents=True, exist_ok=True)
    (there / "CTestTestfile.cmake").write_text('add_test(graft_canary "false")\n')
    return Start((*program, "--test-dir", str(there), "--output-junit", str(there / "ctest.xml")), env or {})


def _configured(source: Path) -> str | None:
    """The ctest of a tree's build folders, by what CMake noted there; None where they don't name one and the same."""
    named = set()
    for cache in found_in(source, "CMakeCache.txt"):
        for line in cache.read_text("utf-8", "replace").splitlines():
            if line.startswith("CMAKE_CTEST_COMMAND:"):
                named.add(line.partition("=")[2].strip())
    return named.pop() if len(named) == 1 else None
