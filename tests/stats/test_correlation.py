"""Pearson's r: numpy's, of the pairs that there are, and none where it would say nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.stats.correlation import FEWEST_PAIRS, correlations

NAN = float("nan")
RISING = [1.0, 2, 3, 4, 5, 6, 7, 8]
CASES = [
    ("both rise", RISING, RISING, 1.0, 8),
    ("one rises and one falls", RISING, [*reversed(RISING)], -1.0, 8),
    ("seven pairs are too few", [*RISING[:7], NAN], RISING, None, 7),
    ("gaps of both are left out", [*RISING, NAN, 9], [*RISING, 99, NAN], 1.0, 8),
    ("no variance of the one", [50.0] * 8, RISING, None, 8),
    ("no variance of the other", RISING, [0.1] * 8, None, 8),
    ("nothing at all", [NAN] * 8, RISING, None, 0),
]


@pytest.mark.parametrize(("series", "other", "r", "pairs"), [one[1:] for one in CASES], ids=[one[0] for one in CASES])
def test_correlation_of_hand_made_series(series: list[float], other: list[float], r: float | None, pairs: int) -> None:
    found, count = correlations(np.array([series]).T, np.array(other))
    assert count.tolist() == [pairs]
    assert np.isnan(found[0]) if r is None else found[0] == pytest.approx(r)


@given(st.integers(0, 2**32 - 1), st.integers(FEWEST_PAIRS, 60), st.floats(0, 1), st.floats(-1e5, 1e5))
def test_it_is_that_of_numpy(seed: int, pairs: int, share: float, offset: float) -> None:
    random = np.random.default_rng(seed)
    other = random.standard_normal(pairs)
    series = share * other[:, None] + random.standard_normal((pairs, 3)) + offset
    found, _ = correlations(series, other)
    assert found == pytest.approx(np.corrcoef(series.T, other)[:3, 3], abs=1e-6)
