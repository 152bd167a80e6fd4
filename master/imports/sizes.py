"""Sizes of I/Os with their shares, as a plan can have them: so few, and with shares of so few digits."""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from typing import Final

from ..text.mixes import Weighted

_DIGITS: Final = 9  # of a share


def spaced(first: int, step: int, count: int, most: int) -> Weighted:
    """As many sizes, a step from each other, equally often; of more than `most`, the means of neighbours."""
    ends = [count * group // min(count, most) for group in range(min(count, most) + 1)]
    means = [(first + step * round((begin + end - 1) / 2), (end - begin) / count) for begin, end in pairwise(ends)]
    return adding_up(means)


def fewer(weighted: Sequence[tuple[int, float]], most: int, unit: int) -> Weighted:
    """These sizes; of more than `most`, the means of neighbours, in multiples of `unit`."""
    shares: dict[int, float] = {}
    ascending, per_group = sorted(weighted), ceil(len(weighted) / most)
    for begin in range(0, len(ascending), per_group):
        group = ascending[begin : begin + per_group]
        total = sum(share for _, share in group)
        mean = sum(size * share for size, share in group) / total
        rounded = max(round(mean / unit), 1) * unit if per_group > 1 else group[0][0]
        shares[rounded] = shares.get(rounded, 0.0) + total
    return adding_up(list(shares.items()))


def adding_up(weighted: Sequence[tuple[int, float]]) -> Weighted:
    """With shares of few digits; the last has what the others leave of 100%."""
    rounded = [(size, round(share, _DIGITS)) for size, share in weighted]
    rest = round(1 - sum(share for _, share in rounded[:-1]), _DIGITS)
    return (*rounded[:-1], (rounded[-1][0], rest))
