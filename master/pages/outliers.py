"""Which rollup instances differ from the others: robust z-scores, with a bound that noise alone rarely passes.

    z = ln(x / median) / scale,    scale = 1.4826 x median(|ln(x / median)|), but at least LEAST_SCALE

Median and median deviation are those of the instances themselves, so that one bad instance does not hide itself.
Logarithms, since rates and latencies spread by factors. A deviation below LEAST_SCALE is what no user would call one.
"""

from bisect import bisect
from collections.abc import Sequence
from math import log
from typing import Final

import numpy as np

LEAST_SCALE: Final = 0.005
FEWEST: Final = 4  # instances; fewer have no median worth the name
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
