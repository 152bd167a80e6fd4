"""Pytest's hooks for tests of wall-clock time: one that failed while the machine stalled is skipped, and counted.

Rule: a stall of some milliseconds excuses no wait for what may take its time. A session in which more than MOST_SKIPPED
were skipped so has failed: it proves too little of wall-clock time.
"""

import contextlib
from collections.abc import Generator
from typing import Final

import pytest

from tests.support import stalls
from tests.support.waits import OutOfPatience

MOST_SKIPPED: Final = 3
IN_A_STALL: Final = "failed in a stall"  # a property of the report, which comes to the controlling process as it is


class StallSkips:
    """Skips, counts and names what failed while the machine stalled."""

    def __init__(self) -> None:
        self.skipped: list[str] = []
        self._watching = contextlib.ExitStack()
        self._witness: stalls.Witness | None = None

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """scripts/test looks for their files by these words: a test that it does not find would never run."""
        for item in items:
            if item.get_closest_marker("realtime") and "mark.realtime" not in item.path.read_text():
                raise pytest.UsageError(f"{item.nodeid} is realtime, and its file does not say mark.realtime")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Watch for stalls from the first `realtime` test on."""
        if item.get_closest_marker("realtime"):
            self._witness = self._witness or self._watching.enter_context(stalls.witness())
            self._witness.begin()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Skip a `realtime` test whose assertion failed while the machine stalled."""
        report = yield
        if report.failed and self._witness and item.get_closest_marker("realtime") and call.excinfo:
            stall_s = self._witness.longest_s()
            late = call.excinfo.errisinstance(AssertionError) and not call.excinfo.errisinstance(OutOfPatience)
            if stall_s > stalls.STALL_S and late:
                path, line, _ = item.location
                report.outcome = "skipped"
                said = f"the machine stalled for {stall_s * 1e3:.0f} ms: {call.excinfo.exconly()}"
                report.longrepr = (path, line or 0, said)
                report.user_properties.append((IN_A_STALL, True))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and (IN_A_STALL, True) in map(tuple, report.user_properties):
            self.skipped.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Before conftest.py looks for what is left behind: the watching process is not."""
        self._watching.close()
        if len(self.skipped) > MOST_SKIPPED and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
        """Name them last, where they are seen."""
        yield
        if self.skipped:
            too_many = len(self.skipped) > MOST_SKIPPED
            limit = f": more than {MOST_SKIPPED}, so this session has failed" if too_many else ""
            title = f"{len(self.skipped)} skipped, since they failed while the machine stalled{limit}"
            terminalreporter.section(title, red=too_many, bold=True)
            terminalreporter.write("\n".join(self.skipped) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(StallSkips())
