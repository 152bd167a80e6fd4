"""One instance on one pinned thread for a while, as JSON: one_step.py PATH CORE SECONDS IOPS TAGS SPIN

SPIN "-": the engine's default. Rule: it imports nothing of this folder and calls only what older versions have as well,
so that the interpreter of another checkout can run it: before and after in one run.
"""

import contextlib
import json
import os
import sys
from pathlib import Path

from ivypy.protocol.counters import LATENESS, SERVICES, Count, Moment, ThreadCount
from ivypy.protocol.histogram import lower_edge
from ivypy.slave.engine._engine import Engine
from tests.support.engine import MS, Drive


def waited_ns() -> int:
    """For how long the workload thread has waited for its core; 0 if that is not known."""
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            if (task / "comm").read_text().startswith("ivypy-"):
                return int((task / "schedstat").read_text().split()[1])
    return 0


def percentile_us(results: list, series: int, share: float, merge_class: int = 0) -> float:  # type: ignore[type-arg]
    """The upper edge of the bucket that holds it."""
    total: dict[int, int] = {}
    for result in results:
        for bucket, count in result.histograms[merge_class][series].items():
            total[bucket] = total.get(bucket, 0) + count
    wanted, seen = share * sum(total.values()), 0
    for bucket in sorted(total):
        seen += total[bucket]
        if seen >= wanted:
            return lower_edge(bucket + 1) / 1000
    return 0.0


def main(path: str, core: str, seconds: str, iops: str, tags: str, spin: str) -> None:
    if others := os.sched_getaffinity(0) - {int(core)}:
        os.sched_setaffinity(0, others)
    engine = Engine("libaio", [int(core)])
    try:
        if spin != "-":
            engine.spin(spin)
        step = Drive(engine)
        step.create(0, step.lun(path), iosequencer="random_independent", iops=float(iops), maxtags=int(tags))
        step.go([0], int(float(seconds) * 1000 / 4) * MS)
        engine.stop(4)
        step.until(1)
        waited = waited_ns()
        step.finish()
        waited = waited_ns() - waited
    finally:
        engine.close(5.0)
    measured = step.results[1:]  # the first one is the warm-up
    completed = sum(result.total(Count.COMPLETED) for result in measured)
    paced = sum(result.series(LATENESS) for result in measured)
    length_ns = sum(result.raw.length_ns for result in measured)
    cpu_ns, busy_ns = (sum(r.thread(c) for r in measured) for c in (ThreadCount.CPU_TIME, ThreadCount.BUSY_WAIT))
    found = {
        "iops": completed / length_ns * 1e9,
        "late_p50_us": percentile_us(measured, LATENESS, 0.5),
        "late_p99_us": percentile_us(measured, LATENESS, 0.99),
        "late_mean_us": sum(r.series(LATENESS, Moment.SUM) for r in measured) / max(paced, 1) / 1000,
        "service_mean_us": sum(r.series(SERVICES[0], Moment.SUM) for r in measured) / completed / 1000,
        "service_p50_us": percentile_us(measured, SERVICES[0], 0.5),
        "cpu_us": cpu_ns / completed / 1000,  # per I/O
        "work_us": (cpu_ns - busy_ns) / completed / 1000,  # per I/O, less busy-waiting
        "busy_wait": busy_ns / length_ns,  # share of the time
        "waited": waited / length_ns,  # for its core, share of the time; a sleep's own wake-up is in it
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
