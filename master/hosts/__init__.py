"""The test hosts: how they are reached, what is pushed to them, and the pipe to each."""
