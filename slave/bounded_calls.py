"""Many calls at once, each with a time limit of its own.

Rule: a call that hangs delays no other call, and is waited for no longer than its own limit.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

from .worker_progress import WORK

ANSWER_S: Final = 10.0  # for one call
AT_ONCE: Final = 16  # threads; they wait for devices, not for CPU
AT_ONCE_IF_SOME_HANG: Final = 256  # so that many that hang are not waited for one after the other

Found = TypeVar("Found")


def call_all(calls: Sequence[Callable[[], Found]], patience_s: float) -> list[Found | OSError | None]:
    """The result of each call: what it returned, the OSError that it raised, or None where it took too long.

    What takes too long is left in its thread. Raises whatever else a call raises.
    """
    answers: list[Found | OSError | None] = [None] * len(calls)
    came: SimpleQueue[tuple[int, Found | None, BaseException | None]] = SimpleQueue()
    waiting, begun = deque(range(len(calls))), dict[int, float]()  # begun: when, in that order
    at_once = AT_ONCE

    def take(i: int) -> None:
        try:
            came.put((i, calls[i](), None))
        except BaseException as error:
            came.put((i, None, error))

    while waiting or begun:
        WORK.step()  # each turn one call has ended, or is given up
        while waiting and len(begun) < at_once:
            i = waiting.popleft()
            begun[i] = time.monotonic()
            threading.Thread(target=take, args=(i,), name="bounded call", daemon=True).start()
        try:
            i, value, error = came.get(timeout=max(next(iter(begun.values())) + patience_s - time.monotonic(), 0))
        except Empty:
            del begun[next(iter(begun))]
            at_once = AT_ONCE_IF_SOME_HANG
            continue
        if begun.pop(i, None) is None:
            continue  # too late
        if error is not None and not isinstance(error, OSError):
            raise error
        answers[i] = value if error is None else error
    return answers
