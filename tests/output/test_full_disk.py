"""Writes to a full disk: made again until there is room, or until patience ends; other errors are raised at once."""

import errno
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ivypy.master.output import full_disk, step_folder
from ivypy.master.output.full_disk import FULL_S, FullDisk, patient, patiently
from ivypy.master.output.rows import measured_flags


class Disk:
    """It is full for some seconds of a clock that only sleeping moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, full_s: float, error: Exception) -> None:
        self.now_s, self.full_s, self.error = 1000.0, full_s, error
        self.tries = 0
        self.said: list[str] = []
        monkeypatch.setattr("ivypy.master.output.full_disk.time.monotonic", lambda: self.now_s)
        monkeypatch.setattr("ivypy.master.output.full_disk.time.sleep", self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def write(self) -> int:
        self.tries += 1
        if self.now_s < 1000.0 + self.full_s:
            raise self.error
        return self.tries


FULL = [OSError(code, "full") for code in (errno.ENOSPC, errno.EDQUOT)]


@pytest.mark.parametrize("error", FULL)
def test_a_write_is_made_again_until_there_is_room(monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    disk = Disk(monkeypatch, 6.0, error)
    with patient(FullDisk(disk.said.append)):
        assert patiently(disk.write) == 25
        assert patiently(disk.write) == 26
    assert disk.said == [
        "the results' disk is full: waiting for up to 50 s; make room",
        "the results' disk has room again, after 6.0 s",
    ]


def test_patience_is_of_the_disk_and_not_of_each_write(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch, 500.0, FULL[0])
    with patient(FullDisk(disk.said.append)):
        for _ in range(3):
            with pytest.raises(OSError, match="full"):
                patiently(disk.write)
        assert disk.now_s == 1000.0 + FULL_S and len(disk.said) == 1
        disk.now_s += 1000.0
        patiently(disk.write)
        disk.full_s = 1e9  # full once more: it is waited for again
        with pytest.raises(OSError, match="full"):
            patiently(disk.write)
    assert disk.now_s == 2000.0 + 2 * FULL_S


@pytest.mark.parametrize("error", [OSError(errno.EIO, "broken"), sqlite3.OperationalError("locked")])
def test_other_errors_are_not_waited_for(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    disk = Disk(monkeypatch, 6.0, error)
    with patient(FullDisk(disk.said.append)), pytest.raises(type(error)):
        patiently(disk.write)
    assert (disk.tries, disk.said) == (1, [])


def test_only_the_writer_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch, 6.0, FULL[0])
    with patient(FullDisk(disk.said.append)):
        pass
    with pytest.raises(OSError, match="full"):
        patiently(disk.write)


def test_sqlite_says_that_its_disk_is_full(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.sqlite") as base:
        base.execute("CREATE TABLE t (x BLOB)")
        base.execute("PRAGMA max_page_count = 3")
        with pytest.raises(sqlite3.OperationalError) as error:
            base.execute("INSERT INTO t VALUES (zeroblob(100000))")
    assert full_disk.is_full(error.value)


A_QUOTA = """
import resource, sqlite3, sys, time
from pathlib import Path
from typing import Any
from ivypy.master.output.full_disk import FullDisk, patient
from ivypy.master.output.histogram_db import HistogramWriter

def nap(seconds):
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

base = HistogramWriter(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
time.sleep = nap
with patient(FullDisk(print)):
    for part in range(4):
        base._write({"meta": [(f"{part} {k}", "x" * 1000) for k in range(300)]})
base.close()
"""


def test_a_used_up_quota_which_sqlite_calls_an_io_error_is_waited_for(tmp_path: Path) -> None:
    """A limit of the process's own stands for the quota: SQLite names neither."""
    path = tmp_path / "x.sqlite"
    done = subprocess.run([sys.executable, "-c", A_QUOTA, path], capture_output=True, text=True, check=True)
    full, again = done.stdout.splitlines()
    assert full.startswith("the results' disk is full, its quota is used up, or it is broken (SQLITE_IOERR_WRITE)")
    assert again.startswith("the results' disk has room again")
    with sqlite3.connect(path) as base:
        keys = [key for (key,) in base.execute("SELECT key FROM meta WHERE value LIKE 'x%'")]
    assert sorted(keys) == sorted(f"{part} {k}" for part in range(4) for k in range(300))


def test_marking_what_was_measured_waits_for_a_full_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that copies on write needs room for it."""
    path, disk = tmp_path / "all.csv", Disk(monkeypatch, 6.0, FULL[0])
    path.write_bytes(b"subinterval,in_measurement\n0,0\n1,0\n")

    def found(*given: Any) -> list[int]:
        disk.write()
        return measured_flags(*given)

    monkeypatch.setattr(step_folder, "measured_flags", found)
    with patient(FullDisk(disk.said.append)):
        step_folder._set_flags(path, {1})
    assert path.read_bytes() == b"subinterval,in_measurement\n0,0\n1,1\n" and len(disk.said) == 2
