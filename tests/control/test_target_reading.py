"""A probe whose slow I/Os are few is clear where the target is far; scipy has the exact limit."""

from math import inf

import numpy as np
import pytest
from scipy.stats import gamma

from ivypy.master.control.target_reading import _most

ALLOWED = 75.6  # slow I/Os of 7,560 at a p99 that is just the target


@pytest.mark.parametrize(("slow", "error"), [(0.0, 0.0), (4.0, 2.0), (12.0, 6.0), (19.0, 4.0), (30.0, 20.0)])
def test_the_limit_is_poissons_of_bursts(slow: float, error: float) -> None:
    burst = max(4.0, error**2 / slow) if slow else 4.0
    assert _most(slow, error) == pytest.approx(burst * gamma.ppf(0.995, slow / burst + 1), rel=0.02)


def test_many_bursts_are_left_to_the_error() -> None:
    assert _most(20.0, 4.0) == inf and _most(75.6, 8.7) == inf


def test_no_slow_io_of_many_is_surely_below_the_target_and_of_few_is_not() -> None:
    assert _most(0.0, 0.0) < ALLOWED
    assert _most(0.0, 0.0) > 20.0


def test_rare_bursts_pass_a_target_that_they_do_not_meet_in_one_of_two_hundred() -> None:
    """Bursts of four, as many on average as a p99 at the target has."""
    random = np.random.default_rng(7)
    bursts = random.poisson(ALLOWED / 4.0, 20_000)
    passed = sum(_most(4.0 * one, 4.0 * float(one) ** 0.5) <= ALLOWED for one in bursts)
    assert passed <= 0.005 * len(bursts) + 3 * (0.005 * len(bursts)) ** 0.5
