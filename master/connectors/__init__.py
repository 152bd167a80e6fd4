"""Connectors: what the array, the switch and the host say, beside every subinterval."""
