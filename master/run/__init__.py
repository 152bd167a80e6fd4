"""One run, from the plan to the run folder: connect, discover, consent, create, steps, close."""
