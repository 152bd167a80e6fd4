"""The engine beside fio, on one pinned core: `python -m tests.bench.engine [--seconds S] [--repeat N] [--core C]`.

A row a case: I/Os of both per second of the core's time that they used, in one run, taken in turn; and the ratio of
these, least to most of the repetitions, which says how quiet the machine was. In these cases either keeps its core
busy all the time, so on an idle machine that is I/Os per second; on a busy one it still is what a core can do.
Ours records everything it always does. fio runs as it comes, with the same depth and block size; "batched" is fio with
submission in eights and completion up to 32 at once. With io_uring, fio has its buffers and files registered, as ours.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ivypy.protocol.counters import SERVICE, Count, Moment, ThreadCount
from ivypy.slave.engine._engine import Engine, backends
from tests import devices
from tests.engine import MS, Drive

REGISTERED = ("--fixedbufs=1", "--registerfiles=1", "--nonvectored=1")
BATCHED = ("--iodepth_batch_submit=8", "--iodepth_batch_complete_min=1", "--iodepth_batch_complete_max=32")


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    backend: str
    device: str  # "null" or "zram"
    depth: int
    goal: float  # the least ratio
    options: tuple[str, ...] = ()  # of fio


CASES = [
    Case("null, depth 1", "null", "null", 1, 2.0),
    Case("null, depth 32", "null", "null", 32, 5.0),
    Case("zram, depth 1", "libaio", "zram", 1, 1.5),
    Case("zram, depth 32", "libaio", "zram", 32, 1.5),
    Case("zram, depth 1, fio batched", "libaio", "zram", 1, 1.1, BATCHED),
    Case("zram, depth 32, fio batched", "libaio", "zram", 32, 1.1, BATCHED),
    Case("zram, io_uring, depth 1", "io_uring", "zram", 1, 1.3, REGISTERED),
    Case("zram, io_uring, depth 32", "io_uring", "zram", 32, 1.5, REGISTERED),
    Case("zram, io_uring, depth 128", "io_uring", "zram", 128, 1.5, REGISTERED),
    Case("zram, io_uring, 32, fio batched", "io_uring", "zram", 32, 1.15, (*REGISTERED, *BATCHED)),
]


@dataclass(frozen=True, slots=True)
class Figure:
    per_core: float  # I/Os per second of CPU time
    mean_us: float  # from submission to completion


def ours(case: Case, path: str, core: int, seconds: float) -> Figure:
    engine = Engine(case.backend, [core])
    try:
        step = Drive(engine)
        step.create(0, step.lun(path), iops=-1.0, maxtags=case.depth)
        step.go([0], int(seconds * 1000 / 4) * MS)
        engine.stop(4)
        step.finish()
    finally:
        engine.close(5.0)
    measured = step.results[1:]  # the first one is the warm-up
    count = sum(result.total(Count.COMPLETED) for result in measured)
    cpu_ns = sum(result.thread(ThreadCount.CPU_TIME) for result in measured)
    return Figure(count / cpu_ns * 1e9, sum(result.series(SERVICE, Moment.SUM) for result in measured) / count / 1000)


def theirs(case: Case, path: str, core: int, seconds: float) -> Figure:
    words = ["fio", "--name=bench", f"--ioengine={case.backend}", "--bs=4k", "--rw=randread", "--norandommap"]
    words += ["--direct=1", f"--iodepth={case.depth}", f"--cpus_allowed={core}", "--time_based", f"--runtime={seconds}"]
    words += ["--ramp_time=0.5", "--output-format=json", *case.options]
    words += ["--size=1g"] if case.backend == "null" else [f"--filename={path}"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    busy = (job["usr_cpu"] + job["sys_cpu"]) / 100
    return Figure(job["read"]["iops"] / busy, job["read"]["lat_ns"]["mean"] / 1000)


def row(case: Case, path: str, core: int, seconds: float, repeat: int) -> str:
    pairs = [(ours(case, path, core, seconds), theirs(case, path, core, seconds)) for _ in range(repeat)]
    ratios = sorted(a.per_core / b.per_core for a, b in pairs)
    best, fio = (
        max((a for a, _ in pairs), key=lambda f: f.per_core),
        max((b for _, b in pairs), key=lambda f: f.per_core),
    )
    middle = ratios[len(ratios) // 2]
    verdict = "reached" if middle >= case.goal else "MISSED"
    return (
        f"{case.name:32} {best.per_core / 1000:9.0f} {best.mean_us:8.2f} {fio.per_core / 1000:9.0f} {fio.mean_us:8.2f}"
        f" {middle:7.2f} {ratios[0]:6.2f} .. {ratios[-1]:<6.2f} {case.goal:5.1f}  {verdict}"
    )


@contextlib.contextmanager
def paths() -> Iterator[dict[str, str]]:
    """A path for each device; without zram, its cases are left out."""
    with contextlib.ExitStack() as undo:
        folder = undo.enter_context(devices.memory_folder())
        found = {"null": str(devices.image(folder, 1 << 30))}
        try:
            found["zram"] = undo.enter_context(devices.zram())
        except devices.Missing as missing:
            print(f"without zram: this machine lacks {missing}", file=sys.stderr)
        yield found


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench engine", description="The engine beside fio, on one pinned core.")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    chosen = parser.parse_args(words)
    if shutil.which("fio") is None:
        print("this machine lacks fio", file=sys.stderr)
        return 1
    others = os.sched_getaffinity(0) - {chosen.core}
    if others:
        os.sched_setaffinity(0, others)  # the collector's; the engine's thread is pinned by itself
    version = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{version}; core {chosen.core} of {os.cpu_count()}; load {os.getloadavg()[0]:.1f}; best of {chosen.repeat}")
    print(
        f"{'':32} {'ours k/s':>9} {'mean us':>8} {'fio k/s':>9} {'mean us':>8} {'ratio':>7} {'least .. most':>16} goal"
    )
    with paths() as found:
        for case in CASES:
            if case.device in found and case.backend in backends():
                print(row(case, found[case.device], chosen.core, chosen.seconds, chosen.repeat), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
