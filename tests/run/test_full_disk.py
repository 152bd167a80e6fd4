"""A disk that is full in mid-run: it is waited for; then the run ends, and its run.json says so."""

import asyncio
import errno
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ivypy.master.errors import OutputError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.output import csv_text, full_disk
from ivypy.master.output.histogram_db_reader import HistogramReader
from ivypy.master.results.checked_files import read_record, read_summary, read_table, results_of
from ivypy.master.run.record import so_far
from ivypy.master.run.session.run import Run
from tests.support.real_runs import names_of
from tests.support.simulated.runs import SimulatedRun, stage


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 512 KiB."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "ivypy-test", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user or machine may not mount a tmpfs")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(path: Path) -> None:
    with open(path, "wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))


def test_a_disk_that_is_full_for_a_while_costs_nothing(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is full from the first subinterval on, until its writer has waited for it twenty times."""
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 20:
            (small / "others").unlink()

    async def visit(run: Run, staged: SimulatedRun) -> None:
        fill(small / "others")

    monkeypatch.setattr("ivypy.master.output.full_disk.time.sleep", nap)
    outcome = stage(small / "runs", visit)
    (row,) = outcome.rows("summary.all.csv")
    (place,) = outcome.folder.glob("step*/all/all.csv")
    numbers = [int(one["subinterval"]) for one in outcome.rows(str(place.relative_to(outcome.folder)))]
    assert len(naps) == 20 and row["verdict"] == "valid" and numbers == [*range(int(row["last_subinterval"]) + 2)]
    full, again = outcome.events("results_disk")
    assert full == "the results' disk is full: waiting for up to 50 s; make room"
    assert again.startswith("the results' disk has room again, after ")
    with HistogramReader(outcome.folder / "histograms.sqlite") as results:
        assert len([*results.results(0, 0, len(numbers))]) == len(numbers) * len(outcome.lab.slaves)


def test_a_run_ended_by_a_full_disk_reports_when_and_why(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_disk, "FULL_S", 0.0)

    async def visit(run: Run, staged: SimulatedRun) -> None:
        fill(small / "others")

    with pytest.raises(ExceptionGroup) as error:
        stage(small / "runs", visit)
    (full,) = error.value.exceptions
    assert isinstance(full, OutputError) and ("No space left" in str(full) or "disk is full" in str(full))
    (folder,) = (small / "runs").iterdir()
    said = json.loads((folder / "run.json").read_text())
    assert said["end_utc"] and said["exit_code"] == ExitCode.INTERNAL


def test_what_was_measured_before_the_disk_was_full_is_its_steps_result(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So no space has to be set aside for a summary."""
    monkeypatch.setattr(full_disk, "FULL_S", 0.0)
    monkeypatch.setattr(so_far, "FIRST_S", 0.0)
    monkeypatch.setattr(so_far, "SHARE", 1e9)

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await asyncio.sleep(22.0)
        fill(small / "others")

    with pytest.raises(ExceptionGroup):
        stage(small / "runs", visit)
    (folder,) = (small / "runs").iterdir()
    (row,) = read_summary(results_of(folder) / "summary.all.csv")
    (stored,) = folder.glob("step*/all/all.csv")
    measured = [one for one in read_table(stored) if one["phase"] == "run"]
    assert {"shortened", "controller_ended"} <= names_of(row["reasons"]) and row["verdict"] == "partial"
    assert int(row["last_subinterval"]) >= int(measured[-1]["subinterval"]) - 1 and len(measured) >= 2


@pytest.mark.parametrize("file", ["summary.csv", "run.json"])
def test_a_step_that_ended_on_a_full_disk_has_no_verdict_without_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    """Then what it had measured so far is read."""
    monkeypatch.setattr(so_far, "FIRST_S", 0.0)
    monkeypatch.setattr(so_far, "SHARE", 1e9)
    append, write = csv_text._append, csv_text.replace_file
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def appends(path: Path, size: int, data: bytes) -> None:
        if path.name == "summary.csv" == file and path.parent.parent.name != "so_far":
            raise full
        append(path, size, data)

    def replaces(folder: Path, name: str, text: str) -> None:
        if name == "run.json" == file and folder.parent.name != "so_far" and json.loads(text)["steps"][-1:]:
            if json.loads(text)["steps"][-1]["verdict"]:
                raise OutputError("run.json: not written: No space left on device")
        write(folder, name, text)

    async def visit(run: Run, staged: SimulatedRun) -> None:
        pass

    monkeypatch.setattr(full_disk, "FULL_S", 0.0)
    monkeypatch.setattr(csv_text, "_append", appends)
    monkeypatch.setattr("ivypy.master.output.folder.replace_file", replaces)
    with pytest.raises((ExceptionGroup, OutputError)):
        stage(tmp_path, visit)
    (folder,) = tmp_path.iterdir()
    said = json.loads((folder / "run.json").read_text())
    assert said["end_utc"] and said["exit_code"] == ExitCode.INTERNAL and not said["steps"][-1]["verdict"]
    (row,) = read_summary(results_of(folder) / "summary.all.csv")
    assert "controller_ended" in row["reasons"] and read_record(folder)["steps"][-1]["verdict"] == row["verdict"]
