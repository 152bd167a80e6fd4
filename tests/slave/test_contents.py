"""What the user is shown of the data that a run would overwrite: kinds by their real writers; none of random bytes."""

import bz2
import gzip
import io
import lzma
import os
import random
import sqlite3
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.slave.devices.contents import KINDS, kind_of
from ivypy.slave.devices.signatures import READ, DeviceEnds
from ivypy.slave.luns.discovery import inspect_luns
from tests.support.loop_devices import loop_device, needs_loops


def ends(data: bytes) -> DeviceEnds:
    return DeviceEnds(data[:READ], data[-READ:], len(data))


def tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.add(__file__, "one")
    return out.getvalue()


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.write(__file__)
    return out.getvalue()


def database(tmp_path: Path) -> bytes:
    with sqlite3.connect(tmp_path / "db") as db:
        db.execute("create table t (a)")
    db.close()
    return (tmp_path / "db").read_bytes()


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (tar, "a tar archive"),
        (zipped, "a zip archive or a document"),
        (lambda: gzip.compress(b"x"), "gzip data"),
        (lambda: bz2.compress(b"x"), "bzip2 data"),
        (lambda: lzma.compress(b"x"), "xz data"),
        (lambda: Path(sys.executable).read_bytes(), "an ELF program or library"),
        (lambda: Path(__file__).read_bytes(), "text"),
        (lambda: "größer\n".encode() * 1000, "text"),
        (lambda: b"note to myself" + bytes(9000), "text"),
        (lambda: bytes(9000), "zeros at both ends"),
        (lambda: bytes(9000) + b"\1", ""),
        (lambda: b"\1\2\3", ""),
    ],
)
def test_kinds_are_named(make: Callable[[], bytes], kind: str) -> None:
    assert kind_of(ends(make())) == kind


def test_a_database_is_named(tmp_path: Path) -> None:
    assert kind_of(ends(database(tmp_path))) == "an SQLite database"


@given(st.binary(max_size=64))
def test_whatever_is_there_has_a_kind_or_none(data: bytes) -> None:
    named = {name for name, _, _ in KINDS}
    assert kind_of(ends(data)) in named | {"zeros at both ends", "text", ""}


def test_random_data_has_none() -> None:
    assert all(len(magic) >= 3 for _, _, magic in KINDS)
    draw = random.Random(1)
    assert {kind_of(ends(draw.randbytes(8192))) for _ in range(1000)} == {""}


def test_a_file_is_shown_with_its_owner_and_age(tmp_path: Path) -> None:
    path = tmp_path / "backup"
    path.write_bytes(tar())
    os.utime(path, (0, 86400))
    ((lun,), _) = inspect_luns([str(path)])
    assert lun.holds[0] == "a tar archive" and lun.holds[1].startswith("owner ")
    assert lun.holds[2:] == ("modified 1970-01-02 00:00:00 UTC",)


@needs_loops
def test_a_device_is_shown_with_what_it_holds(shm: Path) -> None:
    with loop_device(shm) as loop:
        Path(loop).write_bytes(gzip.compress(b"x"))
        ((lun,), _) = inspect_luns([loop])
    assert lun.holds == ("gzip data",)
