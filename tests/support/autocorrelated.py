"""Simulated steps whose subintervals depend on each other, in runs that differ from each other."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ivypy.master.stats.metric_sample import MetricSample
from ivypy.master.stats.percentiles import EDGES_NS

Floats = NDArray[np.float64]
LENGTH_S = 1.0
_SIGMA = 0.4  # of the logarithm of latencies within a subinterval


@dataclass(frozen=True)
class Storage:
    """What its runs have in common. Latencies are log-normal around a level that wanders from subinterval to
    subinterval, AR(1) with `rho`; each run has a level of its own besides."""

    median_us: float = 200.0
    iops: float = 1000.0
    rho: float = 0.8
    within: float = 0.03  # standard deviation of the logarithm of the subintervals' levels
    between: float = 0.01  # and of the runs'
    subintervals: int = 60

    def levels(self, random: np.random.Generator) -> Floats:
        """Logarithms of the subintervals' levels, in one run."""
        shocks = random.standard_normal(self.subintervals)
        shocks[1:] *= np.sqrt(1 - self.rho**2)
        wandering = np.empty_like(shocks)
        last = 0.0
        for k, shock in enumerate(shocks):
            last = wandering[k] = self.rho * last + shock
        return np.asarray(self.between * random.standard_normal() + self.within * wandering)

    def run(self, random: np.random.Generator) -> "SimulatedStep":
        levels = self.levels(random)
        iops = random.poisson(self.iops * LENGTH_S, self.subintervals)
        return SimulatedStep(iops, [self._histogram(level, n, random) for level, n in zip(levels, iops, strict=True)])

    def _histogram(self, level: float, ios: int, random: np.random.Generator) -> Floats:
        ns = self.median_us * 1e3 * np.exp(level + _SIGMA * random.standard_normal(ios))
        buckets = np.searchsorted(EDGES_NS, np.floor(ns), side="right") - 1
        return np.bincount(buckets, minlength=len(EDGES_NS) - 1).astype(np.float64)


@dataclass(frozen=True)
class SimulatedStep:
    """A subinterval each: I/Os, and their histogram."""

    ios: NDArray[np.int64]
    histograms: list[Floats]

    def iops(self) -> list[MetricSample]:
        return [MetricSample(float(n), LENGTH_S) for n in self.ios]

    def mean(self) -> list[MetricSample]:
        middles = (EDGES_NS[:-1] + EDGES_NS[1:]) / 2e3
        return [MetricSample(float(one @ middles), float(one.sum())) for one in self.histograms]

    def histogram(self) -> list[MetricSample]:
        found = []
        for one in self.histograms:
            used = np.flatnonzero(one)
            low, end = int(used[0]), int(used[-1]) + 1
            counts = one[low:end].astype(np.uint64)
            found.append(MetricSample(0.0, 0.0, counts, low, int(EDGES_NS[low]), int(EDGES_NS[end]) - 1))
        return found
