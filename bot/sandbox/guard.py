"""Whether a ref may be moved by a push or the API: protected branches, workflow files, refs that are GitHub's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.sandbox import checks
from bot.sandbox.accounts import at_least
from bot.sandbox.auth import Actor, may_push, permits
from bot.sandbox.bare import EMPTY_TREE, Bare
from bot.sandbox.model import ZERO, Protection, Repository
from bot.sandbox.world import World

WORKFLOWS = ".github/workflows/"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a ref may not move: `kind` is permission, protected, workflow or hidden."""

    kind: str
    message: str


def refusal(
    world: World, repo: Repository, actor: Actor, ref: str, old: str, new: str, env: Mapping[str, str] | None = None
) -> Refusal | None:
    """The reason to refuse, or None. `env` lets git see objects that are still in quarantine."""
    if not may_push(world, actor, repo):
        return Refusal("permission", f"Permission to {repo.full_name}.git denied to {actor.login}.")
    if repo.archived:
        return Refusal("permission", "This repository was archived so it is read-only.")
    if ref.startswith("refs/pull/"):
        return Refusal("hidden", "deny updating a hidden ref")
    store = world.store(repo)
    if ref.startswith("refs/heads/"):
        rule = world.protection(repo, ref.removeprefix("refs/heads/"))
        if rule is not None:
            found = _protected(world, repo, actor, rule, ref, old, new, store, env)
            if found is not None:
                return found
    if new != ZERO and actor.installation is not None and not permits(actor, "workflows:write"):
        touched = _workflow(repo, store, old, new, env)
        if touched is not None:
            return Refusal(
                "workflow",
                f"refusing to allow a GitHub App to create or update workflow `{touched}` "
                "without `workflows` permission",
            )
    return None


def _protected(
    world: World,
    repo: Repository,
    actor: Actor,
    rule: Protection,
    ref: str,
    old: str,
    new: str,
    store: Bare,
    env: Mapping[str, str] | None,
) -> Refusal | None:
    admin = actor.installation is None and actor.login is not None and at_least(world.role(actor.login, repo), "admin")
    if admin and not rule.enforce_admins:
        return None
    head = f"GH006: Protected branch update failed for {ref}."
    if new == ZERO:
        return None if rule.allow_deletions else Refusal("protected", f"{head}\nCannot delete a protected branch")
    if old == ZERO:
        return None
    if not rule.allow_force_pushes and not store.is_ancestor(old, new, env):
        return Refusal("protected", f"{head}\nCannot force-push to this branch")
    if rule.merge_queue:
        return Refusal("protected", f"{head}\nChanges must be made through the merge queue")
    if rule.required_reviews or rule.pull_requests_only:
        return Refusal("protected", f"{head}\nChanges must be made through a pull request.")
    open_checks = [need for need in checks.requirements(repo, rule, new) if need.state != "passed"]
    if len(open_checks) == 1:
        word = {"missing": "expected", "pending": "in progress", "failed": "failing"}[open_checks[0].state]
        return Refusal("protected", f'{head}\nRequired status check "{open_checks[0].context}" is {word}.')
    if open_checks:
        total = len(rule.required_checks)
        return Refusal("protected", f"{head}\n{len(open_checks)} of {total} required status checks are expected.")
    return None


def _workflow(repo: Repository, store: Bare, old: str, new: str, env: Mapping[str, str] | None) -> str | None:
    """A workflow file that this push changes against everything that the repository has already."""
    base = old if old != ZERO else None
    if base is None:
        default = store.ref(f"refs/heads/{repo.default_branch}")
        if default is not None:
            found = store.run("merge-base", default, new, env=env, accept=(0, 1)).decode().split("\n")[0]
            base = found or None
    paths = store.changed_paths(base or EMPTY_TREE, new, env)
    return next((path for path in paths if path.startswith(WORKFLOWS)), None)
