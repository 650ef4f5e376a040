"""A sample pair: upstream `acme/tilec` and its fork `acme-fork/tilec`, two real bare repositories, always the same.

`build` writes both in well under a second; two builds give the same shas. Each commit that stands for something a
real upstream does has a role (`pin_bump`, `rename_api`, `revert` …), by which tests and the demo ask for it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from bot.sandbox.sample import people
from bot.sandbox.sample.base_project import BASE
from bot.sandbox.sample.fork_main import fork_changes
from bot.sandbox.sample.history import Person, Writer, at
from bot.sandbox.sample.upstream_early import EARLY
from bot.sandbox.sample.upstream_late import LATE
from bot.sandbox.sample.upstream_main import MAIN

__all__ = ["Person", "PersonChange", "Sample", "Stage", "build", "person_commit"]

CHAIN = ("chain_1", "chain_2", "chain_3", "chain_4")


@dataclass(frozen=True, slots=True)
class Stage:
    """A state of upstream's main branch: its tip, and the first-parent commits that it adds, oldest first."""

    name: str
    sha: str
    commits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PersonChange:
    """What a person does to the fork by hand: one place of one file, and which test and area feel it."""

    author: Person
    message: str
    path: str
    old: str
    new: str
    when: datetime
    area: str
    suite: str
    fails: str | None = None

    def undone(self, message: str) -> PersonChange:
        """The change that takes this one back, an hour later."""
        return replace(
            self, message=message, old=self.new, new=self.old, when=self.when + timedelta(hours=1), fails=None
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """Both repositories with all that the demo and the tests need to know of them.

    `roles` names single commits of upstream, `fork_roles` those of the fork; `chain` is the chain of dependent commits
    in order; `picked`, `reverted_in_fork` and `undecided` are upstream's first-parent commits after `base` by what the
    fork's history says of them; `users` maps logins to their permission on the fork, `teams` slugs to their members.
    """

    upstream: Path
    fork: Path
    upstream_name: str
    fork_name: str
    base: str
    upstream_tip: str
    fork_tip: str
    stages: tuple[Stage, ...]
    roles: dict[str, str]
    fork_roles: dict[str, str]
    chain: tuple[str, ...]
    picked: tuple[str, ...]
    reverted_in_fork: tuple[str, ...]
    undecided: tuple[str, ...]
    users: dict[str, str]
    teams: dict[str, tuple[str, ...]]
    upstream_people: tuple[str, ...]
    areas: dict[str, tuple[str, ...]]
    trunk_break: PersonChange
    trunk_fix: PersonChange
    pull_request: PersonChange

    def move_upstream(self, stage: int) -> str:
        """Set upstream's main branch to a stage (an index of `stages`); returns its tip."""
        sha = self.stages[stage].sha
        _git(self.upstream, "update-ref", "refs/heads/main", sha)
        return sha


AREAS: dict[str, tuple[str, ...]] = {
    "core": ("jonas-lind", "acme-fork/compiler"),
    "layouts": ("wen-zhao",),
    "kernels": ("wen-zhao", "jonas-lind"),
    "tlx": ("priya-raman", "acme-fork/tlx"),
}

TRUNK_BREAK = PersonChange(
    author=people.LEO,
    message="tlx: simplify the phase of a barrier\n",
    path="third_party/tlx/barriers.py",
    old="            self.phase = self.phase ^ 1\n",
    new="            self.phase = 1\n",
    when=at(11, 28, 9),
    area="tlx",
    suite="tlx",
    fails="third_party/tlx/tests/test_tlx_barriers.py::test_phase_flips_when_all_arrived",
)
PULL_REQUEST = PersonChange(
    author=people.SAM,
    message="layout: say what blocked means\n",
    path="tilec/passes/layout.py",
    old='    """Elements a thread holds side by side, threads in a warp, warps."""\n',
    new='    """Elements a thread holds side by side, threads in a warp, warps: blocked<VxTxW>."""\n',
    when=at(11, 28, 14),
    area="layouts",
    suite="unit",
)


def build(root: Path, *, stage: int = -1) -> Sample:
    """Write `upstream.git` and `fork.git` under a folder (made if missing; both must not be there yet).

    Upstream's main stands at the given stage, the last one by default; all stages are kept as `refs/stages/<n>`.
    """
    root.mkdir(parents=True, exist_ok=True)
    upstream_path, fork_path = root / "upstream.git", root / "fork.git"
    for path in (upstream_path, fork_path):
        if path.exists():
            raise FileExistsError(f"{path} is there already: name an empty folder")
    main = (*EARLY, *MAIN, *LATE)
    with Writer(upstream_path) as upstream:
        upstream.extend((*BASE, *main))
        first = len(BASE) + len(EARLY) + len(MAIN)
        stages = (
            Stage("backlog", upstream.commits[first - 1], tuple(upstream.commits[len(BASE) : first])),
            Stage("later", upstream.commits[-1], tuple(upstream.commits[first:])),
        )
        for number, one in enumerate(stages, 1):
            upstream.reference(f"refs/stages/{number}", one.sha)
    with Writer(fork_path, known=upstream.shas) as fork:
        fork.extend((*BASE, *fork_changes({change.role: change for change in main if change.role})))
    roles = {role: sha for role, sha in upstream.shas.items() if role != "base"}
    settled = {
        *(role.removeprefix("fork_pick:") for role in fork.shas if role.startswith("fork_pick:")),
        *("document_layouts", "fast_uses", "parse_lines", "isolated_pick"),
    } - {"picked_then_reverted"}
    order = upstream.commits[len(BASE) :]
    picked = tuple(sha for sha in order if sha in {roles[role] for role in settled})
    sample = Sample(
        upstream=upstream_path,
        fork=fork_path,
        upstream_name=f"{people.UPSTREAM_ORG}/{people.NAME}",
        fork_name=f"{people.FORK_ORG}/{people.NAME}",
        base=upstream.shas["base"],
        upstream_tip=upstream.commits[-1],
        fork_tip=fork.commits[-1],
        stages=stages,
        roles=roles,
        fork_roles={role: sha for role, sha in fork.shas.items() if role != "base"},
        chain=tuple(roles[role] for role in CHAIN),
        picked=picked,
        reverted_in_fork=(roles["picked_then_reverted"],),
        undecided=tuple(sha for sha in order if sha not in picked and sha != roles["picked_then_reverted"]),
        users=dict(people.PERMISSIONS),
        teams=dict(people.TEAMS),
        upstream_people=people.UPSTREAM_PEOPLE,
        areas=dict(AREAS),
        trunk_break=TRUNK_BREAK,
        trunk_fix=TRUNK_BREAK.undone("tlx: let the phase flip again\n"),
        pull_request=PULL_REQUEST,
    )
    sample.move_upstream(stage)
    return sample


def person_commit(repository: Path, change: PersonChange, onto: str) -> str:
    """Write a person's commit into a repository, on any commit that holds the old text; returns its sha, moves no ref.

    Raises ValueError where the file does not hold the text exactly once, subprocess.CalledProcessError where git fails.
    """
    text = _git(repository, "show", f"{onto}:{change.path}", strip=False)
    if text.count(change.old) != 1:
        raise ValueError(f"{change.path} at {onto} holds the text to change {text.count(change.old)} times, not once")
    blob = _git(repository, "hash-object", "-w", "--stdin", stdin=text.replace(change.old, change.new))
    when = f"{int(change.when.timestamp())} +0000"
    identity = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", change.author.name), ("EMAIL", change.author.email), ("DATE", when))
    }
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        _git(repository, "read-tree", onto, env=index)
        _git(repository, "update-index", "--cacheinfo", f"100644,{blob},{change.path}", env=index)
        tree = _git(repository, "write-tree", env=index)
    return _git(repository, "commit-tree", tree, "-p", onto, env=identity, stdin=change.message)


def _git(
    repository: Path, *arguments: str, env: dict[str, str] | None = None, stdin: str = "", strip: bool = True
) -> str:
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments],
        input=stdin,
        capture_output=True,
        check=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, **(env or {})},
    )
    return done.stdout.strip() if strip else done.stdout
