"""Many looks at once, each with a patience of its own.

Rule: what does not answer keeps nothing else from being looked at, and is waited for no longer than it may take alone.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

from .worker_progress import WORK

ANSWER_S: Final = 10.0  # for one look
AT_ONCE: Final = 16  # threads; they wait for devices, not for cores
AT_ONCE_IF_SOME_HANG: Final = 256  # so that many that hang are not waited for one after the other

Found = TypeVar("Found")


def call_all(looks: Sequence[Callable[[], Found]], patience_s: float) -> list[Found | OSError | None]:
    """What each look comes to: what it returned, the OSError that it raised, or None where it took too long.

    What takes too long is left alone in its thread. Raises whatever else a look raises.
    """
    found: list[Found | OSError | None] = [None] * len(looks)
    came: SimpleQueue[tuple[int, Found | None, BaseException | None]] = SimpleQueue()
    waiting, begun = deque(range(len(looks))), dict[int, float]()  # begun: when, in that order
    at_once = AT_ONCE

    def take(i: int) -> None:
        try:
            came.put((i, looks[i](), None))
        except BaseException as error:
            came.put((i, None, error))

    while waiting or begun:
        WORK.step()  # each turn one look is over, or is given up
        while waiting and len(begun) < at_once:
            i = waiting.popleft()
            begun[i] = time.monotonic()
            threading.Thread(target=take, args=(i,), name="look", daemon=True).start()
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
        found[i] = value if error is None else error
    return found


def no_answer_text(patience_s: float) -> str:
    """The sentence about a LUN that did not answer."""
    return f"it did not answer a read within {patience_s:g} s: mend it, or leave it out of the selection"
