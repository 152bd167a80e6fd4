"""Runs of ivypy, read from the histograms.sqlite that their writer left."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ivypy.master.output.histogram_db import HistogramWriter
from ivypy.master.rollup.instances import Rollups, WorkloadInstance
from ivypy.master.rollup.merge import Merger
from ivypy.master.rollup.merge_layout import MergeLayout
from ivypy.protocol.counters import RESPONSES, SERVICES, Kind
from tests.support.log_table import Row, counts, intervals, table, whole
from tests.support.logs import log, row, run
from tests.support.rollup_results import HostData, result

UTC_NS = 1_700_000_000_250_000_000
LENGTH_NS = 5 * 10**9
SUBINTERVALS = 4


def samples_of(host: str, subinterval: int) -> dict[tuple[int, int], list[int]]:
    """Reads of about 1 ms, writes of about 2 ms; the response a tenth longer."""
    rng = np.random.default_rng([len(host), ord(host[-1]), subinterval])
    found: dict[tuple[int, int], list[int]] = {}
    for kind, base in ((Kind.RANDOM_READ, 1e6), (Kind.SEQUENTIAL_READ, 1.1e6), (Kind.RANDOM_WRITE, 2e6)):
        values = rng.lognormal(np.log(base), 0.3, 400).astype(int)
        found[0, SERVICES[kind]] = values.tolist()
        found[0, RESPONSES[kind]] = (values * 1.1).astype(int).tolist()
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two hosts, a LUN each, four subintervals of a step."""
    folder = tmp_path_factory.mktemp("run")
    instances = [WorkloadInstance(0, host, "/dev/x", "w") for host in ("h1", "h2")]
    rollups, order = Rollups.build(instances, []), {"h1": [0], "h2": [0]}
    layout = MergeLayout.build(rollups, order)
    writer, merger = HistogramWriter(folder / "histograms.sqlite"), Merger(rollups, order)
    writer.step(0, "only", layout)
    for subinterval in range(SUBINTERVALS):
        merger.open(subinterval)
        for host in ("h1", "h2"):
            merger.add(host, result(HostData(1, 1, samples_of(host, subinterval)), subinterval, LENGTH_NS))
        writer.subinterval(0, "run", UTC_NS + subinterval * LENGTH_NS, merger.close())
    writer.close()
    yield folder


def exact(hosts: tuple[str, ...], first_series: int, kinds: tuple[Kind, ...], subinterval: int) -> np.ndarray:
    return np.array(
        [v for host in hosts for kind in kinds for v in samples_of(host, subinterval)[0, first_series + kind]]
    )


READS, WRITES = (Kind.RANDOM_READ, Kind.SEQUENTIAL_READ), (Kind.RANDOM_WRITE,)
SLICES = [
    ("all", ("h1", "h2"), READS + WRITES),
    ("h2", ("h2",), READS + WRITES),
    ("read", ("h1", "h2"), READS),
    ("write", ("h1", "h2"), WRITES),
]


@pytest.mark.parametrize(("instance", "hosts", "kinds"), SLICES)
@pytest.mark.parametrize(("latency", "first_series"), [("service", SERVICES[0]), ("response", RESPONSES[0])])
def test_a_run_is_read_as_it_was_measured(
    folder: Path, instance: str, hosts: tuple[str, ...], kinds: tuple[Kind, ...], latency: str, first_series: int
) -> None:
    """Its own subintervals are the intervals: counts and extremes are exact, percentiles within their buckets."""
    ran = run(folder, "--latency", latency, "--by", "all,host,direction", "--percentiles", "50,95")
    found = intervals(ran, instance)
    assert [one["start_s"] for one in found] == ["0", "5", "10", "15"]
    assert found[0]["start_utc"] == "2023-11-14T22:13:20.250Z"
    for number, one in enumerate(found):
        values = exact(hosts, first_series, kinds, number)
        assert (one["quantity"], float(one["count"])) == (latency, len(values))
        assert float(one["latency_us_min"]) == pytest.approx(values.min() / 1000, abs=0.001)
        assert float(one["latency_us_max"]) == pytest.approx(values.max() / 1000, abs=0.001)
        for percentile in (50, 95):
            true = np.percentile(values, percentile, method="inverted_cdf") / 1000
            assert float(one[f"latency_us_p{percentile}"]) == pytest.approx(
                true, abs=float(one[f"latency_us_p{percentile}_width"])
            )


def test_both_latencies_apart_and_the_step_as_job(folder: Path) -> None:
    found = table(run(folder, "--by", "job"))
    assert {(one["rollup_instance"], one["quantity"]) for one in found} == {
        ("step0000.only", "service"),
        ("step0000.only", "response"),
    }


def test_a_step_without_response_times_is_no_fault(tmp_path: Path) -> None:
    """Where iops is max nothing is due, so there is no response time to be read; the service time is."""
    instances = [WorkloadInstance(0, "h1", "/dev/x", "w")]
    rollups, order = Rollups.build(instances, []), {"h1": [0]}
    writer, merger = HistogramWriter(tmp_path / "histograms.sqlite"), Merger(rollups, order)
    writer.step(0, "max", MergeLayout.build(rollups, order))
    samples = samples_of("h1", 0)
    for kind in Kind:
        samples[0, RESPONSES[kind]] = []
    merger.open(0)
    merger.add("h1", result(HostData(1, 1, samples), 0, LENGTH_NS))
    writer.subinterval(0, "run", UTC_NS, merger.close())
    writer.close()
    assert {one["quantity"] for one in table(run(tmp_path))} == {"service"}


def test_a_run_and_logs_of_fio_side_by_side(folder: Path, tmp_path: Path) -> None:
    """On one clock, in one table, never added."""
    base_ms = UTC_NS // 10**6
    fio = log(tmp_path / "a_clat_hist.1.log", [row(base_ms + 1000 * n, 0, {900: 50}) for n in range(1, 21)])
    ran = run(folder, fio, "--latency", "service")
    quantities: dict[str, list[Row]] = {one["quantity"]: [] for one in table(ran)}
    for one in intervals(ran):
        quantities[one["quantity"]].append(one)
    assert [one["start_utc"] for one in quantities["clat"]] == [one["start_utc"] for one in quantities["service"]]
    assert counts(quantities["clat"]) == [250] * 4
    assert whole(run(folder, "--latency", "service"))["count"] == "9600"


def test_finer_intervals_cut_subintervals(folder: Path) -> None:
    found = intervals(run(folder, "--latency", "service", "--interval", "2s"))
    assert counts(found)[0] == pytest.approx(2400 * 2 / 5)
    assert sum(counts(found)) == pytest.approx(9600)


def test_a_file_that_is_no_run(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "histograms.sqlite")
    base.execute("CREATE TABLE x (y)")
    base.commit()
    base.close()
    assert "is not a run of ivypy that can be read" in run(tmp_path).err
