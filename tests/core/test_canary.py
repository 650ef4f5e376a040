"""Which suites have a canary for sure, and which of their tests it is."""

from __future__ import annotations

import pytest

from bot.core.canary import has_canary, is_canary
from bot.core.config import Suite


@pytest.mark.parametrize(
    ("suite", "has"),
    [
        ({"harness": "pytest"}, True),
        ({"harness": "kernels"}, True),
        ({"harness": "lit", "run": ["/opt/bin/llvm-lit", "test"]}, True),
        ({"harness": "lit", "run": ["python", "-m", "lit.main", "test"]}, True),
        ({"harness": "lit", "run": ["python3", "/venv/bin/lit", "test"]}, True),
        ({"harness": "lit", "run": ["timeout", "60", "lit", "test/lit"]}, True),
        ({"harness": "lit", "run": ["ninja", "check-lit-tests"]}, False),
        # a target and a folder of that name
        ({"harness": "lit", "run": ["make", "lit"]}, False),
        ({"harness": "lit", "run": ["ninja", "-C", "build/lit"]}, False),
        ({"harness": "lit", "run": ["./run.sh", "test/lit"]}, False),
        ({"harness": "lit"}, False),
        ({"harness": "gtest"}, True),
        ({"harness": "command"}, True),
        ({"harness": "ctest", "run": ["/usr/bin/ctest", "--test-dir", "build"]}, True),
        ({"harness": "ctest", "run": ["./run-tests.sh"]}, False),
        ({"harness": "http"}, False),
        ({"harness": "http", "canary": "Canary.Fails"}, True),
    ],
)
def test_which_suites_have_a_canary(suite: dict[str, object], has: bool) -> None:
    assert has_canary(Suite.model_validate({"suite": "s", **suite})) is has


@pytest.mark.parametrize(
    ("test", "canary", "is_it"),
    [
        ("graft_canary", "graft_canary", True),
        ("t/b::graft_canary", "graft_canary", True),
        ("Graft.canary", "canary", True),
        ("graft-canary :: canary.txt", "canary.txt", True),
        ("t/a.py::test_no_graft_canary", "graft_canary", False),
        ("graft_canary[1]", "graft_canary", False),
    ],
)
def test_a_canary_is_known_by_its_id_or_the_end_of_it(test: str, canary: str, is_it: bool) -> None:
    assert is_canary(test, canary) is is_it
