"""Plants on a simulated clock: what a storage system answers to a load, with noise whose size and memory are known.

Rule: a plant is a curve (load -> metric without noise), events that change it, and AR(1) noise; it makes the
intervals that control is handed. All randomness comes from the seed. Latencies in microseconds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import exp, factorial, inf, isfinite
from typing import Protocol

import numpy as np

from ivypy.master.control.control_state import ControlState
from ivypy.master.control.decision import Decision, Measured
from ivypy.master.control.focus import Focus
from ivypy.master.control.observation import InstanceLoad, Observation
from ivypy.master.rollup.disturbance import Disturbance
from ivypy.master.rollup.overload import Outstanding
from ivypy.master.stats.metric_sample import MetricSample, value_of

LATENCY = Focus("overall_response_us_mean")
IOPS = Focus("overall_iops")
LENGTH_S = 5.0

Curve = Callable[[float], float]  # total IOPS -> microseconds; inf where the load cannot be served


def mmc(servers: int, service_us: float) -> Curve:
    """Mean response time of an M/M/c queue, by Erlang's C formula."""

    @cache
    def response(iops: float) -> float:
        offered = iops * service_us * 1e-6
        if offered >= servers:
            return inf
        terms = sum(offered**k / factorial(k) for k in range(servers))
        tail = offered**servers / factorial(servers) * servers / (servers - offered)
        return service_us * (1 + tail / (terms + tail) / (servers - offered))

    return response


def linear(base_us: float, us_per_iops: float) -> Curve:
    return lambda iops: base_us + us_per_iops * iops


def flat_then_wall(base_us: float, wall_iops: float) -> Curve:
    """All but flat up to a sharp knee: 1 % of rise over the flat part, ten times the base at the wall."""
    return lambda iops: (
        base_us * (1 + 0.01 * iops / wall_iops + 9 * (iops / wall_iops) ** 40) if iops < 1.1 * wall_iops else inf
    )


def load_for(curve: Curve, target: float, high: float) -> float:
    """The load at which a monotone curve meets `target`, by bisection."""
    low = 0.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if curve(middle) <= target else (low, middle)
    return low


def outstanding(load: InstanceLoad) -> Outstanding:
    """Of the one workload instance that has all of a load."""
    columns = load.due, load.growth, load.in_flight, load.backlog
    due, growth, in_flight, backlog = (np.array([column]) for column in columns)
    return Outstanding(due, growth, 0 * due, in_flight, backlog, 0 * due, np.ones(1, bool))


def load_of(due: int, completed: int, backlog: int, in_flight: int = 0, length_s: float = 5.0) -> InstanceLoad:
    """The load of a subinterval of this length, whose rate is what completed in it."""
    return InstanceLoad(due, completed, backlog, completed / length_s, length_s, in_flight)


@dataclass(slots=True)
class Noise:
    """Multiplicative AR(1) noise, exp(sd * z): its mean is near 1 and it is never negative."""

    sd: float
    rho: float
    random: np.random.Generator
    z: float | None = None

    def next(self) -> float:
        shock = float(self.random.standard_normal())
        self.z = shock if self.z is None else self.rho * self.z + (1 - self.rho**2) ** 0.5 * shock
        return exp(self.sd * self.z - self.sd**2 / 2)


class Simulated(Protocol):
    """What `simulate` drives."""

    iops: float | None

    def interval(self, number: int, decision: Decision) -> Observation: ...


@dataclass(slots=True)
class Plant:
    """One simulated system behind one rollup instance, `all`."""

    curve: Curve
    capacity: float  # IOPS at max
    noise: Noise
    factor: Callable[[int], float] = field(default=lambda number: 1.0)  # what multiplies the latency in subinterval k
    memory: float = 0.0  # hysteresis: this share of the last subinterval's latency stays
    iops: float | None = None  # the load in force; None is max
    backlog: float = 0.0  # outstanding beyond what a steady load has in flight
    tags: float = 0.0  # so much of it waits in flight
    capacity_at: Callable[[int], float] | None = None  # IOPS at max in subinterval k, where that changes
    drop_after_s: float = inf  # what would wait for longer is discarded
    disturbance: Callable[[int], Disturbance | None] = lambda number: None  # of the generator, in subinterval k
    _last: float | None = None
    _outstanding: int = 0
    _chance: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def interval(self, number: int, decision: Decision) -> Observation:
        """Subinterval `number`, with the edits that were decided while it began."""
        discarded = 0.0
        for edit in decision.edits:
            if edit.total_iops != self.iops:  # what is not yet in flight is of a load that nobody asks for any more
                discarded += max(self.backlog - self.tags, 0.0)
                self.backlog = min(self.backlog, self.tags)
            self.iops = edit.total_iops
        if self.capacity_at is not None:
            self.capacity = self.capacity_at(number)
        offered = self.capacity if self.iops is None else self.iops
        served = min(offered + self.backlog / LENGTH_S, self.capacity)
        self.backlog = max(self.backlog + (offered - served) * LENGTH_S, 0.0)
        expired = max(self.backlog - self.tags - self.drop_after_s * self.capacity, 0.0)
        self.backlog -= expired
        level = self.curve(min(served, 0.999 * self.capacity)) * self.factor(number)
        latency = level + self.backlog / self.capacity * 1e6  # what waits, waits
        latency = min(latency, self.curve(0.0) + self.drop_after_s * 1e6)  # of what was not discarded
        if self._last is not None and self.memory:
            latency += self.memory * (self._last - latency)
        self._last = latency
        shown = latency * self.noise.next()
        ios = max(served * LENGTH_S, 1.0)
        samples = {
            LATENCY: {"all": MetricSample(shown * ios, ios)},
            IOPS: {"all": MetricSample(served * LENGTH_S, LENGTH_S)},
        }
        load = self._load(offered, served * level * 1e-6 if isfinite(level) else 0.0, int(discarded), int(expired))
        return Observation(
            number, number * LENGTH_S, LENGTH_S, decision.next_phase, True, False, samples, {"all": {"all": load}},
            outstanding(load), self.disturbance(number),
        )  # fmt: skip

    def _load(self, offered: float, steady: float, discarded: int, expired: int) -> InstanceLoad:
        """With what a steady load has in flight, by Little's law and as a Poisson number."""
        waiting = min(self.backlog, self.tags)
        backlog, in_flight = int(self.backlog - waiting), int(waiting) + int(self._chance.poisson(steady))
        due, before = int(offered * LENGTH_S), self._outstanding
        self._outstanding = backlog + in_flight
        completed = due + before - self._outstanding - discarded - expired
        return replace(load_of(due, completed, backlog, in_flight, LENGTH_S), failed=discarded, expired=expired)


@dataclass(slots=True)
class Trace:
    """A whole simulated step: every decision, what each subinterval showed, and the load that was in force in it.

    `states`: after each subinterval.
    """

    decisions: list[Decision]
    loads: list[float | None]
    state: ControlState
    seen: list[Observation] = field(default_factory=list)
    states: list[ControlState] = field(default_factory=list)

    @property
    def subintervals(self) -> int:
        return len(self.loads)


def simulate(plant: Simulated, state: ControlState, most: int) -> Trace:
    """Drive `plant` by `state` until it is done, or `most` subintervals have passed."""
    decision = state.opening()
    trace = Trace([decision], [], state)
    seen = trace.seen
    for number in range(most):
        seen.append(plant.interval(number, decision))
        state, decision = state.after(seen[-1])
        trace.decisions.append(checked(decision, seen))
        trace.loads.append(plant.iops)
        trace.states.append(state)
        if decision.done:
            break
    trace.state = state
    return trace


def checked(decision: Decision, seen: Sequence[Observation]) -> Decision:
    """A decision as the session keeps it: each measurement is summed, and asked what it has to meet."""
    return replace(decision, measured=tuple(asked(one, seen) for one in decision.measured))


def asked(measured: Measured, seen: Sequence[Observation]) -> Measured:
    """A measurement with what its checks find, if it is one."""
    return measured.checked(_values(measured, seen), {}, {}) if measured.first <= measured.last else measured


def _values(measured: Measured, seen: Sequence[Observation]) -> dict[Focus, dict[str, float | None]]:
    numbers = {*range(measured.first, measured.last + 1)} - {*measured.set_aside}
    window = [one for one in seen if one.number in numbers]
    return {
        check.focus: {
            name: value_of([one.samples[check.focus][name] for one in window], check.focus.fraction)
            for name in window[-1].samples[check.focus]
        }
        for check in measured.checks
    }


def noise(seed: int, sd: float, rho: float) -> Noise:
    return Noise(sd, rho, np.random.default_rng(seed))
