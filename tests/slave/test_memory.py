"""Memory of a host: in which pages I/O buffers lie, and what an instance takes apart from them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ivypy.slave.engine._engine import Engine
from ivypy.slave.host.huge_pages import HUGE, describe_buffers, smaps_sizes
from tests.support.engine import fields

MIB = 1 << 20
MOST_PER_INSTANCE = 8192  # bytes
RESERVED = Path("/proc/sys/vm/nr_hugepages")


@pytest.mark.parametrize(
    ("smaps", "large", "says"),
    [
        ("AnonHugePages: 4096 kB\nPrivate_Hugetlb: 0 kB\n", 4, "4 MiB in transparent huge pages"),
        ("AnonHugePages: 2048 kB\nPrivate_Hugetlb: 6144 kB\n", 6, "6 MiB in reserved huge pages"),
        (
            "Rss: 99999 kB\nAnonHugePages: 2048 kB\nPrivate_Hugetlb: 2048 kB\n",
            8,
            "2 MiB in reserved huge pages, 2 MiB in transparent huge pages, 4 MiB in ordinary pages",
        ),
        ("AnonHugePages: 8192 kB\n", 4, "4 MiB in transparent huge pages"),  # the interpreter has some, too
        ("rubbish\n", 4, "4 MiB in ordinary pages"),
    ],
)
def test_pages_are_reported_as_the_kernel_has_them(tmp_path: Path, smaps: str, large: int, says: str) -> None:
    (tmp_path / "smaps").write_text("00400000-7fff [rollup]\n" + smaps)
    assert describe_buffers(large * MIB, tmp_path / "smaps") == f"I/O buffers of 2 MiB and more: {says}"
    assert (
        describe_buffers(large * MIB, tmp_path / "none")
        == f"I/O buffers of 2 MiB and more: {large} MiB in ordinary pages"
    )


@pytest.fixture
def reserved() -> Iterator[None]:
    """Two huge pages more than there are."""
    before = int(RESERVED.read_text())
    try:
        RESERVED.write_text(f"{before + 2}")
    except OSError:
        pytest.skip("this user may not reserve huge pages")
    try:
        if int(RESERVED.read_text()) < before + 2:
            pytest.skip("this machine has no two huge pages in one piece")
        yield
    finally:
        RESERVED.write_text(f"{before}")


def grown(image: Path, name: str, blocksize: int, tags: int, reserved: bool = True) -> int:
    """By how much a kind of the process's pages grows with an instance; and shrinks with its end."""
    engine = Engine("null", [-1])
    try:
        engine.reserved_pages(reserved)
        lun = engine.open_lun(str(image), False)
        before = smaps_sizes("/proc/self/smaps_rollup")[name]
        engine.create(0, lun, 0, tags, blocksize, fields(blocksize=blocksize, maxtags=tags))
        engine.prepare()
        after = smaps_sizes("/proc/self/smaps_rollup")[name]
        engine.delete(0)
        assert smaps_sizes("/proc/self/smaps_rollup")[name] <= before
        return after - before
    finally:
        assert engine.close(15.0) == []


@pytest.fixture
def image(tmp_path: Path) -> Path:
    (tmp_path / "image").write_bytes(bytes(MIB))
    return tmp_path / "image"


@pytest.mark.xdist_group("huge pages")
def test_large_buffers_take_reserved_huge_pages_only_where_they_may(image: Path, reserved: None) -> None:
    assert grown(image, "Private_Hugetlb", MIB, 3, reserved=False) == 0
    assert grown(image, "Private_Hugetlb", MIB, 3) == 2 * HUGE  # rounded up
    assert grown(image, "Private_Hugetlb", MIB, 1) == 0
    assert grown(image, "Private_Hugetlb", MIB, 5) == 0  # there are not enough: none is taken


@pytest.mark.xdist_group("huge pages")
def test_large_buffers_ask_for_transparent_huge_pages(image: Path) -> None:
    enabled = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not enabled.exists() or "[never]" in enabled.read_text():
        pytest.skip("this kernel gives no transparent huge pages")
    assert grown(image, "AnonHugePages", MIB, 4) in (2 * HUGE, HUGE, 0)  # 0 where memory is in pieces
    assert grown(image, "AnonHugePages", 4096, 1) == 0


COUNTED = """
import array, gc, sys, time
from ivypy.protocol.payload import WorkloadToCreate
from ivypy.protocol.parameters import Parameters
from ivypy.slave.engine._engine import Engine, now_ns
from ivypy.slave.host.huge_pages import smaps_sizes
from ivypy.slave.workloads.workloads import Workloads

def made(first, luns):
    names = [f"{sys.argv[1]}/lun{n}" for n in range(first, first + luns)]
    for name in names:
        with open(name, "wb") as file:
            file.truncate(1 << 20)
    return [
        WorkloadToCreate(3 * first + 3 * n + w, f"h+{name}+w{w}", name, None, Parameters(iops=1.0), 1, 4096)
        for n, name in enumerate(names) for w in range(3)
    ]

def rss():
    gc.collect()
    return smaps_sizes("/proc/self/smaps_rollup")["Rss"]

engine = Engine("null", [-1, -1])
workloads = Workloads(engine, "null", [None, None])
def run(count):
    order = array.array("I", range(count)).tobytes()
    engine.set_lease(now_ns() + 10**10)
    engine.go(now_ns() + 10**7, 10**8, order, bytes(len(order)), order)
    engine.stop(1)
    while engine.ended() is None:
        engine.collect()
        time.sleep(0.01)
assert workloads.create(made(0, 300)) == []
run(900)
before = rss()
assert workloads.create(made(300, 700)) == []
run(3000)
print((rss() - before) / 2100)
"""


@pytest.mark.slow
def test_an_instance_takes_little_apart_from_its_io_buffers(tmp_path: Path) -> None:
    """A slave's, with its LUN's part: what 700 LUNs with three each, after a step, add to a process that has 300."""
    done = subprocess.run([sys.executable, "-c", COUNTED, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    per_instance = float(done.stdout) - 4096  # its one buffer
    assert 0 < per_instance < MOST_PER_INSTANCE
