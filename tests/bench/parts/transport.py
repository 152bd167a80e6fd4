"""A whole run of the controller over real transport: sshds of a lab, or a socket for each host of a crowd.

The far ends say result lines made beforehand, in real time; CPU time is that of the controller and its driver
processes alone. From a subinterval's last result to the last answer to its `continue` takes longer than to the last
`continue` that is sent; it is what the run's own interlock.csv has.
"""

import asyncio
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import psutil

from ivypy.master.connectors.lifecycle import launcher
from ivypy.master.drivers.controller_side import driver_processes
from ivypy.master.hosts.bundle import Bundle, pack
from ivypy.master.hosts.login_throttle import LoginThrottle
from ivypy.master.live.reports import Nobody, Report, Subinterval, Watcher
from ivypy.master.plan.load import read
from ivypy.master.plan.model import Plan
from ivypy.master.run.session import run as session_run
from ivypy.master.run.session.run import Options, Run
from ivypy.master.run.session.signals import Interrupts
from ivypy.master.run.setup.connect import Opener, opener
from ivypy.master.summary.measured import StepEnds
from tests.bench.parts import pipes
from tests.support.lab import Lab
from tests.support.real_runs import ROOT, hosts_yaml

SKIPPED: Final = 2  # subintervals at the beginning of a step, and the last one, whose CPU time is not counted

MADE_UP: Final = {  # what lines made beforehand bring about
    "overrun", "host_limit", "cpu_contention", "unsteady", "too_few_subintervals", "reap_delay", "queue_depth_limited",
    "eagain",
}  # fmt: skip

PLAN = """
name: transport
engine: {{ backend: "null" }}
lease: 60s
hosts:
{hosts}
{connectors}
luns: {{ create: {{ path: "/x/{{}}", size: 1GiB, count: {instances} }} }}
workloads: {{ oltp: {{ iops: 1000, maxtags: 4 }} }}
rollups: [ {rollups} ]
defaults: {{ subinterval: {length:g}s, warmup: {length:g}s, measure: {measure:g}s }}
steps: [ go: one ]
"""


@dataclass
class Meter(Nobody):
    """Notes at each closed subinterval what CPU time was used until then."""

    drivers: list[psutil.Process] = field(default_factory=list)
    marks: list[dict[str, float]] = field(default_factory=list)
    ended: list[StepEnds] = field(default_factory=list)
    resident_mib: list[float] = field(default_factory=list)

    def show(self, report: Report) -> None:
        if isinstance(report, StepEnds):
            self.ended.append(report)
        if isinstance(report, Subinterval):
            me = psutil.Process()
            if not self.marks:  # once, since it costs something for each child
                self.drivers = [one for one in me.children() if is_driver(one)]
            used = {"controller": time.process_time()}
            used |= {f"driver{n}": sum(one.cpu_times()[:2]) for n, one in enumerate(self.drivers)}
            self.marks.append(used)
            self.resident_mib.append(sum(one.memory_info().rss for one in (me, *self.drivers)) / 2**20)

    def seconds(self) -> dict[str, list[float]]:
        """CPU seconds of each process, per subinterval."""
        found = defaultdict(list)
        for before, after in zip(self.marks[SKIPPED:], self.marks[SKIPPED + 1 : -1], strict=False):
            for name, used in after.items():
                found[name].append(used - before.get(name, 0.0))
        return found


def is_driver(process: psutil.Process) -> bool:
    with suppress(psutil.Error):  # one that has just ended
        return any("pipes" in word or ".drivers" in word for word in process.cmdline())
    return False


@contextmanager
def crowd(lines: Path) -> Iterator[None]:
    """A process that all hosts are in."""
    with tempfile.TemporaryDirectory(prefix="ivypy-crowd-") as folder:
        path = f"{folder}/socket"
        words = [sys.executable, "-m", "tests.bench.parts.far", path, str(lines)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, cwd=ROOT)
        try:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            os.environ[pipes.CROWD], os.environ["PYTHONPATH"] = path, str(ROOT)
            yield
        finally:
            process.kill()
            process.wait()


def pooled(lines: Path) -> Bundle:
    """A slave that says lines made beforehand."""
    main = (
        f"import asyncio, site, sys; site.main(); sys.path.insert(0, {str(ROOT)!r})\n"  # ivypy is installed here
        f"from pathlib import Path; from tests.bench.parts.far import alone, lines_in\n"
        f"asyncio.run(alone(lines_in(Path({str(lines)!r}))))\n"
    )
    return pack({"__main__.py": main.encode()})


@dataclass(frozen=True, slots=True)
class Shape:
    """What a run is like."""

    hosts: int
    length_s: float  # of a subinterval
    subintervals: int  # measured
    rollups: Sequence[str]
    instances: int  # workload instances of a host
    ssh: bool = False  # over sshds, else a socket for each host
    processes: int = 0  # driver processes


@contextmanager
def far_side(shape: Shape, lines: Sequence[bytes], root: Path) -> Iterator[tuple[str, Opener]]:
    """Hosts that say these lines: their entries in a plan, and what connects them."""
    with ExitStack() as stack:
        (root / "lines").write_bytes(b"".join(lines))
        if shape.ssh:
            lab = stack.enter_context(Lab(root, shape.hosts, namespaces=False))
            specs = [replace(host.spec(), python=(sys.executable,)) for host in lab.hosts]
            more = f"ssh_config: false, python: {sys.executable}"
            named = hosts_yaml(specs).replace("ssh_config: false", more)
            yield named, opener([pooled(root / "lines")], LoginThrottle())
        else:
            stack.enter_context(crowd(root / "lines"))
            session_run.driver_processes = partial(  # type: ignore[attr-defined]
                driver_processes, program="tests.bench.parts.pipes"
            )
            yield f'  - "host[00001-{shape.hosts:05}]"', pipes.opening


def run(
    shape: Shape, named: str, opening: Opener, runs: Path, watcher: Callable[[Plan], Watcher], connectors: str = ""
) -> Path:
    """Run a plan of that shape once; its folder. `connectors`: that section of the plan."""
    text = PLAN.format(
        hosts=named, length=shape.length_s, measure=shape.length_s * (SKIPPED + shape.subintervals),
        rollups=", ".join(shape.rollups), instances=shape.instances, connectors=connectors,
    )  # fmt: skip
    plan = read(text, "bench.yaml", {})

    async def main() -> Path:
        options = Options(runs, None, ("bench",), processes=shape.processes)
        run = Run(plan, options, watcher(plan), Interrupts(), opening, launcher(LoginThrottle()))
        await run.run()
        return run.folder

    return asyncio.run(main())


def measure(shape: Shape, lines: Sequence[bytes], connectors: str) -> None:
    """Print a few lines."""
    with tempfile.TemporaryDirectory(prefix="ivypy-bench-") as made:
        root, meter = Path(made), Meter()
        with far_side(shape, lines, root) as (named, opening):
            began = time.monotonic()
            folder = run(shape, named, opening, root / "runs", lambda plan: meter, connectors)
            report(shape, meter, folder, time.monotonic() - began)


def report(shape: Shape, meter: Meter, folder: Path, took_s: float) -> None:
    seconds = meter.seconds()
    total = np.sum([np.array(values) for values in seconds.values()], axis=0)
    deciding = np.array([ms for _, ms in sorted(decided_ms(folder).items())][SKIPPED:-1])
    each = ", ".join(f"{name} {np.median(values):.3f}" for name, values in seconds.items())
    against = sorted({one.reason.name.lower() for ended in meter.ended for one in ended.findings} - MADE_UP)
    way = "ssh" if shape.ssh else "sockets"
    print(
        f"{shape.hosts:6,} hosts by {way}, {shape.processes} driver processes, {shape.length_s:g} s subintervals:\n"
        f"    CPU {np.median(total):.3f} s a subinterval ({total.min():.3f} to {total.max():.3f}):"
        f" {np.median(total) / shape.length_s:.3f} of a core,"
        f" {np.median(total) / shape.hosts * 1e3:.3f} ms a host; {each}\n"
        f"    last result to last answer to `continue`: {np.median(deciding):.0f} ms"
        f" ({deciding.min():.0f} to {deciding.max():.0f})\n"
        f"    resident {meter.resident_mib[SKIPPED]:.0f} -> {meter.resident_mib[-1]:.0f} MiB;"
        f" run of {took_s:.0f} s; against it: {', '.join(against) or 'nothing'}",
        flush=True,
    )


def decided_ms(folder: Path) -> dict[int, float]:
    """By subinterval: from its last result until all hosts had answered what followed from it."""
    last: dict[int, float] = defaultdict(float)
    until: dict[int, float] = {}
    (path,) = folder.glob("step*/interlock.csv")
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            k = int(row["subinterval"])
            last[k] = max(last[k], float(row["send_up_ms"]))
            until[k] = sum(float(row[name]) for name in ("barrier_1_ms", "processing_ms", "barrier_2_ms"))
    return {k: until[k] - last[k] for k in until}
