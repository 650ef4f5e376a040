"""Pages for people: what a maintainer would look at on GitHub, without a login. Read-only."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, select_autoescape
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from bot.sandbox import checks, markdown, merging, views
from bot.sandbox.bare import EMPTY_TREE
from bot.sandbox.model import Issue, Repository
from bot.sandbox.world import World

PAGE = 30


def pages(world: World) -> Starlette:
    """The site's pages as one application."""
    site = _Pages(world)
    repo = "/{owner}/{name}"
    routes = [
        Route("/", site.repositories),
        Route("/-/style.css", site.style),
        Route("/avatars/{login}", site.avatar),
        Route(repo, site.code),
        Route(f"{repo}/pulls", site.pulls),
        Route(f"{repo}/issues", site.issues),
        Route(f"{repo}/commits", site.commits),
        Route(f"{repo}/commits/{{ref:path}}", site.commits),
        Route(f"{repo}/tree/{{ref:path}}", site.commits),
        Route(f"{repo}/files/{{path:path}}", site.code),
        Route(f"{repo}/commit/{{sha}}", site.commit),
        Route(f"{repo}/runs/{{run_id:int}}", site.run),
        Route(f"{repo}/issues/{{number:int}}", site.issue),
        Route(f"{repo}/pull/{{number:int}}", site.pull),
        Route(f"{repo}/pull/{{number:int}}.diff", site.diff),
        Route(f"{repo}/pull/{{number:int}}/{{tab}}", site.pull),
        Route(f"{repo}/blob/{{sha}}/{{path:path}}", site.blob),
        Route(f"{repo}/raw/{{sha}}/{{path:path}}", site.raw),
    ]
    return Starlette(routes=routes, exception_handlers={404: site.missing, 500: site.broken})


class _Pages:
    def __init__(self, world: World):
        self.world = world
        self.templates = Environment(
            loader=PackageLoader("bot.sandbox"),
            autoescape=select_autoescape(),
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.filters["ago"] = lambda moment: views.ago(world.now(), moment)
        self.templates.filters["short"] = lambda sha: sha[:7]
        self.templates.filters["subject"] = lambda message: message.split("\n", 1)[0]
        self.templates.globals.update(label_style=views.label_style, check_icon=views.check_icon)

    def _show(self, request: Request, template: str, status: int = 200, **context: Any) -> Response:
        repo: Repository | None = context.get("repo")
        if repo is not None:
            opened = [item for item in repo.issues.values() if item.state == "open"]
            context["open_pulls"] = sum(1 for item in opened if item.pull)
            context["open_issues"] = len(opened) - context["open_pulls"]
            context["md"] = lambda text: Markup(markdown.render(text, repo.full_name))  # noqa: S704 - safe by construction
        context.setdefault("tab", "")
        text = self.templates.get_template(template).render(world=self.world, path=request.url.path, **context)
        return HTMLResponse(text, status)

    def _repo(self, request: Request) -> Repository:
        found = self.world.repository(f"{request.path_params['owner']}/{request.path_params['name']}")
        if found is None:
            raise HTTPException(404, "There is no such repository here.")
        return found

    def _item(self, request: Request, repo: Repository) -> Issue:
        found = repo.issues.get(request.path_params["number"])
        if found is None:
            raise HTTPException(404, f"{repo.full_name} has no issue or pull request of that number.")
        return found

    def _sha(self, repo: Repository, name: str) -> str:
        sha = self.world.store(repo).resolve(name)
        if sha is None:
            raise HTTPException(404, f"{repo.full_name} has no commit or branch {name}.")
        return sha

    async def missing(self, request: Request, error: Exception) -> Response:
        """404."""
        said = error.detail if isinstance(error, HTTPException) else ""
        return self._show(request, "missing.html", 404, said="" if said == "Not Found" else said)

    async def broken(self, request: Request, error: Exception) -> Response:
        """500: our own fault, kept for the tests."""
        self.world.violations.append(f"page {request.url.path}: {error!r}")
        return PlainTextResponse(f"The sandbox is at fault: {error!r}\n", 500)

    async def style(self, request: Request) -> Response:
        """The style sheet."""
        text = files("bot.sandbox").joinpath("templates/style.css").read_text(encoding="utf-8")
        return Response(text, media_type="text/css", headers={"cache-control": "max-age=300"})

    async def avatar(self, request: Request) -> Response:
        """A picture for an account: its first letter on a colour of its own."""
        return Response(views.avatar(request.path_params["login"]), media_type="image/svg+xml")

    async def repositories(self, request: Request) -> Response:
        """All repositories."""
        rows = sorted(self.world.repositories.values(), key=lambda repo: repo.full_name)
        return self._show(request, "repositories.html", repositories=rows)

    async def code(self, request: Request) -> Response:
        """The files of the default branch, or of one of its folders, with the readme."""
        repo = self._repo(request)
        store = self.world.store(repo)
        tip = store.ref(f"refs/heads/{repo.default_branch}")
        folder = request.path_params.get("path", "").strip("/")
        listed = store.tree(tip, f"{folder}/" if folder else "") if tip else []
        if folder and not listed:
            raise HTTPException(404)
        entries = sorted(listed, key=lambda entry: (entry.kind != "tree", entry.path))
        readme = next(
            (entry for entry in entries if entry.path.rsplit("/", 1)[-1].lower() in ("readme.md", "readme")), None
        )
        text = store.blob(readme.oid).decode(errors="replace") if readme else None
        return self._show(
            request,
            "code.html",
            repo=repo,
            tab="code",
            entries=entries,
            folder=folder,
            readme=text,
            tip=store.commit(tip) if tip else None,
            branches=sorted(name.removeprefix("refs/heads/") for name in store.refs()),
        )

    async def pulls(self, request: Request) -> Response:
        """Pull requests."""
        return self._list(request, "pulls")

    async def issues(self, request: Request) -> Response:
        """Issues."""
        return self._list(request, "issues")

    def _list(self, request: Request, tab: str) -> Response:
        repo = self._repo(request)
        state = request.query_params.get("state", "open")
        label = request.query_params.get("label")
        everything = [
            item
            for item in repo.issues.values()
            if (item.pull is not None) == (tab == "pulls") and label in (None, *item.labels)
        ]
        shown = sorted((item for item in everything if item.state == state), key=lambda item: -item.number)
        counts = {word: sum(1 for item in everything if item.state == word) for word in ("open", "closed")}
        rows = [views.row(self.world, repo, item) for item in shown]
        return self._show(request, "list.html", repo=repo, tab=tab, rows=rows, state=state, counts=counts, label=label)

    async def commits(self, request: Request) -> Response:
        """History of a branch."""
        repo = self._repo(request)
        ref = request.path_params.get("ref", repo.default_branch)
        store = self.world.store(repo)
        page = max(int(request.query_params.get("page", "1")), 1)
        found = store.commits(f"-{PAGE + 1}", f"--skip={(page - 1) * PAGE}", self._sha(repo, ref))
        rows = [views.commit_row(self.world, repo, data) for data in found[:PAGE]]
        more = len(found) > PAGE
        return self._show(request, "commits.html", repo=repo, tab="commits", ref=ref, rows=rows, page=page, more=more)

    async def commit(self, request: Request) -> Response:
        """One commit with its diff and checks."""
        repo = self._repo(request)
        store = self.world.store(repo)
        data = store.commit(self._sha(repo, request.path_params["sha"]))
        changed = store.diff(data.parents[0] if data.parents else EMPTY_TREE, data.sha)
        return self._show(
            request,
            "commit.html",
            repo=repo,
            tab="commits",
            row=views.commit_row(self.world, repo, data),
            files=views.diff_files(changed),
            runs=checks.latest_runs(repo, data.sha),
            apps=self.world.apps,
        )

    async def run(self, request: Request) -> Response:
        """One check run."""
        repo = self._repo(request)
        run = repo.check_runs.get(request.path_params["run_id"])
        if run is None:
            raise HTTPException(404, f"{repo.full_name} has no check run of that number.")
        on = checks.pulls_of(repo, run.head_sha)
        siblings = checks.latest_runs(repo, run.head_sha)
        return self._show(
            request,
            "run.html",
            repo=repo,
            tab="pulls",
            run=run,
            app=self.world.apps[run.app_id],
            on=on,
            siblings=siblings,
        )

    async def issue(self, request: Request) -> Response:
        """One issue; a pull request's number leads to its own page."""
        repo = self._repo(request)
        item = self._item(request, repo)
        if item.pull is not None:
            return RedirectResponse(f"/{repo.full_name}/pull/{item.number}")
        timeline = views.timeline(self.world, repo, item)
        return self._show(
            request,
            "issue.html",
            repo=repo,
            tab="issues",
            item=item,
            timeline=timeline,
            labels=views.labels(repo, item),
        )

    async def pull(self, request: Request) -> Response:
        """One pull request: conversation, commits, checks, files."""
        repo = self._repo(request)
        item = self._item(request, repo)
        if item.pull is None:
            return RedirectResponse(f"/{repo.full_name}/issues/{item.number}")
        part = request.path_params.get("tab", "conversation")
        if part not in ("conversation", "commits", "checks", "files"):
            raise HTTPException(404)
        changes = merging.changes(self.world, repo, item.pull)
        return self._show(
            request,
            "pull.html",
            repo=repo,
            tab="pulls",
            item=item,
            pull=item.pull,
            part=part,
            timeline=views.timeline(self.world, repo, item),
            labels=views.labels(repo, item),
            changes=changes,
            commits=[views.commit_row(self.world, repo, data) for data in changes.commits],
            files=views.diff_files(changes.files) if part == "files" else [],
            runs=checks.latest_runs(repo, item.pull.head_sha),
            statuses=checks.latest_statuses(repo, item.pull.head_sha),
            box=views.merge_box(self.world, repo, item),
            apps=self.world.apps,
            state=views.state_word(item),
            additions=sum(one.additions for one in changes.files),
            deletions=sum(one.deletions for one in changes.files),
        )

    async def diff(self, request: Request) -> Response:
        """The diff as text."""
        repo = self._repo(request)
        item = self._item(request, repo)
        if item.pull is None:
            raise HTTPException(404)
        base = merging.changes(self.world, repo, item.pull).base
        return PlainTextResponse(self.world.store(repo).run("diff", base, item.pull.head_sha))

    async def blob(self, request: Request) -> Response:
        """One file."""
        repo = self._repo(request)
        content = self._content(request, repo)
        lines = content.decode(errors="replace").split("\n")
        return self._show(
            request,
            "blob.html",
            repo=repo,
            tab="code",
            lines=lines,
            file=request.path_params["path"],
            sha=request.path_params["sha"],
        )

    async def raw(self, request: Request) -> Response:
        """One file as it is."""
        return PlainTextResponse(self._content(request, self._repo(request)))

    def _content(self, request: Request, repo: Repository) -> bytes:
        store = self.world.store(repo)
        entries = store.tree(self._sha(repo, request.path_params["sha"]), request.path_params["path"])
        if len(entries) != 1 or entries[0].kind != "blob":
            raise HTTPException(404)
        return store.blob(entries[0].oid)
