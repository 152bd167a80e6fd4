"""Which hosts control judges by: all that take part, but for one that has been late for too long.

Rule: what a late host did is known later, so nothing is concluded from subintervals without it. But a host may be late
for ever. Where it was not in MOST_WITHOUT subintervals in a row, and not for LEAST_WITHOUT_S, control judges those that
are in; once it is in again, control begins again with all. Rows that rest on the others alone are partial, though what
the host did be in their sums in the end. A host that is silent is lost long before.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from ..rollup.validity import ScopedFinding
from ..verdicts import Finding, Reason
from .decision import Measured

MOST_WITHOUT: Final = 36  # three times what the shortest measurement takes
LEAST_WITHOUT_S: Final = 60.0  # ten times as late as a host may be at all


def most_without(length_s: float) -> int:
    """For so many subintervals of this length in a row control waits for a host that is not in."""
    return max(MOST_WITHOUT, ceil(LEAST_WITHOUT_S / length_s))


@dataclass(frozen=True, slots=True)
class _Span:
    """Subintervals in which control judged the others alone."""

    host: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class LateHosts:
    """State: who takes part, and who of them control does not wait for."""

    part: frozenset[str]
    missed: Mapping[str, int] = field(default_factory=dict)  # who is not in: for how many subintervals in a row
    since: Mapping[str, int] = field(default_factory=dict)  # who is not waited for: the first that was judged so
    newest: int = -1  # the last subinterval that was judged
    over: tuple[_Span, ...] = ()  # of those that came back

    @property
    def judged(self) -> frozenset[str]:
        return self.part.difference(self.since)

    def after(self, number: int, part: frozenset[str], absent: Collection[str], length_s: float) -> "LateHosts":
        """With subinterval `number`, which control decides on; `absent`: those that take part and are not in."""
        missed = {host: self.missed.get(host, 0) + 1 for host in sorted(absent)}
        without = [host for host, count in missed.items() if count > most_without(length_s)]
        if part.issubset(without):  # there is nobody to judge by
            without = []
        over = [one for one in self._spans() if one.host not in without]
        since = {host: self.since.get(host, number) for host in without}
        return LateHosts(part, missed, since, number, (*self.over, *over))

    def findings(self, measured: Measured) -> Iterator[ScopedFinding]:
        """Of a measurement that rests on subintervals that were judged without a host."""
        begin = measured.first if measured.rests_on is None else measured.rests_on
        for span in (*self.over, *self._spans()):
            if span.first <= measured.last and begin <= span.last:
                words = f"{span.host}: control went by the others alone in subintervals {span.first} to {span.last}"
                finding = Finding(Reason.HOST_NOT_AWAITED, words)
                yield ScopedFinding(finding, span.host, since=measured.first, until=measured.last)

    def _spans(self) -> list[_Span]:
        """Of those that are not back."""
        return [_Span(host, first, self.newest) for host, first in self.since.items()]
