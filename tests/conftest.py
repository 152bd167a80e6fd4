"""What all tests share: fixtures of several modules, a disk in memory, and the two rules of a session.

A test that is marked `realtime` asserts wall-clock time. It needs the machine for itself, and is skipped, with the
length of the stall, where it failed while the machine was seen to stall (support/stall_skips.py). No other test may
depend on how long something takes, and no test is run twice.

A session that leaves a process, a device, a mount or a namespace behind has failed.
"""

import contextlib
import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from tests.support import devices, fork_server, leftovers

pytest_plugins = ["tests.support.fixtures", "tests.support.stall_skips"]

settings.register_profile("fast", max_examples=25, deadline=None)
settings.register_profile("full", deadline=None)  # a busy machine is no counterexample
# A change is not refused for another's new example: they are the same each time.
settings.register_profile("ci", max_examples=50, deadline=None, derandomize=True)
settings.register_profile(
    "mutants", max_examples=60, deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "full"))

# Whatever ends a session, what its tests made is undone. And none is ignored, as Ctrl-C is by what a shell runs in the
# background, and a hang-up by what nohup runs: every program of a test would ignore it, too.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
for number in SIGNALS:
    signal.signal(number, signal.default_int_handler)

DISK = 12 << 30  # bytes, of which memory holds what is written
UNDO = pytest.StashKey[contextlib.ExitStack]()
LEFT_BEHIND = pytest.StashKey[list[str]]()


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs its share of the tests for a pytest that was started with `-n`."""
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    """Give the session a name and a disk of its own, in memory where possible: the machine's may be slow, or in use."""
    undo = config.stash[UNDO] = contextlib.ExitStack()
    if is_worker(config):
        return  # the disk and the name are those of the pytest that started it
    undo.enter_context(leftovers.session())
    if config.option.basetemp is None and not config.option.collectonly:
        with contextlib.suppress(devices.Missing):
            config.option.basetemp = undo.enter_context(devices.disk_in_memory(DISK, leftovers.DISK)) / "tests"


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[UNDO].close()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Look for what is left behind, when all workers have ended, and before the summary is printed."""
    config = session.config
    if not is_worker(config):
        config.stash[LEFT_BEHIND] = leftovers.found()
        if config.stash[LEFT_BEHIND]:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if left := config.stash.get(LEFT_BEHIND, []):
        terminalreporter.section("left behind by the tests", red=True, bold=True)
        terminalreporter.write("\n".join(left) + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Without searches for garbage, of which there is none; later ones leave out what was collected."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)  # xdist's own, which came after this file, reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share what their module makes run in one worker, so that it is made once."""
    for item in items:
        if isinstance(item, pytest.Function) and not item.get_closest_marker("xdist_group") and shares(item):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


def shares(item: pytest.Function) -> bool:
    made = item._fixtureinfo.name2fixturedefs.values()
    return any(fixture.scope == "module" for definitions in made for fixture in definitions)


@pytest.fixture(autouse=True)
def runtime_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Each test's runs put their control sockets where no other run of this user is found, nor finds them."""
    with tempfile.TemporaryDirectory(prefix="ivypy-run-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


@pytest.fixture(scope="session", autouse=True)
def _forks() -> Iterator[None]:
    """What starts commands for the tests ends with them."""
    yield
    fork_server.end()


@pytest.fixture(autouse=True)
def _signals_of_pytest() -> Iterator[None]:
    """A command that a test runs in this process leaves its handlers: Ctrl-C would end pytest, and undo nothing."""
    yield
    if any(signal.getsignal(number) is not signal.default_int_handler for number in SIGNALS):
        signal.set_wakeup_fd(-1)
        for number in SIGNALS:
            signal.signal(number, signal.default_int_handler)
