"""Who may do what: App JWTs, installation tokens, users, private repositories."""

from __future__ import annotations

import json
import time
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest

from bot.sandbox import Refused
from bot.sandbox.auth import key_pair
from tests.sandbox.fixtures import REPO, Scene, checkout, listener, sandbox, scene

__all__ = ["checkout", "listener", "sandbox", "scene"]


def bearer(
    scene: Scene, *, key: str | None = None, issuer: str | None = None, life: int = 300, since: int = -30
) -> dict[str, str]:
    now = int(time.time())
    claims = {"iat": now + since, "exp": now + life, "iss": issuer or str(scene.app.id)}
    return {"authorization": "Bearer " + jwt.encode(claims, key or scene.app.private_key, algorithm="RS256")}


def client(scene: Scene) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=scene.sandbox.api_url, trust_env=False)


async def test_an_app_gets_a_token_and_uses_it(scene: Scene) -> None:
    async with client(scene) as http:
        me = (await http.get("/app", headers=bearer(scene))).json()
        assert (me["slug"], me["id"]) == ("graft", scene.app.id)
        assert (await http.get("/app", headers=bearer(scene, issuer=scene.app.client_id))).status_code == 200
        found = (await http.get(f"/repos/{REPO}/installation", headers=bearer(scene))).json()
        assert found["id"] == scene.installation
        path = f"/app/installations/{scene.installation}/access_tokens"
        answer = await http.post(
            path, headers=bearer(scene), json={"permissions": {"contents": "read"}, "repositories": ["fork"]}
        )
        assert answer.status_code == 201
        assert answer.json()["permissions"] == {"contents": "read"}
        headers = {"authorization": f"token {answer.json()['token']}"}
        assert (await http.get(f"/repos/{REPO}/branches/main", headers=headers)).status_code == 200
        refused = await http.post(f"/repos/{REPO}/issues", headers=headers, json={"title": "x"})
        assert (refused.status_code, refused.json()["message"]) == (403, "Resource not accessible by integration")
        assert refused.headers["x-accepted-github-permissions"] == "issues=write"
        repositories = (await http.get("/installation/repositories", headers=headers)).json()
        assert [one["full_name"] for one in repositories["repositories"]] == [REPO]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"life": -120}, "Expiration time"),
        ({"life": 3600}, "too far in the future"),
        ({"since": 600, "life": 600}, "Issued at"),
        ({"issuer": "12345678"}, "Integration not found"),
        ({"key": "other"}, "could not be decoded"),
    ],
)
async def test_a_bad_jwt_is_refused(scene: Scene, change: dict[str, object], message: str) -> None:
    given = {**change, "key": key_pair()[0]} if "key" in change else change
    async with client(scene) as http:
        answer = await http.get("/app", headers=bearer(scene, **given))  # type: ignore[arg-type]
        assert answer.status_code == 401
        assert message in answer.json()["message"]


async def test_tokens_expire_and_suspended_installations_stop(scene: Scene) -> None:
    box = scene.sandbox
    bot = box.as_app(scene.installation)
    await bot.get(f"/repos/{REPO}")
    box.suspend(scene.installation)
    with pytest.raises(Refused, match="suspended"):
        await bot.get(f"/repos/{REPO}")
    box.suspend(scene.installation, suspended=False)
    box.faults.expire_tokens()
    with pytest.raises(Refused, match="Bad credentials") as refused:
        await bot.get(f"/repos/{REPO}")
    assert refused.value.status == 401
    again = box.as_app(scene.installation)
    box.advance(3590)
    await again.get(f"/repos/{REPO}")
    box.advance(20)
    with pytest.raises(Refused, match="Bad credentials"):
        await again.get(f"/repos/{REPO}")


async def test_private_repositories_are_hidden(scene: Scene) -> None:
    box = scene.sandbox
    box.create_repository("acme", "secret", private=True)
    for person in (box.as_user("stan"), box.as_app(scene.installation)):
        with pytest.raises(Refused, match="404: Not Found"):
            await person.get("/repos/acme/secret")
    assert (await box.as_user("olga").get("/repos/acme/secret"))["permissions"]["admin"] is True
    box.set_permission("acme/secret", "stan", "triage")
    seen = await box.as_user("stan").get("/repos/acme/secret/collaborators/stan/permission")
    assert (seen["permission"], seen["role_name"]) == ("read", "triage")


async def test_a_public_repository_elsewhere_can_be_read_not_written(scene: Scene) -> None:
    box = scene.sandbox
    box.create_repository("stan", "upstream", from_git=scene.checkout.path)
    bot = box.as_app(scene.installation)
    assert (await bot.get("/repos/stan/upstream/branches/main"))["name"] == "main"
    with pytest.raises(Refused, match="Resource not accessible by integration"):
        await bot.comment("stan/upstream", 1, "hello")


async def test_teams_and_members(scene: Scene) -> None:
    box = scene.sandbox
    box.create_team("acme", "tlx", ["stan"])
    box.set_permission(REPO, "acme/tlx", "maintain")
    bot = box.as_app(scene.installation)
    assert [one["login"] for one in await bot.get("/orgs/acme/teams/tlx/members")] == ["stan"]
    assert (await bot.get("/orgs/acme/teams/tlx/memberships/stan"))["state"] == "active"
    for path in ("/orgs/acme/teams/tlx/memberships/dev", "/orgs/acme/teams/none/members", "/orgs/acme/members/nobody"):
        with pytest.raises(Refused, match="404"):
            await bot.get(path)
    assert (await bot.get(f"/repos/{REPO}/collaborators/stan/permission"))["role_name"] == "maintain"
    logins = {one["login"]: one["role_name"] for one in await bot.get(f"/repos/{REPO}/collaborators")}
    assert logins == {"olga": "admin", "dev": "write", "stan": "maintain"}


async def test_an_app_is_made_from_a_manifest(scene: Scene) -> None:
    box = scene.sandbox
    manifest = {
        "name": "Graft of Acme",
        "redirect_url": "http://127.0.0.1:1/setup/done",
        "hook_attributes": {"url": scene.listener.url},
        "default_permissions": {"contents": "write"},
        "default_events": ["push"],
    }
    async with httpx.AsyncClient(base_url=box.url, trust_env=False) as http:
        path = "/organizations/acme/settings/apps/new?state=s1"
        back = (await http.post(path, data={"manifest": json.dumps(manifest)})).headers["location"]
        query = parse_qs(urlsplit(back).query)
        assert query["state"] == ["s1"]
        made = await http.post(f"/api/app-manifests/{query['code'][0]}/conversions")
        assert (made.status_code, made.json()["slug"], made.json()["owner"]["login"]) == (201, "graft-of-acme", "acme")
        assert made.json()["pem"].startswith("-----BEGIN RSA PRIVATE KEY")
        assert (await http.post(f"/api/app-manifests/{query['code'][0]}/conversions")).status_code == 404
        assert (await http.post(path, data={"manifest": "{}"})).status_code == 422


async def test_installations_change_and_end(scene: Scene) -> None:
    box = scene.sandbox
    box.create_repository("acme", "second", private=True)
    bot = box.as_app(scene.installation)
    box.change_installation(scene.installation, add=["acme/second"])
    assert (await bot.get("/repos/acme/second"))["private"] is True
    box.change_installation(scene.installation, remove=["acme/second"])
    with pytest.raises(Refused, match="404"):
        await bot.get("/repos/acme/second")
    box.uninstall(scene.installation)
    with pytest.raises(Refused, match="401"):
        await bot.get(f"/repos/{REPO}")
    await box.settle()
    selected = [f"installation_repositories.{word}" for word in ("added", "removed")]
    assert scene.listener.names() == ["installation.created", *selected, "installation.deleted"]
