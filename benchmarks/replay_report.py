"""The planner on picks of the past: precision against share, on picks kept back, and each miss by name.

    python benchmarks/replay_report.py --repository joined.git --picks picks.json [--cache FILE]

Weights are judged on picks that they have not seen: cut by time, each part once by all others, once by those before;
and cut by subsystem, each part by all others.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from bot.clients.git import Git
from bot.clients.symbols import SymbolCache
from bot.core.footprint import is_test
from bot.core.learning import Sample, curve, fit, held_out, widest
from bot.core.replay import Result, read_picks, share, summarise
from bot.core.types import Verdict
from bot.core.weights import BASE, SAFE_BELOW, WATCH_BELOW, WEIGHTS
from handlers.replaying import Judged, Past, Question, decide, judge

SHARES = (0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 0.92, 0.95, 1.0)
FOLDS = 6
EXTENT = ("files", "places")  # what only says how large a commit is
WIDE = ("third_party", "python", "lib", "include", "test")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", type=Path, required=True)
    parser.add_argument("--picks", type=Path, required=True)
    parser.add_argument("--upstream", default="upstream")
    parser.add_argument("--fork", default="fork")
    parser.add_argument("--marker", action="append", default=[])
    parser.add_argument("--cache", type=Path)
    options = parser.parse_args()
    started = time.perf_counter()
    judged = replay(options)
    print(f"{len(judged)} picks in {time.perf_counter() - started:.1f} s")
    with Git(options.repository) as git:
        changes = git.changes_of(git.commits_of([j.decided.question.upstream for j in judged]))
    report(judged, {sha: sorted(path for change in found for path in change.paths) for sha, found in changes.items()})


def replay(options: argparse.Namespace) -> list[Judged]:
    asked = read_picks(json.loads(options.picks.read_text("utf-8")))
    with Git(options.repository) as mirror, mirror.scratch() as git, SymbolCache(options.cache or ":memory:") as cache:
        past = Past(git, upstream=options.upstream, fork=options.fork, markers=options.marker)
        questions = [Question(pick.upstream, pick.fork_parent) for pick in asked]
        decided = decide(git, questions, past=past, cache=cache, progress=_progress)
        return [
            judge(git, decision, pick.fork, by_hand=pick.landed == "resolved")
            for decision, pick in zip(decided, asked, strict=True)
        ]


def report(judged: Sequence[Judged], paths: Mapping[str, Sequence[str]]) -> None:
    merged = [j for j in judged if j.identical is not None]
    unchanged = [bool(j.identical) for j in merged]
    samples = [Sample({s.name: s.size for s in j.decided.signals}, bool(j.identical)) for j in merged]
    results = [
        Result(j.decided.question.upstream, j.decided.pr, j.decided.verdict, j.identical, j.by_hand) for j in judged
    ]
    print(json.dumps(summarise(results).as_dict(), indent=1))
    names = sorted(WEIGHTS)
    learned = fit(samples, names)
    print(f"\nweights in use (base {BASE}) and as these picks alone would have them (base {learned.base:.4f})")
    for name in names:
        seen = sum(name in sample.sizes for sample in samples)
        hand = sum(name in sample.sizes and not sample.unchanged for sample in samples)
        print(f"  {name:18} {WEIGHTS[name]:7.4f} {learned.weights[name]:7.4f}   on {seen:4} picks, {hand:3} changed")
    print("\nprecision at a share of the identical picks")
    _curve("as in use", [j.decided.chance for j in merged], unchanged)
    areas = [subsystem(paths[j.decided.question.upstream]) for j in merged]
    ways: tuple[tuple[str, bool, list[str] | None], ...] = (
        ("each part by all others", False, None),
        ("each part by what came before", True, None),
        ("each subsystem by all others", False, areas),
    )
    for title, forward, groups in ways:
        whole, near = (
            held_out(samples, names, folds=FOLDS, forward=forward, groups=groups, ignoring=ignoring)
            for ignoring in ((), EXTENT)
        )
        known = [
            (chance, close, same)
            for chance, close, same in zip(whole, near, unchanged, strict=True)
            if chance is not None and close is not None
        ]
        _curve(title, [chance for chance, _, _ in known], [same for _, _, same in known])
        _lines(title, known)
    print(f"\nlines in use: safe below {SAFE_BELOW}, watch below {WATCH_BELOW}")
    for verdict in (Verdict.SAFE, Verdict.WATCH, Verdict.RISKY):
        _misses([j for j in merged if j.decided.verdict is verdict and not j.identical], verdict)


def _curve(title: str, chances: Sequence[float], unchanged: Sequence[bool]) -> None:
    points, good = curve(chances, unchanged), sum(unchanged)
    cells = []
    for wanted in SHARES:
        point = next((p for p in points if p.unchanged >= wanted * good), points[-1])
        cells.append(f"{wanted:.0%}: {point.precision:.1%}")
    print(f"  {title:30} {'  '.join(cells)}")


def _lines(title: str, known: Sequence[tuple[float, float, bool]]) -> None:
    """What the lines in use, and the widest that keep the aims, come to on picks that were kept back."""
    good = sum(same for _, _, same in known)
    safe = [same for chance, _, same in known if chance < SAFE_BELOW]
    both = [same for chance, near, same in known if chance < SAFE_BELOW or near < WATCH_BELOW]
    for name, under in (("safe", safe), ("safe and watch", both)):
        print(
            f"    {title}: {name}: {share(sum(under), len(under))} identical at {share(sum(under), good)} of all those"
        )
    for aim, place in ((0.98, 0), (0.95, 1)):
        point = widest(curve([row[place] for row in known], [same for _, _, same in known]), aim)
        if point:
            print(f"    widest at {aim:.0%}: below {point.below:.4f}, {point.unchanged / good:.1%} of the identical")


def subsystem(paths: Sequence[str]) -> str:
    """The folder that most of a commit's files are in, two levels deep where the first says little."""
    if not paths:
        return ""
    folders = Counter("/".join(path.split("/")[: 2 if path.split("/")[0] in WIDE else 1]) for path in paths)
    return folders.most_common(1)[0][0]


def _misses(missed: Sequence[Judged], verdict: Verdict) -> None:
    print(f"\ncalled {verdict.value}, landed otherwise: {len(missed)}")
    for j in missed:
        decided = j.decided
        print(f"  {decided.question.upstream[:12]} {decided.subject[:90]}")
        print(f"    landed as {j.landed[:12]}: {_why(j)}; differs in {', '.join(j.differs[:4])}")
        print(f"    chance {decided.chance:.3f}: " + "; ".join(f"{r.text} {r.weight:.3f}" for r in decided.reasons[:4]))


def _why(j: Judged) -> str:
    """Which kind of work by hand it was, as far as the paths tell."""
    if all(is_test(path) for path in j.differs):
        return "a person changed, added or dropped tests"
    if all(path.rpartition("/")[2].startswith(".") for path in j.differs):
        return "a person left the repository's own settings alone"
    if any(is_test(path) for path in j.differs):
        return "a person changed code and tests"
    return "a person changed code"


def _progress(what: str, done: int, total: int) -> None:
    if done % 50 == 0 or done == total:
        print(f"{what}: {done} of {total}", file=sys.stderr)


if __name__ == "__main__":
    main()
