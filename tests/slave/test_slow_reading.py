"""Readings that may take for ever: nobody waits for them, and what they read last does not grow old unseen."""

import errno
import os
from pathlib import Path

from ivypy.slave.host_connector.connector import EVERY_S, KEPT_S, SlowReading
from tests.support.waits import wait_until


def test_a_value_stands_until_it_is_read_again() -> None:
    values = iter(range(10))
    reading = SlowReading(lambda: next(values))
    wait_until(lambda: reading.latest(0.0) == 0, "the first value is there")
    assert reading.latest(EVERY_S - 0.1) == 0
    wait_until(lambda: reading.latest(EVERY_S) == 1, "it was read again")
    assert next(values) == 2, "and once only"


def test_one_that_hangs_is_not_waited_for_and_its_old_value_ends(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = SlowReading(pipe.read_text)  # hangs until somebody writes
    assert reading.latest(0.0) is None
    pipe.write_text("first")
    wait_until(lambda: reading.latest(0.0) == "first", "it was read")
    assert reading.latest(EVERY_S) == "first", "a reading that hangs has begun"
    assert reading.latest(KEPT_S) == "first"
    assert reading.latest(KEPT_S + 0.1) is None
    pipe.write_text("second")
    wait_until(lambda: reading.latest(KEPT_S) == "second", "it goes on where it can")


def test_what_cannot_be_read_has_no_value_and_is_tried_again() -> None:
    answers = iter([OSError(errno.EIO, "broken"), None])

    def read() -> str:
        if error := next(answers):
            raise error
        return "healthy"

    reading = SlowReading(read)
    assert reading.latest(0.0) is None
    wait_until(lambda: reading.latest(EVERY_S) == "healthy", "the second reading is there")
