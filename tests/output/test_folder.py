"""A run folder written, and read back as a user would: with the csv module, by column names."""

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from ivypy.master.errors import OutputError
from ivypy.master.output import folder as folder_module
from ivypy.master.output import step_folder as step_module
from ivypy.master.output.columns import METRIC_COLUMNS
from ivypy.master.output.csv_text import append
from ivypy.master.output.folder import RunFolder
from ivypy.master.output.record_types import Event, SummaryRecord
from ivypy.master.rollup.merge import Merger
from ivypy.master.rollup.metrics import METRICS, of_nothing
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.rollup.validity import Validity, check_validity
from ivypy.master.rollup.window import Window
from ivypy.master.verdicts import Finding, Reason
from ivypy.protocol.counters import SERVICES, Count
from ivypy.protocol.lines import decode_line
from ivypy.protocol.messages import Result
from tests.support.real_runs import presence
from tests.support.rollup_results import HostData, result
from tests.support.small_run import (  # fmt: skip
    CORES,
    HOSTS,
    LENGTH,
    PARAMETERS,
    START,
    data,
    interval,
    record,
    rollups,
    samples,
    table,
    write_run,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs"))


def test_the_folder_is_as_designed(run: Path) -> None:
    assert run.name == "two%20hosts-20251121T111000Z"
    found = sorted(str(path.relative_to(run)) for path in run.rglob("*") if path.is_file())
    ends = (".csv", ".histogram.csv")
    step = [
        "all/all.csv", "all/all.histogram.csv", "clock.csv", "cpu.csv",
        *(f"host+port/{host}+{port}%3AA{end}" for host in HOSTS for port in (1, 2) for end in ends),
        *(f"host/{host}{end}" for host in HOSTS for end in ends),
        "index.csv", "interlock.csv", "late/h2.jsonl", "threads.csv", "windows.csv",
    ]  # fmt: skip
    assert found == sorted([
        "events.csv", "histograms.sqlite", "hosts.csv", "luns.csv", "plan.yaml", "run.json", "summary.csv",
        "workloads.csv",
        *(f"summary.{kind}.csv" for kind in ("all", "host", "host+port", "port")),
        *(f"{folder}/{file}" for folder in ("step0000.max", "step0001.half%2C%20again") for file in step),
    ])  # fmt: skip
    assert (run / "log").is_dir()


def test_every_table_is_rectangular(run: Path) -> None:
    for path in run.rglob("*.csv"):
        assert table(path), path


def by_hand(k: int, hosts: tuple[str, ...], classes: tuple[int, ...]) -> list[int]:
    """Service times of every I/O of a slice in a subinterval."""
    found = []
    for host in hosts:
        for (klass, series), ns in samples(host, k).items():
            if klass in classes and series < SERVICES[0] + 4:
                found += ns
    return found


@pytest.mark.parametrize(
    ("file", "hosts", "classes"),
    [
        ("all/all.csv", HOSTS, (0, 1)),
        ("host/h1.csv", ("h1",), (0, 1)),
        ("host/h2.csv", ("h2",), (0, 1)),
        ("host+port/h1+1%3AA.csv", ("h1",), (0,)),
        ("host+port/h2+2%3AA.csv", ("h2",), (1,)),
    ],
)
def test_rows_of_subintervals(run: Path, file: str, hosts: tuple[str, ...], classes: tuple[int, ...]) -> None:
    rows = table(run / "step0000.max" / file)
    assert [row["subinterval"] for row in rows] == [str(k) for k in range(8)]
    assert [row["phase"] for row in rows] == ["warmup", *["run"] * 6, "tail"]
    assert [row["in_measurement"] for row in rows] == ["0", *["1"] * 6, "0"]
    for k, row in enumerate(rows[:7]):
        ns = by_hand(k, hosts, classes)
        assert int(row["overall_service_count"]) == len(ns)
        assert float(row["overall_iops"]) == pytest.approx(len(ns) / 5, rel=1e-6)
        assert float(row["overall_mib_per_s"]) == pytest.approx(len(ns) * 8192 / 5 / 2**20, rel=1e-6)
        assert float(row["overall_service_us_mean"]) == pytest.approx(np.mean(ns) / 1e3, rel=1e-6)
        assert float(row["overall_service_us_sd"]) == pytest.approx(np.std(ns, ddof=1) / 1e3, rel=1e-6)
        assert float(row["overall_service_us_max"]) == max(ns) / 1e3
        assert float(row["overall_service_us_min"]) == min(ns) / 1e3
        median = np.quantile(ns, 0.5, method="inverted_cdf") / 1e3
        assert float(row["overall_service_us_p50"]) == pytest.approx(median, rel=1 / 128)
        assert row["overall_service_us_p99"] == ""  # fewer than ten samples beyond it
        assert float(row["overall_response_us_mean"]) == pytest.approx(np.mean(ns) / 1e3 + 10, rel=1e-6)
        assert presence(row) == f"{len(hosts)}/{len(hosts)}"
        assert row["start_utc"] == f"2025-11-21T11:10:{5 + 5 * k:02d}.250000Z"
        assert (row["length_s"], row["generator_lateness_us_mean"]) == ("5", "2")


def test_a_rows_parts_add_up(run: Path) -> None:
    step = run / "step0000.max"
    everything = table(step / "all" / "all.csv")
    added = ["due", "backlog", "outstanding", "overall_service_count", "write_service_count", "read_response_count"]
    for kind in ("host", "host+port"):
        parts = [table(path) for path in (step / kind).glob("*.csv") if ".histogram." not in path.name]
        for k, whole in enumerate(everything):
            present = [part[k] for part in parts if not presence(part[k]).startswith("0/")]
            for name in added:
                assert sum(int(part[name]) for part in present) == int(whole[name]), (kind, k, name)
            assert sum(float(part["overall_iops"]) for part in present) == pytest.approx(float(whole["overall_iops"]))
    for row in everything:
        categories = [
            int({**of_nothing(row["overall_iops"]), **row}[f"{name}_service_count"])
            for name in ("overall", "read", "write", "random", "sequential")
        ]
        assert categories[0] == categories[1] + categories[2] == categories[3] + categories[4]


def test_a_row_says_which_hosts_it_is_of(run: Path) -> None:
    last = table(run / "step0000.max" / "all" / "all.csv")[7]
    assert (presence(last), last["overall_service_count"]) == ("1/2", "220")
    gone = table(run / "step0000.max" / "host" / "h2.csv")[7]
    assert presence(gone) == "0/1"
    assert {gone[column.name] for column in METRIC_COLUMNS if column.name in gone} == {""}


def test_rows_carry_settings_and_attributes(run: Path) -> None:
    row = table(run / "step0000.max" / "host+port" / "h1+1%3AA.csv")[0]
    assert (row["rollup_type"], row["rollup_instance"], row["host"], row["port"]) == (
        "host+port",
        "h1+1:A",
        "h1",
        "1:A",
    )
    assert (row["iops_setting"], row["iops"], row["blocksize"], row["workload_instances"]) == ("20", "20", "8192", "1")
    row = table(run / "step0000.max" / "all" / "all.csv")[0]
    assert (row["iops_setting"], row["iops"], row["workload_instances"]) == ("82", "20(2/4) 21(2/4)", "4")


def test_summaries_have_a_row_per_step_and_instance(run: Path) -> None:
    for kind, instances in (("all", ["all"]), ("host", ["h1", "h2"]), ("port", ["1:A", "2:A"])):
        rows = table(run / f"summary.{kind}.csv")
        assert [(row["step"], row["name"], row["rollup_instance"]) for row in rows] == [
            (str(step), name, instance) for step, name in enumerate(("max", "half, again")) for instance in instances
        ]


def test_a_summary_is_of_the_measurement(run: Path) -> None:
    row = table(run / "summary.host.csv")[0]
    ns = [one for k in range(1, 7) for one in by_hand(k, ("h1",), (0, 1))]
    assert (row["verdict"], row["reasons"]) == ("valid", "too_few_subintervals[note] (6)")
    assert (row["first_subinterval"], row["last_subinterval"], row["length_s"]) == ("1", "6", "30")
    assert (row["start_utc"], row["end_utc"]) == ("2025-11-21T11:10:10.250000Z", "2025-11-21T11:10:40.250000Z")
    assert row["step_start_utc"] == "2025-11-21T11:10:05.250000Z"
    assert int(row["overall_service_count"]) == len(ns)
    assert float(row["overall_iops"]) == pytest.approx(len(ns) / 30, rel=1e-6)
    assert float(row["overall_service_us_mean"]) == pytest.approx(np.mean(ns) / 1e3, rel=1e-6)
    assert float(row["overall_service_us_p90"]) == pytest.approx(np.quantile(ns, 0.9) / 1e3, rel=1 / 64)
    assert float(row["overall_response_us_p50"]) > float(row["overall_service_us_p50"])
    assert row["overall_iops_half_width"] == row["overall_service_us_mean_half_width"] == ""


def test_histograms_have_every_sample(run: Path) -> None:
    rows = table(run / "step0000.max" / "host" / "h1.histogram.csv")
    total: dict[tuple[str, str], int] = {}
    for row in rows:
        assert float(row["from_us"]) < float(row["below_us"])
        key = row["category"], row["time"]
        total[key] = total.get(key, 0) + int(row["count"])
    assert total == {
        **{(name, time): 6 * 220 for name in ("overall", "random") for time in ("service", "response")},
        **{(name, time): 6 * 200 for name in ("read", "random_read") for time in ("service", "response")},
        **{(name, time): 6 * 20 for name in ("write", "random_write") for time in ("service", "response")},
        ("overall", "lateness"): 6 * 220,
    }
    writes = [row for row in rows if (row["category"], row["time"]) == ("write", "service")]
    assert len(writes) == 1 and float(writes[0]["from_us"]) <= 50 < float(writes[0]["below_us"])


def test_index_names_every_instances_files(run: Path) -> None:
    step = run / "step0000.max"
    for row in table(step / "index.csv"):
        if row["rollup_type"] == "port":  # csv: false
            assert row["file"] == row["histogram_file"] == ""
        else:
            assert table(step / row["file"])[0]["rollup_instance"] == row["rollup_instance"]
            assert (step / row["histogram_file"]).is_file()
    assert not (step / "port").exists()


def test_rows_of_hosts_and_threads(run: Path) -> None:
    step = run / "step0000.max"
    cpu = table(step / "cpu.csv")[1]
    assert cpu == {
        "subinterval": "0", "host": "h2", "cpu_busy_percent": "20", "busiest_core": "3", "busiest_core_percent": "30",
        "cpu_others_percent": "0", "others_beside_percent": "0", "cpu_steal_percent": "0", "steal_beside_percent": "0",
        "cpu_wait_percent": "0", "throttled_ms": "0", "stalled_ms": "0", "longest_stall_ms": "0",
        "core_0": "", "core_1": "", "core_2": "10", "core_3": "30",
    }  # fmt: skip
    clock = table(step / "clock.csv")[0]
    assert clock == {
        "subinterval": "0", "host": "h1", "offset_us": "-2.5", "error_bound_us": "40", "rate_ppm": "1.25",
        "start_skew_us": "0.9", "boundary_skew_us": "-0.8", "step_us": "0",
    }  # fmt: skip
    interlock = table(step / "interlock.csv")[0]
    assert [interlock[name] for name in ("send_up_ms", "barrier_1_ms", "processing_ms", "slack_ms")] == [
        "3", "4", "2", "4990",
    ]  # fmt: skip
    assert (interlock["threads"], interlock["not_swapped"], interlock["dispatch_us_max"]) == ("2", "0", "0.3")
    threads = table(step / "threads.csv")
    assert len(threads) == 2 * (7 * 2 + 1)
    assert [threads[1][name] for name in ("host", "thread", "core", "swapped", "dispatch_us", "reaps")] == [
        "h1", "1", "0", "1", "0.3", "1200",
    ]  # fmt: skip


def test_hosts_luns_workloads_and_events_have_their_tables(run: Path) -> None:
    host = table(run / "hosts.csv")[0]
    assert [host[name] for name in ("host", "hostname", "cores", "backends", "io_uring")] == [
        "h1", "machine, one", "2", "libaio null", "iopoll registered_ring",
    ]  # fmt: skip
    lun = table(run / "luns.csv")[1]
    assert (lun["host"], lun["vendor"], lun["notices"]) == (
        "h2",
        'A "B", C',
        "no_answer: one; writers_unknown: another",
    )
    workload = table(run / "workloads.csv")[3]
    assert (workload["instance"], workload["number"], workload["iops"]) == ("h2+/dev/sd1+w", "1", "21")
    assert (workload["rollup.host+port"], workload["rollup.all"]) == ("h2+2:A", "all")
    (event,) = table(run / "events.csv")
    assert event == {
        "utc": "2025-11-21T11:10:05.250000Z", "step": "0", "subinterval": "1", "host": "h1", "kind": "mark",
        "text": 'he said "x, y"\\nand left',
    }  # fmt: skip
    (window,) = table(run / "step0000.max" / "windows.csv")
    assert (window["window"], window["first_subinterval"], window["why"]) == ("measurement", "1", "fixed time")


def test_run_json_has_exit_code_hosts_and_steps(run: Path) -> None:
    said = json.loads((run / "run.json").read_text())
    assert said["exit_code"] == 0 and said["socket"] == "/s"
    assert said["start_utc"] == "2025-11-21T11:10:05.250000Z"
    assert said["hosts"]["h1"]["kernel"] == "6.1"
    assert said["steps"][0]["verdict"] == "valid" and said["steps"][0]["end_utc"].endswith("Z")
    assert (run / "plan.yaml").read_text() == "name: two hosts\n"


def test_late_results_are_kept_apart(run: Path) -> None:
    kept = decode_line((run / "step0000.max" / "late" / "h2.jsonl").read_bytes())
    assert isinstance(kept, Result) and kept.subinterval == 7


def test_any_prefix_of_a_run_is_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each and every append, each CSV holds whole rows under one header."""
    appended = 0

    def checked(path: Path, text: str) -> None:
        nonlocal appended
        append(path, text)
        appended += 1
        if path.suffix == ".csv":
            assert path.read_text().endswith("\n")
            table(path)

    monkeypatch.setattr(step_module, "append", checked)
    monkeypatch.setattr(folder_module, "append", checked)
    write_run(tmp_path)
    assert appended > 150


def test_a_second_run_of_the_same_second_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    at = datetime(2025, 11, 21, 11, 10, tzinfo=UTC)
    folders = [RunFolder.create(tmp_path / "new", "x", at) for _ in range(3)]
    assert [folder.path.name for folder in folders] == [f"x-20251121T111000Z{end}" for end in ("", "-2", "-3")]
    for folder in folders:
        folder.close()


def test_a_root_that_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file: no run folder can be made there: .*; give another with -o"):
        RunFolder.create(tmp_path / "file", "x", datetime.now(UTC))


def test_a_folder_that_has_gone_is_an_error_with_the_path(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "x", datetime.now(UTC))
    folder.path.rename(tmp_path / "elsewhere")
    with pytest.raises(OutputError, match=r"events.csv: not written: No such file"):
        folder.event(Event(START, "mark", "x"))
    with pytest.raises(OutputError, match=r"plan.yaml: not written: No such file"):
        folder.plan("x")
    with pytest.raises(OutputError, match=r"step0000.x: not written: No such file"):
        folder.step(0, "x", Merger(rollups(), {}).layout, {})
    folder.close()


def test_a_step_without_a_measurement_has_rows_that_say_so(tmp_path: Path) -> None:
    sliced = rollups()
    folder = RunFolder.create(tmp_path, "x", datetime.now(UTC))
    validity = Validity.unmeasured(sliced, [Finding(Reason.INTERRUPTED, "in warmup")])
    settings = Settings.of(sliced, PARAMETERS)
    folder.summary(0, "x", SummaryRecord(START, None, None, None, validity, settings), sliced)
    folder.close()
    row = table(folder.path / "summary.host.csv")[1]
    assert (row["verdict"], row["reasons"], row["iops_setting"]) == (
        "invalid",
        "interrupted[invalid] (in warmup)",
        "41",
    )
    assert row["step_start_utc"] and not row["start_utc"] and not row["first_subinterval"] and not row["hosts_in"]
    assert not any(row[name] for name in METRICS if name in row) and row["overall_iops"] == ""


def test_response_times_are_blank_where_the_target_was_not_reached(tmp_path: Path) -> None:
    """In the row that missed it, and in those that it is a part of."""
    sliced = rollups()
    folder = RunFolder.create(tmp_path, "x", datetime.now(UTC))
    merger = Merger(sliced, {host: sliced.order(host) for host in HOSTS})
    window = Window(merger.layout)
    for k in range(20):
        merger.open(k)
        for host in HOSTS:
            good = data(host, k)
            late = (
                {(0, Count.BACKLOG): 40 * k, (0, Count.SUBMITTED): 80, (0, Count.COMPLETED): 80} if host == "h2" else {}
            )
            merger.add(host, result(HostData(2, 2, good.samples, dict(good.counts) | late, 8192), k, LENGTH))
        window.add(merger.close())
    settings = Settings.of(sliced, PARAMETERS)
    measurement = window.measurement()
    validity = check_validity(measurement, settings, 0.0025, LENGTH * 1e-9)
    record = SummaryRecord(START, START, START, measurement, validity, settings)
    folder.summary(0, "x", record, sliced)
    folder.close()
    figures = record.figures
    assert record.figures is figures, "worked out once"
    record.release()
    assert record.figures is not figures, "and not kept once the rows are written"
    rows = table(folder.path / "summary.host.csv") + table(folder.path / "summary.all.csv")
    assert [bool(row["overall_response_us_mean"]) for row in rows] == [True, False, False]
    assert all(row["overall_service_us_mean"] for row in rows)
    assert (
        rows[1]["reasons"] == "load_not_sustained[invalid] (outstanding I/O of h2+/dev/sd0+w grew by 800 of 2,400 due)"
    )
    assert rows[0]["overall_iops_half_width"] == "0"  # every subinterval did the same


def test_edits_show_in_the_rows_after_them(tmp_path: Path) -> None:
    sliced = rollups()
    folder = RunFolder.create(tmp_path, "x", datetime.now(UTC))
    merger = Merger(sliced, {host: sliced.order(host) for host in HOSTS})
    step = folder.step(0, "x", merger.layout, CORES)
    for k, phase in enumerate(("run", "transient")):
        settings = Settings.of(sliced, dict.fromkeys(PARAMETERS, PARAMETERS["h1", k]))
        step.subinterval(record(interval(merger, k), settings, phase))
    folder.close()
    assert [row["iops"] for row in table(step.path / "all" / "all.csv")] == ["20", "21"]
