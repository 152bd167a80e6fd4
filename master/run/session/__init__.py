"""A run from its plan to its exit code, and the programs and people that steer it."""
