from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from bot.cli import build
from bot.core.signature import signature
from bot.core.signature.clean import clean, function_of
from bot.core.signature.mask import mask
from bot.core.signature.patterns import AnyOf, needed

# (cause, class, text, test); equal causes must be one signature, others must stay apart
CASES: list[tuple[str, str, str, str | None]] = [
    (case["cause"], case["class"], case["text"], case["test"])
    for case in json.loads((Path(__file__).parents[1] / "data" / "signature-cases.json").read_text())
]


@pytest.mark.parametrize(("cause", "cls", "text", "test"), CASES)
def test_a_kind_of_text_has_its_class(cause: str, cls: str, text: str, test: str | None) -> None:
    assert signature(text, test).cls == cls


def test_one_cause_is_one_signature_and_two_are_two() -> None:
    keys: dict[str, set[str]] = {}
    for cause, _, text, test in CASES:
        keys.setdefault(cause, set()).add(signature(text, test).key)
    assert {cause: len(found) for cause, found in keys.items() if len(found) > 1} == {}
    owners: dict[str, str] = {}
    for cause, found in keys.items():
        for key in found:
            assert owners.setdefault(key, cause) == cause


VARIED = st.sampled_from([(text, test) for _, _, text, test in CASES])
PREFIXES = st.sampled_from(["[rank3]: ", "2026-11-04T20:50:29.2454357Z ", "E   ", "[gw2] ", "(Worker pid=12) ", ""])


@settings(max_examples=60, deadline=None)
@given(VARIED, st.lists(PREFIXES, max_size=3), st.booleans(), st.booleans(), st.integers(1, 9999))
def test_transport_never_changes_a_signature(
    case: tuple[str, str | None], prefixes: list[str], crlf: bool, coloured: bool, number: int
) -> None:
    text, test = case
    lines = [line.replace("Error:", "\x1b[31m\x1b[1mError:\x1b[0m") if coloured else line for line in text.split("\n")]
    if not text.startswith(("# |", "##")):
        lines = ["".join(prefixes) + line for line in lines]
    tail = ["Post job cleanup.", f"##[error]Process completed with exit code {number % 2}."]
    whole = ("\r\n" if crlf else "\n").join([*lines, *tail])
    assert signature(whole, test).key == signature(text, test).key


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 99999), st.integers(1, 2**48), st.sampled_from(["/home/ci", "/__w/1/s", "/srv/ci/job-17"]))
def test_addresses_lines_and_homes_never_change_a_signature(line: int, address: int, home: str) -> None:
    text = (
        'Traceback (most recent call last):\n  File "{home}/triton/compiler.py", line {line}, in make\n    go()\n'
        "RuntimeError: bad handle {address:#x} at {home}/triton/x.py:{line}:12 after {line} tries"
    )
    here = signature(text.format(line=line, address=address, home=home))
    assert here == here.__class__(signature(text.format(line=7, address=255, home="/x")).key, "code", here.title)


def test_code_is_never_called_infra_beside_a_disk_or_a_network() -> None:
    code = "python: lib/Utility.cpp:9: void f(int): Assertion `x > 0' failed."
    for outside in ("curl: (6) Could not resolve host: x.y", "OSError: [Errno 28] No space left on device"):
        assert signature(f"{outside}\n{code}").cls != "infra"
        assert signature(f"{code}\n{outside}").cls != "infra"


def test_a_warning_does_not_hide_the_error() -> None:
    error = "AttributeError: 'int' object has no attribute 'foo'"
    noisy = f"WARNING: Retrying after connection broken by 'ReadTimeoutError'\n{error}"
    assert signature(noisy).key == signature(error).key


def test_without_text_the_test_stands_for_itself() -> None:
    assert signature("", "a/test_x.py::test_y[1]").key == signature("\n", "b/test_x.py::test_y[2]").key
    assert signature("", "a/test_x.py::test_y[1]").key != signature("", "a/test_x.py::test_z[1]").key
    assert signature("", None).cls == "unknown"


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "/a",
        " ",
        "1,",
        "error: ",
        "(pid=",
        "x" * 999 + "\n",
        "a_",
        "Assertion `",
        "undefined symbol ",
        "error: x\n",
    ],
)
def test_a_megabyte_of_anything_is_read(unit: str) -> None:
    started = time.process_time()
    signature(unit * (1_000_000 // len(unit)))
    # no figure is asserted: a pattern that blows up would run into the suite's own time limit
    assert time.process_time() >= started


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400), st.one_of(st.none(), st.text(max_size=40)))
def test_any_text_has_a_signature(text: str, test: str | None) -> None:
    told = signature(text, test)
    assert told == signature(text, test)
    assert len(told.key) == 16
    assert told.cls in ("infra", "code", "harness", "unknown")
    assert len(told.title) <= 200


def test_needed_words_are_in_whatever_matches() -> None:
    assert needed(r"(?:could not|unable to) (?:find|locate) \w+") == ("could not", "unable to")
    assert needed(r"curl: ?\((?:18|52)\)") == ("curl:",)
    assert needed(r"[ab]+") == ()
    assert needed(r"disk (?:is )?full") == ("disk ",)
    assert AnyOf(r"no space left", r"\bENOSPC\b").search("x ENOSPC", "x enospc")
    assert AnyOf(r"x{0,3}yes").search("yes", "yes")
    assert AnyOf(r"colou?r").search("COLOR", "color")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("at 0x7f2a and 12 of 3.5", "at # and # of #"),
        ("/tmp/tmpk3j2h1/x.ptx, line 562", "x.ptx, line #"),
        ("open /tmp/tmpab12cd.ptx", "open <tmp>.ptx"),
        ("tensor<128x64xf16, #blocked1>", "tensor<*xf16, #blocked>"),
        ("Value 'sm_121a' is not", "Value 'sm#' is not"),
        ("shape [1, 2, 3]", "shape #"),
        ("C:\\env\\Lib\\a.py:17:26", "a.py"),
        ("https://x.y/z?a=1 failed", "<url> failed"),
    ],
)  # fmt: skip
def test_mask(text: str, masked: str) -> None:
    assert mask(text) == masked


def test_function_of_a_test() -> None:
    assert function_of("python/test/test_core.py::TestA::test_dot[1-2::3]") == "test_core.py::TestA::test_dot"
    assert function_of("language\\test_core.py::test_dot") == "test_core.py::test_dot"
    assert function_of(None) == ""


def test_lines_of_source_are_no_messages() -> None:
    lines = clean('  File "/a/b.py", line 3, in f\n    raise RuntimeError("x")\n>   assert y\nRuntimeError: x')
    assert [line.source for line in lines] == [False, True, True, False]
    assert lines[0].frame == ("b.py", "f")


@pytest.mark.parametrize(
    ("before", "harness"),
    [
        ('  File "/repo/tests/conftest.py", line 3, in <module>', True),
        ('  File "/repo/tests/helpers.py", line 3, in pytest_configure', True),
        ('  File "/repo/test/lit.cfg.py", line 3, in <module>', True),
        ('  File "/venv/lib/python3.12/site-packages/lit/TestRunner.py", line 3, in go', True),
        ('  File "/venv/lib/python3.12/site-packages/_pytest/config/argparsing.py", line 3, in add', True),
        ('  File "/repo/test/lit/helpers.py", line 3, in go', False),
        ('  File "/repo/tests/test_a.py", line 3, in test_a', False),
        ('  File "/repo/tests/conftest.py", line 3, in go\n  File "/repo/tiles/run.py", line 4, in run', False),
    ],
)
def test_what_prepares_the_tests_is_the_harness(before: str, harness: bool) -> None:
    said = "AttributeError: 'Tile' object has no attribute 'rows'"
    assert signature(f"{before}\n{said}").cls == ("harness" if harness else "code")


def test_an_assertion_broken_into_lines_is_the_one_on_a_line() -> None:
    whole = 'opt: lib/Tile.cpp:88: Tile pick(Context *, Type): Assertion `rows >= waves && "a wave each"\' failed.'
    for at in ("rows ", ">= ", "&& "):
        assert signature(whole.replace(at, f"{at}\n")).key == signature(whole).key
    thrice = whole.replace("): A", "):\nA").replace("&& ", "&&\n").replace("88: ", "88: \n")
    assert signature(f"noise\n{thrice}\nAborted").key == signature(whole).key
    assert signature("opt: Assertion `rows\nis all there is").cls == "unknown"


def test_another_phrase_of_one_kind_is_another_cause() -> None:
    reset, closed = "error: Connection reset by peer", "error: Remote end closed connection without response"
    assert signature(reset).key == signature(f"2026-11-04T20:50:29Z {reset}").key != signature(closed).key


def test_command_reads_and_prints(tmp_path: Path) -> None:
    file = tmp_path / "failures.json"
    file.write_text(json.dumps([{"id": "a", "text": CASES[0][2], "test": None}, {"id": "b", "text": "x", "test": "t"}]))
    result = CliRunner().invoke(build(["signature"]), ["signature", str(file)])
    assert result.exit_code == 0
    answers = json.loads(result.stdout)
    assert set(answers) == {"a", "b"}
    assert set(answers["a"]) == {"signature", "class"}


@pytest.mark.parametrize("content", ["{", "3", '[{"id": 1}]', '[{"id": "a", "text": "x", "test": 3}]'])
def test_command_says_what_is_wrong_with_its_file(tmp_path: Path, content: str) -> None:
    file = tmp_path / "failures.json"
    file.write_text(content)
    result = CliRunner().invoke(build(["signature"]), ["signature", str(file)])
    assert result.exit_code == 2
    assert "failures.json" in result.stderr


def test_command_without_a_file(tmp_path: Path) -> None:
    result = CliRunner().invoke(build(["signature"]), ["signature", str(tmp_path / "none.json")])
    assert result.exit_code == 2


def test_order_of_noise_does_not_matter() -> None:
    noise = ["Downloading x", "Set up job", "collected 12 items", "note: see documentation", "Some progress 10%"]
    root = "LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.foo"
    rng = random.Random(3)
    keys = set()
    for _ in range(20):
        rng.shuffle(noise)
        keys.add(signature("\n".join([*noise[:3], root, *noise[3:]])).key)
    assert len(keys) == 1


@pytest.mark.parametrize(
    "line",
    [
        "D:\\a\\tiles\\lib\\Lower.cpp(41): error C2065: 'rows': undeclared identifier",
        "# | C:\\src\\tiles\\test\\Data\\Rows.test:12:8: error: ROWS: expected string not found in input",
    ],
)
def test_a_drive_before_a_path_changes_nothing(line: str) -> None:
    there = signature(line)
    assert there.cls == "code"
    assert signature(line.replace("D:\\a", "E:\\b").replace("C:\\src", "F:\\other\\src")).key == there.key


def test_tools_that_find_no_tests_are_each_its_own_cause() -> None:
    said = [
        "collected 0 items\n\n===== no tests ran in 0.02s =====",
        "Test project /tiles/build\nNo tests were found!!!",
        "lit: error: did not discover any tests for provided path(s)",
        "Ran 0 tests in 0.000s",
    ]
    told = [signature(text) for text in said]
    assert {one.cls for one in told} == {"harness"}
    assert len({one.key for one in told}) == len(said)
