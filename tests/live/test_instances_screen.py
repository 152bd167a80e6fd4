"""`ivypy attach --by`: what the full screen shows, and its keys on a real pseudo-terminal."""

import io
import os
import pty
import sys
import termios
from collections.abc import Iterator

import pytest

from ivypy.master.live.instances_screen import HELP, InstancesScreen, keys_sort
from ivypy.master.live.instances_table import Order
from ivypy.master.live.reports import EventLine, InstanceRow, Instances, RunEnds, StepBegins
from ivypy.master.summary.headline import SUBINTERVAL_METRICS
from tests.support.waits import wait_until


def a_row(name: str, iops: float = 10.0) -> InstanceRow:
    return InstanceRow(name, {**dict.fromkeys(SUBINTERVAL_METRICS, 100.0), "overall_iops": iops})


def screen() -> tuple[InstancesScreen, io.StringIO]:
    stream = io.StringIO()
    return InstancesScreen("host", stream), stream


def table(shown: InstancesScreen) -> dict[str, str]:
    """The lines of the instances, by name."""
    lines = [line for line in shown.lines(100, 30) if line[:3] in ("h1 ", "h2 ")]
    return {line[:2]: line for line in lines}


def test_a_sparkline_has_a_gap_where_an_instance_was_absent() -> None:
    shown, _ = screen()
    shown.show(StepBegins(0, "s", 1, 60.0, 60.0, 5.0))
    for names in (("h1", "h2"), ("h1",), ("h1", "h2")):
        shown.show(Instances("host", "s", 0, tuple(a_row(name) for name in names)))
    lines = table(shown)
    assert lines["h1"].endswith("███") and lines["h2"].endswith("█ █")


def test_the_end_of_the_run_is_shown_after_the_screen_and_no_key_brings_it_back() -> None:
    shown, stream = screen()
    shown.show(EventLine("2026-01-01T00:00:00Z", "h1", "lost"))
    shown.show(RunEnds("/runs/one", (), 0, "Every step is valid, no threshold was missed."))
    ended = stream.getvalue()
    assert ended.rstrip().endswith("Every step is valid, no threshold was missed.\n/runs/one")
    shown.sort_by(Order.MAX)
    assert stream.getvalue() == ended


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The end of a terminal at which a user types; the other is standard input."""
    keyboard, terminal = pty.openpty()
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield keyboard
    os.close(keyboard)


def test_keys_sort_and_leave_and_the_terminal_is_as_before(typed: int) -> None:
    shown, _ = screen()
    shown.show(StepBegins(0, "s", 1, 60.0, 60.0, 5.0))
    shown.show(Instances("host", "s", 0, (a_row("h1", iops=5.0), a_row("h2", iops=1.0))))
    before = termios.tcgetattr(sys.stdin)
    with pytest.raises(KeyboardInterrupt), keys_sort(shown) as has_left:
        for key, first in ((b"N", "h1"), (b"i", "h2")):
            os.write(typed, key)
            wait_until(lambda first=first: next(iter(table(shown))) == first, "sorted")  # type: ignore[misc]
        os.write(typed, b"q")
        wait_until(has_left, "left")
        wait_until(lambda: False, "interrupted")
    assert has_left() and termios.tcgetattr(sys.stdin) == before
    assert HELP in shown.lines(100, 30)


def test_every_line_of_the_screen_fits_and_none_is_cut() -> None:
    shown, _ = screen()
    shown.show(EventLine("2026-01-01T00:00:00Z", "h1", "words " * 30))
    lines = shown.lines(60, 30)
    assert max(map(len, lines)) <= 60
    assert " ".join(" ".join(lines).split()).endswith("words " * 30 + HELP)
