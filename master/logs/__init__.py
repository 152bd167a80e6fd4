"""Latency logs of other tools and of finished runs, as percentiles over time."""
