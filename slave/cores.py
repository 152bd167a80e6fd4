"""Which core each workload thread runs on.

Rule: pure. By default (0 threads asked) there is one thread a core, pinned. Where there are four cores or more, core 0
and its sibling are left to the slave itself, to sshd and to interrupts, which the kernel puts there. A number of
threads that was asked for is not pinned: the kernel places them, so that several slaves on one machine do not
all end up on its first core.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

SPARE_FROM: Final = 4  # cores


@dataclass(frozen=True, slots=True)
class Placement:
    threads: tuple[int, ...]  # the core of each workload thread; -1: not pinned
    spared: tuple[int, ...]  # cores that no workload thread runs on; empty: none is spared


def place(threads: int, cores: Sequence[int], siblings: Collection[int]) -> Placement:
    """Where `threads` (0: one per core) run on the `cores` that this process may use.

    `siblings`: core 0 and the logical cores that share its physical one.
    """
    if threads:
        return Placement((-1,) * threads, ())
    spared = tuple(core for core in cores if core in siblings) if len(cores) >= SPARE_FROM else ()
    driving = tuple(core for core in cores if core not in spared)
    return Placement(driving, spared) if driving else Placement(tuple(cores), ())
