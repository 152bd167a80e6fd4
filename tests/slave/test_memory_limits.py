"""Memory that instances may take: what the kernel's files say, and a real control group."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ivypy.protocol import messages as m
from ivypy.protocol.parameters import MAX, Parameters
from ivypy.slave.host.memory_limits import available, prefer_as_victim, reserved_left, why_too_much
from tests.support.slave_client import Client
from tests.support.waits import wait_until
from tests.support.workloads import workloads_on

MIB = 1 << 20
V1 = "sys/fs/cgroup/memory"
V2 = "sys/fs/cgroup"
NO_LIMIT = str((1 << 63) - 4096)


def machine(root: Path, files: dict[str, str], available_mib: int = 1000) -> Path:
    meminfo = f"MemTotal: 99999999 kB\nMemAvailable: {available_mib * 1024} kB\nHugepagesize: 2048 kB\n"
    for name, text in {"proc/meminfo": meminfo, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def v1(group: str, limit: str, used_mib: int, cache_mib: int = 0) -> dict[str, str]:
    stat = f"cache {cache_mib * MIB}\ninactive_file 1\ntotal_inactive_file {cache_mib * MIB}\n"
    found = {"memory.limit_in_bytes": limit, "memory.usage_in_bytes": str(used_mib * MIB), "memory.stat": stat}
    return {f"{V1}{group}/{name}": text for name, text in found.items()}


def v2(group: str, limit: str, used_mib: int, cache_mib: int = 0) -> dict[str, str]:
    stat = f"inactive_file {cache_mib * MIB}\n"
    found = {"memory.max": limit, "memory.current": str(used_mib * MIB), "memory.stat": stat}
    return {f"{V2}{group}/{name}": text for name, text in found.items()}


OF_V1 = {"proc/self/cgroup": "5:devices:/\n4:cpu,memory:/a/b\n0::/\n"}
OF_V2 = {"proc/self/cgroup": "0::/a/b\n"}
MANY = 1 << 50

AVAILABLE: list[tuple[dict[str, str], int, str]] = [
    ({}, 1000, "on this machine"),
    (OF_V1 | v1("/a/b", str(500 * MIB), 100), 400, "a/b"),
    (OF_V1 | v1("/a/b", str(500 * MIB), 300, cache_mib=200), 400, "a/b"),  # cache is given up
    (OF_V1 | v1("/a/b", NO_LIMIT, 300) | v1("/a", str(700 * MIB), 200), 500, "memory/a"),  # the one above
    (OF_V1 | v1("/a/b", NO_LIMIT, 300), 1000, "on this machine"),
    (OF_V1 | v1("", str(600 * MIB), 0), 600, "memory"),  # in a container: the mount is its own group
    (OF_V1 | v1("/a/b", str(100 * MIB), 200), 0, "a/b"),  # it was lowered meanwhile
    (OF_V1 | v1("/a/b", str(5000 * MIB), 100), 1000, "on this machine"),  # more than there is
    (OF_V2 | v2("/a/b", str(500 * MIB), 100), 400, "a/b"),
    (OF_V2 | v2("/a/b", str(500 * MIB), 350, cache_mib=50), 200, "a/b"),
    (OF_V2 | v2("/a/b", "max", 100) | v2("/a", str(300 * MIB), 100), 200, "cgroup/a"),
    (OF_V2 | v2("/a/b", "max", 100), 1000, "on this machine"),
    ({"proc/self/cgroup": "0::/../../x\n"}, 1000, "on this machine"),  # outside of what is seen here
    ({"proc/self/cgroup": "rubbish\n"}, 1000, "on this machine"),
]


@pytest.mark.parametrize(("files", "mib", "where"), AVAILABLE)
def test_the_narrowest_limit_counts(tmp_path: Path, files: dict[str, str], mib: int, where: str) -> None:
    found = available(machine(tmp_path, files))
    assert found is not None and found.size == mib * MIB and found.where.endswith(where)


def test_nothing_is_refused_where_nothing_is_known(tmp_path: Path) -> None:
    assert available(tmp_path) is None and why_too_much([MANY], 0, tmp_path, False) == ""


RESERVED = {
    "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "30\n",
    "sys/kernel/mm/hugepages/hugepages-2048kB/resv_hugepages": "10\n",
}


@pytest.mark.parametrize(
    ("areas_mib", "beside_mib", "reserved", "words"),
    [
        ([900], 0, False, ""),  # to the byte
        (
            [900],
            1,
            False,
            "need 901 MiB of memory for I/O buffers, and 900 MiB can be used (1,000 MiB available",
        ),
        ([450, 451], 0, False, "less 10%): lower maxtags, the largest blocksize, or the number of LUNs"),
        ([40, 900], 0, True, ""),  # 20 pages are free and not promised
        ([40, 900], 0, False, "need 940 MiB"),
        ([42, 880], 0, True, "need 922 MiB of memory for I/O buffers, and"),  # as a whole or not at all
        ([40, 901], 0, True, "need 901 MiB of memory for I/O buffers, beside 40 MiB in reserved huge pages, and"),
        ([1] * 40 + [880], 0, True, "need 920 MiB"),  # small ones never take them
    ],
)
def test_a_refusal_has_the_figures_and_what_to_change(
    tmp_path: Path, areas_mib: list[int], beside_mib: int, reserved: bool, words: str
) -> None:
    root = machine(tmp_path, RESERVED)
    assert reserved_left(root) == 40 * MIB
    said = why_too_much([mib * MIB for mib in areas_mib], beside_mib * MIB, root, reserved)
    assert words in said and bool(words) == bool(said)


@pytest.mark.parametrize(("before", "after"), [("0", "500"), ("-1000", "500"), ("900", "900")])
def test_a_slave_is_ended_before_others_where_memory_runs_out(tmp_path: Path, before: str, after: str) -> None:
    root = machine(tmp_path, {"proc/self/oom_score_adj": before + "\n"})
    prefer_as_victim(root)
    assert (root / "proc/self/oom_score_adj").read_text().split()[0] == after


LIMIT_MIB = 400


@pytest.fixture
def group() -> Iterator[Path]:
    """A memory control group of this test's own, with a limit."""
    top = next((Path("/") / place for place in (V1, V2) if (Path("/") / place / "cgroup.procs").exists()), None)
    if top is None:
        pytest.skip("this machine has no control groups")
    made = top / f"ivypy-test-{os.getpid()}"
    try:
        made.mkdir()
    except OSError as error:
        pytest.skip(f"this user may make no control group: {error.strerror}")
    try:
        limit = made / ("memory.limit_in_bytes" if top.name == "memory" else "memory.max")
        try:
            limit.write_text(str(LIMIT_MIB * MIB))
        except OSError as error:
            pytest.skip(f"this group takes no memory limit: {error.strerror}")
        yield made
    finally:
        wait_until(lambda: not (made / "cgroup.procs").read_text().strip(), "the group is empty")
        made.rmdir()


@pytest.mark.slow
def test_a_slave_in_a_real_control_group_refuses_what_would_end_it(group: Path, tmp_path: Path) -> None:
    """512 MiB of buffers in a group of 400 MiB: the kernel used to kill it."""
    lun = tmp_path / "lun"
    lun.write_bytes(bytes(4 * MIB))
    large, fits = (Parameters(iops=MAX, blocksize=MIB, maxtags=tags) for tags in (512, 128))
    with Client() as slave:
        slave.prepare("null")
        (group / "cgroup.procs").write_text(str(slave.process.pid))
        ((what, why),) = slave.refused(m.CreateWorkloads, workloads=tuple(workloads_on(str(lun), large, ceiling=512)))
        assert what.endswith("+w0")
        assert "they need 512 MiB of memory for I/O buffers" in why and str(group) in why
        slave.do(m.CreateWorkloads, workloads=tuple(workloads_on(str(lun), fits, ceiling=128)))
        slave.go(0)
        assert slave.until(m.Result).counts.data
        slave.do(m.Halt)
        assert Path(f"/proc/{slave.process.pid}/oom_score_adj").read_text() == "500\n"
