"""A disk that is full in mid-run: it is waited for; then the run ends, and its run.json says so."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ivypy.master.errors import OutputError
from ivypy.master.exit_codes import ExitCode
from ivypy.master.output import full_disk
from ivypy.master.output.histogram_db_reader import HistogramReader
from ivypy.master.run.run import Run
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
