"""A long step does not grow: memory and open files, on simulated hosts and simulated time."""

import pytest

from tests.bench.soak import PLAN, soaked

SUBINTERVALS = 5000


@pytest.mark.long
@pytest.mark.parametrize(
    "step", ["measure: 5000s", "measure: { metric: overall_service_us_mean, accuracy: 0.1%, timeout: 5000s }"]
)
def test_a_long_step_does_not_grow(step: str) -> None:
    text = PLAN.format(hosts=2, luns=2, iops=500, length=1, step=step)
    grown, same_files = soaked(text, 2, SUBINTERVALS // 50).flat()
    assert grown < 0.05 and same_files
