"""Texts that were written apart from the code, of tools and in words that its tables do not list: what holds there.

Each of the first four sets was written before the change to the code that it led to. What each gave at first contact
by class accuracy and infra recall: first 0.78, 0.71; second (measured at the code that the first led to) 0.65, 0.54;
third 0.68, 0.50; fourth 0.70, 0.67. The fifth set says in words of its own what rules were made from real failures
that are kept outside: sixteen rounds of those, each of texts not looked at before, gave 0.47 to 0.64 in the first five
at first contact, 0.74 to 0.88 in the next eight, 0.61 and 0.71 where tools were far from any met (Bazel, Ray, MPI) and
0.91 where they were those of GPU projects; infra recall 0.33 to 0.67, then 0.71 to 0.89, 0.61, 0.63 and 0.92. That is
what to expect of a tool that was never met: the figures of the sets are those of texts that have been. The sixth does
so for two rounds that others collected and labelled and three more, again kept outside: 135 texts of code and tests
gave 0.87 at first contact, 155 of machines, harnesses and what does not decide 0.81 (0.83 with what the first had led
to), 53 picked for being unlike all others 0.70, then 37 and 31 as they came 0.78 and 0.84, 110 that others had kept
back 0.83 with 0.58 of the infrastructure, and, after all these, 101 chosen to be what a fork of a GPU compiler meets
most 0.94 with 0.92; and it holds programs' words that are like a harness's. No text here is one that the model of words
was learned from (signature-words.json). The floors stand a little below the figures of now.
"""

from __future__ import annotations

import json
from collections import Counter
from math import comb
from pathlib import Path
from typing import Any

import pytest

from bot.core.signature import Signature, signature
from bot.core.signature.frameworks import framework
from bot.core.signature.speakers import speaker
from bot.core.signature.trouble import trouble
from bot.core.signature.wording import guess

DATA = Path(__file__).parents[1] / "data"
CASES: list[dict[str, Any]] = json.loads((DATA / "signature-apart.json").read_text())["cases"]
LEARNED: list[dict[str, str]] = json.loads((DATA / "signature-words.json").read_text())


def signed(name: str) -> list[tuple[dict[str, Any], Signature]]:
    """The cases of a set with their signatures."""
    return [(case, signature(case["text"], case["test"])) for case in CASES if case["set"] == name]


def pairs(counts: Counter[Any]) -> int:
    return sum(comb(count, 2) for count in counts.values())


@pytest.mark.parametrize(
    ("name", "right", "infra", "precision", "recall"),
    [
        ("first", 0.98, 0.98, 0.92, 0.91),
        ("second", 0.97, 0.96, 0.88, 0.84),
        ("third", 0.88, 0.81, 0.98, 0.90),
        ("fourth", 0.98, 0.98, 0.98, 0.92),
        ("fifth", 0.98, 0.98, 0.98, 0.98),
        ("sixth", 0.98, 0.98, 0.98, 0.98),
    ],
)
def test_texts_that_no_table_lists(name: str, right: float, infra: float, precision: float, recall: float) -> None:
    cases = signed(name)
    wrong = [case["id"] for case, one in cases if case["class"] in ("code", "harness") and one.cls == "infra"]
    assert wrong == [], "what code did is never excused"
    assert sum(case["class"] == one.cls for case, one in cases) / len(cases) >= right
    machines = [one.cls for case, one in cases if case["class"] == "infra"]
    assert machines.count("infra") / len(machines) >= infra
    together = pairs(Counter((case["cause"], one.key) for case, one in cases))
    assert together / pairs(Counter(one.key for _, one in cases)) >= precision
    assert together / pairs(Counter(case["cause"] for case, _ in cases)) >= recall


HEADS = (
    'Traceback (most recent call last):\n  File "/opt/venv/bin/pytest", line 8, in <module>\n    sys.exit(main())\n',
    "##[group]Run tests (shard 7/8)\n##[endgroup]\n",
    "W1129 10:25:33.809202 86924 torch/_logging/structured.py:28] cache miss\n",
    "[gw14] linux -- Python 3.12.9 /opt/venv/bin/python3\n",
)
TAILS = (
    "\nPost job cleanup.\n##[error]Process completed with exit code 134.",
    "\nError: Process completed with exit code 2.",
    "\n=========== 1 failed, 247 passed, 1 skipped in 162.80s ===========",
)


@pytest.mark.parametrize("part", range(4))
def test_what_a_run_says_before_and_after_changes_nothing(part: int) -> None:
    moved = []
    for case in CASES[part::24]:
        one = signature(case["text"], case["test"])
        if one.title in ("no text", "Test has no 'RUN:' line", "t/a.py::t10"):
            continue  # nothing said it but the run
        for head, tail in ((HEADS[part], ""), ("", TAILS[part % 3]), (HEADS[part], TAILS[(part + 1) % 3])):
            if signature(head + case["text"] + tail, case["test"]) != one:
                moved.append(case["id"])
    assert moved == []


@pytest.mark.parametrize("part", range(3))
def test_how_a_log_was_carried_changes_nothing(part: int) -> None:
    carried = [
        lambda line: f"E   {line}",  # by pytest, with what it says of where
        lambda line: f"\x1b_bk;t=1690000000{len(line)}\x07{line}",  # by Buildkite
        lambda line: f"> {line}",  # in a comment
    ][part]
    moved = [
        case["id"]
        for case in CASES[part::24]
        if signature("\n".join(map(carried, case["text"].split("\n"))), case["test"])
        != signature(case["text"], case["test"])
    ]
    assert moved == []


@pytest.mark.parametrize(
    ("text", "exception"),
    [
        ("AssertionError: the node was evicted", "AssertionError"),  # code speaks of it
        ("ValueError: Could not resolve host pattern '*'", "ValueError"),
        ("assert response.status == 503", None),
        ("Failed: DID NOT RAISE OSError  # [Errno 28]", None),
        ("error: register allocation failed", None),  # a compiler's words
        ("lowering of node failed", None),
        ("the backend failed to select an instruction", None),
        ("loop is unreachable from node entry", None),
        ("instruction scheduler failed", None),
        ("OSError: [Errno 2] No such file or directory: 'a'", "OSError"),
        ("requests.ConnectionError: localhost: [Errno 111] Connection refused", "ConnectionError"),
        ("KeyError: 'ECONNRESET'", "KeyError"),
        ("RuntimeError: the cuda driver stub failed", "RuntimeError"),
    ],
)
def test_what_is_not_the_machines(text: str, exception: str | None) -> None:
    found = trouble(text, exception=exception)
    assert found is None or found.cls != "infra", found


@pytest.mark.parametrize(
    ("text", "exception"),
    [
        ("Node gpu-7 status is now: NodeNotReady", None),
        ("kubelet: the kubelet on n7 stopped", None),
        ("OSError: [Errno 116] Stale file handle: '/mnt/x'", "OSError"),
        ("rpc error: code = Unavailable desc = transport is closing", None),
        ("INFO: task python:123 blocked for more than 120 seconds", None),
        ("An error occurred (Throttling) when calling the DescribeInstances operation", None),
        ("the remote server replied 503", None),
        ("RuntimeError: the NVIDIA driver on this node is not responding", "RuntimeError"),
    ],
)
def test_what_is_the_machines(text: str, exception: str | None) -> None:
    found = trouble(text, exception=exception)
    assert found is not None and found.cls == "infra"


def test_a_text_that_tells_nothing_stands_for_itself_and_not_for_all_such() -> None:
    one, other = "the frobnicator said so at 10:03", "the widget turned blue"
    assert signature(one).key == signature("the frobnicator said so at 11:44").key != signature(other).key
    assert signature("", None).key == signature("  \n", None).key


@pytest.mark.parametrize(
    ("line", "cls", "kind"),
    [
        ("kubelet: eviction manager is low on memory", "infra", "machinery"),
        ("NVRM: the GPU stopped answering, Xid 79", "infra", "machinery"),
        ("[  912.104417] XFS (sdc1): metadata I/O error", "infra", "machinery"),
        ("srun: error: Unable to reach the node", "infra", "machinery"),
        ("srun: unrecognized option '--gpus-each=2'", "harness", "machinery"),  # how it was called
        ("docker: invalid reference format", "harness", "machinery"),
        ("srun: error: n4: task 0: Exited with exit code 2", "unknown", "exit"),  # how what it ran has ended
        ("kernel: python[41]: segfault at 0 ip 7f sp 7f error 4", "code", "segfault"),
        ("jq: error: null has no keys", "harness", "shell"),
        ("n4:812:900 [3] NCCL WARN Call to connect failed: timed out", "infra", "machinery"),
        ("n4:812:900 [3] NCCL WARN AllGather : wanted a root below 4", "unknown", "machinery"),
    ],
)
def test_who_speaks(line: str, cls: str, kind: str) -> None:
    found = speaker(line)
    assert found is not None and (found.cls, found.kind) == (cls, kind)


@pytest.mark.parametrize(
    "line",
    [
        "kubelet: node is ready",  # all is well
        "the kernel: error in tile 4",  # not at the start
        "kernel_packs_tiles: wrong shape",
        "nvidia is not supported by this op",
        "dockerize: cannot lower",
        "RuntimeError: srun: error",
    ],
)
def test_nobody_speaks(line: str) -> None:
    assert speaker(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "--- FAIL: TestSplitKeepsOrder (0.02s)",
        "not ok 3 - keeps strides",
        "test tiles::odd ... FAILED",
        "[  FAILED  ] Pack.RoundsUp (3 ms)",
        "  ● layout › keeps strides",
        "==3141== Invalid read of size 8",
        "========= Invalid __global__ write of size 4 bytes",
        "wanted 8 tiles but got 4",
        "Falsifying example: test_pack(parts=0)",
    ],
)
def test_what_other_frameworks_say(line: str) -> None:
    found = framework(line, line.lower())
    assert found is not None and found.cls == "code"


def test_words_of_machines_tell_machines() -> None:
    said = "the host went offline while the agent waited, the fleet replaced the machine"
    assert guess([said]) == "infra"


@pytest.mark.parametrize(
    "more", ["tensor", "the op", "lowering", "expected 4", "a kernel", "%arg", "std::vector", "import of a", "SIGSEGV"]
)
def test_a_word_of_programs_forbids_to_say_infra(more: str) -> None:
    said = "the host went offline while the agent waited, the fleet replaced the machine"
    assert guess([f"{said}: {more}"]) != "infra"


@pytest.mark.parametrize("said", ["", "zephyr wobbled", "the frobnicator said so", "offline", "x" * 9999])
def test_words_that_were_never_met_tell_nothing(said: str) -> None:
    assert guess([said]) == "unknown"


def test_no_text_of_code_that_was_learned_from_is_called_infra() -> None:
    assert [each["text"] for each in LEARNED if each["class"] == "code" and guess([each["text"]]) == "infra"] == []


def test_what_was_learned_from_is_not_what_is_measured() -> None:
    assert {each["text"] for each in LEARNED}.isdisjoint(case["text"] for case in CASES)
