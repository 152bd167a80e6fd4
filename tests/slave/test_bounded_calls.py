"""Looks that take their time: each has a patience of its own, and keeps no other from being made."""

import threading
import time

import pytest

from ivypy.slave.bounded_calls import AT_ONCE, call_all

pytestmark = pytest.mark.slow

PATIENCE_S = 1.0


@pytest.mark.slow
def test_many_calls_together_may_take_longer_than_the_timeout_of_one() -> None:
    looks = 40 * AT_ONCE

    def look() -> int:
        time.sleep(0.03)  # as a device on a busy array takes
        return 7

    began = time.monotonic()
    assert call_all([look] * looks, PATIENCE_S) == [7] * looks
    assert time.monotonic() - began > PATIENCE_S, "or this shows nothing"


@pytest.mark.parametrize("hung", [{0}, {3, 30}, set(range(2 * AT_ONCE)), set(range(90))])
def test_a_call_that_hangs_has_no_result_and_delays_no_other(hung: set[int]) -> None:
    released = threading.Event()

    def look(i: int) -> int:
        if i in hung:
            released.wait(60)
        return i

    began = time.monotonic()
    try:
        found = call_all([lambda i=i: look(i) for i in range(100)], 0.3)  # type: ignore[misc]
    finally:
        released.set()
    assert found == [None if i in hung else i for i in range(100)]
    assert time.monotonic() - began < 30, "not one after the other"


def test_os_errors_of_a_call_are_returned_and_bugs_are_raised() -> None:
    def fails() -> int:
        raise FileNotFoundError(2, "gone")

    def bug() -> int:
        raise KeyError("a")

    (error, value) = call_all([fails, lambda: 1], PATIENCE_S)
    assert isinstance(error, FileNotFoundError) and value == 1
    assert call_all([], PATIENCE_S) == []
    with pytest.raises(KeyError):
        call_all([bug], PATIENCE_S)
