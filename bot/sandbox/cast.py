"""Sets the world up: accounts, teams, repositories, Apps and their installations, protection, what others push."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bot.sandbox import auth, changes, events
from bot.sandbox.accounts import App, Installation, Team, User
from bot.sandbox.bare import Bare
from bot.sandbox.model import ZERO, Artifact, Protection, Repository, WorkflowRun
from bot.sandbox.render import actions, common
from bot.sandbox.world import World

_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})(?:\[bot\])?")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


class Cast:
    """The plain calls that make things, without HTTP; each raises ValueError or LookupError with what is wrong."""

    def __init__(self, state: World):
        self.state = state
        self.hooks = state.root / "hooks"

    def create_user(self, login: str, *, name: str | None = None, email: str | None = None) -> User:
        """A person. ValueError for a name that GitHub would not take, or one that is taken."""
        return self._account(login, "User", name, email)

    def create_org(self, login: str, *, owners: Sequence[str] = (), members: Sequence[str] = ()) -> User:
        """An organization."""
        org = self._account(login, "Organization", None, None)
        org.members = {**dict.fromkeys(members, "member"), **dict.fromkeys(owners, "admin")}
        return org

    def _account(self, login: str, kind: str, name: str | None, email: str | None) -> User:
        if not _LOGIN.fullmatch(login):
            raise ValueError(f"{login!r} is no login: letters, digits and single dashes, at most 39")
        if self.state.user(login) is not None:
            raise ValueError(f"the account {login!r} exists already")
        number = self.state.new_id()
        address = email or f"{number}+{login}@users.noreply.github.com"
        user = User(number, login, kind, name, address, self.state.now())
        self.state.users[login.lower()] = user
        return user

    def create_team(self, org: str, slug: str, members: Sequence[str] = (), *, name: str | None = None) -> Team:
        """A team of an organization; its members become the organization's."""
        owner = self.state.known_user(org)
        for login in members:
            self.state.known_user(login)
            owner.members.setdefault(login, "member")
        team = Team(self.state.new_id(), owner.login, slug, name or slug, dict.fromkeys(members, "member"))
        self.state.teams[owner.login, slug] = team
        return team

    def create_repository(
        self,
        owner: str,
        name: str,
        *,
        from_git: Path | None = None,
        private: bool = False,
        default_branch: str = "main",
        description: str | None = None,
    ) -> Repository:
        """A repository: empty, or with the branches and tags of the git repository at `from_git`."""
        account = self.state.known_user(owner)
        if not _NAME.fullmatch(name) or name.endswith(".git"):
            raise ValueError(
                f"{name!r} is no name for a repository: letters, digits, `.`, `-`, `_`; not ending in .git"
            )
        full_name = f"{account.login}/{name}"
        if self.state.repository(full_name) is not None:
            raise ValueError(f"the repository {full_name} exists already")
        path = self.state.root / "git" / account.login / f"{name}.git"
        bare = Bare.create(path, default_branch, from_git)
        bare.run("config", "core.hooksPath", str(self.hooks))
        now = self.state.now()
        repo = Repository(
            self.state.new_id(), account.login, name, path, private, default_branch, now, now, description
        )
        self.state.repositories[full_name.lower()] = repo
        return repo

    def create_fork(self, repository: str, owner: str, *, name: str | None = None) -> Repository:
        """A fork in the account of `owner`, linked to its parent so that pull requests go across."""
        parent = self.state.known_repository(repository)
        fork = self.create_repository(
            owner,
            name or parent.name,
            from_git=parent.path,
            private=parent.private,
            default_branch=parent.default_branch,
        )
        fork.parent = parent.full_name
        return fork

    def create_app(
        self,
        slug: str,
        permissions: dict[str, str],
        events: Sequence[str],
        webhook_url: str | None = None,
        webhook_secret: str = "sandbox-secret",  # noqa: S107 - of a sandbox
        *,
        owner: str | None = None,
        name: str | None = None,
    ) -> App:
        """A GitHub App with a fresh key; `id` and `private_key` (PEM) are what its owner is given."""
        world = self.state
        login = owner or next((user.login for user in world.users.values() if user.type != "Bot"), None)
        if login is None:
            login = self.create_user(f"{slug}-owner").login
        private, public = auth.key_pair()
        number = world.new_id()
        app = App(
            number,
            slug,
            name or slug,
            login,
            f"Iv23{number:016d}",
            private,
            public,
            dict(permissions),
            list(events),
            webhook_url,
            webhook_secret,
            world.now(),
        )
        world.apps[app.id] = app
        bot = self._account(app.bot, "Bot", app.bot, None)
        bot.email = f"{bot.id}+{app.bot}@users.noreply.github.com"
        return app

    def create_app_from_manifest(self, manifest: dict[str, Any], *, owner: str | None = None) -> str:
        """An App made from a manifest, as its page does it; gives the code that is changed once for its secrets."""
        hook = manifest.get("hook_attributes") or {}
        name = str(manifest.get("name") or "app")
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        secret = secrets.token_hex(20)
        permissions, wanted = manifest.get("default_permissions") or {}, manifest.get("default_events") or []
        app = self.create_app(slug, permissions, wanted, hook.get("url"), secret, owner=owner, name=name)
        code = secrets.token_hex(20)
        self.state.manifest_codes[code] = app.id
        return code

    def install(self, app: App | int, repositories: Sequence[str] | str) -> int:
        """Install an App on repositories (of one owner), or on all of an account; gives the installation id."""
        world = self.state
        record = app if isinstance(app, App) else world.apps[app]
        names = None if isinstance(repositories, str) and "/" not in repositories else _names(repositories)
        account = repositories if names is None else world.known_repository(names[0]).owner
        assert isinstance(account, str)
        covered = None if names is None else [world.known_repository(name).full_name for name in names]
        if covered is not None and {name.split("/")[0] for name in covered} != {account}:
            raise ValueError("an installation belongs to one account: install once for each owner")
        installation = Installation(
            world.new_id(),
            record.id,
            world.known_user(account).login,
            dict(record.permissions),
            list(record.events),
            covered,
            world.now(),
        )
        world.installations[installation.id] = installation
        listed = [repo for repo in world.repositories.values() if world.covers(installation, repo)]
        self._installation_event(installation, "created", repositories=[_brief(repo) for repo in listed])
        return installation.id

    def uninstall(self, installation: int) -> None:
        """Take an App away from an account; its tokens end."""
        record = self.state.installations[installation]
        self._installation_event(record, "deleted", repositories=[])
        del self.state.installations[installation]

    def change_installation(self, installation: int, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> None:
        """Add repositories to an installation that has selected ones, or take some away."""
        record = self.state.installations[installation]
        if record.repositories is None:
            raise ValueError("the installation covers all repositories of its account: there are none to select")
        added, removed = ([self.state.known_repository(name) for name in names] for names in (add, remove))
        gone = {repo.full_name for repo in removed}
        new = [repo.full_name for repo in added if repo.full_name not in record.repositories]
        record.repositories = [name for name in [*record.repositories, *new] if name not in gone]
        for action, repos in (("added", added), ("removed", removed)):
            if repos:
                lists = {f"repositories_{action}": [_brief(repo) for repo in repos], "repository_selection": "selected"}
                other = "removed" if action == "added" else "added"
                self._installation_event(
                    record, action, event="installation_repositories", **lists, **{f"repositories_{other}": []}
                )

    def _installation_event(
        self, record: Installation, action: str, *, event: str = "installation", **more: object
    ) -> None:
        body = {"installation": common.installation(self.state, record), **more}
        app = self.state.apps[record.app_id]
        events.deliver(self.state, app, record, event, action, body, sender=record.account)

    def suspend(self, installation: int, *, suspended: bool = True) -> None:
        """Suspend an installation, or let it work again."""
        record = self.state.installations[installation]
        record.suspended_at = self.state.now() if suspended else None
        self._installation_event(record, "suspend" if suspended else "unsuspend", repositories=[])

    def set_permission(self, repository: str, who: str, role: str) -> None:
        """Give a user, or a team by `org/slug`, a role: read, triage, write, maintain, admin, or none."""
        repo = self.state.known_repository(repository)
        org, slash, slug = who.partition("/")
        granted = self.state.teams[org, slug].repositories if slash else repo.collaborators
        key = repo.full_name if slash else self.state.known_user(who).login
        granted[key] = role
        if role == "none":
            del granted[key]

    def protect(
        self,
        repository: str,
        branch: str = "main",
        required_checks: Sequence[str] | dict[str, int | None] = (),
        *,
        strict: bool = False,
        required_reviews: int = 0,
        enforce_admins: bool = True,
        merge_queue: bool = False,
        dismiss_stale_reviews: bool = False,
        pull_requests_only: bool = False,
        allow_force_pushes: bool = False,
        allow_deletions: bool = False,
    ) -> Protection:
        """Protect a branch (or a pattern). `required_checks` may name the App that must report each."""
        repo = self.state.known_repository(repository)
        checks = dict(required_checks) if isinstance(required_checks, dict) else dict.fromkeys(required_checks)
        rule = Protection(
            branch,
            checks,
            strict,
            required_reviews,
            dismiss_stale_reviews,
            enforce_admins,
            allow_force_pushes,
            allow_deletions,
            merge_queue,
            pull_requests_only,
        )
        repo.protections = [item for item in repo.protections if item.branch != branch] + [rule]
        return rule

    def push_ref(
        self, repository: str, branch: str, *, source: Path, rev: str | None = None, login: str | None = None
    ) -> str:
        """Bring a commit of a git repository on this machine to a branch, as a push by `login` (its owner) does.

        `rev` is the commit or ref in `source`, by default the branch of the same name. Protection is passed by; use
        `as_user(...).push(...)` for a push that is judged. Gives the commit.
        """
        repo = self.state.known_repository(repository)
        store = self.state.store(repo)
        name = rev or branch
        found = Bare(source).resolve(name) if not (source / ".git").exists() else Bare(source / ".git").resolve(name)
        if found is None:
            raise LookupError(f"{source} has no commit {name!r}")
        store.run("fetch", "-q", "--no-write-fetch-head", "--no-tags", str(source), f"+{found}:refs/internal/pushed")
        store.delete_ref("refs/internal/pushed")
        changes.set_ref(self.state, repo, f"refs/heads/{branch}", found, login=login or repo.owner)
        return found

    def switch_issues(self, repository: str, *, on: bool) -> None:
        """Switch a repository's issues on or off, as its settings do: a fork on GitHub has them off at first."""
        self.state.known_repository(repository).has_issues = on

    def delete_issue(self, repository: str, number: int, *, login: str | None = None) -> None:
        """Delete an issue for good, as an administrator may: GitHub answers 410 from then on."""
        repo = self.state.known_repository(repository)
        events.issue_event(self.state, repo, repo.issues[number], "deleted", login or repo.owner)
        del repo.issues[number]
        repo.deleted_issues.add(number)

    def delete_ref(self, repository: str, branch: str, *, login: str | None = None) -> None:
        """Delete a branch."""
        repo = self.state.known_repository(repository)
        changes.set_ref(self.state, repo, f"refs/heads/{branch}", ZERO, login=login or repo.owner)

    def add_workflow_run(
        self,
        repository: str,
        workflow: str,
        head_sha: str,
        *,
        event: str = "push",
        branch: str = "main",
        status: str = "completed",
        conclusion: str | None = "success",
        artifacts: dict[str, bytes] | None = None,
    ) -> WorkflowRun:
        """A run of GitHub Actions as if it had happened, with its artifacts (name to zip)."""
        repo, now = self.state.known_repository(repository), self.state.now()
        run = WorkflowRun(
            self.state.new_id(),
            f".github/workflows/{workflow}",
            len(repo.workflow_runs) + 1,
            event,
            head_sha,
            branch,
            status,
            conclusion if status == "completed" else None,
            repo.owner,
            {},
            now,
            now,
        )
        repo.workflow_runs[run.id] = run
        self._leave(repo, run.id, artifacts)
        return run

    def end_workflow_run(
        self, repository: str, run_id: int, *, conclusion: str = "success", artifacts: dict[str, bytes] | None = None
    ) -> WorkflowRun:
        """Let a run that was started end, with its artifacts (name to zip); the App hears of it."""
        repo, now = self.state.known_repository(repository), self.state.now()
        run = repo.workflow_runs[run_id]
        run.status, run.conclusion, run.updated_at = "completed", conclusion, now
        self._leave(repo, run.id, artifacts)
        body = {"workflow_run": actions.run(self.state, repo, run), "workflow": None}
        events.emit(self.state, repo, "workflow_run", "completed", body, sender=repo.owner)
        return run

    def _leave(self, repo: Repository, run_id: int, artifacts: dict[str, bytes] | None) -> None:
        for name, content in (artifacts or {}).items():
            item = Artifact(self.state.new_id(), name, run_id, content, self.state.now())
            repo.artifacts[item.id] = item


def _names(repositories: Sequence[str] | str) -> list[str]:
    names = [repositories] if isinstance(repositories, str) else list(repositories)
    if not names:
        raise ValueError("install on which repositories? give their names (owner/name), or an account")
    return names


def _brief(repo: Repository) -> dict[str, object]:
    return {
        "id": repo.id,
        "node_id": common.node("R", repo.id),
        "name": repo.name,
        "full_name": repo.full_name,
        "private": repo.private,
    }
