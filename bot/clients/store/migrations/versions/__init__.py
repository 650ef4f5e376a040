"""One module a step; v0001 is the first."""
