"""Records and shows a run: rows, the result of each step, run.json."""
