"""Fixtures that several test modules share."""

pytest_plugins = ["tests.lab.fixtures", "tests.slave.fixtures"]
