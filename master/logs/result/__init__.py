"""Figures of finished intervals: percentiles, exact percentiles, thresholds."""
