"""Runs to look at: simulated hosts with latencies as real storage has them, and all that a page shows."""

import asyncio
from array import array
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ivypy.master.live.reports import StepBegins
from ivypy.master.run.session.run import Run
from ivypy.master.stats.percentiles import EDGES_NS
from ivypy.protocol import messages as m
from ivypy.protocol.counters import LATENESS, SERIES, Moment
from ivypy.protocol.parameters import Parameters
from ivypy.protocol.payload import Array, ArrayType
from tests.support.simulated.array import OF_PLAN, SimulatedArray
from tests.support.simulated.plants import noisy, queue
from tests.support.simulated.runs import SimulatedRun, stage
from tests.support.simulated.slave import Faults, Service, SimulatedSlave

SPREAD = 0.35  # standard deviation of a latency's logarithm
STALL_FACTOR = 30.0  # of the service times in a storage's stall
STALLED = frozenset((12, 13))  # subintervals
MARKUP = "<img src=x onerror=alert(1)>"  # a name that must stay text

TOUR = f"""\
name: tour
hosts: [lab01, lab02, lab03, lab04]
engine: {{ backend: "null" }}
luns:
  create: {{ path: "/x/{{}}", size: 1GiB, count: 2 }}
attributes:
  - {{ match: {{ path: /x/0 }}, set: {{ port: "1A" }} }}
  - {{ match: {{ path: /x/1 }}, set: {{ port: "{MARKUP}" }} }}
workloads:
  oltp: {{ blocksize: 8KiB, fraction_read: 75%, maxtags: 8, iops: max }}
rollups: [ host, port ]
defaults: {{ subinterval: 1s, warmup: 3s, measure: 20s, cooldown: 3s }}
steps:
  - go: {{ name: max, measure: 12s }}
  - edit: {{ rollup: all=all, set: {{ total_iops: 60% of step max }} }}
  - go: {{ name: hold, measure: 20s, slo: {{ metric: overall_response_us_p99, at_most: 1ms }} }}
  - go:
      name: climb
      measure: 5s
      staircase: {{ start: 600, step: 50% }}
      slo: {{ metric: overall_service_us_p99, at_most: 5ms }}
  - go:
      name: knee
      find: {{ metric: overall_response_us_p99, target: 3ms, resolution: 15%, probes: 9, longest_probe: 15 }}
"""
HELD = """\
name: held
hosts: [lab01, lab02]
engine: { backend: "null" }
luns:
  create: { path: "/x/{}", size: 1GiB, count: 1 }
workloads:
  oltp: { blocksize: 8KiB, fraction_read: 75%, maxtags: 8, iops: 1000 }
rollups: [ host ]
by_address: 20
defaults: { subinterval: 1s, warmup: 3s, measure: 20s }
steps:
  - go: { name: accuracy, measure: { metric: overall_service_us_mean, accuracy: 5%, min: 10s, timeout: 40s } }
  - go:
      name: pid
      measure: 10s
      control: { pid: { metric: overall_response_us_p99, target: 1.5ms, low_iops: 1000, high_iops: 3600 } }
  - go: { name: steady, steady: { criterion: iops, limit: 5%, window: 10s, timeout: 5m } }
  - go: { name: day, measure: 8s, profile: { ramp: [500, 1500, 500] } }
  - go: { name: again, warmup: 0s, measure: 2s, rounds: {} }
"""


class ScatteringSlave(SimulatedSlave):
    """Its latencies are log-normal, where those of the simulated slave are all the same in a subinterval. In those of
    `stalled`, every twentieth waits."""

    def __init__(self, name: str, seed: int, stalled: Collection[int] = STALLED, **more: Any) -> None:
        super().__init__(name, **more)
        self.stalled = stalled
        self.faults.lateness_ns = 0  # else the I/Os that were late would have to be among those that there are
        self.random = np.random.default_rng(seed)

    def scattered(self, subinterval: int, ns: int, count: int) -> NDArray[np.int64]:
        """Latencies of so many I/Os."""
        factors = np.exp(SPREAD * self.random.standard_normal(count))
        if subinterval in self.stalled:
            factors[::20] *= STALL_FACTOR
        latencies: NDArray[np.int64] = np.rint(ns * factors).astype(np.int64)
        return latencies

    def result(self, *words: Any) -> m.Result:
        said = super().result(*words)
        moments = array("Q", said.moments.data)
        spans = array("I", said.spans.data)
        buckets = array("Q")
        for at in range(len(spans) // 2):
            count, size, _, _, _, ns, _ = moments[at * len(Moment) : (at + 1) * len(Moment)]
            if not count:
                continue
            if at % SERIES == LATENESS:
                buckets.append(count)
                continue
            values = self.scattered(said.subinterval, ns, count)
            places = np.searchsorted(EDGES_NS, values, side="right") - 1
            low = int(places.min())
            own = np.bincount(places - low)
            squares = sum_of_squares(values)
            moments[at * len(Moment) : (at + 1) * len(Moment)] = array(
                "Q",
                [count, size, int(values.sum()), squares % 2**64, squares >> 64, int(values.min()), int(values.max())],
            )
            spans[2 * at : 2 * at + 2] = array("I", [low, len(own)])
            buckets.extend(own.tolist())
        return replace(
            said,
            moments=Array(ArrayType.U64, moments.tobytes()),
            spans=Array(ArrayType.U32, spans.tobytes()),
            buckets=Array(ArrayType.U64, buckets.tobytes()),
        )


def lun(capacity: float, service_ns: int, seed: int) -> Service:
    """A queue with noise, which never does more than it is asked for."""
    noise = noisy(queue(capacity, service_ns), 0.02, seed)

    def plant(offered: float, parameters: Parameters) -> tuple[float, int]:
        done, ns = noise(offered, parameters)
        return min(done, offered), ns

    return plant


def sum_of_squares(values: NDArray[np.int64]) -> int:
    """Exactly, for values below 2**31, whose sum may need more than 64 bits."""
    squares = values * values
    return (int((squares >> 32).sum()) << 32) + int((squares & 0xFFFFFFFF).sum())


async def begun(staged: SimulatedRun, step: str) -> None:
    """Until a step has begun. Raises AssertionError where the run ends before."""
    while step not in [one.name for one in staged.eyes.seen if isinstance(one, StepBegins)]:
        assert staged.code is None, staged.eyes.event_lines()
        await asyncio.sleep(1.0)


def tour(root: Path, odd: str = MARKUP, seed: int = 0) -> SimulatedRun:
    """A measure to an accuracy, a paced step with an edit, a mark, a stall, a lost host and a missed threshold, a
    staircase and a search. Four hosts, of which the last is slower. `odd`: the name of a port, and in the mark."""
    hosts = {}
    for place, name in enumerate(("lab01", "lab02", "lab03", "lab04")):
        plant = lun(500.0, 700_000 if place == 3 else 300_000, seed=seed + place)
        faults = Faults(die_at=24) if place == 2 else None
        hosts[name] = ScatteringSlave(name, seed=seed + place, plant=plant, faults=faults)

    async def visit(run: Run, staged: SimulatedRun) -> None:
        await begun(staged, "hold")
        await asyncio.sleep(6.0)
        run.api.mark(f"fan pulled {odd}", "me")
        await asyncio.sleep(3.0)
        await run.api.edit(["all=all", "total_iops=2.8k"], False, "me")

    return stage(root, visit, TOUR.replace(MARKUP, odd), hosts)


def held(root: Path) -> SimulatedRun:
    """Feedback control, a steady state, a rate that changes, and rounds."""
    hosts = {
        name: ScatteringSlave(name, seed=place, plant=queue(2000.0, 300_000))
        for place, name in enumerate(("lab01", "lab02"))
    }

    async def visit(run: Run, staged: SimulatedRun) -> None:
        return None

    return stage(root, visit, HELD, hosts)


ARRAY = f"""\
name: array
hosts: [lab01, lab02]
engine: {{ backend: "null" }}
{OF_PLAN}luns:
  create: {{ path: "/x/{{}}", size: 1GiB, count: 2 }}
workloads:
  oltp: {{ blocksize: 8KiB, fraction_read: 75%, maxtags: 8, iops: 500 }}
rollups: [ host, pg ]
defaults: {{ subinterval: 1s, warmup: 2s, measure: 10s }}
steps:
  - go: {{ name: hold, measure: 20s }}
  - go:
      name: climb
      staircase: {{ start: 1000, step: 30% }}
      slo: {{ metric: overall_service_us_p99, at_most: 20ms }}
"""
DECLINED = (6, 7, 8)  # gathers of the first step; its subintervals are one less


def gathered(root: Path) -> SimulatedRun:
    """A paced step with a gap in what the array says, and a staircase in which its processor 0 saturates."""
    hosts = {
        name: ScatteringSlave(name, seed=place, plant=lun(1300.0, 300_000, seed=place))
        for place, name in enumerate(("lab01", "lab02"))
    }
    connector = SimulatedArray(hosts, 5000.0, DECLINED)

    async def visit(run: Run, staged: SimulatedRun) -> None:
        return None

    return stage(root, visit, ARRAY, hosts, connector.launch)
