"""What is imported is named in pyproject.toml; what the demo's sample runs is in the demo's extra."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import yaml

from bot.core.config import Config
from bot.sandbox.sample import build

ROOT = Path(__file__).parent.parent
OWN = {"bot", "handlers", "runners", "tests"}
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def named(*extras: str) -> set[str]:
    """The distributions that the project needs, and those of these extras."""
    lines = [*PROJECT["dependencies"], *(one for extra in extras for one in PROJECT["optional-dependencies"][extra])]
    return {re.split(r"[\[<>=~! ]", line)[0].lower() for line in lines}


def imported(sources: Iterable[str]) -> Iterator[str]:
    """The first part of each module that is imported from outside the standard library."""
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            yield from (top for name in names if (top := name.split(".")[0]) not in sys.stdlib_module_names)


def missing(modules: Iterable[str], declared: set[str]) -> set[str]:
    """The modules that no declared distribution brings."""
    brings = packages_distributions()

    def told(module: str) -> bool:
        return bool({name.lower().replace("_", "-") for name in brings.get(module, [])} & declared)

    return {module for module in modules if not told(module)}


def test_what_is_imported_is_named() -> None:
    files = [path for package in ("bot", "handlers", "runners") for path in (ROOT / package).rglob("*.py")]
    modules = {module for module in imported(path.read_text() for path in files) if module not in OWN}
    assert {"pydantic", "markdown_it", "jwt", "triton"} <= modules  # it looks at what it means to
    known = named("demo", "compile", "interp", "postgres", "s3", "test")
    # torch may be absent, and pydantic brings its core in the very version that it needs
    assert missing(modules - {"torch", "pydantic_core"}, known) == set()


def test_the_demo_alone_runs_what_its_sample_runs(tmp_path: Path) -> None:
    sample = build(tmp_path)

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(sample.fork), *words], check=True, capture_output=True, text=True
        ).stdout  # fmt: skip

    tree = git("ls-tree", "-r", "--name-only", sample.fork_tip).split()
    sources = [git("show", f"{sample.fork_tip}:{path}") for path in tree if path.endswith(".py")]
    own = {path.split("/")[0].removesuffix(".py") for path in tree}
    config = Config.of(yaml.safe_load(git("show", f"{sample.fork_tip}:.github/graft.yml")))
    suites = [*config.validation.l1, *config.validation.l2]
    run = {suite.run[suite.run.index("-m") + 1] for suite in suites if "-m" in suite.run}
    assert run == {"pytest"}
    # torch only where it is: kernels are compiled without it; no suite of the sample runs lit
    assert missing((run | set(imported(sources))) - own - {"torch", "lit"}, named("demo")) == set()
