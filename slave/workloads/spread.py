"""One workload instance over several threads: `spread`.

Rule: pure. The engine knows parts, each an instance of its own on one thread; everybody else knows the whole. A part
has its share of the tags, and of the rate in proportion. The first has the instance's own number, so that an instance
on one thread is what it would be without any of this; further ones are numbered from FIRST_FURTHER on.

With `auto` the first part can take all tags, and does while one thread is enough: while the rate is one that a thread
sustains, or the tags are too few to share. So edits of a step, and its control, move it between one thread and many.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...protocol.counters import Count
from ...protocol.parameters import AUTO, ENDLESS, MAX, Iosequencer, Parameters
from ..host.cpu_usage import LostTime
from .thread_assignment import LEAST_TAGS, even_shares

FIRST_FURTHER: Final = 1 << 17  # numbers of instances end here
ONE_THREAD_IOPS: Final = 100_000  # that any core sustains: below a third of what a slow one does


@dataclass(frozen=True)
class InstancePart:
    number: int  # the engine's
    thread: int
    ceiling: int  # tags


def threads_wanted(parameters: Parameters, ceiling: int, fair: int) -> int:
    """How many threads an instance is to be dealt over, of which `fair` are its fair part of the host's threads, if it
    may have up to `ceiling` tags. A sequential stream, a share of such, or a random map, is one order of addresses; an
    end by volume is one count, and so is a share of the I/Os of its LUN: so one thread drives it."""
    is_ordered = parameters.iosequencer is Iosequencer.SEQUENTIAL or parameters.random_map or parameters.sequential > 0
    if is_ordered or parameters.until != ENDLESS or parameters.skew > 0:
        return 1
    return max(1, min(fair, ceiling // LEAST_TAGS)) if parameters.spread == AUTO else parameters.spread


def busy_parts(parameters: Parameters, parts: int) -> int:
    """How many of an instance's parts drive it with these parameters; the others are paused."""
    if parameters.spread != AUTO:
        return parts
    if parameters.iops != MAX and float(parameters.iops) <= ONE_THREAD_IOPS:
        return 1
    return max(1, min(parts, parameters.maxtags // LEAST_TAGS))


def driving_parts(parameters: Parameters, parts: int) -> int:
    """How many of an instance's parts, the first ones, have a tag."""
    return min(busy_parts(parameters, parts), parameters.maxtags)


def split_parameters(parameters: Parameters, parts: int) -> list[Parameters]:
    """The parameters of each part. One without a tag, since there are fewer tags than parts, is paused."""
    if parts == 1:
        return [parameters]
    made = []
    busy = busy_parts(parameters, parts)
    for tags in [*even_shares(parameters.maxtags, busy), *[0] * (parts - busy)]:
        iops = parameters.iops if parameters.iops == MAX else float(parameters.iops) * (tags / parameters.maxtags)
        made.append(replace(parameters, maxtags=max(tags, 1), iops=iops if tags else 0.0))
    return made


@dataclass(frozen=True)
class EngineOrder:
    """A step's instances, and the engine's order: their first parts, then all further ones."""

    instances: int
    engine: tuple[int, ...]  # numbers
    owners: tuple[int, ...]  # of each further part: its instance's place
    number_of: Mapping[int, int]  # a further part's number -> its instance's

    @classmethod
    def of(cls, numbers: Sequence[int], parts: Mapping[int, Sequence[InstancePart]]) -> "EngineOrder":
        further = [(part.number, place) for place, number in enumerate(numbers) for part in parts[number][1:]]
        return cls(
            instances=len(numbers),
            engine=(*numbers, *(part for part, _ in further)),
            owners=tuple(place for _, place in further),
            number_of={part: numbers[place] for part, place in further},
        )

    def numbers(self) -> bytes:
        """The numbers of the instances that the engine drives, in its order, packed."""
        return array("I", self.engine).tobytes()

    def classes(self, of: Sequence[int]) -> bytes:
        """Merge classes of the engine's order, from those of the instances."""
        return array("I", [*of, *(of[place] for place in self.owners)]).tobytes()

    def rows(self) -> bytes:
        """The row of counts of each in the engine's order: parts of an instance share one."""
        return array("I", [*range(self.instances), *self.owners]).tobytes()

    def faults(self, collected: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        """(number, errno, count) by instance."""
        counts: dict[tuple[int, int], int] = {}
        for number, error, count in collected:
            key = self.number_of.get(number, number), error
            counts[key] = counts.get(key, 0) + count
        return [(number, error, count) for (number, error), count in counts.items()]


def with_lost_time(
    counts: bytes, threads: Sequence[Sequence[int]], lost: Mapping[int, LostTime], length_ns: int
) -> bytes:
    """`counts` of a subinterval of that length, with the time for which others kept the `threads` of each instance from
    running: their mean."""
    rows, width = array("q", counts), len(Count)
    for place, of_instance in enumerate(threads):
        of_threads = [lost.get(thread, LostTime()) for thread in of_instance]
        percent_ns = length_ns / len(of_threads) / 100
        rows[place * width + Count.KEPT_NS] = round(sum(one.kept for one in of_threads) * percent_ns)
        rows[place * width + Count.STOLEN_NS] = round(sum(one.stolen for one in of_threads) * percent_ns)
    return rows.tobytes()
