"""Control on simulated plants: `python -m tests.bench.control [--seeds N] [SECTION ...]` prints one table a section.

Sections: measure, pid, find, steady. Every number is a function of the seeds 0 .. N - 1 and nothing else.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import exp, inf
from typing import Any

import numpy as np

from ivypy.master.control.criteria import Criterion, Rule
from ivypy.master.control.decision import Decision
from ivypy.master.control.find import Find
from ivypy.master.control.measure import Goal, Measure
from ivypy.master.control.phase import Phase
from ivypy.master.control.pid import Range, pid
from ivypy.master.control.probe import Question
from ivypy.master.control.steady import Steady
from ivypy.master.control.steer import Steer
from tests.control.plants import LATENCY, LENGTH_S, Curve, Plant, flat_then_wall, linear, load_for, mmc, noise, simulate
from tests.control.rivals import IvyPid, half_width, ivy_measure

Table = Iterator[str]
Runs = Callable[[Callable[[int], Any]], list[Any]]  # maps a function over the seeds


@dataclass(frozen=True, slots=True)
class Subject:
    """A plant with a target on its curve."""

    name: str
    curve: Curve
    capacity: float
    target: float
    memory: float = 0.0
    brown_out: bool = False  # twice as slow for a while in the middle

    @property
    def truth(self) -> float:
        return load_for(self.curve, self.target, self.top)

    @property
    def top(self) -> float:
        return 0.98 * self.capacity

    @property
    def ends(self) -> Range:
        low = 0.02 * self.capacity
        return Range(low, self.top, self.curve(low), self.curve(self.top))

    def plant(self, seed: int, sd: float, rho: float) -> Plant:
        out = range(30, 60 if self.brown_out else 30)
        return Plant(
            self.curve, self.capacity, noise(seed, sd, rho), lambda number: 2.0 if number in out else 1.0, self.memory
        )


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
]

BY_NAME = {subject.name: subject for subject in [*SUBJECTS, *TROUBLED]}  # curves do not travel between processes


def quantiles(numbers: Sequence[float]) -> str:
    """Median and p90; a dash where it is not finite."""
    return " / ".join("-" if q == inf else f"{q:.0f}" for q in np.quantile(numbers, [0.5, 0.9], method="higher"))


# Measure: a level of 1,000 with 5 % noise, to 2 %.


def measured(rho: float, kind: str, seed: int) -> tuple[int, bool, bool, bool] | None:
    """(window, its interval covers, it is within 2 %, same for ivy's rule) or None where it timed out."""
    shapes: dict[str, Callable[[int], float]] = {
        "level": lambda number: 1.0,
        "warm-up": lambda number: 1 + 0.5 * exp(-number / 6),
        "brown-out": lambda number: 1.15 if 10 <= number < 20 else 1.0,
    }
    plant = Plant(lambda iops: 1000.0, 1e4, noise(seed, 0.05, rho), shapes[kind], iops=1000.0)
    trace = simulate(plant, Measure(Goal(LATENCY, timeout_s=1e9), warmup=1), 3000)
    (window,) = trace.decisions[-1].measured
    row = trace.decisions[-1].rows[0].cells
    value, percent = row["value"], row["half_width_percent"]
    assert isinstance(value, float) and isinstance(percent, float)
    off = abs(value - 1000)
    return window.last - window.first + 1, off <= percent / 100 * value, off <= 0.02 * value, window.first > 1


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
    for kind, rhos in (("level", (0.0, 0.3, 0.5, 0.8)), ("warm-up", (0.0, 0.5)), ("brown-out", (0.0,))):
        for rho in rhos:
            got = runs(partial(measured, rho, kind))
            lengths, covers, within, dropped = zip(*got, strict=True)
            yield (
                f"{kind:12} {rho:4.1f} {np.mean(covers):7.1%} {np.mean(within):7.1%} {quantiles(lengths):>17}"
                f" {np.mean(dropped):8.1%}"
            )
    for rho in (0.0, 0.3, 0.5, 0.8):
        lengths, covers, within = zip(*runs(partial(measured_by_ivy, rho)), strict=True)
        yield f"{'ivy, level':12} {rho:4.1f} {np.mean(covers):7.1%} {np.mean(within):7.1%} {quantiles(lengths):>17}"


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
    loads: list[float] = []
    if rule == "ivypy":
        steer: Steer = pid(LATENCY, subject.target, {"all": subject.ends})
        decision = Decision(Phase.RUN, steer.opening())
        for number in range(PID_SUBINTERVALS):
            steer, orders = steer.after(plant.interval(number, decision))
            decision = Decision(Phase.RUN, orders.edits)
            loads.append(plant.iops or 0.0)
        return reached(loads, subject.truth)
    rival = IvyPid(subject.target, subject.ends, fixed=rule == "fixed gain")
    for number in range(PID_SUBINTERVALS):
        plant.iops = rival.iops
        loads.append(rival.iops)
        value = plant.interval(number, Decision(Phase.RUN)).value(LATENCY, "all")
        rival.next(value or 0.0)
    return reached(loads, subject.truth)


def pid_table(runs: Runs) -> Table:
    sd, rho = PID_NOISE
    rules = ("ivypy", "ivy, mended", "fixed gain")
    yield f"pid: subintervals until the load is within 1 % of the truth for ten; p50 / p90; noise {sd:.0%}, rho {rho}"
    yield f"{'plant':20} {'load':>5} " + " ".join(f"{rule:>14}" for rule in rules)
    for subject in [*SUBJECTS, TROUBLED[0]]:
        cells = [quantiles(runs(partial(controlled, subject.name, rule))) for rule in rules]
        share = subject.truth / subject.capacity
        yield f"{subject.name:20} {share:5.0%} " + " ".join(f"{cell:>14}" for cell in cells)


# Search: probes, error and bracket.


def searched(name: str, sd: float, rho: float, seed: int) -> tuple[int, bool, bool, float, int] | None:
    """(probes, within 3 %, bracket covers, its width, subintervals); None: no bracket."""
    subject = BY_NAME[name]
    trace = simulate(subject.plant(seed, sd, rho), Find(Question(LATENCY, subject.target)), 5000)
    assert isinstance(trace.state, Find)
    wanted, found = trace.state.result()
    if wanted is None or found.passed is None or found.failed is None or found.width is None:
        return None
    truth = subject.truth
    covers = found.passed.iops <= truth * (1 + 1e-9) and truth <= found.failed.iops * (1 + 1e-9)
    return len(trace.state.probes) + 1, abs(wanted / truth - 1) <= 0.03, covers, found.width, trace.subintervals


def find_table(runs: Runs) -> Table:
    yield "find: highest load for a target, resolution 2 %; probes include the run at max; noise 2 %"
    yield (
        f"{'plant':20} {'rho':>4} {'probes p50 / max':>17} {'in 3 %':>7} {'covers':>7} {'width p50':>10}"
        f" {'subintervals':>13} {'no bracket':>11}"
    )
    for subject in [*SUBJECTS, *TROUBLED]:
        for rho in (0.0, 0.5, 0.8):
            got = runs(partial(searched, subject.name, 0.02, rho))
            found = [one for one in got if one is not None]
            probes, within, covers, widths, lengths = zip(*found, strict=True)
            yield (
                f"{subject.name:20} {rho:4.1f} {f'{np.median(probes):.0f} / {max(probes)}':>17} {np.mean(within):7.1%}"
                f" {np.mean(covers):7.1%} {np.median(widths):10.1%} {np.median(lengths):13.0f}"
                f" {1 - len(found) / len(got):11.1%}"
            )


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

    Where it is to hold, the next window is the one that was held.
    """
    mean = MOVING[shape]
    plant = Plant(lambda iops: 1000.0, 1e5, noise(seed, sd, rho), mean, iops=1000.0)
    # A slope's limit is per second: such that a window at the limit moves by STEADY_LIMIT.
    limit = 100 * STEADY_LIMIT / (1 if rule is Rule.DEVIATION else STEADY_WINDOW * LENGTH_S)
    criterion = Criterion(rule, LATENCY, STEADY_WINDOW, limit, no_drift=way != "as fio")
    hold = STEADY_WINDOW if way == "and hold" else 0
    trace = simulate(plant, Steady(criterion, hold=hold, timeout_s=1e9), 10 * STEADY_WINDOW + hold)
    if not trace.decisions[-1].done:
        return False, False
    then = trace.subintervals - 1 - hold
    ahead = max(abs(mean(then + step) / mean(then) - 1) for step in range(1, STEADY_WINDOW + 1))
    return True, ahead > STEADY_LIMIT * (1 + 1e-9)


def steady_table(runs: Runs) -> Table:
    sd = STEADY_LIMIT / 4
    yield f"steady: limit {STEADY_LIMIT:.0%}, window {STEADY_WINDOW} subintervals, noise sd a quarter of the limit"
    yield "  missed: not within ten windows of a still plant; false: attained while the mean moves more than the limit"
    ways = [(rule, way) for rule in (Rule.DEVIATION, Rule.SLOPE) for way in ("as fio", "no drift", "and hold")]
    yield f"{'plant':22} {'rho':>4} " + " ".join(f"{f'{rule}, {way}':>19}" for rule, way in ways)
    for shape in MOVING:
        for rho in (0.0, 0.5, 0.8):
            cells = []
            for rule, way in ways:
                got = runs(partial(attained, shape, rule, way, sd, rho))
                share = float(np.mean([not one[0] if shape == STILL else one[1] for one in got]))
                cells.append(f"{'missed' if shape == 'still' else 'false'} {share:.1%}")
            yield f"{shape:22} {rho:4.1f} " + " ".join(f"{cell:>19}" for cell in cells)


TABLES = {"measure": measure_table, "pid": pid_table, "find": find_table, "steady": steady_table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("sections", nargs="*", choices=[*TABLES, []], default=[])
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    with ProcessPoolExecutor(chosen.processes) as pool:

        def runs(one: Callable[[int], Any]) -> list[Any]:
            return list(pool.map(one, range(chosen.seeds), chunksize=max(chosen.seeds // 16, 1)))

        for section in chosen.sections or TABLES:
            for line in TABLES[section](runs):
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
            sys.stdout.write("\n")


if __name__ == "__main__":
    main()
