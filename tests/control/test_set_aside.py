"""Disturbed subintervals: which are set aside, within which bounds, and that this does not bias what is measured."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ivypy.master.control.control_state import ControlState
from ivypy.master.control.decision import Decision, Measured
from ivypy.master.control.fixed import MOST_LONGER, MOST_SET_ASIDE, Fixed, most_aside
from ivypy.master.control.observation import Observation, Phase
from ivypy.master.control.probe import FEWEST
from ivypy.master.control.search import Find, FindSpec
from ivypy.master.control.slo import Watched
from ivypy.master.rollup.disturbance import Cause, Disturbance
from ivypy.master.stats.metric_sample import MetricSample
from ivypy.master.verdicts import Reason, Scope, Severity
from tests.support.control_plants import LATENCY, Plant, linear, noise, simulate
from tests.support.control_specs import TOLERANCE, find_spec, slo_spec

DELAY: Final = Disturbance(Cause.RUN_QUEUE_DELAY, "h1", 40.0)
STALL: Final = Disturbance(Cause.MACHINE_STALL, "h1", 12.0)


@dataclass(frozen=True)
class Step:
    """A step that ended: the phase of each subinterval as its row has it, the last decision, and its measurement."""

    phases: list[Phase]
    messages: list[str]
    measured: Measured

    @property
    def counted(self) -> list[int]:
        return [n for n in range(self.measured.first, self.measured.last + 1) if n not in self.measured.set_aside]

    def notes(self) -> list[str]:
        return [str(one) for one in self.measured.findings if one.reason is Reason.SET_ASIDE]


def run(
    state: ControlState,
    disturbed: dict[int, Disturbance],
    edited: frozenset[int] = frozenset(),
    changed: frozenset[int] = frozenset(),
    values: dict[int, float] | None = None,
    until: int | None = None,
) -> Step:
    """`until`: the step is interrupted after that subinterval."""
    decision, number, phases, messages = state.opening(), 0, list[Phase](), list[str]()
    while not decision.done:
        announced = decision.next_phase
        sample = MetricSample((values or {}).get(number, 1.0), 1.0)
        seen = Observation(
            number, float(number), 1.0, announced, number not in changed, number in edited,
            {LATENCY: {"all": sample}}, disturbance=disturbed.get(number),
        )  # fmt: skip
        state, decision = state.after(seen)
        assert not (decision.set_aside and number in edited)
        phases.append(Phase.TRANSIENT if number in edited else Phase.DISTURBED if decision.set_aside else announced)
        messages.append(decision.counted)
        if number == until:
            return Step(phases, messages, state.cut_short(number))
        number += 1
    (measured,) = decision.measured
    return Step([*phases, Phase.TAIL], messages, measured)


def fixed(warmup: int, measurement: int) -> Fixed:
    return Fixed(warmup, measurement, most_aside(measurement))


@pytest.mark.parametrize(
    ("measurement", "most"), [(1, 0), (3, 0), (4, 1), (7, 1), (8, 2), (10, 2), (12, 3), (28, 7), (30, 7), (60, 15)]
)
def test_a_fifth_of_all_may_be_set_aside(measurement: int, most: int) -> None:
    assert most_aside(measurement) == most


def test_a_disturbed_subinterval_does_not_count_and_the_measurement_goes_on() -> None:
    step = run(fixed(1, 8), {3: DELAY, 6: STALL})
    assert " ".join(step.phases) == "warmup run run disturbed run run disturbed run run run run tail"
    assert (step.measured.first, step.measured.last, step.measured.set_aside) == (1, 10, (3, 6))
    assert step.notes() == ["set_aside[note] (2 of 10 subintervals: run-queue delay, machine stall)"]
    assert step.messages[3] == "measured 2 of 8 subintervals; 1 more does not count (run-queue delay)"


def test_a_measurement_begins_and_ends_with_a_subinterval_that_counts() -> None:
    step = run(fixed(0, 8), {0: DELAY, 1: DELAY})
    assert (step.measured.first, step.measured.last, step.measured.set_aside) == (2, 9, ())
    assert step.notes() == ["set_aside[note] (2 of 10 subintervals: run-queue delay)"]
    cut = run(fixed(0, 8), {0: DELAY, 3: DELAY}, until=3)
    assert (cut.measured.first, cut.measured.last, cut.measured.set_aside) == (1, 2, ())
    assert [finding.reason for finding in cut.measured.findings] == [Reason.SET_ASIDE, Reason.SHORTENED]


def test_a_step_that_is_cut_short_before_anything_counts_has_measured_nothing() -> None:
    cut = run(fixed(1, 8), {1: DELAY}, until=1)
    assert [finding.reason for finding in cut.measured.findings] == [Reason.INTERRUPTED]


def test_beyond_the_bounds_disturbed_subintervals_count_as_before() -> None:
    step = run(fixed(1, 8), dict.fromkeys(range(40), DELAY))
    assert Counter(step.phases) == {Phase.WARMUP: 1, Phase.DISTURBED: 2, Phase.RUN: 8, Phase.TAIL: 1}


def test_without_leave_none_is_set_aside() -> None:
    step = run(Fixed(1, 8), dict.fromkeys(range(40), DELAY))
    assert " ".join(step.phases) == "warmup run run run run run run run run tail"
    assert step.measured == Measured(1, 8)


def test_an_edit_or_other_hosts_begin_the_measurement_again_with_nothing_set_aside() -> None:
    step = run(fixed(0, 8), {1: DELAY, 2: DELAY, 6: DELAY}, edited=frozenset({4}))
    assert (step.measured.first, step.measured.last, step.measured.set_aside) == (5, 13, (6,))
    step = run(fixed(0, 8), {1: DELAY, 5: DELAY}, changed=frozenset({5}))
    assert (step.measured.first, step.measured.last, step.measured.set_aside) == (6, 13, ())


def test_what_counted_until_an_edit_is_without_what_was_set_aside() -> None:
    cut = run(fixed(0, 12), {1: DELAY}, edited=frozenset({4}), until=4)
    assert (cut.measured.first, cut.measured.last, cut.measured.set_aside) == (0, 3, (1,))
    assert "3 of 12 subintervals, until an edit" in str(cut.measured.findings[-1])


disturbances = st.dictionaries(st.integers(0, 200), st.sampled_from([DELAY, STALL]), max_size=60)
numbers = st.frozensets(st.integers(0, 30), max_size=3)


@given(st.integers(0, 5), st.integers(1, 40), disturbances)
def test_law_every_subinterval_is_warmup_measured_set_aside_or_tail(
    warmup: int, measurement: int, disturbed: dict[int, Disturbance]
) -> None:
    """And the bounds hold: at most a fifth set aside, at most half longer, and only what was disturbed."""
    step = run(fixed(warmup, measurement), disturbed)
    found = Counter(step.phases)
    aside = found[Phase.DISTURBED]
    assert dict(found) == {
        phase: count
        for phase, count in {
            Phase.WARMUP: warmup, Phase.RUN: measurement, Phase.DISTURBED: aside, Phase.TAIL: 1
        }.items()
        if count
    }  # fmt: skip
    assert step.counted == [number for number, phase in enumerate(step.phases) if phase is Phase.RUN]
    assert {number for number, phase in enumerate(step.phases) if phase is Phase.DISTURBED} <= {*disturbed}
    assert aside <= MOST_SET_ASIDE * (measurement + aside)
    assert measurement + aside <= (1 + MOST_LONGER) * measurement
    assert [note.split(":")[0] for note in step.notes()] == (
        [f"set_aside[note] ({aside} of {measurement + aside} subintervals"] if aside else []
    )


@given(st.integers(0, 5), st.integers(1, 40), disturbances, numbers, numbers)
def test_law_a_measurement_has_its_time_in_subintervals_that_count_whatever_restarts_it(
    warmup: int, measurement: int, disturbed: dict[int, Disturbance], edited: frozenset[int], changed: frozenset[int]
) -> None:
    step = run(fixed(warmup, measurement), disturbed, edited, changed)
    assert len(step.counted) == measurement == step.measured.subintervals
    assert {step.phases[number] for number in step.counted} == {Phase.RUN}
    assert {step.phases[number] for number in step.measured.set_aside} <= {Phase.DISTURBED}


RUNS: Final = 1000
MEASURED: Final = 24  # subintervals
IOS: Final = 100  # of a subinterval
CERTAIN: Final = 3.3  # standard errors: 99.9 %


@dataclass(frozen=True)
class SimulatedRuns:
    """Storage with stalls, and hosts that disturb the generator apart from them."""

    latency_us: NDArray[np.float64]  # (runs, subintervals, I/Os)
    disturbed: NDArray[np.bool_]  # (runs, subintervals)

    def figures(self, counted: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """(2, runs) mean and p99 of each run's subintervals that count."""
        rows = np.arange(RUNS)[:, None]
        chosen = self.latency_us[rows, np.array(counted)].reshape(RUNS, -1)
        return np.array([chosen.mean(axis=1), np.percentile(chosen, 99, axis=1)])

    def counted(self, state: Fixed) -> list[list[int]]:
        """Each run's subintervals that count, by control's decisions."""
        return [run(state, dict.fromkeys(np.flatnonzero(row).tolist(), DELAY)).counted for row in self.disturbed]


@cache
def simulated_runs() -> SimulatedRuns:
    random = np.random.default_rng(12)
    size = RUNS, MEASURED + most_aside(MEASURED)
    latency_us = random.lognormal(6.0, 0.4, (*size, IOS))
    stalls = random.random(size) < 0.08  # in which a part of the I/Os takes much longer
    latency_us += stalls[..., None] * (random.random((*size, IOS)) < 0.2) * random.exponential(20_000, (*size, IOS))
    return SimulatedRuns(latency_us, random.random(size) < 0.12)


def bias(difference: NDArray[np.float64]) -> NDArray[np.float64]:
    """(2,) the mean difference of mean and p99 over the runs, in standard errors."""
    error = difference.std(axis=1, ddof=1) / np.sqrt(RUNS)
    found: NDArray[np.float64] = difference.mean(axis=1) / error
    return found


@pytest.mark.slow
def test_law_setting_aside_does_not_bias_mean_and_p99() -> None:
    """A thousand runs with storage stalls, each measured with `set_aside` and with `keep`."""
    runs = simulated_runs()
    kept, set_aside = (runs.figures(runs.counted(Fixed(0, MEASURED, most))) for most in (0, most_aside(MEASURED)))
    assert np.count_nonzero(kept[0] != set_aside[0]) > RUNS / 2  # most runs did set something aside
    assert np.abs(bias(set_aside - kept)).max() < CERTAIN


@pytest.mark.slow
def test_a_choice_by_latencies_would_show_as_bias() -> None:
    """What the law above would say of a rule that looks at the storage: its slowest subintervals are set aside."""
    runs = simulated_runs()
    slow = runs.latency_us.mean(axis=2) > 700
    rule = replace(runs, disturbed=slow)
    kept, set_aside = (rule.figures(rule.counted(Fixed(0, MEASURED, most))) for most in (0, most_aside(MEASURED)))
    assert bias(set_aside - kept).max() < -5 * CERTAIN


def searched(disturbed: Sequence[int], repeats: bool = True, probes: int = 12) -> tuple[Find, list[Decision]]:
    """A search on storage whose latency is three times as high wherever the generator is disturbed."""
    spec: FindSpec = find_spec(LATENCY, 3000.0, resolution=0.05, probes=probes)
    plant = Plant(
        linear(1000, 4), 1000.0, noise(3, 0.02, 0.0), factor=lambda number: 3.0 if number in disturbed else 1.0,
        disturbance=lambda number: DELAY if number in disturbed else None,
    )  # fmt: skip
    trace = simulate(plant, Find(spec, TOLERANCE, settle=1, repeats=repeats), 2000)
    assert isinstance(trace.state, Find)
    return trace.state, trace.decisions


def rows_of(decisions: list[Decision]) -> list[dict[str, object]]:
    return [dict(row.cells) for decision in decisions for row in decision.rows if row.file == "find.csv"]


def test_a_probe_that_was_disturbed_is_repeated_once_and_named() -> None:
    calm, decisions = searched(())
    first = rows_of(decisions)[0]
    begin = first["first_subinterval"]
    assert isinstance(begin, int)
    state, decisions = searched(range(begin, begin + FEWEST))
    rows = rows_of(decisions)
    assert [row["repeated"] for row in rows] == [True] + [False] * (len(rows) - 1)
    assert [row["disturbed"] for row in rows] == ["run-queue delay"] + [None] * (len(rows) - 1)
    assert rows[0]["total_iops"] == rows[1]["total_iops"] == first["total_iops"]
    assert [row["probe"] for row in rows] == [*range(1, len(rows) + 1)]
    found, undisturbed = state.estimate(), calm.estimate()
    assert found is not None and undisturbed is not None
    assert found.crossing.load == pytest.approx(undisturbed.crossing.load, rel=0.05)
    (measured,) = decisions[-1].measured
    (note,) = [finding for finding in measured.findings if finding.reason is Reason.SET_ASIDE]
    assert str(note).startswith(f"set_aside[note] (probe 1 at {first['total_iops']:.6g} IOPS, ")
    assert str(note).endswith("subintervals: run-queue delay, repeated)")


def test_a_probe_with_a_few_disturbed_subintervals_counts() -> None:
    _, decisions = searched(())
    begin = rows_of(decisions)[0]["first_subinterval"]
    assert isinstance(begin, int)
    _, decisions = searched((begin + 4,))
    assert not any(row["repeated"] or row["disturbed"] for row in rows_of(decisions))


def test_a_search_that_is_always_disturbed_repeats_each_load_once_within_its_probes() -> None:
    state, decisions = searched(range(2000))
    rows = rows_of(decisions)
    repeated = [row["total_iops"] for row in rows if row["repeated"]]
    assert repeated and len(repeated) == len({*repeated})
    assert len(rows) + state.maxima <= 12


@pytest.mark.parametrize("repeats", [True, False])
def test_a_search_on_a_host_that_is_too_busy_to_say_ends_after_three_unclear_probes(repeats: bool) -> None:
    spec = replace(find_spec(LATENCY, 3000.0, resolution=0.05, probes=40), longest_probe=20)
    plant = Plant(linear(2900, 0.2), 1000.0, noise(3, 0.3, 0.9), disturbance=lambda number: DELAY)
    trace = simulate(plant, Find(spec, TOLERANCE, settle=1, repeats=repeats), 2000)
    answers = "".join(str(row["answer"])[0] for row in rows_of(trace.decisions))
    assert answers.find("uuu") == len(answers) - 3
    (measured,) = trace.decisions[-1].measured
    said = [str(one) for one in measured.findings if one.reason is not Reason.SET_ASIDE]
    assert len(said) == 1 and said[0].startswith("search_disturbed[invalid] (")
    assert "is too busy to say: " in said[0]


def test_a_search_that_is_unclear_on_calm_hosts_goes_on() -> None:
    spec = replace(find_spec(LATENCY, 3000.0, resolution=0.05, probes=10), longest_probe=20)
    trace = simulate(Plant(linear(2900, 0.2), 1000.0, noise(3, 0.3, 0.9)), Find(spec, TOLERANCE, settle=1), 2000)
    assert len(rows_of(trace.decisions)) > 3


def test_keep_repeats_no_probe() -> None:
    _, decisions = searched(range(2000), repeats=False)
    assert {row["disturbed"] for row in rows_of(decisions)} == {"run-queue delay"}
    assert not any(row["repeated"] for row in rows_of(decisions))
    assert not any(finding.reason is Reason.SET_ASIDE for finding in decisions[-1].measured[0].findings)


def test_a_disturbed_subinterval_neither_aborts_nor_alerts() -> None:
    threshold = slo_spec(LATENCY, 10.0, abort_early=True)
    bad = {number: 1000.0 for number in range(4, 8)}
    step = run(Watched(fixed(1, 40), (threshold,)), dict.fromkeys(bad, DELAY), values=bad)
    assert Counter(step.phases)[Phase.RUN] == 40
    steady = {number: 1000.0 for number in range(100)}
    step = run(Watched(fixed(1, 40), (threshold,)), {3: DELAY}, values=steady)
    assert Counter(step.phases)[Phase.RUN] < 40
    assert step.measured.set_aside == (3,)
    (miss,) = (finding for check in step.measured.checks for finding in check.findings({}, {}, {}))
    assert (miss.reason, miss.severity, miss.about) == (Reason.SLO_MISSED, Severity.FAILED, Scope.RESPONSE)
    assert len(step.notes()) == 1
