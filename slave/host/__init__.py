"""The host itself: facts, cores, memory, clocks, and what takes its CPU."""
