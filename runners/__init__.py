"""A runner for GPU machines: takes work from its queue, proves a commit, reports; holds no GitHub credential."""
