"""Graft's kernel suites on this machine as tables: `python -m benchmarks.kernels [--write]`.

Runs the suites exactly as a runner does: compiled for five GPUs that need not be there, in the interpreter, and on a
GPU where torch finds one. Exit status 0 where all passed, 1 where one did not. `--write` writes kernels.md too.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from bot.core.types import Level, Outcome
from bot.core.validation import Measurement, Report, RunRequest
from runners.execute import Work, execute
from runners.kernels.compiling import TARGETS
from runners.suites import BUILTIN

PAGE = Path(__file__).with_suffix(".md")


def main() -> int:
    """Run, print, and write where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    names = ["kernels-compile", "kernels-interpret", *(["kernels-native"] if _gpu() else [])]
    with tempfile.TemporaryDirectory() as folder:
        reports = [asyncio.run(_report(name, Path(folder) / name)) for name in names]
    text = page(reports)
    print(text)
    if options.write:
        PAGE.write_text(text + "\n", encoding="utf-8")
    return 0 if all(report.outcome is Outcome.PASSED for report in reports) else 1


def _gpu() -> bool:
    """Whether torch finds a GPU; asked in a process of its own, since only the suite's may hold one."""
    if importlib.util.find_spec("torch") is None:
        return False
    ask = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", ask], check=False, capture_output=True, timeout=300).returncode == 0


async def _report(name: str, folder: Path) -> Report:
    (folder / "results").mkdir(parents=True)
    # a machine that others use too gets the time that it needs
    suite = BUILTIN[name].model_copy(update={"timeout": BUILTIN[name].timeout * 4})
    request = RunRequest(
        run_id=name, repository="acme/fork", commit="0" * 40, level=Level.L1, suite=suite, git_path="/x"
    )
    print(f"{name} …", file=sys.stderr)
    return await execute(Work(request=request, source=folder, folder=folder, cache=folder / "cache"))


def page(reports: Sequence[Report]) -> str:
    """The suites, each kernel in them, and what the compiled ones take."""
    environment = reports[0].environment
    gpus = ", ".join(sorted({gpu.model for report in reports for gpu in report.environment.gpus})) or "no GPU"
    versions = f"Python {environment.python}, Triton {environment.triton}, torch {environment.torch}"
    parts = [
        f"# Kernel suites\n\n`python -m benchmarks.kernels --write`, on {platform.machine()}, {environment.cpus} CPUs "
        f"(load {os.getloadavg()[1]:.0f}), {gpus}, {versions}.",
        _table(["suite", "outcome", "canary", "checks", "took"], [_row(report) for report in reports]),
    ]
    for report in reports:
        parts.append(f"## {report.suite}\n\n" + _kernels(report))
        failed = [f"- `{test.id}`: {test.message.strip().splitlines()[-1][:200]}" for test in report.failures]
        parts += ["\n".join(failed)] if failed else []
    parts.append(_resources(reports[0].measurements))
    times = [one for report in reports for one in report.measurements if one.metric in ("time", "rate")]
    if times:
        rows = [[_of(m), m.shape or "", m.metric, _spread(m.samples), m.unit, str(len(m.samples))] for m in times]
        head = ["kernel", "shape", "metric", "median (5th to 95th percentile)", "unit", "samples"]
        parts.append("## Times on the GPU, caches cold\n\n" + _table(head, rows))
    return "\n\n".join(parts)


def _row(report: Report) -> list[str]:
    canary = "failed, as it has to" if report.manifest.canary else "not seen"
    return [report.suite, report.outcome.value, canary, _counts(report), f"{report.seconds:.0f} s"]


def _kernels(report: Report) -> str:
    seconds: dict[str, float] = defaultdict(float)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for test in report.tests:
        name = test.id.partition("::")[2].partition("[")[0]
        seconds[name] += test.duration
        counts[name][test.outcome.value] += 1
    rows = [
        [name, ", ".join(f"{n} {word.replace('_', ' ')}" for word, n in counts[name].items()), f"{seconds[name]:.2f} s"]
        for name in counts
    ]
    return _table(["kernel", "checks", "took"], rows)


def _counts(report: Report) -> str:
    words = Counter(test.outcome.value.replace("_", " ") for test in report.tests)
    return ", ".join(f"{number} {word}" for word, number in words.items())


def _resources(measurements: Sequence[Measurement]) -> str:
    """Registers, spills and shared memory of each kernel and target."""
    values: dict[tuple[str, str, str], float] = {(_of(m), m.target or "", m.metric): m.samples[0] for m in measurements}
    names = list(dict.fromkeys(name for name, _, _ in values))
    rows = [[name, *(_taken(values, name, target) for target in TARGETS)] for name in names]
    legend = "Registers of a thread / spills (bytes on NVIDIA, registers on AMD) / bytes of shared memory."
    return f"## What the compiled kernels take\n\n{legend}\n\n" + _table(["kernel", *TARGETS], rows)


def _taken(values: dict[tuple[str, str, str], float], name: str, target: str) -> str:
    if (name, target, "shared_memory") not in values:
        return "–"
    parts = (values.get((name, target, metric)) for metric in ("registers", "spills", "shared_memory"))
    return " / ".join("?" if part is None else f"{part:.0f}" for part in parts)


def _of(measurement: Measurement) -> str:
    return f"{measurement.kernel} {measurement.dtype}"


def _spread(samples: Sequence[float]) -> str:
    ordered = sorted(samples)
    low, middle, high = (ordered[round(part * (len(ordered) - 1))] for part in (0.05, 0.5, 0.95))
    return f"{middle:.4g} ({low:.4g} to {high:.4g})"


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)])


if __name__ == "__main__":
    sys.exit(main())
