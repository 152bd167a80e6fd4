"""What the block layer says that a device did, sampled beside a run: the I/Os that completed until an instant."""

import threading
import time
from bisect import bisect_right
from pathlib import Path
from typing import Final

EVERY_S: Final = 0.01


class Counted:
    """State, of each device: how many reads had completed when. A context manager; times are UTC seconds by the clock
    of a run that begins within it: the monotonic one from there on, as the machine's may be stepped."""

    def __init__(self, devices: dict[str, str]) -> None:
        """`devices`: by host, the path of a block device."""
        self._stats = {host: Path("/sys/block", Path(device).name, "stat") for host, device in devices.items()}
        self.times: dict[str, list[float]] = {host: [] for host in devices}
        self.reads: dict[str, list[int]] = {host: [] for host in devices}
        self._ahead_s = time.time() - time.monotonic()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def now(self) -> float:
        return time.monotonic() + self._ahead_s

    def __enter__(self) -> "Counted":
        self._ahead_s = time.time() - time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._end.wait(EVERY_S):
            for host, stat in self._stats.items():
                reads = int(stat.read_text().split()[0])
                self.times[host].append(self.now())
                self.reads[host].append(reads)

    def between(self, host: str, start: float, end: float) -> tuple[int, int]:
        """(at least, at most) so many reads completed from `start` to `end`."""
        times, reads = self.times[host], self.reads[host]

        def around(at: float) -> tuple[int, int]:
            place = bisect_right(times, at)
            return reads[max(place - 1, 0)], reads[min(place, len(reads) - 1)]

        (before, after), (last_before, last_after) = around(start), around(end)
        return max(last_before - after, 0), last_after - before
