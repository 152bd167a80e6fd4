"""What the data of a write costs, beside fio's `refill_buffers`: CPU time of a write less that of a read.

The null backend and fio's null engine move no data, so the difference is what the data costs.
"""

from typing import Final

from ivypy.protocol.counters import Count, ThreadCount
from ivypy.slave.engine._engine import Engine
from tests.support.engine import MS, Drive

from .closed_loop import fio_job, middle

PIECE: Final = 4096
MOST_NS: Final = 500.0  # for each PIECE
SIZES: Final = (4 << 10, 128 << 10)


def ours_ns(path: str, core: int, seconds: float, blocksize: int, fraction_read: float) -> float:
    """CPU time of an I/O at depth 1."""
    engine = Engine("null", [core])
    try:
        step = Drive(engine)
        lun = step.lun(path, writable=True)
        step.create(0, lun, iops=-1.0, maxtags=1, blocksize=blocksize, fraction_read=fraction_read)
        step.go([0], int(seconds * 1000 / 4) * MS)
        engine.stop(4)
        step.finish()
    finally:
        engine.close(5.0)
    measured = step.results[1:]  # the first one is the warm-up
    return sum(r.thread(ThreadCount.CPU_TIME) for r in measured) / sum(r.total(Count.COMPLETED) for r in measured)


def fio_ns(core: int, seconds: float, blocksize: int, how: str) -> float:
    words = ["--ioengine=null", "--size=1g", f"--bs={blocksize}", f"--cpus_allowed={core}", f"--runtime={seconds}"]
    told = fio_job([*words, f"--rw={how}", "--refill_buffers"])
    return told["busy"] / told["iops"] * 1e9


def rows(path: str, core: int, seconds: float, repeat: int) -> str:
    return "\n".join(row(path, core, seconds, repeat, size) for size in SIZES)


def row(path: str, core: int, seconds: float, repeat: int, blocksize: int) -> str:
    pieces = blocksize / PIECE
    ours, fio = [], []
    for _ in range(repeat):
        read, write = (ours_ns(path, core, seconds, blocksize, fraction_read) for fraction_read in (1.0, 0.0))
        ours.append((write - read) / pieces)
        read, write = (fio_ns(core, seconds, blocksize, how) for how in ("randread", "randwrite"))
        fio.append((write - read) / pieces)
    verdict = "met" if middle(ours) <= MOST_NS else "NOT MET"
    return (
        f"written data, {blocksize >> 10} KiB: {middle(ours):.0f} ns per 4 KiB ({min(ours):.0f} .. {max(ours):.0f}),"
        f" fio refill_buffers {middle(fio):.0f} ({min(fio):.0f} .. {max(fio):.0f}); goal at most {MOST_NS:.0f} "
        f" {verdict}"
    )
