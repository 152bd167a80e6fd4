"""A driver process: `python -m ivypy.master.drivers FD`; controller_side.py starts it with one end of a socket pair."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final

from ..errors import OutputError
from ..hosts.bundle import slave_bundles
from ..hosts.host_logs import HostLogs
from ..hosts.host_spec import HostSpec
from ..hosts.launch import open_pipe
from ..hosts.login_throttle import LoginThrottle
from ..hosts.pipe import Pipe
from .driver_link import open_link
from .driver_messages import Begin, FromController, ProcessFailed
from .process_side import HostShare, Opening

MOMENT_S: Final = 0.1
LOGGED_EVERY_S: Final = 0.2
LAST_LOGS_S: Final = 3.0  # for the logs' disk, at the end


async def main(end: socket.socket, opening: Opening) -> None:
    """Drive hosts, which `opening` connects to, until the controller closes its end, or is silent for too long: then
    every host's pipe is closed."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[str] = loop.create_future()
    tasks: set[asyncio.Task[None]] = set()
    last_message_s, silence_s = loop.time(), float("inf")

    def stop(why: str) -> None:
        if not over.done():
            over.set_result(why)

    def done(task: "asyncio.Task[None]") -> None:
        tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            stop(f"{type(error).__name__}: {error}")

    def spawn(work: Coroutine[Any, Any, None]) -> None:
        task = loop.create_task(work)
        tasks.add(task)
        task.add_done_callback(done)

    def receive(message: FromController) -> None:
        nonlocal last_message_s, silence_s
        last_message_s = loop.time()
        if isinstance(message, Begin):
            silence_s = message.silence_s
        share.receive(message)

    async def write_logs() -> None:
        await asyncio.sleep(LOGGED_EVERY_S)
        await loop.run_in_executor(None, logs.flush)

    async def watch_controller() -> None:
        while loop.time() - last_message_s < silence_s:
            await asyncio.sleep(min(silence_s / 4, 1.0))
            if loop.time() - last_message_s >= silence_s:
                await asyncio.sleep(MOMENT_S)  # this process itself may have stalled: read first what arrived
        stop(f"no message from the controller for {silence_s:g} s")

    logs = HostLogs(lambda: spawn(write_logs()), lambda host, lines: None)  # a log itself records what it lacks
    link = await open_link(end, receive, lambda: stop(""))
    share = HostShare(link.send, opening, logs.of, lambda: int(loop.time() * 1e9), spawn)
    spawn(watch_controller())
    if why := await over:
        link.send(ProcessFailed(why))
    await share.close()
    for task in tasks:
        task.cancel()
    with contextlib.suppress(TimeoutError, OutputError):  # the controller reports the disk's faults
        await asyncio.wait_for(loop.run_in_executor(None, logs.close), LAST_LOGS_S)
    link.close()
    await asyncio.sleep(0)


def opener() -> Opening:
    """As the session's, in a process of its own."""
    bundles, throttle = slave_bundles(), LoginThrottle()

    async def opening(host: HostSpec, log: Callable[[str], None]) -> Pipe:
        return await open_pipe(host, bundles, throttle, log)

    return opening


def run(opening: Opening) -> None:
    # A signal to all of the controller's processes ends the controller, which then ends this one in order.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main(socket.socket(fileno=int(sys.argv[1])), opening))
    os._exit(0)  # do not wait for a thread that waits for a disk


if __name__ == "__main__":
    run(opener())
