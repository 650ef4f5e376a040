"""GitHub Actions as an outside system: runs of workflows, their jobs and artifacts, dispatches.

What an artifact holds was written by code under test: it is handed on as bytes, within a limit, and nothing in it is
opened here (`bot.core.reports.archive` reads it in memory).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bot.clients.github.api import Api, segment
from bot.clients.github.errors import Conflict, TooLarge
from bot.clients.github.models import WorkflowArtifact, WorkflowJob, WorkflowRun

ARCHIVE_LIMIT = 64 * 1024 * 1024


class Actions(Api):
    """Workflow runs of the repository."""

    async def workflow_runs(
        self,
        *,
        sha: str | None = None,
        event: str | None = None,
        branch: str | None = None,
        status: str | None = None,
        since: datetime | None = None,
        limit: int = 500,
    ) -> list[WorkflowRun]:
        """Runs of all workflows, newest first, cut to what is given; `status` also takes a conclusion.

        GitHub gives at most 1,000 of a filtered list: what may be longer is to be cut by `since`.
        """
        params: dict[str, str | int] = {}
        wanted = {"head_sha": sha, "event": event, "branch": branch, "status": status}
        params |= {name: value for name, value in wanted.items() if value is not None}
        if since is not None:
            params["created"] = f">={since:%Y-%m-%dT%H:%M:%SZ}"
        found = await self._list("/actions/runs", params, key="workflow_runs", limit=limit)
        return [WorkflowRun.model_validate(raw) for raw in found]

    async def workflow_run(self, run_id: int) -> WorkflowRun:
        """One run; NotFound where it was deleted."""
        return WorkflowRun.model_validate(await self._get(f"/actions/runs/{run_id}"))

    async def workflow_jobs(self, run_id: int) -> list[WorkflowJob]:
        """The jobs of a run's newest attempt."""
        found = await self._list(f"/actions/runs/{run_id}/jobs", {"filter": "latest"}, key="jobs")
        return [WorkflowJob.model_validate(raw) for raw in found]

    async def artifacts(self, run_id: int, *, name: str | None = None) -> list[WorkflowArtifact]:
        """The artifacts of a run, expired ones too; several attempts may have left one of the same name."""
        params = {"name": name} if name is not None else None
        found = await self._list(f"/actions/runs/{run_id}/artifacts", params, key="artifacts")
        return [WorkflowArtifact.model_validate(raw) for raw in found]

    async def download_artifact(self, artifact: WorkflowArtifact, *, limit: int = ARCHIVE_LIMIT) -> bytes:
        """The zip of an artifact. Raises Gone where it has expired, TooLarge where it has more than `limit` bytes.

        The limit holds for what really comes, whatever GitHub says of its size.
        """
        path = f"{self._root}/actions/artifacts/{artifact.id}/zip"
        if artifact.size_in_bytes > limit:
            raise TooLarge(f"artifact {artifact.name} has {artifact.size_in_bytes} bytes, more than {limit}", url=path)
        return await self.transport.download(path, self.installation, limit=limit)

    async def dispatch(self, workflow: str, *, ref: str, inputs: Mapping[str, str]) -> int | None:
        """Start a workflow (file name or id) on a ref; the id of its run where GitHub tells it.

        Not repeated where its effect is not known (Unavailable): look for the run by what `inputs` made of its name.
        """
        body: dict[str, Any] = {"ref": ref, "inputs": dict(inputs), "return_run_details": True}
        async with self._writer() as write:
            raw = await write.send(
                "POST", f"{self._root}/actions/workflows/{segment(workflow)}/dispatches", body, repeat=False
            )
        return int(raw["workflow_run_id"]) if isinstance(raw, dict) and raw.get("workflow_run_id") else None

    async def cancel_workflow_run(self, run_id: int) -> bool:
        """Ask that a run ends; False where it has ended."""
        async with self._writer() as write:
            try:
                await write.send("POST", f"{self._root}/actions/runs/{run_id}/cancel", repeat=True)
            except Conflict:
                return False
        return True
