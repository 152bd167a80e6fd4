"""Which workload threads drive which instance.

Rule: pure. A submit call that blocks delays everything else on its thread. So where there are at least two threads,
instances whose submit calls may block have threads of their own, as many as their share of all instances, and the
other threads drive the others. Within its kind, an instance goes to threads on its LUN's NUMA node, where there are
such; where a node is unknown, or there is only one, nodes change nothing. Among those, every thread gets its even share
of tags, since a tag is what costs a thread time; where tags are equal, of instances. Instances that are tied to each
other, by their shares of a LUN, have one thread. An instance stays with its threads for as long as it exists.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ...protocol.older_python import zip_strict

NONE_TIED: Final[Mapping[str, int]] = MappingProxyType({})
LEAST_TAGS: Final = 8  # of each part under `spread: auto`; with few tags, a thread's calls carry few I/Os each


@dataclass(frozen=True)
class ThreadLoad:
    """The load that a thread already drives, and where it runs."""

    tags: int = 0
    instances: int = 0  # or parts of them
    node: int | None = None  # NUMA node of its core; None: not known, or it is not pinned
    blocking: int = 0  # of `instances`: those whose submit calls may block

    @property
    def others(self) -> int:
        """Instances, or parts of them, whose submit calls do not block."""
        return self.instances - self.blocking

    def plus(self, tags: int, may_block: bool = False) -> ThreadLoad:
        return ThreadLoad(self.tags + tags, self.instances + 1, self.node, self.blocking + may_block)


@dataclass(frozen=True)
class InstanceToAssign:
    """An instance that is to be assigned to threads."""

    tags: int
    node: int | None = None  # its LUN's
    spread: int = 1  # over so many threads, at most one for each tag
    first_whole: bool = False  # its first part can take all its tags
    may_block: bool = False  # its submit calls
    tied_to: str = ""  # one thread drives all of these

    def shares(self, parts: int) -> list[int]:
        """The most tags of each of its parts."""
        return whole_and_shares(self.tags, parts) if self.first_whole else even_shares(self.tags, parts)


def assign_threads(
    loads: Sequence[ThreadLoad], wanted: Sequence[InstanceToAssign], tied: Mapping[str, int] = NONE_TIED
) -> list[tuple[int, ...]]:
    """The threads of each new instance, in the order of `wanted`. The largest are assigned first.

    `tied`: the thread that those which are tied to each other have already.
    """
    now, thread_of = list(loads), dict(tied)
    for_blocking, for_others = split_threads(loads, wanted)
    chosen: list[tuple[int, ...]] = [()] * len(wanted)
    for i in sorted(range(len(wanted)), key=lambda i: -wanted[i].tags):
        instance = wanted[i]
        threads = for_blocking if instance.may_block else for_others
        near = [instance.node is not None and load.node == instance.node for load in now]
        keys = [(not near[t], now[t].tags, now[t].instances, t) for t in threads]
        count = max(1, min(instance.spread, instance.tags, len(threads)))
        chosen[i] = tuple(key[-1] for key in heapq.nsmallest(count, keys))
        if instance.tied_to:
            chosen[i] = (thread_of.setdefault(instance.tied_to, chosen[i][0]),)
            count = 1
        for thread, tags in zip_strict(chosen[i], instance.shares(count)):
            now[thread] = now[thread].plus(tags, instance.may_block)
    return chosen


def split_threads(
    loads: Sequence[ThreadLoad], wanted: Sequence[InstanceToAssign]
) -> tuple[Sequence[int], Sequence[int]]:
    """(the threads for new instances whose submit calls may block, those for the other ones), both in rising order.

    They share no thread where there are both kinds and at least two threads. A thread keeps the kind that it has,
    unless all threads have the same.
    """
    every = range(len(loads))
    blocking = sum(load.blocking for load in loads) + sum(one.may_block for one in wanted)
    instances = sum(load.instances for load in loads) + len(wanted)
    if len(loads) < 2 or blocking in (0, instances):
        return every, every
    count = _threads_for_blocking(loads, blocking, instances)
    spaced = {(2 * i + 1) * len(loads) // (2 * count) for i in range(count)}  # over all nodes: their cores are in order
    own = sorted(every, key=lambda t: (_distance_from_blocking(loads[t]), t not in spaced, t))[:count]
    return sorted(own), [t for t in every if t not in own]


def _threads_for_blocking(loads: Sequence[ThreadLoad], blocking: int, instances: int) -> int:
    """Their share of the threads, and at least one, but not all; also those that are theirs already, and no thread
    that is the others' already."""
    share = (2 * len(loads) * blocking + instances) // (2 * instances)
    theirs = sum(load.blocking > 0 and not load.others for load in loads)
    of_others = sum(load.others > 0 and not load.blocking for load in loads)
    return max(1, min(max(share, theirs), len(loads) - of_others, len(loads) - 1))


def _distance_from_blocking(load: ThreadLoad) -> int:
    """0: a thread that drives only instances that may block; 1: none; 2: both kinds; 3: only others."""
    if load.others:
        return 2 if load.blocking else 3
    return 0 if load.blocking else 1


def even_shares(total: int, parts: int) -> list[int]:
    """A whole number in even parts, larger ones first."""
    return [total // parts + (k < total % parts) for k in range(parts)]


def whole_and_shares(total: int, parts: int) -> list[int]:
    """The most tags of parts of which the first drives alone below 2 x LEAST_TAGS, and as many as have LEAST_TAGS each
    share the tags above."""
    most = max(-(-total // parts), LEAST_TAGS + LEAST_TAGS // 2)  # 23 tags are of 2 parts: 12 and 11
    return [total, *[min(total, most)] * (parts - 1)]
