"""Records as the JSON that GitHub sends."""
