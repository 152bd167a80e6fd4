"""A connector's far end in memory, on simulated time: it answers each gather as a test says."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from ivypy.master.connectors.catalog import Catalog
from ivypy.master.connectors.connector_driver import ConnectorDriver
from ivypy.master.connectors.connector_spec import ConnectorSpec, GatherAt
from ivypy.master.connectors.element_figures import Connected
from ivypy.master.connectors.gathered import Gathered
from ivypy.master.connectors.gatherer import Gatherer
from ivypy.master.connectors.gathering import Gathering
from ivypy.master.connectors.joined_luns import JoinedLuns
from ivypy.master.connectors.membership import ALL_HOSTS, Membership
from ivypy.master.hosts.controller_lag import ControllerLag
from ivypy.master.hosts.host_spec import HostSpec, Launcher
from tests.support.rollup import instance, rollups_by

S = 10**9
METRIC = {"element": "port", "attribute": "ios_per_s", "unit": "1/s", "kind": "counter", "combine": "sum"}
Answer = Callable[[int, int], Awaitable[dict[str, Any]]]  # number of a gather, and the time of its request -> readings


def now_ns() -> int:
    return round(asyncio.get_running_loop().time() * S)


class ScriptedPipe:
    """Answers read_config with one counter of a port, and gathers with `answer`."""

    def __init__(self, answer: Answer, begins: bool = True) -> None:
        """`begins`: whether it sends a hello."""
        self._answer = answer
        self._output: asyncio.Queue[bytes] = asyncio.Queue()
        self._gathers = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.closed = False
        if begins:
            self._send(type="connector_hello", protocol=1, name="scripted")

    async def read(self, n: int) -> bytes:
        return await self._output.get()

    async def write(self, data: bytes) -> None:
        command = json.loads(data)
        if command["type"] == "read_config":
            self._send(type="connector_config", re=command["id"], metrics=[METRIC])
            return
        task = asyncio.ensure_future(self._gather(command["id"], self._gathers))
        self._tasks.add(task)
        self._gathers += 1

    async def close(self) -> None:
        self.closed = True
        for task in self._tasks:
            task.cancel()
        self._output.put_nowait(b"")

    async def _gather(self, number: int, place: int) -> None:
        self._send(type="readings", re=number, **await self._answer(place, now_ns()))

    def _send(self, **message: Any) -> None:
        self._output.put_nowait(json.dumps(message).encode() + b"\n")


def spec(name: str = "array") -> ConnectorSpec:
    return ConnectorSpec(name, HostSpec(name, Launcher.LOCAL, name), ("array",), gather=GatherAt.END)


class Rig:
    """A connector that is driven; made in the loop."""

    def __init__(self, answer: Answer) -> None:
        self.lag = ControllerLag(now_ns, lambda: 0)
        self.driver = ConnectorDriver(ScriptedPipe(answer), now_ns, lambda text: None, lambda text: None)
        self._driving = asyncio.ensure_future(self.driver.drive())

    async def begin(self, name: str = "array") -> Gatherer:
        await self.driver.hello()
        config = await self.driver.config(())
        self.catalog = Catalog(config.metrics)
        rollups = rollups_by([instance(0, "h1")])
        joined = JoinedLuns(spec(name), config.facts)
        self.connected = Connected(name, self.catalog, Membership({ALL_HOSTS: joined}, rollups, {}))
        self.gatherer = Gatherer(spec(name), self.driver, self.catalog, self.lag)
        return self.gatherer

    async def close(self) -> None:
        await self.driver.close()
        await self._driving


async def gathers(answer: Answer, subintervals: int) -> list[Gathered]:
    """What a step of so many subintervals of a second gathers."""
    rig = Rig(answer)
    found: list[Gathered] = []
    gathering = Gathering([await rig.begin()], [rig.connected])
    gathering.begin(now_ns(), S, lambda of: found.extend(of.gathers), found.append)
    await asyncio.sleep(subintervals + 0.9)
    await gathering.end()
    await rig.close()
    return found
