"""Placing what was read on one time axis, in intervals."""
