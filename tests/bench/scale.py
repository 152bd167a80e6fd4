"""What a thousand LUNs with three workloads each cost a host, beside ten: a whole run, at the same load in all.

    scripts/bench scale [--luns 1000] [--seconds 20] [--folder /var/tmp]

Start: from the slave's first word to `go`, without creating the files. Switchover: from noticing a boundary to running
in the other buffer; nothing there may grow with instances. Its p99 is over all threads and boundaries.

Preparing: what io_uring needs for large I/O buffers, on one thread and on four. `go` has 0.3 s.

Then a slave whose results are as large as they come: a merge class for each LUN, each over many threads. A command is a
clock probe; its wait, from sending it to its answer, is what a halt waits, too.
"""

import argparse
import re
import tempfile
import time
from array import array
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import psutil

from ivypy.protocol import messages as m
from ivypy.protocol.parameters import Iosequencer, Parameters
from ivypy.protocol.payload import WorkloadToCreate
from ivypy.protocol.quantities import exact_size
from ivypy.slave.engine._engine import Engine, now_ns
from ivypy.slave.host.huge_pages import smaps_sizes
from tests.support.engine import MS, S, fields
from tests.support.real_runs import Finished, start, written
from tests.support.slave_client import Client, u32

FEW = 10
IOPS = 6000  # of all together
SUBINTERVAL_S = 0.25
LONGEST_SWITCHOVER_US = 1000.0
LONGEST_START_S = 10.0
PREPARED = ((8, 1 << 20, 511), (1000, 1 << 16, 50))  # instances, blocksize, tags
SPREAD = 16
PROBED_IOPS = 200_000  # of all together, so that histograms are wide
PROBES = 1000
LONGEST_WAIT_MS = 10.0

PLAN = """
name: scale
luns: {{ create: {{ path: "{folder}/lun{{}}", size: 64KiB, count: {luns} }} }}
workloads:
  steady: {{ iops: {each:g}, maxtags: 2 }}
  independent: {{ iops: {each:g}, iosequencer: random_independent, maxtags: 2 }}
  sequential: {{ iops: {each:g}, iosequencer: sequential, fraction_read: 0% }}
connectors: {{ host: off }}
rollups: [ workload ]
defaults: {{ subinterval: {subinterval:g}s, warmup: 0, measure: {seconds:g}s, disturbed: keep }}
steps: [ go: one ]
"""


@dataclass(frozen=True, slots=True)
class Figures:
    luns: int
    start_s: float
    switchover_us: float  # p99
    dispatch_us: float  # p99
    collected_ms: float  # median: the end of a subinterval to its result being put together
    slave_mib: float  # resident, while it runs


def plan_of(folder: Path, luns: int, seconds: float) -> str:
    return PLAN.format(folder=folder, luns=luns, each=IOPS / luns / 3, subinterval=SUBINTERVAL_S, seconds=seconds)


def measured(luns: int, seconds: float, base: Path) -> Figures:
    with tempfile.TemporaryDirectory(dir=base, prefix="ivypy-scale-") as name:
        folder = Path(name)
        plan = written(folder, plan_of(folder, luns, seconds))
        process = start(plan, folder / "runs")
        resident = 0
        for line in process.stdout:
            if " run " in line and not resident:
                (slave,) = psutil.Process(process.pid).children(recursive=True)
                resident = smaps_sizes(f"/proc/{slave.pid}/smaps_rollup")["Rss"]
        done = Finished(process.wait(), "", process.stderr.read(), folder / "runs")
        assert done.code in (0, 8), done.err  # a busy machine may be late, and then says so
        threads, interlock = done.rows("step0000.one/threads.csv"), done.rows("step0000.one/interlock.csv")
        return Figures(
            luns=luns,
            start_s=started_s((done.folder / "log" / "local.log").read_text()),
            switchover_us=p99([row["switchover_us"] for row in threads]),
            dispatch_us=p99([row["dispatch_us"] for row in threads]),
            collected_ms=float(np.median([float(row["collected_ms"]) for row in interlock])),
            slave_mib=resident / 2**20,
        )


def command_waits_ms(luns: int, spread: int, probes: int) -> list[float]:
    """How long each of so many clock probes waited for its answer, while results come four times a second."""
    parameters = Parameters(
        iops=PROBED_IOPS / luns, maxtags=spread, spread=spread, iosequencer=Iosequencer.RANDOM_INDEPENDENT
    )
    waits: list[float] = []
    with tempfile.NamedTemporaryFile() as file, Client() as slave:
        file.truncate(1 << 24)
        slave.prepare("null", threads=spread)
        for first in range(0, luns, 100):
            made = range(first, min(first + 100, luns))
            workloads = tuple(
                WorkloadToCreate(n, f"h+{file.name}+w{n}", file.name, None, parameters, spread, 4096) for n in made
            )
            slave.do(m.CreateWorkloads, workloads=workloads)
        start_ns, length_ns = now_ns() + 10**9, int(SUBINTERVAL_S * 1e9)
        order = u32(*range(luns))
        slave.do(m.Go, start_ns=start_ns, length_ns=length_ns, order=order, classes=order)
        slave.until(m.Result)
        while len(waits) < probes:
            sent_ns = now_ns()
            slave.do(m.ClockProbe)
            waits.append((now_ns() - sent_ns) / 1e6)
            time.sleep(0.003)
    return waits


def p99(cells: list[str]) -> float:
    return float(np.percentile([float(cell) for cell in cells], 99, method="higher"))


def started_s(log: str) -> float:
    """From hello to `go`, less the time that creating files took."""

    def at(pattern: str) -> datetime:
        line = next(line for line in log.splitlines() if re.search(pattern, line))
        return datetime.fromisoformat(line.split(" ")[0])

    creating = re.search(r"in ([0-9.]+) s\"", log)
    return (at('"type":"go"') - at('"type":"hello"')).total_seconds() - (float(creating[1]) if creating else 0.0)


@dataclass(frozen=True, slots=True)
class Prepared:
    create_ms: float  # with allocating, touching and pinning
    go_ms: float


def prepared(instances: int, blocksize: int, tags: int, threads: int, base: Path) -> Prepared:
    """Instances of one LUN on so many threads, up to `go`."""
    with tempfile.NamedTemporaryFile(dir=base) as lun:
        lun.truncate(2 * blocksize)
        engine = Engine("io_uring", [-1] * threads)
        shape = fields(blocksize=blocksize, maxtags=tags, iops=1.0)
        handle = engine.open_lun(lun.name, False)
        began_ns = now_ns()
        for number in range(instances):
            engine.create(number, handle, number % threads, tags, blocksize, shape)
        engine.prepare()
        created_ns = now_ns()
        numbers = array("I", range(instances)).tobytes()
        engine.set_lease(created_ns + 60 * S)
        engine.go(created_ns + 60 * S, S, numbers, bytes(len(numbers)), numbers)
        went_ns = now_ns()
        engine.close(10.0)
        return Prepared((created_ns - began_ns) / MS, (went_ns - created_ns) / MS)


def show_prepared(base: Path) -> None:
    print(f"{'I/O buffers':>32} {'threads':>8} {'create ms':>10} {'go ms':>7}")
    for instances, blocksize, tags in PREPARED:
        for threads in (1, 4):
            one = prepared(instances, blocksize, tags, threads, base)
            what = f"{instances:,} x {exact_size(blocksize)} x {tags} tags"
            print(f"{what:>32} {threads:8} {one.create_ms:10.0f} {one.go_ms:7.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--luns", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where O_DIRECT works")
    options = parser.parse_args()
    print(
        f"{'LUNs':>6} {'start s':>8} {'switchover p99 us':>18} {'dispatch p99 us':>16} {'collected ms':>13} {'MiB':>6}"
    )
    for luns in (FEW, options.luns):
        one = measured(luns, options.seconds, options.folder)
        print(
            f"{one.luns:6,} {one.start_s:8.2f} {one.switchover_us:18.1f} {one.dispatch_us:16.1f}"
            f" {one.collected_ms:13.2f} {one.slave_mib:6.1f}"
        )
    show_prepared(options.folder)
    good = one.switchover_us < LONGEST_SWITCHOVER_US and one.start_s < LONGEST_START_S
    print(f"{'met' if good else 'MISSED'}: switchover p99 below 1 ms, a start within {LONGEST_START_S:g} s")
    print(f"\n{'LUNs':>6} a command's wait: {'median':>8} {'p99':>8} {'longest':>8} ms (spread {SPREAD}, a class each)")
    for luns in (FEW, options.luns):
        waits = command_waits_ms(luns, SPREAD, PROBES)
        worst = float(np.percentile(waits, 99, method="higher"))
        print(f"{luns:6,} {'':17} {np.median(waits):8.2f} {worst:8.2f} {max(waits):8.2f}")
    print(f"{'met' if worst < LONGEST_WAIT_MS else 'MISSED'}: p99 below {LONGEST_WAIT_MS:g} ms")


if __name__ == "__main__":
    main()
