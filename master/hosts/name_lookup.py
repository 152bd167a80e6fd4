"""From a host's name to a connected socket.

Rule: names are looked up in threads of their own, so that slow ones never take the threads that others need, and a
name that is waited for is distinguished from a host that does not answer. One that hangs keeps no process from ending.
"""

import asyncio
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Final

THREADS: Final = 64

Address = tuple[Any, ...]  # as getaddrinfo has it


class NotLookedUp(Exception):
    """The name service did not answer in time."""


class _Threads:
    """Holds the jobs that wait. As a ThreadPoolExecutor, but the process can end before its threads do."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[tuple[Future[list[Address]], Callable[[], list[Address]]]] = SimpleQueue()
        self._begun = 0

    def submit(self, look: Callable[[], list[Address]]) -> Future[list[Address]]:
        """In one thread, the loop's."""
        future: Future[list[Address]] = Future()
        self._waiting.put((future, look))
        if self._begun < THREADS:
            self._begun += 1
            threading.Thread(target=self._serve, name="lookup", daemon=True).start()
        return future

    def _serve(self) -> None:
        while True:
            future, look = self._waiting.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(look())
            except Exception as error:
                future.set_exception(error)


_threads: Final = _Threads()


async def look_up(name: str, port: int, family: int, within_s: float) -> list[Address]:
    """The addresses of a name. Raises NotLookedUp, socket.gaierror, UnicodeError."""
    looking = asyncio.wrap_future(
        _threads.submit(lambda: socket.getaddrinfo(name, port, socket.AddressFamily(family), socket.SOCK_STREAM))
    )
    done, _ = await asyncio.wait([looking], timeout=within_s)
    if not done:
        looking.cancel()
        raise NotLookedUp
    return looking.result()


async def connected(addresses: list[Address]) -> socket.socket:
    """A connection to the first address that takes it. Raises OSError, the last one's."""
    last: OSError = OSError("it has no address")
    for family, kind, proto, _, address in addresses:
        try:
            connection = socket.socket(family, kind, proto)
        except OSError as error:
            last = error
            continue
        try:
            connection.setblocking(False)
            await asyncio.get_running_loop().sock_connect(connection, address)
            return connection
        except OSError as error:
            connection.close()
            last = error
        except BaseException:
            connection.close()
            raise
    raise last
