"""The I/O engine: plain C, and the thin binding `_engine` through which the slave commands it."""
