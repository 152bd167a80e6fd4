"""Search: the next load as a function of the answers, and whole searches on plants whose answer is known."""

import re
from dataclasses import replace

import pytest

from ivypy.master.control.bracket import bracket, standing, unconfirmed
from ivypy.master.control.control_state import ControlState
from ivypy.master.control.focus import Focus
from ivypy.master.control.load_estimate import SearchBounds, load_estimate, next_load
from ivypy.master.control.observation import Observation, Phase
from ivypy.master.control.probe import Probe, ProbeAnswer
from ivypy.master.control.search import Find, FindSpec, RepeatedProbe, SearchStage
from ivypy.master.stats.crossing import Crossing, TargetReading
from ivypy.master.stats.metric_sample import MetricSample
from ivypy.master.verdicts import Finding, Reason, Severity
from tests.support.control_plants import (
    LATENCY,
    Curve,
    Plant,
    Trace,
    linear,
    load_for,
    load_of,
    mmc,
    noise,
    outstanding,
    simulate,
)
from tests.support.control_specs import TOLERANCE, conditions, find_spec

CAPACITY = 1000.0
BOUNDS = SearchBounds(CAPACITY)
TARGET = 4000.0
M = mmc(1, 1000)


def probe(iops: float, answer: str, value: float | None = None, sustained: bool = True, sd: float = 0.01) -> Probe:
    """Its reading is of the mean `value`, with a relative error of `sd`."""
    half = value * sd if value else None
    reading = TargetReading(iops, 1 - TARGET / value, TARGET * sd / value, 9.0, 10) if value else None
    above = answer == "fail" or (value or 0) > TARGET
    known = {"all": reading} if reading and sustained else {}
    return Probe(iops, iops, ProbeAnswer(answer), value, half, "all", sustained, 0, 9, above, known)


def following(probes: list[Probe], bounds: SearchBounds = BOUNDS) -> float | None:
    return next_load(probes, LATENCY, bounds, 0.95, 30)


def ends(probes: list[Probe]) -> tuple[float | None, float | None]:
    found = bracket(probes)
    return found.passed.iops if found.passed else None, found.failed.iops if found.failed else None


@pytest.mark.parametrize(
    ("answers", "expected_ends"),
    [
        ([], (None, None)),
        ([(100, "pass")], (100, None)),
        ([(100, "pass"), (200, "fail"), (150, "pass")], (150, 200)),
        ([(100, "pass"), (200, "fail"), (150, "unclear")], (100, 200)),
        ([(100, "fail"), (200, "pass")], (200, None)),  # the later answer strikes out the earlier
        ([(200, "pass"), (100, "fail")], (None, 100)),
        ([(100, "pass"), (200, "fail"), (300, "fail"), (200, "pass")], (200, 300)),
        ([(100, "pass"), (200, "fail"), (300, "fail"), (200, "unclear")], (100, 300)),  # it did not come again
        ([(100, "pass"), (200, "fail"), (300, "fail"), (200, "unclear, above")], (100, 200)),  # it nearly did
        ([(100, "pass"), (200, "fail"), (300, "fail"), (100, "unclear, above")], (None, 200)),
    ],
)
def test_a_later_probe_overrides_a_contradicting_one(
    answers: list[tuple[float, str]], expected_ends: tuple[float | None, float | None]
) -> None:
    probes = []
    for iops, answer in answers:
        word, _, above = answer.partition(", ")
        probes.append(replace(probe(iops, word), above=bool(above) or word == "fail"))
    assert ends(probes) == expected_ends


def test_the_load_is_exact_for_a_queue_without_noise() -> None:
    truth = load_for(M, TARGET, CAPACITY)
    probes = [probe(load, "pass" if M(load) < TARGET else "fail", M(load), sd=1e-4) for load in (600, 700, 800, 850)]
    found = load_estimate(probes, BOUNDS, 0.95)
    assert found is not None and found.crossing.load == pytest.approx(truth, rel=0.005)
    assert found.crossing.low <= truth <= found.crossing.high and found.crossing.width < 0.05


def test_one_load_has_no_estimate() -> None:
    assert load_estimate([probe(500, "pass", 2000.0)] * 2, BOUNDS, 0.95) is None
    assert load_estimate([], BOUNDS, 0.95) is None


def test_a_load_that_was_not_sustained_bounds_the_interval() -> None:
    """The metric passes wherever the load is sustained: the interval is between the last that was and the first not."""
    probes = [probe(500, "pass", 1000.0), probe(800, "pass", 1001.0), probe(900, "fail", 9e6, sustained=False)]
    found = load_estimate(probes, BOUNDS, 0.95)
    assert found is not None and found.crossing.low <= 800 and found.crossing.high == 900
    load = following(probes)
    assert load is not None and 800 < load < 900


def test_of_several_instances_the_one_that_crosses_first_decides() -> None:
    def both(load: float) -> Probe:
        one = probe(load, "unclear", 5 * load)
        return replace(one, readings={"fast": replace(one.readings["all"], excess=-3.0), "slow": one.readings["all"]})

    found = load_estimate([both(load) for load in (700, 760, 840, 900)], BOUNDS, 0.95)
    assert found is not None and found.crossing.load == pytest.approx(800, rel=0.01)


def test_a_probe_that_a_later_one_contradicts_does_not_count() -> None:
    """A brown-out at first: everything failed."""
    slow = [probe(500, "fail", 9000.0), probe(166, "fail", 5000.0)]
    later = [probe(load, "pass" if M(load) < TARGET else "fail", M(load)) for load in (500, 700, 800)]
    assert load_estimate([*slow, *later], BOUNDS, 0.95) == load_estimate(later, BOUNDS, 0.95)


@pytest.mark.parametrize(
    ("again", "stays"),
    [(7000.0, True), (4100.0, False), (20000.0, False)],
    ids=["as slow", "it was a brown-out", "this is one"],
)
def test_a_load_probed_again_with_another_metric_counts_as_it_was_the_last_time(again: float, stays: bool) -> None:
    """Both are above the target, so no answer contradicts another."""
    first, later = probe(800, "fail", 7000.0), probe(800, "fail", again)
    beside = [probe(500, "pass", 2000.0), probe(850, "fail", 7500.0)]
    assert standing([*beside, first, later]) == [*beside, *([first] if stays else []), later]


@pytest.mark.parametrize(
    ("above", "alone"),
    [
        ([], None),
        ([(800, "fail", 7000.0, 0.01)], 800),
        ([(800, "unclear", 4100.0, 0.05)], 800),
        ([(800, "fail", 7000.0, 0.01), (790, "fail", 6900.0, 0.01)], None),
        ([(800, "fail", 7000.0, 0.01), (790, "unclear", 4100.0, 0.05)], None),
        ([(800, "fail", 7000.0, 0.01), (790, "unclear", 4100.0, 0.8)], 800),  # it says nothing
        ([(800, "fail", 7000.0, 0.01), (800, "unclear", 4100.0, 0.8)], None),  # once more at a load is enough
    ],
)
def test_a_probe_above_the_target_has_to_be_confirmed(
    above: list[tuple[float, str, float, float]], alone: float | None
) -> None:
    probes = [probe(iops, answer, value, sd=sd) for iops, answer, value, sd in above]
    assert unconfirmed([probe(500, "pass", 2000.0), *probes]) == alone


def test_a_load_that_was_not_sustained_once_has_to_be_confirmed() -> None:
    overloaded = probe(900, "fail", 9e6, sustained=False)
    assert unconfirmed([probe(500, "pass", 2000.0), overloaded]) == 900
    assert unconfirmed([overloaded, overloaded]) is None


class TestNextLoad:
    def test_it_begins_in_the_middle(self) -> None:
        assert following([]) == 500

    def test_it_goes_where_the_interval_is(self) -> None:
        """Neither far below the target nor far above it, where a reading says little of where it is crossed."""
        probes = [probe(500, "pass", M(500)), probe(900, "fail", M(900)), probe(700, "pass", M(700))]
        found = load_estimate(probes, BOUNDS, 0.95)
        load = following(probes)
        assert found is not None and load is not None
        margin = 0.2 * (found.crossing.high - found.crossing.low)
        assert found.crossing.low - margin <= load <= found.crossing.high + margin

    def test_all_fail_goes_down_to_the_lowest_and_ends(self) -> None:
        probes: list[Probe] = []
        while (load := following(probes)) is not None:
            probes.append(probe(load, "fail", 9000.0))
        assert probes[-1].iops == pytest.approx(20)
        assert len(probes) <= 5

    def test_an_unclear_lowest_load_is_probed_at_most_twice(self) -> None:
        probes: list[Probe] = [probe(500, "fail", 9000.0)]
        while (load := following(probes)) is not None:
            probes.append(probe(load, "unclear"))
        assert [one.iops for one in probes].count(20) == 2

    def test_no_load_below_the_lowest_is_probed(self) -> None:
        """A percentile of too few I/Os is blank."""
        probes: list[Probe] = []
        while (load := following(probes, replace(BOUNDS, lowest=150.0))) is not None:
            probes.append(probe(load, "fail", 9000.0))
        assert min(one.iops for one in probes) == 150

    def test_all_pass_goes_up_to_the_highest_and_ends(self) -> None:
        probes: list[Probe] = []
        while (load := following(probes)) is not None:
            probes.append(probe(load, "pass", 1000.0))
        assert probes[-1].iops == pytest.approx(980)
        assert len(probes) <= 5


def found_by(trace: Trace) -> Crossing:
    assert isinstance(trace.state, Find)
    found = trace.state.estimate()
    assert found is not None and trace.decisions[-1].done
    return found.crossing


def search(curve: Curve, capacity: float, target: float, seed: int = 1, sd: float = 0.01, **changes: object) -> Trace:
    state = Find(find_spec(LATENCY, target, **changes), TOLERANCE, settle=1)
    return simulate(Plant(curve, capacity, noise(seed, sd, 0.3)), state, 3000)


def reasons(trace: Trace) -> list[Reason]:
    return [one.reason for one in trace.decisions[-1].measured[0].findings]


def test_a_search_whose_highest_pass_is_zero_ends_with_its_bracket() -> None:
    """An idle host is busy 0.0 % up to 300 IOPS and 90 % above: a step that no curve describes."""
    trace = search(lambda iops: 0.0 if iops <= 300 else 90.0, CAPACITY, 50.0)
    found = found_by(trace)
    assert found.low * 0.99 <= 300 <= found.high
    assert reasons(trace) == [Reason.SEARCH_FOUND]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("curve", "capacity", "target"),
    [(M, 1000.0, 4000.0), (mmc(4, 1000), 4000.0, 2000.0), (linear(10, 0.2), 8000.0, 800.0)],
)
def test_the_interval_contains_the_true_load(curve: Curve, capacity: float, target: float) -> None:
    truth, holds = load_for(curve, target, capacity), 0
    for seed in range(10):
        trace = search(curve, capacity, target, seed)
        found = found_by(trace)
        holds += found.low <= truth <= found.high
        assert found.load == pytest.approx(truth, rel=0.03)
        (measured,) = trace.decisions[-1].measured
        assert len({trace.loads[number] for number in range(measured.first, measured.last + 1)}) == 1
    assert holds >= 8


def test_every_probe_is_a_row_and_begins_with_an_empty_backlog() -> None:
    trace = search(M, 1000, 40_000)
    rows = [row.cells for decision in trace.decisions for row in decision.rows if row.file == "find.csv"]
    assert [row["probe"] for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) <= 11
    assert {row["confidence_percent"] for row in rows} == {99.0}
    plant_backlogs = [decision.edits[0].total_iops for decision in trace.decisions if decision.edits]
    fails = sum(row["sustained"] is False for row in rows)
    assert plant_backlogs.count(0.0) == fails  # a drain behind each load that was not sustained


def test_a_load_that_piles_up_in_flight_fails_and_drains() -> None:
    """The metric passes at any load: only that the load is not sustained shows where the capacity is."""
    plant = disturbed_at_max(1000, 1500, 5)
    plant.tags, plant.curve = 1e6, lambda iops: 500.0
    state: ControlState = Find(find_spec(LATENCY, 1e12), TOLERANCE, settle=1)
    trace = simulate(plant, state, 1000)
    rows = [row.cells for decision in trace.decisions for row in decision.rows if row.file == "find.csv"]
    assert {row["sustained"] for row in rows if float(row["total_iops"]) > 1010} == {False}  # type: ignore[arg-type]
    assert {row["sustained"] for row in rows if float(row["total_iops"]) < 1000} <= {True}  # type: ignore[arg-type]
    assert any(row["sustained"] is False for row in rows)
    fails = {int(row["last_subinterval"]) for row in rows if row["sustained"] is False}  # type: ignore[arg-type]
    drained = [trace.loads[number + 1] for number in fails if number + 1 < len(trace.loads)]
    assert set(drained) == {0.0}
    assert {one.loads["all"]["all"].backlog for one in trace.seen} == {0}


def test_a_backlog_that_never_drains_ends_the_search() -> None:
    """A device that hangs at the first probe: nothing completes any more."""
    state: ControlState = Find(find_spec(LATENCY, 1000), TOLERANCE, settle=1)
    decision, number = state.opening(), 0
    while not decision.done:
        hung = number > 4
        load = load_of(5000, 0 if hung else 5000, 10_000 * (number - 4) if hung else 0)
        samples = {LATENCY: {"all": MetricSample(0.0, 0.0) if hung else MetricSample(5e6, 5000)}}
        interval = Observation(
            number, number * 5.0, 5.0, decision.next_phase, samples=samples, loads={"all": {"all": load}},
            outstanding=outstanding(load),
        )  # fmt: skip
        state, decision = state.after(interval)
        number += 1
        assert number < 200
    assert "still outstanding" in decision.measured[0].findings[0].detail


def test_a_target_that_fails_at_the_lowest_load_fails_the_search() -> None:
    trace = search(M, 1000, 1000)
    (finding,) = trace.decisions[-1].measured[0].findings
    assert (finding.reason, finding.severity) == (Reason.SEARCH_NEVER_MET, Severity.FAILED)
    assert "fails already at the lowest load" in finding.detail


def test_a_target_that_never_fails_is_a_result() -> None:
    trace = search(linear(10, 0.01), 1000, 1000)
    (measured,) = trace.decisions[-1].measured
    (finding,) = measured.findings
    assert (finding.reason, finding.severity) == (Reason.SEARCH_ALWAYS_MET, Severity.NOTE)
    assert "never fails up to" in finding.detail
    assert measured.first <= measured.last


def disturbed_at_max(capacity: float, seen: float, until: int) -> Plant:
    """A plant that does only a part of its IOPS in the first subintervals, while the search looks at max."""

    def capacity_at(number: int) -> float:
        return seen if number < until else capacity

    return Plant(M, capacity, noise(1, 0.01, 0), capacity_at=capacity_at)


@pytest.mark.parametrize("seen", [100.0, 300.0, 500.0])
def test_a_disturbed_run_at_max_does_not_end_the_search(seen: float) -> None:
    """All loads below what was seen pass; so max is measured again, and the search goes on above."""
    truth = load_for(M, 4000, CAPACITY)
    trace = simulate(disturbed_at_max(CAPACITY, seen, 5), Find(find_spec(LATENCY, 4000), TOLERANCE, settle=1), 3000)
    assert isinstance(trace.state, Find)
    assert found_by(trace).load == pytest.approx(truth, rel=0.03)
    assert len(trace.state.probes) + trace.state.maxima <= 12


def test_an_overestimating_run_at_max_does_not_end_the_search() -> None:
    """A cache let through ten times the IOPS at first: 2 % of that fails, and the search goes on below."""
    truth = load_for(M, 1120, CAPACITY)
    trace = simulate(disturbed_at_max(CAPACITY, 10_000.0, 5), Find(find_spec(LATENCY, 1120), TOLERANCE, settle=1), 5000)
    found = found_by(trace)
    assert found.low <= truth <= found.high


def test_a_search_without_a_fail_that_has_no_probe_left_says_what_it_cannot() -> None:
    state = Find(
        find_spec(LATENCY, 4000, probes=3),
        TOLERANCE,
        settle=1,
        capacity=1000.0,
        probes=(probe(500, "pass", 2000.0), probe(700, "unclear", 3990.0, sd=0.5)),
    )
    measured, _ = state._result(99)
    (finding,) = measured.findings
    assert finding.reason is Reason.SEARCH_UNBOUNDED and "above, the probes were not enough to say" in finding.detail


def test_target_that_never_fails_is_confirmed_by_a_second_run_at_max() -> None:
    trace = search(linear(10, 0.01), 1000, 1000)
    assert trace.loads[-3:] == [None] * 3 and "confirmed" in trace.decisions[-1].measured[0].findings[0].detail


def bumpy(iops: float) -> float:
    """Not monotone: slow at low loads, as where a device sleeps between I/Os."""
    return M(iops) + (3000.0 if iops < 150 else 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_plant_that_is_slow_at_low_loads_has_the_bracket_above_them(seed: int) -> None:
    assert found_by(search(bumpy, CAPACITY, 4000, seed)).load == pytest.approx(load_for(M, 4000, CAPACITY), rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sd", "rho"), [(0.3, 0.8), *(pytest.param(*one, marks=pytest.mark.long) for one in [(0.1, 0.8), (0.3, 0.0)])]
)
def test_noisy_plant_has_an_interval_with_the_true_load_or_none(sd: float, rho: float) -> None:
    """However noisy, it ends in its probes, and what it states holds."""
    truth, holds = load_for(M, 4000, CAPACITY), 0
    for seed in range(1000, 1010):
        trace = simulate(
            Plant(M, CAPACITY, noise(seed, sd, rho)), Find(find_spec(LATENCY, 4000), TOLERANCE, settle=1), 5000
        )
        assert isinstance(trace.state, Find) and trace.decisions[-1].done
        found = trace.state.estimate()
        holds += found is None or found.crossing.low <= truth <= found.crossing.high
    assert holds >= 8


def test_a_search_that_ends_with_a_wide_interval_says_how_much_longer_halves_it() -> None:
    trace = search(linear(200, 0.02), 8000, 260, sd=0.05)
    assert found_by(trace).width > 0.02
    (finding,) = trace.decisions[-1].measured[0].findings
    assert (finding.reason, finding.severity) == (Reason.SEARCH_FOUND, Severity.NOTE)
    told = r"overall_response_us_mean <= 260 us up to \d\.\d\d k IOPS \(\d.\d\d to \d.\d\d k, 95 %\), about \S+ more .*"
    assert re.fullmatch(told, finding.detail), finding.detail


@pytest.mark.parametrize("within_s", [150.0, 300.0, 600.0])
def test_a_search_ends_in_its_time(within_s: float) -> None:
    """With the subinterval in which it is over, and with what it knows then."""
    trace = search(M, CAPACITY, 4000, sd=0.3, within_s=within_s)
    assert trace.seen[-1].end_s <= within_s
    assert trace.decisions[-1].done and trace.decisions[-1].measured


@pytest.mark.slow
def test_more_time_narrows_the_interval() -> None:
    searches = (
        search(M, CAPACITY, 4000, sd=0.2, within_s=time_s, probes=100, resolution=1e-3) for time_s in (400, 4000)
    )
    widths = [found_by(one).width for one in searches]
    assert widths[1] < widths[0] / 2


def test_a_plant_that_was_slow_for_a_while_does_not_decide_the_search() -> None:
    """A brown-out from subinterval 20 to 60 makes every load fail; asked again, the lowest fail passes."""
    truth = load_for(M, 4000, 1000)
    plant = Plant(M, 1000, noise(1, 0.01, 0), factor=lambda number: 3.0 if 20 <= number < 60 else 1.0)
    trace = simulate(plant, Find(find_spec(LATENCY, 4000), TOLERANCE, settle=1), 3000)
    assert found_by(trace).load == pytest.approx(truth, rel=0.03)


@pytest.mark.parametrize(
    ("spec", "key", "fault"),
    [
        (find_spec(LATENCY, 0), "target", "target is 0 us"),
        (find_spec(LATENCY, 1, resolution=0), "resolution", "resolution is 0"),
        (find_spec(LATENCY, 1, probes=3), "probes", "probes is 3"),
        (find_spec(LATENCY, 1, within_s=20.0), "within", "within is 20s; a run at max and two probes take 26s"),
    ],
)
def test_impossible_searches_are_refused_with_the_reason(spec: FindSpec, key: str, fault: str) -> None:
    ((found, text),) = spec.faults(conditions(1.0), True)
    assert found == key and fault in text
    assert not list(find_spec(LATENCY, 1).faults(conditions(1.0), True))


def test_a_probe_reports_its_load_present_value_and_target() -> None:
    trace = simulate(Plant(M, CAPACITY, noise(3, 0.02, 0.0)), Find(find_spec(LATENCY, 2500.0), TOLERANCE, settle=1), 10)
    says = [decision.progress for decision in trace.decisions if "probe 1 " in decision.progress]
    assert len(says) >= 3
    told = r"search: probe 1 at \S+ IOPS, overall_response_us_mean of all \S+ \w+ so far, target 2\.5 ms"
    assert all(re.fullmatch(told, said) for said in says[1:]), says


def found_so_far(*probes: Probe, **changes: object) -> Find:
    return replace(Find(find_spec(LATENCY, 4000), TOLERANCE, settle=1, capacity=1000.0, probes=probes), **changes)  # type: ignore[arg-type]


def test_max_is_seen_for_three_subintervals_after_it_has_settled() -> None:
    trace = search(M, 1000, 4000)
    assert trace.loads[:4] == [None] * 4 and trace.loads[4] == pytest.approx(500, rel=0.01)
    plant = Plant(M, 1000, noise(1, 0.01, 0.3))
    longer = simulate(plant, Find(find_spec(LATENCY, 4000), TOLERANCE, settle=2, look=5), 3000)
    assert longer.loads[:7] == [None] * 7 and longer.loads[7] is not None


@pytest.mark.parametrize(
    ("again", "capacity", "confirmed"),
    [(1019, 1019, True), (1021, 1021, False), (979, 1000, True)],
)
def test_a_run_at_max_is_confirmed_by_one_within_the_resolution(again: float, capacity: float, confirmed: bool) -> None:
    """The other of the two leaves more loads to probe, above what passed."""
    known = found_so_far(probe(500, "pass", 2000.0))._knowing(again)
    assert (known.capacity, known.confirmed) == (capacity, confirmed)


@pytest.mark.parametrize(("again", "capacity", "confirmed"), [(981, 981, True), (979, 979, False), (1021, 1000, True)])
def test_where_nothing_passes_the_lower_run_at_max_leaves_more_loads(
    again: float, capacity: float, confirmed: bool
) -> None:
    known = found_so_far(probe(20, "fail", 9000.0))._knowing(again)
    assert (known.capacity, known.confirmed) == (capacity, confirmed)


@pytest.mark.parametrize(
    ("probes", "reasons"),
    [
        ((), [Reason.INTERRUPTED]),
        ((probe(500, "fail", 9000.0),), [Reason.INTERRUPTED]),
        ((probe(500, "pass", 2000.0),), [Reason.SEARCH_UNBOUNDED, Reason.SHORTENED]),
        ((probe(500, "pass", 2000.0), probe(700, "fail", 9000.0)), [Reason.SEARCH_FOUND, Reason.SHORTENED]),
    ],
)
def test_a_search_that_is_cut_short_says_what_it_knows(probes: tuple[Probe, ...], reasons: list[Reason]) -> None:
    found = found_so_far(*probes).cut_short(99)
    assert [one.reason for one in found.findings] == reasons


def test_an_edit_of_rates_or_a_pause_begins_the_stage_again_at_its_own_load() -> None:
    load = load_of(2500, 2500, 0)
    for stage, wanted in ((SearchStage.MAX, None), (SearchStage.DRAIN, 0.0), (SearchStage.PROBE, 500.0)):
        state = found_so_far(probe(400, "pass", 900.0), stage=stage, iops=500.0, since=3)
        edited = Observation(7, 35.0, 5.0, Phase.RUN, edited=True, loads={"all": {"all": load}})
        after, decision = state.after(edited)
        assert (after.since, after.seen, after.stage, len(after.probes)) == (8, (), stage, 1)
        assert [edit.total_iops for edit in decision.edits] == [wanted] and decision.next_phase is Phase.TRANSIENT


@pytest.mark.parametrize("stage", SearchStage)
@pytest.mark.parametrize("hosts_changed", [True, False])
def test_a_search_starts_anew_with_another_load(stage: SearchStage, hosts_changed: bool) -> None:
    before = Observation(6, 30.0, 5.0, Phase.RUN, loads={"all": {"all": load_of(2500, 2500, 0)}})
    state = found_so_far(
        probe(500, "pass", 900.0), probe(700, "fail", 9000.0), stage=stage, iops=600.0, since=3, seen=(before,)
    )
    other = replace(before, number=7, same_hosts=not hosts_changed, edited=True, other_load=not hosts_changed)
    after, decision = state.after(other)
    assert (after.since, after.seen, after.stage, after.probes, after.capacity) == (8, (), SearchStage.MAX, (), None)
    assert [edit.total_iops for edit in decision.edits] == [None] and decision.next_phase is Phase.TRANSIENT
    assert after._probe_number == 3
    assert [one.reason for one in after.cut_short(9).findings].count(Reason.HOSTS_CHANGED) == hosts_changed


def test_a_drain_is_given_up_after_the_longest_probe() -> None:
    state = found_so_far(stage=SearchStage.DRAIN, iops=500.0, since=10)
    waits = Observation(9 + state.spec.longest_probe, 0.0, 5.0, Phase.RUN, loads={"all": {"all": load_of(0, 0, 0, 1)}})
    assert not state.after(waits)[1].done
    assert state.after(replace(waits, number=waits.number + 1))[1].done
    drained = replace(waits, number=waits.number + 1, loads={"all": {"all": load_of(0, 0, 0, 0)}})
    after, decision = state.after(drained)
    assert (after.stage, after.since, decision.edits[0].total_iops) == (SearchStage.PROBE, drained.number + 1, 500.0)


def test_the_lowest_load_shows_a_percentile_within_half_of_the_longest_probe() -> None:
    p99 = find_spec(Focus("overall_service_us_p99", fraction=0.99), 4000, longest_probe=40)
    assert Find(p99, TOLERANCE, 1, length_s=5.0)._lowest() == 1000 / 100
    assert Find(p99, TOLERANCE, 1)._lowest() == 0.0 and found_so_far(length_s=5.0)._lowest() == 0.0


def test_a_search_may_end_with_any_probe_and_names_the_lowest_that_failed() -> None:
    state = found_so_far(replace(probe(700, "fail", 9000.0), last=12), replace(probe(20, "fail", 9000.0), last=20))
    assert state.may_end == (12, 20)
    _, progress = state._result(21)
    assert progress == "overall_response_us_mean <= 4 ms fails already at the lowest load, 20 IOPS"


def test_no_io_at_max_ends_the_search() -> None:
    state = Find(find_spec(LATENCY, 4000), TOLERANCE, settle=0, look=1)
    idle = Observation(0, 0.0, 5.0, Phase.RUN, loads={"all": {"all": load_of(0, 0, 0)}})
    (measured,) = state.after(idle)[1].measured
    assert [one.detail for one in measured.findings] == ["no I/O completed at max"]


@pytest.mark.parametrize(
    ("backlog", "sustained", "stage"),
    [(0, True, SearchStage.PROBE), (1, True, SearchStage.DRAIN), (0, False, SearchStage.DRAIN)],
)
def test_the_next_probe_waits_for_an_empty_backlog(backlog: int, sustained: bool, stage: SearchStage) -> None:
    seen = Observation(30, 150.0, 5.0, Phase.RUN, loads={"all": {"all": load_of(2500, 2500, backlog)}})
    state = found_so_far(stage=SearchStage.PROBE, iops=500.0)
    after = state._to(600.0, sustained, seen, ())[0]
    assert (after.stage, after.since) == (stage, 31)
    assert replace(state, stage=SearchStage.MAX)._to(600.0, sustained, seen, ())[0].stage is SearchStage.PROBE


def test_progress_counts_repeated_probes_and_names_the_instance_that_is_furthest_off() -> None:
    samples = {LATENCY: {"host=a": MetricSample(2e6, 1000), "host=b": MetricSample(3e6, 1000)}}
    loads = {"all": {"all": load_of(2500, 2500, 0)}}
    repeated = (RepeatedProbe(400.0, Finding(Reason.SET_ASIDE, "")),)
    state = found_so_far(probe(500, "pass", 2000.0), stage=SearchStage.PROBE, iops=600.0, repeated=repeated)
    progress = state.after(Observation(9, 45.0, 5.0, Phase.RUN, samples=samples, loads=loads))[1].progress
    assert progress.startswith("search: probe 3 at 600 IOPS, overall_response_us_mean of host=b 3 ms so far")


@pytest.mark.parametrize(("most", "in_doubt"), [(3, True), (2, False)])
def test_max_is_measured_again_while_a_run_is_left(most: int, in_doubt: bool) -> None:
    """One at max and one probe, at the highest load, have been."""
    state = found_so_far(probe(980, "pass", 2000.0))
    state = replace(state, spec=replace(state.spec, probes=most))
    seen = Observation(30, 150.0, 5.0, Phase.RUN, loads={"all": {"all": load_of(4900, 4900, 0)}})
    after, decision = state._next(seen, ())
    assert decision.done is not in_doubt
    if in_doubt:
        assert (after.stage, after.since, after.seen, after.maxima) == (SearchStage.MAX, 31, (), 2)


def test_a_narrow_interval_ends_the_search() -> None:
    """Though one run at max was not confirmed: nothing depends on it any more."""
    probes = [probe(load, "pass" if M(load) < TARGET else "fail", M(load), sd=1e-3) for load in (700, 740, 760, 800)]
    state = found_so_far(*probes)
    state = replace(state, spec=replace(state.spec, resolution=0.05))
    seen = Observation(30, 150.0, 5.0, Phase.RUN, loads={"all": {"all": load_of(2500, 2500, 0)}})
    _, decision = state._next(seen, ())
    assert decision.done and [one.reason for one in decision.measured[0].findings] == [Reason.SEARCH_FOUND]
