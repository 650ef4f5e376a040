"""GitHub-flavoured Markdown to HTML that is safe to show: only a few harmless tags survive, everything else is text."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

_TAG = re.compile(
    r"<!--.*?-->|</?(?:details|summary|sub|sup|kbd|ins|del|br|hr|b|i|em|strong|code|p|table|thead|tbody|tr|th|td|ul|ol|li)"
    r"(?: open)?\s*/?>",
    re.DOTALL | re.IGNORECASE,
)
_MENTION = re.compile(r"(?<![\w/@#&;.-])@([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))(?:/([\w.-]+))?")
_REFERENCE = re.compile(r"(?<![\w/#&])(?:([\w.-]+/[\w.-]+))?#(\d+)\b")
_SHA = re.compile(r"(?<![\w/])([0-9a-f]{40})(?!\w)")
_TASK = re.compile(r"\[([ xX])\] ")
_ALERT = re.compile(r"\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\s*")


class _Renderer(RendererHTML):
    """Escapes what is not known to be harmless, and links mentions, references and commits as the site does."""

    def html_block(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _harmless(tokens[idx].content)

    def html_inline(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return _harmless(tokens[idx].content)

    def text(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        escaped = html.escape(tokens[idx].content, quote=False)
        depth = sum({"link_open": 1, "link_close": -1}.get(token.type, 0) for token in tokens[:idx])
        escaped = _TASK.sub(_task, escaped, count=1) if idx == 0 else escaped
        return escaped if depth else _linked(escaped, env["repository"])


def _task(found: re.Match[str]) -> str:
    return f'<input type="checkbox" disabled{" checked" if found[1] != " " else ""}> '


def _harmless(text: str) -> str:
    kept, at = [], 0
    for found in _TAG.finditer(text):
        kept.append(html.escape(text[at : found.start()], quote=False))
        kept.append("" if found[0].startswith("<!--") else found[0].lower())
        at = found.end()
    return "".join(kept) + html.escape(text[at:], quote=False)


def _linked(text: str, repository: str) -> str:
    def reference(found: re.Match[str]) -> str:
        return f'<a href="/{found[1] or repository}/issues/{found[2]}">{found[0]}</a>'

    def mention(found: re.Match[str]) -> str:
        target = f"orgs/{found[1]}/teams/{found[2]}" if found[2] else found[1]
        return f'<a class="mention" href="/{target}">{found[0]}</a>'

    text = _SHA.sub(lambda found: f'<a href="/{repository}/commit/{found[1]}"><code>{found[1][:7]}</code></a>', text)
    return _MENTION.sub(mention, _REFERENCE.sub(reference, text)) if "<a " not in text else text


_MARKDOWN = MarkdownIt("commonmark", {"html": True, "breaks": True, "linkify": False}, renderer_cls=_Renderer).enable(
    ["table", "strikethrough"]
)


def render(text: str | None, repository: str) -> str:
    """The HTML of a body or comment; mentions and references are links into `repository` ("owner/name")."""
    if not text or not text.strip():
        return '<p class="muted"><em>No description provided.</em></p>'
    rendered: str = _MARKDOWN.render(text, {"repository": repository})
    return _alerts(rendered)


def _alerts(rendered: str) -> str:
    """`> [!NOTE]` as a coloured box."""

    def box(found: re.Match[str]) -> str:
        kind = found[1].capitalize()
        return f'<blockquote class="alert {kind.lower()}">\n<p><strong>{kind}</strong><br />\n'

    return re.sub(r"<blockquote>\n<p>" + _ALERT.pattern + r"(?:<br />\s*)?", box, rendered)
