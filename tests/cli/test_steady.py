"""`ivypy steady` on finished data: when it would have stopped, of a run folder, fio's JSON and a CSV column."""

import gzip
import json
from pathlib import Path

import pytest

from ivypy.master.cli.steady import steady as steady_command
from ivypy.master.errors import PlanError
from ivypy.master.exit_codes import ExitCode
from tests.support.logs import run_steady
from tests.support.simulated.plants import over_time
from tests.support.simulated.runs import controlled
from tests.support.simulated.slave import Faults, steady

FIO = Path(__file__).parents[1] / "control" / "fio"


def numbers(tmp_path: Path, *values: object) -> Path:
    path = tmp_path / "numbers.csv"
    path.write_text("second,overall_iops\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values)))
    return path


def test_column_that_settles_is_reported_steady(tmp_path: Path) -> None:
    path = numbers(tmp_path, 2000, 1500, 1200, 1000, 1001, 1000, 999)
    done = run_steady(path, "--window", "3s")
    assert done.return_value == ExitCode.OK
    assert done.output == (
        f"{path}: steady after 6 s: deviation of overall_iops within 2%: 0.06664% from 3 s on, mean 1000.33\n"
    )


def test_window_contains_neither_blank_values_nor_the_ramp(tmp_path: Path) -> None:
    path = numbers(tmp_path, 1000, 1000, 1000, "", 1000, 1000, 1000)
    assert "steady after 7 s" in run_steady(path, "--window", "3s", "--ramp", "1s").output


def test_column_that_never_settles_is_reported_not_steady(tmp_path: Path) -> None:
    done = run_steady(numbers(tmp_path, *range(100, 1000, 100)), "--window", "3s", "--criterion", "iops_slope")
    assert done.return_value == ExitCode.NOT_REACHED
    assert "not steady in 9 s: slope of overall_iops within 2%/s over 3 values" in done.output


def test_steady_state_of_fio_json_is_as_fio_reported_it(tmp_path: Path) -> None:
    path = tmp_path / "fio.json"
    path.write_bytes(gzip.decompress((FIO / "new-iops.json.gz").read_bytes()))
    done = run_steady(path, "--window", "5s", "--limit", "5%", "--json")
    assert done.return_value == ExitCode.OK
    block = json.loads(done.stdout)
    theirs = json.loads(path.read_text())["jobs"][0]["steadystate"]
    assert block["attained"] == 1 and block["data"]["overall_iops"] == theirs["data"]["iops"]
    assert block["max_deviation"] == pytest.approx(theirs["max_deviation"], abs=1)


def recorded(tmp_path: Path, name: str) -> Path:
    """fio's JSON of a run of its own, unpacked."""
    path = tmp_path / f"{name}.json"
    path.write_bytes(gzip.decompress((FIO / f"{name}.json.gz").read_bytes()))
    return path


def test_window_that_fio_never_filled_is_not_steady(tmp_path: Path) -> None:
    """Its ramp was longer than the job: every slot is empty, and fio writes 0 for it."""
    path = recorded(tmp_path, "v333-ramp_never_over")
    done = run_steady(path)
    assert done.return_value == ExitCode.NOT_REACHED
    assert done.stdout == (
        f"{path} a: not steady: slope of overall_iops within 0.1%/s over 3 values; no window is complete\n"
    )
    assert "fio filled 0 of the 3 values of its window, so it never checked the criterion" in done.stderr
    block = json.loads(run_steady(path, "--json").stdout)
    assert (block["attained"], block["window"]) == (0, None)


def test_empty_slots_of_fios_window_are_no_values(tmp_path: Path) -> None:
    path = recorded(tmp_path, "v333-window_never_full")
    done = run_steady(path)
    assert done.return_value == ExitCode.NOT_REACHED
    assert "not steady from 2.001 s to 5.001 s: " in done.stdout and "; no window is complete" in done.stdout
    assert "fio filled 3 of the 8 values of its window" in done.stderr
    assert "steady after 5.001 s: " in run_steady(path, "--window", "3s").stdout


def test_fios_window_ended_with_its_job(tmp_path: Path) -> None:
    """fio keeps the last window only; a ramp of 3 s and a window of 4 s ended after 7.8 s."""
    path = recorded(tmp_path, "v333-iops_ramp")
    done = run_steady(path)
    assert "steady after 7.787 s: " in done.stdout and " from 3.787 s on" in done.stdout
    assert "fio kept only the values from 3.787 s of its runtime on" in done.stderr
    block = json.loads(run_steady(path, "--json").stdout)
    assert (block["second"], block["window"]) == (7.787, {"begin_s": 3.787, "end_s": 7.787})


def test_fio_json_without_a_runtime_says_where_its_times_begin(tmp_path: Path) -> None:
    path = tmp_path / "fio.json"
    path.write_text(json.dumps({"jobs": [{"jobname": "a", "steadystate": {"data": {"iops": [1000] * 5}}}]}))
    assert "has no runtime of this job: times count from the window that fio kept" in run_steady(path).stderr


def test_no_global_options_may_be_an_empty_list(tmp_path: Path) -> None:
    """So fio's client writes them."""
    path = fio_file(tmp_path / "fio.json", RISING, "client_stats")
    path.write_text(path.read_text().replace(' "client_stats"', ' "global options": [],\n "client_stats"'))
    assert run_steady(path).stdout.count("fio.json a h1: not steady") == 2


@pytest.mark.slow
def test_run_folder_is_steady_where_the_run_was(tmp_path: Path) -> None:
    plant = over_time(lambda k: steady(2000.0 - 100 * min(k, 10)))
    outcome = controlled(tmp_path, "steady: { criterion: iops, limit: 2%, window: 20s }", plant)
    (stopped,) = outcome.rows("step0000.it/windows.csv")
    end_s = (int(stopped["last_subinterval"]) + 1) * 5
    done = run_steady(outcome.folder, "--window", "20s", "--ramp", "5s")
    assert f"step0000.it all=all: steady after {end_s} s" in done.output


@pytest.mark.slow
def test_what_lacks_hosts_is_not_plainly_steady(tmp_path: Path) -> None:
    """As the run's own verdict is partial, and its exit code 7."""
    go = "subinterval: 1s, warmup: 1s, measure: 40s"
    lost = {"b": Faults(die_at=3), "c": Faults(die_at=3)}
    outcome = controlled(tmp_path, go, steady(), iops="500", hosts="a, b, c", faults=lost)
    assert outcome.code == ExitCode.PARTIAL
    done = run_steady(outcome.folder, "--window", "20s")
    assert done.return_value == ExitCode.PARTIAL
    assert "all=all: partial, 1 of 3 hosts: steady after " in done.stdout
    block = json.loads(run_steady(outcome.folder, "--window", "20s", "--json").stdout)
    assert (block["verdict"], block["hosts_in"], block["hosts_of"]) == ("partial", 1, 3)


def test_a_host_that_was_lost_has_no_values_from_then_on(tmp_path: Path) -> None:
    """Nor is there a length of its subintervals."""
    folder = step_of(tmp_path, *[(1, 1, 500.0)] * 2, *[(0, 1, None)] * 2, *[(1, 1, 500.0)] * 3)
    done = run_steady(folder, "--window", "3s")
    assert done.return_value == ExitCode.OK and "steady after 7 s" in done.stdout
    (folder / "step0000.it" / "all" / "all.csv").unlink()
    nothing = step_of(tmp_path, *[(0, 1, None)] * 5)
    assert "no window is complete" in run_steady(nothing, "--window", "3s").stdout


def step_of(tmp_path: Path, *rows: tuple[int, int, float | None]) -> Path:
    """A run's folder with rows of: hosts in, hosts of, IOPS, which are blank, as is the length, without a host."""
    step = tmp_path / "step0000.it"
    (step / "all").mkdir(parents=True, exist_ok=True)
    (step / "index.csv").write_text("rollup_type,rollup_instance,file\nall,all,all/all.csv\n")
    lines = [
        f"{'1' if here else ''},run,{here},{of_all},{'' if iops is None else iops}\n" for here, of_all, iops in rows
    ]
    (step / "all" / "all.csv").write_text("".join(["length_s,phase,hosts_in,hosts_of,overall_iops\n", *lines]))
    return tmp_path


def test_a_window_of_all_hosts_counts_before_an_earlier_one_of_some(tmp_path: Path) -> None:
    rows = [(1, 2, 500.0)] * 3 + [(2, 2, 1000.0)] * 3
    done = run_steady(step_of(tmp_path, *rows), "--window", "3s")
    assert done.return_value == ExitCode.OK and "all=all: steady after 6 s" in done.stdout


def test_what_never_settles_names_the_hosts_of_its_best_window(tmp_path: Path) -> None:
    done = run_steady(step_of(tmp_path, *((1, 2, 500.0 * k) for k in range(1, 6))), "--window", "3s")
    assert done.return_value == ExitCode.NOT_REACHED
    assert "all=all: partial, 1 of 2 hosts: not steady in 5 s" in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--window", "1s"], "window is 1 subinterval; it must be at least two"),
        (["--window", "0s"], "window is 0 subintervals; it must be at least two"),
        (["--metric", "overal_iops"], "it has no column 'overal_iops'; did you mean 'overall_iops'"),
        (["--metric", "x"], "it has no column 'x'; there are 'overall_iops' and 'second'"),
        (["--limit", "5ms"], "--limit: '5ms' is not a number of I/Os per second"),
        (["--criterion", "latency", "--latency", "p98"], "--latency: 'p98' is no statistic; write one of mean, p50"),
        (["--window", "5"], "--window: '5' has no unit; write 5s for seconds"),
        (["--ramp", "x"], "--ramp: 'x' is not a duration"),
        (["--interval", "x"], "--interval: 'x' is not a duration"),
    ],
)
def test_invalid_option_is_refused(tmp_path: Path, words: list[str], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        run_steady(numbers(tmp_path, 1, 2, 3), *words)


def test_a_file_that_is_no_series_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no run folder"):
        run_steady(tmp_path)
    with pytest.raises(PlanError, match="not read"):
        run_steady(tmp_path / "none.csv")
    (tmp_path / "fio.json.gz").write_bytes(gzip.compress(b"{}"))
    with pytest.raises(PlanError, match="not read: it is no text; expected a run"):
        run_steady(tmp_path / "fio.json.gz")


def test_of_a_steps_folder_the_run_is_named(tmp_path: Path) -> None:
    step = tmp_path / "step0000.it"
    step.mkdir()
    (step / "index.csv").touch()
    with pytest.raises(PlanError, match=f"{step}: no run folder: give the run's folder: {tmp_path}$"):
        run_steady(step)


def test_two_runs_are_told_apart(tmp_path: Path) -> None:
    runs = [tmp_path / name for name in ("A", "B")]
    for run in runs:
        (run / "step0000.it").mkdir(parents=True)
        (run / "step0000.it" / "index.csv").write_text("rollup_type,rollup_instance,file\nall,all,all.csv\n")
        rows = "".join(f"1,run,1,{iops}\n" for iops in (100, 100, 100))
        (run / "step0000.it" / "all.csv").write_text("length_s,phase,hosts_in,overall_iops\n" + rows)
    said = run_steady(*runs, "--window", "2s").output.splitlines()
    assert [line.partition(": ")[0] for line in said] == [f"{run}/step0000.it all=all" for run in runs]
    blocks = [json.loads(line) for line in run_steady(*runs, "--window", "2s", "--json").output.splitlines()]
    assert [block["series"] for block in blocks] == [f"{run}/step0000.it all=all" for run in runs]


def test_the_mean_of_the_criterion_is_weighted_by_time_and_that_of_the_data_is_plain(tmp_path: Path) -> None:
    path = tmp_path / "uneven.csv"
    path.write_text("length_s,overall_iops\n1,100\n3,200\n")
    block = json.loads(run_steady(path, "--window", "4s", "--limit", "90%", "--json").output)
    assert (block["time_weighted_mean"], block["data"]["overall_iops_mean"]) == (175.0, 150.0)
    assert "mean" not in block


BAD: list[tuple[str, str, str]] = [  # a file's name and text, and the message about it
    ("long.csv", "second,overall_iops\n0,5\n1,5,7\n", "line 3: it has more values than the header has columns"),
    ("blank.csv", "length_s,overall_iops\n1,5\n,5\n", "column length_s: it must be above 0 in every row"),
    ("text.csv", "length_s,overall_iops\n1,5\nx,5\n", "column length_s: could not convert string to float: 'x'"),
    ("inf.csv", "overall_iops\n5\ninf\n", "column overall_iops: inf is not a measured value"),
    ("list.json", '{"jobs": [5]}', "not read: it is JSON, but not as fio writes it"),
    ("other.json", '{"name": 5}', "not read: it is JSON, but not as fio writes it"),
    ("text.json", '{"jobs": [{"jobname": "a", "steadystate": {"data": {"iops": 5}}}]}', "not as fio writes it"),
]


@pytest.mark.parametrize(("name", "text", "says"), BAD)
def test_a_file_that_is_no_series_is_refused(tmp_path: Path, name: str, text: str, says: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(PlanError) as refused:
        run_steady(path, "--window", "2s")
    assert str(refused.value).startswith(f"{path}: ") and says in str(refused.value)


def test_a_missing_file_is_reported_in_words(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"no\.csv: not read: No such file or directory$"):
        run_steady(tmp_path / "no.csv")


def test_interval_of_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="--interval 0s: between two rows there is some time"):
        run_steady(numbers(tmp_path, 1, 2, 3), "--interval", "0s")


def test_byte_order_mark_is_not_part_of_the_first_column(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text("overall_iops,x\n" + "1000,\n" * 5, encoding="utf-8-sig")
    assert "steady after 3 s" in run_steady(path, "--window", "3s").output


def test_not_a_number_is_a_blank(tmp_path: Path) -> None:
    assert "steady after 5 s" in run_steady(numbers(tmp_path, 1000, "nan", 1000, 1000, 1000), "--window", "3s").output


def test_null_in_fio_json_is_a_blank_value(tmp_path: Path) -> None:
    path = tmp_path / "fio.json"
    data = {"iops": [1000, None, 1000, 1000, 1000]}
    path.write_text(json.dumps({"jobs": [{"jobname": "a", "steadystate": {"data": data}}]}))
    assert "steady after 5 s" in run_steady(path, "--window", "3s").output


def test_snia_reports_its_own_limits(tmp_path: Path) -> None:
    output = run_steady(numbers(tmp_path, *[1000] * 5), "--window", "5s", "--criterion", "snia").output
    assert "snia of overall_iops: excursion at most 20%, its slope 10% of the mean: 0%" in output


def fio_file(path: Path, data: list[float], key: str = "jobs", options: dict[str, str] | None = None) -> Path:
    """fio's JSON with one job that kept `data` of its IOPS."""
    block = {"ss": "iops_slope:10.000000", "duration": 12, "attained": 0, "data": {"iops": data}}
    job = {
        "jobname": "a", "hostname": "h1", "read": {"runtime": 12000}, "steadystate": block,
        "job options": options or {},
    }  # fmt: skip
    total = [{"jobname": "All clients", "hostname": "h1"}] if key == "client_stats" else []
    path.write_text("<h1> Starting\n" + json.dumps({"fio version": "fio-3.36", key: [job, job, *total]}, indent=1))
    return path


RISING = [1000.0, 1012, 1024, 1036, 1048, 1060]  # 6 I/Os per second each second, a value every two


def test_slopes_of_fios_samples_are_per_second_and_its_own_settings_hold(tmp_path: Path) -> None:
    """A window of 12 s with six values: two seconds apart. fio's limit of 10 a sample is 5 a second."""
    done = run_steady(fio_file(tmp_path / "fio.json", RISING), "--json")
    block = json.loads(done.output.splitlines()[0])
    assert done.return_value == ExitCode.NOT_REACHED
    assert (block["ss"], block["duration"], block["slope"]) == ("overall_iops_slope:5.000000", 12.0, pytest.approx(6))
    assert (
        "slope of overall_iops within 5/s over 6 values" in run_steady(fio_file(tmp_path / "fio.json", RISING)).output
    )


def test_command_line_options_override_fios_settings(tmp_path: Path) -> None:
    path = fio_file(tmp_path / "fio.json", RISING)
    assert (
        "steady after 4 s: deviation of overall_iops within 20%"
        in run_steady(path, "--criterion", "iops", "--limit", "20%", "--window", "4s").output
    )
    assert "slope of overall_iops within 7/s" in run_steady(path, "--limit", "7").output


def test_sample_distance_is_read_from_the_fio_job(tmp_path: Path) -> None:
    """Over a network fio sends as many values as the window has seconds: the surplus is other memory."""
    path = fio_file(tmp_path / "fio.json", [*RISING, 49, 52, 1, 2, 3, 4], options={"ss_interval": "2"})
    done = run_steady(path, "--json")
    block = json.loads(done.stdout.splitlines()[0])
    assert block["data"]["overall_iops"] == RISING and block["slope"] == pytest.approx(6)
    assert "12 values of a window of 6; the others are not this job's" in done.stderr


def test_the_last_of_fios_documents_counts_and_its_other_output_does_not(tmp_path: Path) -> None:
    """--status-interval prints the JSON again and again, --output-format=json,normal text after it."""
    path = fio_file(tmp_path / "fio.json", [1000.0] * 6)
    early, late = path.read_text(), fio_file(path, RISING).read_text()
    path.write_text(early + "\n" + late + "\na: (groupid=0, jobs=1): err= 0\n  lat (usec)   : 2=90.1%\n")
    done = run_steady(path)
    assert done.return_value == ExitCode.NOT_REACHED and "best window: 6/s" in done.output


def test_jobs_of_fio_clients_are_checked_not_their_sum(tmp_path: Path) -> None:
    output = run_steady(fio_file(tmp_path / "fio.json", RISING, "client_stats")).output
    assert output.count("fio.json a h1: not steady") == 2 and "All clients" not in output


def test_series_that_is_never_steady_reports_its_best_window(tmp_path: Path) -> None:
    path = numbers(tmp_path, 100, 200, 300, 310, 330, 500, 700)
    block = json.loads(run_steady(path, "--window", "3s", "--json").output)
    assert (block["attained"], block["window"]) == (0, {"begin_s": 2.0, "end_s": 5.0})
    assert (
        block["time_weighted_mean"] == pytest.approx(940 / 3)
        and block["criterion"] == f"{100 * (330 - 940 / 3) / (940 / 3):f}%"
    )
    assert "the best window: 5.319% from 2 s on, mean 313.333" in run_steady(path, "--window", "3s").output


def test_a_series_shorter_than_its_window_has_none(tmp_path: Path) -> None:
    done = run_steady(numbers(tmp_path, 1, 2, 3), "--json")
    assert done.return_value == ExitCode.NOT_REACHED and json.loads(done.output)["window"] is None


def test_standard_input_and_blank_lines(tmp_path: Path) -> None:
    done = run_steady("-", "--window", "3s", stdin="overall_iops\n1000\n\n1000\n\n1000\n")
    assert "-: steady after 3 s" in done.stdout and "note: -: 2 blank lines are left out" in done.stderr


@pytest.mark.parametrize(
    ("second", "words"), [("nosuch.csv", "not read: No such file"), ("wide.csv", "a value every 60 s: ")]
)
def test_nothing_is_printed_where_a_later_path_is_at_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], second: str, words: str
) -> None:
    (tmp_path / "wide.csv").write_text("length_s,overall_iops\n60,1000\n60,1000\n")
    good = numbers(tmp_path, 1000, 1000, 1000)
    with pytest.raises(PlanError, match=words):
        steady_command.main([str(good), str(tmp_path / second), "--window", "3s"], standalone_mode=False)
    assert capsys.readouterr().out == ""
