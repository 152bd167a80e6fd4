"""Workload instances that end by volume (`until`): how far they are, and which have ended.

Rule: a subinterval in which the last of them ended is as long as they ran: all its I/O lies before their end, so its
rates are exact.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import Count
from ..verdicts import Reason
from .figures import Figures
from .host_cpu import HostCpu
from .merge import MergedSubinterval, merged_rates, presence
from .metrics import column
from .parameters_in_force import Settings
from .validity_case import Case, Rows, each

APART: Final = 0.05  # of the measured time: so far apart instances may end without a note
LONG_AGO: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Volumes:
    """The instances of a closed subinterval that end by volume, as they were at its end."""

    left: NDArray[np.float64]  # (N,) share that is not submitted
    ended_ns: NDArray[np.int64]  # (N,) for how long each has ended; 0: it has not
    only: bool  # the step has no other instances that are driven
    length_ns: int  # the least of a host's results: an end that is longer ago was in an earlier subinterval

    @cached_property
    def ended(self) -> int:
        """How many have."""
        return int((self.ended_ns > 0).sum())

    @property
    def all_ended(self) -> bool:
        return self.ended == len(self.ended_ns)

    @property
    def since_ns(self) -> int:
        """For how long all have ended; 0: they have not."""
        return int(self.ended_ns.min()) if self.all_ended else 0

    @property
    def ended_before(self) -> bool:
        """All had ended before this subinterval, so a host's result of the last end came late."""
        return self.since_ns >= self.length_ns > 0

    @property
    def most_left(self) -> float:
        """The share that is not submitted of the one that is least far."""
        return float(self.left.max())


def volumes_of(closed: MergedSubinterval, settings: Settings) -> Volumes | None:
    """Of the hosts that take part; None where no instance ends by volume. One whose host is not in has not ended."""
    if not settings.until:
        return None
    layout = closed.layout
    amounts = np.array(
        [
            settings.until[host, number].amount if (host, number) in settings.until else 0
            for host in layout.hosts
            for number in layout.numbers[host]
        ],
        np.int64,
    )
    named = amounts > 0
    known = closed.known_instances()[named]
    left = np.where(known, closed.counts[named, Count.LEFT] / amounts[named], 1.0)
    ended_ns = np.where(known, closed.counts[named, Count.ENDED_NS], 0)
    lengths_ns = closed.length_ns[closed.length_ns > 0]
    return Volumes(left, ended_ns, not settings.endless, int(lengths_ns.min(initial=np.iinfo(np.int64).max)))


def ended_apart(case: Case) -> Rows:
    """Find rows of which instances ended well before the last of all. Where all of a row's did, its rate is over more
    than their time: the rate until then is in the detail."""
    measurement, layout = case.measurement, case.measurement.layout
    ends = layout.of_instances(case.settings.until)
    if not ends.any():
        return
    ended_ns = measurement.ended_ns - int(measurement.ended_ns[ends].min())  # before the last did, or so far
    driven = ends | (measurement.account.due > 0)
    first_ns = layout.over_rows(np.where(ends, ended_ns, 0), np.maximum)
    all_ns = layout.over_rows(np.where(ends, ended_ns, np.where(driven, 0, LONG_AGO)), np.minimum)
    length_s, iops = measurement.merged.presence.length_s, column(case.figures, "overall_iops")

    def detail(row: int) -> str:
        idle_s = float(all_ns[row]) / 1e9
        if idle_s <= APART * length_s[row]:
            return f"the first {first_ns[row] / 1e9:.3g} s before the last"
        before = f"all {idle_s:.3g} s before the measurement did"
        driven_s = length_s[row] - idle_s
        return f"{before}: {iops[row] * length_s[row] / driven_s:.4g} IOPS until then" if driven_s > 0 else before

    yield from each(first_ns > APART * length_s * 1e9, Reason.ENDED_APART, detail)


def until_the_end(closed: MergedSubinterval, volumes: Volumes | None) -> MergedSubinterval:
    """The subinterval without the time after the end of all that was driven, if that lies in it."""
    if volumes is None or not volumes.only or volumes.since_ns == 0 or volumes.ended_before:
        return closed
    length_ns = np.where(closed.length_ns > 0, closed.length_ns - volumes.since_ns, 0)
    results = {
        host: replace(result, length_ns=int(length_ns[closed.layout.position[host]]))
        for host, result in closed.results.items()
    }
    merged = closed.merged
    length_s = presence(closed.layout, length_ns, np.zeros((len(length_ns), len(HostCpu)))).length_s
    merged = replace(
        merged,
        rates=merged_rates(closed.layout, closed.class_io, length_ns),
        presence=replace(merged.presence, length_s=length_s),
    )
    figures = Figures(merged, np.ones(len(merged.counts), bool))
    return replace(closed, merged=merged, figures=figures, results=results, length_ns=length_ns)
