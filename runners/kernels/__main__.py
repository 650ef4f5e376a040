"""`python -m runners.kernels`: check the kernels here, by compiling, in the interpreter, or on this machine's GPU."""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from runners.kernels import native
from runners.kernels.spec import Case, Check

MODULES = tuple(f"runners.kernels.{name}" for name in ("pointwise", "matmul", "attention", "specialised"))
CANARY = "canary::wrong_on_purpose"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks; 0 where all that could be checked agree, 1 where one does not, 2 where nothing can run."""
    parser = argparse.ArgumentParser(prog="python -m runners.kernels", description=__doc__)
    parser.add_argument("--targets", default="cuda:80,cuda:90,cuda:100,hip:gfx942,hip:gfx950")
    parser.add_argument("--mode", choices=("auto", "compile", "interpret", "native"), default="auto")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="names of checks, with * and ?")
    parser.add_argument(
        "--from", dest="sources", action="append", default=[], metavar="FILE", help="a file with CHECKS"
    )
    parser.add_argument("--no-builtin", action="store_true", help="only what --from names")
    parser.add_argument("--canary", action="store_true", help="add a check that must fail")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    targets = tuple(target.strip() for target in options.targets.split(",") if target.strip())
    modes = _modes(options.mode)
    lack = _lack(modes)
    if lack:
        print(lack, file=sys.stderr)
        return 2
    result: dict[str, list[Any]] = {"tests": [], "measurements": []}
    for mode in modes:
        if mode == "interpret" and os.environ.get("TRITON_INTERPRET") != "1":
            _elsewhere(options, result)
        elif mode == "compile":
            _compile(options, targets, result)
        else:
            _run_cases(options, "cpu" if mode == "interpret" else "cuda", result)
    if options.canary:
        _judge_canary(result)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result))
    bad = [test for test in result["tests"] if test["outcome"] in ("failed", "error") and test["id"] != CANARY]
    print(f"{len(result['tests'])} checks, {len(bad)} failed", file=sys.stderr)
    return 1 if bad else 0


def _modes(wanted: str) -> list[str]:
    if wanted != "auto":
        return [wanted]
    triton, torch = (importlib.util.find_spec(name) is not None for name in ("triton", "torch"))
    if not triton:
        return []
    if not torch:
        return ["compile"]
    import torch as installed

    return ["compile", "native" if installed.cuda.is_available() else "interpret"]


def _lack(modes: Sequence[str]) -> str:
    """What is missing on this machine for these ways of checking; empty where nothing."""
    needed = ["triton", *(["torch"] if {"interpret", "native"} & {*modes} else [])] if modes else ["triton", "torch"]
    absent = [name for name in needed if importlib.util.find_spec(name) is None]
    if absent:
        return f"{' and '.join(absent)} can't be imported: pip install 'graft[interp]'"
    if "native" in modes:
        import torch

        if not torch.cuda.is_available():
            return "torch finds no GPU here (CUDA_VISIBLE_DEVICES, the driver, or a torch built without CUDA)"
    return ""


def _checks(options: argparse.Namespace) -> Iterator[Check]:
    modules = [] if options.no_builtin else [importlib.import_module(name) for name in MODULES]
    for number, path in enumerate(options.sources):
        spec = importlib.util.spec_from_file_location(f"graft_kernels_{number}", path)
        if spec is None or spec.loader is None:
            raise SystemExit(f"{path}: not a Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        modules.append(module)
    if options.canary:
        yield importlib.import_module(MODULES[0]).CANARY
    for module in modules:
        for check in module.CHECKS:
            if _chosen(options, check.name):
                yield check


def _elsewhere(options: argparse.Namespace, result: dict[str, list[Any]]) -> None:
    """The interpreter replaces the compiler in a whole process, so it gets one of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "interpreted.json"
        argv = [sys.executable, "-m", "runners.kernels", "--mode", "interpret", "--out", str(out)]
        for name, values in (("--only", options.only), ("--from", options.sources)):
            argv += [part for value in values for part in (name, value)]
        argv += [flag for flag, on in (("--no-builtin", options.no_builtin), ("--canary", options.canary)) if on]
        ended = subprocess.run(argv, env={**os.environ, "TRITON_INTERPRET": "1"}, check=False)
        if not out.is_file():
            message = f"the interpreter ended with {ended.returncode} and no result"
            result["tests"].append({"id": "interpret::process", "outcome": "error", "message": message})
            return
        found = json.loads(out.read_text())
        result["tests"] += found["tests"]
        result["measurements"] += found["measurements"]


def _compile(options: argparse.Namespace, targets: tuple[str, ...], result: dict[str, list[Any]]) -> None:
    # a result out of a cache would prove nothing of this compiler, and take no time
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    from runners.kernels.compiling import compile_for, describe, wanted

    for check in _checks(options):
        for variant in check.variants:
            for target in wanted(variant, targets):
                name = f"compile::{check.name}[{variant.name}-{target}]"
                began = time.perf_counter()
                try:
                    resources = compile_for(check, variant, target)
                except Exception as error:  # the compiler's own errors have no common type
                    result["tests"].append(_entry(name, "failed", time.perf_counter() - began, describe(error)))
                    continue
                seconds = time.perf_counter() - began
                result["tests"].append(_entry(name, "passed", seconds))
                metrics = {"compile_time": (seconds, "s"), **resources.as_metrics()}
                for metric, (value, unit) in metrics.items():
                    result["measurements"].append(
                        {
                            "metric": metric,
                            "unit": unit,
                            "samples": [value],
                            "kernel": check.name,
                            "dtype": variant.name,
                            "target": target,
                            "higher_is_better": False,
                        }
                    )


def _run_cases(options: argparse.Namespace, device: str, result: dict[str, list[Any]]) -> None:
    where, fault = "interpret" if device == "cpu" else "native", ""
    for check in _checks(options):
        for case in check.cases:
            name = f"{where}::{check.name}[{case.name}]"
            why = _unfit(case) if device == "cpu" else native.lacking(case) if not fault else ""
            if fault:
                message = f"the GPU is at fault since an earlier check: {fault}"
                result["tests"].append(_entry(name, "not_run", 0.0, message))
                continue
            if why:
                result["tests"].append(_entry(name, "not_checkable", 0.0, why))
                continue
            began = time.perf_counter()
            outcome, message = _agrees(case, device)
            result["tests"].append(_entry(name, outcome, time.perf_counter() - began, message))
            if device != "cpu":
                fault = native.broken() if outcome == "failed" else ""
                if not fault:
                    native.tidy()
    if device != "cpu" and not options.no_builtin:
        timings = importlib.import_module("runners.kernels.timings").TIMINGS
        native.time_all([timing for timing in timings if _chosen(options, timing.kernel)], _entry, result)


def _unfit(case: Case) -> str:
    """Why the interpreter can't check a case; empty where it can."""
    if case.dots_bf16:
        return "the interpreter computes tl.dot of bf16 wrongly"
    return "needs a GPU" if case.native_only else ""


def _chosen(options: argparse.Namespace, name: str) -> bool:
    return not options.only or any(fnmatch.fnmatchcase(name, pattern) for pattern in options.only)


def _agrees(case: Case, device: str) -> tuple[str, str]:
    try:
        pairs = case.run(device)
    except Exception as error:  # whatever a kernel raises is its failure
        return "failed", f"{type(error).__name__}: {str(error)[-4000:]}"
    return compare(pairs, case.rtol, case.atol)


def compare(pairs: Sequence[tuple[Any, Any]], rtol: float, atol: float) -> tuple[str, str]:
    """`passed`, or `failed` with how far apart the worst element is."""
    for number, (got, want) in enumerate(pairs):
        if got.shape != want.shape:
            return "failed", f"output {number}: shape {tuple(got.shape)}, expected {tuple(want.shape)}"
        difference = (got.double() - want.double()).abs()
        allowed = atol + rtol * want.double().abs()
        # written so that NaN is wrong
        wrong = ~(difference <= allowed)
        if bool(wrong.any()):
            count, worst = int(wrong.sum()), float(difference[wrong].nan_to_num(nan=float("inf")).max())
            return "failed", f"Mismatched elements: {count} of {wrong.numel()} of output {number}, worst by {worst:g}"
    return "passed", ""


def _judge_canary(result: dict[str, list[Any]]) -> None:
    """Put one canary in the place of its parts: failed where every way of checking noticed it, else passed."""
    parts = [test for test in result["tests"] if "::wrong_on_purpose[" in test["id"] or test["id"] == CANARY]
    others = [test for test in result["tests"] if test not in parts]
    noticed = bool(parts) and all(test["outcome"] == "failed" for test in parts)
    message = "; ".join(f"{test['id']}: {test['outcome']}" for test in parts)
    result["tests"] = [*others, _entry(CANARY, "failed" if noticed else "passed", 0.0, message)]


def _entry(name: str, outcome: str, seconds: float, message: str = "") -> dict[str, Any]:
    return {"id": name, "outcome": outcome, "duration": round(seconds, 4), "message": message}


if __name__ == "__main__":
    sys.exit(main())
