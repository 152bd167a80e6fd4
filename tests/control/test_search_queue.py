"""Searches on queues whose law is known: the interval holds the true load as often as it says, and is narrow."""

import numpy as np
import pytest

from ivypy.master.control.search import Find
from ivypy.master.stats.crossing import Crossing
from tests.support.control_plants import simulate
from tests.support.control_specs import TOLERANCE, find_spec
from tests.support.queue_plant import P99, QueuePlant, rate_with

# Servers, seconds of service, target in seconds: the truth is 1,456, 1,750, 1,079, 1,377, 3,653, 6,696 and 5,955 IOPS.
LAWS = [
    (4, 0.002, 0.0115), (4, 0.002, 0.02), (1, 0.0005, 0.005), (2, 0.001, 0.008), (16, 0.004, 0.022),
    (8, 0.001, 0.0055), (32, 0.005, 0.025),
]  # fmt: skip
WITHIN_S = 180.0
CHANCE = 2.5  # standard errors that few seeds may be off


def searched(seed: int, servers: int, service_s: float, target_s: float) -> Crossing:
    spec = find_spec(P99, target_s * 1e6, resolution=0.05, longest_probe=30, within_s=WITHIN_S)
    trace = simulate(QueuePlant(seed, servers, service_s), Find(spec, TOLERANCE, settle=2), 1000)
    assert isinstance(trace.state, Find) and trace.seen[-1].end_s <= WITHIN_S
    estimate = trace.state.estimate()
    assert estimate is not None
    return estimate.crossing


def check_law(servers: int, service_s: float, target_s: float, seeds: range, widest: float) -> None:
    truth = rate_with(servers, service_s, 0.99, target_s)
    intervals = [searched(seed, servers, service_s, target_s) for seed in seeds]
    held = sum(one.low <= truth <= one.high for one in intervals)
    allowed = CHANCE * (0.95 * 0.05 * len(intervals)) ** 0.5
    assert held >= 0.95 * len(intervals) - allowed, held
    assert np.median([one.width for one in intervals]) <= widest


@pytest.mark.slow
def test_a_search_on_a_queue_holds_the_true_load() -> None:
    check_law(*LAWS[0], range(3), 0.1)


@pytest.mark.long
@pytest.mark.parametrize("law", LAWS)
def test_law_the_interval_holds_the_true_load(law: tuple[int, float, float]) -> None:
    check_law(*law, range(100), 0.085)
