"""Fixtures that several test modules share."""

import os

from hypothesis import settings

pytest_plugins = ["tests.lab.fixtures", "tests.slave.fixtures", "tests.devices.fixtures"]

settings.register_profile("fast", max_examples=25, deadline=None)
settings.register_profile("full", deadline=None)  # a busy machine is no counterexample
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "full"))
