"""A plan as one page for a browser: what can land today, and each chain drawn with what its links wait for."""

from __future__ import annotations

from html import escape

from bot.core.types import Chain, Plan, PlannedCommit, Reason

_STEP, _LEFT, _ROW = 26, 90, 22
_SHOWN = 60
_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .2rem .6rem .2rem 0;
 border-bottom: 1px solid var(--soft); vertical-align: top; } code { font-size: .92em; }
.numbers { display: flex; gap: 2rem; flex-wrap: wrap; } .numbers b { display: block; font-size: 1.6rem; }
.safe { color: #1a7f37; } .watch { color: #9a6700; } .risky { color: #bc4c00; } .conflict { color: #cf222e; }
.empty, .skipped { color: #656d76; } details { margin: .4rem 0; } summary { cursor: pointer; }
svg { max-width: 100%; height: auto; } svg text { font: 11px ui-monospace, monospace; fill: currentColor; }
svg path { fill: none; stroke: var(--line); } small { color: #656d76; }
"""


def page(plan: Plan, *, upstream: str, fork: str) -> str:
    """The whole page, without any script or outside address. All text from repositories is escaped."""
    bundled = sum(len(bundle.commits) for bundle in plan.bundles)
    chained = sum(len(chain.commits) for chain in plan.chains)
    metrics = plan.ledger.metrics
    numbers = [
        (f"{bundled}", f"can land now, in {len(plan.bundles)} bundles"),
        (f"{chained}", f"in {len(plan.chains)} chains and lanes"),
        (f"{len(plan.held)}", "held"),
        (f"{len(plan.settled)}", "need nothing"),
        (f"{metrics.days_behind:.1f}", "Days Behind Upstream"),
        (f"{metrics.backlog}", "Backlog Commits"),
    ]
    parts = [
        f"<h1>{escape(fork)} against {escape(upstream)}</h1>",
        f"<p><small>upstream <code>{plan.upstream_tip[:12]}</code>, fork <code>{plan.fork_tip[:12]}</code>, parted at"
        f" <code>{plan.merge_base[:12]}</code></small></p>",
        '<div class="numbers">' + "".join(f"<div><b>{n}</b>{escape(what)}</div>" for n, what in numbers) + "</div>",
        "<h2>Bundles</h2>",
        *(
            _details(f"{bundle.key}: {len(bundle.commits)} commits, {bundle.grade.value}", _table(bundle.commits))
            for bundle in plan.bundles
        ),
        "<h2>Chains and lanes</h2>",
        *(_chain(chain) for chain in plan.chains),
        "<h2>Held</h2>",
        _table(plan.held),
        "<h2>Holes</h2>",
        _holes(plan),
        "<h2>Nothing to do</h2>",
        _details(f"{len(plan.settled)} commits", _table(plan.settled)),
    ]
    title = escape(f"{fork}: plan")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _chain(chain: Chain) -> str:
    name = "Lane" if chain.lane else "Chain"
    links = f"{len(chain.commits)} links" if len(chain.commits) > 1 else "one link"
    head = f"{name} {chain.key}: {links}, first {chain.commits[0].subject[:80]}"
    return _details(head, _picture(chain.commits[:_SHOWN]) + _table(chain.commits), shown=len(chain.commits) <= 12)


def _picture(commits: tuple[PlannedCommit, ...]) -> str:
    """The links from top to bottom, an arc from each to those of them that it waits for."""
    if len(commits) < 2:
        return ""
    rows = {commit.sha: index for index, commit in enumerate(commits)}
    arcs, dots = [], []
    for index, commit in enumerate(commits):
        y = index * _ROW + 14
        for need in commit.waits_for:
            if need in rows:
                top = rows[need] * _ROW + 14
                bend = _LEFT - min(_STEP + 4 * (index - rows[need]), _LEFT - 6)
                arcs.append(f'<path d="M{_LEFT} {top}C{bend} {top} {bend} {y} {_LEFT} {y}"/>')
        label = f"{commit.sha[:8]} {commit.subject[:90]}"
        dots.append(
            f'<circle class="{commit.verdict.value}" cx="{_LEFT}" cy="{y}" r="4" fill="currentColor"/>'
            f'<text x="{_LEFT + 12}" y="{y + 4}">{escape(label)}</text>'
        )
    height = len(commits) * _ROW + 8
    return (
        f'<svg viewBox="0 0 900 {height}" width="900" height="{height}" role="img" aria-label="links of the chain">'
        f"{''.join(arcs)}{''.join(dots)}</svg>"
    )


def _table(commits: tuple[PlannedCommit, ...]) -> str:
    if not commits:
        return "<p><small>none</small></p>"
    return (
        "<table><tr><th>commit</th><th>verdict</th><th>subject</th><th>why</th></tr>"
        + "".join(_row(commit) for commit in commits)
        + "</table>"
    )


def _reason(reason: Reason) -> str:
    shown, more = reason.brief(3)
    evidence = "".join(f" <code>{escape(item[:60])}</code>" for item in shown)
    return escape(reason.text) + evidence + (f" (+{more})" if more else "")


def _row(commit: PlannedCommit) -> str:
    why = "<br>".join(map(_reason, commit.reasons[:3]))
    waits = ", ".join(f"<code>{need[:8]}</code>" for need in commit.waits_for[:6])
    waiting = f"<br><small>waits for {waits}</small>" if waits else ""
    number = f" <small>#{commit.pr}</small>" if commit.pr is not None else ""
    verdict = commit.verdict.value
    return (
        f"<tr><td><code>{commit.sha[:10]}</code>{number}</td><td class={verdict}>{verdict}</td>"
        f"<td>{escape(commit.subject[:160])}</td><td>{why}{waiting}</td></tr>"
    )


def _holes(plan: Plan) -> str:
    if not plan.ledger.holes:
        return "<p><small>none</small></p>"
    rows = "".join(
        f"<tr><td><code>{hole.sha[:10]}</code></td><td>{hole.age_days:.0f}</td><td>{escape(hole.subject[:120])}</td>"
        f"<td>{escape(hole.reason)}</td><td>{escape(hole.owner or 'nobody')}</td></tr>"
        for hole in plan.ledger.holes
    )
    head = "<tr><th>commit</th><th>days</th><th>subject</th><th>why</th><th>owner</th></tr>"
    return f"<table>{head}{rows}</table>"


def _details(head: str, body: str, *, shown: bool = False) -> str:
    return f"<details{' open' if shown else ''}><summary>{escape(head)}</summary>{body}</details>"
