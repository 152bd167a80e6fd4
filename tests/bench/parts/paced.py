"""How late paced I/Os are submitted, and what one costs beside fio's; latency at depth 1 with each `spin`.

Each measurement is a process of its own (one_step.py), so that another checkout's can take turns with this one's:
`--before FOLDER`. On a machine with other load a thread waits for its core now and then, which no engine can help: the
figures are those of the turn in which it waited least for it, and the middle of all turns beside them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from .closed_loop import fio_job, middle

ROOT: Final = Path(__file__).parents[3]
ONE_STEP: Final = Path(__file__).parent / "one_step.py"

RATES: Final = (1_000, 5_000, 10_000, 20_000)
MOST_P50_US: Final = 1.0
MOST_MEAN: Final = 0.02  # of the mean service time
COST_RATE: Final = 100_000
MOST_OF_FIO: Final = 0.5  # of its CPU time per I/O
LEAST_OF_BARE: Final = 0.9
LATE_RATE: Final = 50_000
LATEST_US: Final = 100.0  # p99

BUSY: Final = """import os
os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
os.sched_setaffinity(0, {{{}}})
while True: pass
"""

Figures = Mapping[str, float]


def one_step(checkout: Path, path: str, core: int, seconds: float, iops: float, tags: int, spin: str) -> Figures:
    words = [checkout / ".venv/bin/python", ONE_STEP, path, core, seconds, iops, tags, spin]
    done = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, check=True, cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout)},
    )  # fmt: skip
    figures: Figures = json.loads(done.stdout)
    return figures


def quietest(turns: list[Figures]) -> Figures:
    return min(turns, key=lambda turn: turn["waited"])


def ways(before: Path | None) -> list[tuple[str, Path, str]]:
    """(name, checkout, spin)"""
    return [*([("before", before, "-")] if before else []), ("off", ROOT, "off"), ("auto", ROOT, "auto")]


def floor_figures(program: Path, core: int, seconds: float, iops: float) -> Figures:
    """What this machine allows just now: lateness of a program that only sleeps and busy-waits (floor.c)."""
    words = [program, core, seconds, iops]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=True)
    figures: Figures = json.loads(done.stdout)
    return figures


def on_time(floor: Path, path: str, core: int, seconds: float, repeat: int, before: Path | None) -> str:
    lines = [f"lateness in us, {path}, libaio, random_independent: quietest turn of {repeat} (middle of all)"]
    for iops in RATES:
        turns: dict[str, list[Figures]] = {name: [] for name, _, _ in ways(before)}
        floors: list[Figures] = []
        for _ in range(repeat):
            floors.append(floor_figures(floor, core, seconds, iops))
            for name, checkout, spin in ways(before):
                turns[name].append(one_step(checkout, path, core, seconds, iops, 32, spin))
        lines.append(floor_line(iops, floors))
        lines += [late_line(iops, name, turns[name]) for name in turns]
    return "\n".join(lines)


def lateness_of(turns: list[Figures]) -> str:
    quiet = quietest(turns)
    return ", ".join(
        f"{word} {quiet[key]:.1f} ({middle([turn[key] for turn in turns]):.1f})"
        for word, key in (("p50", "late_p50_us"), ("mean", "late_mean_us"), ("p99", "late_p99_us"))
    )


def time_of(turns: list[Figures]) -> str:
    quiet = quietest(turns)
    return f"busy-waiting {quiet['busy_wait']:.0%} of the time, waited for its core {quiet['waited']:.0%}"


def floor_line(iops: int, turns: list[Figures]) -> str:
    return f"  {iops:6,} IOPS, floor : {lateness_of(turns)}; no I/O and no budget; {time_of(turns)}"


def late_line(iops: int, name: str, turns: list[Figures]) -> str:
    quiet = quietest(turns)
    share = quiet["late_mean_us"] / quiet["service_mean_us"]
    goal = ""
    if name == "auto":
        met = quiet["late_p50_us"] <= MOST_P50_US and share <= MOST_MEAN
        goal = f"; goal p50 {MOST_P50_US:.0f} us, mean {MOST_MEAN:.0%}: {'met' if met else 'NOT MET'}"
    return (
        f"  {iops:6,} IOPS, {name:6}: {lateness_of(turns)}; mean {share:.1%} of a service of"
        f" {quiet['service_mean_us']:.0f} us; {time_of(turns)}{goal}"
    )


def low_depth(path: str, core: int, seconds: float, repeat: int) -> str:
    turns: dict[str, list[float]] = {}
    for _ in range(repeat):
        told = fio_job(
            ["--ioengine=libaio", "--iodepth=1", f"--filename={path}", f"--cpus_allowed={core}", f"--runtime={seconds}"]
        )
        turns.setdefault("fio", []).append(told["mean_us"])
        for spin in ("off", "auto", "on"):
            figures = one_step(ROOT, path, core, seconds, -1.0, 1, spin)
            turns.setdefault(f"spin: {spin}", []).append(figures["service_mean_us"])
    each = "; ".join(f"{name} {min(us):.1f} ({middle(us):.1f})" for name, us in turns.items())
    return f"mean latency at depth 1 in us, {path}, libaio: least of {repeat} turns (middle): {each}"


def bare_paced(program: Path, path: str, core: int, seconds: float) -> float:
    """CPU time of an I/O in us."""
    words = [program, "libaio", path, 32, seconds, core, COST_RATE]
    return float(subprocess.run([*map(str, words)], capture_output=True, text=True, check=True).stdout)


def cost(program: Path, path: str, core: int, seconds: float, repeat: int) -> str:
    fio_words = ["--ioengine=libaio", "--iodepth=32", f"--filename={path}", f"--cpus_allowed={core}"]
    fio_words += [f"--runtime={seconds}", f"--rate_iops={COST_RATE}", "--rate_process=poisson"]
    turns: dict[str, list[float]] = {}
    for _ in range(repeat):
        told = fio_job(fio_words)
        off, auto = (one_step(ROOT, path, core, seconds, COST_RATE, 32, spin) for spin in ("off", "auto"))
        costs = {
            "fio": told["busy"] / told["iops"] * 1e6,
            "bare, asleep between I/Os": bare_paced(program, path, core, seconds),
            "spin: off": off["cpu_us"],
            "spin: auto, less busy-waiting": auto["work_us"],
            "spin: auto, all": auto["cpu_us"],
        }
        for name, us in costs.items():
            turns.setdefault(name, []).append(us)
    lines = [
        f"CPU us per I/O at {COST_RATE:,} random_independent IOPS, {path}: middle of {repeat} turns, least .. most"
    ]
    for name, each_us in turns.items():
        ratios = sorted(one / fio for one, fio in zip(each_us, turns["fio"], strict=True))
        lines.append(
            f"  {name:30} {middle(each_us):6.2f}  {min(each_us):6.2f} .. {max(each_us):<6.2f} {middle(ratios):5.2f} of"
            f" fio's {ratios[0]:5.2f} .. {ratios[-1]:<5.2f}{cost_verdict(name, middle(each_us), middle(ratios), turns)}"
        )
    return "\n".join(lines)


def cost_verdict(name: str, us: float, of_fio: float, turns: Mapping[str, list[float]]) -> str:
    if name not in ("spin: off", "spin: auto, less busy-waiting"):
        return ""
    bare = middle(turns["bare, asleep between I/Os"])
    bare_of_fio = bare / middle(turns["fio"])
    if of_fio <= MOST_OF_FIO:
        verdict = "met"
    elif name == "spin: off" and bare_of_fio > MOST_OF_FIO and us <= bare / LEAST_OF_BARE:
        verdict = f"met ({bare / us:.2f} of bare, which has {bare_of_fio:.2f} itself)"
    else:
        verdict = f"NOT MET (bare: {bare_of_fio:.2f})"
    return f"  goal {MOST_OF_FIO}: {verdict}"


@contextmanager
def others_busy(core: int) -> Iterator[int]:
    """Every other core has something else to do; how many these are."""
    others = sorted(os.sched_getaffinity(0) - {core})
    busy = [subprocess.Popen([sys.executable, "-c", BUSY.format(other)]) for other in others]
    try:
        yield len(busy)
    finally:
        for process in busy:
            process.kill()
            process.wait()


def lateness_beside(path: str, core: int, seconds: float, repeat: int) -> str:
    with others_busy(core) as many:
        turns = [one_step(ROOT, path, core, seconds, LATE_RATE, 32, "auto") for _ in range(repeat)]
    quiet = quietest(turns)
    return (
        f"lateness at {LATE_RATE:,} IOPS, {many} other core(s) busy, {path}: quietest turn of {repeat}: p50"
        f" {quiet['late_p50_us']:.1f} us, p99 {quiet['late_p99_us']:.1f} us; goal p99 below {LATEST_US:.0f} us:"
        f" {'met' if quiet['late_p99_us'] < LATEST_US else 'NOT MET'}"
    )
