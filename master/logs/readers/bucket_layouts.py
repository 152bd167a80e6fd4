"""The bucket layouts of the logs, all of one family: log-linear, 64 buckets per power of two.

Rule: a layout is a unit (fio 2 counted microseconds, fio 3 and ivypy nanoseconds), a number of groups of 64
buckets, and a coarseness C, which merges 2^C neighbours. It follows from the number of columns. Layouts of one
unit merge exactly, by coarsening the finer one; layouts of different units do not merge at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ....protocol import histogram

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PER_GROUP = histogram.PER_GROUP
MAX_COARSENESS = 6
NS_PER_UNIT = {"ns": 1, "us": 1000}

# fio's groups: 29 since 2.99 (nanoseconds), 19 before (microseconds). A recompiled fio 2 had 20 to 26.
_FIO_3, _FIO_2, _RECOMPILED_2 = 29, 19, range(20, 27)
_LARGEST_GROUPS = 57  # the edges of more groups do not fit in 63 bits


@dataclass(frozen=True)
class Layout:
    """`unit_ns` 1 or 1000; `groups` of 64 fine buckets; 2**`coarseness` of them make one bucket."""

    unit_ns: int
    groups: int
    coarseness: int = 0
    open_ended: bool = True  # the last bucket also holds everything above it

    @property
    def buckets(self) -> int:
        return (self.groups * PER_GROUP) >> self.coarseness

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """buckets + 1 edges in ns: bucket i holds [edges[i], edges[i+1])."""
        import numpy as np

        fine = np.array([histogram.lower_edge(i) for i in range(self.groups * PER_GROUP + 1)], np.int64)
        return fine[:: 1 << self.coarseness] * self.unit_ns

    @cached_property
    def middles(self) -> NDArray[np.float64]:
        """The value that stands for a bucket, ns: its middle; a fine bucket of one unit is that unit, as in fio.

        ivypy's middle is that of the whole nanoseconds that the bucket holds, half a nanosecond below fio's.
        """
        import numpy as np

        low, high = self.edges[:-1], self.edges[1:]
        if not self.open_ended:
            return (low + high - self.unit_ns) / 2
        return np.where(high - low == self.unit_ns, low, (low + high) / 2)

    @property
    def unit(self) -> str:
        return "us" if self.unit_ns == 1000 else "ns"

    def __str__(self) -> str:
        return f"{self.buckets} buckets of {self.unit} (coarseness {self.coarseness})"

    def merges_with(self, other: Layout) -> bool:
        return self.unit_ns == other.unit_ns

    def merged(self, other: Layout) -> Layout:
        """The finest layout that both can be turned into."""
        return Layout(self.unit_ns, max(self.groups, other.groups), max(self.coarseness, other.coarseness))


IVYPY = Layout(unit_ns=1, groups=histogram.GROUPS)
FIO_3 = Layout(unit_ns=1, groups=_FIO_3)
FIO_2 = Layout(unit_ns=1000, groups=_FIO_2)


@dataclass(frozen=True, slots=True)
class LayoutHints:
    """The layout as the user gives it; None: derived from the columns."""

    unit: str | None = None  # "ns" or "us"
    groups: int | None = None
    coarseness: int | None = None


def layout_of(buckets: int, hints: LayoutHints, recompiled: bool = False) -> Layout | None:
    """The layout of a log with that many bucket columns; None where there is none.

    fio's own group counts at every coarseness, and those of a recompiled fio 2; with `recompiled`, any other, but
    uncoarsened: few enough columns fit some group count at some coarseness whatever they are.
    """
    usual = [_FIO_3, _FIO_2, *_RECOMPILED_2]
    tried = [g for g in range(2, _LARGEST_GROUPS) if g not in usual] if recompiled else usual
    for groups in [hints.groups] if hints.groups else tried:
        for coarseness in range(MAX_COARSENESS + 1):
            if hints.coarseness not in (None, coarseness) or groups * PER_GROUP != buckets << coarseness:
                continue
            if recompiled and coarseness and not hints.groups and hints.coarseness is None:
                continue
            unit = hints.unit or ("us" if groups < _FIO_3 else "ns")
            return Layout(NS_PER_UNIT[unit], groups, coarseness)
    return None


def lead_and_layout(columns: int, hints: LayoutHints) -> tuple[int, Layout] | None:
    """How many columns precede the buckets (3, or 2 without a block size), and the layout of the rest."""
    for recompiled in (False, True):
        for lead in (3, 2):
            if layout := layout_of(columns - lead, hints, recompiled):
                return lead, layout
    return None
