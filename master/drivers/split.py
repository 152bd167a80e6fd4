"""How many driver processes a run has, and which hosts each of them holds.

Rule: pure. The controller drives few hosts itself: each process more is one more thing that can fail.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeVar

ALONE: Final = 300  # hosts that the controller drives itself

Host = TypeVar("Host")


def processes_for(hosts: int, cores: int) -> int:
    """Driver processes for so many hosts on a controller with so many cores; 0: the controller drives them itself."""
    if hosts <= ALONE or cores < 2:
        return 0
    return min(cores, -(-hosts // ALONE))


def even_shares(hosts: Sequence[Host], processes: int) -> list[list[Host]]:
    """The hosts of each process: neighbours together, and of sizes that differ by at most one."""
    size, more = divmod(len(hosts), processes)
    ends = [size * number + min(number, more) for number in range(processes + 1)]
    return [list(hosts[start:end]) for start, end in pairwise(ends)]
