"""Control on simulated plants: `python -m tests.bench.control [--seeds N] [SECTION ...]` prints one table a section.

Sections: measure, pid, find, steady. Every number is a function of the seeds FIRST .. FIRST + N - 1 and nothing else.
Control's constants were chosen by runs of small seeds, so these tables are of runs that nothing was fitted to. Below
each table stands what is promised, and whether it is so.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from math import exp, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ivypy.master.control.choices import Rule
from ivypy.master.control.criteria import Criterion
from ivypy.master.control.decision import Decision
from ivypy.master.control.measure import Measure
from ivypy.master.control.observation import Phase
from ivypy.master.control.pid import pid
from ivypy.master.control.pid_loop import Range
from ivypy.master.control.search import Find
from ivypy.master.control.steady import Steady
from ivypy.master.control.steer import Steer
from tests.bench.parts.lockstep import measured_together, steady_together
from tests.support.control_plants import (
    LATENCY,
    LENGTH_S,
    Curve,
    Plant,
    flat_then_wall,
    linear,
    load_for,
    mmc,
    noise,
    simulate,
)
from tests.support.control_rivals import IvyPid, half_width, ivy_measure
from tests.support.control_specs import RULES, TOLERANCE, a_criterion, find_spec, measure_spec, steady_spec

FIRST = 1_000_000  # the first seed
TOGETHER = 250  # seeds that one process takes at once

Table = Iterator[str]


@dataclass(frozen=True, slots=True)
class Runs:
    """Maps functions over the seeds."""

    pool: ProcessPoolExecutor
    seeds: range

    def each(self, one: Callable[[int], Any]) -> list[Any]:
        return list(self.pool.map(one, self.seeds, chunksize=max(len(self.seeds) // 16, 1)))

    def together(self, many: Callable[[Sequence[int]], list[Any]]) -> list[Any]:
        parts = [self.seeds[place : place + TOGETHER] for place in range(0, len(self.seeds), TOGETHER)]
        return [one for part in self.pool.map(many, parts) for one in part]


def promise(text: str, worst: float, met: bool) -> str:
    return f"  promised: {text}: {'met' if met else 'MISSED'}, {worst:.1%} at worst"


STEP, STEP_AT = 1.5, 12  # how much slower, from which subinterval on


@dataclass(frozen=True, slots=True)
class Subject:
    """A plant with a target on its curve."""

    name: str
    curve: Curve
    capacity: float
    target: float
    memory: float = 0.0
    brown_out: bool = False  # twice as slow for a while in the middle
    step: bool = False  # half as slow again, from early on and for good

    @property
    def truth(self) -> float:
        return load_for(self.curve, self.target / (STEP if self.step else 1.0), self.top)

    @property
    def top(self) -> float:
        return 0.98 * self.capacity

    @property
    def ends(self) -> Range:
        low = 0.02 * self.capacity
        return Range(low, self.top, self.curve(low), self.curve(self.top))

    def plant(self, seed: int, sd: float, rho: float) -> Plant:
        out = range(30, 60 if self.brown_out else 30)

        def factor(number: int) -> float:
            return 2.0 if number in out else STEP if self.step and number >= STEP_AT else 1.0

        return Plant(self.curve, self.capacity, noise(seed, sd, rho), factor, self.memory)


def _between(curve: Curve, capacity: float, share: float) -> float:
    """The metric at `share` of the way from 2 % to 98 % of capacity, in proportion."""
    low, high = curve(0.02 * capacity), curve(0.98 * capacity)
    return float(low * (high / low) ** share)


CURVES: dict[str, tuple[Curve, float]] = {
    "M/M/1": (mmc(1, 1000), 1000),
    "M/M/4": (mmc(4, 1000), 4000),
    "M/M/64": (mmc(64, 1000), 64000),
    "linear": (linear(10, 0.2), 8000),
    "flat, wall": (flat_then_wall(500, 10000), 10400),
}
SUBJECTS = [
    Subject(f"{name} {share:.0%}", curve, capacity, _between(curve, capacity, share))
    for name, (curve, capacity) in CURVES.items()
    for share in (0.4, 0.75)
]
TROUBLED = [
    Subject("M/M/4, hysteresis", *CURVES["M/M/4"], _between(*CURVES["M/M/4"], 0.5), memory=0.5),
    Subject("M/M/4, brown-out", *CURVES["M/M/4"], _between(*CURVES["M/M/4"], 0.5), brown_out=True),
    Subject("M/M/4, step change", *CURVES["M/M/4"], _between(*CURVES["M/M/4"], 0.5), step=True),
]

BY_NAME = {subject.name: subject for subject in [*SUBJECTS, *TROUBLED]}  # curves do not travel between processes


def quantiles(numbers: Sequence[float]) -> str:
    """Median and p90; a dash where it is not finite."""
    return " / ".join("-" if q == inf else f"{q:.0f}" for q in np.quantile(numbers, [0.5, 0.9], method="higher"))


# Measure: a level of 1,000 with 5 % noise, to 2 %.

GOAL = measure_spec(LATENCY, timeout_s=1e9)
LONGEST = 3000  # subintervals
SHAPES: dict[str, Callable[[int], float]] = {
    "level": lambda number: 1.0,
    "warm-up": lambda number: 1 + 0.5 * exp(-number / 6),
    "brown-out": lambda number: 1.15 if 10 <= number < 20 else 1.0,
}
Window = tuple[int, bool, bool, bool]  # its length, its interval covers, it is within 2 %, something was dropped


def measured(rho: float, kind: str, seed: int) -> Window:
    """One run, by the judge itself."""
    plant = Plant(lambda iops: 1000.0, 1e4, noise(seed, 0.05, rho), SHAPES[kind], iops=1000.0)
    trace = simulate(plant, Measure(GOAL, warmup=1), LONGEST)
    (window,) = trace.decisions[-1].measured
    row = trace.decisions[-1].rows[0].cells
    value, percent = row["value"], row["half_width_percent"]
    assert isinstance(value, float) and isinstance(percent, float)
    return _window(window.first, window.last, value, percent / 100 * value)


def measured_all(rho: float, kind: str, seeds: Sequence[int]) -> list[Window]:
    """The same of many seeds, in step with each other."""
    shape = np.array([SHAPES[kind](number) for number in range(1, LONGEST)])
    values = 1000 * shape[:, None] * _factors(seeds, rho, 0.05, LONGEST)[1:]
    found = []
    for one in measured_together(GOAL, values, LENGTH_S):
        assert one is not None
        found.append(_window(one.first + 1, one.last + 1, one.value, one.half_width))
    return found


def _factors(seeds: Sequence[int], rho: float, sd: float, n: int) -> NDArray[np.float64]:
    """What `Noise` yields with each seed, shape (n, seeds)."""
    shocks = np.array([np.random.default_rng(seed).standard_normal(n) for seed in seeds]).T
    for number in range(1, n):
        shocks[number] = rho * shocks[number - 1] + (1 - rho**2) ** 0.5 * shocks[number]
    return np.asarray(np.exp(sd * shocks - sd**2 / 2), dtype=np.float64)


def _window(first: int, last: int, value: float, half_width: float) -> Window:
    off = abs(value - 1000)
    return last - first + 1, off <= half_width, off <= 0.02 * value, first > 1


def measured_by_ivy(rho: float, seed: int) -> tuple[int, bool, bool]:
    sound = noise(seed, 0.05, rho)
    values = 1000 * np.array([sound.next() for _ in range(1500)])
    first, last = ivy_measure(values[1:], 0.02, 12)
    window = values[1:][first : last + 1]
    off = abs(float(window.mean()) - 1000)
    return len(window), off <= half_width(window), off <= 0.02 * float(window.mean())


def measure_table(runs: Runs) -> Table:
    yield "measure: level 1,000, noise 5 %, accuracy 2 %, confidence 95 %. Covers: the stated interval holds the truth."
    yield f"{'plant':12} {'rho':>4} {'covers':>7} {'in 2 %':>7} {'window p50 / p90':>17} {'dropped':>8}"
    share: dict[float, float] = {}
    for kind, rhos in (("level", (0.0, 0.3, 0.5, 0.8)), ("warm-up", (0.0, 0.5)), ("brown-out", (0.0,))):
        for rho in rhos:
            got = runs.together(partial(measured_all, rho, kind))
            lengths, covers, within, dropped = zip(*got, strict=True)
            yield (
                f"{kind:12} {rho:4.1f} {np.mean(covers):7.1%} {np.mean(within):7.1%} {quantiles(lengths):>17}"
                f" {np.mean(dropped):8.1%}"
            )
            share[rho] = min(share.get(rho, 1.0), float(np.mean(covers)))
    for rho in (0.0, 0.3, 0.5, 0.8):
        lengths, covers, within = zip(*runs.each(partial(measured_by_ivy, rho)), strict=True)
        yield f"{'shortest':12} {rho:4.1f} {np.mean(covers):7.1%} {np.mean(within):7.1%} {quantiles(lengths):>17}"
    mild = min(value for rho, value in share.items() if rho <= 0.5)
    yield promise("covers in 93 % up to correlation 0.5", mild, mild >= 0.93)
    yield promise("covers in 90 % at 0.8", share[0.8], share[0.8] >= 0.90)


# PID: how soon the load is where it belongs.

PID_NOISE = (0.02, 0.3)
PID_SUBINTERVALS = 120


def reached(loads: Sequence[float], truth: float) -> float:
    """The first subinterval from which ten have a mean load within 1 % of the truth, and none is 3 % off."""
    off = np.array(loads) / truth - 1
    for first in range(len(off) - 9):
        window = off[first : first + 10]
        if abs(window.mean()) <= 0.01 and np.abs(window).max() <= 0.03:
            return float(first)
    return inf


def controlled(name: str, rule: str, seed: int) -> float:
    subject = BY_NAME[name]
    plant = subject.plant(seed, *PID_NOISE)
    if rule == "ivypy":
        return _reached_by(_ours(subject, plant), subject.truth)
    return _reached_by(_rivals(subject, plant, rule == "fixed gain"), subject.truth)


def _reached_by(loads: Iterator[float], truth: float) -> float:
    """`reached`, asked each subinterval, so that no run is longer than it takes."""
    seen: list[float] = []
    for load in islice(loads, PID_SUBINTERVALS):
        seen.append(load)
        if reached(seen[-10:], truth) == 0:
            return float(len(seen) - 10)
    return inf


def _ours(subject: Subject, plant: Plant) -> Iterator[float]:
    steer: Steer = pid(LATENCY, subject.target, {"all": subject.ends}, RULES, warmup=1)
    decision = Decision(Phase.RUN, steer.opening())
    for number in count():
        steer, orders = steer.after(plant.interval(number, decision))
        yield plant.iops or 0.0
        decision = Decision(Phase.RUN, orders.edits)


def _rivals(subject: Subject, plant: Plant, fixed: bool) -> Iterator[float]:
    rival = IvyPid(subject.target, subject.ends, fixed=fixed)
    for number in count():
        plant.iops = rival.iops
        yield rival.iops
        rival.next(plant.interval(number, Decision(Phase.RUN)).value(LATENCY, "all") or 0.0)


def pid_table(runs: Runs) -> Table:
    sd, rho = PID_NOISE
    rules = ("ivypy", "ivy, corrected", "fixed gain")
    yield f"pid: subintervals until the load is within 1 % of the truth for ten; p50 / p90; noise {sd:.0%}, rho {rho}"
    yield f"{'plant':20} {'load':>5} " + " ".join(f"{rule:>14}" for rule in rules)
    slowest, never = 0.0, 0.0
    for subject in [*SUBJECTS, TROUBLED[0], TROUBLED[2]]:
        got = [runs.each(partial(controlled, subject.name, rule)) for rule in rules]
        share = subject.truth / subject.capacity
        yield f"{subject.name:20} {share:5.0%} " + " ".join(f"{quantiles(one):>14}" for one in got)
        slowest = max(slowest, float(np.quantile(got[0], 0.5, method="higher")))
        never = max(never, float(np.mean(np.isinf(got[0]))))
    met = "met" if slowest <= 30 else "MISSED"
    yield f"  promised: at most 30 in the median: {met}, {slowest:.0f} at worst; not within 120: {never:.1%} at worst"


# Search: probes, error and bracket.


WIDELY = ("M/M/1 75%", "M/M/4 40%", "M/M/4 75%", "linear 75%", "M/M/4, step change")  # at every correlation


def searched(name: str, sd: float, rho: float, seed: int) -> tuple[int, bool, bool, float, int] | None:
    """(probes, within 3 %, interval covers, its width, subintervals); None: no interval."""
    subject = BY_NAME[name]
    trace = simulate(subject.plant(seed, sd, rho), Find(find_spec(LATENCY, subject.target), TOLERANCE, settle=1), 5000)
    assert isinstance(trace.state, Find)
    estimate = trace.state.estimate()
    if estimate is None or not estimate.crossing.width < inf:
        return None
    found = estimate.crossing
    truth = subject.truth
    covers = found.low <= truth * (1 + 1e-9) and truth <= found.high * (1 + 1e-9)
    return (
        len(trace.state.probes) + trace.state.maxima,
        abs(found.load / truth - 1) <= 0.03,
        covers,
        found.width,
        trace.subintervals,
    )


def find_table(runs: Runs) -> Table:
    yield "find: highest load for a target, resolution 2 %; probes include the run at max; noise 2 %"
    yield (
        f"{'plant':20} {'rho':>4} {'probes p50 / max':>17} {'in 3 %':>7} {'covers':>7} {'width p50':>10}"
        f" {'subintervals':>13} {'no interval':>11}"
    )
    least, most = {"within": 1.0, "covers": 1.0}, 0
    for subject in [*SUBJECTS, *TROUBLED]:
        for rho in (0.0, 0.5, 0.8) if subject.name in WIDELY else (0.5,):
            got = runs.each(partial(searched, subject.name, 0.02, rho))
            found = [one for one in got if one is not None]
            probes, within, covers, widths, lengths = zip(*found, strict=True)
            yield (
                f"{subject.name:20} {rho:4.1f} {f'{np.median(probes):.0f} / {max(probes)}':>17} {np.mean(within):7.1%}"
                f" {np.mean(covers):7.1%} {np.median(widths):10.1%} {np.median(lengths):13.0f}"
                f" {1 - len(found) / len(got):11.1%}"
            )
            least["within"] = min(least["within"], float(np.mean(within)))
            least["covers"] = min(least["covers"], float(np.mean(covers)))
            most = max(most, *probes)
    yield promise("within 3 % in 95 %", least["within"], least["within"] >= 0.95)
    yield promise("the interval covers in 95 %", least["covers"], least["covers"] >= 0.95)
    yield f"  promised: at most 12 probes: {'met' if most <= 12 else 'MISSED'}, {most} at most"


# Steady state: attained falsely, or missed.

STEADY_WINDOW = 6  # subintervals: 30 s
STEADY_LIMIT = 0.02
STILL = "still"
MOVING: dict[str, Callable[[int], float]] = {
    STILL: lambda number: 1.0,
    "drift 1.2": lambda number: 1 + 1.2 * STEADY_LIMIT / STEADY_WINDOW * number,
    "drift 1.5": lambda number: 1 + 1.5 * STEADY_LIMIT / STEADY_WINDOW * number,
    "settling, 8 windows": lambda number: 1 + 0.5 * exp(-number / (8 * STEADY_WINDOW)),
    "step at 21": lambda number: 1.0 if number < 21 else 1.3,
    "brown-out 8 to 30": lambda number: 1.5 if 8 <= number < 30 else 1.0,
}


def attained(shape: str, rule: Rule, way: str, sd: float, rho: float, seed: int) -> tuple[bool, bool]:
    """(attained within ten windows, falsely: the noise-free mean moves more than the limit in the next window).

    Where it is to hold, the next window is the one that was held. One run, by the judge itself.
    """
    plant = Plant(lambda iops: 1000.0, 1e5, noise(seed, sd, rho), MOVING[shape], iops=1000.0)
    criterion, hold, most = _to_attain(rule, way)
    trace = simulate(plant, Steady(steady_spec(criterion, hold=hold, timeout_s=1e9), warmup=0), most)
    return _came_to(shape, trace.subintervals - 1 if trace.decisions[-1].done else None, hold)


def attained_all(
    shape: str, rule: Rule, way: str, sd: float, rho: float, seeds: Sequence[int]
) -> list[tuple[bool, bool]]:
    """The same of many seeds, in step with each other."""
    criterion, hold, most = _to_attain(rule, way)
    levels = 1000 * np.array([MOVING[shape](number) for number in range(most)])
    values = levels[:, None] * _factors(seeds, rho, sd, most)
    return [_came_to(shape, done, hold) for done in steady_together(criterion, hold, values, LENGTH_S)]


def _to_attain(rule: Rule, way: str) -> tuple[Criterion, int, int]:
    """(the criterion, subintervals to hold, how many there are in all)."""
    # A slope's limit is per second: such that a window at the limit moves by STEADY_LIMIT.
    limit = 100 * STEADY_LIMIT / (1 if rule is Rule.DEVIATION else STEADY_WINDOW * LENGTH_S)
    hold = STEADY_WINDOW if way == "and hold" else 0
    return a_criterion(rule, LATENCY, STEADY_WINDOW, limit, no_drift=way != "as fio"), hold, 10 * STEADY_WINDOW + hold


def _came_to(shape: str, done: int | None, hold: int) -> tuple[bool, bool]:
    if done is None:
        return False, False
    mean, then = MOVING[shape], done - hold
    ahead = max(abs(mean(then + step) / mean(then) - 1) for step in range(1, STEADY_WINDOW + 1))
    return True, ahead > STEADY_LIMIT * (1 + 1e-9)


def steady_table(runs: Runs) -> Table:
    sd = STEADY_LIMIT / 4
    yield f"steady: limit {STEADY_LIMIT:.0%}, window {STEADY_WINDOW} subintervals, noise sd a quarter of the limit"
    yield "  missed: not within ten windows of a still plant; false: attained while the mean moves more than the limit"
    ways = [(rule, way) for rule in (Rule.DEVIATION, Rule.SLOPE) for way in ("as fio", "no drift", "and hold")]
    yield f"{'plant':22} {'rho':>4} " + " ".join(f"{f'{rule}, {way}':>19}" for rule, way in ways)
    worst = dict.fromkeys(ways, 0.0)
    for shape in MOVING:
        for rho in (0.0, 0.5, 0.8):
            cells = []
            for rule, way in ways:
                got = runs.together(partial(attained_all, shape, rule, way, sd, rho))
                share = float(np.mean([not one[0] if shape == STILL else one[1] for one in got]))
                worst[rule, way] = max(worst[rule, way], share)
                cells.append(f"{'missed' if shape == 'still' else 'false'} {share:.1%}")
            yield f"{shape:22} {rho:4.1f} " + " ".join(f"{cell:>19}" for cell in cells)
    for rule in (Rule.DEVIATION, Rule.SLOPE):  # fio's rule, and one without hold, stand beside it
        share = worst[rule, "and hold"]
        yield promise(f"at most 5 % missed or false, {rule} and hold", share, share <= 0.05)


TABLES = {"measure": measure_table, "pid": pid_table, "find": find_table, "steady": steady_table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("sections", nargs="*", choices=[*TABLES, []], default=[])
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=FIRST, help="the first seed")
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    with ProcessPoolExecutor(chosen.processes) as pool:
        runs = Runs(pool, range(chosen.first, chosen.first + chosen.seeds))
        for section in chosen.sections or TABLES:
            began_s = time.monotonic()
            for line in TABLES[section](runs):
                print(line, flush=True)
            print(f"  {chosen.seeds:,} seeds a row, {time.monotonic() - began_s:.0f} s\n", flush=True)


if __name__ == "__main__":
    main()
