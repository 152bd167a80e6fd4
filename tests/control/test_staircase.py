"""Staircases: the levels' loads, their measurements, and where they end."""

import pytest

from ivypy.master.control.control_state import ControlState
from ivypy.master.control.fixed import Fixed
from ivypy.master.control.measure import Measure
from ivypy.master.control.observation import Observation, Phase
from ivypy.master.control.staircase import Levels, Staircase, levels_of_steps
from ivypy.master.verdicts import Reason
from tests.support.control_plants import LATENCY, Plant, Trace, load_of, mmc, noise, outstanding, simulate
from tests.support.control_specs import TOLERANCE, measure_spec


def climbed(levels: Levels, judge: Fixed | Measure | None = None, capacity: float = 4000) -> Trace:
    plant = Plant(mmc(4, 4e6 / capacity), capacity, noise(1, 0.01, 0.0))
    return simulate(plant, Staircase(levels, judge or Fixed(1, 3), TOLERANCE), 500)


def measured(trace: Trace) -> list[tuple[int, int, str]]:
    return [(one.first, one.last, one.suffix) for decision in trace.decisions for one in decision.measured]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (Levels(100, 50, end=250), [100, 150, 200, 250]),
        (Levels(100, 0.1, relative=True, end=121), [100, 110, 121]),
        (levels_of_steps(100, 400, 4), [100, 200, 300, 400]),
        (levels_of_steps(0.1, 0.3, 3), [0.1, 0.2, 0.3]),
        (Levels(100, 50, end=100), [100]),
    ],
)
def test_the_levels_are_those_of_the_plan(levels: Levels, expected: list[float]) -> None:
    found: list[float] = []
    while (level := levels.iops(len(found))) is not None:
        found.append(level)
    assert found == pytest.approx(expected)


def test_each_level_has_a_warmup_and_a_measurement_after_its_edit() -> None:
    trace = climbed(Levels(100, 100, end=300))
    assert measured(trace) == [
        (1, 3, ":total_iops=100"),
        (6, 8, ":total_iops=200"),
        (11, 13, ":total_iops=300"),
    ]
    phases = [decision.next_phase for decision in trace.decisions[4:7]]
    assert phases == [Phase.TRANSIENT, Phase.WARMUP, Phase.RUN]
    for first, last, suffix in measured(trace):
        assert {f":total_iops={load:g}" for load in trace.loads[first : last + 1] if load} == {suffix}


def test_until_saturation_the_last_level_is_not_sustained() -> None:
    trace = climbed(Levels(1000, 1000))
    rows = [row.cells for decision in trace.decisions for row in decision.rows if row.file == "staircase.csv"]
    assert [row["total_iops"] for row in rows] == [1000, 2000, 3000, 4000, 5000]
    assert [row["sustained"] for row in rows] == [True, True, True, True, False]
    (last,) = trace.decisions[-1].measured
    assert [finding.reason for finding in last.findings] == [Reason.LOAD_NOT_SUSTAINED]


def test_a_load_that_piles_up_in_flight_is_not_sustained() -> None:
    plant = Plant(mmc(4, 1000), 4000, noise(1, 0.01, 0.0), tags=1e6)
    trace = simulate(plant, Staircase(Levels(1000, 1040), Fixed(1, 3), TOLERANCE), 500)
    rows = [row.cells for decision in trace.decisions for row in decision.rows if row.file == "staircase.csv"]
    assert [(row["total_iops"], row["sustained"]) for row in rows] == [
        (1000, True), (2040, True), (3080, True), (4120, False),
    ]  # fmt: skip
    assert {one.loads["all"]["all"].backlog for one in trace.seen} == {0}


def test_backlog_of_a_lost_host_is_not_counted_as_completed() -> None:
    """45,000 owed go with a host; of what falls due for the other 4 % is not done."""
    state: ControlState = Staircase(Levels(1000, 1000), Fixed(1, 3), TOLERANCE)
    decision = state.opening()
    for number in range(9):
        alone, owed = number >= 3, 200 * (number + 1)
        load = load_of(5000, 4800, owed, 0) if alone else load_of(10_000, 4800, 15_000 * number + owed, 0)
        loads, phase = {"all": {"all": load}}, decision.next_phase
        seen = Observation(number, number * 5.0, 5.0, phase, number != 3, loads=loads, outstanding=outstanding(load))
        state, decision = state.after(seen)
        if decision.measured:
            break
    (measured,) = decision.measured
    assert measured.first >= 3
    assert str(measured.findings[-1]) == "load_not_sustained[invalid] (outstanding I/O grew by 600 of 15,000 due)"


def test_a_level_may_be_measured_to_an_accuracy() -> None:
    trace = climbed(Levels(500, 1000, end=2500), Measure(measure_spec(LATENCY, accuracy=0.01), warmup=1))
    windows = measured(trace)
    assert len(windows) == 3
    assert all(last - first + 1 >= 20 for first, last, _ in windows)
    assert [trace.loads[first] for first, _, _ in windows] == [500, 1500, 2500]


def test_a_level_that_times_out_is_a_row_and_the_next_follows() -> None:
    trace = climbed(Levels(500, 500, end=1000), Measure(measure_spec(LATENCY, accuracy=1e-6, timeout_s=100), warmup=1))
    findings = [one.findings[0].reason for decision in trace.decisions for one in decision.measured]
    assert findings == [Reason.ACCURACY_NOT_REACHED] * 2


@pytest.mark.parametrize(
    ("levels", "fault"),
    [
        (Levels(0, 1), "start is 0"),
        (Levels(1, 0), "step is 0"),
        (Levels(5, 1, end=4), "at least start"),
        (Levels(1, 1), ""),
    ],
)
def test_impossible_staircases_are_refused_with_the_reason(levels: Levels, fault: str) -> None:
    found = [text for _, text in levels.faults()]
    assert fault in found[0] if fault else not found
