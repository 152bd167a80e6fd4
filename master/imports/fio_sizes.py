"""The sizes of a job's I/Os, by what they do, and the multiples at which they begin.

Rule: as in fio.py. What fio 3.33 draws is its own: `bssplit` before `bsrange` before `bs`; each size is rounded down to
a multiple of the smallest; a range has each multiple equally often, and its end for what would be above it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd
from typing import Final

from ...protocol.parameters import MOST_PARTS, PARAMETERS, Operation
from ..text.mixes import Sizes, Weighted
from ..text.units import format_bytes
from .fio_reader import OptionReader
from .fio_text import WeightedSizes, ends_of_range, least_of_split, split_of_sizes
from .sizes import adding_up, fewer, spaced

PLACE_OF: Final = {Operation.READ: 0, Operation.WRITE: 1, Operation.TRIM: 2}  # in a list like bs=4k,8k,64k
BS: Final = 4096


@dataclass(frozen=True, slots=True)
class DrawnSizes:
    """Of one operation."""

    weighted: Weighted
    least: int  # what fio rounds to, and begins random I/Os at multiples of
    is_whole: bool = True  # whether they are all of fio's sizes

    @property
    def mean(self) -> float:
        return sum(size * share for size, share in self.weighted)

    @property
    def all(self) -> list[int]:
        return [size for size, _ in self.weighted]


class SizesReader(OptionReader):
    """The sizes of a job."""

    def _drawn(self, operation: Operation, most: int = MOST_PARTS) -> DrawnSizes:
        """Those of an operation, `most` at most."""
        place = PLACE_OF[operation]
        undivided: WeightedSizes = ()
        splits = self._each("bssplit", lambda text: split_of_sizes(text, self._size), undivided)
        if splits[place]:
            least = self._each("bssplit", lambda text: least_of_split(text, self._size), BS)[place]
            unit = 1 if self._flag("blocksize_unaligned") else least
            return of_split(splits[place], unit, least, most)
        none: tuple[int, int] | None = None
        ends = self._each("bsrange", lambda text: ends_of_range(text, self._size), none)[place]
        if ends is not None:
            return of_range(*ends, most)
        size = self._each("bs", self._size, BS)[place]
        return DrawnSizes(((size, 1.0),), size)

    def _sized(self) -> str:
        """The option that has the sizes."""
        return next((name for name in ("bssplit", "bsrange") if name in self.section.options), "bs")

    def _checked_sizes(self, operations: Sequence[Operation], unit: int) -> dict[Operation, DrawnSizes]:
        """Of each of these operations; what an I/O cannot have is a fault, and what a plan cannot is named."""
        drawn = {one: self._drawn(one, MOST_PARTS // len(operations)) for one in operations}
        option = self.section.options.get(self._sized())
        high = int(PARAMETERS["blocksize"].high or 0)
        wrong = [size for one in drawn.values() for size in one.all if size % unit or not 1 <= size <= high]
        if wrong:
            of = "" if unit == 1 else f"a multiple of {unit}, "
            self._fault(option, f"{wrong[0]} bytes: an I/O is {of}up to {format_bytes(high)}")
        if not all(one.is_whole for one in drawn.values()):
            why = f"more than {MOST_PARTS} sizes of reads, writes and trims together"
            self._drop(option, why, "the plan has neighbours' mean sizes", matters=True)
        return drawn

    def _least_size(self) -> int:
        """fio's unit for percentages."""
        return max(min(self._drawn(one).least for one in PLACE_OF), 1)

    def _aligned(self, drawn: Mapping[Operation, DrawnSizes]) -> int:
        """Bytes at whose multiples random I/Os begin; 0 where that is the smallest size of each operation."""
        given = self._each("ba", self._size, 0)
        aligns = {one: given[PLACE_OF[one]] or sizes.least for one, sizes in drawn.items()}
        if all(aligns[one] == min(sizes.all) for one, sizes in drawn.items()):
            return 0
        if len(set(aligns.values())) > 1:
            why = "I/Os of a workload have one alignment, whatever they do"
            option = self.section.options.get("ba") or self.section.options[self._sized()]
            self._drop(option, why, "the plan has the least", matters=True)
        return min(aligns.values())

    def _is_aligned_apart(self) -> bool:
        """Whether `ba` is that of no random map: of any direction, used or not."""
        given = self._each("ba", self._size, 0)
        return any(align and align != self._drawn(one).least for one, align in zip(PLACE_OF, given, strict=True))


def of_range(low: int, high: int, most: int) -> DrawnSizes:
    """fio draws from `low` up to `low + high`, rounds down to multiples of `low`, and has no more than `high`."""
    count = high // low  # the multiples of low that fit
    if count > most:
        return DrawnSizes(spaced(low, low, count, most), low, is_whole=False)
    weighted = [(low * times, low / high) for times in range(1, count + 1)]
    return DrawnSizes(adding_up([*weighted, (high, high % low / high)] if high % low else weighted), low)


def of_split(split: WeightedSizes, unit: int, least: int, most: int) -> DrawnSizes:
    """Each size rounded down to a multiple of `unit`."""
    shares: dict[int, float] = {}
    for size, share in split:
        rounded = size // unit * unit
        shares[rounded] = shares.get(rounded, 0.0) + share / 100
    return DrawnSizes(fewer(list(shares.items()), most, unit), least, is_whole=len(shares) <= most)


def plan_sizes(drawn: Mapping[Operation, DrawnSizes]) -> int | Sizes:
    """As a plan has them: one size, several, or those of each operation."""
    each = [one.weighted for one in drawn.values()]
    if len(set(each)) > 1:
        return Sizes((), tuple((operation, one.weighted) for operation, one in drawn.items()))
    return each[0][0][0] if len(each[0]) == 1 else Sizes(each[0])


def common_unit(drawn: Mapping[Operation, DrawnSizes]) -> int:
    """The largest number of bytes that all sizes are multiples of."""
    return reduce(gcd, (size for one in drawn.values() for size in one.all))
