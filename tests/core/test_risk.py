"""Each reason has its case, its evidence and its weight; the verdict follows from the reasons."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.config import Ingest, RiskRule
from bot.core.divergence import Divergence, FileDivergence, file_divergence
from bot.core.footprint import Footprint
from bot.core.risk import FORK_LACKS, RevertFacts, Trial, Unlanded, assess, chance_of_hand_work, verdict
from bot.core.signals import signals, specific, toolchain_pins, vanished
from bot.core.types import Reason, ReasonKind, Verdict
from bot.core.weights import SAFE_BELOW, WATCH_BELOW, WEIGHTS
from tests.core.changes import of

CLEAN = Trial("clean")
UPSTREAM = b"int lower(int value) {\n  return value;\n}\nint other() {\n  return 1;\n}\n"
MLIR = b"func.func @f() {\n  return\n}\n"
FORKED = UPSTREAM.replace(b"return value;", b"return tuned(value);")


def fork(own: dict[str, bytes] | None = None, changed: dict[str, tuple[bytes, bytes]] | None = None) -> Divergence:
    """A fork with files of its own, and with files that it has changed (upstream's text, its own)."""
    files: dict[str, FileDivergence] = {}
    for path, text in (own or {}).items():
        files[path] = file_divergence(path=path, fork=text, upstream=[])
    for path, (theirs, ours) in (changed or {}).items():
        files[path] = file_divergence(path=path, fork=ours, upstream=[theirs])
    words = {name: 1 for file in files.values() for name in file.uses or {}}
    return Divergence(files=files, words=words, size=len(files))


def found(footprint: Footprint, divergence: Divergence) -> dict[str, tuple[str, ...]]:
    return {s.name: s.evidence for s in signals(footprint, divergence)}


def edit(path: str, old: bytes | None, new: bytes | None) -> Footprint:
    return of((path, old, new))


PIN = RiskRule(name="pin", paths=("far/**",), toolchain=True)
OTHER = edit("far/Other.cpp", b"int z() {\n  return 1;\n}\n", b"int z() {\n  return 2;\n}\n")


def test_a_commit_far_from_the_fork_is_independent_and_safe() -> None:
    reasons = assess(footprint=OTHER, divergence=fork(changed={"lib/A.cpp": (UPSTREAM, FORKED)}), trial=CLEAN)
    assert [r.kind for r in reasons] == [ReasonKind.INDEPENDENT]
    assert verdict(reasons, CLEAN) is Verdict.SAFE


@pytest.mark.parametrize(
    ("footprint", "divergence", "name", "evidence"),
    [
        (
            edit("lib/A.cpp", UPSTREAM, UPSTREAM.replace(b"return value;", b"return value + 1;")),
            fork(changed={"lib/A.cpp": (UPSTREAM, FORKED)}),
            "same_symbol",
            ("lib/A.cpp: lower",),
        ),
        (
            edit("lib/A.cpp", UPSTREAM, UPSTREAM.replace(b"return 1;", b"return 2;")),
            fork(changed={"lib/A.cpp": (UPSTREAM, FORKED)}),
            "forked_file",
            ("lib/A.cpp",),
        ),
        (
            edit("pkg/__init__.py", b"import a\n", b"import a\nimport b\n"),
            fork(changed={"pkg/__init__.py": (b"import a\n", b"import a\nimport mine\n")}),
            "same_top",
            ("pkg/__init__.py",),
        ),
        (
            edit("test/a.mlir", MLIR, MLIR.replace(b"{\n", b"{\n  // CHECK: x\n")),
            fork(changed={"test/a.mlir": (MLIR, MLIR.replace(b"{\n", b"{\n  // mine\n"))}),
            "forked_test",
            ("test/a.mlir",),
        ),
        (
            edit("lib/A.cpp", UPSTREAM, b"int other() {\n  return 1;\n}\n"),
            fork(own={"tlx/Own.cpp": b"int mine() {\n  return lower(2);\n}\n"}),
            "used_gone",
            ("lower (tlx/Own.cpp:2)",),
        ),
        (
            edit("lib/A.cpp", UPSTREAM, UPSTREAM.replace(b"int lower(int value)", b"int lower(int value, int extra)")),
            fork(own={"tlx/Own.cpp": b"int mine() {\n  return lower(2);\n}\n"}),
            "used_signature",
            ("lower (tlx/Own.cpp:2)",),
        ),
        (
            edit("lib/A.cpp", UPSTREAM, UPSTREAM.replace(b"return value;", b"return value + 1;")),
            fork(own={"tlx/Own.cpp": b"int mine() {\n  return lower(2);\n}\n"}),
            "used_body",
            ("lower (tlx/Own.cpp:2)",),
        ),
        (
            edit("lib/B.cpp", b"int z() {\n  return 1;\n}\n", b"int z() {\n  return lower(1);\n}\n"),
            fork(changed={"lib/A.cpp": (UPSTREAM, UPSTREAM.replace(b"lower(int value)", b"lower(int value, Mine m)"))}),
            "refers_signature",
            ("lower (lib/A.cpp)",),
        ),
        (edit("test/unit/test_x.py", None, b"def test_x(): pass\n"), fork(), "tests", ("test/unit/test_x.py",)),
        (edit("test/unit/test_x.py", None, b"def test_x(): pass\n"), fork(), "tests_run", ("test/unit/test_x.py",)),
        (
            edit("lib/B.cpp", b"int z() {\n  return 1;\n}\n", b"int z() {\n  return lower(1);\n}\n"),
            fork(changed={"lib/A.cpp": (UPSTREAM, FORKED)}),
            "refers_changed",
            ("lower (lib/A.cpp)",),
        ),
        (
            edit("lib/B.cpp", b"int z() {\n  return 1;\n}\n", b"int z() {\n  return 2;\n}\n"),
            fork(changed={"lib/A.cpp": (UPSTREAM, FORKED)}),
            "neighbours",
            ("lib/A.cpp",),
        ),
        (of(("a.txt", b"a\n", b"b\n"), ("b.txt", b"a\n", b"b\n")), fork(), "files", ()),
        (edit("a.txt", b"a\nx\n" * 9, b"b\nx\n" * 9), fork(), "places", ()),
    ],
)  # fmt: skip
def test_each_signal_has_its_case(
    footprint: Footprint, divergence: Divergence, name: str, evidence: tuple[str, ...]
) -> None:
    assert found(footprint, divergence)[name] == evidence
    assert name in WEIGHTS


def test_a_renamed_file_is_gone_under_its_old_name() -> None:
    own = fork(own={"mine.py": b"from . import matmul_old\n"})
    assert list(vanished(of(("pkg/matmul.py", b"x = 1\n", b"x = 2\n"), moved="pkg/matmul_old.py"), own)) == [
        "matmul_old"
    ]
    assert list(vanished(edit("pkg/matmul_old.py", b"x = 1\n", None), own)) == ["matmul_old"]
    header = fork(own={"Mine.cpp": b'#include "lib/OldName.h"\n'})
    assert list(vanished(of(("lib/NewName.h", b"int a;\n", b"int a;\n"), moved="lib/OldName.h"), header)) == ["OldName"]


def test_a_word_that_stands_nowhere_else_is_gone_with_its_last_line() -> None:
    own = fork(own={"test/own.mlir": b"%1 = nvgpu.cluster_id\n"})
    renamed = edit("test/theirs.mlir", b"%1 = nvgpu.cluster_id\n", b"%1 = nvg.cluster_id\n")
    assert list(vanished(renamed, own)) == ["nvgpu.cluster_id"]
    elsewhere = Divergence(files=own.files, words={"nvgpu.cluster_id": 3}, size=10)
    assert list(vanished(renamed, elsewhere)) == []


@pytest.mark.parametrize(
    ("name", "files", "size", "expected"),
    [
        ("lowerTile", 3, 1000, True),
        ("load", 400, 1000, False),
        ("b", 1, 1000, False),
        ("__init__", 1, 1000, False),
        ("rare", 12, 20, True),
    ],
)
def test_a_name_must_be_rare_to_mean_one_thing(name: str, files: int, size: int, expected: bool) -> None:
    assert specific(name, Divergence(files={}, words={name: files}, size=size)) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("cmake/llvm-hash.txt", True), ("cmake/nvidia-toolchain-version.json", True), ("rust-toolchain.toml", True),
        ("cmake/json-version.txt", False), ("lib/llvm/Conversion.cpp", False), ("docs/cuda.md", False),
        ("cmake/LLVM_COMMIT", True), ("LLVMVersion.txt", True), ("clang-revisions.txt", True),
        ("Dialect/TritonNvidiaGPU/IR/TritonNvidiaGPUOpInterfaces.td", False),  # nvidia, and "pIn" across two words
        ("docs/chipping-in.txt", False), ("lib/CudaVersion.cpp", False),
    ],
)  # fmt: skip
def test_what_pins_a_toolchain(path: str, expected: bool) -> None:
    assert bool(toolchain_pins([path])) is expected


@pytest.mark.parametrize(
    ("given_", "kind", "result"),
    [
        ({"trial": Trial("conflict", ("a.cpp",))}, ReasonKind.CONFLICT, Verdict.CONFLICT),
        ({"trial": Trial("empty")}, ReasonKind.ALREADY_THERE, Verdict.EMPTY),
        ({"trial": Trial("empty", no_effect=True)}, ReasonKind.NO_EFFECT, Verdict.EMPTY),
        ({"revert": RevertFacts(known=False)}, ReasonKind.REVERT, Verdict.RISKY),
        ({"revert": RevertFacts(("a" * 40,), ("a" * 40,))}, ReasonKind.REVERT, Verdict.RISKY),
        ({"revert": RevertFacts(("a" * 40,))}, ReasonKind.INDEPENDENT, Verdict.SAFE),
        ({"ingest": Ingest(risk=(RiskRule(name="lib", paths=("far/**",)),))}, ReasonKind.RULE, Verdict.RISKY),
        ({"ingest": Ingest(risk=(RiskRule(name="z", symbols=("z*",)),))}, ReasonKind.RULE, Verdict.RISKY),
        ({"ingest": Ingest(risk=(PIN,))}, ReasonKind.TOOLCHAIN, Verdict.RISKY),
        ({"unlanded": Unlanded(paths={"far/Other.cpp": "b" * 40})}, ReasonKind.LEANS_ON_UNLANDED, Verdict.RISKY),
    ],
)  # fmt: skip
def test_what_history_cannot_teach_is_fixed(given_: dict[str, object], kind: ReasonKind, result: Verdict) -> None:
    trial = given_.get("trial", CLEAN)
    assert isinstance(trial, Trial)
    reasons = assess(**{"footprint": OTHER, "divergence": fork(), "trial": trial, **given_})  # type: ignore[arg-type]
    assert kind in [r.kind for r in reasons]
    assert verdict(reasons, trial) is result


@pytest.mark.parametrize(
    ("paths", "notes", "told", "evidence"),
    [
        (("a.cpp",), {}, "does not merge in a.cpp", ("a.cpp",)),
        (("a.cpp", "b.td"), {"b.td": "both added it"}, "does not merge in a.cpp and 1 more file",
         ("a.cpp", "b.td: both added it")),
        (("a", "b", "c"), {"a": FORK_LACKS}, "does not merge in a and 2 more files", (f"a: {FORK_LACKS}", "b", "c")),
        (("a", "b"), {"a": FORK_LACKS, "b": FORK_LACKS}, "changes a and 1 more file, which the fork does not hold",
         (f"a: {FORK_LACKS}", f"b: {FORK_LACKS}")),
    ],
)  # fmt: skip
def test_a_conflict_says_where(
    paths: tuple[str, ...], notes: dict[str, str], told: str, evidence: tuple[str, ...]
) -> None:
    trial = Trial("conflict", paths, notes=notes)
    first = assess(footprint=OTHER, divergence=fork(), trial=trial)[0]
    assert (first.kind, first.text, first.evidence) == (ReasonKind.CONFLICT, told, evidence)


def test_it_leans_on_what_only_an_unlanded_commit_brings() -> None:
    uses = edit("lib/B.cpp", b"int z() {\n  return 1;\n}\n", b"int z() {\n  return fresh(1);\n}\n")
    brought = Unlanded(symbols={"fresh": "c" * 40})
    (reason,) = assess(footprint=uses, divergence=fork(), trial=CLEAN, unlanded=brought)
    assert (reason.kind, reason.evidence) == (ReasonKind.LEANS_ON_UNLANDED, ("fresh (cccccccccccc)",))
    there = fork(own={"own.cpp": b"int fresh(int);\n"})
    assert assess(footprint=uses, divergence=there, trial=CLEAN, unlanded=brought)[0].kind is ReasonKind.INDEPENDENT
    by_words = assess(footprint=uses, divergence=fork(), trial=CLEAN, upstream_words={"fresh"})
    assert by_words[0].kind is ReasonKind.LEANS_ON_UNLANDED
    prose = edit("README.md", b"old\n", b"fresh words\n")
    assert assess(footprint=prose, divergence=fork(), trial=CLEAN, upstream_words={"fresh"})[0].weight == 0


def test_what_is_unreadable_or_too_large_is_never_safe() -> None:
    broken = assess(footprint=edit("a.cpp", None, b"}}}} ((( class \n" * 40), divergence=fork(), trial=CLEAN)
    assert ReasonKind.UNPARSABLE in [r.kind for r in broken]
    assert verdict(broken, CLEAN) is not Verdict.SAFE
    many = of(*((f"f{n}.txt", b"a\n", b"b\n") for n in range(3)))
    few = assess(footprint=many, divergence=fork(), trial=CLEAN)
    assert verdict(few, CLEAN) is Verdict.SAFE
    large = assess(footprint=many, divergence=fork(), trial=CLEAN, ingest=Ingest(max_files=2))
    assert large[0].kind is ReasonKind.TOO_LARGE
    assert verdict(large, CLEAN) is not Verdict.SAFE


@pytest.mark.parametrize(
    ("path", "old", "new", "own", "counts"),
    [
        ("lib/A.h", b"#define MAX_TILES 4\n", b"#define MAX_TILES 8\n", b"int mine = MAX_TILES;\n", True),
        ("lib/A.h", b"constexpr int maxTiles = 4;\n", b"constexpr int maxTiles = 8;\n", b"int m = maxTiles;\n", True),
        ("lib/A.h", b"enum E { FIRST = 1 };\n", b"enum E { FIRST = 2 };\n", b"int m = FIRST;\n", True),
        ("lib/A.h", b"#define MAX_TILES 4\n", b"#define MAX_TILES 8\n", b"int m = OTHER;\n", False),
        ("lib/A.h", b"int tiles() { return 4; }\n", b"int tiles() { return 8; }\n", b"int m = tiles();\n", False),
        ("lib/A.h", b"", b"#define MAX_TILES 8\n", b"int mine = MAX_TILES;\n", False),
    ],
)  # fmt: skip
def test_another_value_of_what_the_fork_uses_is_worth_watching(
    path: str, old: bytes, new: bytes, own: bytes, counts: bool
) -> None:
    reasons = assess(footprint=edit(path, old, new), divergence=fork(own={"tlx/own.cpp": own}), trial=CLEAN)
    said = [r for r in reasons if r.text == "changes the value of what the fork's own code uses"]
    assert bool(said) is counts
    assert (verdict(reasons, CLEAN) is not Verdict.SAFE) is counts
    if counts:
        assert said[0].evidence[0].endswith("(tlx/own.cpp:1)")


def test_a_constant_of_python_counts_in_a_module_and_in_a_class() -> None:
    for old, own in ((b"WARPS = 4\n", b"n = WARPS\n"), (b"class C:\n    WARPS = 4\n", b"n = f'{C.WARPS}'\n")):
        changed = edit("lib/a.py", old, old.replace(b"4", b"8"))
        reasons = assess(footprint=changed, divergence=fork(own={"tlx/own.py": own}), trial=CLEAN)
        assert verdict(reasons, CLEAN) is not Verdict.SAFE


WEIGHTED = st.lists(st.floats(0, 1), max_size=6)


@settings(deadline=None)
@given(WEIGHTED, st.floats(0, 1))
def test_one_more_reason_never_makes_it_safer(weights: list[float], more: float) -> None:
    reasons = [Reason(ReasonKind.FORKED_FILE, "x", (), weight) for weight in weights]
    chance = chance_of_hand_work(reasons)
    with_more = chance_of_hand_work([*reasons, Reason(ReasonKind.FORKED_TEST, "y", (), more)])
    assert 0 <= chance <= with_more <= 1
    order = [Verdict.SAFE, Verdict.WATCH, Verdict.RISKY]
    assert order.index(verdict(reasons, CLEAN)) == (chance >= SAFE_BELOW) + (chance >= WATCH_BELOW)


def test_size_alone_is_worth_watching_and_never_risky() -> None:
    large = [Reason(ReasonKind.EXTENT, "x", (), 0.3), Reason(ReasonKind.EXTENT, "y", (), 0.3)]
    assert verdict(large, CLEAN) is Verdict.WATCH
    assert verdict([*large, Reason(ReasonKind.FORKED_FILE, "z", (), WATCH_BELOW)], CLEAN) is Verdict.RISKY


def test_reasons_come_heaviest_first() -> None:
    value = of(
        ("lib/A.cpp", UPSTREAM, UPSTREAM.replace(b"return value;", b"return value + 1;")),
        ("test/x.mlir", b"", b"func.func @f() {\n return\n}\n"),
    )
    reasons = assess(footprint=value, divergence=fork(changed={"lib/A.cpp": (UPSTREAM, FORKED)}), trial=CLEAN)
    assert len(reasons) >= 2
    assert [r.weight for r in reasons] == sorted((r.weight for r in reasons), reverse=True)
