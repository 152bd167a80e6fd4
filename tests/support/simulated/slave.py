"""A slave that drives nothing: it speaks the real link, byte for byte, and makes up what it measured.

It is honest where the controller looks: its clock has an offset and a drift of its own, its boundaries are where the
controller put them, its counts add up. `Faults` stages what goes wrong.
"""

import asyncio
import errno
import math
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ivypy import __version__
from ivypy.protocol import messages as m
from ivypy.protocol.connector import ElementMetric
from ivypy.protocol.counters import (
    KINDS,
    LATE,
    LATENESS,
    PUNCTUAL,
    RESPONSES,
    SERIES,
    SERVICES,
    Count,
    Kind,
    Moment,
    SectionCount,
    ThreadCount,
)
from ivypy.protocol.errors import ProtocolError
from ivypy.protocol.histogram import bucket_of
from ivypy.protocol.lines import LineReader, decode_line, encode_line
from ivypy.protocol.parameters import MAX, Iosequencer, Parameters
from ivypy.protocol.payload import (
    Array,
    ArrayType,
    Attribute,
    CpuTaken,
    Facts,
    Identity,
    Lun,
    Notice,
    Refusal,
    WorkloadToCreate,
)
from ivypy.protocol.states import State, may_command, state_after

Elements = tuple[
    tuple[ElementMetric, ...], dict[str, tuple[str, ...]], Facts
]  # that it reads: metrics, instances, joins
Service = Callable[[float, Parameters], tuple[float, int]]


def steady(capacity: float = 10_000.0, service_ns: int = 500_000) -> Service:
    """A plant: (IOPS done, service time in ns) of an instance asked for `offered` IOPS (inf: max)."""
    return lambda offered, parameters: (min(offered, capacity), service_ns)


@dataclass
class Faults:
    """What goes wrong with this host, at which subinterval of the first step (None: never)."""

    die_at: int | None = None  # the connection ends instead of this result
    silent_from: int | None = None  # says nothing more, not even to probes, from this result on
    late: dict[int, float] = field(default_factory=dict)  # this result comes so many seconds late, later ones after it
    stall: dict[int, float] = field(default_factory=dict)  # its link is, for so many seconds before this result, once
    frozen: dict[int, float] = field(default_factory=dict)  # it is itself: the result after this one covers several
    clock_step: dict[int, float] = field(default_factory=dict)  # its clock is stepped by so many seconds in this one
    ready_late_s: float = 0.0  # `ready` is said so long after it began to drive
    busy_go_s: list[float] = field(default_factory=list)  # `go`, the first, second ...: read so long after it came
    catch_s: float = 0.0  # between the last result and `stopped`: I/Os hang
    ends_at: tuple[int, m.StopReason] | None = None  # cuts this subinterval and the step, in its middle, unasked
    fails_at_end: int = 0  # so many I/Os that are in flight at the end fail
    hangs: tuple[int, int] | None = None  # from this subinterval on, 4 I/Os of this instance do not come back
    queue_limited: int = 0  # so often in each subinterval, a workload instance waits for a hardware queue
    lateness_ns: int = 1000  # of every paced I/O
    length: float = 1.0  # what it says of its subintervals' length, as a share of the truth
    claims_overruns: int = 0  # so many in each result, of which none is longer than it should be
    says_last_at: int | None = None  # calls this result its last, and goes on
    garbage_at: int | None = None  # says rubbish instead of this result
    errors_at: int | None = None  # some I/Os of each instance fail in this subinterval
    taken: dict[int, CpuTaken] = field(default_factory=dict)  # what kept its threads from running, by subinterval
    half_line_at: int | None = None  # the connection ends in the middle of this result
    backend: str = ""  # that it says is what `auto` stands for
    refuse: dict[str, str] = field(default_factory=dict)  # command word -> reason
    mute: set[str] = field(default_factory=set)  # commands (words) that are never answered
    hello: m.Hello | bytes | None = None  # sent instead of its hello


class MemoryPipe:
    """The controller's end of a pipe in memory, with the delay of a network."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self.to_host: asyncio.Queue[bytes] = asyncio.Queue()
        self.to_controller: asyncio.Queue[bytes] = asyncio.Queue()
        self._on_the_way: dict[asyncio.Queue[bytes], deque[bytes]] = {
            self.to_host: deque(),
            self.to_controller: deque(),
        }

    async def read(self, n: int) -> bytes:
        return await self.to_controller.get()

    async def write(self, data: bytes) -> None:
        self._send(self.to_host, data)

    async def close(self) -> None:
        self.to_host.put_nowait(b"")

    def say(self, data: bytes) -> None:
        self._send(self.to_controller, data)

    def _send(self, queue: asyncio.Queue[bytes], data: bytes) -> None:
        """In order: the loop may run two timers of one instant in either."""
        way = self._on_the_way.setdefault(queue, deque())
        way.append(data)
        asyncio.get_running_loop().call_later(self.delay_s, lambda: queue.put_nowait(way.popleft()))


class SimulatedSlave:
    """One host: `pipe` is the controller's end; `serve()` runs until the controller closes it."""

    def __init__(
        self,
        name: str,
        *,
        luns: tuple[Lun, ...] = (),
        plant: Service | None = None,
        clock_offset_s: float = 0.0,
        drift_ppm: float = 0.0,
        delay_s: float = 0.0001,
        faults: Faults | None = None,
    ) -> None:
        self.name = name
        self.luns = luns
        self.plant = plant or steady()
        self.offset_s, self.drift = clock_offset_s, drift_ppm * 1e-6
        self.faults = faults or Faults()
        self.pipe = MemoryPipe(delay_s)
        self.state = State.CONNECTING
        self.received: list[m.Message] = []
        self.workloads: dict[int, WorkloadToCreate] = {}
        self.parameters: dict[int, Parameters] = {}
        self.edit = 0
        self.submitted_after_halt = 0
        self.creating: tuple[Notice, ...] = ()  # sent while it creates files
        self.last_words = "goodbye"
        self.clean = True  # whether nothing is left once it has ended
        self.elements: Elements = (), {}, Facts()
        self._silent = False
        self._late_until_s = 0.0
        self._overruns = 0
        self._step: asyncio.Task[None] | None = None
        self._boundaries: dict[int, int] = {}
        self._service_ns: dict[int, int] = {}  # of the last subinterval
        self._backlog: dict[int, int] = {}  # by workload number: due, not submitted
        self._discarded: dict[int, int] = {}  # likewise: by edits since the last result
        self._last: int | None = None
        self._cooldown_from: int | None = None
        self._halted = asyncio.Event()
        self._awake = asyncio.Event()
        self._awake.set()
        self._lease_until_ns = 0
        self._hung_since_ns = 0
        self._lease_ns = 0
        self._served = asyncio.Event()

    async def ended(self) -> float:
        """Wait until its input has ended, and it with it; how long that took, in seconds."""
        before = asyncio.get_running_loop().time()
        await self._served.wait()
        return asyncio.get_running_loop().time() - before

    def now_ns(self) -> int:
        return int((asyncio.get_running_loop().time() * (1 + self.drift) + self.offset_s) * 1e9)

    async def serve(self) -> None:
        if isinstance(self.faults.hello, bytes):
            self.pipe.say(self.faults.hello)
        else:
            self._say(
                self.faults.hello
                or m.Hello(
                    m.Role.SLAVE, m.PROTOCOL_VERSION, __version__, "", self.name, 1, "3.11.7", "6.18", "2.36", "x86_64",
                    (0, 1), "tsc", ("null", "libaio"), 65536,
                )
            )  # fmt: skip
        reader = LineReader()
        try:
            while data := await self.pipe.to_host.get():
                await self._awake.wait()
                for found in reader.feed(data):
                    if self.state is State.GONE:
                        break
                    heard = decode_line(found)
                    self.received.append(heard)
                    self._obey(heard)
        finally:
            if self._step is not None:
                self._step.cancel()
            self._served.set()
            self.pipe.to_controller.put_nowait(b"")

    def _say(self, saying: Any) -> None:
        if self._silent:
            return
        self.state = state_after(self.state, saying)
        self.pipe.say(encode_line(saying))

    def _say_after(self, seconds: float, saying: Any) -> None:
        if seconds:
            asyncio.get_running_loop().call_later(seconds, self._say, saying)
        else:
            self._say(saying)

    def _obey(self, command: Any) -> None:
        kind = m.wire_name(type(command))
        if kind in self.faults.mute:
            return
        if not may_command(self.state, command):
            self._say(m.Refused(command.id, (Refusal(kind, f"it came too late: the host is {self.state}"),)))
            return
        if kind in self.faults.refuse:
            self._say(m.Refused(command.id, (Refusal(kind, self.faults.refuse[kind]),)))
            return
        match command:
            case m.Prepare():
                self._lease_ns = command.lease_ns
                self._lease_until_ns = self.now_ns() + command.lease_ns
                self._say(m.Ok(command.id, self.now_ns()))
            case m.ListLuns() if missing := [path for path in command.paths if not self._has(path)]:
                refusals = tuple(Refusal(path, "there is nothing to drive") for path in missing)
                self._say(m.Refused(command.id, refusals))
            case m.ListLuns():
                self._say_luns(command.id, [replace(lun, identity=None) for lun in self.luns])
            case m.InspectLuns():
                self._say_luns(command.id, [known(lun, self.name) for lun in self.luns if lun.path in command.paths])
            case m.CreateFiles():
                for notice in self.creating:
                    self._say(notice)
                paths = [(f.path.replace("{}", str(i)), f.size) for f in command.files for i in range(f.count)]
                self._say_luns(
                    command.id, [replace(known(lun_of(*one), self.name), ours=True, made=True) for one in paths]
                )
            case m.CreateWorkloads():
                for workload in command.workloads:
                    self.workloads[workload.number] = workload
                    self.parameters[workload.number] = workload.parameters
                self._say(m.Ok(command.id, self.now_ns(), backend=self.faults.backend))
            case m.EditWorkloads():
                self.edit = command.edit
                discarded = 0
                for setting in command.settings:
                    number = setting.number
                    if setting.parameters.iops != self.parameters[number].iops:
                        gone = self._backlog.pop(number, 0)
                        self._discarded[number] = self._discarded.get(number, 0) + gone
                        discarded += gone
                    self.parameters[number] = setting.parameters
                self._say(m.Ok(command.id, self.now_ns(), discarded))
            case m.DeleteWorkloads():
                for number in command.numbers:
                    del self.workloads[number], self.parameters[number]
                self._say(m.Ok(command.id, self.now_ns()))
            case m.FindElements():
                self._say(m.ElementsFound(command.id, *self.elements))
            case m.ReinspectLuns():
                self._say(m.Ok(command.id, self.now_ns()))
            case m.ClockProbe():
                now = self.now_ns()
                self._renew_lease(command)
                self._say(m.ClockReading(command.id, now, now))
            case m.Go() if self.faults.busy_go_s and (late_s := self.faults.busy_go_s.pop(0)) > 0:
                asyncio.get_running_loop().call_later(late_s, self._start_late, command)
            case m.Go():
                self._last = self._cooldown_from = None
                self._backlog.clear()
                self._discarded.clear()
                self._halted.clear()
                self._step = asyncio.create_task(self._run(command))
                self._say_after(self.faults.ready_late_s, m.Ready(command.id))
            case m.Continue():
                self._renew_lease(command)
                self._boundaries[command.subinterval] = command.boundary_ns
                self._say(m.Ok(command.id, self.now_ns()))
            case m.Cooldown():
                self._cooldown_from = command.subinterval
                self._say(m.Ok(command.id, self.now_ns()))
            case m.Stop():
                self._last = command.last
                self._say(m.Ending(command.id))
            case m.Halt():
                self._halted.set()
                self._say(m.Ending(command.id))
            case m.Die():
                self._say(m.DyingWords(command.id, -1, self.last_words, self.clean))
            case _:
                raise ProtocolError(f"unexpected {command}")

    def _start_late(self, go: m.Go) -> None:
        if (late_ns := self.now_ns() - go.start_ns) >= 0:
            self._say(m.Refused(go.id, (Refusal("go", f"its start is {late_ns / 1e6:.1f} ms in the past"),)))
        else:
            self._obey(go)

    def _renew_lease(self, command: m.ClockProbe | m.Continue) -> None:
        proven_ns = min(command.newest_stamp_ns, self.now_ns()) + self._lease_ns
        self._lease_until_ns = max(self._lease_until_ns, proven_ns)

    def _say_luns(self, re: int, luns: Sequence[Lun]) -> None:
        if luns:
            self._say(m.Luns(re, tuple(luns)))
        self._say(m.End(re))

    def _has(self, path: str) -> bool:
        return any(path in (lun.path, *lun.named) for lun in self.luns)

    async def _until(self, local_ns: int) -> None:
        """Sleep to an instant of this host's clock, or until halted."""
        wait_s = (local_ns - self.now_ns()) / 1e9
        if wait_s > 0:
            try:
                await asyncio.wait_for(self._halted.wait(), wait_s)
            except TimeoutError:
                pass

    async def _freeze(self, seconds: float) -> None:
        """Neither hear nor say anything, as a process that was sent SIGSTOP."""
        self._awake.clear()
        await asyncio.sleep(seconds)
        self._awake.set()

    async def _run(self, go: m.Go) -> None:
        order, classes = array("I", go.order.data), array("I", go.classes.data)
        await self._until(go.start_ns)
        start, k = go.start_ns, 0
        self._boundaries = {}
        began = start  # of subinterval k; the result that holds it may begin before
        while True:
            planned = self._boundaries.get(k, began + go.length_ns)
            self.offset_s += self.faults.clock_step.pop(k, 0.0)
            unasked = self.faults.ends_at is not None and self.faults.ends_at[0] == k
            if unasked:
                planned -= go.length_ns // 2
            await self._until(planned)
            if k in self.faults.stall:
                await self._freeze(self.faults.stall.pop(k))
            was_frozen = k in self.faults.frozen
            if was_frozen:
                await self._freeze(self.faults.frozen.pop(k))
            # Halted before its start, a step has a result all the same, of no length.
            end = max(start, min(planned, self.now_ns())) if self._halted.is_set() else planned
            last = self._halted.is_set() or unasked or (self._last is not None and k >= self._last)
            faults = self.faults
            if k == faults.die_at:
                self.pipe.say(b"")
                self._silent = True
                return
            if faults.silent_from is not None and k >= faults.silent_from:
                self._silent = True
                return
            if k == faults.garbage_at:
                self.pipe.say(b"Segmentation fault\n")
                return
            if k in faults.late:
                self._late_until_s = asyncio.get_running_loop().time() + faults.late.pop(k)
            self._deliver(k, start, end, last, order, classes, go.sections)
            if last:
                await asyncio.sleep(self._late_s())
                await asyncio.sleep(faults.catch_s)
                reason = faults.ends_at[1] if unasked and faults.ends_at else m.StopReason.COMMANDED
                if unasked:
                    faults.ends_at = None
                if self._hung_since_ns:
                    self._say(
                        m.Stopped(reason, 3, faults.fails_at_end, 4, self.now_ns() - self._hung_since_ns, 10**9, 0)
                    )
                else:
                    self._say(m.Stopped(reason, 0, faults.fails_at_end, 0, 0, 0, 0))
                self._hung_since_ns, faults.hangs = 0, None
                return
            start, began, k = end, end, k + 1
            while was_frozen and self._boundaries.get(k, began + go.length_ns) <= self.now_ns():
                began, k = self._boundaries.get(k, began + go.length_ns), k + 1  # the engine has no free buffer
                self._overruns += 1

    def _late_s(self) -> float:
        """For how long what is sent now is held up behind a late result."""
        return max(self._late_until_s - asyncio.get_running_loop().time(), 0.0)

    def _deliver(
        self, k: int, start: int, end: int, last: bool, order: "array[int]", classes: "array[int]", sections: int
    ) -> None:
        last |= k == self.faults.says_last_at
        result = self.result(k, start, end, last, order, classes)
        if sections:
            result = replace(result, sections=self._by_address(result, order, sections))
        if k == self.faults.half_line_at:
            self.pipe.say(encode_line(result)[:500])
            self.pipe.say(b"")
            self._silent = True
            return
        self._late_until_s += 1e-6  # in order
        self._say_after(self._late_s(), result)

    def result(self, k: int, start: int, end: int, last: bool, order: "array[int]", classes: "array[int]") -> m.Result:
        """What a host whose plant does so many IOPS at one service time would report."""
        count_of = len(Count)
        counts = array("q", bytes(8 * count_of * len(order)))
        class_count = max(classes, default=-1) + 1
        series: dict[tuple[int, int], list[int]] = {}  # (class, series) -> [count, bytes, ns each]
        for row, (number, belongs) in enumerate(zip(order, classes, strict=True)):
            parameters = self.parameters[number]
            cooled = self._cooldown_from is not None and k >= self._cooldown_from
            offered = 0.0 if cooled else math.inf if parameters.iops == MAX else float(parameters.iops)
            seconds = (end - start) / 1e9
            idle = cooled or not seconds
            backlog = 0.0 if idle else self._backlog.get(number, 0) / seconds  # what was late is done as well
            done_iops, service_ns = self.plant(offered + backlog, parameters)
            self._service_ns[number] = service_ns
            done = round(done_iops * seconds)
            due = done if math.isinf(offered) else round(offered * seconds)
            base = row * count_of
            counts[base + Count.EDIT] = self.edit
            counts[base + Count.DUE] = due
            counts[base + Count.SUBMITTED] = counts[base + Count.COMPLETED] = done
            counts[base + Count.BYTES] = done * parameters.blocksize
            self._backlog[number] = self._backlog.get(number, 0) + due - done
            if self.faults.hangs is not None and k >= self.faults.hangs[0] and number == self.faults.hangs[1]:
                self._hung_since_ns = self._hung_since_ns or start
                counts[base + Count.IN_FLIGHT] = 4
                counts[base + Count.OLDEST_IN_FLIGHT_NS] = end - self._hung_since_ns
            counts[base + Count.BACKLOG] = self._backlog[number]
            counts[base + Count.DROPPED] = self._discarded.pop(number, 0)
            counts[base + Count.QUEUE_LIMITED] = self.faults.queue_limited
            counts[base + Count.KEPT_NS] = round(self._taken(k).wait / 100 * (end - start))  # of all its threads
            counts[base + Count.ERRORS] = 3 if k == self.faults.errors_at else 0
            reads = round(done * parameters.fraction_read)
            random = parameters.iosequencer is not Iosequencer.SEQUENTIAL
            for kind, n in (
                (Kind.RANDOM_READ if random else Kind.SEQUENTIAL_READ, reads),
                (Kind.RANDOM_WRITE if random else Kind.SEQUENTIAL_WRITE, done - reads),
            ):
                entry = series.setdefault((belongs, SERVICES[kind]), [0, 0, service_ns])
                entry[0] += n
                entry[1] += n * parameters.blocksize
                if not math.isinf(offered):
                    entry = series.setdefault((belongs, RESPONSES[kind]), [0, 0, service_ns + self.faults.lateness_ns])
                    entry[0] += n
            if not math.isinf(offered):
                late_ns, response_ns = self.faults.lateness_ns, service_ns + self.faults.lateness_ns
                series.setdefault((belongs, LATENESS), [0, 0, late_ns])[0] += done
                if late_ns:
                    series.setdefault((belongs, LATE), [0, 0, response_ns])[0] += done
                    series.setdefault((belongs, PUNCTUAL), [0, 0, service_ns])[0] += done
        moments = array("Q", bytes(8 * class_count * SERIES * len(Moment)))
        spans = array("I", bytes(4 * class_count * SERIES * 2))
        buckets = array("Q")
        for belongs in range(class_count):
            for s in range(SERIES):
                n, size, ns = series.get((belongs, s), [0, 0, 0])
                at = (belongs * SERIES + s) * len(Moment)
                moments[at + Moment.MIN] = 2**64 - 1
                if n == 0:
                    continue
                squares = n * ns * ns
                moments[at : at + len(Moment)] = array(
                    "Q", [n, size, n * ns, squares & (2**64 - 1), squares >> 64, ns, ns]
                )
                spans[(belongs * SERIES + s) * 2 : (belongs * SERIES + s) * 2 + 2] = array("I", [bucket_of(ns), 1])
                buckets.append(n)
        threads = array("q", bytes(8 * len(ThreadCount)))
        threads[ThreadCount.SWAPPED] = 1
        threads[ThreadCount.OVERRUNS], self._overruns = self._overruns + self.faults.claims_overruns, 0
        threads[ThreadCount.CPU] = -1

        def packed(kind: ArrayType, data: "array[int]") -> Array:
            return Array(kind, data.tobytes())

        return m.Result(
            k, start, round((end - start) * self.faults.length), last, self.now_ns(), (12.5, 3.0),
            packed(ArrayType.I64, counts), packed(ArrayType.U64, moments), packed(ArrayType.U32, spans),
            packed(ArrayType.U64, buckets), packed(ArrayType.I64, threads),
            tuple(m.IoFault(number, errno.EIO, 3) for number in order) if k == self.faults.errors_at else (), (),
            self._taken(k),
        )  # fmt: skip

    def _by_address(self, result: m.Result, order: "array[int]", sections: int) -> Array:
        """The I/Os of a result, evenly; those that are left over in the first section."""
        counts = np.frombuffer(result.counts.data, "<i8").reshape(len(order), len(Count))
        table = np.zeros((len(order), sections, len(SectionCount)), "<u8")
        for row, number in enumerate(order):
            parameters, done = self.parameters[number], int(counts[row, Count.COMPLETED])
            reads = round(done * parameters.fraction_read)
            service_ns = self._service_ns[number]
            for first, count in ((SectionCount.READS, reads), (SectionCount.CHANGES, done - reads)):
                table[row, :, first] = count // sections
                table[row, 0, first] += count % sections
                table[row, :, first + 1] = table[row, :, first] * service_ns
                table[row, :, first + 2] = np.where(table[row, :, first], service_ns, 0)
        return Array(ArrayType.U64, table.tobytes())

    def _taken(self, k: int) -> CpuTaken:
        return self.faults.taken.get(k, CpuTaken())


def known(lun: Lun, host: str = "a") -> Lun:
    """As a look tells which it is: by all its attributes."""
    facts = tuple((name, str(value)) for name, value in lun.attributes.items())
    return lun if lun.identity else replace(lun, identity=Identity(f"machine of {host}", lun.size, facts))


def lun_of(path: str, size: int = 1 << 30, *, kind: str = "file", **attributes: Attribute) -> Lun:
    return Lun(path, kind, size, 512, {"path": path, "size": size, "kind": kind, **attributes}, (), ())


__all__ = ["KINDS", "Faults", "MemoryPipe", "SimulatedSlave", "lun_of", "replace", "steady"]
