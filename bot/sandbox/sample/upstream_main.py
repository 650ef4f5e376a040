"""Upstream's backlog, stage one: what the fork has not decided on when the story begins."""

from __future__ import annotations

from bot.sandbox.sample import edits_backlog as edits
from bot.sandbox.sample import edits_kernels as kernels
from bot.sandbox.sample import edits_lowering as lowering
from bot.sandbox.sample import edits_pipeline as pipeline
from bot.sandbox.sample.history import Change, append, at, write
from bot.sandbox.sample.people import INES, KENJI, OLU, RAVI, UPSTREAM_BOT, ZOFIA

CHANGELOG = Change(
    "Start a changelog\n",
    ZOFIA,
    at(11, 17, 9),
    (write("CHANGES.md", "\n# Changes\n\n## 0.5\n\n- hip:gfx950\n- errors name their line\n"),),
)

CHANGELOG_MORE = Change(
    "Changelog: the renamed pass\n",
    ZOFIA,
    at(11, 17, 10),
    (append("CHANGES.md", "- cse lives in tilec.passes.common_subexpr\n"),),
)


MAIN: tuple[Change, ...] = (
    Change("pipeline: collect loads into stages (#111)\n", INES, at(11, 6, 15), pipeline.STAGE, "chain_1"),
    Change("Mend a sentence in the README (#112)\n", ZOFIA, at(11, 7, 9), edits.README_TYPO, "docs_readme"),
    Change("Fold multiplication by one (#113)\n", KENJI, at(11, 7, 14), edits.MUL_ONE, "fold_mul"),
    Change("pipeline: count the bytes of a stage (#114)\n", INES, at(11, 9, 9), pipeline.BYTES, "chain_2"),
    Change("Count warps without the odd one (#115)\n", OLU, at(11, 9, 11), edits.WARPS, "already_there"),
    Change("ci: start the nightly run later (#116)\n", RAVI, at(11, 9, 16), edits.NIGHTLY_TIME, "ci_deleted_file"),
    Change("legacy_copy: larger blocks (#117)\n", OLU, at(11, 10, 9), kernels.LEGACY, "fork_deleted_file"),
    Change("Rename cse.py to common_subexpr.py (#118)\n", KENJI, at(11, 10, 13), edits.RENAME_CSE, "renamed_file"),
    Change("softmax: one division a row (#119)\n", OLU, at(11, 10, 17), kernels.SOFTMAX, "softmax"),
    Change(
        "layout: choose the vector width by the last extent (#120)\n\n"
        "A row that does not divide made threads straddle.\n",
        INES,
        at(11, 11, 10),
        edits.VECTOR_WIDTH,
        "conflict",
    ),
    Change(
        "Bump LLVM to 9b47d03a6e1c (#121)\n\nPointers are opaque now: `typed_ptr` is gone, use `opaque_ptr`.\n",
        RAVI,
        at(11, 11, 15),
        lowering.PIN_BUMP,
        "pin_bump",
    ),
    Change("pipeline: as many stages as fit (#122)\n", INES, at(11, 12, 9), pipeline.FIT, "chain_3"),
    Change("lower: name vector types (#123)\n", KENJI, at(11, 12, 11), lowering.VECTORIZE, "reverted"),
    Change("cse: compare all attributes (#124)\n", KENJI, at(11, 12, 16), edits.CSE_ATTRS, "edit_in_renamed_file"),
    Change(
        "Parse constants with spaces about them (#125)\n\n"
        "Fixes #12\n\nReported by @somebody in acme/tilec#88, thanks.\n",
        KENJI,
        at(11, 13, 9),
        edits.NEGATIVE,
        "mentions",
    ),
    Change(
        'Revert "lower: name vector types (#123)" (#126)\n\nThis reverts commit {sha:reverted}.\n\n'
        "Reason: three-element tiles were lowered to scalars.\n",
        RAVI,
        at(11, 13, 11),
        lowering.UNVECTORIZE,
        "revert",
    ),
    Change(
        "layout: infer_layout is called assign_layout (#127)\n\n"
        "It assigns; inference comes later, with a pass of its own.\n",
        INES,
        at(11, 13, 15),
        edits.RENAME_API,
        "rename_api",
    ),
    Change("docs: an example for fold (#128)\n", ZOFIA, at(11, 14, 9), edits.DOCS_PASSES, "docs_only"),
    Change("Start the nightly run again (#129)\n\nNothing changed.\n", RAVI, at(11, 14, 10), (), "empty"),
    Change("Print a function without a body (#130)\n", KENJI, at(11, 14, 12), edits.EMPTY_FUNCTION, "isolated_pick"),
    Change("Add the pass reassociate (#131)\n", INES, at(11, 15, 9), edits.REGISTER_REASSOCIATE, "mechanical_conflict"),
    Change("target: waves of blocks (#132)\n", OLU, at(11, 15, 14), edits.NUM_SMS, "waves"),
    Change("lower: buffers in shared memory (#133)\n", RAVI, at(11, 16, 10), lowering.PIN_DEPENDENT, "pin_dependent"),
    Change(
        "Merge pull request #134 from acme/changelog\n\nStart a changelog\n",
        ZOFIA,
        at(11, 17, 12),
        (),
        "merge",
        committer=UPSTREAM_BOT,
        side=(CHANGELOG, CHANGELOG_MORE),
    ),
    Change("pipeline: say how far ahead to load (#135)\n", INES, at(11, 17, 15), pipeline.PREFETCH, "chain_4"),
    Change(
        "target: leave the driver its kilobyte of shared memory (#136)\n",
        OLU,
        at(11, 18, 9),
        edits.RESERVE,
        "breaks_fork_test",
    ),
    Change("ir: tell which buffers can be reused (#137)\n", KENJI, at(11, 18, 11), edits.REUSE, "backed_out"),
    Change("A lit test for dce (#138)\n", KENJI, at(11, 18, 16), edits.LIT_DCE, "lit_dce"),
    Change(
        "Back out reusable buffers (#139)\n\nThis backs out #137: two readers in one loop were missed.\n",
        INES,
        at(11, 19, 9),
        edits.NO_REUSE,
        "back_out",
    ),
    Change(
        'Reland "lower: name vector types" (#140)\n\nFirst landed as #123 ({sha:reverted}), reverted in #126. '
        "Tiles of three elements are scalars on purpose.\n",
        KENJI,
        at(11, 19, 14),
        lowering.VECTORIZE,
        "reland",
    ),
    Change(
        "matmul: taller blocks when compiled\n", OLU, at(11, 20, 9), kernels.MATMUL_ORDER, "rebased_1", UPSTREAM_BOT
    ),
    Change(
        "matmul: say where the result is kept\n", OLU, at(11, 20, 9, 1), kernels.MATMUL_DOC, "rebased_2", UPSTREAM_BOT
    ),
    Change("matmul: test one single block\n", OLU, at(11, 20, 9, 2), kernels.MATMUL_TEST, "rebased_3", UPSTREAM_BOT),
    Change(
        "frontend: negate a tile (#142)\n\nCo-authored-by: Zofia Wójcik <zofia@acme.example>\n"
        "Co-authored-by: 山田健二 <kenji@acme.example>\n",
        INES,
        at(11, 20, 15),
        edits.NEGATE,
        "coauthors",
    ),
    Change("frontend: a function's signature as text (#143)\n", ZOFIA, at(11, 21, 10), edits.STORE, "signature_of"),
    Change("docs: contributing instead of dev (#144)\n", ZOFIA, at(11, 21, 14), edits.RENAME_DOCS, "renamed_folder"),
    Change("docs: tests are fast (#145)\n", ZOFIA, at(11, 22, 9), edits.DOCS_TESTS, "edit_in_renamed_folder"),
    Change("ci: verbose lit (#146)\n", RAVI, at(11, 22, 11), edits.CI_CACHE, "ci_lit"),
)
