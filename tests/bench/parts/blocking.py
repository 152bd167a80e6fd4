"""A LUN whose submit calls may block beside fast ones, on two threads: dealt alike, and with threads of its own.

What it gains a neighbour where they do block, and what it costs in IOPS where they never do. The two take turns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ivypy.protocol.counters import SERVICES, Count
from ivypy.slave.engine._engine import Engine
from ivypy.slave.workloads.thread_assignment import InstanceToAssign, ThreadLoad, assign_threads
from tests.support import devices
from tests.support.engine import MS, Drive

from .closed_loop import middle
from .one_step import percentile_us

THREADS: Final = 2
FAST: Final = 3  # LUNs beside the one whose submit calls may block
TAGS: Final = 8
BLOCKED_US: Final = 2000
FAST_IOPS: Final = 1000.0
MOST: Final = -1.0  # iops: max


def assigned(alone: bool) -> list[int]:
    """The thread of each LUN: the first is the one whose submit calls may block."""
    wanted = [InstanceToAssign(TAGS, may_block=alone and number == 0) for number in range(1 + FAST)]
    return [threads[0] for threads in assign_threads([ThreadLoad()] * THREADS, wanted)]


@dataclass(frozen=True)
class Turn:
    iops: list[float]  # of each LUN
    p50_us: list[float]  # of its service times
    p99_us: list[float]


def measured(cores: Sequence[int], luns: Sequence[tuple[str, float, int]], alone: bool, seconds: float) -> Turn:
    """`luns`: path, IOPS, tags; the first is the one whose submit calls may block."""
    engine = Engine("libaio", list(cores[-THREADS:]))
    numbers = range(len(luns))
    try:
        step = Drive(engine)
        for number, (path, iops, tags) in enumerate(luns):
            step.create(number, step.lun(path), assigned(alone)[number], iops=iops, maxtags=tags)
        step.go(numbers, int(seconds * 1000 / 2) * MS, classes=numbers)
        engine.stop(2)
        step.finish()
    finally:
        engine.close(5.0)
    result = step.results[1]  # the one before is the warm-up
    p50, p99 = ([percentile_us([result], SERVICES[0], share, number) for number in numbers] for share in (0.5, 0.99))
    return Turn((result.counts[:, Count.COMPLETED] / result.raw.length_ns * 1e9).tolist(), p50, p99)


def lines(head: str, repeat: int, measure: Callable[[bool], Turn], words: Callable[[list[Turn]], str]) -> str:
    found: dict[bool, list[Turn]] = {False: [], True: []}
    for _ in range(repeat):
        for alone, turns in found.items():
            turns.append(measure(alone))
    each = [f"  {'a thread of its own' if alone else 'dealt alike':20} {words(found[alone])}" for alone in found]
    return "\n".join([f"{head}; middle of {repeat} turns", *each])


def neighbours(cores: Sequence[int], fast: str, seconds: float, repeat: int) -> str:
    """The latency of fast LUNs beside one whose submit calls block."""

    def words(turns: list[Turn]) -> str:
        p50 = [middle([turn.p50_us[lun] for turn in turns]) for lun in range(1, 1 + FAST)]
        p99 = [middle([turn.p99_us[lun] for turn in turns]) for lun in range(1, 1 + FAST)]
        return ", ".join(f"p50 {half:.0f} p99 {most:.0f} us" for half, most in zip(p50, p99, strict=True))

    with devices.faultfs(synchronous=True) as slow:
        slow.tell(read_us=BLOCKED_US)
        luns = [(str(slow.image), MOST, 1), *[(fast, FAST_IOPS, TAGS)] * FAST]
        head = f"service times of {FAST} x {fast} at {FAST_IOPS:,.0f} IOPS beside a LUN that blocks {BLOCKED_US:,} us"
        return lines(head, repeat, lambda alone: measured(cores, luns, alone, seconds), words)


def cost(cores: Sequence[int], unblocking: str, fast: str, seconds: float, repeat: int) -> str:
    """The IOPS where the LUN that is taken for one that blocks never does."""

    def words(turns: list[Turn]) -> str:
        first, others = ([sum(turn.iops[of]) for turn in turns] for of in (slice(1), slice(1, None)))
        both = map(sum, zip(first, others, strict=True))
        return f"{middle(first):,.0f} and {middle(others):,.0f} IOPS, {middle([*both]):,.0f} in all"

    luns = [(unblocking, MOST, TAGS), *[(fast, MOST, TAGS)] * FAST]
    head = f"IOPS of {unblocking} (no RWF_NOWAIT, does not block) and {FAST} x {fast}, max, {TAGS} tags each"
    return lines(head, repeat, lambda alone: measured(cores, luns, alone, seconds), words)
