"""All text that Graft writes on GitHub, made by pure functions; untrusted text is made inert here and nowhere else."""
