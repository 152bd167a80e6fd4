"""What a subinterval costs the controller: decode, merge and write the results of N simulated hosts, in one process.

Real encoded `result` lines from made-up but realistic latencies; everything after the pipe is the program's own.
    scripts/bench master                          10, 100, 1,000 hosts with rollups all and host; then 24 classes a host
    scripts/bench master --hosts 100 --subintervals 1000        memory over a long step
    scripts/bench master --watched 100                          without and with web, metrics and three watchers
    scripts/bench master --elements 500 --length 1 --subintervals 12     without and with a connector of 20 attributes
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ivypy.master.output.folder import RunFolder
from ivypy.master.output.record_types import HostTiming, SubintervalRecord, Timing
from ivypy.master.rollup.instances import Rollups, WorkloadInstance
from ivypy.master.rollup.merge import Merger
from ivypy.master.rollup.metrics import column
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.rollup.window import Window
from ivypy.protocol.counters import LATENESS, RESPONSES, SERIES, SERVICES, Count, Kind, Moment, ThreadCount
from ivypy.protocol.histogram import BUCKETS, lower_edges
from ivypy.protocol.lines import decode_line, encode_line
from ivypy.protocol.messages import Result
from ivypy.protocol.parameters import Parameters
from ivypy.protocol.payload import Array, ArrayType
from tests.bench.parts.far import readings
from tests.support.rollup import rollup_spec

INSTANCES = 24  # per host
CORES = 16
LENGTH_S = 5.0
SUBINTERVALS = 6
WATCHED = 20  # of which the first are not counted: the watchers start in them
SAMPLES = 200_000  # drawn per series of a host; a class has its share of them
POOL = 24  # different results that the hosts take turns to send
QUARTER_S = LENGTH_S / 4
HOSTS = 10  # beside a connector

EDGES = np.array(lower_edges()[1:-1], np.float64)


def packed(values: np.ndarray, kind: ArrayType) -> Array:
    return Array(kind, np.ascontiguousarray(values, "<" + kind).tobytes())


def latencies(random: np.random.Generator, series: int, size: int) -> np.ndarray:
    """Nanoseconds: a fast device with a slow tail; the generator's lateness is a few microseconds."""
    if series == LATENESS:
        return random.lognormal(np.log(3e3), 0.6, size)
    body = random.lognormal(np.log(120e3 if series % 4 == Kind.RANDOM_READ else 60e3), 0.35, size)
    slow = random.random(size) < 0.003
    body[slow] *= random.uniform(5, 200, int(slow.sum()))
    return body


def result(random: np.random.Generator, classes: int) -> Result:
    """One host's subinterval: random reads and writes, paced."""
    moments = np.zeros((classes, SERIES, len(Moment)), np.uint64)
    moments[..., Moment.MIN] = np.uint64(2**64 - 1)
    spans = np.zeros((classes, SERIES, 2), np.uint32)
    buckets = []
    used = {SERVICES[Kind.RANDOM_READ]: 0.7, SERVICES[Kind.RANDOM_WRITE]: 0.3,
            RESPONSES[Kind.RANDOM_READ]: 0.7, RESPONSES[Kind.RANDOM_WRITE]: 0.3, LATENESS: 1.0}  # fmt: skip
    for klass in range(classes):
        for series in range(SERIES):
            if series not in used:
                continue
            ns = latencies(random, series, int(SAMPLES / classes * used[series]))
            histogram = np.bincount(np.searchsorted(EDGES, ns, "right"), minlength=BUCKETS)
            first, last = np.flatnonzero(histogram)[[0, -1]]
            spans[klass, series] = first, last - first + 1
            buckets.append(histogram[first : last + 1])
            whole = ns.astype(np.int64)
            squares = int((ns / 1e3).dot(ns / 1e3) * 1e6)
            moments[klass, series] = [
                len(whole), len(whole) * 8192, int(whole.sum()), squares % 2**64, squares >> 64,
                whole.min(), whole.max(),
            ]  # fmt: skip
    counts = random.integers(0, 50, (INSTANCES, len(Count)))
    counts[:, [Count.DUE, Count.SUBMITTED, Count.COMPLETED]] = SAMPLES // INSTANCES
    counts[:, [Count.ERRORS, Count.SHORT, Count.DROPPED]] = 0
    length = round(LENGTH_S * 1e9) + int(random.integers(-1000, 1000))
    return Result(
        subinterval=0, start_ns=0, length_ns=length, last=False, collected_ns=length + 2_000_000,
        cpu=tuple(round(float(busy), 1) for busy in random.uniform(5, 95, CORES)),
        counts=packed(counts, ArrayType.I64), moments=packed(moments, ArrayType.U64),
        spans=packed(spans, ArrayType.U32), buckets=packed(np.concatenate(buckets), ArrayType.U32),
        threads=packed(random.integers(1, 10**7, (CORES - 2, len(ThreadCount))), ArrayType.I64),
        faults=(), missing=(), readings=(readings(random),),
    )  # fmt: skip


class Bench:
    """One controller's work for `hosts` hosts."""

    def __init__(self, hosts: int, by: Sequence[str], root: Path, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.hosts = [f"lab{h:04d}" for h in range(hosts)]
        instances = [WorkloadInstance(i, host, f"/dev/sd{i}", "oltp") for host in self.hosts for i in range(INSTANCES)]
        rollups = Rollups.build(instances, [rollup_spec(name) for name in by])
        self.merger = Merger(rollups, {host: rollups.order(host) for host in self.hosts})
        self.classes = len(rollups.classes(self.hosts[0]).rows)
        self.lines = [encode_line(result(random, self.classes)) for _ in range(min(POOL, hosts))]
        self.settings = Settings.of(rollups, {(i.host, i.number): Parameters(iops=1000.0) for i in instances})
        run = RunFolder.create(root, f"bench{hosts}", datetime.now(UTC))
        self.step = run.step(0, "bench", self.merger.layout, dict.fromkeys(self.hosts, tuple(range(CORES))))
        self.window = Window(self.merger.layout)
        one = HostTiming(2_000_000, 1_000_000, 12_345, 30_000, 1.5, 1_000, 2_000)
        self.timing = Timing(50_000_000, 20_000_000, 5_000_000, 4 * 10**9, dict.fromkeys(self.hosts, one))

    def subinterval(self, k: int) -> dict[str, float]:
        """CPU seconds of each part."""
        arriving = [self.lines[(k + h) % len(self.lines)] for h in range(len(self.hosts))]
        arriving = [one.replace(b'"subinterval":0,', b'"subinterval":%d,' % k, 1) for one in arriving]
        marks = [time.process_time()]

        def mark() -> None:
            marks.append(time.process_time())

        results = [decode_line(one) for one in arriving]
        mark()
        self.merger.open(k)
        for host, one in zip(self.hosts, results, strict=True):
            assert isinstance(one, Result)
            self.merger.add(host, one)
        interval = self.merger.close()
        self.window.add(interval)
        mark()
        figures = interval.figures.shown(self.settings.response_rows())
        column(figures, "overall_response_us_p99")
        self.step.subinterval(SubintervalRecord(interval, figures, self.settings, "run", k * 5 * 10**9, self.timing))
        mark()
        parts = dict(zip(("decode", "merge", "write"), np.diff(marks).tolist(), strict=True))
        return parts | {"all": marks[-1] - marks[0]}

    def run(self, subintervals: int) -> Iterator[tuple[dict[str, float], float]]:
        """Seconds of each part, and resident MiB, per subinterval."""
        for k in range(subintervals):
            yield self.subinterval(k), resident_mib()


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(hosts: int, by: Sequence[str], subintervals: int, seed: int) -> float:
    """Print one line; the median cost in seconds."""
    with tempfile.TemporaryDirectory(prefix="ivypy-bench-") as root:
        bench = Bench(hosts, by, Path(root), seed)
        got = list(bench.run(subintervals + 1))  # the first warms up
    median = {part: float(np.median([cost[part] for cost, _ in got[1:]])) for part in got[0][0]}
    resident = [mib for _, mib in got]
    print(
        f"{hosts:6,} hosts  {bench.classes:3} classes each  {len(bench.merger.layout.rollups.rows):6,} rows"
        f"  line {len(bench.lines[0]) / 1e3:6.1f} kB"
        + "".join(f"  {part} {seconds * 1e3:7.1f} ms" for part, seconds in median.items())
        + f"  resident {resident[1]:.0f} -> {resident[-1]:.0f} MiB in {subintervals} subintervals",
        flush=True,
    )
    return median["all"]


def largest(by: Sequence[str], seed: int) -> None:
    """The largest number of hosts, within 4 %, whose subinterval costs at most a quarter of its length."""
    low, high = 50, 0
    cost = measure(low, by, 4, seed)
    while not high or high - low > low // 25:
        trial = (low + high) // 2 if high else max(round(low * QUARTER_S / cost), low + low // 25 + 1)
        cost = measure(trial, by, 4, seed)
        low, high = (trial, high) if cost <= QUARTER_S else (low, trial)
    print(f"largest number of hosts in {QUARTER_S:g} s of one core: {low}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench master", description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, action="append", help="only these numbers of hosts, rollups all and host")
    parser.add_argument("--subintervals", type=int, help=f"measured; by default {SUBINTERVALS}, watched {WATCHED}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ssh", type=int, help="a whole run over so many real sshds")
    parser.add_argument("--sockets", type=int, help="a whole run over so many sockets")
    parser.add_argument("--host-off", action="store_true", help="of --ssh and --sockets: without the connector host")
    parser.add_argument("--watched", type=int, help="the cost of being watched, with so many hosts by sockets")
    parser.add_argument("--elements", type=int, help="the cost of a connector with so many elements, beside ten hosts")
    parser.add_argument("--attributes", type=int, default=20, help="of each element")
    parser.add_argument("--pairs", type=int, default=4, help="runs with and without watchers, or the connector")
    parser.add_argument("--processes", type=int, default=0, help="driver processes of these")
    parser.add_argument("--length", type=float, default=LENGTH_S, help="of a subinterval, in seconds")
    parser.add_argument("--luns", action="store_true", help="with rollup lun: 24 merge classes a host")
    arguments = parser.parse_args()
    arguments.subintervals = arguments.subintervals or (WATCHED if arguments.watched else SUBINTERVALS)
    if arguments.ssh or arguments.sockets or arguments.watched or arguments.elements:
        from tests.bench.parts import connector_cost, transport, watched

        random = np.random.default_rng(arguments.seed)
        made = [result(random, INSTANCES if arguments.luns else 1) for _ in range(POOL)]
        shape = transport.Shape(
            hosts=arguments.ssh or arguments.sockets or arguments.watched or HOSTS, length_s=arguments.length,
            subintervals=arguments.subintervals, rollups=["host", "lun"] if arguments.luns else ["host"],
            instances=INSTANCES, ssh=bool(arguments.ssh), processes=arguments.processes,
        )  # fmt: skip
        results = [encode_line(replace(one, length_ns=round(LENGTH_S * 1e9))) for one in made]
        if arguments.elements:
            connector_cost.measure(shape, results, arguments.pairs, arguments.elements, arguments.attributes)
        elif arguments.watched:
            watched.measure(shape, results, arguments.pairs)
        else:
            transport.measure(shape, results, "connectors: { host: off }" if arguments.host_off else "")
        return
    print(f"rollups all and host, {INSTANCES} workload instances and {CORES} cores a host")
    for hosts in arguments.hosts or (10, 100, 1000):
        measure(hosts, ["host"], arguments.subintervals, arguments.seed)
    if not arguments.hosts:
        print(f"rollups all, host and lun: {INSTANCES} classes a host")
        largest(["host", "lun"], arguments.seed)


if __name__ == "__main__":
    main()
