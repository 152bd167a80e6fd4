"""At a given rate: what an I/O costs beside fio's, and how late I/Os are submitted while the machine has more to do."""

import os
import subprocess
import sys
from dataclasses import dataclass

from ivypy.protocol.counters import LATENESS, Count, Moment, ThreadCount
from ivypy.protocol.histogram import lower_edge
from ivypy.slave.engine._engine import Engine
from tests.support.engine import MS, Drive

from .closed_loop import fio_job, middle

RATE = 100_000
MOST_OF_FIO = 0.5  # of its CPU time per I/O
LATE_RATE = 50_000
LATEST_US = 100.0  # p99


@dataclass(frozen=True, slots=True)
class Paced:
    iops: float
    cpu_us: float  # of the thread, per I/O


def drive(path: str, core: int, seconds: float, iops: int) -> Drive:
    engine = Engine("libaio", [core])
    try:
        step = Drive(engine)
        step.create(0, step.lun(path), iosequencer="random_independent", iops=float(iops), maxtags=32)
        step.go([0], int(seconds * 1000 / 4) * MS)
        engine.stop(4)
        step.finish()
    finally:
        engine.close(5.0)
    step.results = step.results[1:]  # the first one is the warm-up
    return step


def ours(path: str, core: int, seconds: float) -> Paced:
    step = drive(path, core, seconds, RATE)
    count = step.total(Count.COMPLETED)
    length_s = sum(result.raw.length_ns for result in step.results) / 1e9
    return Paced(count / length_s, sum(r.thread(ThreadCount.CPU_TIME) for r in step.results) / count / 1000)


def theirs(path: str, core: int, seconds: float) -> Paced:
    words = ["--ioengine=libaio", "--iodepth=32", f"--filename={path}", f"--cpus_allowed={core}"]
    told = fio_job([*words, f"--runtime={seconds}", f"--rate_iops={RATE}", "--rate_process=poisson"])
    return Paced(told["iops"], told["busy"] / told["iops"] * 1e6)


def cost(path: str, core: int, seconds: float, repeat: int) -> str:
    turns = [(ours(path, core, seconds), theirs(path, core, seconds)) for _ in range(repeat)]
    ratios = sorted(us.cpu_us / fio.cpu_us for us, fio in turns)
    us, fio = turns[-1]
    verdict = "reached" if middle(ratios) <= MOST_OF_FIO else "MISSED"
    return (
        f"CPU per I/O at {RATE:,} random_independent IOPS: ours {us.cpu_us:.2f} us ({us.iops:,.0f}/s), fio "
        f"{fio.cpu_us:.2f} us ({fio.iops:,.0f}/s): {middle(ratios):.2f} of it, {ratios[0]:.2f} .. {ratios[-1]:.2f}; "
        f"goal at most {MOST_OF_FIO}  {verdict}"
    )


def lateness(path: str, core: int, seconds: float) -> str:
    others = sorted(os.sched_getaffinity(0) - {core})
    busy = [
        subprocess.Popen([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, {{{other}}})\nwhile True: pass"])
        for other in others
    ]
    try:
        step = drive(path, core, seconds, LATE_RATE)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    p50_us, p99_us = (percentile_us(step, share) for share in (0.5, 0.99))
    most_us = max(result.series(LATENESS, Moment.MAX) for result in step.results) / 1000
    verdict = "reached" if p99_us < LATEST_US else "MISSED"
    return (
        f"lateness at {LATE_RATE:,} IOPS, {len(busy)} other core(s) busy: p50 {p50_us:.1f} us, p99 {p99_us:.1f} us, "
        f"max {most_us:,.0f} us; goal p99 below {LATEST_US:.0f} us  {verdict}"
    )


def percentile_us(step: Drive, share: float) -> float:
    """The upper edge of the bucket that holds it."""
    total: dict[int, int] = {}
    for result in step.results:
        for bucket, count in result.histograms[0][LATENESS].items():
            total[bucket] = total.get(bucket, 0) + count
    wanted, seen = share * sum(total.values()), 0
    for bucket in sorted(total):
        seen += total[bucket]
        if seen >= wanted:
            return lower_edge(bucket + 1) / 1000
    raise AssertionError("an empty histogram")
