"""The page of all keys, held against the models: each key is there, with its default and what it is for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from bot.core.config import Config, load
from bot.core.dispatched import inputs_of
from bot.core.turns import STEP, Turn
from bot.core.types import Level
from bot.core.validation import RunRequest

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "configuration.md").read_text("utf-8")
_ROW = re.compile(r"^\| `([^`]+)` \| (.+?) \| (.+) \|$", re.MULTILINE)


def models(model: type[BaseModel], seen: dict[str, type[BaseModel]] | None = None) -> dict[str, type[BaseModel]]:
    """A model and all that its fields are made of, by name."""
    found = {} if seen is None else seen
    if model.__name__ not in found:
        found[model.__name__] = model
        for field in model.model_fields.values():
            for part in parts(field.annotation):
                models(part, found)
    return found


def parts(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from parts(argument)


def shown(value: Any) -> str:
    """A default as the page writes it."""
    if isinstance(value, BaseModel):
        return "see below"
    if value is None:
        return "none"
    if isinstance(value, timedelta):
        seconds = int(value.total_seconds())
        unit, size = next(
            (u, n)
            for u, n in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
            if seconds % n == 0 and (u != "d" or seconds > n)
        )
        return f"`{seconds // size}{unit}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`[{', '.join(str(one) for one in value)}]`"
    return f"`{value.value if isinstance(value, StrEnum) else value}`"


def section(model: str) -> dict[str, tuple[str, str]]:
    """The rows below a model's mark, up to the next heading: key to default and meaning."""
    _, mark, rest = PAGE.partition(f"<!-- {model} -->\n")
    assert mark, f"docs/configuration.md has no section marked <!-- {model} -->: write one for it"
    body = re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    return {row[1]: (row[2], row[3]) for row in _ROW.finditer(body)}


@pytest.mark.parametrize("model", models(Config).values(), ids=lambda model: model.__name__)
def test_each_key_is_there_with_its_default_and_its_meaning(model: type[BaseModel]) -> None:
    rows = section(model.__name__)
    assert list(rows) == list(model.model_fields), "the page names other keys than the model, or in another order"
    for name, field in model.model_fields.items():
        default, meaning = rows[name]
        wanted = "required" if field.is_required() else shown(field.get_default(call_default_factory=True))
        assert default == wanted, f"{model.__name__}.{name}"
        assert len(meaning) >= 10, f"{model.__name__}.{name}: say what it is for"


def test_nothing_stands_there_that_is_none() -> None:
    assert set(re.findall(r"<!-- (\w+) -->", PAGE)) == set(models(Config))


def test_its_examples_hold() -> None:
    first, workflow = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    config = load("upstream: {repository: a/b}\n" + first)
    assert [suite.again() is not None for suite in config.validation.l1] == [True, True]
    tlx = config.validation.l1[1].again()
    assert tlx is not None
    request = RunRequest(
        run_id="r", repository="a/b", commit="a" * 40, level=Level.L1, suite=tlx, git_path="/runner/git/a/b.git"
    )
    document = yaml.safe_load(workflow)
    assert set(document[True]["workflow_dispatch"]["inputs"]) == set(inputs_of(request))
    assert document["run-name"] == "graft ${{ inputs.graft_run }}"


def test_the_order_of_turns_is_the_one_that_is_told() -> None:
    told = [
        "merge queue's group",
        "asked for by command",
        "L1 of pull requests",
        "trunk's own runs",
        "search for a culprit",
    ]
    text = PAGE.partition("### Whose turn it is")[2].replace("\n  ", "")
    assert [text.index(word) for word in told] == sorted(text.index(word) for word in told)
    assert list(Turn) == sorted(Turn) and len(Turn) == len(told)
    assert timedelta(minutes=30) == STEP and "thirty minutes" in text


def test_the_page_is_linked() -> None:
    assert "(docs/configuration.md)" in (ROOT / "README.md").read_text("utf-8")
