"""Migrations of the store's schema, packaged with it."""
