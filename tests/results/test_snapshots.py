"""Runs that did not end: whether their process lives, and that what they had measured is read whole."""

import json
import os
import shutil
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ivypy.master.output.run_files import read_run_file
from ivypy.master.output.run_lock import FILE, RunLock
from ivypy.master.results import checked_files
from ivypy.master.results.checked_files import read_record, results_of
from ivypy.master.results.finished_run import read_run, why_no_results
from ivypy.master.results.run_entries import RunState, entry_of

STEP = {"number": 1, "name": "a", "verdict": ""}
HEADER = "step,name,rollup_type,rollup_instance,verdict,reasons,first_subinterval,last_subinterval,overall_iops\n"


def made(folder: Path, **more: object) -> dict[str, Any]:
    record = {"version": "x", "start_utc": "2025-11-21T11:10:05Z", "steps": [STEP], "uid": os.geteuid(), **more}
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text(json.dumps(record))
    return record


def keep(folder: Path, number: int) -> None:
    """What the step has measured so far, up to subinterval 10 times `number`; the one before is removed."""
    kept, last = folder / "so_far" / str(number), 10 * number
    kept.mkdir(parents=True)
    (kept / "summary.all.csv").write_text(f"{HEADER}1,a,all,all,valid,,2,{last},100\n")
    windows = [{"first": 2, "last": last, "set_aside": []}]
    steps = [STEP | {"verdict": "valid", "windows": windows}]
    (kept / "run.json").write_text(json.dumps({"version": "x", "uid": os.geteuid(), "steps": steps}))
    before = folder / "so_far" / str(number - 1)
    (before / "run.json").unlink(missing_ok=True)
    shutil.rmtree(before, ignore_errors=True)


def state(folder: Path) -> RunState:
    return entry_of(folder, datetime.now(UTC)).state


def test_a_run_lives_as_long_as_its_lock_whatever_became_of_its_socket(tmp_path: Path) -> None:
    made(tmp_path, socket=str(tmp_path / "gone" / "a.sock"))
    lock = RunLock(tmp_path)
    keep(tmp_path, 5)
    assert state(tmp_path) is RunState.RUNNING and results_of(tmp_path) == tmp_path
    assert read_record(tmp_path)["steps"][0]["verdict"] == ""
    assert why_no_results(tmp_path) == "no step of the run has ended, so far"
    lock.release()
    assert state(tmp_path) is RunState.CUT_OFF and results_of(tmp_path) == tmp_path / "so_far/5"
    assert not (tmp_path / FILE).exists()


def test_a_lock_outlives_other_openings_of_its_file_and_ends_with_its_own(tmp_path: Path) -> None:
    made(tmp_path)
    lock = RunLock(tmp_path)
    (tmp_path / FILE).read_bytes()
    assert [state(tmp_path) for _ in range(2)] == [RunState.RUNNING] * 2
    lock._file.close()  # as at a kill: the file stays
    assert (tmp_path / FILE).exists() and state(tmp_path) is RunState.CUT_OFF


@pytest.mark.parametrize("listens", [True, False])
def test_where_there_are_no_locks_the_socket_tells_and_else_nobody(tmp_path: Path, listens: bool) -> None:
    path = tmp_path / "s"
    made(tmp_path, socket=str(path))
    (tmp_path / FILE).touch()  # without the mark, as where the lock was refused
    keep(tmp_path, 5)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        if listens:
            server.bind(str(path))
            server.listen()
        assert state(tmp_path) is (RunState.RUNNING if listens else RunState.NOT_ENDED)
        assert results_of(tmp_path) == tmp_path


def test_a_run_that_ends_while_it_is_looked_at_is_not_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path)
    keep(tmp_path, 5)
    lock = RunLock(tmp_path)

    def then_ends(path: Path) -> bytes:
        found = read_run_file(path)
        if (tmp_path / FILE).exists():
            steps = [STEP | {"verdict": "valid"}]
            made(tmp_path, end_utc="2025-11-21T11:20:05Z", exit_code=0, steps=steps)
            shutil.rmtree(tmp_path / "so_far")
            lock.release()
        return found

    monkeypatch.setattr(checked_files, "read_run_file", then_ends)
    assert read_record(tmp_path)["end_utc"] and results_of(tmp_path) == tmp_path


@pytest.mark.parametrize("at", range(8))
def test_what_is_read_is_of_one_snapshot_whenever_it_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """As by a run of a version that holds no lock, whose socket is gone."""
    made(tmp_path)
    keep(tmp_path, 1)
    opened = [0]

    def counted(real: Callable[[Path], Any]) -> Callable[[Path], Any]:
        def then_replaced(path: Path) -> Any:
            if opened[0] == at:
                keep(tmp_path, 2)
            opened[0] += 1
            return real(path)

        return then_replaced

    for name in ("read_run_file", "open_run_file"):
        monkeypatch.setattr(checked_files, name, counted(getattr(checked_files, name)))
    run = read_run("A1", tmp_path, ["all"])
    (window,), (row,) = run.record["steps"][0]["windows"], run.rows.values()
    assert str(window["last"]) == row.cells["last_subinterval"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_run_that_names_another_users_socket_does_not_run(tmp_path: Path) -> None:
    folder, sockets = tmp_path / "run", tmp_path / "s"
    sockets.mkdir()
    made(folder, socket=str(sockets / "a"), uid=12345)
    os.chown(folder, 12345, 12345)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(sockets / "a"))
        server.listen()
        assert state(folder) is RunState.CUT_OFF
        os.chown(sockets, 12345, 12345)
        assert state(folder) is RunState.RUNNING
