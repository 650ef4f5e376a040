"""Loaded into the suite's own pytest: writes each event as a line at once, and adds the canary, a test that must fail.

One stands at the root, and one in each folder whose conftest.py could make something else of the failures below it.
Imports nothing of Graft's: it runs in the fork's environment, whatever that is. What a crash leaves is still readable.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

PATH = os.environ.get("GRAFT_PYTEST_EVENTS", "")
CANARY = "graft_canary"


# the hooks by which a conftest.py can make something else of a failure, or keep it to itself
CHANGING = frozenset(
    {
        "pytest_pyfunc_call",
        "pytest_runtest_call",
        "pytest_runtest_logreport",
        "pytest_runtest_makereport",
        "pytest_runtest_protocol",
    }
)


def _fail() -> None:
    raise AssertionError("the canary: this failure is expected and has to be reported")


class Canary(pytest.Item):
    """A test that fails; a harness that does not report it would not report others either.

    `excused` are the folders in which a hook has marked all tests as expected to fail. To hooks it is like a function.
    """

    def __init__(self, *, excused: list[str], **more: Any) -> None:
        super().__init__(**more)
        self.user_properties.append(("graft_excused", excused))
        self.obj = self.function = _fail
        self.originalname, self.module = self.name, sys.modules[__name__]
        self.cls = self.instance = None
        self.fixturenames: list[str] = []
        self.funcargs: dict[str, Any] = {}
        self._fixtureinfo = SimpleNamespace(argnames=(), initialnames=(), names_closure=[], name2fixturedefs={})

    def runtest(self) -> None:
        """Fail, in the way in which functions are called."""
        self.ihook.pytest_pyfunc_call(pyfuncitem=self)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """One line instead of a traceback."""
        return str(excinfo.value)

    def reportinfo(self) -> tuple[str, int | None, str]:
        """Where it stands: nowhere in the source."""
        return "graft", None, CANARY


class Events:
    """Writes the events of one session; with xdist only the controlling process does."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.file = Path(PATH).open("a", encoding="utf-8")  # noqa: SIM115 - open for the whole session
        self.failed = 0
        self.write(event="session", pytest=pytest.__version__)

    def write(self, **event: Any) -> None:
        """Add a line and push it out, so that a crash loses nothing that was said."""
        self.file.write(json.dumps(event) + "\n")
        self.file.flush()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what will run."""
        if session.items:
            self._collected([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Note what will run, as a worker of xdist says it."""
        self._collected(ids)

    def _collected(self, ids: list[str]) -> None:
        canaries = [one for one in ids if one.endswith("::" + CANARY)]
        self.write(event="collected", ids=[one for one in ids if one not in canaries], canaries=canaries)

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
        distributed = self.config.pluginmanager.get_plugin("dsession")
        if distributed is not None and nodeid.endswith("::" + CANARY):
            _allow_one_more(self.config.option)
            _allow_one_more(distributed)

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
            excused=next((value for name, value in report.user_properties if name == "graft_excused"), None),
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
        config.pluginmanager.register(Events(config), "graft-events")


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, items: list[pytest.Item]) -> Generator[None, Any, None]:
    """Add the canaries behind all other tests, after any selection by name or mark."""
    before = {item for item in items if item.get_closest_marker("xfail") is not None}
    outcome = yield
    if outcome.excinfo is not None:
        return
    excused = _excused(session, items, before)
    apart = _folders(session, items, CHANGING)
    items.append(Canary.from_parent(session, name=CANARY, excused=excused))
    for folder in sorted(apart - {session.path, *session.path.parents}):
        name = f"{_relative(session, folder)}::{CANARY}"
        items.append(Canary.from_parent(session, name=CANARY, path=folder, nodeid=name, excused=[]))


def _folders(session: pytest.Session, items: list[pytest.Item], hooks: frozenset[str]) -> set[Path]:
    """The folders above the tests whose conftest.py has one of these hooks."""
    manager = session.config.pluginmanager
    above = {folder for path in {item.path for item in items} for folder in path.parents}
    found = set()
    for plugin in manager.get_plugins():
        file = Path(getattr(plugin, "__file__", None) or "")
        if file.name == "conftest.py" and file.parent in above:
            callers = manager.get_hookcallers(plugin) or []
            if any(caller.name in hooks for caller in callers):
                found.add(file.parent)
    return found


def _excused(session: pytest.Session, items: list[pytest.Item], before: set[pytest.Item]) -> list[str]:
    """The folders in which each test is expected to fail because a hook there says so."""
    excused = {item for item in items if item not in before and item.get_closest_marker("xfail") is not None}
    if not excused:
        return []
    folders = _folders(session, items, frozenset({"pytest_collection_modifyitems", "pytest_itemcollected"}))
    found = (folder for folder in folders if all(item in excused for item in _below(items, folder)))
    return sorted(_relative(session, folder) for folder in found)


def _below(items: list[pytest.Item], folder: Path) -> Iterator[pytest.Item]:
    return (item for item in items if folder in item.path.parents)


def _relative(session: pytest.Session, folder: Path) -> str:
    return Path(os.path.relpath(folder, session.path)).as_posix()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, None]:
    """Let a canary's failure count for no limit of failures; and a hook that can't cope with a canary spoil no more
    than the canary.
    """
    if not isinstance(item, Canary):
        yield
        return
    _allow_one_more(item.config.option)
    outcome = yield
    if outcome.excinfo is None:
        return
    error = outcome.excinfo[1]
    if isinstance(error, Exception) and not isinstance(error, pytest.exit.Exception):
        text = f"a hook failed on it: {type(error).__name__}: {error}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "skipped", (str(item.path), 0, text), "setup")
        item.config.hook.pytest_runtest_logreport(report=report)
        outcome.force_result(True)


def _allow_one_more(limits: Any) -> None:
    """Raise the number of failures after which the session stops, where there is one."""
    if getattr(limits, "maxfail", 0):
        limits.maxfail += 1
