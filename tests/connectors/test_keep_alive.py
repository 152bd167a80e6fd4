"""The host connector is told that it is still wanted, whatever the run does: it may pause, or be between two steps."""

import asyncio

from ivypy.master.connectors.connector_driver import ConnectorDriver
from ivypy.protocol.connector import CONNECTOR_PROTOCOL, HOST_CONNECTOR_COMMANDS, ConnectorHello, KeepAlive
from ivypy.protocol.lines import decode, encode_line
from tests.support.simulated.loop import simulate
from tests.support.simulated.slave import MemoryPipe

SILENCE_S = 30.0


def test_it_is_kept_alive_without_any_gather() -> None:
    async def main() -> list[float]:
        loop, pipe, at = asyncio.get_running_loop(), MemoryPipe(0.01), list[float]()
        driver = ConnectorDriver(pipe, lambda: round(loop.time() * 1e9), lambda _: None, lambda _: None)
        tasks = [asyncio.create_task(one) for one in (driver.drive(), driver.keep_alive(SILENCE_S))]
        pipe.say(encode_line(ConnectorHello(CONNECTOR_PROTOCOL, "host")))
        while loop.time() < 3600.0:
            line = await pipe.to_host.get()
            assert decode(line, HOST_CONNECTOR_COMMANDS) == KeepAlive(round(SILENCE_S * 1000))
            at.append(loop.time())
        driver.give_up("the test is over")
        for task in tasks:
            task.cancel()
        return at

    at = simulate(main())
    assert max(after - before for before, after in zip([0.0, *at], at, strict=False)) < SILENCE_S / 3
