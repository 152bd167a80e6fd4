"""The backlog that a load leaves behind when its tags, sizes or addresses are edited: I/Os that fell due before and are
done afterwards. A change of the rate leaves none, because the host discards it.

Rule: such a subinterval is transient. It completes more than its own load, and its response times contain a wait that
the load in force did not cause. It lasts until each edited workload instance has no more due I/Os waiting than are in
flight. Where the backlog no longer shrinks, the step measures with it, and rows say so.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ....protocol.counters import Count
from ...rollup.instances import InstanceKey

Ints = NDArray[np.int64]
Where = NDArray[np.bool_]

LEFT: Final = 0.0025  # of what falls due in a subinterval: so much may wait beside what is in flight
SHRINKS: Final = 0.01  # by less than this share of it in a subinterval, a backlog does not shrink
PATIENCE: Final = 3  # subintervals in which it may do so


@dataclass(slots=True)
class _OpenBacklog:
    """One host's workload instances that have a backlog of the load before."""

    where: Where
    total: int  # at the end of the subinterval before
    stuck: int = 0  # subintervals without less


@dataclass(frozen=True, slots=True)
class EarlierBacklog:
    """A workload instance that is measured with I/Os that fell due before."""

    host: str
    place: int  # in the layout's order
    waiting: int
    since: int  # the first subinterval that is
    until: int | None = None  # the last one


class Backlogs:
    """Holds which instances have a backlog of the load before, and which of them stopped shrinking."""

    def __init__(self) -> None:
        self._open: dict[str, _OpenBacklog] = {}
        self._remaining: dict[InstanceKey, EarlierBacklog] = {}
        self._over: list[EarlierBacklog] = []

    def __bool__(self) -> bool:
        return bool(self._open or self._remaining)

    @property
    def total(self) -> int:
        """Outstanding I/Os of earlier loads at the end of the newest subinterval; 0: none."""
        return sum(backlog.total for backlog in self._open.values())

    def waits(self, host: str) -> bool:
        """Whether the host has a backlog that the step waits for."""
        return host in self._open

    @property
    def waiting(self) -> int:
        """The same, with those that stopped shrinking, as they were when they did."""
        return self.total + sum(one.waiting for one in self._remaining.values())

    @property
    def left(self) -> list[EarlierBacklog]:
        return [*self._over, *self._remaining.values()]

    def only(self, hosts: Iterable[str]) -> None:
        """Forget the backlog of all other hosts."""
        for host in self._open.keys() - set(hosts):
            del self._open[host]

    def seen(self, number: int, host: str, counts: NDArray[Any], edited: Where, retimed: Where, paced: Where) -> None:
        """A closed subinterval of a host; each argument by workload instance, in the layout's order.

        `counts`: (I, Count); `edited`: whose load changed in it, but not its rate; `retimed`: whose rate did; `paced`:
        whose iops is a number.
        """
        backlog = counts[:, Count.BACKLOG]
        waits = (backlog > counts[:, Count.IN_FLIGHT] + LEFT * counts[:, Count.DUE] + 1) & paced
        for key, one in [*self._remaining.items()]:
            if one.host == host and (edited[one.place] or retimed[one.place] or not waits[one.place]):
                self._over.append(replace(self._remaining.pop(key), until=number))
        before = self._open.pop(host, None)
        where = waits & (edited if before is None else edited | (before.where & ~retimed))
        if not where.any():
            return
        now = _OpenBacklog(where, int(backlog[where].sum()))
        if before is not None and not edited.any():
            now.stuck = before.stuck + (now.total > (1 - SHRINKS) * before.total)
        if now.stuck <= PATIENCE:
            self._open[host] = now
            return
        for place in np.flatnonzero(where).tolist():
            self._remaining[host, place] = EarlierBacklog(host, place, int(backlog[place]), number + 1)
