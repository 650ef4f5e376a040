"""The pages that people read."""

from __future__ import annotations

import httpx
import pytest

from bot.sandbox import markdown
from tests.sandbox.fixtures import REPO, Scene, checkout, listener, sandbox, scene
from tests.sandbox.test_operations import populated

__all__ = ["checkout", "listener", "sandbox", "scene"]


async def test_every_page_opens(scene: Scene) -> None:
    names = await populated(scene)
    sha, run = names["sha"], names["check_run_id"]
    wanted = {
        "/": ["acme/fork"],
        f"/{REPO}": ["README", "lib/", "git clone"],
        f"/{REPO}/files/lib": ["core.py", "All files"],
        f"/{REPO}/pulls": ["Another title", "graft:bundle", "1 Open"],
        f"/{REPO}/pulls?label=nothing": ["There are no open pull requests"],
        f"/{REPO}/issues?state=closed": ["0 Closed"],
        f"/{REPO}/pull/1": ["Merging is blocked", "graft/gate", "hello", "At least 1 approving review", "👍 1"],
        f"/{REPO}/pull/1/commits": ["Add two"],
        f"/{REPO}/pull/1/checks": ["graft/l1"],
        f"/{REPO}/pull/1/files": ["def two():", "+4"],
        f"/{REPO}/pull/1.diff": ["+def two():"],
        f"/{REPO}/issues/2": ["An issue", "reopened this"],
        f"/{REPO}/commits": ["Begin"],
        f"/{REPO}/commits/topic": ["Add two"],
        f"/{REPO}/commit/{sha}": ["Mona", "def two():", sha],
        f"/{REPO}/runs/{run}": ["1 annotation", "lib/core.py:1"],
        f"/{REPO}/blob/topic/lib/core.py": ["def two():"],
        f"/{REPO}/raw/{sha}/README.md": ["hello"],
        "/-/style.css": ["prefers-color-scheme: dark"],
        "/avatars/dev": ["<svg"],
    }
    async with httpx.AsyncClient(base_url=scene.sandbox.url, trust_env=False) as http:
        for path, texts in wanted.items():
            answer = await http.get(path)
            assert answer.status_code == 200, path
            for text in texts:
                assert text in answer.text, (path, text)
        for path in (
            "/acme/none",
            f"/{REPO}/pull/99",
            f"/{REPO}/files/none",
            f"/{REPO}/commit/{'0' * 40}",
            f"/{REPO}/runs/1",
            f"/{REPO}/pull/1/x",
            "/a/b/c/d",
        ):
            answer = await http.get(path)
            assert (answer.status_code, "Not found" in answer.text) == (404, True), path
        assert (await http.get(f"/{REPO}/issues/1")).headers["location"] == f"/{REPO}/pull/1"


async def test_the_box_says_why(scene: Scene) -> None:
    box, dev = scene.sandbox, scene.sandbox.as_user("dev")
    await dev.open_pull(REPO, "topic", draft=True)
    async with httpx.AsyncClient(base_url=box.url, trust_env=False) as http:

        async def says(text: str) -> bool:
            return text in (await http.get(f"/{REPO}/pull/1")).text

        assert await says("still a work in progress")
        await dev.ready_for_review(REPO, 1)
        assert await says("This branch has no conflicts")
        bot = box.as_app(scene.installation)
        sha = scene.checkout.git("rev-parse", "topic")
        await bot.request("POST", f"/repos/{REPO}/check-runs", {"name": "x", "head_sha": sha, "conclusion": "failure"})
        assert await says("Some checks were not successful")
        scene.checkout.git("checkout", "-q", "main")
        scene.checkout.commit("Clash", {"lib/core.py": "other\n"})
        await dev.push(REPO, scene.checkout.path, "main")
        assert await says("This branch has conflicts")
        assert await says("lib/core.py")


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;", "<script"),
        ("a <img src=x onerror=alert(1)> b", "&lt;img", "<img"),
        ("[x](javascript:alert(1))", "[x]", "href"),
        ("<details onclick=x><summary>s</summary></details>", "&lt;details", "<details"),
        ("<details><summary>s</summary>\n\ntext\n\n</details>", "<details><summary>", "&lt;details"),
        ("<!-- graft:status -->\ntext", "text", "graft:status"),
        ("| a | b |\n|--|--|\n| 1 | `x` |", "<td><code>x</code></td>", "|"),
        ("thanks @dev and #12", '<a class="mention" href="/dev">@dev</a>', "nothing"),
        ("see #12", '<a href="/acme/fork/issues/12">#12</a>', "nothing"),
        ("`@dev #12`", "<code>@dev #12</code>", "href"),
        ("[@dev](http://x.test)", '<a href="http://x.test">@dev</a>', "mention"),
        ("- [x] done", '<input type="checkbox" disabled checked>', "[x]"),
        ("> [!WARNING]\n> careful", 'class="alert warning"', "[!WARNING]"),
        ("a" * 40, "<code>aaaaaaa</code>", "a" * 41),
        ("", "No description provided", "nothing"),
    ],
)
def test_markdown_is_rendered_and_safe(text: str, inside: str, outside: str) -> None:
    rendered = markdown.render(text, "acme/fork")
    assert inside in rendered
    assert outside not in rendered
