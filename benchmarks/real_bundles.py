"""The first bundles of a real pair, opened on the sandbox as GitHub: by hand, one run takes minutes.

    python benchmarks/real_bundles.py --repository PAIR.git --at 2026-06-01 --marker 'Original Commit: (?P<sha>…)' \\
        [--bundles 10] [--chains 3] [--max-commits 25] [--wide FORK-COMMIT] [--show]

PAIR.git holds both histories in one repository (`--upstream`, `--fork`: refs). Checks of each pull request: that it
carries one commit for each upstream commit, author and date kept, every trailer resolvable in upstream's history, no
mention or reference left in messages, title and body; that the table names each commit, and body and title keep
GitHub's limits. `--wide` names a commit of the fork that touches hundreds of files: a person opens just that change
as a pull request, the gate must read all its files, and it lands by squash. Prints facts as JSON; exit 1 where a check
fails.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import structlog

sys.path.insert(0, str(Path(__file__).parent.parent))

from bot.core.render.pull import read_batch
from bot.core.render.text import BODY_LIMIT, TITLE_LIMIT
from bot.core.trailers import parse
from bot.sandbox.driver import Sandbox
from bot.sandbox.stage import read_manifest
from tests.handlers.pair import FORK, UPSTREAM, Clone, Pair, bot
from tests.world import ROOT, SECRET

CONFIG = """upstream: {{repository: up/pkg}}
mode: {mode}
ingest:
  bundle: {{max_commits: {commits}, max_files: 400}}
  caps: {{open_bundles: {bundles}, open_chains: {chains}, pull_requests_per_day: {all}}}
  skip: [".github/**"]
  max_files: 400
  picked_markers: {markers}
validation:
  l1:
    - {{suite: unit, run: ["true"], area: compiler}}
areas:
  compiler: {{paths: ["lib/**", "include/**", "test/**"], owners: [maria]}}
  frontend: {{paths: ["python/**"], owners: [maria]}}
gate:
  rules:
    - {{paths: ["include/**"], levels: [l1], areas: [compiler]}}
"""
_LIVE = re.compile(r"(?<![\w`/.@])@[A-Za-z]|(?<![\w&])#\d|\bGH-\d|https?://(?!127\.0\.0\.1)", re.ASCII)
_HIDDEN = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass
class Opened:
    """One pull request: what it is, its size, and what is wrong with it."""

    number: int
    title: str
    kind: str
    grade: str | None
    draft: bool
    commits: int
    files: int
    body: int
    faults: list[str] = field(default_factory=list)


def git(path: Path, *arguments: str, text: str = "") -> str:
    """git in a repository, without its replace refs."""
    done = subprocess.run(
        ["git", "--no-replace-objects", "-C", str(path), *arguments],
        input=text, capture_output=True, text=True, errors="replace", check=True,
    )  # fmt: skip
    return done.stdout.strip()


def lend(source: Path, target: Path) -> None:
    """Let `target` see all objects of `source` without copying them."""
    objects = Path(git(source, "rev-parse", "--path-format=absolute", "--git-path", "objects"))
    (target / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (target / "objects" / "info" / "alternates").write_text(f"{objects}\n")
    # a clone that left some objects out names others in their place
    for ref in git(source, "for-each-ref", "--format=%(objectname) %(refname)", "refs/replace").splitlines():
        git(target, "update-ref", *reversed(ref.split()))


def configured(path: Path, tip: str, config: str, *, parent: str | None = None) -> str:
    """A commit on `tip` (or on `parent`, with the files of `tip`) that adds the fork's file."""
    blob = git(path, "hash-object", "-w", "--stdin", text=config)
    index = {"GIT_INDEX_FILE": str(path / "graft-index")}
    for words in (["read-tree", tip], ["update-index", "--add", "--cacheinfo", f"100644,{blob},.github/graft.yml"]):
        subprocess.run(["git", "-C", str(path), *words], check=True, env=index | {"PATH": "/usr/bin:/bin"})
    tree = subprocess.run(
        ["git", "-C", str(path), "write-tree"],
        check=True, env=index | {"PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    return git(
        path, "-c", "user.name=m", "-c", "user.email=m@x.org", "commit-tree", tree, "-p", parent or tip, "-m", "Set up"
    )


def opened(p: Pair, source: Path, pull: Any, upstream: str) -> Opened:
    """One pull request as it stands."""
    batch = read_batch(pull.body) or {}
    files = git(p.repository.path, "diff", "--name-only", "--no-renames", pull.pull.base_sha, pull.pull.head_sha)
    return Opened(
        pull.number,
        pull.title,
        str(batch.get("kind")),
        batch.get("grade"),
        pull.pull.draft,
        len(batch.get("commits", ())),
        len(files.splitlines()),
        len(pull.body),
        list(faults(p, source, pull, upstream)),
    )


def faults(p: Pair, source: Path, pull: Any, upstream: str) -> Iterator[str]:
    """What is wrong with one pull request."""
    batch = read_batch(pull.body)
    if batch is None:
        yield "its block can't be read"
        return
    if len(pull.body) > BODY_LIMIT or len(pull.title) >= TITLE_LIMIT:
        yield "too long"
    for text in (pull.title, _HIDDEN.sub("", pull.body)):
        # also inside code: a squash takes the body for its message, where nothing is code
        yield from (f"alive on GitHub: {text[m.start() - 20 : m.end() + 20]!r}" for m in _LIVE.finditer(text))
    table = pull.body.partition("### Picked")[2].partition("###")[0]
    yield from (f"{sha} is not in the table" for sha in batch["commits"] if sha[:10] not in table)
    yield from (f"no part {part!r}" for part in ("### Pins", "### How to review") if part not in pull.body)
    if "GitHub takes no longer text" in pull.body:
        yield "a part was left out"
    store = p.repository.path
    commits = git(store, "rev-list", "--reverse", f"{pull.pull.base_sha}..{pull.pull.head_sha}").split()
    picks = commits[: len(batch["commits"])] if batch["kind"] == "conflict" else commits
    if len(picks) != len(batch["commits"]):
        yield f"{len(picks)} commits on the branch, {len(batch['commits'])} in the block"
    for mine, theirs in zip(picks, batch["commits"], strict=False):
        message = git(store, "log", "-1", "--format=%B", mine)
        if parse(message).picks != (theirs,):
            yield f"{mine[:10]} names {parse(message).picks} and not {theirs}"
        if git(source, "merge-base", theirs, upstream) != theirs:
            yield f"{theirs} is not in upstream's history"
        person = "--format=%an%x09%ae%x09%ad"
        if git(store, "log", "-1", person, mine) != git(source, "log", "-1", person, theirs):
            yield f"{mine[:10]} has another author or date"
        if live := _LIVE.search(re.sub(r"https?://\S+", "", message)):
            yield f"{mine[:10]} mentions or refers: {live[0]!r} in {message[:80]!r}"


async def wide(p: Pair, source: Path, commit: str, config: str) -> dict[str, Any]:
    """A person's pull request with a change of hundreds of files: read whole by the gate, landed by squash."""
    store, maria = p.repository.path, p.sandbox.as_user("maria")
    base = git(store, "rev-parse", "refs/heads/main")
    head = configured(store, commit, config, parent=base)
    git(store, "update-ref", "refs/heads/wide", head)
    title, _, body = git(source, "log", "-1", "--format=%B", commit).partition("\n")
    start = time.monotonic()
    opened = await maria.open_pull(p.fork_name, title=title, body=body, head="wide", base="main")
    await p.settle()
    seconds = time.monotonic() - start
    said = [c for c in p.repository.check_runs.values() if c.head_sha == head and c.name == "graft/gate"]
    text = "\n".join(f"{c.title} {c.summary} {c.text}" for c in said)
    files = git(store, "diff", "--name-only", "--no-renames", base, head).splitlines()
    wrong = [] if said else ["the gate said nothing"]
    if "could not be read" in text or "can't be read" in text:
        wrong.append(f"its files were not read: {text[:300]}")
    before = (await p.plan()).ledger.metrics.backlog
    await maria.merge_pull(p.fork_name, int(opened["number"]), "squash")
    await p.settle()
    wrong += await p.failures()
    after = (await p.plan()).ledger.metrics.backlog
    return {
        "title": title[:80],
        "files": len(files),
        "gate": [c.conclusion for c in said],
        "asks": sorted(set(re.findall(r"compiler|frontend", text))),
        "seconds": round(seconds, 1),
        "backlog": [before, after],
        "faults": wrong,
    }


@asynccontextmanager
async def world(source: Path, upstream: str, fork: str, config: str) -> AsyncIterator[Pair]:
    """The pair on the sandbox with the bot installed, before its first look."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        async with Sandbox(root / "sandbox") as sandbox:
            for login in ("uma", "maria"):
                sandbox.create_user(login)
            sandbox.create_org("up", owners=["uma"])
            sandbox.create_org("acme", owners=["maria"])
            for name, tip in ((UPSTREAM, upstream), (FORK, fork)):
                path = sandbox.create_repository(*name.split("/")).path
                lend(source, path)
                git(path, "update-ref", "refs/heads/main", configured(path, tip, config) if name == FORK else tip)
            manifest = read_manifest(ROOT / "app.yml")
            app = sandbox.create_app(
                "graft", manifest["default_permissions"], manifest["default_events"], None, SECRET, owner="maria"
            )
            async with bot(root / "data", sandbox, app, job_lease_seconds=3600) as (context, clock):
                lend(source, context.mirror(FORK).path)
                clone = Clone(root / "clone")
                p = Pair(sandbox, app, context, clock, clone, clone)
                p.installation = sandbox.install(app, [FORK])
                yield p


async def run(given: argparse.Namespace, source: Path, upstream: str, fork: str) -> dict[str, Any]:
    """Open and check; gives the facts."""
    config = CONFIG.format(
        mode="act", bundles=given.bundles, chains=given.chains, all=given.bundles + given.chains,
        commits=given.max_commits, markers=json.dumps(given.marker),
    )  # fmt: skip
    async with world(source, upstream, fork, config) as p:
        start = time.monotonic()
        await p.settle()
        pulls = [opened(p, source, pull, upstream) for pull in p.pulls()]
        found: dict[str, Any] = {
            "seconds": round(time.monotonic() - start, 1),
            "bundles": sum(pull.kind == "bundle" for pull in pulls),
            "planned_bundles": len((await p.plan()).bundles),
            "pull_requests": [asdict(pull) for pull in pulls],
            "dashboard": len(p.dashboard().body),
            "faults": await p.failures(),
        }
        if given.show:
            for pull in p.pulls():
                print(f"\n# {pull.title}\n\n{pull.body}", file=sys.stderr)
            print(p.dashboard().body, file=sys.stderr)
    if found["bundles"] < min(given.bundles, found["planned_bundles"]):
        found["faults"].append(f"{found['bundles']} bundles of {found['planned_bundles']} are open")
    if given.wide:
        tip = git(source, "rev-parse", f"{given.wide}^")
        at = git(source, "log", "-1", "--format=%cI", tip)
        then = git(source, "rev-list", "-1", "--first-parent", f"--before={at}", given.upstream)
        async with world(source, then, tip, config.replace("mode: act", "mode: observe")) as p:
            await p.settle()
            found["wide"] = await wide(p, source, given.wide, config.replace("mode: act", "mode: observe"))
            found["faults"] += found["wide"]["faults"]
    found["faults"] += [f"#{pull.number}: {fault}" for pull in pulls for fault in pull.faults]
    return found


def main() -> int:
    """Read the options and run; 1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", type=Path, required=True)
    parser.add_argument("--at", required=True, help="both sides as they were before this date (UTC)")
    parser.add_argument("--upstream", default="refs/heads/upstream")
    parser.add_argument("--fork", default="refs/heads/fork")
    parser.add_argument("--marker", action="append", default=[], help="as in ingest.picked_markers")
    parser.add_argument("--bundles", type=int, default=10)
    parser.add_argument("--chains", type=int, default=0)
    parser.add_argument("--max-commits", type=int, default=25)
    parser.add_argument("--wide", metavar="COMMIT", help="a commit of the fork, opened as a person's pull request")
    parser.add_argument("--show", action="store_true", help="print the bodies on stderr")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    before = f"--before={given.at}T00:00:00Z"
    upstream, fork = (
        git(given.repository, "rev-list", "-1", "--first-parent", before, ref) for ref in (given.upstream, given.fork)
    )
    found = asyncio.run(run(given, given.repository.resolve(), upstream, fork))
    print(json.dumps(found, indent=1))
    return int(bool(found["faults"]))


if __name__ == "__main__":
    sys.exit(main())
