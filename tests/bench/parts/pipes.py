"""The controller's ends of pipes to a crowd (far.py); and, as a program, a driver process whose hosts are in one."""

import asyncio
import os
from collections.abc import Callable
from typing import Final

from ivypy.master.drivers.__main__ import run
from ivypy.master.hosts.host_spec import HostSpec
from ivypy.master.hosts.pipe import PipeLost

CROWD: Final = "IVYPY_BENCH_CROWD"  # where the crowd listens


class SocketPipe:
    """A host's pipe."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self, n: int) -> bytes:
        try:
            return await self._reader.read(n)
        except OSError as error:
            raise PipeLost(str(error)) from None

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()


async def opening(host: HostSpec, log: Callable[[str], None]) -> SocketPipe:
    reader, writer = await asyncio.open_unix_connection(os.environ[CROWD])
    writer.write(f"{host.name}\n".encode())
    return SocketPipe(reader, writer)


if __name__ == "__main__":
    run(opening)
