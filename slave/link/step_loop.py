"""One step on this host: from `go` to `stopped`.

Rule: a finished subinterval is collected at once, which frees its buffers, put into one `result` and handed to the
link. Collecting and encoding have a thread of their own: with a thousand merge classes they take a tenth of a second,
and commands and clock probes do not wait for them. While MOST_HELD results wait unread on the link, nothing more is
collected: then the engine finds no free buffer and reports overruns, instead of this process growing. A workload thread
that has not handed over its buffer some time after a boundary (max(a quarter of the length, 0.5 s)) is left out of that
result and named in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Final

from ...protocol.lines import encode_line
from ...protocol.messages import Continue, Go, IoFault, Result, Stopped, StopReason
from ...protocol.payload import Array, ArrayType
from ..engine._engine import Collected, Ended, Engine, now_ns
from ..gate.cached_io import CachedIo
from ..gate.foreign_io import ForeignIo
from ..host.cpu_usage import CpuMeter, CpuUse
from ..host.stall_witness import StallWitness
from ..host_connector.boundary_reader import BoundaryReader
from ..workloads.spread import EngineOrder, with_lost_time
from .slave_link import ControllerLink

MOST_HELD: Final = 2  # results that the far end has not taken
PATIENCE_NS: Final = 500_000_000


@dataclass(frozen=True)
class Delivery:
    """A result, and the line that it is on the link."""

    result: Result
    line: bytes


class StepLoop:
    """Keeps when the next result is expected."""

    def __init__(
        self,
        engine: Engine,
        link: ControllerLink,
        cores: tuple[int, ...],
        go: Go,
        order: EngineOrder,
        threads: Callable[[], Sequence[Sequence[int]]],
        foreign: ForeignIo,
        cached: CachedIo,
        readings: BoundaryReader,
        collector: Executor,
        on_over: Callable[[], None],
    ) -> None:
        """`threads`: those that drive each instance now; `collector`: one thread, to collect in; `on_over` is called
        once `stopped` was sent.
        """
        self._engine, self._link, self._order, self._foreign, self._cached = engine, link, order, foreign, cached
        self._threads = threads
        self._readings = readings
        self._collector, self._on_over = collector, on_over
        self._collecting = self._news = self._closed = False  # news: something happened while it was collecting
        self._cpu = CpuMeter(cores)
        self._stalls = StallWitness(cores)
        self._length_ns = go.length_ns
        self._next, self._next_start_ns = 0, go.start_ns  # the subinterval that is expected, and its start
        self._placed: dict[int, int] = {}  # subinterval -> its end, where a `continue` placed it
        self._cut_ns: int | None = None  # when the running subinterval was cut short
        self._complete = False  # the last result was delivered
        self._loop = asyncio.get_running_loop()
        self._start = self._loop.call_later(max(go.start_ns - now_ns(), 0) / 1e9, self._begin)
        self._watch = self._loop.call_later(self._wait_s(), self._late)
        readings.begin(go.start_ns, go.length_ns)

    def place_boundary(self, command: Continue) -> None:
        self._engine.place_boundary(command.subinterval, command.boundary_ns)
        self._readings.place(command.subinterval, command.boundary_ns)
        self._placed[command.subinterval] = command.boundary_ns

    def halt(self) -> None:
        """Submit nothing more, and deliver the subinterval that is cut by this."""
        self._engine.halt()
        self._readings.end()
        self._cut_ns = now_ns()
        self._watch_anew()

    def poll(self, force: bool = False) -> None:
        """Deliver what is finished, and `stopped` after the last. `force`: without the threads that are late."""
        if self._collecting:
            self._news = True
        elif not self._closed and self._link.results_waiting < MOST_HELD:
            self._collecting, self._news = True, False
            collecting = self._loop.run_in_executor(self._collector, self._collect, force)
            collecting.add_done_callback(self._collected)

    def close(self) -> None:
        """Deliver nothing more."""
        self._closed = True
        self._readings.end()
        self._start.cancel()
        self._watch.cancel()
        self._stalls.close()

    def _collect(self, force: bool) -> Delivery | None:
        """In the collector's thread: the next result, if it is finished."""
        collected = self._engine.collect(force)
        if collected is None:
            return None
        end_ns, counts = collected.start_ns + collected.length_ns, collected.counts
        length_ns, complete = collected.length_ns, not collected.missing
        counts = self._foreign.add(counts, length_ns, now_ns() - end_ns, complete)
        counts = self._cached.add(counts, length_ns, now_ns() - end_ns, complete, collected.last)
        cpu = self._cpu_use(end_ns)
        counts = with_lost_time(counts, self._threads(), cpu.lost, collected.length_ns)
        message = replace(
            result_message(collected, counts, self._order, cpu),
            readings=self._readings.take(collected.subinterval, end_ns),
        )
        return Delivery(message, encode_line(message))

    def _collected(self, collecting: asyncio.Future[Delivery | None]) -> None:
        self._collecting = False
        if self._closed or collecting.cancelled():
            return
        if (delivery := collecting.result()) is not None:
            self._deliver(delivery)
            self.poll()
        elif (ended := self._engine.ended()) is not None:
            self.close()
            self._link.send(stopped_message(ended))
            self._on_over()
        elif self._news:
            self.poll()

    def _deliver(self, delivery: Delivery) -> None:
        result = delivery.result
        self._link.send(result, delivery.line)
        for placed in [k for k in self._placed if k <= result.subinterval]:
            del self._placed[placed]
        self._next, self._next_start_ns = result.subinterval + 1, result.start_ns + result.length_ns
        self._complete = result.last
        self._watch_anew()

    def _begin(self) -> None:
        """At the start of the step."""
        self._cpu_use(now_ns())
        self._foreign.begin()

    def _cpu_use(self, until_ns: int) -> CpuUse:
        """Since the last call; of stalls, those that ended until the boundary at `until_ns`."""
        use, stalls = self._cpu.use(), self._stalls.take(until_ns)
        taken = replace(use.taken, stalled_ns=stalls.total_ns, longest_stall_ns=stalls.longest_ns)
        return replace(use, taken=taken)

    def _watch_anew(self) -> None:
        self._watch.cancel()
        self._watch = self._loop.call_later(self._wait_s(), self._late)

    def _wait_s(self) -> float:
        """Seconds from now until a result that has not come is late."""
        patience_ns = max(self._length_ns // 4, PATIENCE_NS)
        end_ns = self._cut_ns or self._placed.get(self._next, self._next_start_ns + self._length_ns)
        return (max(end_ns, now_ns()) + patience_ns - now_ns()) / 1e9

    def _late(self) -> None:
        self.poll(force=not self._complete)
        self._watch_anew()


def result_message(collected: Collected, counts: bytes, order: EngineOrder, cpu: CpuUse) -> Result:
    """The message with what the engine collected; `counts`: with what others did."""
    return Result(
        subinterval=collected.subinterval,
        start_ns=collected.start_ns,
        length_ns=collected.length_ns,
        last=collected.last,
        collected_ns=now_ns(),
        cpu=cpu.busy,
        counts=Array(ArrayType.I64, counts),
        moments=Array(ArrayType.U64, collected.moments),
        spans=Array(ArrayType.U32, collected.spans),
        buckets=Array(ArrayType(f"u{collected.bucket_size}"), collected.buckets),
        threads=Array(ArrayType.I64, collected.threads),
        faults=tuple(IoFault(*fault) for fault in order.faults(collected.faults)),
        missing=tuple(collected.missing),
        taken=cpu.taken,
        sections=Array(ArrayType.U64, collected.sections),
    )


def stopped_message(ended: Ended) -> Stopped:
    """The message about how the engine ended a step."""
    return Stopped(
        StopReason(ended.reason),
        ended.caught,
        ended.failed,
        ended.uncaught,
        ended.oldest_uncaught_ns,
        ended.longest_caught_ns,
        ended.dropped,
    )
