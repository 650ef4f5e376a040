"""Graft's search against `git bisect run` and repeat-three on real git ranges, all in one run:

    PYTHONPATH=. python benchmarks/bisect_ranges.py [--repository BARE.git [--folder PATH]] [--sizes 8 32 128 512]
        [--flakes 0 5 15 30] [--trials 4] [--seed 1]

A trial is a range of a repository's first-parent line: of one made here with a fixed history, or of `--repository`.
A commit of it is planted as the culprit, or none; in it and after it the test fails, told by `git merge-base` in the
tree that is checked out; the test lies both ways at the flake rate; about a tenth of the commits does not build, half
of the time a run of three to eight besides. Each searcher gets the same trial and its own luck: plain `git bisect
run`, the same where each step runs the test three times and the majority tells, and what `graft bisect` runs. Floor:
log2(n) over what one run can tell. Right: the culprit, and with it only what no build can tell apart; without one,
that none is named. `--folder` takes each commit with this folder's tree alone, where the whole is too large, or a copy
lacks some of its files.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bisect_score import floor, right
from bot.cli.probing import Prober, Rules
from bot.cli.searching import LocalSearch
from bot.core.bisect import Culprit, NoCulprit, Search

_LUCK = 3000
_PROBE = """
sha=$(git rev-parse HEAD)
n=$(($(cat {folder}/count) + 1)); echo $n > {folder}/count
grep -q $sha {folder}/dead && exit 125
once() {{
  d=$(($(cat {folder}/draws) + 1)); echo $d > {folder}/draws
  lies=$(head -c $d {folder}/luck | tail -c 1)
  bad=0; [ -n "{culprit}" ] && git merge-base --is-ancestor "{culprit}" $sha && bad=1
  [ $lies = 1 ] && bad=$((1 - bad))
  return $bad
}}
"""
_ONCE = _PROBE + "once\n"
_THRICE = _PROBE + (
    "echo $((n + 2)) > {folder}/count\nbad=0\nfor i in 1 2 3; do once || bad=$((bad + 1)); done\n[ $bad -lt 2 ]\n"
)


@dataclass(frozen=True)
class Trial:
    """One range with its truth: `shas` from the good end; `culprit` a place, 0 none; `dead` places don't build."""

    shas: tuple[str, ...]
    culprit: int
    dead: frozenset[int]
    flake: float
    seed: int

    def right(self, named: tuple[int, ...] | None) -> bool:
        """Whether an answer (places; () none; None inconclusive) is as right as builds allow."""
        return named is not None and right(self.culprit, self.dead, named)


@dataclass
class Tally:
    """What became of the trials of one searcher."""

    right: int = 0
    wrong: int = 0
    inconclusive: int = 0
    probes: int = 0
    floor: float = 0.0

    def add(self, trial: Trial, named: tuple[int, ...] | None, probes: int) -> None:
        right = trial.right(named)
        self.right += right
        self.inconclusive += named is None
        self.wrong += named is not None and not right
        self.probes += probes
        self.floor += floor(len(trial.shas) - 1, trial.flake, trial.flake) if trial.culprit else 0.0

    @property
    def trials(self) -> int:
        return self.right + self.wrong + self.inconclusive

    @property
    def line(self) -> str:
        times = f"{self.probes / self.floor:6.2f}" if self.floor else "     –"
        mean = self.probes / max(self.trials, 1)
        return f"{self.right:5d} {self.wrong:5d} {self.inconclusive:12d} {mean:10.1f} {times}"


def main() -> int:
    """Run all trials and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", type=Path, help="a bare repository to take ranges from; one is made else")
    parser.add_argument("--folder", help="only this folder of the repository's trees")
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 32, 128, 512])
    parser.add_argument("--flakes", type=int, nargs="+", default=[0, 5, 15, 30], help="in percent")
    parser.add_argument("--trials", type=int, default=4, help="of each size and flake rate; a fifth has no culprit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    tallies: dict[tuple[str, str], Tally] = defaultdict(Tally)
    with tempfile.TemporaryDirectory(prefix="graft-ranges-") as temporary:
        root = Path(temporary)
        repository = options.repository.resolve() if options.repository else made(root, max(options.sizes) + 40)
        if options.repository and options.folder:
            repository = narrowed(root, repository, options.folder, max(options.sizes) + 500)
        line = git(repository, "log", "--first-parent", "--reverse", "--format=%H", "HEAD").split()
        clone = root / "clone"
        git(root, "clone", "--quiet", "--shared", "--no-checkout", str(repository), str(clone))
        for trial in trials(line, options.sizes, options.flakes, options.trials, options.seed):
            size, flake = f"n={len(trial.shas) - 1}", f"flake {100 * trial.flake:.0f} %"
            for name, searcher in SEARCHERS.items():
                named, probes = searcher(trial, repository, clone, root)
                where = ("all", size, flake) if trial.culprit else ("no culprit",)
                for row in where:
                    tallies[row, name].add(trial, named, probes)
            print(f"{size} {flake}", file=sys.stderr, flush=True)
    print(f"{'':14s} {'':14s} right wrong inconclusive probes (x floor)")
    for row in sorted(
        rows := list(dict.fromkeys(row for row, _ in tallies)), key=lambda row: (row[:2], rows.index(row))
    ):
        for name in SEARCHERS:
            print(f"{row:14s} {name:14s} {tallies[row, name].line}")
    if options.json:
        found = [{"row": row, "searcher": name, **vars(tally)} for (row, name), tally in tallies.items()]
        options.json.write_text(json.dumps(found, indent=1))
    return 0


def trials(line: list[str], sizes: list[int], flakes: list[int], count: int, seed: int) -> Iterator[Trial]:
    """The trials, by the seed alone."""
    rng = random.Random(seed)
    for size in sizes:
        if size >= len(line):
            raise SystemExit(f"--sizes {size}: the repository's line has {len(line)} commits")
        for flake in flakes:
            for number in range(count):
                start = rng.randrange(len(line) - size)
                dead = {place for place in range(1, size) if rng.random() < 0.1}
                if size >= 16 and rng.random() < 0.5:
                    first = rng.randrange(1, size - 8)
                    dead |= set(range(first, first + rng.randrange(3, 9)))
                culprit = 0 if number % 5 == 4 else rng.randint(1, size)
                shas = tuple(line[start : start + size + 1])
                yield Trial(shas, culprit, frozenset(dead), flake / 100, rng.randrange(2**31))


def prepared(trial: Trial, root: Path, salt: str, script: str) -> tuple[Path, str]:
    """The folder with the trial's luck and counters, and the test."""
    folder = Path(tempfile.mkdtemp(dir=root, prefix=salt))
    rng = random.Random(f"{trial.seed}{salt}")
    (folder / "luck").write_text("".join("01"[rng.random() < trial.flake] for _ in range(_LUCK)))
    (folder / "dead").write_text("\n".join(trial.shas[place] for place in sorted(trial.dead)) + "\n-\n")
    (folder / "count").write_text("0\n")
    (folder / "draws").write_text("0\n")
    culprit = trial.shas[trial.culprit] if trial.culprit else ""
    return folder, script.format(folder=folder, culprit=culprit)


def by_git(script: str, salt: str, trial: Trial, clone: Path, root: Path) -> tuple[tuple[int, ...] | None, int]:
    """`git bisect run` with this script."""
    folder, test = prepared(trial, root, salt, script)
    (folder / "test.sh").write_text(test)
    git(clone, "checkout", "--quiet", "--force", "--detach", trial.shas[-1])
    git(clone, "bisect", "start", "--first-parent", trial.shas[-1], trial.shas[0])
    done = subprocess.run(
        ["git", "-C", str(clone), "bisect", "run", "sh", str(folder / "test.sh")],
        check=False,
        capture_output=True,
        text=True,
    )
    git(clone, "bisect", "reset")
    probes = int((folder / "count").read_text())
    named: tuple[int, ...] | None = None
    if (found := re.search(r"([0-9a-f]{40}) is the first bad commit", done.stdout)) is not None:
        named = (trial.shas.index(found[1]),)
    elif "any of:" in done.stdout:
        listed = re.findall(r"^([0-9a-f]{40})$", done.stdout.partition("any of:")[2], re.MULTILINE)
        named = tuple(sorted(trial.shas.index(sha) for sha in listed))
    return named, probes


def plain(trial: Trial, _repository: Path, clone: Path, root: Path) -> tuple[tuple[int, ...] | None, int]:
    """Each step is one run."""
    return by_git(_ONCE, "plain", trial, clone, root)


def thrice(trial: Trial, _repository: Path, clone: Path, root: Path) -> tuple[tuple[int, ...] | None, int]:
    """Each step is the majority of three runs."""
    return by_git(_THRICE, "three", trial, clone, root)


def graft(trial: Trial, repository: Path, _clone: Path, root: Path) -> tuple[tuple[int, ...] | None, int]:
    """What `graft bisect` runs, told nothing of the flake rate."""
    folder, test = prepared(trial, root, "graft", _ONCE)
    prober = Prober(repository, root / "work", Rules(("sh", "-c", test)), output=lambda _: None)
    local = LocalSearch(Search(n=len(trial.shas) - 1, max_runs=400), trial.shas, prober, lambda _: None)
    answer = asyncio.run(local.passfail())
    probes = int((folder / "count").read_text())
    if isinstance(answer, Culprit):
        return answer.positions, probes
    return (() if isinstance(answer, NoCulprit) else None), probes


SEARCHERS = {"git bisect run": plain, "repeat three": thrice, "graft": graft}


def made(root: Path, count: int) -> Path:
    """A repository with a fixed history of `count` commits, each of which changes one of forty files."""
    parts = []
    for number in range(count):
        name, text = f"part{number * 7 % 40}.txt", f"{number}\n"
        message = f"Change {number}\n"
        parts.append(
            f"commit refs/heads/main\ncommitter A <a@example.com> {1_700_000_000 + 60 * number} +0000\n"
            f"data {len(message)}\n{message}M 100644 inline {name}\ndata {len(text)}\n{text}"
        )
    place = root / "made.git"
    git(root, "init", "--quiet", "--bare", "-b", "main", str(place))
    subprocess.run(["git", "-C", str(place), "fast-import", "--quiet"], input="\n".join(parts).encode(), check=True)
    return place


def narrowed(root: Path, source: Path, folder: str, count: int) -> Path:
    """The newest `count` commits of the first-parent line, each with one folder's tree as its whole."""
    place = root / "narrowed.git"
    git(root, "init", "--quiet", "--bare", "-b", "main", str(place))
    objects = git(source, "rev-parse", "--path-format=absolute", "--git-path", "objects").strip()
    (place / "objects" / "info" / "alternates").write_text(f"{objects}\n")
    shas = git(source, "log", "--first-parent", "--reverse", f"--max-count={count}", "--format=%H", "HEAD").split()
    names = "".join(f"{sha}:{folder}\n" for sha in shas).encode()
    found = subprocess.run(
        ["git", "-C", str(source), "cat-file", "--batch-check=%(objectname) %(objecttype)"],
        input=names,
        check=True,
        capture_output=True,
    ).stdout.decode()
    parts = []
    for number, (sha, said) in enumerate(zip(shas, found.splitlines(), strict=True)):
        tree, _, kind = said.partition(" ")
        if kind != "tree":
            raise SystemExit(f"--folder {folder}: {sha[:10]} has no such folder")
        message = f"{sha}\n"
        parts.append(
            f"commit refs/heads/main\ncommitter A <a@example.com> {1_700_000_000 + 60 * number} +0000\n"
            f"data {len(message)}\n{message}M 040000 {tree} \n"
        )
    subprocess.run(["git", "-C", str(place), "fast-import", "--quiet"], input="\n".join(parts).encode(), check=True)
    return place


def git(folder: Path, *argv: str) -> str:
    """Run git without the user's configuration."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", "-C", str(folder), *argv], check=True, capture_output=True, text=True, env=env).stdout


if __name__ == "__main__":
    raise SystemExit(main())
