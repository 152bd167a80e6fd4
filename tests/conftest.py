"""What all tests share: fixtures of several modules, a disk in memory, and the two rules of a session.

A test that is marked `realtime` asserts wall-clock time. It needs the machine for itself, and is skipped, with the
length of the stall, where it failed while the machine was seen to stall. No other test may depend on how long
something takes, and no test is run twice.

A session that leaves a process, a device, a mount or a namespace behind has failed.
"""

import contextlib
import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from tests.support import devices, leftovers, stalls

pytest_plugins = ["tests.support.fixtures"]

settings.register_profile("fast", max_examples=25, deadline=None)
settings.register_profile("full", deadline=None)  # a busy machine is no counterexample
settings.register_profile("ci", deadline=None, derandomize=True)  # a change is not refused for another's new example
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
WATCHING = pytest.StashKey[contextlib.ExitStack]()
WITNESS = pytest.StashKey[stalls.Witness]()
LEFT_BEHIND = pytest.StashKey[list[str]]()


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs its share of the tests for a pytest that was started with `-n`."""
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    """Give the session a name and a disk of its own, in memory where possible: the machine's may be slow, or in use."""
    undo = config.stash[UNDO] = contextlib.ExitStack()
    config.stash[WATCHING] = contextlib.ExitStack()
    if is_worker(config):
        return  # the disk and the name are those of the pytest that started it
    undo.enter_context(leftovers.session())
    if config.option.basetemp is None and not config.option.collectonly:
        with contextlib.suppress(devices.Missing):
            config.option.basetemp = undo.enter_context(devices.disk_in_memory(DISK, leftovers.DISK)) / "tests"


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[UNDO].close()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Watch for stalls from the first `realtime` test on."""
    if item.get_closest_marker("realtime"):
        stash = item.config.stash
        if WITNESS not in stash:
            stash[WITNESS] = stash[WATCHING].enter_context(stalls.witness())
        stash[WITNESS].begin()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a `realtime` test whose assertion failed while the machine stalled."""
    report = yield
    if (
        report.failed
        and item.get_closest_marker("realtime")
        and call.excinfo
        and call.excinfo.errisinstance(AssertionError)
    ):
        stall_s = item.config.stash[WITNESS].longest_s()
        if stall_s > stalls.STALL_S:
            path, line, _ = item.location
            report.outcome = "skipped"
            report.longrepr = (
                path,
                line or 0,
                f"the machine stalled for {stall_s * 1e3:.0f} ms: {call.excinfo.exconly()}",
            )
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Look for what is left behind, when all workers have ended, and before the summary is printed."""
    config = session.config
    config.stash[WATCHING].close()
    if not is_worker(config):
        config.stash[LEFT_BEHIND] = leftovers.found()
        if config.stash[LEFT_BEHIND]:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if left := config.stash.get(LEFT_BEHIND, []):
        terminalreporter.section("left behind by the tests", red=True, bold=True)
        terminalreporter.write("\n".join(left) + "\n")


@pytest.fixture(autouse=True)
def runtime_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Each test's runs put their control sockets where no other run of this user is found, nor finds them."""
    with tempfile.TemporaryDirectory(prefix="ivypy-run-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


@pytest.fixture(autouse=True)
def _signals_of_pytest() -> Iterator[None]:
    """A command that a test runs in this process leaves its handlers: Ctrl-C would end pytest, and undo nothing."""
    yield
    if any(signal.getsignal(number) is not signal.default_int_handler for number in SIGNALS):
        signal.set_wakeup_fd(-1)
        for number in SIGNALS:
            signal.signal(number, signal.default_int_handler)
