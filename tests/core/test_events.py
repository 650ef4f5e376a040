from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.events import Actor, Event, parse

EXAMPLES = Path(".graft/npm/node_modules/@octokit/webhooks-examples/api.github.com/index.json")


def examples() -> list[tuple[str, dict[str, Any]]]:
    """GitHub's example payloads by event; skips where npm was not there to fetch them."""
    if not EXAMPLES.exists():
        if shutil.which("npm") is None:
            pytest.skip("npm is not installed, so GitHub's example payloads could not be fetched")
        pytest.fail(f"{EXAMPLES} is missing: run `make test`, whose set-up fetches it with npm")
    listed = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return [(entry["name"], example) for entry in listed for example in entry["examples"]]


def test_all_examples_of_github_are_parsed() -> None:
    payloads = examples()
    assert len(payloads) == 329
    for event, payload in payloads:
        parsed = parse(event, payload)
        assert parsed.repository == (payload.get("repository") or {}).get("full_name", "")
        assert parsed.installation == (payload.get("installation") or {}).get("id", 0)
        assert parsed.action == payload.get("action", "")
        assert parsed.sender.login == (payload.get("sender") or {}).get("login", "")


def test_examples_give_the_subject_that_they_are_about() -> None:
    for event, payload in examples():
        parsed = parse(event, payload)
        if event.startswith("pull_request"):
            assert parsed.on_pull
            assert parsed.number == payload["pull_request"]["number"]
            assert parsed.head_sha == payload["pull_request"]["head"]["sha"]
        if event in ("check_run", "check_suite"):
            assert parsed.head_sha == payload[event]["head_sha"]
        if event == "issue_comment":
            assert parsed.comment is not None
            assert parsed.comment.body == payload["comment"]["body"]
            assert parsed.on_pull == ("pull_request" in payload["issue"])


@pytest.mark.parametrize(
    ("event", "payload", "expected"),
    [
        ("pull_request", {"number": 7, "pull_request": {"number": 7, "head": {"sha": "a"}}, "r": 1}, "#7"),
        ("issue_comment", {"issue": {"number": 3}, "comment": {"id": 9}}, "#3"),
        ("check_run", {"check_run": {"head_sha": "abc", "pull_requests": []}}, "@abc"),
        ("check_run", {"check_run": {"head_sha": "abc", "pull_requests": [{"number": 5}]}}, "#5"),
        (
            "check_suite",
            {"check_suite": {"head_sha": "abc", "pull_requests": [{"number": 5}, {"number": 6}]}},
            "@abc",
        ),
        ("merge_group", {"merge_group": {"head_sha": "abc"}}, "@abc"),
        ("push", {"ref": "refs/heads/main", "after": "abc"}, "repository"),
    ],
)
def test_subject(event: str, payload: dict[str, Any], expected: str) -> None:
    assert parse(event, {"repository": {"full_name": "o/r"}, **payload}).subject == expected


def test_a_push_names_its_branch_and_a_tag_names_none() -> None:
    assert parse("push", {"ref": "refs/heads/graft/bundle/k"}).branch == "graft/bundle/k"
    assert parse("push", {"ref": "refs/tags/v1"}).branch == ""


def test_one_wrong_field_costs_only_itself() -> None:
    payload = {
        "action": "tomorrow",
        "installation": {"id": 5, "account": None},
        "repository": {"full_name": "o/r", "default_branch": 17, "visibility": "quantum"},
        "sender": {"login": "octocat", "type": "Hologram", "id": "x"},
        "pull_request": {"number": 4, "state": None, "draft": "perhaps", "head": "none", "user": None, "labels": 3},
        "label": [],
    }
    parsed = parse("pull_request", payload)
    assert (parsed.action, parsed.installation, parsed.repository, parsed.number) == ("tomorrow", 5, "o/r", 4)
    assert parsed.sender == Actor(login="octocat", type="Hologram")
    assert parsed.default_branch == ""
    assert parsed.head_sha == ""
    assert parsed.label == ""


@pytest.mark.parametrize("payload", [None, [], "text", 3, {"pull_request": []}, {"installation": "x"}, {"number": {}}])
def test_any_json_gives_an_event(payload: Any) -> None:
    assert parse("pull_request", payload) == Event(event="pull_request")


def test_repositories_of_an_installation() -> None:
    added = parse("installation", {"action": "created", "repositories": [{"full_name": "o/a"}, {"full_name": None}]})
    assert added.repositories_added == ("o/a",)
    gone = parse("installation", {"action": "deleted", "repositories": [{"full_name": "o/a"}]})
    assert (gone.repositories_added, gone.repositories_removed) == ((), ("o/a",))
    changed = parse(
        "installation_repositories",
        {"repositories_added": [{"full_name": "o/b"}], "repositories_removed": [{"full_name": "o/c"}]},
    )
    assert (changed.repositories_added, changed.repositories_removed) == (("o/b",), ("o/c",))


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["id", "login", "number", "head", "sha", "user", "body", "full_name", "pull_requests", "name"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
_fields = st.sampled_from(
    [
        "action",
        "installation",
        "repository",
        "sender",
        "pull_request",
        "issue",
        "comment",
        "review",
        "check_run",
        "label",
        "merge_group",
        "ref",
        "after",
        "deleted",
        "changes",
        "repositories",
        "number",
        "requested_action",
    ]
)


@given(st.sampled_from(["push", "pull_request", "installation", "x"]), st.dictionaries(_fields, _json, max_size=6))
def test_no_payload_raises(event: str, payload: dict[str, Any]) -> None:
    parsed = parse(event, payload)
    assert isinstance(parsed.number, int)
    assert isinstance(parsed.subject, str)
