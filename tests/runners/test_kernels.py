"""The kernel checks where they can't be run on a GPU: what they say then, and what a fault leaves of the rest."""

from __future__ import annotations

import argparse
import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

from bot.core.types import Outcome
from runners.kernels import __main__ as program
from runners.kernels import native
from runners.kernels.spec import Timing
from tests.runners.suite import run

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
CASES = """
from runners.kernels.spec import Case, Check

def fails(device):
    raise RuntimeError("CUDA error: an illegal memory access was encountered")

CHECKS = [
    Check("first", None, (), [Case("lacks", fails, 0, 0, needs="fp8"), Case("faulty", fails, 0, 0)]),
    Check("second", None, (), [Case("masked", fails, 0, 0)]),
]
"""


def options(path: Path, *, no_builtin: bool = True) -> argparse.Namespace:
    return argparse.Namespace(no_builtin=no_builtin, sources=[str(path)], canary=False, only=[])


def test_a_fault_of_the_gpu_masks_what_comes_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "k.py").write_text(CASES)
    monkeypatch.setattr(native, "lacking", lambda case: "no fp8 here" if case.needs else "")
    monkeypatch.setattr(native, "broken", lambda: "AcceleratorError: an illegal memory access")
    result: dict[str, list[Any]] = {"tests": [], "measurements": []}
    program._run_cases(options(tmp_path / "k.py"), "cuda", result)
    assert [(test["id"], test["outcome"]) for test in result["tests"]] == [
        ("native::first[lacks]", "not_checkable"),
        ("native::first[faulty]", "failed"),
        ("native::second[masked]", "not_run"),
    ]
    assert "the GPU is at fault since an earlier check" in result["tests"][2]["message"]
    native.time_all([Timing("k", "s", "fp16", lambda _: lambda: None)], program._entry, result)
    assert result["tests"][3]["outcome"] == "not_run"
    assert not result["measurements"]


@needs_torch
@pytest.mark.skipif(shutil.which("nvidia-smi") is not None, reason="there may be a GPU")
async def test_without_a_gpu_the_native_suite_can_t_run_and_says_so(tmp_path: Path) -> None:
    report = await run(tmp_path, {}, harness="kernels", run=["--mode", "native"])
    assert (report.outcome, report.reason.startswith("can't run here: torch finds no GPU")) == (Outcome.INFRA, True)


@needs_triton
async def test_what_the_compiler_was_asked_for_and_left_undone_is_a_failure(tmp_path: Path) -> None:
    files = {
        "k.py": "from dataclasses import replace\n"
        "from runners.kernels.specialised import CHECKS as ALL\n"
        "one = ALL[0].variants[0]\n"
        "eight = replace(one, name='eight-warps', options={**one.options, 'num_warps': 8})\n"
        "CHECKS = [replace(ALL[0], name='p', variants=[one, eight], cases=())]\n"
    }
    arguments = ["--mode", "compile", "--no-builtin", "--from", "k.py", "--targets", "cuda:90"]
    report = await run(tmp_path, files, harness="kernels", run=arguments)
    assert {test.id: test.outcome.value for test in report.tests} == {
        "compile::p[fp16-cuda:90]": "passed",
        # this compiler splits four warps on Hopper, no eight, and says nothing
        "compile::p[eight-warps-cuda:90]": "failed",
    }
    assert "was asked for it and left it undone: no ttg.warp_specialize" in report.failures[0].message
