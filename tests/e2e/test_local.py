"""`ivypy run` on this machine: a real slave, a real engine, a real file, a real Ctrl-C."""

import csv
import json
import os
import signal
import time
from pathlib import Path
from xml.etree import ElementTree

import psutil
import pytest

from ivypy.protocol.refusals import RefusalReason
from tests.support.made_once import Store
from tests.support.real_runs import (
    PACED,
    ROOT,
    Finished,
    answered,
    ivypy,
    names_of,
    once,
    paced_plan,
    presence,
    rows,
    run,
    start,
    the_first_plan,
    wait_for_line,
    written,
)
from tests.support.refusals import refusals_in
from tests.support.waits import none_runs, wait_until_ended

pytestmark = pytest.mark.slow

PLAN = PACED.replace("{iops}", "500").replace("{connectors}", "")


def a_plan(tmp_path: Path, measure: str = "3s") -> Path:
    return paced_plan(tmp_path, measure, iops=500, connectors="")


def slaves_of(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


@pytest.fixture
def first(store: Store) -> Finished:
    return once(store, the_first_plan)


def test_the_first_plan_runs_to_a_result(first: Finished) -> None:
    done = first
    assert done.code in (0, 7, 8), done.out + done.err  # a busy machine may be late, and then says so
    assert [row["name"] for row in done.rows("summary.all.csv")] == ["max", "half", "half_mixed"]
    assert str(done.folder) in done.out
    assert done.out.index("local: created 1 file") < done.out.index("step 0 (1 of 3)"), "told when it was so"
    folder = done.root.parent
    assert not (folder / "data").exists(), "what the plan created is removed"
    most, half, _ = done.rows("summary.all.csv")
    assert float(most["overall_iops"]) > 0 and most["overall_response_us_mean"] == ""
    assert float(half["iops_setting"]) == pytest.approx(float(most["overall_iops"]) / 2)
    cases = ElementTree.parse(folder / "first.xml").iter("testcase")
    assert [case.get("name") for case in cases] == ["max", "half", "half_mixed"]
    shown = answered("show", str(done.root))
    assert shown.returncode == 0 and shown.stdout.splitlines()[4].split()[:2] == ["0", "max"]


ABOVE = "measure: 1s, slo: { metric: overall_iops, at_most: 1 }"
TOO_EXACT = "measure: { metric: overall_iops, accuracy: 0.01%, min: 1s, timeout: 6s }"


@pytest.mark.parametrize(
    ("iops", "control", "code", "words"),
    [
        ("2000", ABOVE, 5, "A threshold of the plan"),
        pytest.param("100M", ABOVE, 8, "Step 0 one is invalid", marks=pytest.mark.long),
        pytest.param("max", TOO_EXACT, 6, "A target was not reached", marks=pytest.mark.long),
    ],
    ids=["missed", "not sustained", "not reached"],
)
def test_a_run_exits_as_its_step_ended(tmp_path: Path, iops: str, control: str, code: int, words: str) -> None:
    """On a machine that others keep busy the step is invalid for that, and so is the run."""
    text = PACED.format(path=tmp_path / "data", measure="2s", iops=iops, connectors="").replace("0.5s", "0.25s")
    text = text.replace("go: one", f"go: {{ name: one, {control} }}").replace("threads: 1", 'backend: "null"')
    done = run(written(tmp_path, text), tmp_path / "runs")
    (row,) = done.rows("summary.all.csv")
    spoilt = code == 5 and row["verdict"] == "invalid" and "cpu_contention" in row["reasons"]
    if spoilt or "cpu_contention[invalid]" in row["reasons"]:
        code, words = 8, "Step 0 one is invalid"
    assert done.code == code, done.out + done.err
    assert words in done.out and "no threshold was missed" not in done.out


@pytest.mark.parametrize("number", [1, 2], ids=["reads", "reads and writes"])
def test_rows_add_up(first: Finished, number: int) -> None:
    summary = first.rows("summary.all.csv")[number]
    step = f"step{number:04}.{summary['name']}"
    measured = [row for row in first.rows(f"{step}/all/all.csv") if row["phase"] == "run"]
    columns = ["overall_service_count", "read_service_count", "due"] + ["write_service_count"] * (number == 2)
    for column in columns:
        assert sum(float(row[column]) for row in measured) == float(summary[column]) > 0
    assert float(summary["overall_service_us_max"]) == max(float(row["overall_service_us_max"]) for row in measured)
    buckets = first.rows(f"{step}/all/all.histogram.csv")
    counted = sum(int(b["count"]) for b in buckets if (b["category"], b["time"]) == ("overall", "service"))
    assert counted == int(summary["overall_service_count"])


def test_ctrl_c_stops_cleanly_within_seconds(tmp_path: Path) -> None:
    process = start(a_plan(tmp_path, "60s"), tmp_path / "runs")
    wait_for_line(process)
    slaves = slaves_of(process.pid)
    assert slaves
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    done = Finished(process.returncode, out, err, tmp_path / "runs")
    assert "shortened[partial] (" in done.rows("summary.all.csv")[0]["reasons"] and none_runs(*slaves)
    folder = done.folder
    for path in folder.rglob("*.csv"):
        text = path.read_text()
        assert text.endswith("\n")
        assert len({len(row) for row in csv.reader(text.splitlines())}) == 1, path
    assert not (tmp_path / "data").exists()


def test_a_file_in_the_way_is_kept_and_the_option_for_another_path_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("mine")
    done = ivypy(
        "run", str(ROOT / "configs" / "first.yaml"), "-D", f"path={tmp_path / 'data'}", "-o", str(tmp_path / "runs")
    )
    assert done.returncode == 3
    assert refusals_in(done.stderr) == {RefusalReason.NOT_OURS}
    assert "(-D path=PATH gives another path)" in done.stderr
    assert (tmp_path / "data").read_text() == "mine"


def test_ctrl_c_while_files_are_created_ends_at_once(tmp_path: Path) -> None:
    plan = written(tmp_path, PLAN.format(path=tmp_path / "data", measure="3s").replace("16MiB", "2GiB"))
    process = start(plan, tmp_path / "runs")
    wait_for_line(process, "creating 1 file")
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 130, out + err
    assert not (tmp_path / "data").exists()
    (folder,) = (tmp_path / "runs").iterdir()
    assert json.loads((folder / "run.json").read_text())["exit_code"] == 130


def test_a_slave_that_is_suspended_for_two_seconds_costs_no_step(tmp_path: Path) -> None:
    """SIGSTOP of the only host; the next step needs new instances."""
    text = PLAN.format(path=tmp_path / "data", measure="3s").replace(
        "[ go: one ]", "[ go: { name: one, loop: { seed: [1, 2] } } ]"
    )
    process = start(written(tmp_path, text), tmp_path / "runs")
    wait_for_line(process)
    (slave,) = slaves_of(process.pid)
    slave.suspend()
    time.sleep(2.0)
    slave.resume()
    out, err = process.communicate(timeout=60)
    (folder,) = (tmp_path / "runs").iterdir()
    steps = json.loads((folder / "run.json").read_text())["steps"]
    reasons = names_of("; ".join(reason for step in steps for reason in step["reasons"]))
    assert len(steps) == 2 and not reasons & {"host_lost", "host_late", "host_missing", "shortened"}, out + err
    for row in rows(folder, "summary.all.csv"):
        assert presence(row) == "1/1" and row["last_subinterval"], out + err


def test_a_killed_controller_leaves_no_slave_and_a_readable_folder(tmp_path: Path) -> None:
    process = start(a_plan(tmp_path, "60s"), tmp_path / "runs")
    wait_for_line(process, times=3)  # up to two rows that were shown may still wait for the writer
    slaves = slaves_of(process.pid)
    process.kill()
    process.communicate()
    assert slaves
    wait_until_ended(*slaves)
    (folder,) = (tmp_path / "runs").iterdir()
    with open(folder / "step0000.one" / "all" / "all.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= 2 and all(row["overall_iops"] for row in rows)


@pytest.mark.parametrize(
    "changed, code, says",
    [
        (("iops: 500", "iopz: 500"), 2, "did you mean 'iops'"),
        (("16MiB", "1KiB"), 2, "choose a smaller blocksize or a larger LUN"),
        (
            (
                "luns: {{ create: {{ path: {path}, size: 16MiB }} }}",
                "destroy: true\nluns: {{ files: [ /nowhere/* ] }}",
            ),
            3,
            "local: no LUN is selected",
        ),
        (("{path}", "/proc/ivypy-data"), 3, "/proc"),
        (("threads: 1", "cpus: [ 0, 4090 ]"), 3, "local: prepare: core 4090 is not there, or not for this process"),
        (("threads: 1", "cpus: 4-0"), 2, "write the smaller number first"),
    ],
)
def test_a_bad_plan_is_reported_with_its_cause(tmp_path: Path, changed: tuple[str, str], code: int, says: str) -> None:
    text = PLAN.replace(*changed).format(path=tmp_path / "data", measure="1s")
    plan = str(written(tmp_path, text))
    done = (answered if code == 2 else ivypy)("run", "-o", str(tmp_path / "runs"), "--ui", "lines", plan)
    assert (done.returncode, says in done.stderr) == (code, True), done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_there_is_not_overwritten_without_consent(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"x" * (16 << 20))
    text = PLAN.replace("create: {{ path: {path}, size: 16MiB }}", "files: [ {path} ]")
    plan = written(tmp_path, text.format(path=precious, measure="1s"))
    done = run(plan, tmp_path / "runs")
    assert done.code in (2, 4) and "destroy: true" in done.err, done.err
    assert precious.read_bytes() == b"x" * (16 << 20)


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("--version",), ("columns",), ("schema",)])
def test_commands_without_a_plan_print_their_page(words: tuple[str, ...]) -> None:
    done = answered(*words)
    assert done.returncode == 0 and done.stdout and not done.stderr


def test_a_mistyped_command_suggests_the_right_one() -> None:
    done = ivypy("rnu")
    assert done.returncode == 2 and "did you mean 'run'?" in done.stderr.replace("\n", " ")


def test_a_missing_plan_is_an_error_without_a_traceback(tmp_path: Path) -> None:
    for command in ("check", "run", "devices"):
        done = answered(command, str(tmp_path / "no.yaml"))
        assert done.returncode == 2 and "no.yaml" in done.stderr and "Traceback" not in done.stderr
