"""The fork: its own commits, the picks that its people made by hand, and its `.github/graft.yml`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from bot.sandbox.sample import fork_tlx as tlx
from bot.sandbox.sample import upstream_early as early
from bot.sandbox.sample.edits_backlog import EMPTY_FUNCTION, WARPS
from bot.sandbox.sample.history import Change, Edit, at, overwrite, remove, replace, write
from bot.sandbox.sample.people import JONAS, LEO, MIA, PRIYA, WEN

GRAFT_YML = """
# What Graft does for this fork. See the project's documentation for each key.
upstream: {repository: acme/tilec, branch: main}
fork: {branch: main}
mode: act
default_owner: acme-fork/compiler

ingest:
  every: 30m
  stale_after: 12h
  bundle: {max_commits: 8, max_files: 40, watch_max_commits: 4}
  caps: {open_bundles: 6, open_chains: 6, pull_requests_per_day: 40}
  skip: [".github/**"]
  picked_markers: ['Upstream-Revision: (?P<sha>[0-9a-f]{40})']
  risk:
    - {name: llvm-bump, paths: ["cmake/llvm-*"], levels: [l1, l2, l3], areas: [core], toolchain: true}
    - {name: pipelining, paths: [tilec/passes/pipeline.py], levels: [l1, l2, l3], areas: [core]}
    - {name: shared-memory, symbols: [SHARED_BYTES], levels: [l1], areas: [tlx]}
    - {name: layout-api, symbols: ["*_layout"], levels: [l1, l2], areas: [layouts, tlx]}

areas:
  core:
    paths: [tilec/**, tests/**, tools/**, cmake/**, conftest.py, pyproject.toml]
    owners: [jonas-lind, acme-fork/compiler]
    suites: [unit, unit-full, compiler-metrics, ranking-model]
  layouts:
    paths: [tilec/passes/layout.py, tests/unit/test_layout*.py]
    symbols: ["*_layout", "choose_*"]
    owners: [wen-zhao]
    suites: [unit]
  kernels:
    paths: [tilec/kernels/**, tests/kernels/**]
    owners: [wen-zhao, jonas-lind]
    suites: [kernel-compile]
  tlx:
    paths: [third_party/tlx/**, tests/lit/tlx_*]
    owners: [priya-raman, acme-fork/tlx]
    suites: [tlx]

validation:
  l1:
    - {suite: unit, harness: pytest, run: [python, -m, pytest, tests/unit], runner: [default], area: core, timeout: 5m}
    - {suite: tlx, harness: pytest, run: [python, -m, pytest, third_party/tlx/tests], runner: [default], area: tlx,
       timeout: 5m}
    - {suite: kernel-compile, harness: command, runner: [default], area: kernels, timeout: 10m,
       run: [python, tools/compile_kernels.py, tilec/kernels, third_party/tlx/kernels]}
  l2:
    - {suite: unit-full, harness: pytest, run: [python, -m, pytest, tests/unit, third_party/tlx/tests],
       runner: [default], area: core, timeout: 10m}
    - {suite: compiler-metrics, harness: command, run: [python, tools/measure.py], runner: [default], area: core,
       timeout: 5m, metrics: [compile_ms, ops_after_passes, llvm_lines],    # what takes milliseconds is only told
       budget: {kernels: {ops_after_passes: {regression: 0%}, llvm_lines: {regression: 100%}}}}
  l3:
    - {suite: ranking-model, area: core, metrics: [ne, qps], manual: true}

gate:
  require_signoff_from: []    # the risk rules say whose sign-off a risky change needs
  self_signoff: false
  levels: [l1]
  trunk_red_blocks: [core]
  rules:
    - {paths: [tilec/passes/layout.py], levels: [l1], areas: [layouts]}
"""

CODEOWNERS = """
# The fork's own: upstream's people are not asked here.
*                          @acme-fork/compiler
/tilec/passes/layout.py    @wen-zhao
/tilec/kernels/            @wen-zhao @jonas-lind
/third_party/tlx/          @acme-fork/tlx
/docs/
"""

OWN_WIDTH = (
    replace(
        "tilec/passes/layout.py",
        """
    width = 16 // ELEMENT_BYTES[kind.element]
    while width > 1 and kind.numel % (width * 32):
        width //= 2
    return width
""",
        """
    width = 32 // ELEMENT_BYTES[kind.element] if kind.numel >= 4096 else 16 // ELEMENT_BYTES[kind.element]
    while width > 1 and kind.numel % (width * 32):
        width //= 2
    return width
""",
    ),
    replace(
        "tests/unit/test_layout.py",
        '("tensor<64xf16>", 2)]',
        '("tensor<64xf16>", 2), ("tensor<4096xf32>", 8)]',
    ),
    replace(
        "tests/unit/test_layout.py",
        """
    ("text", "width"), [(""",
        """
    ("text", "width"),
    [(""",
    ),
)

REGISTER = (
    replace(
        "tilec/passes/__init__.py",
        """
from tilec.passes.pipeline import pipeline
""",
        """
from tilec.passes.pipeline import pipeline
from third_party.tlx.barriers import tlx_barriers
""",
    ),
    replace(
        "tilec/passes/__init__.py",
        """
    "pipeline": pipeline,
""",
        """
    "pipeline": pipeline,
    "tlx-barriers": tlx_barriers,
""",
    ),
)

ON_TRACE = (
    replace(
        "tilec/frontend/trace.py",
        '''
def kernel(**types):
    """`@kernel(x="tensor<128xf32>")`: the decorated function becomes its IR."""
''',
        '''
HOOKS = []


def kernel(**types):
    """`@kernel(x="tensor<128xf32>")`: the decorated function becomes its IR; each of HOOKS sees it."""
''',
    ),
    replace(
        "tilec/frontend/trace.py",
        """
        tracer.fn.body.append(Op("tile.return", [result.value]))
""",
        """
        tracer.fn.body.append(Op("tile.return", [result.value]))
        for hook in HOOKS:
            hook(tracer.fn)
""",
    ),
)

DCE_UNDO = (
    replace(
        "tilec/passes/dce.py",
        """
    return op.name not in EFFECTS and not op.attrs.get("volatile") and not fn.uses(op.result)
""",
        """
    return op.name not in EFFECTS and not fn.uses(op.result)
""",
    ),
)

DCE_BARRIER = (
    replace("tilec/passes/dce.py", '{"tile.store", "tile.return"}', '{"tile.store", "tile.return", "tlx.barrier"}'),
)

TLX_FILES: tuple[Edit, ...] = (
    write("third_party/__init__.py", '"""What the fork brings along."""\n'),
    write("third_party/tlx/__init__.py", tlx.INIT),
    write("third_party/tlx/memory.py", tlx.MEMORY),
    write("third_party/tlx/layouts.py", tlx.LAYOUTS),
    write("third_party/tlx/tests/test_tlx_memory.py", tlx.TEST_MEMORY),
    write("third_party/tlx/tests/test_tlx_layouts.py", tlx.TEST_LAYOUTS),
)


def fork_changes(upstream: Mapping[str, Change]) -> tuple[Change, ...]:
    """The fork's commits after the common base; picks take author and date from the upstream change of that role."""

    def pick(role: str, edits: tuple[Edit, ...], trailer: str, *, committed: datetime, name: str = "") -> Change:
        source = upstream[role]
        return Change(
            source.message.rstrip("\n") + "\n\n" + trailer.format(sha=f"{{sha:{role}}}") + "\n",
            source.author,
            source.when,
            edits,
            name or f"fork_pick:{role}",
            committer=JONAS,
            committed=committed,
        )

    picked = "(cherry picked from commit {sha})"
    marker = "Upstream-Revision: {sha}"
    return (
        Change("Bring TLX: rings and layouts\n", PRIYA, at(11, 2, 8), TLX_FILES, "fork_tlx"),
        Change(
            "The fork's own file and owners\n",
            MIA,
            at(11, 2, 10),
            (write(".github/graft.yml", GRAFT_YML), overwrite(".github/CODEOWNERS", CODEOWNERS)),
            "fork_config",
        ),
        pick("fold_sub", early.FOLD_SUB_SELF, picked, committed=at(11, 3, 9)),
        pick("stable_attrs", early.STABLE_ATTRS, picked, committed=at(11, 3, 10)),
        pick("document_layouts", early.DOCUMENT_LAYOUTS, marker, committed=at(11, 4, 9), name="fork_old_marker"),
        Change(
            "No nightly run here\n\nThe fork has its own machines.\n",
            MIA,
            at(11, 4, 10),
            (remove(".github/workflows/nightly.yml"),),
            "fork_deletes_workflow",
        ),
        Change(
            "layout: load 32 bytes at once from large tiles\n\nOur machines have wider loads.\n",
            WEN,
            at(11, 4, 15),
            OWN_WIDTH,
            "fork_diverges_layout",
        ),
        pick("check_extents", early.CHECK_EXTENTS, picked, committed=at(11, 5, 9)),
        pick("numel", early.NUMEL, picked, committed=at(11, 5, 10)),
        Change(
            "Barriers for TLX, and the pass that places them\n",
            PRIYA,
            at(11, 5, 16),
            (
                write("third_party/tlx/barriers.py", tlx.BARRIERS),
                write("third_party/tlx/tests/test_tlx_barriers.py", tlx.TEST_BARRIERS),
                write("third_party/tlx/kernels/persistent_sum.py", tlx.KERNEL_RING),
                write("third_party/tlx/kernels/__init__.py", '"""TLX kernels."""\n'),
                write("tests/lit/tlx_barrier.mlir", tlx.LIT_BARRIER),
                *REGISTER,
                *DCE_BARRIER,
            ),
            "fork_registers",
        ),
        pick("picked_then_reverted", early.DCE_EFFECTS, picked, committed=at(11, 6, 9)),
        pick("gfx950", early.GFX950, picked, committed=at(11, 6, 10)),
        Change(
            "Delete legacy_copy\n\nNobody here runs the old benchmarks.\n",
            WEN,
            at(11, 6, 14),
            (remove("tilec/kernels/legacy_copy.py"),),
            "fork_deletes_file",
        ),
        Change(
            "Sync: uses by identity, errors with lines\n\n"
            "Look uses up by identity (#109)\n\n(cherry picked from commit {sha:fast_uses})\n\n"
            "Parser: name the line of an error (#110)\n\n(cherry picked from commit {sha:parse_lines})\n",
            JONAS,
            at(11, 7, 9),
            early.FAST_USES + early.PARSE_LINES,
            "fork_squash",
        ),
        Change(
            'Revert "dce: keep volatile operations (#107)"\n\n'
            "This reverts commit {fork:fork_pick:picked_then_reverted}.\n\nMailbox loads of TLX were kept for ever.\n",
            PRIYA,
            at(11, 9, 13),
            DCE_UNDO,
            "fork_revert",
        ),
        Change("Count warps without the odd one\n\nFound by the ring tests.\n", LEO, at(11, 10, 9), WARPS, "fork_fix"),
        Change("frontend: hooks that see what was traced\n", WEN, at(11, 12, 11), ON_TRACE, "fork_hooks"),
        pick("isolated_pick", EMPTY_FUNCTION, picked, committed=at(11, 16, 9), name="fork_isolated"),
        Change(
            "tlx: say in the docs what a ring is\n",
            PRIYA,
            at(11, 18, 10),
            (
                write(
                    "third_party/tlx/README.md", "\n# TLX\n\nA ring is a row of buffers that two sides go around in.\n"
                ),
            ),
            "fork_docs",
        ),
    )
