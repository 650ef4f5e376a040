from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from bot.clients.github import Forbidden, GitHubApp, Gone, NotFound, Repository, TooLarge, Unavailable, Validation
from tests.sandbox.fixtures import REPO, Scene, checkout, listener, sandbox, scene

__all__ = ["checkout", "listener", "sandbox", "scene"]

WORKFLOW = """\
on:
  workflow_dispatch:
    inputs:
      key: {required: true}
run-name: graft ${{ inputs.key }}
"""


def zipped(**files: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


@pytest.fixture
async def repo(scene: Scene) -> AsyncIterator[Repository]:
    box = scene.sandbox
    await box.as_user("dev").write_file(REPO, ".github/workflows/gpu.yml", WORKFLOW)
    async with GitHubApp(scene.app.id, scene.app.private_key, box.api_url, git_base=box.url) as github:
        yield github.repository(scene.installation, REPO)


async def test_a_dispatched_run_is_known_by_its_own_id_and_name(repo: Repository) -> None:
    first = await repo.dispatch("gpu.yml", ref="main", inputs={"key": "a1"})
    second = await repo.dispatch("gpu.yml", ref="main", inputs={"key": "b2"})
    assert first is not None and second is not None and first != second
    assert (await repo.workflow_run(first)).display_title == "graft a1"
    found = await repo.workflow_runs(event="workflow_dispatch")
    assert [(run.id, run.display_title, run.path) for run in found] == [
        (second, "graft b2", ".github/workflows/gpu.yml"),
        (first, "graft a1", ".github/workflows/gpu.yml"),
    ]
    now = datetime.now(UTC)
    assert len(await repo.workflow_runs(since=now - timedelta(minutes=5))) == 2
    assert await repo.workflow_runs(since=now + timedelta(minutes=5)) == []


async def test_runs_of_one_commit_and_their_jobs(repo: Repository, scene: Scene) -> None:
    sha = scene.checkout.git("rev-parse", "topic")
    run = scene.sandbox.add_workflow_run(REPO, "ci.yml", sha, conclusion="failure")
    run.jobs.append({"id": 7, "name": "gfx950", "labels": ["self-hosted", "gfx950"], "runner_name": "mi-1"})
    scene.sandbox.add_workflow_run(REPO, "ci.yml", scene.checkout.git("rev-parse", "main"))
    (found,) = await repo.workflow_runs(sha=sha)
    assert (found.id, found.status, found.conclusion, found.head_sha) == (run.id, "completed", "failure", sha)
    (job,) = await repo.workflow_jobs(run.id)
    assert (job.name, job.labels, job.runner_name) == ("gfx950", ("self-hosted", "gfx950"), "mi-1")


async def test_an_artifact_comes_from_another_host_that_must_not_see_the_token(repo: Repository, scene: Scene) -> None:
    content = zipped(report="{}")
    sha = scene.checkout.git("rev-parse", "main")
    run = scene.sandbox.add_workflow_run(REPO, "gpu.yml", sha, artifacts={"report": content, "other": b"PK"})
    assert len(await repo.artifacts(run.id)) == 2
    (artifact,) = await repo.artifacts(run.id, name="report")
    assert artifact.size_in_bytes == len(content)
    # the sandbox's store of artifacts refuses a request with a token, as GitHub's does
    assert await repo.download_artifact(artifact) == content
    assert await repo.download_artifact(artifact, limit=len(content)) == content


async def test_more_than_the_limit_is_not_taken_whatever_its_size_is_said_to_be(repo: Repository, scene: Scene) -> None:
    sha = scene.checkout.git("rev-parse", "main")
    run = scene.sandbox.add_workflow_run(REPO, "gpu.yml", sha, artifacts={"report": b"x" * 5000})
    (artifact,) = await repo.artifacts(run.id)
    with pytest.raises(TooLarge, match="5000 bytes, more than 4999"):
        await repo.download_artifact(artifact, limit=4999)
    with pytest.raises(TooLarge, match="more than 4999"):
        await repo.download_artifact(artifact.model_copy(update={"size_in_bytes": 10}), limit=4999)


async def test_what_is_gone_or_refused_is_said(repo: Repository, scene: Scene) -> None:
    sha = scene.checkout.git("rev-parse", "main")
    run = scene.sandbox.add_workflow_run(REPO, "gpu.yml", sha, artifacts={"report": b"PK"})
    (artifact,) = await repo.artifacts(run.id)
    scene.sandbox.state.known_repository(REPO).artifacts[artifact.id].expired = True
    with pytest.raises(Gone, match="expired"):
        await repo.download_artifact(artifact)
    assert (await repo.artifacts(run.id))[0].expired
    with pytest.raises(NotFound):
        await repo.workflow_run(1)
    with pytest.raises(NotFound):
        await repo.dispatch("none.yml", ref="main", inputs={})
    with pytest.raises(Validation, match="Required input 'key'"):
        await repo.dispatch("gpu.yml", ref="main", inputs={})
    with pytest.raises(Validation, match="No ref found"):
        await repo.dispatch("gpu.yml", ref="gone", inputs={"key": "a"})


async def test_a_run_is_cancelled_once(repo: Repository) -> None:
    run = await repo.dispatch("gpu.yml", ref="main", inputs={"key": "a1"})
    assert run is not None
    assert await repo.cancel_workflow_run(run)
    assert not await repo.cancel_workflow_run(run)
    assert (await repo.workflow_run(run)).conclusion == "cancelled"


async def test_a_dispatch_of_unknown_effect_is_not_sent_twice(repo: Repository, scene: Scene) -> None:
    scene.sandbox.faults.fail("bad_gateway_after_write", method="POST", path="/dispatches$")
    with pytest.raises(Unavailable):
        await repo.dispatch("gpu.yml", ref="main", inputs={"key": "a1"})
    assert [run.display_title for run in await repo.workflow_runs()] == ["graft a1"]


async def test_without_the_permission_the_app_is_told_which(repo: Repository, scene: Scene) -> None:
    for installation in scene.sandbox.state.installations.values():
        installation.permissions.pop("actions")
    with pytest.raises(Forbidden, match="actions"):
        await repo.dispatch("gpu.yml", ref="main", inputs={"key": "a1"})
