"""A storage array that stores nothing: a connector in memory, whose figures follow from what simulated hosts are asked
to drive.

Processor 0 does three quarters of the work and processor 1 a quarter; parity group 1-3 belongs to no LUN.
"""

import asyncio
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from ivypy.master.connectors.connector_spec import ConnectorSpec
from ivypy.master.connectors.serve import answer_to
from ivypy.protocol.connector import (
    CONNECTOR_COMMANDS,
    CONNECTOR_PROTOCOL,
    Cannot,
    Combine,
    ConnectorHello,
    ElementMetric,
    Gather,
    ReadingKind,
    Unit,
)
from ivypy.protocol.lines import LineReader, decode, encode_line
from ivypy.protocol.parameters import MAX
from ivypy.protocol.payload import Fact
from tests.support.simulated.slave import MemoryPipe, SimulatedSlave

OF_PLAN = "connectors: { array: { program: array, join: path, attributes: [ pg ] }, host: off }\n"  # LUNs: /x/0, /x/1
GATHER_S = 0.01
NOISE = 0.02  # standard deviation of a figure's logarithm
GROUPS = {"0": "1-1", "1": "1-2"}  # by the last letter of a LUN's path
METRICS = (
    ElementMetric("mp", "busy_percent", Unit.PERCENT, meaning="a processor's busy time"),
    ElementMetric("pg", "busy_percent", Unit.PERCENT, combine=Combine.MAX, meaning="its busiest disk's"),
    ElementMetric("pg", "ios_per_s", Unit.PER_S, ReadingKind.COUNTER, Combine.SUM, meaning="I/Os that it served"),
    ElementMetric("pg", "service_us", Unit.US, meaning="mean time of an I/O on its disks"),
    ElementMetric("cache", "write_pending_percent", Unit.PERCENT, meaning="of the cache, waits to be destaged"),
)


class SimulatedArray:
    """`capacity`: IOPS at which processor 0 is wholly busy. It declines the gathers with these numbers, the one before
    a step's first subinterval included."""

    def __init__(
        self, slaves: Mapping[str, SimulatedSlave], capacity: float, declines: Collection[int] = (), folder: str = "/x"
    ) -> None:
        self._slaves = slaves
        self._capacity = capacity
        self._declines = declines
        self._folder = folder  # of the LUNs
        self._random = np.random.default_rng(0)
        self._gathers = 0
        self._at = 0.0
        self._done = dict.fromkeys([*GROUPS.values(), "1-3"], 0.0)
        self.serving: list[asyncio.Task[None]] = []

    async def launch(self, spec: ConnectorSpec, log: Callable[[str], None]) -> MemoryPipe:
        """What a Run starts its connectors with."""
        pipe = MemoryPipe(0.0001)
        self.serving.append(asyncio.get_running_loop().create_task(self._serve(pipe)))
        return pipe

    async def _serve(self, pipe: MemoryPipe) -> None:
        pipe.say(encode_line(ConnectorHello(CONNECTOR_PROTOCOL, "simulated array", "1")))
        reader = LineReader()
        clock = asyncio.get_running_loop().time
        while data := await pipe.to_host.get():
            for line in reader.feed(data):
                command = decode(line, CONNECTOR_COMMANDS)
                started_ns = int(clock() * 1e9)
                if isinstance(command, Gather):
                    await asyncio.sleep(GATHER_S)
                stamps = iter((started_ns, int(clock() * 1e9)))
                pipe.say(answer_to(self, command, lambda: next(stamps)))  # noqa: B023
        pipe.to_controller.put_nowait(b"")

    def config(self, luns: Sequence[str]) -> tuple[Iterable[ElementMetric], Iterable[Fact]]:
        facts = [(f"0{lun}", name, value) for lun, group in GROUPS.items() for name, value in
                 (("path", f"{self._folder}/{lun}"), ("pg", group))]  # fmt: skip
        return METRICS, [Fact("ldev", *one) for one in facts]

    def gather(self) -> Iterable[Fact]:
        self._gathers += 1
        if self._gathers - 1 in self._declines:
            raise Cannot("its management port is busy")
        now = asyncio.get_running_loop().time()
        loads = self._loads()
        share = sum(loads.values()) / self._capacity
        for place, part in (("0", 1.0), ("1", 1 / 3)):
            yield Fact("mp", place, "busy_percent", 100 * min(share * part * self._noise(), 1.0))
        for group, load in loads.items():
            self._done[group] += load * (now - self._at)
            busy = min(1.2 * load / self._capacity * self._noise(), 1.0)
            yield Fact("pg", group, "busy_percent", 100 * busy)
            yield Fact("pg", group, "ios_per_s", int(self._done[group]))
            yield Fact("pg", group, "service_us", 150 / (1.05 - busy))
        yield Fact("cache", "0", "write_pending_percent", 30.0)
        self._at = now

    def _noise(self) -> float:
        return float(np.exp(NOISE * self._random.standard_normal()))

    def _loads(self) -> dict[str, float]:
        """By parity group, the IOPS that hosts are asked for; a share of the capacity at max."""
        found = dict.fromkeys(self._done, 0.0)
        for slave in self._slaves.values():
            for number, workload in slave.workloads.items():
                iops = slave.parameters[number].iops
                asked = math.inf if iops == MAX else float(iops)
                found[GROUPS[workload.lun[-1]]] += min(asked, self._capacity / 2 / len(self._slaves))
        return found
