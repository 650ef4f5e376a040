"""Loaded into the suite's own pytest: writes each event as a line at once, and adds the canary, a test that must fail.

Imports nothing of Graft's: it runs in the fork's environment, whatever that is. What a crash leaves is still readable.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

PATH = os.environ.get("GRAFT_PYTEST_EVENTS", "")
CANARY = "graft_canary"


class Canary(pytest.Item):
    """A test that fails; a harness that does not report it would not report others either."""

    def runtest(self) -> None:
        """Fail."""
        raise AssertionError("the canary: this failure is expected and has to be reported")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """One line instead of a traceback."""
        return str(excinfo.value)

    def reportinfo(self) -> tuple[str, int | None, str]:
        """Where it stands: nowhere in the source."""
        return "graft", None, CANARY


class Events:
    """Writes the events of one session; with xdist only the controlling process does."""

    def __init__(self) -> None:
        self.file = Path(PATH).open("a", encoding="utf-8")  # noqa: SIM115 - open for the whole session
        self.failed = 0
        self.write(event="session", pytest=pytest.__version__)

    def write(self, **event: Any) -> None:
        """Add a line and push it out, so that a crash loses nothing that was said."""
        self.file.write(json.dumps(event) + "\n")
        self.file.flush()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what will run."""
        ids = [item.nodeid for item in session.items if not isinstance(item, Canary)]
        if session.items:
            self.write(event="collected", ids=ids)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Note what will run, as a worker of xdist says it."""
        self.write(event="collected", ids=[one for one in ids if not one.endswith("::" + CANARY)])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a module that can't be imported or skips itself."""
        if report.failed:
            self.failed += 1
            self.write(event="collect_error", id=report.nodeid, message=str(report.longrepr)[:8000])
        elif report.skipped:
            self.write(event="collect_skip", id=report.nodeid, message=_reason(report))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note which test begins."""
        self.write(event="start", id=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what a phase of a test says."""
        if report.outcome not in ("passed", "failed", "skipped"):
            return
        # as pytest counts
        self.failed += report.failed and not hasattr(report, "wasxfail")
        if report.when != "call" and report.passed:
            if report.when == "teardown":
                self.write(event="finish", id=report.nodeid)
            return
        path, line, _ = report.location
        self.write(
            event="report",
            id=report.nodeid,
            when=report.when,
            outcome=report.outcome,
            duration=report.duration,
            message=_text(report) if report.failed else _reason(report) if report.skipped else "",
            xfail=hasattr(report, "wasxfail"),
            file=path,
            line=None if line is None else line + 1,
        )

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Note the end, how many failures pytest counts that are no test's (a plugin's, as of coverage), and why it
        stopped before all had run, if it did.
        """
        others = max(0, session.testsfailed - self.failed)
        stopped = str(session.shouldfail or session.shouldstop or "")
        self.write(event="end", status=int(exitstatus), others=others, stopped=stopped[:300])


def _text(report: pytest.TestReport) -> str:
    text = report.longreprtext
    for name, content in report.sections:
        text += f"\n---- {name} ----\n{content[-4000:]}"
    return text[:16000]


def _reason(report: Any) -> str:
    longrepr = report.longrepr
    text = str(longrepr[2]) if isinstance(longrepr, tuple) and len(longrepr) == 3 else str(longrepr or "")
    return str(getattr(report, "wasxfail", "") or text)[:2000]


def pytest_configure(config: pytest.Config) -> None:
    """Begin to write, in the controlling process of the outermost pytest only."""
    # a pytest that a test starts must not write into this session's file
    os.environ.pop("PYTEST_ADDOPTS", None)
    if PATH and not hasattr(config, "workerinput"):
        os.environ.pop("GRAFT_PYTEST_EVENTS", None)
        config.pluginmanager.register(Events(), "graft-events")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Add the canary behind all other tests, after any selection by name or mark."""
    items.append(Canary.from_parent(session, name=CANARY))
