"""Decides and touches nothing: no await, no clock, no network, no random."""
