"""The scenario of the demo: people act on the sandbox, Graft answers; nothing here reaches into the bot.

Each step waits for what the bot wrote on the sandbox's GitHub, so that a step which never comes ends in TimeoutError
with what was waited for.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bot.sandbox.driver import Sandbox
from bot.sandbox.model import CheckRun, Issue, Pull
from bot.sandbox.person import Refused, UserClient
from bot.sandbox.sample import person_commit
from bot.sandbox.stage import GATE, Stage

Say = Callable[[str, str], None]
MAINTAINER, ADMIN, STRANGER, LAYOUTS = "jonas-lind", "mia-okafor", "sam-reed", "wen-zhao"
PATIENCE = 300.0
# a row of the table of what is missing, on the check's page
_MISSING = re.compile(r"^\| (?:❌|⏳) \| (.*?) \|", re.MULTILINE)
_BLOCK = re.compile(r"<!-- graft:(\w+) (\{.*?\}) -->")


@dataclass
class Told:
    """What the scenario saw, by pull request number and in whole."""

    gate_before: dict[int, dict[str, Any]] = field(default_factory=dict)
    gate_after: dict[int, dict[str, Any]] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


class Story:
    """Plays the scenario on a stage; `say(what, where)` hears each step with an address to look at."""

    def __init__(self, stage: Stage, say: Say) -> None:
        self.stage = stage
        self.sandbox: Sandbox = stage.sandbox
        self.fork = stage.fork
        self.told = Told()
        self._say = say
        self._start = time.monotonic()

    async def play(self) -> Told:
        """The whole loop, from the installation to a broken trunk with its owner."""
        await self.install()
        await self.upstream_moves()
        await self.a_bundle_lands()
        await self.a_chain_lands()
        await self.a_stranger_helps()
        await self.trunk_breaks()
        self.told.seconds["whole"] = round(time.monotonic() - self._start, 1)
        return self.told

    async def install(self) -> None:
        """The App is installed: Graft reads both histories and opens what the plan allows."""
        self.stage.install()
        self._say("The App is installed on the fork; Graft reads both histories and plans.", f"/{self.fork}")
        await self._until(self._open, "Graft's first pull request")
        await self._until(self._dashboard, "the dashboard issue")
        self._mark("first pull request")

    async def upstream_moves(self) -> None:
        """Upstream lands more; a maintainer asks for a look by the dashboard's box."""
        last = self.stage.sample.stages[-1]
        name = self.stage.sample.upstream_name
        self.sandbox.push_ref(name, "main", source=self.stage.sample.upstream, rev=last.sha)
        self._say(f"Upstream lands {len(last.commits)} more commits.", f"/{name}")
        dashboard = self._dashboard()
        assert dashboard is not None
        body = (dashboard.body or "").replace("- [ ] Look at both sides", "- [x] Look at both sides")
        await self._as(MAINTAINER).request("PATCH", f"/repos/{self.fork}/issues/{dashboard.number}", {"body": body})
        self._say(
            f"{MAINTAINER} ticks a box of the dashboard: look again now.", f"/{self.fork}/issues/{dashboard.number}"
        )
        await self._until(lambda: last.sha[:10] in (self.dashboard_body() or ""), "a plan up to upstream's new tip")
        for kind in ("graft:bundle", "graft:chain", "graft:conflict"):
            await self._until(partial(self._open, kind), f"a pull request labelled {kind}")
        for issue in self._open():
            self._say(f"Graft opened #{issue.number}: {issue.title}", f"/{self.fork}/pull/{issue.number}")
        self._mark("planned")

    async def a_bundle_lands(self) -> None:
        """The first bundle is validated, its gate opens by L1 alone, a maintainer merges it."""
        issue = await self._first_allowed("graft:bundle")
        self._say(f"A runner proved #{issue.number} (L1): its gate allows.", f"/{self.fork}/pull/{issue.number}")
        await self._merge(issue)
        self._mark("bundle landed")

    async def a_chain_lands(self) -> None:
        """The links of one chain, in order: L2 by command, an owner signs its numbers, the gate opens, it lands."""
        issue = await self._until(lambda: self._next_link(None), "a chain's first link")
        key = self._block(issue)["key"]
        for position in range(1, len(self._block(issue)["chain"]) + 1):
            link = await self._until(partial(self._next_link, key, position), f"link {position} of chain {key}")
            await self._sign_off(link)
            await self._merge(link)
        self._mark("chain landed")

    async def _sign_off(self, issue: Issue) -> None:
        number, where = issue.number, f"/{self.fork}/pull/{issue.number}"
        await self._until(lambda: self._check(issue, "graft/l1", "success"), f"L1 of #{number}")
        await self._until(lambda: self._settled(issue), f"the gate of #{number}")
        if self._check(issue, GATE, "success"):
            return
        self.told.gate_before[number] = self.gate(issue)
        try:
            await self._as(MAINTAINER).merge_pull(self.fork, number)
        except Refused as error:
            self.told.refused[number] = error.message
        self._say(f"#{number} can't land yet: {self.told.gate_before[number]['reason']}", where)
        await self._as(MAINTAINER).comment(self.fork, number, "/validate l2")
        self._say(f"{MAINTAINER}: /validate l2", where)
        await self._until(lambda: self._check(issue, "graft/l2", "success"), f"L2 of #{number}")
        await self._as(MAINTAINER).comment(self.fork, number, '/signoff l3 core ne=0.8012 qps=+1.2% note="offline run"')
        self._say(f"{MAINTAINER}: /signoff l3 core ne=0.8012 qps=+1.2%", where)
        await self._until(lambda: self._check(issue, GATE, "success"), f"the open gate of #{number}")
        self._say(f"The gate of #{number} allows.", where)

    async def a_stranger_helps(self) -> None:
        """A person's pull request from elsewhere: runs only after /ok-to-test, lands after its area's owner signed."""
        change, sample = self.stage.sample.pull_request, self.stage.sample
        sha = person_commit(sample.fork, change, sample.fork_tip)
        copy = self.sandbox.create_fork(self.fork, STRANGER)
        self.sandbox.push_ref(copy.full_name, "say-blocked", source=sample.fork, rev=sha, login=STRANGER)
        opened = await self._as(STRANGER).open_pull(
            self.fork, f"{STRANGER}:say-blocked", title="layout: say what blocked means"
        )
        number, where = int(opened["number"]), f"/{self.fork}/pull/{opened['number']}"
        issue = self._issue(number)
        self._say(f"{STRANGER}, who may not write here, opens #{number}: nothing of it runs yet.", where)
        await self._until(lambda: self._check(issue, GATE, None), f"a check on #{number}")
        await self._as(MAINTAINER).comment(self.fork, number, "/ok-to-test")
        self._say(f"{MAINTAINER}: /ok-to-test", where)
        await self._until(lambda: self._check(issue, "graft/l1", "success"), f"L1 of #{number}")
        await self._until(lambda: self._settled(issue), f"the gate of #{number}")
        self.told.gate_before[number] = self.gate(issue)
        await self._as(LAYOUTS).comment(self.fork, number, '/signoff l3 layouts note="a docstring only"')
        self._say(f"{LAYOUTS}, who owns the area: /signoff l3 layouts", where)
        await self._until(lambda: self._check(issue, GATE, "success"), f"the open gate of #{number}")
        await self._merge(issue)
        self._mark("person's change landed")

    async def trunk_breaks(self) -> None:
        """Someone pushes past the gate and breaks a test on trunk: an issue with area and owner appears."""
        change = self.stage.sample.trunk_break
        repository = self.sandbox.state.known_repository(self.fork)
        tip = self.sandbox.state.store(repository).resolve("refs/heads/main")
        assert tip is not None
        store = repository.path
        sha = person_commit(store, change, tip)
        self.sandbox.push_ref(self.fork, "main", source=store, rev=sha, login=ADMIN)
        self._say(f"{ADMIN} pushes past the gate: {change.message.strip()}", f"/{self.fork}/commit/{sha}")
        issue = await self._until(self._whole_breakage, "the issue of the broken trunk, with its area and owner")
        self._say(
            f"Graft opened #{issue.number}: {issue.title} ({', '.join(issue.labels)}; {', '.join(issue.assignees)})",
            f"/{self.fork}/issues/{issue.number}",
        )
        self._mark("breakage told")

    # what stands on the sandbox's GitHub

    def breakages(self) -> list[Issue]:
        """The issues of broken trunk."""
        return [i for i in self._issues() if i.pull is None and "trunk-breakage" in i.labels]

    def _whole_breakage(self) -> Issue | None:
        # labels and assignees may come in calls of their own, a moment after the issue
        whole = (i for i in self.breakages() if i.assignees and any(name.startswith("area:") for name in i.labels))
        return next(whole, None)

    def pulls(self) -> list[Issue]:
        """All pull requests, by number."""
        return [issue for issue in self._issues() if issue.pull is not None]

    def _issues(self) -> list[Issue]:
        return sorted(self.sandbox.state.known_repository(self.fork).issues.values(), key=lambda issue: issue.number)

    def _issue(self, number: int) -> Issue:
        return self.sandbox.state.known_repository(self.fork).issues[number]

    def _open(self, label: str | None = None) -> list[Issue]:
        return [i for i in self.pulls() if i.state == "open" and (label is None or label in i.labels)]

    def _dashboard(self) -> Issue | None:
        return next((i for i in self._issues() if "graft:dashboard" in i.labels), None)

    def dashboard_body(self) -> str | None:
        """The dashboard's text."""
        issue = self._dashboard()
        return issue.body if issue else None

    async def _first_allowed(self, label: str) -> Issue:
        """The first by number that needs no more than L1, whichever was proved first."""
        for issue in self._open(label):
            await self._until(partial(self._check, issue, "graft/l1", "success"), f"L1 of #{issue.number}")
            await self._until(partial(self._settled, issue), f"the gate of #{issue.number}")
            if self._check(issue, GATE, "success"):
                return issue
        raise TimeoutError(f"no open pull request labelled {label} whose gate allows it by L1 alone")

    def _next_link(self, key: str | None, position: int = 1) -> Issue | None:
        found = [i for i in self._open("graft:chain") if self._block(i)["position"] == position]
        found = [i for i in found if len(self._block(i)["chain"]) > 1 and key in (None, self._block(i)["key"])]
        return max(found, key=lambda i: len(self._block(i)["chain"]), default=None)

    def _block(self, issue: Issue) -> dict[str, Any]:
        return read_block(issue.body or "", "batch")

    def checks(self, issue: Issue) -> dict[str, CheckRun]:
        """The newest check of each name on a pull request's head."""
        pull = _pull(issue)
        runs = self.sandbox.state.known_repository(self.fork).check_runs.values()
        return {run.name: run for run in sorted(runs, key=lambda r: r.id) if run.head_sha == pull.head_sha}

    def _check(self, issue: Issue, name: str, conclusion: str | None) -> CheckRun | None:
        """The check where it is there and (unless None) completed with this conclusion."""
        run = self.checks(issue).get(name)
        return run if run is not None and (conclusion is None or run.conclusion == conclusion) else None

    def _settled(self, issue: Issue) -> bool:
        """True where the gate has taken note that no run is on its way."""
        run = self.checks(issue).get(GATE)
        return run is not None and run.status == "completed" and "(attempt" not in f"{run.title}{run.text}"

    def gate(self, issue: Issue) -> dict[str, Any]:
        """What the gate says of a pull request's head: decision and reason."""
        run = self.checks(issue).get(GATE)
        if run is None:
            return {"decision": "none", "reason": "", "missing": []}
        title = run.title or ""
        missing = [found[1].strip() for found in _MISSING.finditer(run.text or "")]
        return {"decision": title.split(":")[0], "reason": title.partition(": ")[2], "missing": missing}

    # acting

    async def _merge(self, issue: Issue) -> None:
        number = issue.number
        if _pull(issue).draft:
            await self._as(MAINTAINER).ready_for_review(self.fork, number)
            await self._until(lambda: self._check(issue, GATE, "success"), f"the open gate of #{number}")
        self.told.gate_after[number] = self.gate(issue)
        await self._as(MAINTAINER).merge_pull(self.fork, number)
        self._say(f"{MAINTAINER} merges #{number}.", f"/{self.fork}/pull/{number}")

    def _as(self, login: str) -> UserClient:
        return self.sandbox.as_user(login)

    async def _until(self, predicate: Callable[[], Any], what: str) -> Any:
        try:
            return await self.sandbox.wait_for(predicate, what, PATIENCE)
        except TimeoutError as error:
            gates = [
                f"#{issue.number}: {self.gate(issue)['reason']}" for issue in self.pulls() if _state(issue) == "open"
            ]
            raise TimeoutError(f"{error}; the gates say: {'; '.join(gates) or 'nothing'}") from None

    def _mark(self, what: str) -> None:
        self.told.seconds[what] = round(time.monotonic() - self._start, 1)


def read_block(body: str, name: str) -> dict[str, Any]:
    """A machine-readable block of a text that Graft wrote, read as a stranger to Graft's code would."""
    for found in _BLOCK.finditer(body):
        if found[1] == name:
            data: dict[str, Any] = json.loads(found[2])
            return data
    return {}


def _pull(issue: Issue) -> Pull:
    assert issue.pull is not None
    return issue.pull


def _state(issue: Issue) -> str:
    if _pull(issue).merged_at:
        return "merged"
    if issue.state == "closed":
        return "closed"
    return "draft" if _pull(issue).draft else "open"


def facts(story: Story) -> dict[str, Any]:
    """What the scenario ended with, as `graft demo --once --json` prints it."""
    told = story.told
    rows = []
    for issue in story.pulls():
        pull, block = _pull(issue), read_block(issue.body or "", "batch")
        after = told.gate_after.get(issue.number, story.gate(issue))
        rows.append(
            {
                "number": issue.number,
                "title": issue.title,
                "kind": block.get("kind", "person"),
                "chain": block.get("key") if block.get("kind") == "chain" else None,
                "position": block.get("position"),
                "state": _state(issue),
                "head": pull.head_sha,
                "commits": block.get("commits", []),
                "checks": {name: run.conclusion or run.status for name, run in story.checks(issue).items()},
                "comments": len(issue.comments),
                "gate": {"before": told.gate_before.get(issue.number), "after": after},
                "refused": told.refused.get(issue.number),
            }
        )
    metrics = read_block(story.dashboard_body() or "", "metrics")
    return {
        "pull_requests": rows,
        "breakages": [
            {"number": i.number, "title": i.title, "labels": i.labels, "owners": i.assignees} for i in story.breakages()
        ],
        "metrics": {"days_behind": metrics.get("days_behind"), "backlog": metrics.get("backlog")},
        "ledger": {"pin": metrics.get("pin"), "frontier": metrics.get("frontier")},
        "seconds": told.seconds,
    }
