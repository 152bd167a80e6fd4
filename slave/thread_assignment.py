"""Which workload threads drive which instance.

Rule: pure. An instance goes to threads on its LUN's NUMA node, where there are such; where a node is unknown, or there
is only one, nodes change nothing. Among those, every thread gets its even share of tags, since a tag is what costs a
thread time; where tags are equal, of instances. An instance stays with its threads for as long as it exists.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..protocol.older_python import zip_strict

LEAST_TAGS: Final = 8  # of each part under `spread: auto`; with few tags, a thread's calls carry few I/Os each


@dataclass(frozen=True)
class ThreadLoad:
    """What a thread already drives, and where it runs."""

    tags: int = 0
    instances: int = 0  # or parts of them
    node: int | None = None  # NUMA node of its core; None: not known, or it is not pinned

    def plus(self, tags: int) -> ThreadLoad:
        return ThreadLoad(self.tags + tags, self.instances + 1, self.node)


@dataclass(frozen=True)
class InstanceToAssign:
    """An instance that is to be assigned to threads."""

    tags: int
    node: int | None = None  # its LUN's
    spread: int = 1  # over so many threads, at most one for each tag
    first_whole: bool = False  # its first part can take all its tags

    def shares(self, parts: int) -> list[int]:
        """The most tags of each of its parts."""
        return whole_and_shares(self.tags, parts) if self.first_whole else even_shares(self.tags, parts)


def assign_threads(loads: Sequence[ThreadLoad], wanted: Sequence[InstanceToAssign]) -> list[tuple[int, ...]]:
    """The threads of each new instance, in the order of `wanted`. The largest are assigned first."""
    now = list(loads)
    chosen: list[tuple[int, ...]] = [()] * len(wanted)
    for i in sorted(range(len(wanted)), key=lambda i: -wanted[i].tags):
        one = wanted[i]
        near = [one.node is not None and load.node == one.node for load in now]
        keys = [(not near[t], load.tags, load.instances, t) for t, load in enumerate(now)]
        count = max(1, min(one.spread, one.tags, len(now)))
        chosen[i] = tuple(key[-1] for key in heapq.nsmallest(count, keys))
        for thread, tags in zip_strict(chosen[i], one.shares(count)):
            now[thread] = now[thread].plus(tags)
    return chosen


def even_shares(total: int, parts: int) -> list[int]:
    """A whole number in even parts, larger ones first."""
    return [total // parts + (k < total % parts) for k in range(parts)]


def whole_and_shares(total: int, parts: int) -> list[int]:
    """The most tags of parts of which the first drives alone below 2 x LEAST_TAGS, and as many as have LEAST_TAGS each
    share the tags above."""
    most = max(-(-total // parts), LEAST_TAGS + LEAST_TAGS // 2)  # 23 tags are of 2 parts: 12 and 11
    return [total, *[min(total, most)] * (parts - 1)]
