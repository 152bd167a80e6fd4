"""Runs through the page cache, and with flushes, on a disk of their own: what their rows say of memory and disk."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ivypy.master.rollup.io_checks import CACHED_NOTE
from ivypy.slave.devices.diskstats import read_transferred
from tests.support.devices import disk_in_memory
from tests.support.real_runs import ENDED, Finished, run, written

pytestmark = pytest.mark.slow

MIB = 1 << 20
SIZE = 24 * MIB
PLAN = """
luns: {{ create: {{ path: {folder}/data, size: 24MiB }} }}
engine: {{ threads: 1 }}
workloads: {{ w: {{ blocksize: 64KiB, fraction_read: 0%, direct: false, {workload} }} }}
defaults: {{ subinterval: 250ms }}
steps: {steps}
"""
READS = "edit: { rollup: all, set: { fraction_read: 100%, flush: never, end_fsync: false } }"


@pytest.fixture(scope="module")
def disk() -> Iterator[Path]:
    with disk_in_memory(1 << 30, "cache-", idle=True) as folder:
        yield folder


def rows(disk: Path, tmp_path: Path, workload: str, *steps: str) -> dict[str, dict[str, str]]:
    """By the step's name."""
    text = PLAN.format(folder=disk, workload=workload, steps=f"[ {', '.join(f'{{ {step} }}' for step in steps)} ]")
    ended: Finished = run(written(tmp_path, text), tmp_path / "runs")
    assert ended.code in ENDED, ended.out + ended.err
    return {row["name"]: row for row in ended.rows("summary.all.csv")}


def ios(row: dict[str, str], name: str = "overall_iops") -> int:
    return round(float(row[name]) * float(row["length_s"]))


def cache_of(row: dict[str, str]) -> str:
    """What the row says of the page cache."""
    return next((reason for reason in row["reasons"].split("; ") if reason.startswith("page_cache")), "")


def written_by(disk: Path) -> int:
    """Bytes that it has written so far."""
    return read_transferred()[disk.stat().st_dev].written


@pytest.mark.realtime
def test_what_memory_did_is_said_and_what_a_disk_did_is_not(disk: Path, tmp_path: Path) -> None:
    """Each step drives the whole file once: of what a flush ended, nothing is dirty; of what was dropped, nothing comes
    from memory; of what was kept, all does; and what is not flushed is dirty, but for what the disk wrote all the same:
    the kernel does not wait for a flush once a file was changed 30 s ago, and be it that it was made then."""
    before = written_by(disk)
    found = rows(
        disk, tmp_path, "iosequencer: sequential, maxtags: 4, end_fsync: true",
        "go: { name: flushed, once: true }",
        READS, "go: { name: cold, once: true }",
        "edit: { rollup: all, set: { drop_cache: false } }", "go: { name: warm, once: true }",
        "edit: { rollup: all, set: { fraction_read: 0%, until: { bytes: 1x } } }", "go: { name: dirty }",
    )  # fmt: skip
    assert [ios(row) for row in found.values()] == [SIZE // 65536] * 4
    assert ios(found["flushed"], "flush_iops") == 1 and cache_of(found["flushed"]) == ""
    assert cache_of(found["cold"]) == ""
    assert "100% of what was read came from memory" in cache_of(found["warm"])
    # What the slave's own files took of a disk meanwhile is not told apart from its reads.
    assert 0.99 * SIZE <= float(found["warm"]["cached_kib"]) * 1024 <= SIZE
    unasked = written_by(disk) - before - 2 * SIZE  # the file was made, and flushed
    dirty = round(float(found["dirty"]["dirty_kib"]) * 1024)
    assert SIZE - unasked <= dirty <= SIZE
    at_the_end = f"{dirty / SIZE:.0%} of what was written had not reached the disk at the end"
    assert at_the_end in cache_of(found["dirty"]) or dirty <= CACHED_NOTE * SIZE


@pytest.mark.parametrize(("every", "how"), [(1, "fsync"), (32, "fdatasync")])
def test_a_flush_follows_so_many_writes_and_is_in_no_other_figure(
    every: int, how: str, disk: Path, tmp_path: Path
) -> None:
    """None after the last write: that is what `end_fsync` is for."""
    workload = f"maxtags: 1, flush: {{ every: {every}, with: {how} }}"
    (row,) = rows(disk, tmp_path, workload, "go: { name: one, once: true }").values()
    writes = SIZE // 65536
    flushes = (writes - 1) // every
    assert ios(row) == writes == int(row["overall_service_count"])
    assert ios(row, "flush_iops") == flushes == int(row["flush_service_count"])
    assert int(row["due"]) == writes + flushes


def test_a_rate_with_flushes_is_that_of_its_writes(disk: Path, tmp_path: Path) -> None:
    """And it is kept, as long as one I/O at a time and its flushes take no longer than the gaps."""
    workload = "iops: 200, maxtags: 2, flush: { every: 4 }"
    found = rows(disk, tmp_path, workload, "go: { name: one, measure: 2s, warmup: 250ms }")
    row = found["one"]
    flushes = ios(row, "flush_iops")
    assert flushes == pytest.approx(ios(row) / 4, abs=2)
    # A stall moves I/Os over either end of what is measured, and nothing over those at which they were due.
    assert int(row["due"]) - flushes == pytest.approx(400, abs=4)


def test_a_time_that_ends_with_a_flush_takes_longer_by_it(disk: Path, tmp_path: Path) -> None:
    workload = "random_map: true, maxtags: 2, end_fsync: true, iops: 400"
    (row,) = rows(disk, tmp_path, workload, "go: { name: one, until: { time: 500ms } }").values()
    flush_s = float(row["flush_service_us_max"]) / 1e6
    assert ios(row, "flush_iops") == 1 and cache_of(row) == ""
    assert ios(row) + int(row["dropped"]) == 200 == int(row["due"]) - 1  # a stall at the end drops what was due
    assert 0.5 + flush_s <= float(row["length_s"]) + 1e-3
