"""Mutants of one module, and the tests that should notice them (scripts/mutants)."""
