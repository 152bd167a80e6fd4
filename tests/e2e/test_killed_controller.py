"""A controller that is killed: what its step had measured is read as if it had been halted there."""

import json
import random
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from ivypy.master.analysis.database import query
from ivypy.master.logs.faults import Fault
from ivypy.master.logs.readers.ivypy_run import sources_of
from ivypy.master.pages.run_data import RunData
from ivypy.master.results.checked_files import read_record, results_of
from ivypy.master.results.finished_run import read_run
from tests.support.made_once import Store
from tests.support.real_runs import (
    answered,
    folder_of,
    names_of,
    paced_plan,
    rows,
    start,
    wait_for_line,
    wait_until_measuring,
    written,
)
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

TEXT = """
name: killed
luns:
  create: {{ path: "{data}", size: 16MiB }}
workloads:
  w: {{ iosequencer: random_steady, blocksize: 4KiB, fraction_read: 100%, maxtags: 4, iops: 400 }}
rollups: [ host ]
defaults: {{ subinterval: 0.25s, warmup: 0.5s, measure: 1s, disturbed: keep }}
steps:
  - go: first
  - go: {second}
"""
FIXED = "{ name: second, measure: 30s }"
CONTROLS = {
    "fixed": FIXED,
    "measure": "{ name: second, measure: { metric: overall_iops, accuracy: 0.001%, timeout: 90s } }",
    "staircase": "{ name: second, measure: 1s, staircase: { start: 200, step: 100, end: 4000 } }",
    "until": "{ name: second, until: { ios: 20000 } }",
    "find": "{ name: second, find: { metric: overall_response_us_mean, target: 100ms } }",
}


def killed(tmp_path: Path, second: str, shown: int = 1, measured: int = 0) -> Path:
    """The folder of a run that was killed once so many subintervals of its second step had been shown, and so many of
    them were kept as measured: how often that is written depends on what it costs."""
    plan = written(tmp_path, TEXT.format(data=tmp_path / "data", second=second))
    with start(plan, tmp_path / "runs") as process:
        wait_for_line(process, " second")  # no path has it
        wait_for_line(process, " run ", shown)
        folder = folder_of(tmp_path / "runs")
        while measured_so_far(folder) < measured:
            wait_for_line(process)
        process.kill()
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
    return folder


def measured_so_far(folder: Path) -> int:
    """How many subintervals of the second step are kept as measured; -1: that is not written yet."""
    kept = sorted((folder / "so_far").glob("*/run.json"), key=lambda path: int(path.parent.name))
    try:
        step = json.loads(kept[-1].read_text())["steps"][-1]
    except (IndexError, OSError):  # none yet, or it was replaced
        return -1
    if step["name"] != "second":
        return -1
    return sum(len(range(one["first"], one["last"] + 1)) - len(one["set_aside"]) for one in step["windows"])


@pytest.fixture
def killed_run(store: Store, tmp_path: Path) -> Path:
    """A copy of the folder of a run that was killed in its second step."""

    def killed_early(folder: Path) -> None:
        killed(folder, FIXED, measured=4)

    folder = folder_of(store.made(killed_early.__name__, killed_early) / "runs")
    return Path(shutil.copytree(folder, tmp_path / "runs" / folder.name))


def check(folder: Path) -> dict[str, str]:
    """What every command says of it; its row of the step that was killed."""
    shown, listed = answered("show", str(folder)), answered("list", str(folder))
    assert shown.returncode == 0 and "it was cut off before its end" in shown.stdout, shown.stdout + shown.stderr
    assert "cut off" in listed.stdout and "so far" not in shown.stdout + shown.stderr
    document = json.loads(answered("show", "--json", str(folder)).stdout)
    first, second = document["steps"]
    assert first["name"] == "first" and second["verdict"] in ("partial", "invalid")
    assert {"controller_ended"} <= {one["reason"] for one in second["reasons"]}
    other = shutil.copytree(folder, folder.with_name("other"))
    record = json.loads((other / "run.json").read_text())
    (other / "run.json").write_text(json.dumps(record | {"start_utc": "2020-01-01T00:00:00.000000Z"}))
    compared = answered("compare", str(folder), "--vs", str(other))
    assert compared.returncode in (0, 6, 8) and not compared.stderr, compared.stdout + compared.stderr
    page = RunData(folder).document()
    assert [(one["name"], one["verdict"]) for one in page["steps"]][1] == ("second", second["verdict"])
    assert page["steps"][1]["measurements"]
    so_far = results_of(folder)
    row = rows(so_far, "summary.all.csv")[-1]
    check_marks(folder, so_far, row)
    assert row["name"].partition(":")[0] == "second" and "controller_ended" in names_of(row["reasons"])
    return row


def check_marks(folder: Path, so_far: Path, row: Mapping[str, str]) -> None:
    """What belongs to the measurements of the killed step is known to whatever shows subintervals."""
    run, mine = read_run("A1", folder, ["all"]), int(row["step"])
    found = frozenset[int]().union(*run.measured(mine).values())
    windows = json.loads((so_far / "run.json").read_text())["steps"][-1]["windows"]
    assert found == {
        number for one in windows for number in range(one["first"], one["last"] + 1) if number not in one["set_aside"]
    }
    page = RunData(folder).series(mine)
    marks = dict(zip(page["subinterval"], page["in_measurement"], strict=True))
    assert {number for number, mark in marks.items() if mark} == found
    if row["overall_iops"]:
        assert int(row["last_subinterval"]) in found and RunData(folder).levels(mine)
    text = f"SELECT DISTINCT subinterval FROM subintervals WHERE step = {mine} AND in_measurement = 1"
    assert {number for (number,) in query([folder], text).rows} == found


def test_a_killed_controller_leaves_the_measured_part_with_its_verdict(killed_run: Path) -> None:
    folder = killed_run
    row = check(folder)
    assert "shortened[partial]" in row["reasons"] and row["hosts_in"] == row["hosts_of"] == "1"
    (place,) = folder.glob("step0001.*")
    stored = [
        one for one in rows(place, "all/all.csv")
        if int(row["first_subinterval"]) <= int(one["subinterval"]) <= int(row["last_subinterval"])
    ]  # fmt: skip
    assert len(stored) >= 4 and int(row["last_subinterval"]) <= int(rows(place, "all/all.csv")[-1]["subinterval"])
    assert int(row["overall_service_count"]) == sum(int(one["overall_service_count"]) for one in stored)


def test_a_run_that_lost_its_socket_is_not_cut_off(tmp_path: Path) -> None:
    """As at a logout, which removes the folder of a user's sockets."""
    with start(paced_plan(tmp_path, "10m"), tmp_path / "runs") as process:
        folder = wait_until_measuring(tmp_path / "runs")
        Path(json.loads((folder / "run.json").read_text())["socket"]).unlink()
        try:
            assert " running " in answered("list", str(folder)).stdout
        finally:
            process.kill()
            process.communicate(timeout=60)
    assert " cut off " in answered("list", str(folder)).stdout


def test_of_another_users_run_nobody_but_root_can_tell_that_it_is_dead(
    killed_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = killed_run
    monkeypatch.setattr("ivypy.master.results.checked_files.os.geteuid", lambda: folder.stat().st_uid + 1)
    shown, listed = answered("show", str(folder)), answered("list", str(folder))
    assert "second" not in shown.stdout and "open" in listed.stdout, shown.stdout + listed.stdout


def test_an_own_run_whose_files_nfs_calls_anothers_is_known_to_be_dead(
    killed_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = killed_run
    record, other = json.loads((folder / "run.json").read_text()), folder.stat().st_uid + 1
    (folder / "run.json").write_text(json.dumps(record | {"uid": other}))
    monkeypatch.setattr("ivypy.master.results.checked_files.os.geteuid", lambda: other)
    shown, listed = answered("show", str(folder)), answered("list", str(folder))
    assert "second" in shown.stdout and "cut off" in listed.stdout, shown.stdout + listed.stdout


def test_a_run_that_could_not_write_any_more_is_read_likewise(killed_run: Path) -> None:
    """Its end stands in run.json, for which there was room."""
    folder = killed_run
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(record | {"end_utc": record["start_utc"], "exit_code": 1}))
    shown = answered("show", "--reasons", str(folder))
    assert "controller_ended[partial]" in shown.stdout and "ivypy itself failed" in shown.stdout, shown.stdout


def test_a_run_that_ends_leaves_nothing_of_what_it_had_measured_so_far(tmp_path: Path) -> None:
    plan = written(tmp_path, TEXT.format(data=tmp_path / "data", second="{ name: second, measure: 1s }"))
    with start(plan, tmp_path / "runs") as process:
        process.communicate(timeout=100)
    (folder,) = (tmp_path / "runs").iterdir()
    assert not (folder / "so_far").exists() and "controller_ended" not in (folder / "run.json").read_text()


def test_what_connectors_said_and_what_verdicts_speak_against_are_read_likewise(killed_run: Path) -> None:
    folder = killed_run
    so_far = results_of(folder)
    shown = json.loads(answered("show", "--connectors", "--json", str(folder)).stdout)
    assert {one["name"] for one in shown["rows"]} == {"first", "second"}
    table = so_far / "summary.all.csv"
    *before, last = table.read_text().splitlines(keepends=True)
    table.write_text("".join(before) + last.replace(",valid,", ",invalid,").replace(",partial,", ",invalid,"))
    sources = sources_of(folder / "histograms.sqlite", ["service"], False)
    assert not isinstance(sources, Fault)
    assert [one.is_discredited for one in sources if one.step == 1] == [True]


def test_what_was_kept_of_an_earlier_step_or_of_one_that_ended_is_not_read(killed_run: Path) -> None:
    folder = killed_run
    path = folder / "run.json"
    record = json.loads(path.read_text())
    first, second = record["steps"]
    for steps in ([first, second | {"verdict": "valid"}], [first, second, second | {"number": 2, "name": "third"}]):
        path.write_text(json.dumps(record | {"steps": steps}))
        assert results_of(folder) == folder and read_record(folder)["steps"][-1]["name"] == steps[-1]["name"]


def test_a_controller_that_was_stopped_leaves_no_process_on_its_hosts(tmp_path: Path) -> None:
    """Its pipes stay open, as of one that is gone with its network: after three leases nobody waits for it any more."""
    with start(paced_plan(tmp_path, "10m"), tmp_path / "runs") as process:
        wait_until_measuring(tmp_path / "runs")
        others = psutil.Process(process.pid).children(recursive=True)
        assert len(others) == 1, "its slave"
        process.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: all(map(has_ended, others)), "its slave ends itself", 100.0)
        finally:
            process.kill()
            process.communicate(timeout=60)


def has_ended(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)  # whose parent is stopped
    except psutil.NoSuchProcess:
        return True


@pytest.mark.long
@pytest.mark.parametrize("seed", range(50))
def test_killed_at_random(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    control = draw.choice([*CONTROLS])
    check(killed(tmp_path, CONTROLS[control], draw.randint(6, 20 if control == "find" else 40)))  # a find ends itself
