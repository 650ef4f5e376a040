"""Measurements, each run by one command; ratios against a peer or a floor of the same run."""
