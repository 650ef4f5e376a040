"""The library that the bot uses, against the sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from githubkit import AppAuthStrategy, GitHub
from githubkit.exception import RequestFailed

from tests.sandbox.fixtures import Scene, checkout, listener, sandbox, scene

__all__ = ["checkout", "listener", "sandbox", "scene"]


@pytest.fixture
async def github(scene: Scene) -> AsyncIterator[GitHub[AppAuthStrategy]]:
    auth = AppAuthStrategy(scene.app.id, scene.app.private_key)
    async with GitHub(auth, base_url=scene.sandbox.api_url + "/", http_cache=False, auto_retry=False) as one:
        yield one


async def test_the_bot_s_day_through_githubkit(scene: Scene, github: GitHub[AppAuthStrategy]) -> None:
    app = await github.rest.apps.async_get_authenticated()
    assert app.parsed_data is not None
    found = await github.rest.apps.async_get_repo_installation("acme", "fork")
    assert found.parsed_data.id == scene.installation
    sha = scene.checkout.git("rev-parse", "topic")
    async with github.with_auth(github.auth.as_installation(scene.installation)) as bot:
        pull = (
            await bot.rest.pulls.async_create("acme", "fork", title="Topic", head="topic", base="main", draft=True)
        ).parsed_data
        assert (pull.draft, pull.mergeable, pull.user.login) == (True, True, "graft[bot]")
        run = (
            await bot.rest.checks.async_create(
                "acme", "fork", data={"name": "graft/l1", "head_sha": sha, "status": "in_progress"}
            )
        ).parsed_data
        done = await bot.rest.checks.async_update(
            "acme", "fork", run.id,
            data={"status": "completed", "conclusion": "success", "output": {"title": "ok", "summary": "12 passed"}},
        )  # fmt: skip
        assert done.parsed_data.conclusion == "success"
        listed = (await bot.rest.checks.async_list_for_ref("acme", "fork", "topic")).parsed_data
        assert [one.name for one in listed.check_runs] == ["graft/l1"]
        comment = (await bot.rest.issues.async_create_comment("acme", "fork", pull.number, body="hello")).parsed_data
        await bot.rest.issues.async_update_comment("acme", "fork", comment.id, body="hello again")
        await bot.rest.reactions.async_create_for_issue_comment("acme", "fork", comment.id, content="rocket")
        await bot.rest.issues.async_add_labels("acme", "fork", pull.number, labels=["graft:bundle"])
        issues = (await bot.rest.issues.async_list_for_repo("acme", "fork", labels="graft:bundle")).parsed_data
        assert [one.number for one in issues] == [pull.number]
        bodies = [
            one.body
            async for one in bot.rest.paginate(
                bot.rest.issues.async_list_comments, owner="acme", repo="fork", issue_number=pull.number
            )
        ]
        assert bodies == ["hello again"]
        content = (await bot.rest.repos.async_get_content("acme", "fork", "README.md")).parsed_data
        assert content.path == "README.md"
        role = await bot.rest.repos.async_get_collaborator_permission_level("acme", "fork", "dev")
        assert role.parsed_data.role_name == "write"
        reference = (await bot.rest.git.async_get_ref("acme", "fork", "heads/topic")).parsed_data
        assert reference.object_.sha == sha
        files = (await bot.rest.pulls.async_list_files("acme", "fork", pull.number)).parsed_data
        assert [one.filename for one in files] == ["lib/core.py"]
        with pytest.raises(RequestFailed) as refused:
            await bot.rest.repos.async_get("acme", "nothing")
        assert refused.value.response.status_code == 404
    await scene.sandbox.settle()
    first = scene.listener.received[0]
    assert first.signed
