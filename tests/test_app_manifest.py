"""Holds app.yml against the trigger table: no event that nobody handles, none handled that is not subscribed to."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import yaml

from bot.clients.github import Repository
from bot.clients.store import DISPATCH
from handlers import CRONS, JOBS, TRIGGERS

MANIFEST = yaml.safe_load((Path(__file__).parent.parent / "app.yml").read_text())
# GitHub sends these to every App, subscribed or not, and refuses them in a manifest
ALWAYS = {"installation", "installation_repositories", "ping"}
# which permission an event takes (GitHub's documentation of webhooks)
NEEDS = {
    "check_run": "checks",
    "check_suite": "checks",
    "issue_comment": "issues",
    "issues": "issues",
    "membership": "members",
    "merge_group": "merge_queues",
    "pull_request": "pull_requests",
    "pull_request_review": "pull_requests",
    "push": "contents",
    "workflow_run": "actions",
}
# and those that a call takes, by the name of the client's method
CALLS = {"actions": "dispatch"}


def test_the_events_are_those_of_the_trigger_table() -> None:
    assert sorted(MANIFEST["default_events"]) == sorted({t.event for t in TRIGGERS} - ALWAYS)


def test_each_event_has_the_permission_that_it_takes() -> None:
    for event in MANIFEST["default_events"]:
        assert MANIFEST["default_permissions"].get(NEEDS[event]) in ("read", "write"), event


def test_no_permission_is_asked_for_in_vain() -> None:
    used = set(NEEDS.values()) | {"metadata"} | CALLS.keys()
    assert set(MANIFEST["default_permissions"]) <= used


def test_each_call_that_takes_a_permission_has_it() -> None:
    for permission, method in CALLS.items():
        assert callable(getattr(Repository, method))
        assert MANIFEST["default_permissions"].get(permission) == "write", permission


def test_each_trigger_and_cron_has_a_handler_and_each_handler_exists() -> None:
    kinds = {t.kind for t in TRIGGERS} | {c.kind for c in CRONS}
    assert kinds <= set(JOBS)
    assert DISPATCH not in JOBS
    for kind, handler in JOBS.items():
        module, name = handler.__qualname__.split(".")
        assert callable(getattr(import_module(f"handlers.{module}"), name)), kind
