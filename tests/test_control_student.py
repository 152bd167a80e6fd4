"""Student's t against scipy, at any confidence and any degrees of freedom."""

import pytest
from scipy import stats

from ivypy.master.rollup.statistics import t_beyond, t_quantile


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.95, 0.973, 0.99, 0.998, 0.9999, 0.9999999])
@pytest.mark.parametrize("df", [0.7, 1, 2, 3, 4.5, 11, 19, 30, 31, 40, 179.3, 5000, 1e6])
def test_quantile_equals_scipy(confidence: float, df: float) -> None:
    assert t_quantile(confidence, df) == pytest.approx(stats.t.isf((1 - confidence) / 2, df), rel=5e-9)


@pytest.mark.parametrize("t", [0.0, 1e-6, 0.3, 2.0, 12.7, 63.0, 1e4])
@pytest.mark.parametrize("df", [1, 5, 30, 300])
def test_tail_equals_scipy(t: float, df: float) -> None:
    assert t_beyond(t, df) == pytest.approx(stats.t.sf(t, df), rel=1e-9, abs=1e-300)


def test_two_values_need_the_famous_12_706() -> None:
    """The ancestor read the row below: 4.303."""
    assert t_quantile(0.95, 1) == pytest.approx(12.7062, abs=1e-4)


def test_no_freedom_is_no_interval() -> None:
    assert t_quantile(0.95, 0) == float("inf")


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 95.0])
def test_a_confidence_outside_0_to_1_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        t_quantile(confidence, 5)
