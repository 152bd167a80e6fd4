"""The far ends of a bench of the controller: hosts that speak the link in real time and say results made beforehand.

A process serves many of them over a socket (`crowd`), or one over its standard input and output, as a bundle.
"""

import asyncio
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ivypy.protocol import messages as m
from ivypy.protocol.payload import Array, ArrayType, Fact, Facts
from ivypy.protocol.states import State
from ivypy.slave.host_connector.connector import METRICS
from tests.support.simulated.slave import MemoryPipe, SimulatedSlave

CORES: Final = 16
CHUNK: Final = 1 << 16
DISKS: Final = ("sda", "sdb", "sdc", "sdd")
INSTANCES: Final = {
    "disk": DISKS, "cpu": ("host",), "memory": ("host",), "nic": ("eth0", "eth1"), "pressure": ("host",),
}  # fmt: skip
TYPES: Final = tuple(dict.fromkeys(metric.element for metric in METRICS))
CELLS: Final = sum(len(INSTANCES.get(metric.element, ())) for metric in METRICS)
READ: Final = b'"readings":[{"subinterval":0,"start_ns":0,"end_ns":0,"stamps":[' + b",".join([b"0"] * len(TYPES))
STAND_IN: Final = b'"subinterval":0,"start_ns":0,"length_ns":5000000000,"last":false,'  # what a made line begins with


def readings(random: np.random.Generator) -> m.HostReadings:
    """Of a host with four disks; its times are put in when they are sent."""
    values = Array(ArrayType.F64, np.floor(random.random(CELLS) * 1e9).tobytes())
    return m.HostReadings(0, 0, 0, (0,) * len(TYPES), values)


class RealPipe(MemoryPipe):
    """The host's end of a pipe to elsewhere."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(0.0)
        self._reader, self._writer = reader, writer

    async def pump(self) -> None:
        while data := await self._reader.read(CHUNK):
            self.to_host.put_nowait(data)
        self.to_host.put_nowait(b"")

    def say(self, data: bytes) -> None:
        self._writer.write(data)


class PooledSlave(SimulatedSlave):
    """Says lines that were made beforehand, with its own times in them."""

    def __init__(self, name: str, pipe: MemoryPipe, lines: Sequence[bytes], **how: Any) -> None:
        super().__init__(name, **how)
        self.pipe = pipe
        self.received = deque(maxlen=1)  # type: ignore[assignment]
        self._lines = lines
        joins = Facts(Fact("disk", disk, "path", f"/x/{n}") for n, disk in enumerate(DISKS))
        self.elements = METRICS, INSTANCES, joins
        self._turn = hash(name)

    def _obey(self, command: Any) -> None:
        if self.state is not State.GONE:  # a probe may be under way still
            super()._obey(command)

    def _say(self, saying: Any) -> None:
        if isinstance(saying, m.Hello):
            saying = m.Hello(**{**{f: getattr(saying, f) for f in vars(saying)}, "cores": tuple(range(CORES))})
        super()._say(saying)

    def _deliver(self, k: int, start: int, end: int, last: bool, *_: Any) -> None:
        said = b'"subinterval":%d,"start_ns":%d,"length_ns":%d,"last":%s,' % (
            k, start, end - start, b"true" if last else b"false",
        )  # fmt: skip
        self._boundaries.pop(k, None)
        made = self._lines[(self._turn + k) % len(self._lines)]
        read = b'"readings":[{"subinterval":%d,"start_ns":%d,"end_ns":%d,"stamps":[' % (k, end, end)
        read += b",".join([b"%d" % end] * len(TYPES))
        self.pipe.say(made.replace(STAND_IN, said, 1).replace(READ, read, 1))


def lines_in(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


async def crowd(socket_path: str, lines: list[bytes]) -> None:
    """A host for each connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = (await reader.readline()).decode().strip()
        pipe = RealPipe(reader, writer)
        pumping = asyncio.create_task(pipe.pump())
        await PooledSlave(name, pipe, lines).serve()
        pumping.cancel()
        writer.close()

    server = await asyncio.start_unix_server(serve, socket_path, backlog=4096)
    print("ready", flush=True)
    await server.serve_forever()


async def alone(lines: list[bytes]) -> None:
    """One host on standard input and output."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout.buffer)
    pipe = RealPipe(reader, asyncio.StreamWriter(transport, protocol, reader, loop))
    pumping = asyncio.create_task(pipe.pump())
    await PooledSlave("far", pipe, lines).serve()
    pumping.cancel()


if __name__ == "__main__":
    asyncio.run(crowd(sys.argv[1], lines_in(Path(sys.argv[2]))))
