"""A controller on simulated time with simulated hosts: every failure can be staged, and idle time costs nothing."""
