"""Fixtures that several test modules share."""

import os
import signal
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

pytest_plugins = ["tests.lab.fixtures", "tests.slave.fixtures", "tests.devices.fixtures"]

settings.register_profile("fast", max_examples=25, deadline=None)
settings.register_profile("full", deadline=None)  # a busy machine is no counterexample
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "full"))

# A shell has what it runs in the background ignore Ctrl-C, and so would every program that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _own_runtime_folder() -> Iterator[None]:
    """Runs of tests put their control sockets where no other run of this user is, nor another's `ivypy stop` looks."""
    with tempfile.TemporaryDirectory(prefix="ivypy-run-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", folder)
        yield
