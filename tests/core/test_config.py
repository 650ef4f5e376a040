from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bot.core.config import ACTIONS, Config, ConfigError, Suite, load
from bot.core.strict_yaml import MAX_BYTES, YamlError, load_yaml
from bot.core.types import Level, Mode

GOOD = """\
upstream: {repository: triton-lang/triton, branch: main}
fork: {branch: main}
mode: propose
ingest:
  every: 30m
  bundle: {max_commits: 25, max_files: 150}
  risk:
    - {name: llvm-bump, paths: [cmake/llvm-*], levels: [l1, l2, l3]}
    - {name: layouts, symbols: ["*LinearLayout*"], areas: [tlx]}
  skip: [".github/**"]
  picked_markers: ['Reactor Backport Revision: (?P<sha>[0-9a-f]{40})']
areas:
  tlx:    {paths: [third_party/tlx/**], owners: [octocat, my-org/tlx], suites: [tlx-kernels]}
  core:   {paths: [lib/**], owners: ["@octocat"]}
  recsys: {owners: [my-org/recsys]}
validation:
  l1:
    - {suite: unit, harness: pytest, run: [python, -m, pytest], runner: [gpu, h100], area: core, timeout: 30m}
    - {suite: tlx-kernels, harness: kernels, area: tlx}
  l2:
    - {suite: gemm-sweep, harness: bench, run: [bench], runner: [gpu], area: core,
       budget: {default: {regression: 3%}, kernels: {fa_fwd: {regression: 1%, p95: 2%}}}}
  l3:
    - {suite: ranking-model, area: recsys, metrics: [ne, qps], manual: true}
gate: {require_signoff_from: [area], self_signoff: false}
"""


def test_the_sketch_of_the_design_loads() -> None:
    config = load(GOOD)
    assert config.mode is Mode.PROPOSE
    assert config.ingest.every == timedelta(minutes=30)
    sweep = config.validation.l2[0].budget
    assert sweep.of("gemm").regression == pytest.approx(0.03)
    assert sweep.of("fa_fwd").regression == pytest.approx(0.01)
    assert sweep.of("fa_fwd").p95 == pytest.approx(0.02)
    assert config.gate.levels == (Level.L1,)


def test_the_smallest_file_loads() -> None:
    assert load("upstream: {repository: a/b}").fork.branch == "main"


WRONG: list[tuple[str, str, int, str, str]] = [
    # what, in place of what, line, path, what the message holds
    ("timeout: 30m}", "timeuot: 30m}", 18, "validation.l1[0].timeuot", "did you mean timeout?"),
    ("mode: propose", "mdoe: propose", 3, "mdoe", "did you mean mode?"),
    ("mode: propose", "mode: propos", 3, "mode", "did you mean propose?"),
    ("every: 30m", "every: soon", 5, "ingest.every", "no duration"),
    ("regression: 3%", "regression: 3 percent", 22, "validation.l2[0].budget.default.regression", "no percentage"),
    ("regression: 3%", "regression: -3", 22, "validation.l2[0].budget.default.regression", "greater than"),
    ("max_commits: 25", "max_commits: 0", 6, "ingest.bundle.max_commits", "greater than"),
    ("max_commits: 25", "max_commits: many", 6, "ingest.bundle.max_commits", "integer"),
    ("name: llvm-bump", "name: LLVM bump", 8, "ingest.risk[0].name", "pattern"),
    ("name: llvm-bump", "name: layouts", 9, "ingest.risk[1].name", "stands twice"),
    ("paths: [cmake/llvm-*], levels", "levels", 8, "ingest.risk[0]", "hits nothing"),
    ("levels: [l1, l2, l3]", "levels: [l1, l4]", 8, "ingest.risk[0].levels[1]", "known: l1, l2, l3"),
    ("areas: [tlx]", "areas: [tlxx]", 9, "ingest.risk[1].areas[0]", "did you mean tlx?"),
    ('skip: [".github/**"]', 'skip: ["a[b"]', 10, "ingest.skip[0]", "without ]"),
    ('skip: [".github/**"]', "skip: 3", 10, "ingest.skip", "no list"),
    (
        'skip: [".github/**"]',
        "pins: {cmake/llvm-hash.txt: upsteam}",
        10,
        "ingest.pins.cmake/llvm-hash.txt",
        "did you mean upstream?",
    ),
    ('skip: [".github/**"]', 'pins: {"a[b": fork}', 10, "ingest.pins.a[b", "without ]"),
    ('skip: [".github/**"]', 'pins: {"!a": fork}', 10, "ingest.pins.!a", "not excepted"),
    ("(?P<sha>[0-9a-f]{40})", "([0-9a-f]{40})", 11, "ingest.picked_markers[0]", "no group named sha"),
    ("(?P<sha>[0-9a-f]{40})", "(?P<sha>[0-9a-f]{40}", 11, "ingest.picked_markers[0]", "no regular expression"),
    ("Reactor Backport", "x" * 600, 11, "ingest.picked_markers[0]", "longer than"),
    ("suites: [tlx-kernels]", "suites: [tlx-kernel]", 13, "areas.tlx.suites[0]", "did you mean tlx-kernels?"),
    ("owners: [octocat,", "owners: ['oc to',", 13, "areas.tlx.owners[0]", "names nobody"),
    ("paths: [third_party/tlx/**]", "paths: [../tlx]", 13, "areas.tlx.paths[0]", "without . and .."),
    ("area: core, timeout", "area: cora, timeout", 18, "validation.l1[0].area", "did you mean core?"),
    ("suite: tlx-kernels, ", "suite: unit, ", 19, "validation.l1[1].suite", "stands twice"),
    ("suite: unit,", "suite: a b,", 18, "validation.l1[0].suite", "pattern"),
    ("harness: bench", "harness: bensh", 21, "validation.l2[0].harness", "did you mean bench?"),
    ("harness: kernels, ", "harness: kernels, manual: true, ", 19, "validation.l1[1].manual", "only L3"),
    ("harness: kernels, ", "harness: http, ", 19, "validation.l1[1].harness", "needs a lab"),
    (
        "harness: kernels, ",
        "harness: kernels, lab: {url: https://lab.example}, ",
        19,
        "validation.l1[1].lab",
        "a lab runs nothing for harness kernels",
    ),
    (
        "harness: kernels, ",
        "harness: http, lab: {url: http://lab.example}, ",
        19,
        "validation.l1[1].lab.url",
        "can be read on the way",
    ),
    (
        "harness: kernels, ",
        "harness: http, lab: {url: 'https://me:x@lab.example'}, ",
        19,
        "validation.l1[1].lab.url",
        "is no lab's address",
    ),
    (
        "harness: kernels, ",
        "harness: http, lab: {url: 'https://[x'}, ",
        19,
        "validation.l1[1].lab.url",
        "is no lab's address",
    ),
    (
        "harness: kernels, ",
        "harness: http, lab: {url: https://lab.example, pol: 3s}, ",
        19,
        "validation.l1[1].lab.pol",
        "did you mean poll?",
    ),
    (
        "harness: kernels, ",
        "harness: http, lab: {url: https://lab.example, poll: 0s}, ",
        19,
        "validation.l1[1].lab.poll",
        "no time at all",
    ),
    (
        "harness: kernels, ",
        "harness: http, build: [make], lab: {url: https://lab.example}, ",
        19,
        "validation.l1[1].build",
        "builds what it runs itself",
    ),
    (
        "harness: kernels, ",
        "harness: kernels, second: {}, ",
        19,
        "validation.l1[1].second",
        "nothing says where or how",
    ),
    (
        "harness: kernels, ",
        "harness: kernels, second: {runner: [default]}, ",
        19,
        "validation.l1[1].second.runner",
        "the pool that proves it already",
    ),
    (
        "harness: kernels, ",
        "harness: kernels, second: {runner: [a], workflow: a.yml}, ",
        19,
        "validation.l1[1].second",
        "two capacities",
    ),
    (
        "harness: kernels, ",
        "harness: kernels, second: {workflow: ../a.yml}, ",
        19,
        "validation.l1[1].second.workflow",
        "pattern",
    ),
    (
        "harness: kernels, ",
        "harness: kernels, second: {workflow: a.yml, run: [x]}, ",
        19,
        "validation.l1[1].second",
        "says itself what it runs",
    ),
    (
        "harness: kernels, ",
        "harness: kernels, second: {runner: [a], ref: main}, ",
        19,
        "validation.l1[1].second.ref",
        "only a workflow",
    ),
    (
        "harness: kernels, ",
        "harness: kernels, second: {harness: lit}, ",
        19,
        "validation.l1[1].second.run",
        "runs nothing by itself",
    ),
    (
        "harness: kernels, ",
        "harness: kernels, second: {runner: [a], run: [x]}, ",
        19,
        "validation.l1[1].second.run",
        "no harness says",
    ),
    (
        "harness: kernels, ",
        "harness: kernels, second: {harness: http}, ",
        19,
        "validation.l1[1].second.harness",
        "suite of its own",
    ),
    (
        "harness: kernels, ",
        "harness: kernels, second: {runer: [a]}, ",
        19,
        "validation.l1[1].second.runer",
        "did you mean runner?",
    ),
    (
        "harness: kernels, ",
        "harness: kernels, runner: ['github-actions:a.yml'], ",
        19,
        "validation.l1[1].runner[0]",
        "holds a colon",
    ),
    ("suite: ranking-model, area: recsys", "suite: ranking-model", 24, "validation.l3[0]", "nobody signs"),
    ("runner: [gpu],", "runner: [],", 21, "validation.l2[0].runner", "label"),
    ("[area], self", "[tlxx], self", 25, "gate.require_signoff_from[0]", "did you mean tlx?"),
    ("self_signoff: false", "trunk_red_blocks: [nope]", 25, "gate.trunk_red_blocks[0]", "there is no area"),
    ("self_signoff: false", "rules: [{paths: [a], areas: [x]}]", 25, "gate.rules[0].areas[0]", "no area 'x'"),
    ("self_signoff: false", "rules: [{areas: [tlx]}]", 25, "gate.rules[0].paths", "is missing"),
    ("repository: triton-lang/triton", "repository: triton", 1, "upstream.repository", "owner/name"),
    ("branch: main}\nmode", "branch: refs/heads/main}\nmode", 2, "fork.branch", "refs/heads"),
    ("fork: {branch: main}", "fork: main", 2, "fork", "its keys: branch"),
    ("fork: {branch: main}", "fork: {branch: 3}", 2, "fork.branch", "in quotes"),
    ("fork: {branch: main}", "fork: {branch: main, branch: x}", 2, "fork.branch", "stands twice"),
    ("fork: {branch: main}", "default_owner: 'a b'", 2, "default_owner", "names nobody"),
    ("fork: {branch: main}", "on: 3", 2, "the file", "put it in quotes"),
    ("fork: {branch: main}", "fork: !!python/name:os.system {}", 2, "fork", "tag"),
    ("mode: propose", "mode: !!binary aGk=", 3, "mode", "tag"),
    ("mode: propose", "mode: 2026-13-45", 3, "mode", "can't be read"),
    ('symbols: ["*LinearLayout*"]', "symbols: [' ']", 9, "ingest.risk[1].symbols[0]", "hits nothing"),
    ("bundle: {max_commits: 25, max_files: 150}", "bundle: 25", 6, "ingest.bundle", "its keys: max_commits"),
    ("areas:\n", "areas:\n  bad name: {paths: [x]}\n", 13, "areas.bad name", "/signoff"),
    ("areas:\n", "areas:\n  empty: {}\n", 13, "areas.empty", "nothing belongs"),
]


@pytest.mark.parametrize(("old", "new", "line", "path", "says"), WRONG)
def test_each_fault_is_named(old: str, new: str, line: int, path: str, says: str) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        load(GOOD.replace(old, new, 1))
    hits = [problem for problem in caught.value.problems if problem.path == path.replace("the file", "")]
    assert hits, caught.value.problems
    assert (hits[0].line, says in str(hits[0])) == (line, True), hits[0]
    assert str(hits[0]).startswith(f"line {line}: {path}: ")


def test_a_suite_as_it_runs_a_second_time() -> None:
    def again(second: str) -> Suite:
        text = GOOD.replace(
            "harness: kernels, ", f"harness: kernels, env: {{A: '1'}}, canary: c, second: {{{second}}}, "
        )
        suite = load(text).validation.l1[1]
        assert suite.once().second is None
        assert suite.once() == suite.model_copy(update={"second": None})
        found = suite.again()
        assert found is not None and found.second is None
        return found

    pool = again("runner: [mi350], env: {B: '2'}")
    assert (pool.runner, pool.harness, pool.env, pool.canary) == (("mi350",), "kernels", {"A": "1", "B": "2"}, "c")
    flow = again("workflow: gpu.yml, ref: ci")
    assert flow.runner == (f"{ACTIONS}gpu.yml",)
    other = again("harness: lit, run: [lit, tests]")
    assert (other.harness, other.run, other.runner, other.canary) == ("lit", ("lit", "tests"), ("default",), None)
    assert load(GOOD).validation.l1[1].again() is None


def test_all_faults_are_told_at_once_in_order() -> None:
    text = GOOD.replace("every: 30m", "every: x").replace("mode: propose", "mode: x").replace("timeout", "timeuot")
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert [problem.line for problem in caught.value.problems] == [3, 5, 18]


def test_an_area_that_must_sign_needs_somebody_who_can() -> None:
    text = GOOD.replace("owners: [octocat, my-org/tlx], ", "")
    with pytest.raises(ConfigError, match="nobody could sign off tlx"):
        load(text)
    assert load("default_owner: octocat\n" + text).default_owner == "octocat"


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "[]", "just text", "a: [", "\x00", "[" * 5000, "a: b: c", "--- a\n--- b\n", "\t"]
)
def test_what_is_no_mapping_is_told(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert caught.value.problems[0].line >= 1


def test_bombs_and_huge_files_are_refused() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
    )
    with pytest.raises(ConfigError, match="too large once its aliases"):
        load(bomb)
    with pytest.raises(ConfigError, match="aliases"):
        load("a: &a [*a]")
    with pytest.raises(ConfigError, match="larger than 256 KiB"):
        load("#" * (MAX_BYTES + 1))


def test_aliases_within_reason_are_read() -> None:
    document = load_yaml("a: &x {k: [1, 2]}\nb: *x\n")
    assert document.data == {"a": {"k": [1, 2]}, "b": {"k": [1, 2]}}
    assert document.line(("b", "k", 1, "deeper")) == 1


@given(st.text(max_size=120))
def test_any_text_is_loaded_or_told(text: str) -> None:
    try:
        load(text)
    except ConfigError as error:
        assert error.problems


KEYS = st.sampled_from(
    ["upstream", "repository", "fork", "areas", "validation", "l1", "suite", "gate", "rules", "paths", "x"]
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.text(max_size=5), st.dates(), st.just("a/b")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_any_structure_is_loaded_or_told_with_a_line_of_the_file(data: dict[str, Any]) -> None:
    text = yaml.safe_dump({"upstream": {"repository": "a/b"}} | data)
    try:
        assert isinstance(load(text), Config)
    except ConfigError as error:
        lines = text.count("\n") + 1
        assert all(1 <= problem.line <= lines and problem.text for problem in error.problems)


@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=5))
def test_strict_yaml_reads_what_safe_yaml_reads(data: dict[str, Any]) -> None:
    text = yaml.safe_dump(data, allow_unicode=True)
    try:
        assert load_yaml(text).data == yaml.safe_load(text)
    except YamlError:
        pytest.fail(f"refused {text!r}")
