"""The check of what a session leaves behind: other people's names are no harm, and it never eats the tests' report."""

from pathlib import Path

import pytest

from tests.support import leftovers

FOREIGN = b"/mnt/caf\xe9"  # no UTF-8
OURS = bytes(leftovers.memory_root() / "device-\udcff")


def mountinfo(*points: bytes) -> bytes:
    return b"".join(b"36 35 98:0 / %s rw,noatime master:1 - ext3 /dev/root rw\n" % point for point in points)


def loops(sys: Path, *files: bytes) -> Path:
    for number, file in enumerate(files):
        folder = sys / f"block/loop{number}/loop"
        folder.mkdir(parents=True)
        (folder / "backing_file").write_bytes(file + b"\n")
    return sys


def test_mounts_are_found_between_names_that_are_no_text() -> None:
    assert list(leftovers.mounts(mountinfo(FOREIGN, OURS, b"/"))) == [f"mount {OURS.decode(errors='surrogateescape')}"]


def test_loop_devices_are_found_between_names_that_are_no_text(tmp_path: Path) -> None:
    (found,) = leftovers.loop_devices(loops(tmp_path, FOREIGN, OURS))
    assert found == f"loop device loop1 over {OURS.decode(errors='surrogateescape')}"


def test_what_is_found_can_be_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "PATIENCE_S", 0.0)
    monkeypatch.setattr(leftovers, "CHECKS", {"mounts": lambda: leftovers.mounts(mountinfo(OURS))})
    (line,) = leftovers.found()
    assert line.encode().endswith(rb"device-\xff")


def test_a_check_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> list[str]:
        raise ValueError("no such thing")

    monkeypatch.setattr(leftovers, "PATIENCE_S", 0.0)
    monkeypatch.setattr(leftovers, "CHECKS", {"devices": fails, "mounts": lambda: ["mount /x"]})
    assert leftovers.found() == ["the check of devices failed: ValueError('no such thing')", "mount /x"]
