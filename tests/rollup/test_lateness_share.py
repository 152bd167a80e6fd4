"""Law: what lateness may have done to a percentile is never said to be less than what it did."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ivypy.master.rollup.arrays import Buckets
from ivypy.master.rollup.lateness_share import excess
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.rollup.validity import check_validity
from ivypy.master.rollup.window import Window
from ivypy.master.verdicts import Reason, Severity
from ivypy.protocol.counters import LATENESS, RESPONSE, SERVICE, Count
from ivypy.protocol.histogram import BUCKETS, lower_edges
from ivypy.protocol.parameters import Parameters
from tests.support.rollup import instance, merger_of, rollups_by
from tests.support.rollup_results import HostData, result

Floats = NDArray[np.float64]
MS, S = 10**6, 10**9
EDGES = np.array(lower_edges())
A_BUCKET = 2 / 64  # of a value: how far two histograms' buckets blur a difference


def histogram(*rows_ns: Floats) -> Buckets:
    places = [EDGES[:-1].searchsorted(np.floor(row), "right") - 1 for row in rows_ns]
    return Buckets(0, np.stack([np.bincount(place, minlength=BUCKETS) for place in places]).astype(np.uint64))


def p99(values: Floats) -> float:
    return float(np.sort(values)[-(-len(values) * 99 // 100) - 1])


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    late_share=st.floats(0.0, 0.05),
    late_by=st.floats(0.05, 20.0),  # of the p99 without lateness
    spread=st.floats(0.01, 1.5),
    whom=st.sampled_from(("any", "longest", "shortest")),
    always=st.floats(0.0, 0.5),
)
def test_the_effect_of_lateness_is_never_underestimated(
    seed: int, late_share: float, late_by: float, spread: float, whom: str, always: float
) -> None:
    random = np.random.default_rng(seed)
    honest = 1 * MS * np.exp(spread * random.standard_normal(5000))
    rank = honest.argsort().argsort() / len(honest)
    picked = {"any": random.random(len(honest)), "longest": 1 - rank, "shortest": rank}[whom] < late_share
    lateness = np.where(picked, late_by * p99(honest), 1000.0) + always * 1 * MS
    response = honest + lateness
    did = 1 - p99(honest) / p99(response)
    (said,) = excess(histogram(response), histogram(lateness), 0.99, 0.10)
    assert said >= did - A_BUCKET if did > 0.10 + A_BUCKET else said >= 0
    if not picked.any():  # all as late as each other: exactly so much
        assert said <= max(did + A_BUCKET, 0.10 + A_BUCKET)


def test_lateness_without_effect_is_no_reason() -> None:
    """Late by as much as the p99, but so few; or as many as you like, by so little."""
    random = np.random.default_rng(1)
    honest = random.exponential(1.0 * MS, 100_000)
    few = np.where(random.random(len(honest)) < 0.002, p99(honest), 1000.0)
    little = random.exponential(0.01 * MS, len(honest))
    response = histogram(honest + few, honest + little)
    assert excess(response, histogram(few, little), 0.99, 0.10).tolist() == [0.0, 0.0]


def test_rows_without_a_percentile_are_blank() -> None:
    values = np.full(500, 1.0 * MS)
    assert np.isnan(excess(histogram(values), histogram(values), 0.99, 0.10)).all()


def stalled(seconds: float, rate: int = 200, tags: int = 4, hosts: int = 4, length: int = 12) -> tuple[Floats, Floats]:
    """(response times, lateness) in ns of storage of 20 to 23 ms, where one of `hosts` is frozen for a while. What it
    has in flight is found late, which is no lateness; what fell due meanwhile is late, and waits for one of its tags
    afterwards, which is none either."""
    random = np.random.default_rng(5)
    response, lateness = [], []
    thaw = 5 + seconds
    for host in range(hosts):
        due = np.arange(rate * length) / rate
        service = random.uniform(0.020, 0.023, len(due))
        frozen = (host == 0) & (due > 5) & (due < thaw)
        caught = (host == 0) & (due > 5 - 0.02) & (due <= 5)
        waits = np.where(frozen, (np.cumsum(frozen) - 1) // (tags * 16) * 0.02, 0.0)
        late = np.where(frozen, thaw - due, 20e-6)
        response.append(late + waits + service + np.where(caught, seconds, 0.0))
        lateness.append(late)
    return np.concatenate(response) * S, np.concatenate(lateness) * S


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        (0.0, ""), (0.2, "note"), (0.3, "note"), (0.4, "note"), (0.45, "note"), (0.48, "late"), (0.5, "late"),
        (0.55, "late"), (0.7, "late"),
    ],
)  # fmt: skip
def test_a_host_that_was_frozen_for_a_moment(seconds: float, says: str) -> None:
    """Just under 1 % of the I/Os were late, just over 1 % were long: the p99 is of those, its lateness is not."""
    response, lateness = stalled(seconds)
    rollups = rollups_by([instance(0, "h")])
    merger = merger_of(rollups)
    window = Window(merger.layout)
    merger.open(0)
    samples = {
        (0, SERVICE): [20 * MS] * len(response),
        (0, RESPONSE): response.astype(int).tolist(),
        (0, LATENESS): lateness.astype(int).tolist(),
    }
    done = {(0, column): len(response) for column in (Count.DUE, Count.SUBMITTED, Count.COMPLETED)}
    merger.add("h", result(HostData(1, 1, samples, done), 0))
    window.add(merger.close())
    validity = check_validity(
        window.measurement(), Settings.of(rollups, {("h", 0): Parameters(iops=800.0)}), 0.0025, 5.0
    )
    late = [finding.severity for finding in validity.findings[0] if finding.reason is Reason.GENERATOR_LATE]
    found = {(): "", (Severity.NOTE,): "note", (Severity.INVALID,): "late"}[tuple(late)]
    assert found == says, (p99(response) / MS, validity.findings[0])
    assert p99(response) < 1.1 * 23 * MS or found == "late", "a p99 that is not the storage's is not valid"
