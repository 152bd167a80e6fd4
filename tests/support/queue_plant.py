"""A queue with exponential servers, simulated I/O by I/O: Poisson arrivals at the rate in force, in order.

Rule: its truth is known by a formula of its own (`response_beyond`), which shares nothing with the simulation. An I/O
belongs to the subinterval in which it completes; response times outlive the subinterval in which a rate changes.
"""

from dataclasses import dataclass, field
from functools import cache
from heapq import heapreplace
from math import exp, factorial, isclose

import numpy as np
from numpy.typing import NDArray

from ivypy.master.control.decision import Decision
from ivypy.master.control.focus import Focus
from ivypy.master.control.observation import Observation
from ivypy.master.stats.metric_sample import MetricSample
from ivypy.master.stats.percentiles import EDGES_NS

from .control_plants import load_of, outstanding

P99 = Focus("overall_response_us_p99", fraction=0.99)
MEAN = Focus("overall_response_us_mean")


def response_beyond(servers: int, service_s: float, iops: float, time_s: float) -> float:
    """The share of I/Os of an M/M/c queue whose response time is longer than `time_s`, by Erlang's C formula."""
    offered = iops * service_s
    tail = offered**servers / factorial(servers) * servers / (servers - offered)
    waits = tail / (sum(offered**k / factorial(k) for k in range(servers)) + tail)
    serve, drain = 1 / service_s, servers / service_s - iops
    if isclose(drain, serve):  # the limit of the quotient
        both = (1 + serve * time_s) * exp(-serve * time_s)
    else:
        both = (drain * exp(-serve * time_s) - serve * exp(-drain * time_s)) / (drain - serve)
    return (1 - waits) * exp(-serve * time_s) + waits * both


@cache
def rate_with(servers: int, service_s: float, fraction: float, time_s: float) -> float:
    """The IOPS at which this fraction of the response times is at most `time_s`, by bisection."""
    low, high = 0.0, servers / service_s
    for _ in range(100):
        middle = (low + high) / 2
        beyond = response_beyond(servers, service_s, middle, time_s)
        low, high = (middle, high) if beyond <= 1 - fraction else (low, middle)
    return low


@dataclass(slots=True)
class QueuePlant:
    """An M/M/c queue behind the one rollup instance `all`."""

    seed: int
    servers: int = 4
    service_s: float = 0.002
    length_s: float = 1.0
    iops: float | None = None  # the rate in force; None is max
    _random: np.random.Generator = field(init=False)
    _free: list[float] = field(init=False)  # when each server has done what it has, a heap
    _ends: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))  # of what has not completed
    _times: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._free = [0.0] * self.servers

    @property
    def capacity(self) -> float:
        return self.servers / self.service_s

    def interval(self, number: int, decision: Decision) -> Observation:
        """Subinterval `number`, with the edits that were decided while it began."""
        for edit in decision.edits:
            self.iops = edit.total_iops
        due, times = self._closed_loop() if self.iops is None else self._paced(self.iops, number * self.length_s)
        load = load_of(due, len(times), 0, len(self._ends), self.length_s)
        samples = {P99: {"all": _histogram(times)}, MEAN: {"all": _mean(times)}}
        return Observation(
            number, number * self.length_s, self.length_s, decision.next_phase, True, False, samples,
            {"all": {"all": load}}, outstanding(load),
        )  # fmt: skip

    def _closed_loop(self) -> tuple[int, NDArray[np.float64]]:
        """At max every server is busy, and there is no response time; nothing of it is left for the next rate."""
        done = int(self._random.poisson(self.capacity * self.length_s))
        return done, np.zeros(done)

    def _paced(self, iops: float, begin_s: float) -> tuple[int, NDArray[np.float64]]:
        due = int(self._random.poisson(iops * self.length_s))
        arrivals = begin_s + np.sort(self._random.random(due)) * self.length_s
        services = self._random.exponential(self.service_s, due)
        free, found = self._free, []
        for arrival, service in zip(arrivals.tolist(), services.tolist(), strict=True):
            first = free[0]
            end = (arrival if arrival > first else first) + service  # max() takes three times as long
            heapreplace(free, end)
            found.append(end)
        ends = np.array(found)
        all_ends, all_times = np.append(self._ends, ends), np.append(self._times, ends - arrivals)
        done = all_ends < begin_s + self.length_s
        self._ends, self._times = all_ends[~done], all_times[~done]
        return due, all_times[done]


def _mean(times_s: NDArray[np.float64]) -> MetricSample:
    """Blank at max, which has no response times."""
    total = float(times_s.sum()) * 1e6
    return MetricSample(total, len(times_s) if total else 0.0)


def _histogram(times_s: NDArray[np.float64]) -> MetricSample:
    if not times_s.any():
        return MetricSample(0.0, 0.0)
    ns = times_s * 1e9
    buckets = np.searchsorted(EDGES_NS, ns, side="right") - 1
    low = int(buckets.min())
    counts = np.bincount(buckets - low).astype(np.uint64)
    return MetricSample(0.0, 0.0, counts, low, int(ns.min()), int(ns.max()))
