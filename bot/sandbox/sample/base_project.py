"""What stands around the compiler at the common base, and the ten commits that brought it all."""

from __future__ import annotations

from bot.sandbox.sample import base_ir as ir
from bot.sandbox.sample import base_kernels as kernels
from bot.sandbox.sample import base_passes as passes
from bot.sandbox.sample import base_tests as tests
from bot.sandbox.sample.history import Change, at, write
from bot.sandbox.sample.people import INES, KENJI, OLU, RAVI, ZOFIA

README = """
# tilec

A small compiler for tile kernels: a Python frontend, an IR, passes, a lowering to LLVM, and Triton kernels beside it.

    python -m pytest tests/unit
    lit tests/lit
    python -m tilec.opt tests/lit/fold.mlir --passes=fold,dce

## Targets

`cuda:80`, `cuda:90` and `hip:gfx942`.

## Contributing

See docs/dev.
"""

PYPROJECT = """
[project]
name = "tilec"
version = "0.4.0"
description = "A small compiler for tile kernels"
requires-python = ">=3.11"

[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = ["-p", "no:cacheprovider", "-p", "no:asyncio"]
"""

GITIGNORE = """
__pycache__/
build/
Output/
.lit_test_times.txt
"""

ARCHITECTURE = """
# Architecture

The frontend traces a Python function into a `Function`. Passes change it in place and return how much they changed.
The lowering writes LLVM IR through `tilec/lower/llvm_api.py`, which is written by a tool for the pinned revision.

## The toolchain pin

`cmake/llvm-hash.txt` names the revision. A bump changes it and `llvm_api.py` in one commit.
"""

PASSES = """
# Passes

| pass | what it does |
|---|---|
| fold | constants and identities |
| cse | the same operation once |
| dce | what nobody reads goes |
| layout | spreads elements over threads |
| pipeline | gives loads their stages |
"""

DEV_SETUP = """
# Setting up

    python -m venv .venv
    .venv/bin/pip install pytest lit triton

The unit tests need no GPU and no torch.
"""

DEV_REVIEW = """
# Reviews

One owner of each file's area approves. Squash on merge; the pull request's number stands in the subject.
"""

DEV_TESTS = """
# Writing tests

A pass has a pytest test of its behaviour and a lit test of its output. Keep each under a second.
"""

CODEOWNERS = """
*                   @acme/compiler
/tilec/passes/      @ines-acme @kenji-acme
/tilec/kernels/     @olu-acme
/cmake/             @acme/toolchain
/docs/              @zofia-acme
"""

CI = """
name: ci
on: [push, pull_request]
jobs:
  unit:
    runs-on: ubuntu-22.04
    strategy:
      matrix:
        python: ["3.11", "3.12"]
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "${{ matrix.python }}"}
      - run: pip install pytest lit triton
      - run: python -m pytest tests/unit
      - run: lit tests/lit
"""

NIGHTLY = """
name: nightly
on:
  schedule: [{cron: "0 3 * * *"}]
jobs:
  kernels:
    runs-on: [self-hosted, acme-h100]
    steps:
      - uses: actions/checkout@v4
      - run: python -m pytest tests/kernels
"""

LLVM_HASH = "5c6e2b1f0d8a4937c1f2e6b7a09d53481e7f6c20\n"

GEN_LLVM_API = '''
"""Checks that llvm_api.py was written for the pinned revision."""

import sys
from pathlib import Path

root = Path(__file__).resolve().parents[1]
pinned = (root / "cmake" / "llvm-hash.txt").read_text().strip()
sys.path.insert(0, str(root))

from tilec.lower.llvm_api import LLVM_REVISION  # noqa: E402

if not pinned.startswith(LLVM_REVISION):
    sys.exit(f"llvm_api.py is for {LLVM_REVISION}, the pin is {pinned}")
'''

MEASURE = '''
"""Measures the compiler; writes {"measurements": [{"metric", "unit", "samples"}]} as JSON."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tilec.frontend.trace import kernel, load  # noqa: E402
from tilec.lower.llvm import lower  # noqa: E402
from tilec.passes import run_passes  # noqa: E402


def polynomial(degree):
    @kernel(x="tensor<1024xf32>")
    def fn(x):
        total = load(x) * 0
        for power in range(degree):
            total = total * x + (power + 1)
        return total

    return fn


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("GRAFT_RESULTS", "metrics.json")))
    parser.add_argument("--samples", type=int, default=9)
    options = parser.parse_args()
    milliseconds = []
    for _ in range(options.samples):
        fn = polynomial(40)
        start = time.perf_counter()
        run_passes(fn)
        milliseconds.append(1000 * (time.perf_counter() - start))
    measurements = [
        {"metric": "compile_ms", "unit": "ms", "samples": milliseconds},
        {"metric": "ops_after_passes", "unit": "ops", "samples": [len(fn.body)]},
        {"metric": "llvm_lines", "unit": "lines", "samples": [len(lower(fn).splitlines())]},
    ]
    options.out.write_text(json.dumps({"measurements": measurements}, indent=2))


if __name__ == "__main__":
    main()
'''

COMPILE_KERNELS = '''
"""Compiles the Triton kernels under some folders for each target, without a GPU; writes tests and sizes as JSON."""

import argparse
import importlib
import json
import os
import sys
import time
import traceback
from pathlib import Path

root = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(root))

from tilec.target import parse_target  # noqa: E402


def compile_one(function, entry, target):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    arch = int(target.arch) if target.arch.isdigit() else target.arch
    source = ASTSource(fn=function, signature=entry["signature"], constexprs=entry["constexprs"])
    return triton.compile(source, target=GPUTarget(target.backend, arch, target.warp_size))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--target", action="append", help="may be given often; cuda:90 and hip:gfx942 by default")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("GRAFT_RESULTS", "kernels.json")))
    options = parser.parse_args()
    targets = [parse_target(text) for text in options.target or ["cuda:90", "hip:gfx942"]]
    tests, sizes = [], []
    for path in sorted(path for folder in options.folders for path in (root / folder).glob("[!_]*.py")):
        name = path.relative_to(root).with_suffix("").as_posix().replace("/", ".")
        module = importlib.import_module(name)
        for entry in module.COMPILE:
            for target in targets:
                test = {"id": f"{name}::{entry['kernel']}[{target}]", "outcome": "passed", "message": ""}
                start = time.perf_counter()
                try:
                    compiled = compile_one(getattr(module, entry["kernel"]), entry, target)
                except Exception:
                    test |= {"outcome": "failed", "message": traceback.format_exc()}
                else:
                    sizes.append(
                        {
                            "metric": "shared_bytes",
                            "unit": "bytes",
                            "kernel": entry["kernel"],
                            "target": str(target),
                            "samples": [compiled.metadata.shared],
                        }
                    )
                tests.append(test | {"duration": time.perf_counter() - start})
                print(test["outcome"], test["id"], test["message"], flush=True)
    options.out.write_text(json.dumps({"tests": tests, "measurements": sizes}, indent=2))
    return 0 if tests and all(test["outcome"] == "passed" for test in tests) else 1


if __name__ == "__main__":
    sys.exit(main())
'''

BASE: tuple[Change, ...] = (
    Change(
        "Start tilec: types, operations, printer\n",
        INES,
        at(9, 1, 9),
        (
            write("README.md", README),
            write("pyproject.toml", PYPROJECT),
            write(".gitignore", GITIGNORE),
            write("conftest.py", tests.CONFTEST),
            write("tilec/ir/__init__.py", '"""The tile IR."""\n'),
            write("tilec/ir/types.py", ir.TYPES),
            write("tilec/ir/ops.py", ir.OPS),
            write("tilec/ir/printer.py", ir.PRINTER),
        ),
    ),
    Change(
        "Parse what the printer writes (#2)\n",
        KENJI,
        at(9, 3, 14),
        (write("tilec/ir/parser.py", ir.PARSER), write("tests/unit/test_ir.py", tests.IR)),
    ),
    Change(
        "Targets and the @kernel frontend (#5)\n",
        INES,
        at(9, 8, 10),
        (
            write("tilec/__init__.py", ir.INIT),
            write("tilec/target.py", ir.TARGET),
            write("tilec/frontend/__init__.py", '"""From Python to the IR."""\n'),
            write("tilec/frontend/trace.py", ir.TRACE),
            write("tests/unit/test_trace.py", tests.TRACE),
            write("tests/unit/test_target.py", tests.TARGET),
        ),
    ),
    Change(
        "Passes: fold, cse, dce, layout, pipeline (#9)\n\nCo-authored-by: 山田健二 <kenji@acme.example>\n",
        INES,
        at(9, 14, 16),
        (
            write("tilec/passes/__init__.py", passes.PASSES_INIT),
            write("tilec/passes/fold.py", passes.FOLD),
            write("tilec/passes/cse.py", passes.CSE),
            write("tilec/passes/dce.py", passes.DCE),
            write("tilec/passes/layout.py", passes.LAYOUT),
            write("tilec/passes/pipeline.py", passes.PIPELINE),
            write("tests/unit/test_passes.py", tests.PASSES),
            write("tests/unit/test_layout.py", tests.LAYOUT),
        ),
    ),
    Change(
        "Lower to LLVM, with the toolchain pinned (#14)\n",
        RAVI,
        at(9, 21, 11),
        (
            write("cmake/llvm-hash.txt", LLVM_HASH),
            write("tools/gen_llvm_api.py", GEN_LLVM_API),
            write("tilec/lower/__init__.py", '"""From the IR to LLVM."""\n'),
            write("tilec/lower/llvm_api.py", passes.LLVM_API),
            write("tilec/lower/llvm.py", passes.LOWER),
            write("tests/unit/test_lower.py", tests.LOWER),
        ),
    ),
    Change(
        "Triton kernels: vector add, softmax, matmul (#21)\n",
        OLU,
        at(9, 28, 15),
        (
            write("tilec/kernels/__init__.py", kernels.INIT),
            write("tilec/kernels/vector_add.py", kernels.VECTOR_ADD),
            write("tilec/kernels/softmax.py", kernels.SOFTMAX),
            write("tilec/kernels/matmul.py", kernels.MATMUL),
            write("tilec/kernels/legacy_copy.py", kernels.LEGACY_COPY),
            write("tests/kernels/test_kernels.py", kernels.TEST_KERNELS),
        ),
    ),
    Change(
        "tilec-opt and lit tests (#33)\n",
        KENJI,
        at(10, 5, 9),
        (
            write("tilec/opt.py", passes.DRIVER),
            write("tests/lit/lit.cfg.py", tests.LIT_CFG),
            write("tests/lit/fold.mlir", tests.LIT_FOLD),
            write("tests/lit/cse.mlir", tests.LIT_CSE),
            write("tests/lit/lower.mlir", tests.LIT_LOWER),
        ),
    ),
    Change(
        "Write the documentation (#47)\n",
        ZOFIA,
        at(10, 12, 13),
        (
            write("docs/architecture.md", ARCHITECTURE),
            write("docs/passes.md", PASSES),
            write("docs/dev/setup.md", DEV_SETUP),
            write("docs/dev/review.md", DEV_REVIEW),
            write("docs/dev/tests.md", DEV_TESTS),
        ),
    ),
    Change(
        "ci: unit tests on each push, kernels at night (#58)\n",
        RAVI,
        at(10, 19, 8),
        (
            write(".github/workflows/ci.yml", CI),
            write(".github/workflows/nightly.yml", NIGHTLY),
            write(".github/CODEOWNERS", CODEOWNERS),
        ),
    ),
    Change(
        "Measure the compiler, and compile the kernels without a GPU (#71)\n",
        OLU,
        at(10, 26, 17),
        (write("tools/measure.py", MEASURE), write("tools/compile_kernels.py", COMPILE_KERNELS)),
        role="base",
    ),
)
