"""Upstream's history rewritten (C23): said with what it means, followed on a word, no decision lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.core.audit import AuditKind
from bot.core.types import Disposition
from tests.handlers.pair import UPSTREAM, Pair, pair
from tests.handlers.test_dashboard import tick

pytestmark = pytest.mark.timeout(240)


def rewrite(p: Pair) -> dict[str, str]:
    """Upstream's commits again, on top of another first one and by another committer; `clash` is left out."""
    clone = p.upstream
    clone.git("checkout", "-q", "-B", "other", f"{p.shas['one']}^")
    clone.commit("Slip in (#9)", {"slipped.txt": "x\n"})
    found = {}
    for role in ("one", "two", "link1", "link2"):
        clone.time += 3600
        clone.git("cherry-pick", "--keep-redundant-commits", "--allow-empty", p.shas[role])
        found[role] = clone.git("rev-parse", "HEAD")
    p.sandbox.push_ref(UPSTREAM, "main", source=clone.path, rev="other")
    return found


async def test_a_rewritten_upstream_is_followed_on_a_maintainers_word(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        bundle = p.pull_with(p.shas["one"]).number
        await p.says("maria", bundle, f'/wont-port {p.shas["two"][:10]} reason="our own"')
        await p.merge(p.pull_with(p.shas["one"]).number, "squash")
        link, clash = p.pull_with(p.shas["link1"]).number, p.pull_with(p.shas["clash"]).number
        p.person_pushes(p.repository.issues[clash].pull.head_ref, "Resolve", {"clash.txt": "mine\n"})
        await p.settle()
        p.failing = True  # upstream can't be read for a while
        new = rewrite(p)
        await p.ingest()
        body = p.dashboard().body
        assert "Upstream's history was rewritten" in body
        assert "5 commits gone, 5 new; 4 of the gone stand there again" in body
        assert f"this fork had picked 1 of the gone: `{p.shas['one'][:10]}`" in body
        # someone who may only write has no say in it
        await tick(p, "rewritten history", login="walter")
        assert "Upstream's history was rewritten" in p.dashboard().body
        await tick(p, "rewritten history", login="maria")
        assert "Upstream's history was rewritten" not in p.dashboard().body
        ledger = {entry.sha: entry for entry in (await p.plan()).ledger.entries}
        assert p.shas["one"] not in ledger
        assert ledger[new["one"]].disposition is Disposition.PICKED  # by the pull request's number in its trailer
        kept = {e.sha: e for e in await p.context.store.decisions(p.fork_name)}
        assert f"as {p.shas['one'][:10]} before" in kept[new["one"]].reason  # and where there is none
        assert (ledger[new["two"]].disposition, ledger[new["two"]].by) == (Disposition.WONT_PORT, "maria")
        # what was open of it is closed with the reason and comes anew; a person's own work is left alone
        assert p.repository.issues[link].state == "closed"
        assert any("was rewritten and no longer has" in text for text in p.comments(link))
        assert len(p.carrying(new["link1"])) == 1
        assert p.repository.issues[clash].state == "open"
        told = [text for text in p.comments(p.dashboard().number) if "maria let Graft follow" in text]
        assert len(told) == 1
        audit = [e.body for e in await p.context.store.audit_entries(p.fork_name) if e.kind == AuditKind.DECISION]
        (followed,) = [body for body in audit if "rewritten" in str(body.get("what"))]
        assert (followed["by"], followed["gone"], followed["picked"]) == ("maria", 5, [p.shas["one"]])
