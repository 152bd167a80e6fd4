"""Loads through the page cache, beside fio with io_uring: reads of what it holds, writes with a flush after so many,
mixes of sizes and of orders, and places by Zipf's law.

Figures are I/Os per second and mean latency of the middle turn, and the ratio of the IOPS, least to most of the turns
beside it. fio lets completed I/Os wait in its queue at depth; ours reaps after each call, so that only depth 1 compares
latencies.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ivypy.protocol.counters import KINDS, SERVICES, Moment
from ivypy.slave.engine._engine import Engine
from tests.support.engine import MS, Drive

from .closed_loop import REGISTERED, fio_job, middle


@dataclass(frozen=True, slots=True)
class LoadCase:
    name: str
    settings: Mapping[str, Any]
    fio: tuple[str, ...]

    @property
    def writes(self) -> bool:
        return "fraction_read" in self.settings


PAGE_CACHE = (
    LoadCase("cached reads, 1", {"maxtags": 1}, ("--iodepth=1",)),
    LoadCase("cached reads, 32", {"maxtags": 32}, ("--iodepth=32",)),
    LoadCase("cached writes, 1", {"maxtags": 1, "fraction_read": 0.0}, ("--iodepth=1", "--rw=randwrite")),
    LoadCase(
        "a flush each 32 writes, 1",
        {"maxtags": 1, "fraction_read": 0.0, "flush": ("fdatasync", 32)},
        ("--iodepth=1", "--rw=randwrite", "--fdatasync=32"),
    ),
)


SIZES = (("read", 4096, 0.7), ("read", 65536, 0.3))
MIXES = (
    LoadCase(
        "two sizes, 32",
        {"maxtags": 32, "blocksize": 65536, "operations": SIZES},
        ("--iodepth=32", "--bssplit=4k/70:64k/30"),
    ),
    LoadCase(
        "half of it sequential, 32", {"maxtags": 32, "sequential": 0.5}, ("--iodepth=32", "--percentage_random=50")
    ),
    LoadCase("zipf, 32", {"maxtags": 32, "zipf": 1.2}, ("--iodepth=32", "--random_distribution=zipf:1.2")),
    LoadCase(
        "sequential reads and writes, 32",
        {"maxtags": 32, "iosequencer": "sequential", "cursors": "by_operation", "fraction_read": 0.7},
        ("--iodepth=32", "--rw=rw", "--rwmixread=70"),
    ),
)


def ours(case: LoadCase, path: str, core: int, seconds: float) -> tuple[float, float]:
    """(I/Os per second, mean us)."""
    engine = Engine("io_uring", [core])
    try:
        step = Drive(engine)
        step.create(0, step.lun(path, writable=case.writes, direct=False), iops=-1.0, **case.settings)
        step.go([0], int(seconds * 1000 / 4) * MS)
        engine.stop(4)
        step.finish()
    finally:
        engine.close(5.0)
    measured = step.results[1:]  # the first one is the warm-up
    series = SERVICES[:KINDS]
    count = sum(result.series(one) for result in measured for one in series)
    total_ns = sum(result.series(one, Moment.SUM) for result in measured for one in series)
    return count / sum(result.raw.length_ns for result in measured) * 1e9, total_ns / count / 1000


def theirs(case: LoadCase, path: str, core: int, seconds: float) -> tuple[float, float]:
    words = ["--ioengine=io_uring", *REGISTERED, f"--cpus_allowed={core}", f"--runtime={seconds}"]
    told = fio_job([*words, f"--filename={path}", "--direct=0", "--invalidate=0", *case.fio])
    return told["iops"], told["mean_us"]


def rows(cases: Sequence[LoadCase], path: str, core: int, seconds: float, repeat: int) -> Iterator[str]:
    for case in cases:
        with open(path, "rb") as file:
            while file.read(1 << 20):  # into the cache
                pass
        turns = [(ours(case, path, core, seconds), theirs(case, path, core, seconds)) for _ in range(repeat)]
        of_fio = sorted(us[0] / fio[0] for us, fio in turns)
        (us, mean_us), (fio, fio_us) = (
            (middle([turn[side][0] for turn in turns]), middle([turn[side][1] for turn in turns])) for side in (0, 1)
        )
        yield (
            f"{case.name:38} {us / 1000:9.1f} {mean_us:8.2f} {fio / 1000:8.1f} {fio_us:8.2f} {'':8}"
            f" {middle(of_fio):7.2f} {of_fio[0]:6.2f} .. {of_fio[-1]:<6.2f}"
        )
