"""Nobody waits for a console: what it is not read of is dropped from the middle, and counted."""

import io
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.live import console_thread, view_decorators
from ivypy.master.live.console_thread import ConsoleWriter
from ivypy.master.live.json_lines import JsonLines
from ivypy.master.live.line_view import TextLines
from ivypy.master.live.reports import EventLine, RunEnds
from ivypy.master.live.stdio import NotRead, write_all
from ivypy.master.live.view_decorators import ThreadedView

WAIT_S = 20.0


class Reader:
    """Whoever reads what pieces write, or stands still."""

    def __init__(self) -> None:
        self.read = threading.Event()
        self.began = threading.Event()
        self.lines: list[str] = []

    def write(self, line: str) -> None:
        self.began.set()
        self.read.wait(WAIT_S)
        self.lines.append(line)

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        yield
        self.read.set()


@given(pieces=st.integers(0, 60))
def test_a_full_queue_keeps_the_newest_and_counts_the_dropped(pieces: int) -> None:
    most, console_thread.MOST = console_thread.MOST, 10  # type: ignore[misc]
    try:
        reader = Reader()
        out = ConsoleWriter("test", lambda dropped: reader.lines.append(f"dropped {dropped}"))
        with reader.standing_still():
            out.put(partial(reader.write, "first"))
            assert reader.began.wait(WAIT_S)
            for number in range(pieces):
                out.put(partial(reader.write, str(number)))
            assert out.flush(0.0) == 1 + pieces
        assert out.flush(WAIT_S) == 0
    finally:
        console_thread.MOST = most  # type: ignore[misc]
    kept = [str(number) for number in range(pieces)][-10:]
    said = [f"dropped {pieces - 10}"] if pieces > 10 else []
    assert reader.lines == ["first", *said, *kept]


def test_nothing_more_is_written_after_the_first_write_error() -> None:
    out, seen = ConsoleWriter("test", lambda dropped: None), []

    def fail() -> None:
        raise BrokenPipeError("gone")

    out.put(fail)
    assert out.flush(WAIT_S) == 0
    out.put(lambda: seen.append(1))
    assert out.flush(WAIT_S) == 0 and isinstance(out.error, BrokenPipeError) and seen == []


@pytest.mark.parametrize("blocking", [True, False])
def test_a_long_write_is_completed_in_parts(blocking: bool) -> None:
    """Also where the reader made the pipe one that does not wait, as ssh does."""
    data = os.urandom(300_000)
    reading, writing = os.pipe()
    os.set_blocking(writing, blocking)
    thread = threading.Thread(target=write_all, args=(writing, data))
    thread.start()
    with open(reading, "rb") as file:
        assert file.read(len(data)) == data
    thread.join()
    os.close(writing)


def test_the_console_says_how_many_reports_were_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_thread, "MOST", 5)
    reader = Reader()
    shown = ThreadedView(TextLines(reader.write))
    with reader.standing_still():
        shown.show(EventLine("2026-01-01T00:00:00Z", "", "first"))
        assert reader.began.wait(WAIT_S)
        for number in range(10):
            shown.show(EventLine("2026-01-01T00:00:00Z", "", str(number)))
        shown.show(RunEnds("/folder", (), 0, "the last word"))
    shown.close()
    texts = [line[10:] for line in reader.lines[:-2]]
    assert texts == ["first", "... 7 reports were not shown: standard output was not read", "7", "8", "9"]
    assert reader.lines[-2:] == ["the last word", "/folder"]


def test_dropped_reports_are_counted_in_json_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_thread, "MOST", 1)
    reader = Reader()
    shown = ThreadedView(JsonLines(reader.write))
    with reader.standing_still():
        shown.show(EventLine("", "", "first"))
        assert reader.began.wait(WAIT_S)
        for number in range(3):
            shown.show(EventLine("", "", str(number)))
    shown._outlet.flush(WAIT_S)
    said = [json.loads(line) for line in reader.lines]
    assert [(one["report"], one["text"]) for one in said] == [
        ("event_line", "first"),
        ("event_line", "... 2 reports were not shown: standard output was not read"),
        ("event_line", "2"),
    ]


def test_closing_does_not_wait_for_a_console_that_is_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_decorators, "CLOSE_S", 0.05)
    reader = Reader()
    shown = ThreadedView(TextLines(reader.write))
    with reader.standing_still():
        shown.show(EventLine("", "", "a"))
        shown.show(EventLine("", "", "b"))
        with pytest.raises(NotRead, match=r"the end of the run was not shown \(2 reports\)"):
            shown.close()


def test_the_error_of_the_console_is_raised_at_the_next_report() -> None:
    class Gone(io.StringIO):
        def write(self, text: str, /) -> int:
            raise OSError("gone")

    gone = Gone()
    shown = ThreadedView(TextLines(lambda line: print(line, file=gone)))
    shown.show(EventLine("", "", "a"))
    shown._outlet.flush(WAIT_S)
    with pytest.raises(OSError, match="gone"):
        shown.show(EventLine("", "", "b"))
    with pytest.raises(OSError, match="gone"):
        shown.close()
