"""What is kept and shown of a run: rows, the result of each step, run.json."""
