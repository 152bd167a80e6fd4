"""A whole run of two steps on simulated hosts and simulated time, and what it leaves."""

import asyncio
import csv
from collections.abc import Callable, Mapping
from pathlib import Path

from ivypy.master.errors import HostFault
from ivypy.master.hosts.errors import HostUnusable
from ivypy.master.hosts.host_spec import HostSpec
from ivypy.master.plan.load import read
from ivypy.master.run.run import Options, Run
from ivypy.master.run.signals import Interrupts
from ivypy.master.verdicts import ExitCode
from tests.support.simulated.loop import simulate
from tests.support.simulated.runs import Eyes
from tests.support.simulated.slave import Faults, MemoryPipe, Service, SimulatedSlave, steady

PLAN = """\
name: sim
hosts: [a, b, c]
backend: "null"
luns:
  create: { path: "/x/{}", size: 1GiB, count: 2 }
attributes:
  - { match: { path: /x/0 }, set: { port: 1A } }
  - { match: { path: /x/1 }, set: { port: 2A } }
workloads:
  oltp: { iosequencer: random_steady, blocksize: 8KiB, fraction_read: 75%, maxtags: 4, iops: max }
rollups: [ host, { by: [port], quantity: 2 } ]
defaults: { subinterval: 5s, warmup: 5s, measure: 30s }
steps:
  - go: { name: max }
  - edit: { rollup: all=all, set: { total_iops: 50% of step max } }
  - go: { name: half, cooldown: 5s }
"""


class SimulatedHosts:
    """Simulated hosts, opened by name. A host has the slaves of `again` when it is connected again; None: it fails."""

    def __init__(self, **slaves: SimulatedSlave) -> None:
        self.slaves = slaves
        self.again: dict[str, list[SimulatedSlave | None]] = {}
        self.serving: list[asyncio.Task[None]] = []
        self._opened: set[str] = set()

    def without(self, name: str) -> "SimulatedHosts":
        """The same, but that there is no such host."""
        del self.slaves[name]
        return self

    async def open(self, spec: HostSpec, log: Callable[[str], None]) -> MemoryPipe:
        slave: SimulatedSlave | None = self.slaves.get(spec.name)
        if spec.name in self._opened:
            later = self.again.get(spec.name, [])
            slave = later.pop(0) if later else None
        self._opened.add(spec.name)
        if slave is None:
            raise HostUnusable(HostFault(spec.name, "there is no way to it", "go there"))
        self.serving.append(asyncio.get_running_loop().create_task(slave.serve()))
        return slave.pipe


def slaves(**faults: Faults) -> Mapping[str, SimulatedSlave]:
    return {
        name: SimulatedSlave(
            name,
            plant=steady(1000.0 * (i + 1)),
            clock_offset_s=100.0 * i,
            faults=faults.get(name),
        )
        for i, name in enumerate("abc")
    }


class Outcome:
    def __init__(self, code: ExitCode, folder: Path, eyes: Eyes, lab: SimulatedHosts) -> None:
        self.code, self.folder, self.eyes, self.lab = code, folder, eyes, lab

    def rows(self, name: str) -> list[dict[str, str]]:
        with open(self.folder / name, newline="") as file:
            return list(csv.DictReader(file))


def run(
    tmp_path: Path,
    text: str = PLAN,
    lab: SimulatedHosts | None = None,
    press_after: float | None = None,
    destroy: str | None = None,
    **faults: Faults,
) -> Outcome:
    lab = lab or SimulatedHosts(**slaves(**faults))
    eyes = Eyes()

    async def main() -> ExitCode:
        presses = Interrupts()
        going = Run(read(text, "sim.yaml", {}), Options(tmp_path, destroy, ("ivypy",)), eyes, presses, lab.open)
        if press_after is not None:
            asyncio.get_running_loop().call_later(press_after, presses.press)
        return await going.run()

    code = simulate(main())
    (folder,) = tmp_path.iterdir()
    return Outcome(code, folder, eyes, lab)


def controlled(
    tmp_path: Path,
    go: str,
    plant: Service,
    more: str = "",
    iops: str = "max",
    hosts: str = "a",
    faults: Mapping[str, Faults] | None = None,
    end: str = "",
) -> Outcome:
    """One step on hosts that each have one LUN behind a plant of its own kind."""
    text = f"""\
name: sim
hosts: [{hosts}]
backend: "null"
luns: {{ create: {{ path: /x/0, size: 1GiB }} }}
workloads: {{ w: {{ maxtags: 8, iops: {iops} }} }}
rollups: [ host ]
defaults: {{ subinterval: 5s, warmup: 5s, measure: 30s }}
steps:
{more}  - go: {{ name: it, {go} }}
{end}
"""
    names = hosts.split(", ")
    slaves = {name: SimulatedSlave(name, plant=plant, faults=(faults or {}).get(name)) for name in names}
    return run(tmp_path, text, SimulatedHosts(**slaves))
