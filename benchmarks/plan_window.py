"""How fast the planner is, beside git itself, on a real pair in one repository: run by hand, one side after the other.

    python benchmarks/plan_window.py --repository PAIR.git --at 2026-06-01 [--upstream REF] [--fork REF] [--marker …]

Prints one JSON document: what the window came to, seconds of each side, ratios, peak memory, and the proof by git
itself (each bundle picked by `git cherry-pick` in a work tree, all landed, compared by tree). Planning is measured

- cold: nothing is known yet;
- picks cold: what commits and files hold is known, every trial pick is asked of git anew;
- fork moved: known is what planning on the fork of --moved days earlier has left, the same upstream;
- again: nothing has changed since the last plan (what a sweep or a command meets).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bot.clients.git import Git
from bot.clients.git.loose import write
from bot.clients.symbols import SymbolCache
from bot.core.config import Config
from bot.core.ledger import undecided
from bot.core.types import Plan
from handlers.planning import make_plan, read_ledger

ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C",
    **{
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "b"), ("EMAIL", "b@localhost"), ("DATE", "1700000000 +0000"))
    },
}


def git(folder: Path, *words: str, ok: bool = True) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, env=ENV, capture_output=True, text=True, errors="replace", check=False
    )
    if ok and done.returncode:
        raise SystemExit(f"git {' '.join(words[:3])}: {done.stderr}")
    return done.stdout.strip()


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def raw_merges(repository: Path, commits: Sequence[str], fork: str) -> float:
    """Seconds of one `git merge-tree --stdin` over all commits on the fork's tip, made-up commits prepared before."""
    with Git(repository) as source, tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as made_up:
        read = source.commits_of(commits)
        tip = source.tree_of(fork)

        def commit(tree: str, *parents: str) -> str:
            lines = [
                f"tree {tree}",
                *(f"parent {p}" for p in parents),
                "author b <b> 0 +0000",
                "committer b <b> 0 +0000",
            ]
            return write(Path(made_up), "commit", ("\n".join(lines) + f"\n\n{len(parents)} {tree}\n").encode())

        pairs = []
        for one in read:
            base = commit(source.tree_of(one.parents[0]))
            pairs.append(f"{commit(tip, base)} {commit(one.tree, base)}\n")
        env = ENV | {
            "GIT_OBJECT_DIRECTORY": folder,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{repository / 'objects'}:{made_up}",
        }
        start = time.perf_counter()
        subprocess.run(
            ["git", "-c", "merge.renameLimit=20000", "merge-tree", "--write-tree", "-z", "--stdin"],
            cwd=repository,
            env=env,
            input="".join(pairs).encode(),
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return time.perf_counter() - start


def forget_picks(cache: Path) -> None:
    with contextlib.closing(sqlite3.connect(cache)) as rows, rows:
        rows.execute("DELETE FROM kept WHERE key LIKE 'pick:%'")


class WorkTree:
    """A work tree beside the repository, which it only borrows from."""

    def __init__(self, folder: Path, repository: Path, fork: str) -> None:
        self.path = folder
        git(folder, "init", "-q")
        (folder / ".git/objects/info").mkdir(parents=True, exist_ok=True)
        (folder / ".git/objects/info/alternates").write_text(f"{repository.resolve()}/objects\n")
        for line in git(repository, "for-each-ref", "--format=%(objectname) %(refname)", "refs/replace").splitlines():
            sha, name = line.split(" ")
            git(folder, "update-ref", name, sha)
        git(folder, "config", "gc.auto", "0")
        git(folder, "config", "merge.renameLimit", "20000")
        self.reset(fork)

    def reset(self, to: str) -> None:
        git(self.path, "checkout", "-q", "--force", "--detach", to)
        # a snapshot may lack large files and hold stand-ins: without this, git asks for the objects themselves
        git(self.path, "write-tree", "--missing-ok")

    def pick(self, sha: str) -> bool:
        parents = git(self.path, "rev-list", "--parents", "-n1", sha).split()
        main = ["-m", "1"] if len(parents) > 2 else []
        done = subprocess.run(
            ["git", "cherry-pick", "--allow-empty", "--keep-redundant-commits", *main, sha],
            cwd=self.path,
            env=ENV,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            git(self.path, "cherry-pick", "--abort", ok=False)
            git(self.path, "reset", "-q", "--hard")
        return done.returncode == 0


def cherry_picks(repository: Path, commits: Sequence[str], fork: str) -> tuple[float, int, str]:
    """Seconds, how many were clean, and the tree, of `git cherry-pick` in a work tree in upstream order."""
    with tempfile.TemporaryDirectory() as folder:
        tree = WorkTree(Path(folder), repository, fork)
        start = time.perf_counter()
        clean = sum(tree.pick(sha) for sha in commits)
        return time.perf_counter() - start, clean, git(tree.path, "rev-parse", "HEAD^{tree}")


def proved(repository: Path, plan: Plan, order: Sequence[str]) -> dict[str, Any]:
    """By git itself: bundles picked on the fork's tip, landed one after the other; then the rest that is clean."""
    with tempfile.TemporaryDirectory() as folder:
        tree = WorkTree(Path(folder), repository, plan.fork_tip)
        tip, refused = plan.fork_tip, []
        for bundle in plan.bundles:
            tree.reset(plan.fork_tip)
            refused += [commit.sha for commit in bundle.commits if not tree.pick(commit.sha)]
            head = git(tree.path, "rev-parse", "HEAD")
            tree.reset(tip)
            git(tree.path, "merge", "-q", "--no-ff", "--no-edit", head)
            tip = git(tree.path, "rev-parse", "HEAD")
        late = {c.sha for chain in plan.chains for c in chain.commits} | {c.sha for c in plan.held}
        landed = sum(tree.pick(sha) for sha in order if sha in late)
        return {"refused": refused, "clean_after": landed, "tree": git(tree.path, "rev-parse", "HEAD^{tree}")}


def growth(repository: Path, options: argparse.Namespace, cache: Path) -> Iterator[dict[str, Any]]:
    """Planning (picks cold) of the first N upstream commits since the histories parted, nothing known as picked."""
    with Git(repository) as source, SymbolCache(cache) as kept:
        upstream, fork = source.resolve(options.upstream) or "", source.resolve(options.fork) or ""
        line = source.commits(upstream, [source.merge_base(upstream, fork) or ""])
        for size in options.growth:
            tip = line[min(size, len(line)) - 1].sha

            def plan(tip: str = tip) -> Plan:
                return make_plan(source, upstream=tip, fork=fork, config=None, cache=kept, now=line[-1].committer_time)

            plan()
            forget_picks(cache)
            seconds, made = timed(plan)
            tried = sum(len(b.commits) for b in made.bundles) + sum(len(c.commits) for c in made.chains)
            tried += len(made.held) + len(made.settled)
            yield {"commits": tried, "seconds": round(seconds, 2), "ms_each": round(1000 * seconds / max(tried, 1), 1)}


def main() -> None:
    options = arguments()
    if options.growth:
        with tempfile.TemporaryDirectory() as folder:
            cache = options.cache or Path(folder) / "symbols.sqlite"
            print(json.dumps(list(growth(options.repository.resolve(), options, cache)), indent=1))
        return
    repository, marker = options.repository.resolve(), tuple(options.marker)
    end = int((datetime.fromisoformat(options.at).replace(tzinfo=UTC) + timedelta(days=1)).timestamp()) - 1
    config = Config.of({"upstream": {"repository": "upstream/upstream"}, "ingest": {"picked_markers": marker}})
    with Git(repository) as source:
        upstream, fork = (source.commits(ref, before=end)[-1].sha for ref in (options.upstream, options.fork))
        ledger = read_ledger(source, upstream=upstream, fork=fork, config=config, now=end)
        window = [entry.sha for entry in ledger.entries if undecided(entry)]
    print(json.dumps(dict(report(options, repository, config, upstream, fork, window, end)), indent=1))


def report(
    options: argparse.Namespace,
    repository: Path,
    config: Config,
    upstream: str,
    fork: str,
    window: Sequence[str],
    end: int,
) -> Iterator[tuple[str, Any]]:
    """The document, part by part; each side runs alone, planning both before and after git's own."""

    def plan(cache: Path, tip: str = fork) -> Plan:
        with Git(repository) as source, SymbolCache(cache) as kept:
            return make_plan(source, upstream=upstream, fork=tip, config=config, cache=kept, now=end)

    with Git(repository) as source:
        line = source.commits(fork, before=end - options.moved * 86400)
        earlier = line[-1].sha
        since = len(source.commits(fork, [earlier]))

    cores = len(os.sched_getaffinity(0))
    yield "machine", {"cores": cores, "load": os.getloadavg()[0], "git": git(repository, "--version")}
    yield "window", len(window)
    yield "fork_moved_by_commits", since
    with tempfile.TemporaryDirectory() as folder:
        cache = options.cache or Path(folder) / "symbols.sqlite"
        seconds, phases = {}, {}
        first, made = timed(lambda: plan(cache))
        if options.cache is None:
            seconds["cold"] = first
        for name in ("picks cold", "fork moved", "again"):
            if name != "again":
                forget_picks(cache)
            if name == "fork moved":
                plan(cache, earlier)
            seconds[name], made = timed(lambda: plan(cache))
            phases[name] = made.timings
        raw = raw_merges(repository, window, fork)
    yield (
        "plan",
        {
            "seconds": {name: round(spent, 2) for name, spent in seconds.items()},
            "phases_s": phases,
            "bundles": len(made.bundles),
            "in_bundles": sum(len(b.commits) for b in made.bundles),
            "safe": sum(len(b.commits) for b in made.bundles if b.grade.value == "safe"),
            "in_chains": sum(len(c.commits) for c in made.chains),
            "chains": len(made.chains),
            "held": len(made.held),
            "settled": len(made.settled),
        },
    )
    yield "raw_merge_tree_s", round(raw, 2)
    yield "plan_over_raw_merge_tree", {name: round(spent / raw, 2) for name, spent in seconds.items()}
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    yield (
        "peak_mib",
        {"planner": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "a_child": children // 1024},
    )
    if options.quick:
        return
    picking, clean, tree = cherry_picks(repository, window, fork)
    yield "cherry_pick", {"seconds": round(picking, 2), "clean": clean}
    yield "cherry_pick_over_plan", {name: round(picking / spent, 2) for name, spent in seconds.items()}
    proof = proved(repository, made, window)
    yield "proof_by_git", {**proof, "upstream_order": tree, "equal": proof["tree"] == tree}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", type=Path, required=True, help="bare repository that holds both histories")
    parser.add_argument("--upstream", default="upstream")
    parser.add_argument("--fork", default="fork")
    parser.add_argument("--at", default="2026-06-01", help="the day, YYYY-MM-DD")
    parser.add_argument("--moved", type=int, default=3, help="days of the fork's work for `fork moved`")
    parser.add_argument("--marker", action="append", default=[], help="how older picks were recorded; may repeat")
    parser.add_argument("--quick", action="store_true", help="leave out cherry-pick and the proof by git")
    parser.add_argument("--growth", type=int, nargs="+", help="only measure how planning grows: 150 300 747 2000")
    parser.add_argument("--cache", type=Path, help="a file of the cache to go on with: then nothing is measured cold")
    options = parser.parse_args()
    if not (options.repository / "objects").is_dir():
        print(f"{options.repository} is no bare repository", file=sys.stderr)
        raise SystemExit(2)
    return options


if __name__ == "__main__":
    main()
