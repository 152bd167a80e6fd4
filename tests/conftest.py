"""What all tests share: fixtures of several modules, a disk in memory, a witness of when the machine stood still."""

import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support import devices, stalls

pytest_plugins = ["tests.support.lab_fixtures", "tests.support.slave_fixtures", "tests.support.device_fixtures"]

settings.register_profile("fast", max_examples=25, deadline=None)
settings.register_profile("full", deadline=None)  # a busy machine is no counterexample
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "full"))

# A shell has what it runs in the background ignore Ctrl-C, and nohup a hang-up: so would every program of a test.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

DISK = 12 << 30  # bytes, of which memory holds what is written
UNDO = pytest.StashKey[contextlib.ExitStack]()
WITNESS = pytest.StashKey[stalls.Witness]()


def pytest_configure(config: pytest.Config) -> None:
    """Tests write to a disk of their own, in memory, where the machine allows one: its own may be slow, or in use."""
    undo = config.stash[UNDO] = contextlib.ExitStack()
    if config.option.basetemp is None and not config.option.collectonly:
        with contextlib.suppress(devices.Missing):
            config.option.basetemp = undo.enter_context(devices.disk_in_memory(DISK)) / "tests"


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[UNDO].close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that failed while the machine stood still is asked again, three times at most."""
    witness = config.stash[UNDO].enter_context(stalls.witness())
    config.stash[WITNESS] = witness

    def again(error: BaseException | None) -> bool:  # asked of tests that passed, too: then without an error
        return error is not None and witness.stood_still()

    for item in items:
        item.add_marker(pytest.mark.flaky(reruns=3, condition=again))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.config.stash[WITNESS].begin()


@pytest.fixture(autouse=True, scope="session")
def _own_runtime_folder() -> Iterator[None]:
    """Runs of tests put their control sockets where no other run of this user is, nor another's `ivypy stop` looks."""
    with tempfile.TemporaryDirectory(prefix="ivypy-run-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", folder)
        yield
