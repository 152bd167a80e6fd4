"""Law: one value for each number. What control decides on is what every other place shows, to the last digit.

A step of two hosts with random histograms goes through the real merge, and from there to control's samples, the CSV
row, the console's line, the JSON line, and histograms.sqlite, which `ivypy percentiles` reads back. Each of these
prints with its own number of digits; what it prints is the same float. Only which response times are shown differs:
control also sees those of a load that was not sustained, which the summary leaves blank.

A whole simulated run shows the same of what only a run has: the half-width of the table at its end, its status, and
windows.csv.
"""

import asyncio
import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ivypy.master.control.choices import OnDisturbance
from ivypy.master.control.control_spec import ControlSpec
from ivypy.master.control.decision import Decision
from ivypy.master.control.fixed import FixedSpec
from ivypy.master.control.late_hosts import LateHosts
from ivypy.master.control.observation import Phase, achieved_iops
from ivypy.master.control.observe import FOCUS_METRICS, focus_on, observe, observe_measurement
from ivypy.master.live.json_lines import JsonLines
from ivypy.master.live.line_view import standing_lines
from ivypy.master.live.reports import RunEnds, RunStatus, Subinterval
from ivypy.master.live.socket_messages import ANSWERS
from ivypy.master.live.subinterval_lines import subinterval_lines
from ivypy.master.output.csv_text import utc
from ivypy.master.output.histogram_db import HistogramWriter
from ivypy.master.output.rows import InstanceCells, setting_cells, subinterval_header, subinterval_rows
from ivypy.master.output.used_categories import ALWAYS
from ivypy.master.plan.model import Step
from ivypy.master.plan.read.yaml_positions import Place
from ivypy.master.rollup.figures import CATEGORIES, PERCENTILES, Figures
from ivypy.master.rollup.instances import Rollups
from ivypy.master.rollup.merge import MergedSubinterval, Merger
from ivypy.master.rollup.metrics import METRICS, column
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.rollup.window import Measurement, Window
from ivypy.master.run.record.step_reports import subinterval_report
from ivypy.master.run.session.run import Run
from ivypy.master.run.step.step_types import ClosedSubinterval
from ivypy.master.stats.estimate import estimates
from ivypy.master.stats.metric_sample import MetricSample, value_of
from ivypy.master.stats.sample_matrix import matrix_of
from ivypy.master.summary.headline import WIDE
from ivypy.master.summary.steps_table import steps_table
from ivypy.master.text.scaled import scaled_time
from ivypy.protocol.counters import RESPONSES, SERVICES, Kind
from ivypy.protocol.lines import decode, encode_line
from ivypy.protocol.parameters import Parameters
from tests.support.control_specs import TOLERANCE
from tests.support.logs import run
from tests.support.rollup import instance, merged, merger_of
from tests.support.rollup_results import HostData
from tests.support.simulated.plants import noisy
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, stage
from tests.support.simulated.slave import SimulatedSlave, steady
from tests.support.small_run import START, record

LENGTH_NS = 5 * 10**9
PLANNED_S = 5.005  # the real length, of which rates are, is another one
INSTANCES = [instance(0, host) for host in ("h1", "h2")]
ROLLUPS = Rollups.build(INSTANCES, [])
SETTINGS = Settings.of(ROLLUPS, {(one.host, one.number): Parameters(iops=1000.0) for one in INSTANCES})
STEP = Step(
    0,
    "step",
    (),
    5.0,
    0.0,
    15.0,
    0.0,
    {},
    Place("plan", 1, 1),
    ControlSpec(5.0, 0, FixedSpec(3), None, (), TOLERANCE, OnDisturbance.KEEP, rounds=None, is_watched=False),
)
IN_PERCENT = {name: 100 * fraction for name, fraction in PERCENTILES.items()}

NS = st.one_of(st.integers(0, 300), st.integers(10**4, 10**7), st.sampled_from([10**6, 999_999, 2**45, 2**46]))
HISTOGRAM = st.lists(st.tuples(NS, st.integers(1, 1200)), max_size=3)  # (latency, how many I/Os)
HOST = st.dictionaries(st.sampled_from([Kind.RANDOM_READ, Kind.SEQUENTIAL_WRITE]), HISTOGRAM)
SUBINTERVALS = st.lists(st.tuples(HOST, HOST), min_size=1, max_size=3)  # per subinterval
Hosts = list[tuple[dict[Kind, list[tuple[int, int]]], ...]]


def host_data(host: dict[Kind, list[tuple[int, int]]]) -> HostData:
    times = {}
    for kind, pairs in host.items():
        values = [ns for ns, ios in pairs for _ in range(ios)]
        times[0, SERVICES[kind]] = values
        times[0, RESPONSES[kind]] = [ns + 1000 for ns in values]
    return HostData(1, 1, times)


ALL_CATEGORIES = ALWAYS | {*CATEGORIES}


class Shown:
    """One closed subinterval, at every place that shows it."""

    def __init__(self, merger: Merger, place: int, hosts: tuple[dict[Kind, list[tuple[int, int]]], ...]) -> None:
        data = {host: host_data(one) for host, one in zip(("h1", "h2"), hosts, strict=True)}
        self.interval: MergedSubinterval = merged(merger, data, place, length_ns=LENGTH_NS)
        self.figures = self.interval.figures.shown(SETTINGS.response_rows())
        self.start_utc_ns = START + place * LENGTH_NS
        focuses = list(map(focus_on, FOCUS_METRICS))
        judged = LateHosts(self.interval.part)
        self.seen = observe(
            self.interval, SETTINGS, focuses, PLANNED_S * place, PLANNED_S, Phase.RUN, False, judged, judged
        )

    def csv(self) -> dict[str, str]:
        row = replace(record(self.interval, SETTINGS, "run", timed=False), figures=self.figures)
        header = subinterval_header(ROLLUPS.type("all"), ALL_CATEGORIES)
        lines = header + subinterval_rows(row, InstanceCells(ROLLUPS), setting_cells(SETTINGS), ALL_CATEGORIES)[0]
        (found,) = csv.DictReader(lines.splitlines())
        return found

    def report(self) -> Subinterval:
        timing = record(self.interval, SETTINGS, "run").timing
        closed = ClosedSubinterval(0, Phase.RUN, 0, self.interval, Decision(Phase.RUN), timing, SETTINGS)
        return subinterval_report(closed, self.figures, STEP, ROLLUPS, utc(self.start_utc_ns), 0.0, 0.0)

    def control(self, metric: str) -> float | None:
        """What a PID, a threshold and a criterion are given."""
        return self.seen.value(focus_on(metric), "all")

    def sample(self, metric: str) -> MetricSample:
        return self.seen.samples[focus_on(metric)]["all"]


def column_of(figures: Figures, metric: str) -> float | None:
    value = float(column(figures, metric)[0])
    return None if np.isnan(value) else value


def check_printed(shown: Shown) -> None:
    """The CSV row, the JSON line and the console's line, against what control sees."""
    cells, report = shown.csv(), shown.report()
    for metric in FOCUS_METRICS:
        seen = shown.control(metric)
        if seen is None:
            assert cells[metric] == ""
        else:
            assert float(cells[metric]) == float(METRICS[metric].precision.value % seen), metric
    assert shown.seen.loads["all"]["all"].iops == (shown.control("overall_iops") or 0.0)
    written: list[str] = []
    JsonLines(written.append).show(report)
    as_json = json.loads(written[0])["figures"]
    assert as_json["overall_iops"] == shown.control("overall_iops")
    line = subinterval_lines(report, WIDE)[0].split("|")
    for kind, part in (("service", line[1]), ("response", line[2])):
        for place, name in enumerate(("p50", "p99", "p99_9")):
            seen = shown.control(f"overall_{kind}_us_{name}")
            assert as_json.get(f"overall_{kind}_us_{name}") == seen
            assert part[1 + place * 8 :][:7].strip() == scaled_time(seen)


def check_read_back(row: Mapping[str, Any], figures: Figures, kind: str, control: Mapping[str, float | None]) -> None:
    """A row of `ivypy percentiles` of the run."""
    times = row["latency_us"]
    for name in PERCENTILES:
        assert times[name]["value"] == control[name], name
        assert (name in row["notes"].split()) is (control[name] is None)
    for name in ("min", "max"):
        assert times[name] == column_of(figures, f"overall_{kind}_us_{name}"), name
    is_exact = figures.service("overall").total_ns[0] < 2**53 and figures.response("overall").total_ns[0] < 2**53
    tolerance = 0.0 if is_exact else 1e-15  # a float holds no larger sum of latencies: 104 days
    for mean in (column_of(figures, f"overall_{kind}_us_mean"), control["mean"]):
        assert times["mean"] == pytest.approx(mean, rel=tolerance, abs=0.0)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(SUBINTERVALS)
@example([({Kind.RANDOM_READ: [(10**6, 5000)]}, {})])  # p99 was 1003.52 for control
@example([({Kind.RANDOM_READ: [(129, 3000), (1009, 3000)]}, {Kind.RANDOM_READ: [(128, 7000)]})])
def test_every_place_shows_what_control_sees(step: Hosts) -> None:
    merger, window = merger_of(ROLLUPS), Window(merger_of(ROLLUPS).layout)
    shown = [Shown(merger, place, hosts) for place, hosts in enumerate(step)]
    for one in shown:
        check_printed(one)
        window.add(one.interval)
    check_window(shown, window.measurement())
    figures = Figures(window.measurement().merged, SETTINGS.response_rows())
    with TemporaryDirectory() as folder:
        base = HistogramWriter(Path(folder) / "histograms.sqlite")
        base.step(0, "step", merger.layout)
        for one in shown:
            base.subinterval(0, "run", one.start_utc_ns, one.interval)
        base.close()
        wanted = ",".join(f"{percent:g}" for percent in IN_PERCENT.values())
        read = run(folder, "--format", "json", "--percentiles", wanted)
    rows = {}
    for series in json.loads(read.out)["series"] if read.out else []:
        rows.update({(series["quantity"], row["interval"]): row for row in series["rows"]})
    first = next((place for place, one in enumerate(shown) if one.control("overall_service_us_mean") is not None), 0)
    for kind in ("service", "response"):
        names = {name: f"overall_{kind}_us_{name}" for name in ("mean", *PERCENTILES)}
        for place, one in enumerate(shown):
            found = rows.get((kind, place - first))
            if found is None or not found["count"]:
                assert one.control(names["mean"]) is None
                continue
            check_read_back(found, one.figures, kind, {name: one.control(metric) for name, metric in names.items()})
            assert found["iops"] == pytest.approx(one.control("overall_iops"), rel=1e-12)  # a sum, in another order
        if whole := rows.get((kind, "whole")):
            check_read_back(whole, figures, kind, {name: over_all(shown, metric) for name, metric in names.items()})


def over_all(shown: list[Shown], metric: str) -> float | None:
    """A window of several subintervals, as a search and an SLO that lasts see it."""
    return value_of([one.sample(metric) for one in shown], focus_on(metric).fraction)


def check_window(shown: list[Shown], measurement: Measurement) -> None:
    """A summary row, against what control sees of the same subintervals: measure and find, in estimates over a matrix
    of samples; the checks of a measurement; and sums of samples."""
    figures = Figures(measurement.merged, SETTINGS.response_rows())
    checked = observe_measurement(measurement, map(focus_on, FOCUS_METRICS))
    achieved = achieved_iops(one.seen.loads["all"]["all"] for one in shown)
    assert achieved == pytest.approx(column_of(figures, "overall_iops") or 0.0, rel=1e-15, abs=0.0)
    for metric in FOCUS_METRICS:
        focus, expected = focus_on(metric), column_of(figures, metric)
        assert checked[focus]["all"] == expected, metric
        (estimated,) = estimates(matrix_of([one.seen.samples[focus] for one in shown], focus.fraction)).values
        # A rate is a sum of quotients, and a float holds no sum of latencies above 2**53 ns (104 days) exactly.
        tolerance = 0.0 if focus.fraction is not None else 1e-15
        for value in (over_all(shown, metric), None if np.isnan(estimated) else float(estimated)):
            if expected is None or value is None:
                assert value in (expected, 0.0), metric
            else:
                assert value == pytest.approx(expected, rel=tolerance, abs=0.0), metric


def test_control_sees_the_response_times_that_a_summary_leaves_blank() -> None:
    window = Window(merger_of(ROLLUPS).layout)
    window.add(Shown(merger_of(ROLLUPS), 0, ({Kind.RANDOM_READ: [(10**6, 5000)]}, {})).interval)
    measurement = window.measurement()
    reached = np.zeros(len(ROLLUPS.rows), bool)
    sustained, not_sustained = (
        Figures(measurement.merged, SETTINGS.response_rows(which)) for which in (~reached, reached)
    )
    checked = observe_measurement(measurement, map(focus_on, FOCUS_METRICS))
    for metric in FOCUS_METRICS:
        assert checked[focus_on(metric)]["all"] == column_of(sustained, metric), metric
        if "_response_us_" in metric:
            assert column_of(not_sustained, metric) is None
        else:
            assert column_of(not_sustained, metric) == column_of(sustained, metric)


def read_of_steps(folder: Path, steps: list[list[Shown]], apart_ns: int) -> list[dict[str, str]]:
    """The CSV of `ivypy percentiles` of a run whose steps begin so much after the step before."""
    base = HistogramWriter(folder / "histograms.sqlite")
    start_utc_ns = START
    for number, step in enumerate(steps):
        base.step(number, f"step{number}", merger_of(ROLLUPS).layout)
        for one in step:
            base.subinterval(number, "run", start_utc_ns, one.interval)
            start_utc_ns += LENGTH_NS
        start_utc_ns += apart_ns
    base.close()
    return list(csv.DictReader(run(folder, "--latency", "service", "--percentiles", "50,99").out.splitlines()))


@pytest.mark.parametrize("apart_ns", [0, 1, 1_700_000_000, LENGTH_NS - 1, LENGTH_NS + 1_700_000_000])
def test_each_interval_of_a_later_step_is_its_row(tmp_path: Path, apart_ns: int) -> None:
    hosts: list[Hosts] = [
        [({Kind.RANDOM_READ: [(10**6 * (1 + step + 3 * place), 5000), (187_391 + place, 700)]}, {}) for place in (0, 1)]
        for step in range(3)
    ]
    merger = merger_of(ROLLUPS)
    steps = [[Shown(merger, 2 * step + place, one) for place, one in enumerate(own)] for step, own in enumerate(hosts)]
    rows = [row for row in read_of_steps(tmp_path, steps, apart_ns) if row["count"] not in ("", "0")]
    shown = [one for step in steps for one in step]
    assert len(rows) == len(shown) + 1
    for row, one in zip(rows, shown, strict=False):
        cells = one.csv()
        assert row["notes"] == ""
        assert row["count"] == "5700"
        for name in ("mean", "min", "max", "p50", "p99"):
            assert row[f"latency_us_{name}"] == cells[f"overall_service_us_{name}"], name
        assert row["latency_us_stdev"] == cells["overall_service_us_sd"]


def test_the_whole_of_a_run_holds_what_a_measurement_may_count(tmp_path: Path) -> None:
    """What no measurement counts is not in it, unless all phases are asked for."""
    base, merger = HistogramWriter(tmp_path / "histograms.sqlite"), merger_of(ROLLUPS)
    base.step(0, "step", merger.layout)
    for place, phase in enumerate(Phase):
        one = Shown(merger, place, ({Kind.RANDOM_READ: [(10**6, 100 + place)]}, {}))
        base.subinterval(0, phase.value, one.start_utc_ns, one.interval)
    base.close()
    for phases, ios in ((), "101"), (("--phases", "all"), "615"):
        ran = run(tmp_path, "--latency", "service", *phases)
        (whole,) = [row for row in csv.DictReader(ran.out.splitlines()) if row["interval"] == "whole"]
        assert whole["count"] == ios
        assert ("left out by phase: 1 warmup, 1 transient, 1 disturbed, 1 tail, 1 cooldown" in ran.err) is (not phases)


@pytest.fixture(scope="module")
def noisy_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[SimulatedRun, list[RunStatus]]:
    """A run of one step, long enough for a half-width, and its status in the middle of each subinterval."""
    statuses = []

    async def visit(run: Run, staged: SimulatedRun) -> None:
        while run.api.running is not None:
            await asyncio.sleep(5.0)
            statuses.append(run.api.standing())

    slaves = {name: SimulatedSlave(name, plant=noisy(steady(1000.0), 0.05, seed=ord(name))) for name in "abc"}
    text = ONE_STEP.replace("go: one", "go: { name: one, measure: 120s }").replace("iops: 1000", "iops: max")
    return stage(tmp_path_factory.mktemp("run"), visit, text, slaves), statuses


@pytest.mark.slow
def test_the_table_shows_the_half_width_of_the_summary(noisy_run: tuple[SimulatedRun, list[RunStatus]]) -> None:
    staged, _ = noisy_run
    (summary,) = staged.rows("summary.all.csv")
    ends = next(report for report in staged.eyes.seen if isinstance(report, RunEnds))
    written: list[str] = []
    JsonLines(written.append).show(ends)
    (measured,) = json.loads(written[0])["steps"][0]["measured"]
    half, iops = (measured["figures"][name] for name in ("overall_iops_half_width", "overall_iops"))
    assert half > 0
    assert f"{iops:.7g}" == summary["overall_iops"]
    assert f"{half:.7g}" == summary["overall_iops_half_width"]
    line = next(line for line in steps_table(ends.steps, WIDE) if line.startswith("0 one"))
    assert f" {half / iops * 100:.1f}% " in line


@pytest.mark.slow
def test_the_status_is_the_line_of_the_last_subinterval(noisy_run: tuple[SimulatedRun, list[RunStatus]]) -> None:
    staged, statuses = noisy_run
    shown = {report.number: report for report in staged.eyes.seen if isinstance(report, Subinterval)}
    seen = [status for status in statuses if status.running and status.last is not None]
    assert len({status.last.number for status in seen if status.last}) >= 24
    for status in seen:
        assert status.last is not None
        read = decode(encode_line(status).strip(), ANSWERS)  # as `ivypy status` and `ivypy attach` get it
        assert isinstance(read, RunStatus) and read.last == shown[status.last.number]
        lines = standing_lines(read, WIDE, datetime.now().astimezone())
        assert subinterval_lines(shown[status.last.number], WIDE)[0] in lines


@pytest.mark.slow
def test_a_window_is_that_of_the_summary(noisy_run: tuple[SimulatedRun, list[RunStatus]]) -> None:
    staged, _ = noisy_run
    (summary,), (window,) = staged.rows("summary.all.csv"), staged.rows("step0000.one/windows.csv")
    for name in ("first_subinterval", "last_subinterval", "start_utc", "end_utc"):
        assert window[name] == summary[name], name
    assert window["hosts"] == summary["hosts_in"]
