"""Which instances stand out: rarely any by noise alone, whatever its distribution; those that are slow throughout."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ivypy.master.pages.outliers import FEWEST_SUBINTERVALS, bound, least_on_one_side, stand_out, z_scores


def normal(noise: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return 1 + 0.1 * noise.standard_normal(shape)


def log_normal(noise: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return np.exp(0.3 * noise.standard_normal(shape))


def students_t(freedom: int) -> Callable[[np.random.Generator, tuple[int, ...]], Any]:
    return lambda noise, shape: np.maximum(1 + 0.1 * noise.standard_t(freedom, shape), 0.01)


NOISE = {"normal": normal, "log-normal": log_normal, "t5": students_t(5), "t3": students_t(3)}


def marked(values: Any) -> list[bool]:
    """Of the values of each instance in each subinterval, by their mean."""
    return stand_out(z_scores(values.mean(axis=1).tolist()), [dict(enumerate(one)) for one in values.tolist()])


@pytest.mark.slow
@pytest.mark.parametrize("instances", [4, 24, 200])
@pytest.mark.parametrize("subintervals", [12, 60])
@pytest.mark.parametrize("kind", [*NOISE])
def test_noise_alone_is_rarely_an_outlier(kind: str, subintervals: int, instances: int) -> None:
    """In 1 % of steps at most, with two figures each, also where the noise has heavy tails."""
    noise, steps = np.random.default_rng(8), 200
    shape = (2, instances, subintervals)
    alarms = sum(any(any(marked(one)) for one in 100 * NOISE[kind](noise, shape)) for _ in range(steps))
    assert alarms / steps <= 0.01 + 3 * (0.01 / steps) ** 0.5


@pytest.mark.parametrize("kind", ["normal", "t5"])
def test_one_that_is_a_tenth_slower_is_found(kind: str) -> None:
    """Nearly always where the subintervals spread by 5 % of their mean, mostly by 10 %."""
    for spread, wanted in ((0.5, 49), (1.0, 25)):
        noise, found = np.random.default_rng(9), 0
        for _ in range(50):
            values = 1 + spread * (NOISE[kind](noise, (24, 60)) - 1)
            values[7] *= 0.9
            found += marked(100 * values)[7]
        assert found >= wanted, spread


def test_one_stall_is_no_outlier_and_a_slow_one_is() -> None:
    values = np.full((8, 30), 100.0) + np.random.default_rng(1).normal(0, 1, (8, 30))
    values[2, 11] = 3000.0
    values[5] *= 0.7
    assert abs(z_scores(values.mean(axis=1).tolist())[2] or 0) > bound(8)
    assert marked(values) == [place == 5 for place in range(8)]


def test_of_few_subintervals_none_is_marked() -> None:
    values = np.full((8, FEWEST_SUBINTERVALS), 100.0) + np.arange(8)[:, None] / 10
    values[5] *= 0.5
    assert marked(values)[5] and not any(marked(values[:, 1:]))


@pytest.mark.slow
@pytest.mark.parametrize("subintervals", [12, 13, 60, 333, 5000])
def test_the_sign_test_has_its_level(subintervals: int) -> None:
    least = least_on_one_side(subintervals, 24)
    assert least is not None
    beyond = stats.binom.sf(least - 1, subintervals, 0.5)
    assert beyond <= 0.01 / (4 * 24) or least == subintervals
    assert stats.binom.sf(least - 2, subintervals, 0.5) > 0.01 / (4 * 24)


def test_tiny_differences_of_paced_instances_are_none() -> None:
    z = z_scores([500.0] * 11 + [500.5])
    assert max(abs(one or 0) for one in z) < 1
