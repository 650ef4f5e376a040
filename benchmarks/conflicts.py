"""Hold the conflict rules against real history: what they resolve, and how that compares with what people landed.

Every commit of the fork that records the pick of one upstream commit is picked again, in memory, onto its own parent.
Where that conflicts, the rules decide, and only then is the landed tree read.

    python benchmarks/conflicts.py --repository fbtriton.git --upstream refs/heads/upstream --fork refs/heads/fork
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bot.clients.git import Git
from bot.core.conflict import FileConflict, FileResolution, Marked, MarkersBroken, Sides, read_marked, resolve_file
from bot.core.conflict.tokens import Style, open_brackets, style_of, values
from bot.core.footprint import language_of
from bot.core.history import read_history
from bot.core.types import Commit
from handlers.moves import layout_of
from handlers.planning import read_range

MARKERS = (
    r"Reactor (?:Backport|Cherry-pick) Revision:\s*(?P<sha>[0-9a-f]{40})",
    r"^Original Commit:\s*(?P<sha>[0-9a-f]{40})",
    r"^Upstream commit:\s*(?P<sha>[0-9a-f]{40})",
)


@dataclass
class File:
    resolution: FileResolution
    marked: Marked | None
    landed: bytes | None
    theirs: bytes | None
    ours: bytes | None
    choice: tuple[str, ...] | None = None


@dataclass
class Pick:
    fork: str
    upstream: str
    time: int
    files: list[File] = field(default_factory=list)
    others: bool = False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", type=Path, required=True, help="bare repository that holds both histories")
    parser.add_argument("--upstream", default="refs/heads/upstream")
    parser.add_argument("--fork", default="refs/heads/fork")
    parser.add_argument("--marker", action="append", help="how the fork recorded picks (default: fbtriton's ways)")
    parser.add_argument("--exclude", default=r"\[BUNDLE\]", help="subjects of commits that carry more than they record")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--show", metavar="RULE", help="print the hunks of a rule that landed otherwise")
    arguments = parser.parse_args()
    with Git(arguments.repository) as git, git.scratch() as scratch:
        picks = list(_picks(scratch, arguments))
    result = measure(picks)
    if arguments.show:
        _show(picks, arguments.show)
    elif arguments.json:
        print(json.dumps(result, indent=1))
    else:
        _print(result)
    return 0


def _picks(git: Git, arguments: argparse.Namespace) -> Iterator[Pick]:
    span = read_range(git, upstream=arguments.upstream, fork=arguments.fork)
    history = read_history(upstream=span.upstream, fork=span.fork, markers=arguments.marker or MARKERS)
    carried: dict[str, list[str]] = {}
    for sha, carriers in history.carriers.items():
        for carrier in carriers:
            carried.setdefault(carrier.sha, []).append(sha)
    skip = re.compile(arguments.exclude)
    commits = [c for c in span.fork if len(carried.get(c.sha, ())) == 1 and not skip.search(c.subject)]
    for number, commit in enumerate(commits, 1):
        if sys.stderr.isatty():
            print(f"\r{number}/{len(commits)}", end="", file=sys.stderr)
        result = git.pick(carried[commit.sha][0], commit.parents[0])
        if result.kind != "conflict" or result.marked_tree is None:
            continue
        pick = Pick(commit.sha, carried[commit.sha][0], commit.committer_time)
        paths = set()
        for conflict in result.conflicts:
            paths.add(conflict.path)
            base, ours, theirs = (
                git.read_blob(oid) if oid else None
                for oid in (conflict.base_oid, conflict.ours_oid, conflict.theirs_oid)
            )
            text = git.read_file(result.marked_tree, conflict.path) if ours and theirs else None
            later = git.read_file(_tip(span.upstream, commit.committer_time), conflict.path)
            moved = _moved(git, span.upstream_tip, commit, conflict.path) if ours is None else None
            decided = resolve_file(
                FileConflict(conflict.path, conflict.kind, base, ours, theirs, text, moved=moved, later=later), pins={}
            )
            try:
                marked = read_marked(text) if text is not None else None
            except MarkersBroken:
                marked = None
            # only now what people landed
            landed = git.read_file(commit.sha, decided.path)
            choice = _choice(marked, landed) if marked is not None and landed is not None else None
            pick.files.append(File(decided, marked, landed, theirs, ours, choice))
        changed = git.changed_files(result.marked_tree, commit.sha)
        pick.others = any(change.path not in paths for change in changed)
        yield pick


def _moved(git: Git, upstream: str, commit: Commit, path: str) -> tuple[str, bytes] | None:
    """Where the fork kept a file by another name before this commit, with its text."""
    new = layout_of(git.path, upstream, commit.parents[0]).moved.get(path)
    text = git.read_file(commit.parents[0], new) if new else None
    return (new, text) if new and text is not None else None


def _tip(upstream: Sequence[Commit], time: int) -> str:
    """Upstream's newest commit at that time: what a bot could have known."""
    return next((commit.sha for commit in reversed(upstream) if commit.committer_time <= time), upstream[0].sha)


def _choice(marked: Marked, landed: bytes) -> tuple[str, ...] | None:
    """The side that was taken for each hunk, where the landed text is nothing but such choices."""
    stack: list[tuple[int, int, tuple[str, ...]]] = [(0, 0, ())]
    while stack:
        index, at, taken_so_far = stack.pop()
        if not landed.startswith(marked.merged[index], at):
            continue
        at += len(marked.merged[index])
        if index == len(marked.hunks):
            if at == len(landed):
                return taken_so_far
            continue
        hunk = marked.hunks[index]
        for name, text in (("theirs", hunk.theirs), ("ours", hunk.ours)):
            if landed.startswith(text, at):
                stack.append((index + 1, at + len(text), (*taken_so_far, name)))
    return None


def _verdict(text: bytes, landed: bytes, style: Style, depth: int, *, whole: bool) -> str:
    """How a text stands to what landed: same, layout (equal but for layout), order (the same lines), other."""
    if text == landed if whole else text in landed:
        return "same"
    mine, theirs = values(text, style, depth=depth), values(landed, style)
    if mine == theirs if whole else "\0".join(mine) in "\0".join(theirs):
        return "layout"
    if _reordered(text, landed, whole=whole):
        return "order"
    return "other"


def _reordered(text: bytes, landed: bytes, *, whole: bool) -> bool:
    """True where the lines of a text stand together in what landed, in another order."""
    mine, theirs = ([x.strip() for x in side.splitlines() if x.strip()] for side in (text, landed))
    wanted, size = Counter(mine), len(mine)
    if whole or size > len(theirs):
        return wanted == Counter(theirs)
    have = Counter(theirs[:size])
    for at in range(size, len(theirs) + 1):
        if have == wanted:
            return True
        if at < len(theirs):
            have[theirs[at]] += 1
            have[theirs[at - size]] -= 1
    return False


def _hunks(file: File) -> Iterator[tuple[str, str, Sides]]:
    if file.marked is None or file.landed is None:
        return
    style = style_of(language_of(file.resolution.path))
    before = b""
    for index, (hunk, decided) in enumerate(zip(file.marked.hunks, file.resolution.hunks, strict=True)):
        before += file.marked.merged[index]
        if decided.resolution is not None:
            near = b"".join(file.marked.merged[index].splitlines(keepends=True)[-3:])
            after = b"".join(file.marked.merged[index + 1].splitlines(keepends=True)[:3])
            depth = open_brackets(before[: len(before) - len(near)], style)
            text = near + decided.resolution + after
            yield decided.rule, _verdict(text, file.landed, style, depth, whole=False), hunk
        before += hunk.ours


def measure(picks: list[Pick]) -> dict[str, object]:
    rules: dict[str, Counter[str]] = {}
    classes: Counter[str] = Counter()
    files: Counter[str] = Counter()
    whole: Counter[str] = Counter()
    halves: dict[str, Counter[str]] = {"first half": Counter(), "second half": Counter()}
    chosen: Counter[str] = Counter()
    choices = 0
    middle = sorted(pick.time for pick in picks)[len(picks) // 2] if picks else 0
    for pick in picks:
        verdicts = []
        for file in pick.files:
            style = style_of(language_of(file.resolution.path))
            classes.update(f"{h.cls.value}: {h.rule}" for h in file.resolution.hunks if h.resolution is None)
            for rule, verdict, _ in _hunks(file):
                rules.setdefault(rule, Counter())[verdict] += 1
                halves["first half" if pick.time < middle else "second half"][verdict] += 1
            if file.marked is None and file.resolution.resolved:
                verdict = "same" if file.resolution.text == file.landed else "other"
                rules.setdefault(file.resolution.hunks[0].rule, Counter())[verdict] += 1
                verdicts.append(verdict)
            elif not file.resolution.resolved:
                verdicts.append("open")
            else:
                text, landed = file.resolution.text or b"", file.landed
                verdicts.append("other" if landed is None else _verdict(text, landed, style, 0, whole=True))
        files.update(verdicts)
        whole[_worst(verdicts)] += 1
        if not pick.others and all(_chosen(file) for file in pick.files):
            choices += 1
            chosen[_worst(verdicts)] += 1
    return {
        "picks": len(picks),
        "picks_by_result": dict(whole),
        "files": sum(files.values()),
        "files_by_result": dict(files),
        "rules": {
            rule: dict(counts) for rule, counts in sorted(rules.items(), key=lambda item: -sum(item[1].values()))
        },
        "proposals": _sum(rules),
        "by_time": {half: dict(counts) for half, counts in halves.items()},
        "left_to_people": dict(classes.most_common()),
        "mere_choice_picks": choices,
        "mere_choice_by_result": dict(chosen),
    }


def _sum(rules: dict[str, Counter[str]]) -> dict[str, int]:
    """All proposals of the rules: as landed (but for layout), and otherwise. Each is marked for review in any case."""
    total = sum(rules.values(), Counter[str]())
    right = total["same"] + total["layout"] + total["order"]
    return {"hunks": total.total(), "right": right, "wrong": total.total() - right}


def _worst(verdicts: list[str]) -> str:
    return next((name for name in ("open", "other", "order", "layout") if name in verdicts), "same")


def _chosen(file: File) -> bool:
    if file.marked is not None:
        return file.choice is not None
    return file.landed in (None, file.ours, file.theirs)


def _print(result: dict[str, object]) -> None:
    print(
        f"{result['picks']} conflicting picks, by what the rules make of all their files: {result['picks_by_result']}"
    )
    print(f"{result['files']} conflicting files: {result['files_by_result']}")
    print("  same: byte for byte as landed; layout: equal but for layout; order: the same lines; open: for a person")
    print("  other: people landed something else there, often with a change of their own beside it\n")
    print(f"{'rule':18}{'hunks':>7}{'same':>7}{'layout':>8}{'order':>7}{'other':>7}{'right':>8}")
    rules = result["rules"]
    assert isinstance(rules, dict)
    total: Counter[str] = Counter()
    for rule, counts in [*rules.items(), ("all", total)]:
        if rule != "all":
            total.update(counts)
        count, same, layout, order = (sum(counts.values()), *(counts.get(k, 0) for k in ("same", "layout", "order")))
        right = f"{(same + layout + order) / count:.0%}" if count else "-"
        print(f"{rule:18}{count:>7}{same:>7}{layout:>8}{order:>7}{counts.get('other', 0):>7}{right:>8}")
    print(f"\nby time: {result['by_time']}")
    print(f"mere choices per hunk: {result['mere_choice_picks']} picks, of these {result['mere_choice_by_result']}")
    print("left to people:")
    left = result["left_to_people"]
    assert isinstance(left, dict)
    for name, count in left.items():
        print(f"  {count:>5}  {name}")


def _show(picks: list[Pick], rule: str) -> None:
    for pick in picks:
        for file in pick.files:
            for found, verdict, hunk in _hunks(file):
                if found == rule and verdict == "other":
                    print(f"## {file.resolution.path}:{hunk.line} upstream {pick.upstream[:12]} fork {pick.fork[:12]}")
                    for name, text in (("fork", hunk.ours), ("base", hunk.base), ("upstream", hunk.theirs)):
                        print(f"-- {name}\n{text.decode(errors='replace')[:2000]}")


if __name__ == "__main__":
    raise SystemExit(main())
