"""How busy each core was between two readings, and what kept the slave's threads from running.

Rule: the kernel counts cores in ticks of 10 ms, so a span without a single tick has no percentage: the last one stands.
Waiting for I/O is not busy; time stolen by a hypervisor is, since the core could do nothing else in it. Threads' times
are exact (schedstat). What others used of a core is what remains of its busy time: other processes, but also
the kernel's own threads and interrupts, which no counter tells from them.
"""

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ...protocol.older_python import zip_strict
from ...protocol.payload import CpuTaken
from ..devices.block_devices import ROOT
from ..kernel_files import first_line
from .cgroups import groups_with, throttled_ns

TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
WORKLOAD_THREAD: Final = re.compile(r"ivypy-(\d+)")  # the name of one, with its number (thread/worker.c)


@dataclass(frozen=True)
class CoreTimes:
    """Of one core, seconds since boot."""

    busy: float  # stolen time included
    user: float  # of that, in user mode
    steal: float
    whole: float


@dataclass(frozen=True)
class ThreadTimes:
    """Of one thread of the slave, so far."""

    ran_ns: int
    waited_ns: int  # for a core, in a run queue
    core: int = -1  # the only one that it may run on; -1: it has a choice
    number: int = -1  # of a workload thread; -1: it is none


@dataclass(frozen=True)
class CpuReading:
    """The kernel's counters at one instant."""

    at_ns: int
    cores: Mapping[int, CoreTimes]
    ran_ns: int  # by all threads of the slave, ended ones included
    user_ns: int  # of that, in user mode
    threads: Mapping[int, ThreadTimes]
    throttled_ns: tuple[int, ...]  # of each cgroup from the slave's own up, summed over cores


@dataclass(frozen=True)
class LostTime:
    """For which others kept a workload thread from running, percent."""

    kept: float = 0.0  # of its wait for a core, what other processes or a quota may have caused
    stolen: float = 0.0  # by the hypervisor, of its core


@dataclass(frozen=True)
class CpuUse:
    """Between two readings."""

    busy: tuple[float, ...]  # percent of each core
    taken: CpuTaken
    lost: Mapping[int, LostTime] = field(default_factory=dict)  # by the workload thread's number


class CpuMeter:
    """Keeps the last reading; `use()` is what happened since."""

    def __init__(self, cores: Sequence[int]) -> None:
        self._cores = tuple(cores)
        self._groups = groups_with("cpu")
        self._names: dict[int, tuple[int, int]] = {}
        self._last = self._read()
        self._use = CpuUse((0.0,) * len(self._cores), CpuTaken())

    def use(self) -> CpuUse:
        """The use since the last call; per core in the order of `cores`."""
        now = self._read()
        self._use = use_between(self._last, now, self._cores, self._use)
        self._last = now
        return self._use

    def _read(self) -> CpuReading:
        return CpuReading(
            at_ns=time.monotonic_ns(),
            cores=core_times(Path("/proc/stat").read_text()),
            ran_ns=time.process_time_ns(),
            user_ns=round(os.times().user * 1e9),
            threads=thread_times(self._names),
            throttled_ns=throttled_ns(self._groups),
        )


def use_between(before: CpuReading, after: CpuReading, cores: Sequence[int], last: CpuUse) -> CpuUse:
    """The use of the `cores` between two readings; `last`: what stands for what has no tick."""
    if after.at_ns <= before.at_ns:
        return last
    busy = tuple(
        percent(_of(before, core).busy, _of(after, core).busy, _whole(before, after, core), otherwise)
        for core, otherwise in zip_strict(cores, last.busy)
    )
    steal = [percent(_of(before, c).steal, _of(after, c).steal, _whole(before, after, c), 0.0) for c in cores]
    elapsed_ns = after.at_ns - before.at_ns
    own_ns, waits, beside = _own(before, after, cores)
    user = [percent(_of(before, c).user, _of(after, c).user, _whole(before, after, c), 0.0) for c in cores]
    own_user = 100 * (after.user_ns - before.user_ns) / elapsed_ns / max(len(cores), 1)
    others = _others(busy, steal, [100 * ns / elapsed_ns for ns in own_ns], after, before)
    others_user = round(min(max(_mean(user) - own_user, 0.0), _mean(others)), 2)
    # A group and one above it may be held back at the same time: the longer of them counts.
    throttled_ns = max((now - then for then, now in zip_strict(before.throttled_ns, after.throttled_ns)), default=0)
    processes = [one * others_user / _mean(others) if _mean(others) else 0.0 for one in others]
    quota = 100 * throttled_ns / elapsed_ns
    return CpuUse(
        busy,
        CpuTaken(
            others=_mean(others),
            others_user=others_user,
            others_beside=max((one for one, near in zip_strict(others, beside) if near), default=0.0),
            steal=_mean(steal),
            steal_beside=max((one for one, near in zip_strict(steal, beside) if near), default=0.0),
            busiest_beside=max((one for one, near in zip_strict(busy, beside) if near), default=100.0),
            wait=round(max((one.percent for one in waits), default=0.0), 2),
            throttled_ns=throttled_ns,
        ),
        {
            one.number: LostTime(min(one.percent, _near(one, processes, cores) + quota), _near(one, steal, cores))
            for one in waits
        },
    )


@dataclass(frozen=True)
class _Wait:
    """Of a workload thread, for a core."""

    number: int
    percent: float
    core: int  # the only one that it may run on; -1: it has a choice


def _near(wait: _Wait, of_cores: Sequence[float], cores: Sequence[int]) -> float:
    """Of the thread's own core; of one that has a choice the mean, since all of them are what it and its like have."""
    return of_cores[cores.index(wait.core)] if wait.core in cores else sum(of_cores) / max(len(of_cores), 1)


def _own(before: CpuReading, after: CpuReading, cores: Sequence[int]) -> tuple[list[int], list[_Wait], list[int]]:
    """(what threads that are pinned to each core ran, in nanoseconds; each workload thread's wait; how many workload
    threads may run on each core)."""
    elapsed_ns = after.at_ns - before.at_ns
    own = dict.fromkeys(cores, 0)
    near = dict.fromkeys(cores, 0)
    waits = []
    for thread, now in after.threads.items():
        then = before.threads.get(thread, ThreadTimes(0, 0))
        if now.core in own:
            own[now.core] += max(now.ran_ns - then.ran_ns, 0)
        if now.number >= 0:
            percent_of_it = min(max(100 * (now.waited_ns - then.waited_ns) / elapsed_ns, 0.0), 100.0)
            waits.append(_Wait(now.number, percent_of_it, now.core))
            for core in (now.core,) if now.core in own else cores:
                near[core] += 1
    return list(own.values()), waits, list(near.values())


def _others(
    busy: Sequence[float], steal: Sequence[float], pinned: Sequence[float], after: CpuReading, before: CpuReading
) -> list[float]:
    """Percent of each core that was neither stolen nor the slave's.

    What the slave's threads without a core of their own ran is taken from all cores in proportion to what remains.
    """
    left = [max(b - s - own, 0.0) for b, s, own in zip_strict(busy, steal, pinned)]
    ran = 100 * max(after.ran_ns - before.ran_ns, 0) / (after.at_ns - before.at_ns)
    free = max(ran - sum(pinned), 0.0)
    part = max(1 - free / sum(left), 0.0) if sum(left) else 0.0
    return [round(min(one * part, 100.0), 2) for one in left]


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 2) if values else 0.0


def _of(reading: CpuReading, core: int) -> CoreTimes:
    return reading.cores.get(core, CoreTimes(0.0, 0.0, 0.0, 0.0))


def _whole(before: CpuReading, after: CpuReading, core: int) -> float:
    """Seconds between two readings by a core's own count; 0 where one of them lacks the core."""
    return _of(after, core).whole - _of(before, core).whole if {core} <= before.cores.keys() & after.cores.keys() else 0


def percent(before: float, after: float, whole: float, otherwise: float) -> float:
    """Percent of `whole` between two readings, 0 to 100; `otherwise` where no tick lies between them."""
    return round(min(max(100 * (after - before) / whole, 0.0), 100.0), 2) if whole > 0 else otherwise


def core_times(text: str) -> dict[int, CoreTimes]:
    """By the core's number, from /proc/stat: `cpu3 user nice system idle iowait irq softirq steal guest guest_nice`.

    Guests' time stands twice there: also in `user` and `nice`. Old kernels and containers have fewer fields.
    """
    by_core = {}
    for line in text.splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit():
            times = [int(field) / TICKS_PER_S for field in fields[:8]]
            idle, steal = sum(times[3:5]), sum(times[7:8])
            by_core[int(name[3:])] = CoreTimes(sum(times) - idle, sum(times[:2]), steal, sum(times))
    return by_core


def thread_times(names: dict[int, tuple[int, int]], root: Path = ROOT) -> dict[int, ThreadTimes]:
    """This process's threads, by id. `names` keeps what does not change: (core, number of the workload thread)."""
    folder = root / "proc/self/task"
    by_thread = {}
    for thread in _numbers(folder):
        fields = first_line(f"{folder}/{thread}/schedstat").split()
        if len(fields) < 2:
            continue  # it has ended, or the kernel keeps no such account
        if thread not in names:
            named = WORKLOAD_THREAD.fullmatch(first_line(f"{folder}/{thread}/comm").strip())
            names[thread] = _only_core(thread), int(named[1]) if named else -1
        by_thread[thread] = ThreadTimes(int(fields[0]), int(fields[1]), *names[thread])
    return by_thread


def _numbers(folder: Path) -> list[int]:
    try:
        return [int(name) for name in os.listdir(folder)]
    except OSError:
        return []


def _only_core(thread: int, affinity: Callable[[int], set[int]] = os.sched_getaffinity) -> int:
    try:
        cores = affinity(thread)
    except OSError:
        return -1
    return next(iter(cores)) if len(cores) == 1 else -1
