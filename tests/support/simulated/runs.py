"""Runs on simulated hosts and simulated time, with somebody at the desk while they run."""

import asyncio
import csv
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ivypy.master.hosts.host_spec import HostSpec
from ivypy.master.live.reports import EventLine, Nobody, Report, StepBegins, StepEnds, Subinterval
from ivypy.master.plan.load import read
from ivypy.master.run.run import Options, Run
from ivypy.master.run.signals import Interrupts
from ivypy.master.verdicts import ExitCode
from ivypy.protocol import messages as m
from tests.support.simulated.loop import simulate
from tests.support.simulated.slave import MemoryPipe, SimulatedSlave, steady

PLAN = """\
name: sim
hosts: [a, b, c]
backend: "null"
luns:
  create: { path: "/x/{}", size: 1GiB, count: 2 }
workloads:
  oltp: { blocksize: 8KiB, fraction_read: 75%, maxtags: 4, iops: 1000 }
  scan: { blocksize: 64KiB, iosequencer: sequential, maxtags: 2, iops: 100 }
rollups: [ host, workload ]
defaults: { subinterval: 5s, warmup: 5s, measure: 30s }
steps: [ go: one ]
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

    def said(self) -> list[str]:
        return [text for report in self.seen if isinstance(report, Subinterval) for text in report.messages]

    def steps(self) -> dict[str, StepEnds]:
        """Each step's end, by its name."""
        return {report.name: report for report in self.seen if isinstance(report, StepEnds)}

    def phases(self) -> list[str]:
        return [str(report.phase) for report in self.seen if isinstance(report, Subinterval)]


@dataclass
class Staged:
    """A run that ended, and who took part."""

    folder: Path
    eyes: Eyes
    slaves: Mapping[str, SimulatedSlave]
    code: ExitCode | None = None
    seconds: float = 0.0
    notes: dict[str, object] = field(default_factory=dict)

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
        """What a host's instances are told at the end."""
        return [one.iops for _, one in sorted(self.slaves[host].parameters.items())]

    def edits(self, host: str) -> list[m.EditWorkloads]:
        return [heard for heard in self.slaves[host].heard if isinstance(heard, m.EditWorkloads)]


def hosts() -> dict[str, SimulatedSlave]:
    return {
        name: SimulatedSlave(name, plant=steady(50_000.0), clock_offset_s=50.0 * i, drift_ppm=10.0 * i)
        for i, name in enumerate("abc")
    }


def opener(slaves: Mapping[str, SimulatedSlave]) -> Callable[[HostSpec, Callable[[str], None]], Awaitable[MemoryPipe]]:
    """Opens simulated hosts by their names."""
    serving: list[asyncio.Task[None]] = []

    async def opening(spec: HostSpec, log: Callable[[str], None]) -> MemoryPipe:
        serving.append(asyncio.get_running_loop().create_task(slaves[spec.name].serve()))
        return slaves[spec.name].pipe

    return opening


Visit = Callable[[Run, Staged], Awaitable[None]]


def stage(root: Path, visit: Visit, text: str = PLAN, slaves: Mapping[str, SimulatedSlave] | None = None) -> Staged:
    """Run a plan; `visit` is awaited beside it from the moment its first step begins."""
    slaves = slaves or hosts()

    async def main() -> Staged:
        eyes, loop = Eyes(), asyncio.get_running_loop()
        run = Run(read(text, "sim.yaml", {}), Options(root, None, ("ivypy",)), eyes, Interrupts(), opener(slaves))
        staged = Staged(run.folder, eyes, slaves)
        began = loop.time()

        async def visiting() -> None:
            await eyes.begun.wait()
            await visit(run, staged)

        async with asyncio.TaskGroup() as group:
            group.create_task(visiting())
            staged.code = await run.run()
        staged.seconds = loop.time() - began
        return staged

    return simulate(main())
