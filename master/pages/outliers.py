"""Which rollup instances differ from the others: far from them over the measurement, and throughout it.

    z = ln(x / median) / scale,    scale = 1.4826 x median(|ln(x / median)|), but at least LEAST_SCALE
    an outlier:  |z| > bound(instances),  and on the same side of the subinterval's median in at least
                 least_on_one_side(subintervals, instances) of the subintervals

Median and median deviation are those of the instances themselves, so that one bad instance does not hide itself.
Logarithms, since rates and latencies spread by factors. A deviation below LEAST_SCALE is what no user would call one.
The second condition is a sign test: one long stall moves a mean far, however short it was, and moves few subintervals.
It holds for any distribution, as far as the subintervals are independent.
"""

from bisect import bisect
from collections.abc import Mapping, Sequence
from math import comb, log
from typing import Final

import numpy as np

LEAST_SCALE: Final = 0.005
FEWEST: Final = 4  # instances; fewer have no median worth the name
FEWEST_SUBINTERVALS: Final = 12  # of fewer, noise alone is often on one side in all
STEPS_PER_ALARM: Final = 100  # without any difference, by the sign test alone
_FIGURES: Final = 2  # that are looked at: IOPS and latency
_NORMAL: Final = 1.4826  # median deviation of a normal distribution, as a standard deviation

# (instances, z that the farthest of so many normal values passes in 0.5 % of cases): two figures are looked at, IOPS
# and latency, so that 1 % of steps without any difference have a mark. Odd numbers, which have the larger ones. By
# simulation; tests/pages does it again.
_BOUNDS: Final = (
    (4, 22.7), (5, 26.4), (7, 13.8), (9, 10.1), (11, 8.4), (13, 7.4), (15, 6.8), (17, 6.4), (21, 5.9), (25, 5.55),
    (33, 5.2), (49, 4.85), (65, 4.7), (129, 4.55), (257, 4.5), (1001, 4.65), (4001, 4.9),
)  # fmt: skip


def bound(instances: int) -> float:
    """Beyond this z an instance is an outlier; that of the next smaller number of the table, or the larger of both."""
    place = bisect([n for n, _ in _BOUNDS], instances)
    return max(z for _, z in _BOUNDS[max(place - 1, 0) : place + 1])


def z_scores(values: Sequence[float | None]) -> list[float | None]:
    """One for each value; None where it is None or not above 0, or where there are too few."""
    logs = [log(one) if one is not None and one > 0 else None for one in values]
    known = [one for one in logs if one is not None]
    if len(known) < FEWEST:
        return [None] * len(values)
    middle = float(np.median(known))
    scale = max(_NORMAL * float(np.median([abs(one - middle) for one in known])), LEAST_SCALE)
    return [None if one is None else (one - middle) / scale for one in logs]


def least_on_one_side(subintervals: int, instances: int) -> int | None:
    """How many subintervals have to be on one side; all, where even that is less than the test wants. None: too few."""
    if subintervals < FEWEST_SUBINTERVALS:
        return None
    allowed = 2**subintervals // (STEPS_PER_ALARM * 2 * _FIGURES * max(instances, 1))  # two sides
    ways = 0
    for least in range(subintervals, 0, -1):
        ways += comb(subintervals, least)
        if ways > allowed:
            return min(least + 1, subintervals)
    return subintervals


def stand_out(z: Sequence[float | None], values: Sequence[Mapping[int, float]]) -> list[bool]:
    """Which are outliers, by their z-scores, and by their values in subintervals, each by its number."""
    beyond, number = bound(len(z)), len(z)
    far = [one is not None and abs(one) > beyond for one in z]
    if not any(far):
        return far
    columns: dict[int, list[float]] = {}
    for figures in values:
        for at, value in figures.items():
            columns.setdefault(at, []).append(value)
    medians = {at: float(np.median(column)) for at, column in columns.items() if len(column) >= FEWEST}
    return [
        is_far and _is_throughout(one or 0.0, [(of[at], medians[at]) for at in of if at in medians], number)
        for is_far, one, of in zip(far, z, values, strict=True)
    ]


def _is_throughout(z: float, pairs: Sequence[tuple[float, float]], instances: int) -> bool:
    """`pairs`: of each subinterval the value, and the median of all instances."""
    least = least_on_one_side(len(pairs), instances)
    return least is not None and sum((value - median) * z > 0 for value, median in pairs) >= least
