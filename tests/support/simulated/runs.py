"""Whole runs on simulated hosts and simulated time, and what they show and leave."""

import asyncio
import csv
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ivypy.master.connectors.lifecycle import Launch
from ivypy.master.errors import HostFault
from ivypy.master.exit_codes import ExitCode
from ivypy.master.hosts.errors import HostUnusable
from ivypy.master.hosts.host_spec import HostSpec
from ivypy.master.live.reports import EventLine, Nobody, Report, StepBegins, Subinterval
from ivypy.master.plan.load import read
from ivypy.master.run.session.run import Options, Run
from ivypy.master.run.session.signals import Interrupts
from ivypy.master.summary.measured import StepEnds
from ivypy.protocol import messages as m
from tests.support.simulated.loop import simulate
from tests.support.simulated.slave import Faults, MemoryPipe, Service, SimulatedSlave, steady

ONE_STEP = """\
name: sim
hosts: [a, b, c]
engine: { backend: "null" }
luns:
  create: { path: "/x/{}", size: 1GiB, count: 2 }
workloads:
  oltp: { blocksize: 8KiB, fraction_read: 75%, maxtags: 4, iops: 1000 }
  scan: { blocksize: 64KiB, iosequencer: sequential, maxtags: 2, iops: 100 }
rollups: [ host, workload ]
defaults: { subinterval: 5s, warmup: 5s, measure: 30s }
steps: [ go: one ]
"""
TWO_STEPS = """\
name: sim
hosts: [a, b, c]
engine: { backend: "null" }
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


class Eyes(Nobody):
    """Records what was shown."""

    def __init__(self) -> None:
        self.seen: list[Report] = []
        self.begun = asyncio.Event()

    def show(self, report: Report) -> None:
        self.seen.append(report)
        if isinstance(report, StepBegins):
            self.begun.set()

    def event_lines(self) -> list[str]:
        return [report.text for report in self.seen if isinstance(report, EventLine)]

    def messages(self) -> list[str]:
        return [text for report in self.seen if isinstance(report, Subinterval) for text in report.messages]

    def steps(self) -> dict[str, StepEnds]:
        """Each step's end, by its name."""
        return {report.name: report for report in self.seen if isinstance(report, StepEnds)}

    def phases(self) -> list[str]:
        return [str(report.phase) for report in self.seen if isinstance(report, Subinterval)]


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

    def check(self) -> None:
        """Raise what ended a simulated slave: it must not break the protocol by itself."""
        for task in self.serving:
            if task.done() and not task.cancelled():
                task.result()


@dataclass
class SimulatedRun:
    """A run that is under way or has ended: its folder, what it showed, and its hosts."""

    folder: Path
    eyes: Eyes
    lab: SimulatedHosts
    code: ExitCode | None = None
    seconds: float = 0.0  # of simulated time
    notes: dict[str, object] = field(default_factory=dict)

    @property
    def slaves(self) -> Mapping[str, SimulatedSlave]:
        return self.lab.slaves

    def rows(self, name: str) -> list[dict[str, str]]:
        with open(self.folder / name, newline="") as file:
            return list(csv.DictReader(file))

    def events(self, kind: str) -> list[str]:
        return [row["text"] for row in self.rows("events.csv") if row["kind"] == kind]

    @property
    def step(self) -> StepEnds:
        (ended,) = [report for report in self.eyes.seen if isinstance(report, StepEnds)]
        return ended

    def iops(self, host: str) -> list[object]:
        """The IOPS settings of a host's instances at the end."""
        return [one.iops for _, one in sorted(self.slaves[host].parameters.items())]

    def edits(self, host: str) -> list[m.EditWorkloads]:
        return [command for command in self.slaves[host].received if isinstance(command, m.EditWorkloads)]


def hosts() -> dict[str, SimulatedSlave]:
    """Three fast hosts, whose clocks drift."""
    return {
        name: SimulatedSlave(name, plant=steady(50_000.0), clock_offset_s=50.0 * i, drift_ppm=10.0 * i)
        for i, name in enumerate("abc")
    }


def slaves(**faults: Faults) -> Mapping[str, SimulatedSlave]:
    """Three hosts, the second and third of which do twice and three times what the first does."""
    return {
        name: SimulatedSlave(
            name,
            plant=steady(1000.0 * (i + 1)),
            clock_offset_s=100.0 * i,
            faults=faults.get(name),
        )
        for i, name in enumerate("abc")
    }


def _prepared(
    root: Path,
    text: str,
    lab: SimulatedHosts,
    presses: Interrupts,
    destroy: str | None = None,
    launch: Launch | None = None,
) -> tuple[Run, SimulatedRun]:
    eyes = Eyes()
    run = Run(read(text, "sim.yaml", {}), Options(root, destroy, ("ivypy",)), eyes, presses, lab.open, launch)
    return run, SimulatedRun(run.folder, eyes, lab)


Visit = Callable[[Run, SimulatedRun], Awaitable[None]]


def stage(
    root: Path,
    visit: Visit,
    text: str = ONE_STEP,
    slaves: Mapping[str, SimulatedSlave] | None = None,
    launch: Launch | None = None,
) -> SimulatedRun:
    """Run a plan; `visit` is awaited beside it from the moment its first step begins. `launch`: starts connectors."""
    lab = SimulatedHosts(**(slaves or hosts()))

    async def main() -> SimulatedRun:
        run, staged = _prepared(root, text, lab, Interrupts(), launch=launch)
        began = asyncio.get_running_loop().time()

        async def visiting() -> None:
            await staged.eyes.begun.wait()
            await visit(run, staged)

        async with asyncio.TaskGroup() as group:
            group.create_task(visiting())
            staged.code = await run.run()
        staged.seconds = asyncio.get_running_loop().time() - began
        return staged

    staged = simulate(main())
    lab.check()
    return staged


def run(
    root: Path,
    text: str = TWO_STEPS,
    lab: SimulatedHosts | None = None,
    press_after: float | None = None,
    destroy: str | None = None,
    **faults: Faults,
) -> SimulatedRun:
    """Run a plan, by default on three hosts with these faults; Ctrl-C is pressed after so many seconds."""
    lab = lab or SimulatedHosts(**slaves(**faults))

    async def main() -> SimulatedRun:
        presses = Interrupts()
        run, outcome = _prepared(root, text, lab, presses, destroy)
        if press_after is not None:
            asyncio.get_running_loop().call_later(press_after, presses.press)
        outcome.code = await run.run()
        return outcome

    outcome = simulate(main())
    lab.check()
    return outcome


def controlled(
    tmp_path: Path,
    go: str,
    plant: Service,
    more: str = "",
    iops: str = "max",
    hosts: str = "a",
    faults: Mapping[str, Faults] | None = None,
    end: str = "",
) -> SimulatedRun:
    """One step on hosts that each have one LUN behind a plant of its own kind."""
    text = f"""\
name: sim
hosts: [{hosts}]
engine: {{ backend: "null" }}
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
