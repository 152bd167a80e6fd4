"""A disk that is full in mid-run: the run ends, and its run.json says so."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ivypy.master.errors import OutputError
from ivypy.master.exit_codes import ExitCode
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


def test_a_run_ended_by_a_full_disk_reports_when_and_why(small: Path) -> None:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        fill(small / "others")

    with pytest.raises(ExceptionGroup) as error:
        stage(small / "runs", visit)
    (full,) = error.value.exceptions
    assert isinstance(full, OutputError) and "No space left" in str(full)
    (folder,) = (small / "runs").iterdir()
    said = json.loads((folder / "run.json").read_text())
    assert said["end_utc"] and said["exit_code"] == ExitCode.INTERNAL
