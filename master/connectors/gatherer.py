"""Gathers from one connector through a step, a gather for each subinterval, beside everything else.

Rule: nobody waits for it but up to its deadline. A connector that is slow misses subintervals, each labelled; one that
is gone is gone until the next step. The rates of counters are by the connector's own stamps as long as these make
sense, else by the controller's clock, which is noted. A gather that is just in time ends with its subinterval: it
begins earlier by what such gathers have taken lately, the median of the last ones; half of them end before the boundary
then, and half after it, by as little as their times vary.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import count
from statistics import median_high
from typing import Final

from ...protocol.connector import Declined, Readings
from ..hosts.controller_lag import ControllerLag, Deadline
from .catalog import Catalog, Values
from .connector_driver import Answered, ConnectorDriver
from .connector_spec import ConnectorSpec, GatherAt
from .counter_rates import rates
from .errors import ConnectorFault
from .gathered import Gathered, GatherState, GatherTimesOf, ReadingCounts, StampFault
from .stamp_checks import ConnectorClock

LONGEST_PATIENCE_NS: Final = 10 * 10**9  # however long subintervals are
KEPT_TIMES: Final = 15
EARLIEST: Final = 0.9  # of a subinterval: no gather begins earlier before its end
Report = Callable[[Gathered], None]


class _Baseline:
    """The readings that the next counters are counted from."""

    def __init__(self, subinterval: int, values: Values, readings: Readings, answered: Answered) -> None:
        self.subinterval = subinterval
        self.values = values
        self.readings = readings
        self.answered = answered
        self.fault = StampFault.NONE  # what speaks against its own stamps

    def stamp_ns(self, element: str) -> int:
        """On the connector's clock: the middle of the time in which it was read."""
        own = self.readings.stamps.get(element)
        return own if own is not None else (self.readings.start_ns + self.readings.end_ns) // 2

    @property
    def middle_ns(self) -> int:
        """On the controller's clock: between request and answer."""
        return (self.answered.sent_ns + self.answered.arrived_ns) // 2


class _GatherTimes:
    """Says when to gather. State: how long the last gathers took, from the request to the answer."""

    def __init__(self, at: GatherAt) -> None:
        self._at = at
        self._took_ns: deque[int] = deque(maxlen=KEPT_TIMES)

    def took(self, duration_ns: int) -> None:
        """One more gather was answered."""
        self._took_ns.append(duration_ns)

    def begin_ns(self, end_ns: int, length_ns: int) -> int:
        """When to begin the gather of a subinterval that ends at `end_ns` and lasts `length_ns`."""
        if self._at is GatherAt.END or not self._took_ns:
            return end_ns
        return end_ns - min(median_high(self._took_ns), round(EARLIEST * length_ns))


class Gatherer:
    """Holds one connector's newest readings, how long its gathers take, and where its clock is."""

    def __init__(self, spec: ConnectorSpec, driver: ConnectorDriver, catalog: Catalog, lag: ControllerLag) -> None:
        self.spec = spec
        self.catalog = catalog
        self.driver = driver
        self._lag = lag
        self._times = _GatherTimes(spec.gather)
        self._clock = ConnectorClock()
        self._before: _Baseline | None = None
        self._late: asyncio.Task[None] | None = None

    async def run(self, start_ns: int, length_ns: int, report: Report) -> None:
        """Gather at the step's start, and for each subinterval, until cancelled; `report` gets each gather."""
        self._before = None  # the hosts' subintervals do not continue those of the step before
        patience_ns = min(round(self.spec.deadline * length_ns), LONGEST_PATIENCE_NS)
        try:
            for k in count(-1):
                end_ns = start_ns + (k + 1) * length_ns
                await self._sleep_until(self._times.begin_ns(end_ns, length_ns))
                report(await self._gather(k, end_ns, Deadline(self._lag, end_ns + patience_ns, patience_ns), report))
        finally:
            if self._late is not None:
                self._late.cancel()

    async def _sleep_until(self, at_ns: int) -> None:
        while (left_ns := at_ns - self._lag.now_ns()) > 0:  # noqa: ASYNC110 - a timer may be early by its resolution
            await asyncio.sleep(left_ns / 1e9)

    async def _gather(self, k: int, end_ns: int, deadline: Deadline, report: Report) -> Gathered:
        if self._lag.now_ns() >= deadline.at_ns:
            return Gathered(self.spec, k, end_ns, GatherState.NO_ANSWER, why="the controller was paused")
        if self.driver.gone is not None:
            await self._sleep_until(end_ns)
            return Gathered(self.spec, k, end_ns, GatherState.LOST, why=self.driver.gone)
        if self.driver.is_busy:
            await self._sleep_until(end_ns)
            return Gathered(self.spec, k, end_ns, GatherState.BUSY)
        requested_ns, answer = self._lag.now_ns(), self.driver.gather()
        while not answer.done():
            await asyncio.wait([answer], timeout=max(deadline.left_s, 0.0))
            if not answer.done() and deadline.has_passed():
                self._late = asyncio.ensure_future(self._when_late(k, end_ns, answer, report))
                times = GatherTimesOf(requested_ns)
                return Gathered(self.spec, k, end_ns, GatherState.NO_ANSWER, times)
        return self._taken(k, end_ns, answer)

    async def _when_late(self, k: int, end_ns: int, answer: "asyncio.Future[Answered]", report: Report) -> None:
        await asyncio.wait([answer])
        found = self._taken(k, end_ns, answer)
        if found.state is GatherState.GATHERED:
            report(Gathered(self.spec, k, end_ns, GatherState.LATE, found.times))

    def _taken(self, k: int, end_ns: int, answer: "asyncio.Future[Answered]") -> Gathered:
        """Return the result of an answer; from now on counters are counted from it."""
        try:
            answered = answer.result()
            if isinstance(answered.message, Declined):
                times = GatherTimesOf(answered.sent_ns, answered.arrived_ns)
                return Gathered(self.spec, k, end_ns, GatherState.DECLINED, times, answered.message.reason)
            assert isinstance(answered.message, Readings)
            return self._read(k, end_ns, answered, answered.message)
        except ConnectorFault as error:  # its own, or of what its readings are
            self.driver.give_up(str(error))
            return Gathered(self.spec, k, end_ns, GatherState.LOST, why=str(error))

    def _read(self, k: int, end_ns: int, answered: Answered, readings: Readings) -> Gathered:
        values = self.catalog.values(readings.facts)
        now, before = _Baseline(k, values, readings, answered), self._before
        self._before = now
        if before is not None and before.subinterval != k - 1:
            before = None  # a rate since then would be of another time than this subinterval
        self._times.took(answered.arrived_ns - answered.sent_ns)
        sent_ns, arrived_ns = answered.sent_ns, answered.arrived_ns
        now.fault = self._clock.fault(readings, None if before is None else before.readings, sent_ns, arrived_ns)
        times = GatherTimesOf(sent_ns, arrived_ns, *self._clock.span(readings, now.fault, sent_ns, arrived_ns))
        fault = now.fault or _fault_since(before)
        metrics = rates(None if before is None else before.values, values, _seconds(before, now, fault))
        seconds = 0.0 if before is None else (now.middle_ns - before.middle_ns) / 1e9
        return Gathered(
            self.spec, k, end_ns, GatherState.GATHERED, times, "", seconds, fault, metrics, ReadingCounts.of(metrics),
            values.ignored,
        )  # fmt: skip


def _fault_since(before: _Baseline | None) -> StampFault:
    """Why a gather whose own stamps are in order has rates by our clock: those of the one before were not. From a clock
    that was stepped a new time has begun."""
    return StampFault.NONE if before is None or before.fault is StampFault.JUMPED else before.fault


def _seconds(before: _Baseline | None, now: _Baseline, fault: StampFault) -> float | dict[str, float]:
    """Between two gathers: by the connector's stamps, or where something speaks against them, by our own."""
    if before is None:
        return 0.0
    if fault is not StampFault.NONE:
        return (now.middle_ns - before.middle_ns) / 1e9
    if not before.readings.stamps and not now.readings.stamps:
        return (now.stamp_ns("") - before.stamp_ns("")) / 1e9
    return {name: (now.stamp_ns(name) - before.stamp_ns(name)) / 1e9 for name in now.values.layout.tables}
