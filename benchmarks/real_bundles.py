"""The first bundles of a real pair, opened on the sandbox as GitHub: by hand, one run takes minutes.

    python benchmarks/real_bundles.py --repository PAIR.git --at 2026-06-01 [--bundles 10] [--show]

PAIR.git holds both histories in one repository (`--upstream`, `--fork`: refs). Checks of each pull request: that it
carries one commit for each upstream commit, author and date kept, every trailer resolvable, no mention or reference
left in messages, the body within GitHub's limit and its block readable. Exit 1 where a check fails.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from bot.core.render.pull import read_batch
from bot.core.trailers import parse
from bot.sandbox.driver import Sandbox
from bot.sandbox.stage import read_manifest
from tests.handlers.pair import FORK, UPSTREAM, Clone, Pair, bot
from tests.world import ROOT, SECRET

CONFIG = """upstream: {{repository: up/pkg}}
mode: act
ingest:
  caps: {{open_bundles: {bundles}, open_chains: 0, pull_requests_per_day: {bundles}}}
  bundle: {{max_commits: 25, max_files: 400}}
  max_files: 400
  picked_markers: ['Reactor Backport Revision: (?P<sha>[0-9a-f]{{40}})']
"""


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


def configured(path: Path, tip: str, config: str) -> str:
    """A commit on `tip` that adds the fork's file."""
    blob = git(path, "hash-object", "-w", "--stdin", text=config)
    index = {"GIT_INDEX_FILE": str(path / "graft-index")}
    for words in (["read-tree", tip], ["update-index", "--add", "--cacheinfo", f"100644,{blob},.github/graft.yml"]):
        subprocess.run(["git", "-C", str(path), *words], check=True, env=index | {"PATH": "/usr/bin:/bin"})
    tree = subprocess.run(
        ["git", "-C", str(path), "write-tree"],
        check=True, env=index | {"PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    return git(path, "-c", "user.name=m", "-c", "user.email=m@x.org", "commit-tree", tree, "-p", tip, "-m", "Set up")


def faults(p: Pair, source: Path, pull: Any) -> Iterator[str]:
    """What is wrong with one pull request."""
    batch = read_batch(pull.body)
    if batch is None:
        yield "its block can't be read"
        return
    if len(pull.body) > 65_536 or len(pull.title) >= 256:
        yield "too long"
    store = p.repository.path
    commits = git(store, "rev-list", "--reverse", f"{pull.pull.base_sha}..{pull.pull.head_sha}").split()
    if len(commits) != len(batch["commits"]):
        yield f"{len(commits)} commits on the branch, {len(batch['commits'])} in the block"
    for mine, theirs in zip(commits, batch["commits"], strict=False):
        message = git(store, "log", "-1", "--format=%B", mine)
        if parse(message).picks != (theirs,):
            yield f"{mine[:10]} names {parse(message).picks} and not {theirs}"
        if git(source, "cat-file", "-t", theirs) != "commit":
            yield f"{theirs} does not resolve"
        person = "--format=%an%x09%ae%x09%ad"
        if git(store, "log", "-1", person, mine) != git(source, "log", "-1", person, theirs):
            yield f"{mine[:10]} has another author or date"
        if re.search(r"(?<![\w`/.@])@[A-Za-z]|(?<!\w)#\d", message):
            yield f"{mine[:10]} mentions or refers: {message[:80]!r}"


async def run(source: Path, upstream: str, fork: str, bundles: int, show: bool) -> int:
    """Open and check; gives the number of faults."""
    found = 0
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
                at = configured(path, tip, CONFIG.format(bundles=bundles)) if name == FORK else tip
                git(path, "update-ref", "refs/heads/main", at)
            manifest = read_manifest(ROOT / "app.yml")
            app = sandbox.create_app(
                "graft", manifest["default_permissions"], manifest["default_events"], None, SECRET, owner="maria"
            )
            async with bot(root / "data", sandbox, app, job_lease_seconds=3600) as (context, clock):
                lend(source, context.mirror(FORK).path)
                clone = Clone(root / "clone")
                p = Pair(sandbox, app, context, clock, clone, clone)
                p.installation = sandbox.install(app, [FORK])
                start = time.monotonic()
                await p.settle()
                print(f"{len(p.pulls())} open after {time.monotonic() - start:.0f} s")
                for text in await p.failures():
                    print(text)
                    found += 1
                for pull in p.pulls():
                    wrong = list(faults(p, source, pull))
                    found += len(wrong)
                    print(f"#{pull.number} {pull.title}: {'; '.join(wrong) or 'right'}, body {len(pull.body)}")
                    if show:
                        print(pull.body)
                print(p.dashboard().body[:1_500])
    return found


def main() -> int:
    """Read the options and run; 1 where anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", type=Path, required=True)
    parser.add_argument("--at", required=True, help="both sides as they were before this date (UTC)")
    parser.add_argument("--upstream", default="refs/heads/upstream")
    parser.add_argument("--fork", default="refs/heads/fork")
    parser.add_argument("--bundles", type=int, default=10)
    parser.add_argument("--show", action="store_true", help="print the bodies")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    before = f"--before={given.at}T00:00:00Z"
    upstream, fork = (
        git(given.repository, "rev-list", "-1", "--first-parent", before, ref) for ref in (given.upstream, given.fork)
    )
    source = given.repository.resolve()
    return int(asyncio.run(run(source, upstream, fork, given.bundles, given.show)) > 0)


if __name__ == "__main__":
    sys.exit(main())
