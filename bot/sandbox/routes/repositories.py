"""Repositories, branches and their protection."""

from __future__ import annotations

from typing import Any

from bot.sandbox.auth import role_of
from bot.sandbox.http import Call, Listing, Reply, not_found, route
from bot.sandbox.model import Protection
from bot.sandbox.render import checks as render_checks
from bot.sandbox.render import common
from bot.sandbox.render import git as render_git


@route("GET", "/repos/{owner}/{repo}")
def get_repository(call: Call) -> Any:
    """The repository."""
    role = role_of(call.world, call.actor, call.repo)
    return common.repository(call.world, call.repo, role=role, full=True)


@route("GET", "/repos/{owner}/{repo}/branches", app="contents:read")
def list_branches(call: Call) -> Any:
    """All branches, by name."""
    world, repo = call.world, call.repo

    def render(item: tuple[str, str]) -> dict[str, Any]:
        name = item[0].removeprefix("refs/heads/")
        rule = world.protection(repo, name)
        url = common.repository_api(world, repo, "commits", item[1])
        return {"name": name, "commit": {"sha": item[1], "url": url}, "protected": rule is not None}

    return Listing(sorted(world.store(repo).refs().items()), render)


@route("GET", "/repos/{owner}/{repo}/branches/{branch}", app="contents:read")
def get_branch(call: Call) -> Any:
    """One branch with its tip."""
    world, repo, name = call.world, call.repo, call.params["branch"]
    store = world.store(repo)
    sha = store.ref(f"refs/heads/{name}")
    if sha is None:
        raise not_found()
    rule = world.protection(repo, name)
    own = common.repository_api(world, repo, "branches", name)
    level = {"enforcement_level": "everyone" if rule and rule.enforce_admins else "non_admins"}
    checks = {"contexts": list(rule.required_checks) if rule else [], "checks": []}
    return {
        "name": name,
        "commit": render_git.commit(world, repo, store.commit(sha)),
        "_links": {"self": own, "html": f"{world.url}/{repo.full_name}/tree/{name}"},
        "protected": rule is not None,
        "protection": {"enabled": rule is not None, "required_status_checks": {**level, **checks}},
        "protection_url": f"{own}/protection",
    }


def _rule(call: Call) -> Protection:
    rule = call.world.protection(call.repo, call.params["branch"])
    if rule is None:
        raise not_found()
    return rule


@route("GET", "/repos/{owner}/{repo}/branches/{branch}/protection", app="administration:read", role="admin")
def get_protection(call: Call) -> Any:
    """What the branch asks for."""
    return render_checks.protection(call.world, call.repo, _rule(call))


@route("PUT", "/repos/{owner}/{repo}/branches/{branch}/protection", app="administration:write", role="admin")
def put_protection(call: Call) -> Any:
    """Protect the branch as the body says."""
    body = call.body
    needed = body.get("required_status_checks") or {}
    checks = {item["context"]: item.get("app_id") for item in needed.get("checks", [])}
    checks |= {context: None for context in needed.get("contexts", []) if context not in checks}
    reviews = body.get("required_pull_request_reviews") or {}
    rule = Protection(
        call.params["branch"],
        checks,
        bool(needed.get("strict")),
        reviews.get("required_approving_review_count", 1 if reviews else 0),
        bool(reviews.get("dismiss_stale_reviews")),
        bool(body.get("enforce_admins")),
        bool(body.get("allow_force_pushes")),
        bool(body.get("allow_deletions")),
    )
    call.repo.protections = [item for item in call.repo.protections if item.branch != rule.branch] + [rule]
    return render_checks.protection(call.world, call.repo, rule)


@route("DELETE", "/repos/{owner}/{repo}/branches/{branch}/protection", app="administration:write", role="admin")
def delete_protection(call: Call) -> Any:
    """Protect the branch no more."""
    rule = _rule(call)
    call.repo.protections.remove(rule)
    return Reply(None, 204)


@route("GET", "/repos/{owner}/{repo}/rules/branches/{branch}")
def branch_rules(call: Call) -> Any:
    """The same protection as rules of a ruleset."""
    rule = call.world.protection(call.repo, call.params["branch"])
    rows: list[dict[str, Any]] = []
    if rule is not None:
        rows += [] if rule.allow_deletions else [{"type": "deletion"}]
        rows += [] if rule.allow_force_pushes else [{"type": "non_fast_forward"}]
        if rule.required_checks:
            wanted = [
                {"context": name, **({"integration_id": app} if app else {})}
                for name, app in rule.required_checks.items()
            ]
            parameters = {"required_status_checks": wanted, "strict_required_status_checks_policy": rule.strict}
            rows.append({"type": "required_status_checks", "parameters": parameters})
        if rule.required_reviews:
            parameters = {
                "required_approving_review_count": rule.required_reviews,
                "dismiss_stale_reviews_on_push": rule.dismiss_stale_reviews,
                "require_code_owner_review": False,
                "require_last_push_approval": False,
                "required_review_thread_resolution": False,
            }
            rows.append({"type": "pull_request", "parameters": parameters})
    source = {"ruleset_source_type": "Repository", "ruleset_source": call.repo.full_name, "ruleset_id": call.repo.id}
    return Listing(rows, lambda row: {**row, **source})
