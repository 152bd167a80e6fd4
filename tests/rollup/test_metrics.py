"""Every metric is a record: names are made in one place, and taken apart nowhere."""

import ast
from pathlib import Path

import pytest

from ivypy.master.control.choices import FIO, LATENCIES, USUAL_METRIC
from ivypy.master.control.observe import FOCUS_METRICS
from ivypy.master.output.columns import METRIC_COLUMNS
from ivypy.master.rollup.figures import CATEGORIES, OVERALL, PERCENTILES
from ivypy.master.rollup.metrics import BLOCKS, MEAN, METRICS, SHORT_NAMES, Quantity, full_name, metric_of, unit_of
from ivypy.master.text.metric_amounts import MetricUnit

MASTER = Path(__file__).parents[2] / "master"
TAKEN_APART = {"endswith", "startswith", "partition", "rpartition", "split", "removeprefix", "removesuffix", "replace"}


def test_every_column_of_a_metric_is_its_records_name() -> None:
    assert [column.name for column in METRIC_COLUMNS] == [metric.name for _, block in BLOCKS for metric in block]
    assert all(METRICS[column.name].unit == column.unit for column in METRIC_COLUMNS)


def test_every_metric_that_a_plan_may_name_has_a_record() -> None:
    named = {*FOCUS_METRICS, USUAL_METRIC, *(metric for _, metric in FIO.values())}
    assert named <= set(METRICS)
    assert LATENCIES == (MEAN, *PERCENTILES)
    assert {metric_of(OVERALL, Quantity.SERVICE, one).name for one in LATENCIES} <= set(FOCUS_METRICS)


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("p99", "overall_service_us_p99"), ("p99.9", "overall_service_us_p99_9"), ("iops", "overall_iops"),
        ("mean", "overall_service_us_mean"), ("response_p99", "overall_response_us_p99"),
        ("service_p50", "overall_service_us_p50"), ("read_p99_9", "read_service_us_p99_9"),
        ("random_write_response_max", "random_write_response_us_max"), ("mib_per_s", "overall_mib_per_s"),
        ("cpu_busy_percent", "cpu_busy_percent"), ("overall_iops", "overall_iops"), ("p98", "p98"), ("", ""),
    ],
)  # fmt: skip
def test_a_short_name_is_the_name_of_one_metric(short: str, full: str) -> None:
    assert full_name(short) == full


def test_no_short_name_is_the_name_of_another_metric() -> None:
    assert all(METRICS[full].name == full for full in SHORT_NAMES.values())
    assert all(short not in METRICS or short == full for short, full in SHORT_NAMES.items())


def test_a_metrics_name_says_what_it_is() -> None:
    units = {MetricUnit.US: "us", MetricUnit.MS: "ms", MetricUnit.KIB: "kib", MetricUnit.PERCENT: "percent"}
    for name, metric in METRICS.items():
        unit = units.get(metric.unit, "")
        if not metric.category:
            assert name.endswith(unit)
            continue
        assert metric.category in (*CATEGORIES, "generator")
        assert name == "_".join(filter(None, (metric.category, metric.quantity, unit, metric.statistic)))
        assert metric_of(metric.category, metric.quantity, metric.statistic) is metric


@pytest.mark.parametrize(
    ("name", "is_rate", "is_over_time", "needs_pacing", "fraction"),
    [
        ("overall_iops", True, True, False, None),
        ("random_read_mib_per_s", True, True, False, None),
        ("cpu_busy_percent", False, True, False, None),
        ("busiest_core_percent", False, True, False, None),
        ("write_service_us_mean", False, False, False, None),
        ("overall_response_us_p99_9", False, False, True, 0.999),
        ("sequential_response_us_mean", False, False, True, None),
        ("overall_response_count", False, False, True, None),
        ("generator_lateness_us_p99", False, False, False, 0.99),
        ("backlog", False, False, False, None),
    ],
)
def test_what_a_record_says(
    name: str, is_rate: bool, is_over_time: bool, needs_pacing: bool, fraction: float | None
) -> None:
    metric = METRICS[name]
    assert (metric.is_rate, metric.is_over_time) == (is_rate, is_over_time)
    assert (metric.needs_pacing, metric.fraction) == (needs_pacing, fraction)


def test_a_column_that_is_no_metric_has_no_unit() -> None:
    assert unit_of("made_up_us_mean") is MetricUnit.NONE


def _is_metric(node: ast.expr) -> bool:
    """`metric`, `x.metric` or `metric.name`."""
    match node:
        case ast.Name(id="metric") | ast.Attribute(attr="metric"):
            return True
        case ast.Attribute(value=ast.Name(id="metric"), attr="name"):
            return True
        case _:
            return False


def _taken_apart(code: str) -> list[str]:
    found: list[ast.expr] = []
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in TAKEN_APART and _is_metric(value):
                found.append(node)
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[name]) if _is_metric(name):
                found.append(node)
    return [ast.unparse(node) for node in found]


@pytest.mark.slow
def test_no_code_takes_a_metrics_name_apart() -> None:
    code = 'focus.metric.endswith("_iops") or "_us_" in metric or metric.name.split("_") or metric in METRICS'
    assert len(_taken_apart(code)) == 3
    found = {str(path.relative_to(MASTER)): _taken_apart(path.read_text()) for path in MASTER.rglob("*.py")}
    assert not {path: lines for path, lines in found.items() if lines}
