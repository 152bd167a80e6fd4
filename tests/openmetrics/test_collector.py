"""Metrics for Prometheus: the figures of the run's own files, under names that do not change, and nothing stale."""

import csv
import http.client
import json
import os
import re
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as families

from ivypy.master.cli.metrics import exported
from ivypy.master.errors import PlanError
from ivypy.master.live.reports import EventLine, Nobody, Report, RunBegins, RunEnds
from ivypy.master.openmetrics.buckets import BOUNDS_S, Coarse
from ivypy.master.openmetrics.collector import RunCollector
from ivypy.master.openmetrics.export import (
    MetricsBesideRun,
    MetricsExport,
    parse_address,
    registry_of,
    served,
    write_file,
)
from ivypy.master.pages.histogram_columns import Cells
from ivypy.master.plan.load import read
from ivypy.master.run.session.run import Run
from ivypy.protocol.histogram import bucket_of
from tests.support.late_results import without_result
from tests.support.made_once import Store
from tests.support.shown_runs import DECLINED, gathered
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, stage

ROOT = Path(__file__).parents[2]
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def nobody(run: Run, staged: SimulatedRun) -> None:
    """Nobody does anything while it runs."""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stage(tmp_path_factory.mktemp("run"), nobody, ONE_STEP.replace("go: one", "go: one, go: 'two \"2\"'")).folder


@pytest.fixture
def running(ended: Path, tmp_path: Path) -> Path:
    """The same in its second step, after three subintervals."""
    copy = tmp_path / ended.name
    shutil.copytree(ended, copy)
    record = json.loads((copy / "run.json").read_text())
    record["end_utc"] = record["exit_code"] = None
    record["steps"][1] |= {"verdict": "", "end_utc": None}
    (copy / "run.json").write_text(json.dumps(record))
    for path in copy.glob("step0001.*/*/*.csv"):
        if ".histogram." not in path.name:
            keep(path, 3)
    return copy


def keep(path: Path, rows: int) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[: rows + 1]))


def scraped(*folders: Path, types: tuple[str, ...] | None = None) -> Samples:
    registry = registry_of(lambda: folders, types)
    return {
        (one.name, frozenset(one.labels.items())): one.value
        for family in families(generate_latest(registry).decode())
        for one in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    (found,) = (one for (known, having), one in samples.items() if known == name and labels.items() <= {*having})
    return found


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    (path,) = folder.glob(f"step0001.*/{name}.csv")
    with path.open(newline="") as file:
        return [*csv.DictReader(file)]


@pytest.mark.parametrize(("kind", "instance"), [("all", "all"), ("host", "b"), ("workload", "scan")])
def test_the_figures_are_those_of_the_last_row(running: Path, kind: str, instance: str) -> None:
    row = rows(running, f"{kind}/{instance}")[-1]
    samples = scraped(running)
    of = {"rollup_type": kind, "rollup_instance": instance, "step": 'two "2"', "run": running.name}
    assert value(samples, "ivypy_iops", io="all", **of) == float(row["overall_iops"])
    assert value(samples, "ivypy_target_iops", **of) == float(row["iops_setting"])
    assert value(samples, "ivypy_bytes_per_second", io="read", **of) == float(row["read_mib_per_s"]) * 2**20
    for time in ("service", "response"):
        found = value(samples, f"ivypy_{time}_percentile_seconds", io="all", percentile="99", **of)
        assert found == pytest.approx(float(row[f"overall_{time}_us_p99"]) / 1e6)
    assert value(samples, "ivypy_hosts_missing", **of) == 0


def test_flushes_have_a_rate_and_service_times(running: Path) -> None:
    """Of a run whose reads were flushes."""
    before = rows(running, "all/all")[-1]
    (file,) = running.glob("step0001.*/all/all.csv")
    header, *lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([re.sub("(?<=,)read_", "flush_", header), *lines]))
    samples = scraped(running)
    of = {"rollup_type": "all", "rollup_instance": "all", "io": "flush"}
    assert value(samples, "ivypy_iops", **of) == float(before["read_iops"])
    assert value(samples, "ivypy_service_max_seconds", **of) == float(before["read_service_us_max"]) / 1e6


def test_histograms_hold_every_io_of_the_step_so_far(running: Path) -> None:
    samples = scraped(running)
    ios = sum(int(float(row["read_service_count"])) for row in rows(running, "all/all"))
    assert value(samples, "ivypy_service_seconds_count", io="read") == ios
    assert value(samples, "ivypy_service_seconds_bucket", io="read", le="+Inf") == ios
    mean = sum(
        float(row["read_service_us_mean"]) * float(row["read_service_count"]) for row in rows(running, "all/all")
    )
    assert value(samples, "ivypy_service_seconds_sum", io="read") == pytest.approx(mean / 1e6, rel=1e-5)
    assert value(samples, "ivypy_subintervals_total") == 3


def test_what_is_summed_is_the_same_however_often_it_is_scraped(ended: Path, running: Path) -> None:
    collector = RunCollector(lambda: [running])
    (whole,) = ended.glob("step0001.*/all/all.csv")
    lines = whole.read_text().splitlines(keepends=True)
    (growing,) = running.glob("step0001.*/all/all.csv")
    for count in (1, 2, 2, 5, len(lines)):
        growing.write_text("".join(lines[:count]))
        often = [*collector.collect()]
        once = [*RunCollector(lambda: [running]).collect()]
        assert often == once


def test_a_result_that_comes_late_is_added_once(ended: Path, running: Path) -> None:
    """No counter goes down meanwhile."""
    collector = RunCollector(lambda: [running])
    (whole,), (growing,) = (path.glob("step0001.*/all/all.csv") for path in (ended, running))
    join = without_result(running, 1, 1, "b")
    before = histograms_of(collector)
    join()
    growing.write_text("".join(whole.read_text().splitlines(keepends=True)[:5]))
    after = histograms_of(collector)
    assert after == histograms_of(RunCollector(lambda: [running]))
    assert before.keys() <= after.keys() and all(after[key] >= value for key, value in before.items())
    ios = sum(int(float(row["read_service_count"])) for row in rows(running, "all/all"))
    assert [one for key, one in after.items() if "ivypy_service_seconds_count" in key and "read" in key] == [ios]


def histograms_of(collector: RunCollector) -> dict[tuple[str, ...], float]:
    return {
        (one.name, *one.labels.values()): one.value
        for family in collector.collect()
        for one in family.samples
        if "_seconds_" in one.name and family.type == "histogram"
    }


def test_an_ended_step_leaves_its_verdict_and_nothing_else(ended: Path) -> None:
    samples = scraped(ended)
    assert {name for name, _ in samples} == {"ivypy_build_info", "ivypy_run_active", "ivypy_step_verdict"}
    assert value(samples, "ivypy_run_active") == 0
    assert value(samples, "ivypy_step_verdict", step="one", verdict="valid") == 1


def test_blank_figures_are_absent(running: Path) -> None:
    (path,) = running.glob("step0001.*/all/all.csv")
    with path.open(newline="") as file:
        header, *lines = csv.reader(file)
    place = header.index("overall_response_us_p99")
    lines[-1][place] = ""
    path.write_text("\n".join(",".join(line) for line in [header, *lines]) + "\n")
    found = [labels for name, labels in scraped(running) if name == "ivypy_response_percentile_seconds"]
    of_all = {dict(labels)["percentile"] for labels in found if {("rollup_type", "all"), ("io", "all")} <= labels}
    assert "99" not in of_all and "50" in of_all


@pytest.fixture
def gathering(store: Store, tmp_path: Path) -> Path:
    """A step with an array, which a connector has not answered for twice, in its tenth subinterval."""
    whole = store.run(gathered)
    folder = tmp_path / whole.name
    shutil.copytree(whole, folder)
    record = json.loads((folder / "run.json").read_text())
    record["end_utc"] = record["exit_code"] = None
    record["steps"] = [record["steps"][0] | {"verdict": "", "end_utc": None}]
    (folder / "run.json").write_text(json.dumps(record))
    for path in [*folder.glob("step0000.*/*/*.csv"), *folder.glob("step0000.*/gathers.csv")]:
        if ".histogram." not in path.name:
            keep_until(path, 10)
    return folder


def keep_until(path: Path, subinterval: int) -> None:
    """The rows of earlier subintervals."""
    header, *lines = path.read_text().splitlines(keepends=True)
    if header.startswith("subinterval,"):
        path.write_text("".join([header, *(line for line in lines if int(line.split(",")[0]) < subinterval)]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "instance", "file"),
    [("all", "all", "all/all.array.pg"), ("pg", "1-2", "pg/1-2.array.pg"), ("host", "lab02", "host/lab02.array.pg")],
)
def test_figures_of_connectors_are_those_of_the_last_row(gathering: Path, kind: str, instance: str, file: str) -> None:
    samples = scraped(gathering)
    row = (gathering / "step0000.hold" / f"{file}.csv").read_text().splitlines()
    last = dict(zip(row[0].split(","), row[-1].split(","), strict=True))
    of = {"rollup_type": kind, "rollup_instance": instance, "connector": "array", "element": "pg", "step": "hold"}
    for attribute, unit in (("busy_percent", "%"), ("ios_per_s", "1/s"), ("service_us", "us")):
        found = value(samples, "ivypy_connector_value", attribute=attribute, unit=unit, **of)
        assert found == float(last[attribute]) and last["subinterval"] == "9"
    attributes = {dict(labels)["attribute"] for name, labels in samples if name == "ivypy_connector_value"}
    assert attributes == {"busy_percent", "ios_per_s", "service_us", "write_pending_percent"}, "no minimum, no maximum"


@pytest.mark.slow
def test_gathers_are_counted_by_how_they_ended(gathering: Path) -> None:
    samples = scraped(gathering)
    counts = {
        dict(labels)["state"]: one for (name, labels), one in samples.items() if name == "ivypy_connector_gathers_total"
    }
    assert counts == {"gathered": 8, "declined": 3, "late": 0, "no_answer": 0, "busy": 0, "lost": 0}


@pytest.mark.slow
def test_what_a_connector_said_long_ago_is_absent(gathering: Path) -> None:
    for path in gathering.glob("step0000.*/*/*.array.*.csv"):
        keep_until(path, 9)
    assert [name for name, _ in scraped(gathering) if name == "ivypy_connector_value"]
    for path in gathering.glob("step0000.*/*/*.array.*.csv"):
        keep_until(path, 5)
    assert not [name for name, _ in scraped(gathering) if name == "ivypy_connector_value"]


@pytest.mark.slow
def test_where_a_gather_failed_there_is_no_figure(gathering: Path) -> None:
    for path in [*gathering.glob("step0000.*/*/*.csv"), *gathering.glob("step0000.*/gathers.csv")]:
        if ".histogram." not in path.name:
            keep_until(path, DECLINED[-1])
    assert not [name for name, _ in scraped(gathering) if name == "ivypy_connector_value"]


def test_too_many_files_of_connectors_are_left_out_and_counted(
    gathering: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ivypy.master.openmetrics.collector.MOST_CONNECTOR_FILES", 3)
    samples = scraped(gathering)
    assert value(samples, "ivypy_connector_instances_left_out", rollup_type="host") == 2
    kinds = {dict(labels)["rollup_type"] for name, labels in samples if name == "ivypy_connector_value"}
    assert kinds == {"all"}


def test_types_are_chosen(running: Path) -> None:
    kinds = {dict(labels)["rollup_type"] for name, labels in scraped(running, types=("host",)) if name == "ivypy_iops"}
    assert kinds == {"all", "host"}


def test_too_many_instances_are_left_out_and_counted(running: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ivypy.master.openmetrics.collector.MOST_INSTANCES", 2)
    samples = scraped(running)
    assert value(samples, "ivypy_instances_left_out", rollup_type="host") == 3
    assert not [1 for name, labels in samples if ("rollup_type", "host") in labels and name == "ivypy_iops"]


def test_a_run_that_is_gone_spoils_no_other(running: Path, tmp_path: Path) -> None:
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "run.json").write_text("{")
    assert scraped(tmp_path / "nowhere", tmp_path / "damaged", running) == scraped(running)


def test_openmetrics_parses_too(running: Path) -> None:
    generate: Any = generate_openmetrics
    parse: Any = openmetrics
    text = generate(registry_of(lambda: [running], None)).decode()
    assert {family.name for family in parse(text)} >= {"ivypy_iops", "ivypy_service_seconds", "ivypy_io_errors"}


@pytest.mark.parametrize("seed", range(5))
def test_a_bucket_holds_what_certainly_took_no_longer(seed: int) -> None:
    """Within 1/64 of its bound; none is lost."""
    ns = np.random.default_rng(seed).lognormal(12, 2.5, 4000).astype(int) + 1
    places = [bucket_of(int(one)) for one in ns]
    low = min(places)
    counts = np.bincount(np.array(places) - low).astype(np.uint64)
    coarse = Coarse()
    coarse.add([Cells(low, counts, len(ns), int(ns.sum()), int(ns.min()), int(ns.max()))])
    for (_, count), bound in zip(coarse.cumulative(), BOUNDS_S, strict=False):
        assert (ns <= bound * 1e9 * (1 - 1 / 64)).sum() <= count <= (ns <= bound * 1e9).sum()
    assert coarse.cumulative()[-1] == ("+Inf", len(ns)) and coarse.sum_s == pytest.approx(ns.sum() / 1e9)


@pytest.mark.slow
def test_the_file_is_whole_for_whoever_reads_it(running: Path, tmp_path: Path) -> None:
    registry, path = registry_of(lambda: [running], None), tmp_path / "ivypy.prom"
    (victim := tmp_path / "victim").write_text("precious")
    link = tmp_path / f".ivypy.prom.{os.getpid()}"
    link.symlink_to(victim)  # another user's, at a name that could be told beforehand
    write_file(registry, path)
    assert victim.read_text() == "precious"
    link.unlink()
    whole, ended = path.read_bytes(), threading.Event()
    seen: set[bytes] = set()

    def read() -> None:
        while not ended.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(30):
        write_file(registry, path)
    ended.set()
    reader.join()
    assert seen == {whole} and path.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in path.parent.iterdir() if one.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("text", "means"),
    [(":9101", ("127.0.0.1", 9101)), ("0.0.0.0:1", ("0.0.0.0", 1)), ("[::1]:9101", ("::1", 9101)), ("9101", None),
     ("host:", None), (":99999", None), ("", None), (":²", None)],
)  # fmt: skip
def test_addresses(text: str, means: tuple[str, int] | None) -> None:
    if means is not None:
        assert parse_address(text) == means
        return
    with pytest.raises(PlanError, match="is no address"):
        parse_address(text)


@pytest.fixture
def listening(running: Path) -> Iterator[int]:
    server: Any = served(registry_of(lambda: [running], None), "127.0.0.1:0")
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_a_scraper_that_hangs_costs_only_itself(listening: int) -> None:
    with socket.create_connection(("127.0.0.1", listening)) as silent:
        silent.sendall(b"GET /metrics HT")
        connection = http.client.HTTPConnection("127.0.0.1", listening, timeout=30)
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        assert answer.status == 200 and b"ivypy_iops" in answer.read()
        connection.close()


@pytest.mark.slow
def test_a_port_that_is_taken_is_said_before_the_run(listening: int) -> None:
    with pytest.raises(PlanError, match=r"cannot listen there.*name another port"):
        MetricsBesideRun(Nobody(), f"127.0.0.1:{listening}", None, ())


@pytest.mark.slow
def test_what_a_run_reports_goes_on_to_its_view(tmp_path: Path) -> None:
    seen: list[object] = []

    class View(Nobody):
        def show(self, report: Report) -> None:
            seen.append(report)

    export = MetricsBesideRun(View(), "", tmp_path / "x.prom", ())
    reports: list[Report] = [RunBegins(str(tmp_path), "p", 1), EventLine("", "", "text")]
    for report in reports:
        export.show(report)
    export.close()
    assert seen == reports and "ivypy_build_info" in (tmp_path / "x.prom").read_text()


def test_the_file_has_the_end_of_a_run_that_ends_while_it_is_written(
    running: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.prom"
    export = MetricsExport("", path, ())
    entered = threading.Event()

    def slow(*to: Any) -> None:
        """Has read what there is, and is not done before the run's view is being closed."""
        write_file(*to)
        entered.set()
        export._ended.wait(30)

    monkeypatch.setattr("ivypy.master.openmetrics.export.write_file", slow)
    export.begin(running)
    export.news()
    assert entered.wait(30)
    record = json.loads((running / "run.json").read_text())
    (running / "run.json").write_text(json.dumps(record | {"exit_code": 0, "end_utc": "2026-01-01T00:00:00+00:00"}))
    export.close()
    assert f'ivypy_run_active{{run="{running.name}"}} 0.0' in path.read_text()


@pytest.mark.slow
def test_an_export_that_was_killed_costs_the_run_nothing(running: Path, tmp_path: Path) -> None:
    export = MetricsBesideRun(Nobody(), "", tmp_path / "x.prom", ())
    export.show(RunBegins(str(running), "p", 1))
    os.kill(export._child.pid, signal.SIGKILL)
    export._child.wait()
    for _ in range(100_000):  # more than a pipe holds
        export.show(RunEnds(str(running), (), 0, ""))
    export.close()


@pytest.mark.slow
def test_an_export_that_does_not_read_delays_nobody(running: Path, tmp_path: Path) -> None:
    export = MetricsBesideRun(Nobody(), "", tmp_path / "x.prom", ())
    os.kill(export._child.pid, signal.SIGSTOP)
    for _ in range(100_000):
        export.show(RunEnds(str(running), (), 0, ""))
    os.kill(export._child.pid, signal.SIGKILL)
    export.close()


@pytest.mark.parametrize(
    ("address", "file", "by", "says"),
    [
        ("nonsense", None, "", "is no address"),
        ("", Path("/nowhere/x.prom"), "", "there is no folder /nowhere"),
        ("", Path("/tmp"), "", "a folder"),
        (":0", None, "hots", "no rollup type 'hots'; did you mean 'host'"),
        ("", None, "host", "needs --metrics"),
    ],
)
@pytest.mark.slow
def test_wrong_options_are_refused(address: str, file: Path | None, by: str, says: str) -> None:
    with pytest.raises(PlanError, match=re.escape(says)):
        exported(Nobody(), read(ONE_STEP, "sim.yaml"), address, file, by)


def exposed(samples: Samples) -> dict[str, set[str]]:
    """Each metric's labels."""
    found: dict[str, set[str]] = {}
    for name, labels in samples:
        found.setdefault(name, set()).update(dict(labels))
    return found


def test_the_docs_list_every_metric_with_its_labels(running: Path, gathering: Path) -> None:
    listed = re.findall(r"^\| `(ivypy_\w+)` \| ([\w, ]*) \|", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE)
    known = exposed(scraped(running, gathering))
    names = {
        re.sub(r"_(bucket|count|sum)$", "", name): labels - {"le"}
        for name, labels in known.items()
        if not name.endswith("_created")
    }
    row = "run, step, rollup_type, rollup_instance"
    documented = {name: {*filter(None, re.sub(r"^row\b", row, labels).split(", "))} for name, labels in listed}
    for kind in ("", "connector_"):
        documented.pop(f"ivypy_{kind}instances_left_out")  # which these runs have none of
    assert documented == names


def test_the_dashboard_asks_for_what_there_is(running: Path) -> None:
    board = json.loads((ROOT / "configs/grafana/ivypy.json").read_text())
    known = exposed(scraped(running))
    queries = re.findall(r'"(?:expr|query|definition)": ("(?:[^"\\]|\\.)*")', json.dumps(board))
    assert len(queries) > 10
    for query in map(json.loads, queries):
        for name, labels in re.findall(r"(ivypy_\w+)(?:\{([^}]*)\})?", query):
            assert name in known, query
            for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", labels or ""):
                assert label in known[name], (name, label)
        for label in re.findall(r"by \(([^)]*)\)", query):
            assert {*label.replace(" ", "").split(",")} <= set().union(*known.values()), query
    assert not re.findall(r'"uid": "(?!\$\{datasource\}|ivypy|--)', json.dumps(board)), "a data source of its own"
