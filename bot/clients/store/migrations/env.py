"""Alembic's environment: migrates over the connection that the store hands in, inside its transaction."""

from __future__ import annotations

from alembic import context

from bot.clients.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
