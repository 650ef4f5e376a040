"""Holds the layers of ARCHITECTURE.md: who may import whom, and that the core stays pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = ("bot", "handlers", "runners")
# who may import what of ours, by longest prefix
ALLOWED: dict[str, tuple[str, ...]] = {
    "bot.core": ("bot.core",),
    "bot.clients": ("bot.clients", "bot.core"),
    "bot.settings": (),
    "bot.context": ("bot.clients", "bot.core", "bot.settings"),
    "handlers": ("handlers", "bot.context", "bot.core"),
    "runners": (
        "runners", "bot.core.validation", "bot.core.canary", "bot.core.types", "bot.core.config", "bot.core.reports",
        "bot.core.config_problems", "bot.core.paths", "bot.core.strict_yaml",
    ),
    "bot.app": OURS,
    "bot.worker": OURS,
    "bot.cli": OURS,
    "bot.sandbox": ("bot.sandbox", "bot.clients", "bot.core"),
    "bot": (),
}  # fmt: skip
MAINS = ("bot.app", "bot.worker", "bot.cli", "bot.sandbox")
# each outside library is known to these only; all others go through them
LIBRARIES: dict[str, tuple[str, ...]] = {
    "githubkit": ("bot.clients.github",),
    "sqlalchemy": ("bot.clients.store",),
    "alembic": ("bot.clients.store",),
    "arq": ("bot.clients.queue", "runners"),
    "redis": ("bot.clients.queue", "runners"),
    "torch": ("runners.kernels",),
    "triton": ("runners.kernels", "bot.sandbox.sample"),
    "starlette": ("bot.app", "bot.clients.git_http", "bot.sandbox", "bot.cli"),
    "uvicorn": ("bot.cli", "bot.sandbox"),
    "markdown_it": ("bot.core.command", "bot.sandbox"),
    "tree_sitter": ("bot.core.footprint",),
    "tree_sitter_language_pack": ("bot.core.footprint",),
}
IMPURE = ("asyncio", "socket", "subprocess", "random", "httpx", "os", "time", "tempfile", "shutil", "urllib.request")
CLOCK = ("now", "utcnow", "today")


def modules() -> Iterator[tuple[str, Path]]:
    for package in OURS:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield name.removesuffix(".__init__"), path


def imports(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def within(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def rule_of(module: str) -> tuple[str, ...]:
    prefix = max((p for p in ALLOWED if within(module, (p,))), key=len)
    return ALLOWED[prefix]


@pytest.mark.parametrize(("module", "path"), list(modules()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_module_imports_only_what_its_layer_may(module: str, path: Path) -> None:
    wrong = []
    for name, line in imports(path):
        top = name.split(".")[0]
        if top in OURS and not within(name, rule_of(module)) and not within(name, (module,)):
            wrong.append(f"{path.name}:{line} imports {name}")
        if top in OURS and within(name, MAINS) and not within(module, MAINS):
            wrong.append(f"{path.name}:{line}: nobody imports a main, here {name}")
        if top in LIBRARIES and not within(module, LIBRARIES[top]):
            wrong.append(f"{path.name}:{line}: {top} belongs to {LIBRARIES[top]}")
    assert wrong == []


@pytest.mark.parametrize("path", sorted((ROOT / "bot" / "core").rglob("*.py")), ids=str)
def test_the_core_touches_nothing(path: Path) -> None:
    tree = ast.parse(path.read_text())
    wrong = [f"line {line} imports {name}" for name, line in imports(path) if within(name, IMPURE)]
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await):
            wrong.append(f"line {node.lineno} awaits")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCK:
            wrong.append(f"line {node.lineno} reads the clock")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            wrong.append(f"line {node.lineno} opens a file")
    assert wrong == []


def test_the_rules_can_fail() -> None:
    assert not within("bot.core.plan", rule_of("bot.settings"))
    assert not within("handlers.gate", rule_of("bot.core.gate"))
    assert within("bot.core.validation", rule_of("runners.execute"))
    assert not within("bot.clients.store", rule_of("runners.execute"))
