"""How busy cores are, who used them, and what kept the slave's threads from running."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ivypy.protocol.payload import CpuTaken
from ivypy.slave.host import cgroups
from ivypy.slave.host.cpu_usage import (
    TICKS_PER_S,
    CoreTimes,
    CpuMeter,
    CpuReading,
    CpuUse,
    ThreadTimes,
    core_times,
    percent,
    use_between,
)
from ivypy.slave.host.stall_witness import LEAST_NS, NAP_S, stall_in
from tests.support.hogs import wanted_core

MS = 10**6
S = 10**9


@pytest.mark.parametrize(
    ("before", "after", "whole", "busy"),
    [
        (0.0, 1.0, 4.0, 25.0),
        (2.0, 2.0, 5.0, 0.0),
        (2.0, 7.0, 5.0, 100.0),
        (2.0, 2.0, 0.0, 42.0),  # no tick between them: the last one stands
        (2.0, 1.99, 1.0, 0.0),  # the kernel's idle time may run backwards by a tick
    ],
)
def test_busy_percent_is_between_two_readings(before: float, after: float, whole: float, busy: float) -> None:
    assert percent(before, after, whole, otherwise=42.0) == busy


@pytest.mark.parametrize(
    ("line", "ticks"),
    [
        # user nice system idle iowait irq softirq steal guest guest_nice; guests are in user and nice already
        ("cpu3 500 100 200 1000 300 0 50 50 400 100", (900, 600, 50, 2200)),
        ("cpu3 500 100 200 1000", (800, 600, 0, 1800)),  # Linux 2.4
        ("cpu3 0 0 0 0 0 0 0 0 0 0", (0, 0, 0, 0)),
    ],
)
def test_the_kernels_counts_of_a_core(line: str, ticks: tuple[int, ...]) -> None:
    text = f"cpu  1 2 3 4 5 6 7 8 9 10\n{line}\nintr 5 0 0\nctxt 7\n"
    assert core_times(text) == {3: CoreTimes(*(one / TICKS_PER_S for one in ticks))}


Threads = Mapping[int, ThreadTimes]


def reading(at_s: float, cores: list[tuple[float, float, float]], ran_s: float, threads: Threads) -> CpuReading:
    """`cores`: (busy, user, steal) in seconds, of `at_s` each."""
    times = {core: CoreTimes(*figures, at_s) for core, figures in enumerate(cores)}
    return CpuReading(
        round(at_s * S),
        times,
        round(ran_s * S),
        round(ran_s * S),
        threads,
        (round(at_s * 100 * MS), round(at_s * 70 * MS)),
    )


def thread(ran_s: float, waited_s: float = 0.0, core: int = -1, number: int = 0) -> ThreadTimes:
    return ThreadTimes(round(ran_s * S), round(waited_s * S), core, number)


@pytest.mark.parametrize(
    ("cores", "ran_s", "threads", "taken"),
    [
        # an idle machine
        ([(0.0, 0.0, 0.0)] * 2, 0.0, {1: thread(0)}, (0, 0, 0, 0)),
        # ours alone: pinned, and wherever the kernel puts it
        ([(10.0, 10.0, 0.0), (0.0, 0.0, 0.0)], 10.0, {1: thread(10, core=0)}, (0, 0, 0, 0)),
        ([(6.0, 6.0, 0.0), (4.0, 4.0, 0.0)], 10.0, {1: thread(10)}, (0, 0, 0, 0)),
        # half of our core is another's, and we wait for it
        ([(10.0, 10.0, 0.0), (0.0, 0.0, 0.0)], 5.0, {1: thread(5, 5, 0)}, (25, 25, 50, 50)),
        # others on cores that are not ours
        ([(5.0, 5.0, 0.0), (10.0, 9.0, 0.0)], 5.0, {1: thread(5, 0, 0)}, (50, 45, 0, 0)),
        # a process that may run anywhere, beside ours
        ([(10.0, 10.0, 0.0), (10.0, 10.0, 0.0)], 5.0, {1: thread(5, 3)}, (75, 75, 75, 30)),
        # the kernel's own work for our I/O
        ([(8.0, 4.0, 0.0), (0.0, 0.0, 0.0)], 4.0, {1: thread(4, 0, 0)}, (20, 0, 40, 0)),
        # Python's threads wait as well, and are not what drives I/O
        ([(10.0, 10.0, 0.0), (0.0, 0.0, 0.0)], 0.0, {1: thread(0, 9, 0, number=-1)}, (50, 50, 0, 0)),
        # by ticks the core was less busy than our thread ran
        ([(3.0, 3.0, 0.0), (0.0, 0.0, 0.0)], 5.0, {1: thread(5, 0, 0)}, (0, 0, 0, 0)),
    ],
)
def test_what_others_used(
    cores: list[tuple[float, float, float]], ran_s: float, threads: Threads, taken: tuple[float, ...]
) -> None:
    before = reading(
        100, [(0.0, 0.0, 0.0)] * 2, 0, {n: thread(0, 0, one.core, one.number) for n, one in threads.items()}
    )
    found = use_between(before, reading(110, cores, ran_s, threads), (0, 1), CpuUse((0.0, 0.0), CpuTaken())).taken
    assert (found.others, found.others_user, found.others_beside, found.wait) == taken
    ours = threads[1].number >= 0
    near = range(2) if not ours or threads[1].core < 0 else [threads[1].core]
    assert found.busiest_beside == (max(10 * cores[i][0] for i in near) if ours else 100)
    assert found.throttled_ns == S  # the longer of two groups


def test_steal_is_the_hypervisors_and_nobody_elses() -> None:
    """Of a core that was stolen for 3 of 10 s, on which our thread ran for 7."""
    before = reading(0, [(0.0, 0.0, 0.0)] * 2, 0, {1: thread(0, 0, 1)})
    after = reading(10, [(0.0, 0.0, 0.0), (10.0, 7.0, 3.0)], 7, {1: thread(7, 0, 1)})
    found = use_between(before, after, (0, 1), CpuUse((0.0, 0.0), CpuTaken())).taken
    assert (found.steal, found.steal_beside, found.others) == (15.0, 30.0, 0.0)


@pytest.mark.parametrize(
    ("cores", "user", "ran_s", "waited_s", "throttled", "kept"),
    [
        # each core's others, in percent; of these in user mode; our threads: core, what each ran and waited
        ([50, 0], 1.0, {0: 5}, {0: 5}, 0, [50]),
        ([50, 0], 1.0, {0: 5}, {0: 2}, 0, [20]),
        ([50, 0], 0.0, {0: 5}, {0: 5}, 0, [0]),  # the kernel's own work, which may be the storage's
        ([40, 0], 0.5, {0: 5}, {0: 5}, 0, [20]),
        ([50, 0], 1.0, {0: 5, 1: 8}, {0: 5, 1: 2}, 0, [50, 0]),  # the second core's thread waits for one of ours
        ([100, 0], 1.0, {-1: 0}, {-1: 8}, 0, [50]),  # one that may run on both
        ([0, 0], 0.0, {0: 5}, {0: 5}, 30, [30]),  # of the wait a quota explains as much
        ([30, 0], 1.0, {0: 1}, {0: 9}, 30, [60]),
    ],
)
def test_a_thread_was_kept_by_what_others_ran_on_its_core(
    cores: list[float], user: float, ran_s: Mapping[int, float], waited_s: Mapping[int, float], throttled: float,
    kept: list[float],
) -> None:  # fmt: skip
    threads = {core + 10: thread(ran_s[core], waited_s[core], core, i) for i, core in enumerate(ran_s)}
    own = [ran_s.get(0, ran_s.get(-1, 0.0) / 2), ran_s.get(1, ran_s.get(-1, 0.0) / 2)]
    busy = [others / 10 + mine for others, mine in zip(cores, own, strict=True)]
    times = [(one, others / 10 * user + mine, 0.0) for one, others, mine in zip(busy, cores, own, strict=True)]
    still = {n: thread(0, 0, one.core) for n, one in threads.items()}
    before = reading(0, [(0.0, 0.0, 0.0)] * 2, 0, still)
    after = replace(reading(10, times, sum(ran_s.values()), threads), throttled_ns=(round(throttled * S / 10), 0))
    found = use_between(before, after, (0, 1), CpuUse((0.0, 0.0), CpuTaken())).lost
    assert [found[i].kept for i in range(len(kept))] == pytest.approx(kept, abs=0.1)


def test_what_the_hypervisor_took_is_that_of_a_threads_own_core() -> None:
    """The third may run on both cores; the fourth is no workload thread."""
    threads = {1: thread(1, 4, 0), 2: thread(1, 2, 1, 1), 3: thread(1, 0, number=2), 4: thread(1, 9, 1, number=-1)}
    before = reading(0, [(0.0, 0.0, 0.0)] * 2, 0, {n: thread(0, 0, t.core, t.number) for n, t in threads.items()})
    after = reading(10, [(9.0, 3.0, 4.0), (9.0, 3.0, 0.0)], 3, threads)
    found = use_between(before, after, (0, 1), CpuUse((0.0, 0.0), CpuTaken()))
    assert (found.taken.wait, found.taken.steal_beside) == (40.0, 40.0)
    assert {number: one.stolen for number, one in found.lost.items()} == {0: 40.0, 1: 0.0, 2: 20.0}


def test_the_meter_sees_this_machines_cores() -> None:
    cores = sorted(os.sched_getaffinity(0))
    meter = CpuMeter(cores)
    use = meter.use()
    assert len(use.busy) == len(cores)
    assert all(0 <= percent <= 100 for percent in use.busy)


# A thread with a workload thread's name, that wants the core all the time, and what the meter saw in half a second; of
# throttling, in as many of them as it takes: beside other tests the quota is not used up in each.
DRIVE = """
import ctypes, hashlib, os, sys, threading, time
from ivypy.slave.host.cpu_usage import CpuMeter
core, enough_ns, throttled_ns = int(sys.argv[1]), int(sys.argv[2]), 0
waits = []
def drive():
    os.sched_setaffinity(0, {core})
    ctypes.CDLL(None).prctl(15, b"ivypy-7", 0, 0, 0)
    ready.set()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # runs on without Python's lock
ready = threading.Event()
threading.Thread(target=drive, daemon=True).start()
ready.wait()
meter = CpuMeter(sorted(os.sched_getaffinity(0)))
until = time.monotonic() + 30
while True:
    time.sleep(0.5)
    use = meter.use()
    taken = use.taken
    throttled_ns += taken.throttled_ns
    waits.append(taken.wait)
    if throttled_ns >= enough_ns or time.monotonic() > until: break
print(taken.others_beside, max(waits), throttled_ns, use.lost[7].kept, flush=True)
os._exit(0)
"""


def seen_while_driving(core: int, *before: str, throttled_ns: int = 0) -> tuple[float, float, int, float]:
    """(others beside, wait, throttled_ns, what the thread lost)"""
    words = [*before, sys.executable, "-c", DRIVE, str(core), str(throttled_ns)]
    found = subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout.split()
    return float(found[0]), float(found[1]), int(found[2]), float(found[3])


@pytest.mark.slow
def test_hogs_on_a_threads_core_are_seen_with_the_wait_for_it() -> None:
    core = max(os.sched_getaffinity(0))
    with wanted_core(core, hogs=3):
        others, wait, _, kept = seen_while_driving(core)
    assert others > 40 and wait > 40  # 75 each, if nobody else wants the core or the others
    assert kept > 10  # likewise; less by the part that all others of the machine run in the kernel


@pytest.fixture
def quota() -> Iterator[Path]:
    """A cgroup whose processes get a fifth of a core."""
    v1, v2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup/cgroup.controllers")
    name = f"ivypy-test-{os.getpid()}"
    if (v1 / "cpu.cfs_quota_us").exists() or (v1 / "cpu.shares").exists():
        group, limits = v1 / name, {"cpu.cfs_period_us": "50000", "cpu.cfs_quota_us": "10000"}
    elif v2.exists() and "cpu" in Path("/sys/fs/cgroup/cgroup.subtree_control").read_text().split():
        group, limits = Path("/sys/fs/cgroup") / name, {"cpu.max": "10000 50000"}
    else:
        pytest.skip("this machine lacks a cgroup controller for CPU time")
    try:
        group.mkdir()
        for file, text in limits.items():
            (group / file).write_text(text)
    except OSError as error:
        if group.is_dir():
            group.rmdir()
        pytest.skip(f"this machine lacks CPU quotas for cgroups: {error.strerror}")
    yield group
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            group.rmdir()
            return
        except OSError:  # its last process is not quite gone
            time.sleep(0.01)


def test_a_real_quota_is_seen_as_throttling(quota: Path) -> None:
    enter = f'echo $$ > {quota}/cgroup.procs && exec "$@"'
    core, enough_ns = max(os.sched_getaffinity(0)), 100 * MS
    _, wait, throttled_ns, _ = seen_while_driving(core, "sh", "-c", enter, "sh", throttled_ns=enough_ns)
    assert throttled_ns >= enough_ns
    assert wait > 5  # a held back thread waits: its wait says for how long, throttling is summed over cores


V1 = """\
30 25 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw
31 30 0:27 {shown} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
"""
V2 = "35 25 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


@pytest.mark.parametrize(
    ("cgroup", "mountinfo", "folders"),
    [
        (
            "4:cpu,cpuacct:/a/b\n3:memory:/m\n",
            V1.format(shown="/"),
            ["cpu,cpuacct/a/b", "cpu,cpuacct/a", "cpu,cpuacct"],
        ),
        ("4:cpu,cpuacct:/docker/1\n", V1.format(shown="/docker/1"), ["cpu,cpuacct"]),  # a container's own part
        ("4:cpu,cpuacct:/../x\n", V1.format(shown="/"), ["cpu,cpuacct"]),
        ("0::/user.slice/s1\n", V2, ["user.slice/s1", "user.slice", "."]),
        ("3:memory:/m\n", V1.format(shown="/"), []),
        ("0::/\n", V1.format(shown="/"), []),
    ],
)
def test_the_groups_that_limit_this_process(cgroup: str, mountinfo: str, folders: list[str], tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(cgroup)
    (tmp_path / "proc/self/mountinfo").write_text(mountinfo)
    top = tmp_path / "sys/fs/cgroup"
    assert cgroups.groups_with("cpu", tmp_path) == tuple(top / folder for folder in folders)


def test_throttling_is_read_of_every_group_above(tmp_path: Path) -> None:
    groups = (tmp_path / "a", tmp_path / "b", tmp_path / "none")
    for group, text in zip(groups, ("nr_throttled 3\nthrottled_time 5000\n", "nr_throttled 1\nthrottled_usec 7\n")):  # noqa: B905
        group.mkdir()
        (group / "cpu.stat").write_text(text)
    assert cgroups.throttled_ns(groups) == (5_000, 7_000, 0)


NAP_NS = round(NAP_S * S)


@pytest.mark.parametrize(
    ("nap_ns", "ran_ns", "stall_ns"),
    [
        (NAP_NS, 0, 0),
        (NAP_NS + LEAST_NS - 1, 0, 0),
        (NAP_NS + LEAST_NS, 0, LEAST_NS),
        (NAP_NS + S, 99 * MS, S),
        (NAP_NS + S, 100 * MS, 0),  # others of ours ran: it waited for Python's lock, or for them
    ],
)
def test_a_stall_is_a_late_wake_up_while_nothing_of_ours_ran(nap_ns: int, ran_ns: int, stall_ns: int) -> None:
    assert stall_in(nap_ns, ran_ns) == stall_ns


WATCH = """
import os, sys
from ivypy.slave.host.stall_witness import StallWitness
witness = StallWitness(sorted(os.sched_getaffinity(0)))
import time
before_ns = time.monotonic_ns()
print(flush=True)
sys.stdin.readline()
time.sleep(0.2)
print(witness.take(before_ns).longest_ns, witness.take(time.monotonic_ns()).longest_ns)
"""


def test_a_stopped_process_has_stalled() -> None:
    """A boundary within the stall: it is of the subinterval in which it ended, whenever that is asked for."""
    words = [sys.executable, "-c", WATCH]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.4)
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate("\n", timeout=60)
    until_it, after_it = map(int, out.split())
    assert until_it < 300 * MS
    assert after_it > 300 * MS
