"""lit: its JSON results with xunit as second witness; a suite of one failing test beside the fork's is the canary."""

from __future__ import annotations

import shlex
from pathlib import Path

from bot.core.reports import ParsedReport, parse_json, parse_xml
from bot.core.validation import calls_lit
from runners.harnesses import Collected, HarnessError, Place, Start, by_report
from runners.process import Ended

CANARY = "graft-canary :: canary.txt"
_CONFIG = """import lit.formats
config.name = "graft-canary"
config.test_format = lit.formats.ShTest()
config.suffixes = [".txt"]
"""


class Lit:
    """Runs lit with result files; where `run` calls lit itself (`ninja check-…`), through LIT_OPTS."""

    def start(self, place: Place) -> Start:
        """The command with result files and the canary's folder."""
        if not place.suite.run:
            raise HarnessError(f"suite {place.suite.suite}: `run` is empty; write for example [lit, -v, build/test]")
        canary = place.results / "canary"
        canary.mkdir(parents=True, exist_ok=True)
        (canary / "lit.cfg").write_text(_CONFIG)
        (canary / "canary.txt").write_text("RUN: false\n")
        options = ["-o", str(place.results / "lit.json"), "--xunit-xml-output", str(place.results / "lit.xml")]
        run = place.suite.run
        if calls_lit(run):
            # argparse takes all paths in one row: options go before the user's own, the canary behind them
            at = next(index for index, word in enumerate(run) if calls_lit((word,))) + 1
            return Start((*run[:at], *options, *run[at:], str(canary)))
        return Start(run, {"LIT_OPTS": shlex.join(options)})

    def collect(self, place: Place, ended: Ended) -> Collected:
        """Results of the JSON file, of the xunit file where that is broken."""
        report = _read(place.results / "lit.json", place.results / "lit.xml")
        found = by_report(place, ended, report, name="lit.json")
        canary = place.suite.canary or (CANARY if calls_lit(place.suite.run) else None)
        return Collected(found.outcome, found.reason, found.tests, canary=canary)


HARNESS = Lit()


def _read(json_file: Path, xml_file: Path) -> ParsedReport | None:
    report = parse_json(json_file.read_bytes()) if json_file.is_file() else None
    if (report is None or not report.complete) and xml_file.is_file():
        second = parse_xml(xml_file.read_bytes())
        return second if report is None or second.complete else report
    return report
