"""Check runs: one of ours by name and commit, annotations in portions of 50, written only when something changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bot.clients.github.api import Api
from bot.clients.github.models import Annotation, CheckRun

ANNOTATIONS_AT_ONCE = 50


class Checks(Api):
    """Check runs of commits."""

    async def check_runs(self, sha: str, *, name: str | None = None, latest: bool = True) -> list[CheckRun]:
        """The check runs of a commit, of all Apps; `latest` drops those that a newer one of the same name replaced."""
        params: dict[str, str] = {"filter": "latest" if latest else "all"}
        if name is not None:
            params["check_name"] = name
        found = await self._list(f"/commits/{sha}/check-runs", params, key="check_runs")
        return [CheckRun.model_validate(raw) for raw in found]

    async def upsert_check(
        self,
        sha: str,
        name: str,
        *,
        status: str,
        conclusion: str | None = None,
        title: str = "",
        summary: str = "",
        text: str = "",
        annotations: Sequence[Annotation] = (),
        external_id: str = "",
        details_url: str = "",
    ) -> CheckRun:
        """Our check run `name` of this commit says this; a completed one that starts again becomes a new run.

        The texts must keep GitHub's limits (65,535 characters). Annotations only ever add up on GitHub: those that
        are there already are not sent again.
        """
        body: dict[str, Any] = {"name": name, "status": status}
        body |= {"conclusion": conclusion} if conclusion else {}
        body |= {"external_id": external_id} if external_id else {}
        body |= {"details_url": details_url} if details_url else {}
        output = {"title": title or name, "summary": summary} | ({"text": text} if text else {})

        async def find() -> CheckRun | None:
            app = await self.identity()
            mine = [run for run in await self.check_runs(sha, name=name) if run.app and run.app.id == app.id]
            return max(mine, key=lambda run: run.id) if mine else None

        async def find_new() -> CheckRun | None:
            run = await find()
            return run if run is not None and (old is None or run.id != old.id) else None

        async with self._writer() as write:
            old = run = await find()
            if run is not None and (run.status != "completed" or status == "completed"):
                left = list(annotations[run.output.annotations_count :])
                if not left and _says(run, body, output):
                    return run
            else:
                run, left = None, list(annotations)
            while True:
                portion, left = left[:ANNOTATIONS_AT_ONCE], left[ANNOTATIONS_AT_ONCE:]
                sent = body | {"output": output | {"annotations": [one.to_json() for one in portion]}}
                if run is None:
                    path = f"{self._root}/check-runs"
                    run = await write.create(
                        path, {**sent, "head_sha": sha}, find=find_new, parse=CheckRun.model_validate
                    )
                else:
                    raw = await write.send("PATCH", f"{self._root}/check-runs/{run.id}", sent)
                    run = CheckRun.model_validate(raw)
                if not left:
                    return run


def _says(run: CheckRun, body: dict[str, Any], output: dict[str, str]) -> bool:
    here = run.output
    return (
        (run.status, run.conclusion or None) == (body["status"], body.get("conclusion"))
        and (here.title, here.summary, here.text) == (output["title"], output["summary"], output.get("text", ""))
        and run.external_id == body.get("external_id", run.external_id)
        and run.details_url == body.get("details_url", run.details_url)
    )
