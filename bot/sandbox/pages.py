"""The pages."""

from __future__ import annotations

from starlette.applications import Starlette

from bot.sandbox.world import World


def pages(world: World) -> Starlette:
    """The pages."""
    return Starlette()
