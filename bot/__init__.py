"""Graft: the bot."""
