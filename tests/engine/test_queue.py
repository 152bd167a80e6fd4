"""Where nr_requests limits what is in flight: made folders of devices, as kernels of several ages show them."""

from pathlib import Path

import pytest

from tests.support.engine import run
from tests.support.sysfs_tree import SysfsTree

pytestmark = pytest.mark.slow

OLD, RHEL8, DEBIAN12, TODAY = "3.10.0-1160.el7.x86_64", "4.18.0-553.el8.x86_64", "6.1.0-10-amd64", "6.18.2"
NO_LIMIT = 0


def _device(root: Path, scheduler: str, mq: bool, nr_requests: str = "128") -> Path:
    files = {"queue__scheduler": scheduler, "queue__nr_requests": nr_requests, "queue__max_sectors_kb": "512"}
    files |= {"mq__0__cpu_list": "0, 1"} if mq else {}
    return SysfsTree(root).disk("virtual", "it", "252:3", **files)


def _limit(folder: Path, release: str) -> int:
    return int(run("queue", folder, release).split()[1])


@pytest.mark.parametrize(
    ("what", "release", "scheduler", "mq", "limit"),
    [
        ("dm, md, zram or an NVMe multipath head", RHEL8, "none", False, NO_LIMIT),
        ("the same", DEBIAN12, "none", False, NO_LIMIT),
        ("multipath by requests", RHEL8, "[mq-deadline] kyber none", True, 128),
        ("a disk of blk-mq", RHEL8, "[none] mq-deadline", True, 128),
        ("the same", TODAY, "[none] mq-deadline", True, 128),
        ("SCSI before blk-mq", RHEL8, "noop [deadline] cfq", False, 128),
        ("the same, with noop", OLD, "[noop] deadline cfq", False, 128),
        ("no requests, though a scheduler is named", DEBIAN12, "[mq-deadline]", False, NO_LIMIT),
    ],
)
def test_nr_requests_limits_only_what_has_hardware_queues(
    tmp_path: Path, what: str, release: str, scheduler: str, mq: bool, limit: int
) -> None:
    assert _limit(_device(tmp_path, scheduler, mq), release) == limit, what


@pytest.mark.parametrize("mq", [False, True])
def test_a_partition_has_its_disks_queue(tmp_path: Path, mq: bool) -> None:
    disk = _device(tmp_path, "none", mq)
    (disk / "it1").mkdir()
    for name, text in {"partition": "1", "dev": "252:4"}.items():
        (disk / "it1" / name).write_text(text + "\n")
    assert run("queue", disk / "it1", DEBIAN12).split() == ["252:3", "128" if mq else "0"]


def test_no_folder_means_no_limit(tmp_path: Path) -> None:
    assert run("queue", tmp_path / "none", TODAY, 1 << 30).split() == ["0:0", "0", "1", "1"]


@pytest.mark.parametrize(
    ("limits", "blocksize", "by_pages", "by_huge_pages"),
    [
        ((1280, 128, 65536, 0), 4096, 1, 1),
        ((1280, 128, 65536, 0), 1 << 20, 2, 1),  # loop
        ((2048, 127, 4294967295, 0), 1 << 20, 3, 1),  # NVMe
        ((256, 127, 4294967295, 0), 1 << 20, 4, 4),  # its largest request is
        ((4096, 1, 4294967295, 0), 65536, 16, 2),  # one piece: at most two huge pages lie below
        ((2048, 128, 65536, 256), 65536, 1, 1),  # stripes of 128 KiB
        ((2048, 128, 65536, 256), 1 << 19, 5, 5),
        ((2048, 128, 65536, 192), 65536, 2, 2),
    ],
)
def test_an_io_is_as_many_requests_as_its_pieces_need(
    tmp_path: Path, limits: tuple[int, int, int, int], blocksize: int, by_pages: int, by_huge_pages: int
) -> None:
    names = ("max_sectors_kb", "max_segments", "max_segment_size", "chunk_sectors")
    disk = _device(tmp_path, "none", True)
    for name, limit in zip(names, limits, strict=True):
        (disk / "queue" / name).write_text(f"{limit}\n")
    assert run("queue", disk, TODAY, blocksize).split()[2:] == [str(by_pages), str(by_huge_pages)]
