"""The operations of the API, a file a noun. Importing this package registers them all."""

from __future__ import annotations

from bot.sandbox.routes import (
    accounts,
    actions,
    apps,
    checks,
    comments,
    commits,
    contents,
    gitdata,
    graphql,
    issues,
    labels,
    pulls,
    repositories,
    reviews,
)

__all__ = [
    "accounts",
    "actions",
    "apps",
    "checks",
    "comments",
    "commits",
    "contents",
    "gitdata",
    "graphql",
    "issues",
    "labels",
    "pulls",
    "repositories",
    "reviews",
]
