"""Does a long run grow? One step of very many subintervals on simulated hosts and simulated time: memory, open files.

    scripts/bench soak [--subintervals 100000] [--hosts 3] [--length 1] [--folder /var/tmp] [STEP]
    scripts/bench soak --made --hosts 1000 --subintervals 720       an hour of a thousand hosts

The code is the program's own from the link upwards: drivers, step, control, keeping, rows and histograms on disk. STEP
is what a plan's `go` has beside its name, as YAML; left out, a measurement of a fixed time.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from ivypy.master.hosts.host_spec import HostSpec
from ivypy.master.live.reports import Nobody, Report, Subinterval
from ivypy.master.plan.load import read
from ivypy.master.run.session.run import Options, Run
from ivypy.master.run.session.signals import Interrupts
from ivypy.master.summary.measured import StepEnds
from ivypy.protocol.lines import encode_line
from tests.bench import master
from tests.bench.parts.far import PooledSlave
from tests.support.simulated.loop import simulate
from tests.support.simulated.plants import noisy
from tests.support.simulated.slave import MemoryPipe, SimulatedSlave, steady

FLAT: Final = 0.05  # of the memory after a tenth of the run
CHUNKS: Final = 50

PLAN = """
name: soak
engine: {{ backend: "null" }}
hosts: [ "h[1-{hosts}]" ]
luns: {{ create: {{ path: "/x/{{}}", size: 1GiB, count: {luns} }} }}
workloads: {{ w: {{ iops: {iops}, maxtags: 4 }} }}
rollups: [ host ]
defaults: {{ subinterval: {length:g}s, warmup: 0 }}
steps: [ go: {{ name: one, {step} }} ]
"""


class ForgetfulSlave(SimulatedSlave):
    """What a slave of a test remembers for its test would be all that grows here."""

    def __init__(self, name: str, seed: int) -> None:
        super().__init__(name, plant=noisy(steady(10_000.0), 0.05, seed), clock_offset_s=100.0 * seed, drift_ppm=5.0)
        self.received = deque(maxlen=1)  # type: ignore[assignment]

    def _deliver(self, k: int, *result: Any) -> None:
        self._boundaries.pop(k, None)
        super()._deliver(k, *result)


@dataclass
class Meter(Nobody):
    """Notes memory and open files now and then."""

    every: int
    began_s: float
    marks: list[tuple[int, float, int, float]] = field(default_factory=list)  # subinterval, MiB, files, seconds
    ended: list[StepEnds] = field(default_factory=list)

    def show(self, report: Report) -> None:
        if isinstance(report, StepEnds):
            self.ended.append(report)
        if isinstance(report, Subinterval) and report.number % self.every == 0:
            files = len(os.listdir("/proc/self/fd"))
            self.marks.append((report.number, resident_mib(), files, time.monotonic() - self.began_s))
            print("{:9,} {:8.1f} MiB {:4} files {:8.1f} s".format(*self.marks[-1]), flush=True)

    def flat(self) -> tuple[float, bool]:
        """By how much memory grew since a tenth of the run, as a fraction; whether open files stayed as they were."""
        settled = [mark for mark in self.marks if mark[0] >= self.marks[-1][0] / 10]
        # A file that the writer is about to close is open for a moment: the fewest of several looks count.
        half = len(settled) // 2
        first, last = (min(files for _, _, files, _ in part) for part in (settled[:half], settled[half:]))
        return settled[-1][1] / settled[0][1] - 1, first == last


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def soaked(text: str, hosts: int, every: int, folder: str | None = None, lines: Sequence[bytes] = ()) -> Meter:
    """Run a plan whose hosts are h1, h2 ... `lines`: results made beforehand, where making them would take longest."""
    slaves: dict[str, SimulatedSlave] = {}
    for n in range(1, hosts + 1):
        name = f"h{n}"
        made = PooledSlave(name, MemoryPipe(0.0001), lines, clock_offset_s=100.0 * n) if lines else None
        slaves[name] = made or ForgetfulSlave(name, n)
    serving = []

    async def opening(spec: HostSpec, log: Callable[[str], None]) -> MemoryPipe:
        serving.append(asyncio.get_running_loop().create_task(slaves[spec.name].serve()))
        return slaves[spec.name].pipe

    async def main(root: Path) -> Meter:
        meter = Meter(every, time.monotonic())
        await Run(
            read(text, "soak.yaml", {}), Options(root, None, ("soak",), processes=0), meter, Interrupts(), opening
        ).run()
        return meter

    with tempfile.TemporaryDirectory(prefix="ivypy-soak-", dir=folder) as name:
        return simulate(main(Path(name)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench soak", description=__doc__.splitlines()[0])
    parser.add_argument("--subintervals", type=int, default=100_000)
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("--luns", type=int, default=2)
    parser.add_argument("--length", type=float, default=1.0, help="of a subinterval, in simulated seconds")
    parser.add_argument("--iops", default="500")
    parser.add_argument("--folder", help="where the run's files go: some kB for each host and subinterval")
    parser.add_argument("--made", action="store_true", help="as scripts/bench master: 24 instances a host, 5 s")
    parser.add_argument("step", nargs="?", default="measure: {seconds:g}s")
    options = parser.parse_args()
    lines: list[bytes] = []
    if options.made:
        random = np.random.default_rng(1)
        made = (master.result(random, 1) for _ in range(master.POOL))
        lines = [encode_line(replace(one, length_ns=round(master.LENGTH_S * 1e9))) for one in made]
        options.luns, options.length = master.INSTANCES, master.LENGTH_S
    step = options.step.replace("{seconds:g}", f"{options.subintervals * options.length:g}")
    text = PLAN.format(hosts=options.hosts, luns=options.luns, iops=options.iops, length=options.length, step=step)
    meter = soaked(text, options.hosts, max(options.subintervals // CHUNKS, 1), options.folder, lines)
    grown, same_files = meter.flat()
    number, _, _, seconds = meter.marks[-1]
    good = grown < FLAT and same_files
    each_s = seconds / max(number, 1)
    print(
        f"{'met' if good else 'MISSED'}: memory grew by {grown:.1%} from a tenth of {number:,} subintervals on (at most"
        f" {FLAT:.0%}), open files {'stayed as they were' if same_files else 'CHANGED'};"
        f" {each_s * 1e3:.2f} ms a subinterval: 10^6 take {each_s * 1e6 / 3600:.1f} h"
    )
    sys.exit(not good)


if __name__ == "__main__":
    main()
