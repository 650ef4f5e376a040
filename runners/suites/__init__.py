"""Suites that Graft brings along: its kernels, compiled, in the interpreter, on a GPU; `graft run` knows their names.

A fork's file may hold suites of the same kind for kernels of its own: `harness: kernels` with `--from FILE` in `run`.
"""

from __future__ import annotations

from bot.core.config import Suite

_COMMON = {"harness": "kernels", "area": None}
_ALL = ("cuda:80", "cuda:90", "cuda:100", "hip:gfx942", "hip:gfx950")

BUILTIN: dict[str, Suite] = {
    suite.suite: suite
    for suite in (
        Suite.model_validate({**_COMMON, **definition})
        for definition in (
            {
                "suite": "kernels-compile",
                "run": ["--mode", "compile", "--targets", ",".join(_ALL)],
                "timeout": "15m",
            },
            {
                "suite": "kernels-compile-quick",
                "run": [
                    "--mode",
                    "compile",
                    "--targets",
                    "cuda:90,hip:gfx942",
                    "--only",
                    "softmax",
                    "--only",
                    "matmul",
                ],
                "timeout": "5m",
            },
            {"suite": "kernels-interpret", "run": ["--mode", "interpret"], "timeout": "15m"},
            {"suite": "kernels-native", "run": ["--mode", "native"], "runner": ["gpu"], "timeout": "15m"},
        )
    )
}
