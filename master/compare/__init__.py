"""Comparison of runs: folders → steps matched by name, instances by key → changes with their errors → outcomes."""
