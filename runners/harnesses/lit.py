"""lit: its JSON results with xunit as second witness; a suite of one failing test beside the fork's is the canary.

Where a build tool calls lit, the canary can't go along: no option of lit's brings a further path to every command line,
and a failing test among others would hide behind it what the exit status says of calls that wrote over each other's
results. So the same lit runs it afterwards.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from bot.core.canary import calls_lit, lit_at
from bot.core.reports import ParsedReport, parse_json, parse_xml
from runners.harnesses import Collected, HarnessError, Hidden, Place, Start, by_report, canary_place, found_in
from runners.process import Ended
from runners.spotting import Called

CANARY = "graft-canary :: canary.txt"
_CONFIG = """import lit.formats
config.name = "graft-canary"
config.test_format = lit.formats.ShTest()
config.suffixes = [".txt"]
"""


class Lit:
    """Runs lit with result files; where `run` calls lit itself (`ninja check-…`), through LIT_OPTS."""

    reads = ("lit.json", "lit.xml")

    def start(self, place: Place) -> Start:
        """The command with result files and the canary's folder."""
        if not place.suite.run:
            raise HarnessError(f"suite {place.suite.suite}: `run` is empty; write for example [lit, -v, build/test]")
        canary = _failing(place.results / "canary")
        options = _options(place)
        run = place.suite.run
        if (place_of_lit := lit_at(run)) is not None:
            # argparse takes all paths in one row: options go before the user's own, the canary behind them
            at = place_of_lit + 1
            return Start((*run[:at], *options, *run[at:], str(canary)))
        own = place.suite.env.get("LIT_OPTS", "")
        return Start(run, {"LIT_OPTS": f"{own} {shlex.join(options)}".strip()}, hidden=_hidden(place))

    def collect(self, place: Place, ended: Ended) -> Collected:
        """Results of the JSON file, of the xunit file where that is broken."""
        report = _read(place.results / "lit.json", place.results / "lit.xml")
        found = by_report(place, ended, report, name="lit.json")
        canary = place.suite.canary or (CANARY if calls_lit(place.suite.run) else None)
        return Collected(found.outcome, found.reason, found.tests, canary=canary)


HARNESS = Lit()


def _options(place: Place) -> list[str]:
    return ["-o", str(place.results / "lit.json"), "--xunit-xml-output", str(place.results / "lit.xml")]


def _failing(folder: Path) -> Path:
    """The folder, with a suite of one failing test."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lit.cfg").write_text(_CONFIG)
    (folder / "canary.txt").write_text("RUN: false\n")
    return folder


def _hidden(place: Place) -> Hidden:
    there = canary_place(place)

    def stand_in(called: Called | None) -> Start | None:
        test = _failing(there.results / "test")
        built = [str(path) for path in found_in(place.source, "bin/llvm-lit")]
        words = called.words if called is not None else (*built, "lit")[:1]
        env = dict(called.env) if called is not None else {}
        return Start((*words, str(test)), {**env, "LIT_OPTS": shlex.join(_options(there))})

    def same() -> bool:
        return _version(place) is not None and _version(place) == _version(there)

    return Hidden(_lit_words, stand_in, same)


def _lit_words(words: Sequence[str]) -> int:
    """How many words start lit: itself, or an interpreter with its options and lit's script."""
    if calls_lit(tuple(words[:1])):
        return 1
    if not words[0].rpartition("/")[2].startswith("python"):
        return 0
    for at, word in enumerate(words[1:6], 2):
        if not word.startswith("-"):
            return at if calls_lit((word,)) else 0
    return 0


def _version(place: Place) -> object:
    """The version of lit that wrote the results; None where they don't say."""
    try:
        document = json.loads((place.results / "lit.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return document.get("__version__") if isinstance(document, dict) else None


def _read(json_file: Path, xml_file: Path) -> ParsedReport | None:
    report = parse_json(json_file.read_bytes()) if json_file.is_file() else None
    if (report is None or not report.complete) and xml_file.is_file():
        second = parse_xml(xml_file.read_bytes())
        return second if report is None or second.complete else report
    return report
