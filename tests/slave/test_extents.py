"""Which parts of a file were never written, from what the kernel reports of its extents."""

import errno
import fcntl
import os
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from ivypy.slave.devices import extents

KIB = 1024
LAST, UNWRITTEN, DELAYED = 0x1, 0x800, 0x4  # FIEMAP_EXTENT_*, as linux/fiemap.h has them
Extent = tuple[int, int, int]  # offset in the file, length, flags


def written(path: Path, size: int) -> str:
    path.write_bytes(b"")
    with path.open("r+b") as file:
        file.truncate(size)
    return str(path)


def mapped(monkeypatch: pytest.MonkeyPatch, of_file: Sequence[Extent]) -> list[tuple[int, int]]:
    """A filesystem that has these extents in every file; the (start, length) of each request."""
    requests: list[tuple[int, int]] = []

    def ioctl(fd: int, number: int, request: bytearray, mutate: bool) -> int:
        assert (number, mutate) == (0xC020660B, True)
        start, length, flags, found, room, reserved = struct.unpack_from("=QQLLLL", request)
        assert (found, reserved) == (0, 0) and not os.get_inheritable(fd)
        assert flags == 0x1 and len(request) == 32 + 56 * room  # FIEMAP_FLAG_SYNC
        requests.append((start, length))
        there = [one for one in of_file if one[0] < start + length and one[0] + one[1] > start][:room]
        for place, (offset, size, extent_flags) in enumerate(there):
            struct.pack_into("=QQQQQLLLL", request, 32 + 56 * place, offset, 7 << 30, size, 0, 0, extent_flags, 0, 0, 0)
        struct.pack_into("=L", request, 20, len(there))
        return 0

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    return requests


@pytest.mark.parametrize(
    ("size", "of_file", "missing"),
    [
        (64 * KIB, [(0, 64 * KIB, LAST)], 0),
        (64 * KIB, [], 64 * KIB),
        (64 * KIB, [(0, 64 * KIB, LAST | UNWRITTEN)], 64 * KIB),
        (64 * KIB, [(0, 16 * KIB, 0), (16 * KIB, 48 * KIB, LAST | UNWRITTEN)], 48 * KIB),
        (64 * KIB, [(16 * KIB, 16 * KIB, 0), (48 * KIB, 8 * KIB, LAST | DELAYED)], 40 * KIB),
        (64 * KIB, [(16 * KIB, 16 * KIB, 0)], 48 * KIB),  # and a hole up to the end
        (5000, [(0, 8192, LAST)], 0),  # the last block is longer than the file
        (5000, [(0, 4096, 0), (4096, 4096, LAST | UNWRITTEN)], 904),
        (0, [], 0),
    ],
)
def test_holes_and_unwritten_extents_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, of_file: list[Extent], missing: int
) -> None:
    mapped(monkeypatch, of_file)
    assert extents.unwritten_bytes(written(tmp_path / "file", size)) == missing


@pytest.mark.parametrize("count", [511, 512, 513, 1300])
def test_a_file_of_many_extents_is_asked_for_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Every other block is a hole."""
    of_file = [(8192 * n, 4096, 0) for n in range(count)]
    requests = mapped(monkeypatch, of_file)
    size = 8192 * count
    assert extents.unwritten_bytes(written(tmp_path / "file", size)) == 4096 * count
    ends = [0, *(8192 * (n - 1) + 4096 for n in (*range(512, count, 512), count))]
    assert requests == [(end, size - end) for end in ends]


def test_an_empty_file_is_not_asked_for_and_none_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "file", 0)
    requests = mapped(monkeypatch, [])
    before = len(os.listdir("/proc/self/fd"))
    assert extents.unwritten_bytes(path) == 0 and requests == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_follows_the_last_extent_is_not_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = mapped(monkeypatch, [(0, 4096, LAST)])
    assert extents.unwritten_bytes(written(tmp_path / "file", 8192)) == 4096
    assert requests == [(0, 8192)]


@pytest.mark.parametrize("error", [errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS, errno.EINVAL, errno.EIO])
def test_a_filesystem_without_extents_reports_nothing_and_an_error_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(error, "refused")

    path = written(tmp_path / "file", 8192)
    monkeypatch.setattr(fcntl, "ioctl", refuse)
    if error == errno.EIO:
        with pytest.raises(OSError, match="refused"):
            extents.unwritten_bytes(path)
    else:
        assert extents.unwritten_bytes(path) == 0


def test_the_notice_says_how_much_was_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "file", 8192)
    mapped(monkeypatch, [(0, 8192, LAST)])
    assert extents.notice(path) is None
    mapped(monkeypatch, [(0, 4096, LAST)])
    found = extents.notice(path)
    assert found is not None and found.text.startswith(f"4,096 of 8,192 bytes of {path} were never written")
