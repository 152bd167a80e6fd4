"""Through the page cache, beside fio with io_uring: reads of what it holds, and writes with a flush after so many.

Figures are I/Os per second and mean latency of the middle turn, and the ratio of the IOPS, least to most of the turns
beside it. fio lets completed I/Os wait in its queue at depth; ours reaps after each call, so that only depth 1 compares
latencies.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ivypy.protocol.counters import KINDS, SERVICE, Moment
from ivypy.slave.engine._engine import Engine
from tests.support.engine import MS, Drive

from .closed_loop import REGISTERED, fio_job, middle


@dataclass(frozen=True, slots=True)
class CachedCase:
    name: str
    settings: Mapping[str, Any]
    fio: tuple[str, ...]

    @property
    def writes(self) -> bool:
        return "fraction_read" in self.settings


CASES = (
    CachedCase("cached reads, 1", {"maxtags": 1}, ("--iodepth=1",)),
    CachedCase("cached reads, 32", {"maxtags": 32}, ("--iodepth=32",)),
    CachedCase("cached writes, 1", {"maxtags": 1, "fraction_read": 0.0}, ("--iodepth=1", "--rw=randwrite")),
    CachedCase(
        "a flush each 32 writes, 1",
        {"maxtags": 1, "fraction_read": 0.0, "flush": ("fdatasync", 32)},
        ("--iodepth=1", "--rw=randwrite", "--fdatasync=32"),
    ),
)


def ours(case: CachedCase, path: str, core: int, seconds: float) -> tuple[float, float]:
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
    series = range(SERVICE, SERVICE + KINDS)
    count = sum(result.series(one) for result in measured for one in series)
    total_ns = sum(result.series(one, Moment.SUM) for result in measured for one in series)
    return count / sum(result.raw.length_ns for result in measured) * 1e9, total_ns / count / 1000


def theirs(case: CachedCase, path: str, core: int, seconds: float) -> tuple[float, float]:
    words = ["--ioengine=io_uring", *REGISTERED, f"--cpus_allowed={core}", f"--runtime={seconds}"]
    told = fio_job([*words, f"--filename={path}", "--direct=0", "--invalidate=0", *case.fio])
    return told["iops"], told["mean_us"]


def rows(path: str, core: int, seconds: float, repeat: int) -> Iterator[str]:
    for case in CASES:
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
