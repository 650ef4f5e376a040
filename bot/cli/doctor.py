"""`graft doctor`: says what is parked, stale or broken, and lets parked jobs run again."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.terminal import emit, plain, say

if TYPE_CHECKING:
    from rich.table import Table

    from bot.clients.store import Job, Store
    from bot.core.doctor import BudgetFact, Facts, Finding, IngestFact, JobFact, SuiteCost
    from bot.settings import Settings


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print the facts and findings as JSON.")] = False,
    retry: Annotated[
        list[int] | None, typer.Option(help="Let this parked job (its number) run again; may be repeated.")
    ] = None,
    retry_all: Annotated[bool, typer.Option("--retry-all", help="Let all parked jobs run again.")] = False,
    days: Annotated[int, typer.Option(min=0, help="Over how many days suites are priced; 0: not at all.")] = 30,
) -> None:
    """Say what is parked, stale or broken, and what each suite cost and caught.

    Exit status 0: all is well; 1: something is wrong; 2: the doctor could not look.
    """
    from bot.clients.store import StoreUnavailable
    from bot.core.doctor import diagnose
    from bot.settings import Settings, SettingsError

    try:
        settings = Settings.load()
        facts, missing = asyncio.run(_look(settings, retry or [], retry_all, days))
    except (SettingsError, StoreUnavailable, ValueError) as error:
        say(f"graft doctor: {error}", err=True)
        raise typer.Exit(2) from None
    if missing:
        say(f"graft doctor: no parked job has the number {', '.join(map(str, missing))}", err=True)
        raise typer.Exit(2)
    now = datetime.now(UTC)
    findings = diagnose(facts=facts, now=now, ingest_after=timedelta(hours=settings.stale_ingest_hours))
    if as_json:
        body = {"ok": not findings, "findings": [dataclasses.asdict(one) for one in findings], "facts": _plain(facts)}
        emit(json.dumps(body, indent=2, default=str))
    else:
        _print(facts, findings)
    raise typer.Exit(1 if findings else 0)


async def _look(settings: Settings, retry: list[int], retry_all: bool, days: int) -> tuple[Facts, list[int]]:
    from bot.clients.store import Store
    from bot.core.doctor import Facts, suite_costs
    from handlers.spending import run_fact

    store = await Store.open(settings.store_url)
    now = datetime.now(UTC)
    try:
        await store.ping()
        wanted = [job.id for job in await store.parked()] if retry_all else retry
        missing = [number for number in wanted if not await store.unpark(number, now)]
        if wanted and not missing:
            await _ring(settings)
        runners = await store.runners()
        queued = await store.queued_runs()
        facts = Facts(
            redis=await _redis(settings),
            github=await _github(settings),
            parked=tuple(_fact(job) for job in await store.parked()),
            stale=tuple(_fact(job) for job in await store.stale_leases(now)),
            jobs=await store.job_counts(),
            waiting_since=await store.next_due_at(),
            ingests=await _ingests(store),
            gpu_budgets=await _budgets(store, now),
            unanswered=tuple(
                f"{one.repository}#{one.number}" for one in await store.unanswered_commands(now - timedelta(minutes=30))
            ),
            waiting_labels={run.label: run.queued_at for run in reversed(queued)},
            seen_labels={label: one.seen_at for one in runners if one.seen_at for label in one.labels},
            sick_runners={
                one.name: str(one.facts.get("health") or "no word why")
                for one in runners
                if one.facts.get("healthy") is False and one.seen_at and now - one.seen_at < timedelta(hours=1)
            },
            last_delivery=await store.last_delivery_at(),
            costs=suite_costs([run_fact(run) for run in await store.runs_since(now - timedelta(days=days))]),
        )
    finally:
        await store.close()
    return facts, missing


async def _ingests(store: Store) -> tuple[IngestFact, ...]:
    from bot.core.doctor import IngestFact

    noted = await store.notes_everywhere("ingest")
    found = []
    for (_, repository, key), value in sorted(noted.items()):
        if key == "ingest" and isinstance(value, dict):
            good, failed = value.get("good_at"), value.get("failed_at")
            found.append(IngestFact(repository, _at(good), _at(failed), value.get("error")))
    return tuple(found)


async def _budgets(store: Store, now: datetime) -> tuple[BudgetFact, ...]:
    from bot.core.doctor import BudgetFact
    from bot.core.gpubudget import month_key

    noted = await store.notes_everywhere("gpu-budget")
    return tuple(
        BudgetFact(repository, one["area"], one["text"], one["spent"])
        for (_, repository, key), value in sorted(noted.items())
        if key == "gpu-budget" and value["month"] == month_key(now)
        for one in value["areas"]
    )


async def _redis(settings: Settings) -> str:
    from bot.clients.queue import Queue, QueueUnavailable

    queue = Queue(settings.redis_url.get_secret_value())
    try:
        await queue.ping()
    except QueueUnavailable as error:
        return str(error)
    finally:
        await queue.close()
    return ""


async def _ring(settings: Settings) -> None:
    from bot.clients.queue import Queue

    queue = Queue(settings.redis_url.get_secret_value())
    await queue.wake()
    await queue.close()


async def _github(settings: Settings) -> str:
    from bot.clients.github import GitHubApp, GitHubError
    from bot.settings import SettingsError

    try:
        settings.require_app()
        key = settings.private_key.get_secret_value()
        async with GitHubApp(settings.app_id, key, settings.github_api, max_wait=5, timeout=10) as github:
            await github.info()
    except (GitHubError, SettingsError, ValueError) as error:  # ValueError: the key is no key
        return str(error)
    return ""


def _fact(job: Job) -> JobFact:
    from bot.core.doctor import JobFact

    since = job.lease_until or job.updated_at
    return JobFact(job.id, job.kind, job.key, job.repository, job.attempts, job.last_error or "", since)


def _at(seconds: Any) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, int | float) else None


def _plain(facts: Facts) -> dict[str, Any]:
    return dataclasses.asdict(facts)


def _print(facts: Facts, findings: tuple[Finding, ...]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, highlight=False)
    counts = ", ".join(f"{number} {state}" for state, number in sorted((facts.jobs or {}).items())) or "none"
    newest = f"{facts.last_delivery:%Y-%m-%d %H:%M} UTC" if facts.last_delivery else "never"
    say(f"Jobs: {counts}. Last webhook: {newest}.")
    for budget in facts.gpu_budgets:
        say(f"GPU budget of {budget.repository} {budget.area}, this month: {budget.text}.")
    if facts.costs:
        console.print(_costs(facts.costs))
    if not findings:
        say("All is well.")
        return
    table = Table("what", "where", "why", "how to mend it")
    for one in findings:
        table.add_row(one.kind.value, plain(one.where), plain(one.text), plain(one.mend))
    console.print(table)


def _costs(costs: tuple[SuiteCost, ...]) -> Table:
    from rich.table import Table

    table = Table(
        "suite", "runs", "GPU h", "hours", "caught", "only here", "on trunk", "wasted", "h per catch",
        title="What each suite cost and caught",
    )  # fmt: skip
    for one in costs:
        each = f"{one.per_catch:.2f}" if one.per_catch is not None else "nothing caught"
        name = f"{one.repository} {one.level} {one.suite}"
        numbers = (one.caught, one.only, one.escaped, one.wasted)
        table.add_row(plain(name), str(one.runs), f"{one.gpu_hours:.2f}", f"{one.hours:.2f}", *map(str, numbers), each)
    return table
