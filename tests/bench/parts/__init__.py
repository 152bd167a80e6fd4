"""Parts of `scripts/bench engine`, a file for each question."""
