"""How busy each core was between two readings.

Rule: the kernel counts in ticks of 10 ms, so a span without a single tick has no percentage: the last one stands.
Waiting for I/O is not busy; time stolen by a hypervisor is, since the core could do nothing else in it.
"""

from collections.abc import Mapping, Sequence

import psutil

from .kernel_files import cpu_list, first_line

Ticks = tuple[float, float]  # seconds since boot: (busy, all)


class CpuMeter:
    """Keeps the last reading; `busy()` is what happened since."""

    def __init__(self, cores: Sequence[int]) -> None:
        self._cores = tuple(cores)
        self._last = read_times()
        self._percent = [0.0] * len(self._cores)

    def busy(self) -> tuple[float, ...]:
        """Busy percent of each core since the last call, in the order of `cores`."""
        now = read_times()
        for i, core in enumerate(self._cores):
            if core in now and core in self._last:
                self._percent[i] = percent(self._last[core], now[core], self._percent[i])
        self._last = now
        return tuple(self._percent)


def percent(before: Ticks, after: Ticks, otherwise: float) -> float:
    """Busy percent between two readings, 0 to 100; `otherwise` where no tick lies between them."""
    whole = after[1] - before[1]
    if whole <= 0:
        return otherwise
    return round(min(max(100 * (after[0] - before[0]) / whole, 0.0), 100.0), 2)


def read_times() -> Mapping[int, Ticks]:
    """Busy and whole time of each core that is online, by its number."""
    times = psutil.cpu_times(percpu=True)
    online = cpu_list(first_line("/sys/devices/system/cpu/online"))
    if len(online) != len(times):  # a container that hides cores: then they are numbered from 0
        online = tuple(range(len(times)))
    return {core: ticks(t._asdict()) for core, t in zip(online, times, strict=True)}


def ticks(times: Mapping[str, float]) -> Ticks:
    """(busy, all) from psutil's fields. Guests' time stands twice there: in `user` and in `guest`."""
    whole = sum(times.values()) - times.get("guest", 0.0) - times.get("guest_nice", 0.0)
    return whole - times["idle"] - times.get("iowait", 0.0), whole
