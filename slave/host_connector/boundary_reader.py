"""Reads the elements of a host at each boundary of a step, in a thread of its own, for the results to carry.

Rule: a result waits a moment for its readings, and never for longer: those that are not ready go with a later one. Of
boundaries that passed unseen, in a machine stall, only the last has readings; and those that begin too late after one
are not its readings, but of another time.
"""

from __future__ import annotations

import sys
import traceback
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from threading import Condition, Lock, Thread
from typing import Final

from ...protocol.messages import MOST_ELEMENTS, ElementsFound, HostReadings
from ...protocol.payload import Array, ArrayType, Facts
from .connector import HostConnector

PATIENCE_NS: Final = 100_000_000  # after a boundary, but at most OF_LENGTH
OF_LENGTH: Final = 0.25
MOST_KEPT: Final = 4  # readings that no result has carried yet: more than results that wait
ENDING_S: Final = 0.1  # for the thread of the step before


class BoundaryReader:
    """State: which elements there are, and the readings of the running step that no result has carried yet."""

    def __init__(self, connector: HostConnector, now_ns: Callable[[], int]) -> None:
        """`now_ns`: the clock of results."""
        self._connector = connector
        self._now_ns = now_ns
        self._cells = ReadingCells((), {})  # of the elements that are read
        self._step = _StepReadings(0, 0)
        self._thread: Thread | None = None  # of the newest step
        self._one_at_a_time = Lock()  # of those who use the connector

    def find(self, number: int, luns: Sequence[str]) -> ElementsFound:
        """The answer to the command of that number. It takes a while, and may wait for filesystems.

        Raises ValueError where there are too many elements.
        """
        with self._one_at_a_time:
            metrics, joins = self._connector.config(luns)
            first = self._connector.gather().facts
            present = [*self._connector.read_later, *((fact.element, fact.instance) for fact in first)]
        types = tuple(dict.fromkeys(metric.element for metric in metrics))
        instances: dict[str, dict[str, None]] = {element: {} for element in types}
        for element, instance in present:
            instances[element][instance] = None
        by_type = {element: tuple(some) for element, some in instances.items()}
        if (many := sum(map(len, by_type.values()))) > MOST_ELEMENTS:
            raise ValueError(f"there are {many:,} elements, more than {MOST_ELEMENTS:,}")
        return ElementsFound(number, metrics, by_type, Facts(joins))

    def use(self, elements: ElementsFound) -> None:
        """Read these from the next step on: none is before the controller knows of them."""
        self._cells = ReadingCells.of(elements)

    def read(self, subinterval: int, cells: ReadingCells) -> HostReadings:
        """The present values, as the readings of the end of that subinterval."""
        with self._one_at_a_time:
            gathered = self._connector.gather()
        read = array("d", [nan]) * len(cells.places)
        for element, instance, attribute, value in gathered.facts:
            place = cells.places.get((element, instance, attribute))
            if place is not None:
                read[place] = float(value)
        stamps = tuple(gathered.stamps[element] for element in cells.types)
        values = Array(ArrayType.F64, read.tobytes())
        return HostReadings(subinterval, gathered.start_ns, gathered.end_ns, stamps, values)

    def begin(self, start_ns: int, length_ns: int) -> None:
        """Read at the start of a step, and at each boundary until `end`, on the cores that the caller may use."""
        self.end()
        self._step = _StepReadings(0, 0)
        if self._thread is not None:
            self._thread.join(ENDING_S)
        if self._thread is not None and self._thread.is_alive():
            print("the readings of the step before hang: this step has none", file=sys.stderr)
        elif self._cells.types:
            step = _StepReadings(start_ns, length_ns)
            thread = Thread(target=self._read_all, args=(step, self._cells), name="readings", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # this user may have no more threads
                print(f"there are no readings: {error}", file=sys.stderr)
                return
            self._step, self._thread = step, thread

    def place(self, subinterval: int, boundary_ns: int) -> None:
        """That subinterval ends there."""
        self._step.place(subinterval, boundary_ns)

    def take(self, subinterval: int, end_ns: int) -> tuple[HostReadings, ...]:
        """The readings up to that subinterval, which ended at `end_ns`, that were not taken yet; waits a moment for its
        own. Of one that was cut short there are none."""
        return self._step.take(subinterval, end_ns, self._now_ns)

    def end(self) -> None:
        """The step is over: nothing more is read, and nobody waits."""
        self._step.end()

    def _read_all(self, step: _StepReadings, cells: ReadingCells) -> None:
        """The thread of a step."""
        try:
            while step.wait_for_boundary(self._now_ns):
                step.add(self.read(step.subinterval, cells))
        except Exception:
            traceback.print_exc()
        finally:
            step.end()


class _StepReadings:
    """State: the boundary that is read next, and what was read; of two threads."""

    def __init__(self, start_ns: int, length_ns: int) -> None:
        """A step that has no length is over."""
        self.subinterval = -1  # that ends at the next boundary
        self._end_ns, self._length_ns = start_ns, length_ns
        self._placed: dict[int, int] = {}  # where subintervals end, as far as that was commanded
        self._read: list[HostReadings] = []
        self._is_over = not length_ns
        self._changed = Condition(Lock())

    def place(self, subinterval: int, boundary_ns: int) -> None:
        with self._changed:
            self._placed[subinterval] = boundary_ns
            if subinterval == self.subinterval:
                self._end_ns = boundary_ns
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def wait_for_boundary(self, now_ns: Callable[[], int]) -> bool:
        """Whether `subinterval` has ended, and no later one; False once the step is over."""
        with self._changed:
            while not self._is_over:
                left_ns = self._end_ns - now_ns()
                if left_ns > 0:
                    self._changed.wait(left_ns / 1e9)
                elif self._after() <= now_ns():
                    self._move_on()
                else:
                    return True
        return False

    def add(self, readings: HostReadings) -> None:
        """The readings of `subinterval`."""
        with self._changed:
            if readings.start_ns <= self._end_ns + self._patience_ns:
                self._read = [*self._read, readings][-MOST_KEPT:]
            self._move_on()
            self._changed.notify_all()

    def take(self, subinterval: int, end_ns: int, now_ns: Callable[[], int]) -> tuple[HostReadings, ...]:
        with self._changed:
            latest_ns = end_ns + self._patience_ns
            while not self._is_over and self.subinterval <= subinterval and now_ns() < latest_ns:
                self._changed.wait((latest_ns - now_ns()) / 1e9)
            taken = [one for one in self._read if one.subinterval <= subinterval]
            self._read = self._read[len(taken) :]
            return tuple(one for one in taken if one.subinterval < subinterval or one.start_ns <= latest_ns)

    @property
    def _patience_ns(self) -> int:
        return min(PATIENCE_NS, round(OF_LENGTH * self._length_ns))

    def _ended_ns(self, subinterval: int) -> int:
        """Where a subinterval ends that is not before the next one to be read."""
        return self._placed.get(subinterval, self._end_ns + (subinterval - self.subinterval) * self._length_ns)

    def _after(self) -> int:
        """Where the subinterval after the next ends."""
        return self._ended_ns(self.subinterval + 1)

    def _move_on(self) -> None:
        self._end_ns = self._after()
        self._placed.pop(self.subinterval, None)
        self.subinterval += 1


@dataclass(frozen=True)
class ReadingCells:
    """The order of values in readings."""

    types: tuple[str, ...]  # of elements; none: nothing is read
    places: Mapping[tuple[str, str, str], int]  # by element type, instance and attribute

    @staticmethod
    def of(elements: ElementsFound) -> ReadingCells:
        cells = [
            (element, instance, metric.attribute)
            for element, some in elements.instances.items()
            for instance in some
            for metric in elements.metrics
            if metric.element == element
        ]
        return ReadingCells(tuple(elements.instances), {cell: place for place, cell in enumerate(cells)})
