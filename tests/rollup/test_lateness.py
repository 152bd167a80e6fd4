"""Lateness: of each percentile the part that is due to the lateness of its own I/Os."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ivypy.master.rollup.figures import Figures
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.rollup.validity import Validity, check_validity
from ivypy.master.rollup.window import Measurement, Window
from ivypy.master.verdicts import Reason, Severity
from ivypy.protocol.counters import LATE, LATENESS, PUNCTUAL, RESPONSES, SERVICES, Count
from ivypy.protocol.parameters import Parameters
from tests.support.rollup import instance, merger_of, rollups_by
from tests.support.rollup_results import HostData, result

Floats = NDArray[np.float64]
MS, S = 10**6, 10**9
LEAST_PART = 32  # of the response time: lateness below is not paired (slave/engine/thread/reap.c)
A_BUCKET = 1 / 64  # of a value


def p99(values: Floats) -> float:
    return float(np.sort(values)[-(-len(values) * 99 // 100) - 1])


def measured(response: Floats, lateness: Floats) -> tuple[Measurement, Validity]:
    """One subinterval of one instance, as an engine counts it; in ns."""
    rollups = rollups_by([instance(0, "h")])
    merger = merger_of(rollups)
    window = Window(merger.layout)
    merger.open(0)
    late = lateness * LEAST_PART >= response
    samples = {
        (0, SERVICES[0]): [20 * MS] * len(response),
        (0, RESPONSES[0]): response.astype(int).tolist(),
        (0, LATENESS): lateness.astype(int).tolist(),
        (0, LATE): response[late].astype(int).tolist(),
        (0, PUNCTUAL): (response.astype(int) - lateness.astype(int))[late].tolist(),
    }
    done = {(0, column): len(response) for column in (Count.DUE, Count.SUBMITTED, Count.COMPLETED)}
    merger.add("h", result(HostData(1, 1, samples, done), 0))
    window.add(merger.close())
    in_force = Settings.of(rollups, {("h", 0): Parameters(iops=800.0)})
    return window.measurement(), check_validity(window.measurement(), in_force, 0.0025, 5.0)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    late_share=st.floats(0.0, 0.05),
    late_by=st.floats(0.05, 20.0),  # of the p99 without lateness
    spread=st.floats(0.01, 1.5),
    whom=st.sampled_from(("any", "longest", "shortest")),
    always=st.floats(0.0, 0.5),
)
@pytest.mark.slow
def test_without_lateness_a_percentile_is_that_of_the_same_ios_without_theirs(
    seed: int, late_share: float, late_by: float, spread: float, whom: str, always: float
) -> None:
    random = np.random.default_rng(seed)
    honest = 1 * MS * np.exp(spread * random.standard_normal(5000))
    rank = honest.argsort().argsort() / len(honest)
    picked = {"any": random.random(len(honest)), "longest": 1 - rank, "shortest": rank}[whom] < late_share
    lateness = np.where(picked, late_by * p99(honest), 1000.0) + always * 1 * MS
    measurement, _ = measured(honest + lateness, lateness)
    (found,) = Figures(measurement.merged, np.ones(1, bool)).punctual("p99")
    assert p99(honest) * (1 - A_BUCKET) <= found * 1000 <= p99(honest) * (1 + 1 / LEAST_PART) * (1 + A_BUCKET)


def test_lateness_without_effect_is_no_reason() -> None:
    """Late by as much as the p99, but so few; or as many as you like, by so little."""
    random = np.random.default_rng(1)
    honest = random.exponential(1.0 * MS, 100_000) + 1000
    few = np.where(random.random(len(honest)) < 0.002, p99(honest), 1000.0)
    little = random.exponential(0.01 * MS, len(honest))
    for lateness in (few, little):
        _, validity = measured(honest + lateness, lateness)
        said = [str(one) for one in validity.findings[0] if one.reason is Reason.GENERATOR_LATE]
        assert not any("the mean" in one or "the p99," in one or "[invalid]" in one for one in said)


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
    _, validity = measured(response, lateness)
    late = [finding.severity for finding in validity.findings[0] if finding.reason is Reason.GENERATOR_LATE]
    found = {(): "", (Severity.NOTE,): "note", (Severity.INVALID,): "late"}[tuple(late)]
    assert found == says, (p99(response) / MS, validity.findings[0])
    assert p99(response) < 1.1 * 23 * MS or found == "late", "a p99 that is not the storage's is not valid"


@pytest.mark.parametrize(
    ("think_us", "late_us", "room_us", "beside", "says"),
    [
        (100, 20, 0, None, None), (100, 25, 0, None, Severity.NOTE), (100, 60, 0, None, Severity.NOTE),
        (100, 70, 0, None, Severity.INVALID), (10_000, 70, 0, None, None), (0, 70, 0, None, None),
        (100, 70, 30, None, Severity.NOTE), (100, 70, 500, None, None),
        (100, 70, 0, Parameters(iops=0.0, maxtags=400), Severity.INVALID), (100, 70, 0, Parameters(iops=1.0), None),
        (100, 70, 0, Parameters(think_time=1.0, maxtags=4), Severity.INVALID),
    ],
)  # fmt: skip
def test_tags_that_wait_after_they_have_thought(
    think_us: int, late_us: int, room_us: int, beside: Parameters | None, says: Severity | None
) -> None:
    """Of an I/O of 100 us, the think time, the lateness and the wait for room in a full queue together. Another
    instance of the row is paused, has a rate, or thinks for other times."""
    instances = [instance(0, "h")] + [instance(1, "h")] * (beside is not None)
    tags = 4 + (beside.maxtags if beside and beside.think_time else 0)
    length_us = 100 * (100 + think_us + late_us + room_us) // tags
    samples = {(0, SERVICES[0]): [100_000] * 100, (0, LATENESS): [late_us * 1000] * 100}
    done = {(0, column): 100 for column in (Count.DUE, Count.SUBMITTED, Count.COMPLETED)}
    rollups = rollups_by(instances)
    merger = merger_of(rollups)
    window = Window(merger.layout)
    merger.open(0)
    merger.add("h", result(HostData(len(instances), 1, samples, done), 0, length_us * 1000))
    window.add(merger.close())
    first = {("h", 0): Parameters(think_time=think_us / 1e6, maxtags=4)}
    in_force = Settings.of(rollups, first | ({("h", 1): beside} if beside else {}))
    validity = check_validity(window.measurement(), in_force, 0.0025, 5.0)
    late = [finding.severity for finding in validity.findings[0] if finding.reason is Reason.THOUGHT_TOO_LONG]
    assert late == ([] if says is None else [says])
