"""As fast as it goes: I/Os per second of a core's time, of ours, of fio's, and of the least that a program can do.

A row a case; all three in one run, taken in turn; ratios are of the middle turn, least to most of the turns beside it,
which says how quiet the machine was. In these cases each keeps its core busy all the time, so on an idle machine that
is I/Os per second; on a busy one it still is what a core can do. Ours records everything it always does. fio runs as
it comes, with the same depth and block size; "batched" is fio with submission in eights and completion up to 32 at
once. With io_uring, fio has its buffers and files registered, as ours.

`bare.c` beside the bench says what the kernel alone takes: no engine is faster, so where its own ratio to fio's is
below a goal, the goal cannot be had on that device.

zram reads within the submit call, on the core that is measured. Pages that are all alike cost it least, so that the
engines show; incompressible ones are copied from memory. Its driver does not take RWF_NOWAIT, so io_uring would have
threads of the kernel do each I/O, whose time nobody counts; hence io_uring reads a file on ext4 on it, which takes it.
"""

import contextlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ivypy.protocol.counters import SERVICES, Count, Moment, ThreadCount
from ivypy.slave.engine._engine import Engine
from tests.support import devices
from tests.support.engine import MS, Drive

REGISTERED = ("--fixedbufs=1", "--registerfiles=1", "--nonvectored=1")
BATCHED = ("--iodepth_batch_submit=8", "--iodepth_batch_complete_min=1", "--iodepth_batch_complete_max=32")
SIZE = 160 << 20
LEAST_OF_BARE = 0.9  # where bare itself does not reach a goal


@dataclass(frozen=True, slots=True)
class Case:
    device: str  # one of those of `paths`
    backend: str
    depth: int
    goal: float  # the least ratio to fio's
    batched: bool = False  # fio
    options: tuple[str, ...] = ()  # of fio

    @property
    def name(self) -> str:
        return f"{self.device}, {self.backend}, {self.depth}" + (", fio batched" if self.batched else "")

    @property
    def fio(self) -> tuple[str, ...]:
        return (*(REGISTERED if self.backend == "io_uring" else ()), *(BATCHED if self.batched else ()))


CASES = [
    Case("null", "null", 1, 2.0),
    Case("null", "null", 32, 10.0),
    *(
        case
        for pages in ("alike", "random")
        for case in (
            Case(f"zram, {pages}", "libaio", 1, 1.3),
            Case(f"zram, {pages}", "libaio", 32, 1.6),
            Case(f"zram, {pages}", "libaio", 32, 1.15, batched=True),
            Case(f"ext4, {pages}", "io_uring", 1, 1.3),
            Case(f"ext4, {pages}", "io_uring", 32, 1.5),
            Case(f"ext4, {pages}", "io_uring", 128, 1.5),
            Case(f"ext4, {pages}", "io_uring", 32, 1.15, batched=True),
        )
    ),
]

HEADER = (
    f"{'':38} {'ours k/s':>9} {'mean us':>8} {'fio k/s':>8} {'mean us':>8} {'bare k/s':>8} {'of fio':>7}"
    f" {'least .. most':>16} {'of bare':>8}  goal"
)


@dataclass(frozen=True, slots=True)
class Figure:
    per_core: float  # I/Os per second of CPU time
    mean_us: float  # from submission to completion


@contextlib.contextmanager
def paths(null_alone: bool) -> Iterator[dict[str, str]]:
    """A path for each device, or of the backend `null` alone; those that the machine cannot have are missing."""
    with contextlib.ExitStack() as undo:
        folder = undo.enter_context(devices.memory_folder())
        found = {"null": str(devices.image(folder, 1 << 30))}
        if null_alone:
            yield found
            return
        with contextlib.suppress(devices.Missing):
            found["loop"] = undo.enter_context(devices.loop())
        for pages, alike in (("alike", True), ("random", False)):
            with contextlib.suppress(devices.Missing):
                found[f"zram, {pages}"] = undo.enter_context(devices.zram(SIZE, alike))
                below = undo.enter_context(devices.zram(SIZE + SIZE // 4, alike))
                found[f"ext4, {pages}"] = str(undo.enter_context(devices.ext4_file(below, SIZE, alike)))
        yield found


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
    service_ns = sum(result.series(SERVICES[0], Moment.SUM) for result in measured)
    return Figure(count / cpu_ns * 1e9, service_ns / count / 1000)


def fio_job(words: list[str]) -> Mapping[str, float]:
    """What fio says of its one job, of random reads unless it is told otherwise: IOPS, busy (of one core), mean_us."""
    common = ["fio", "--name=bench", "--bs=4k", "--rw=randread", "--norandommap", "--direct=1", "--time_based"]
    done = subprocess.run(
        [*common, "--ramp_time=0.5", "--output-format=json", *words], capture_output=True, text=True, check=True
    )
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    done_ios = max(job["read"], job["write"], key=lambda direction: direction["iops"])
    return {
        "iops": done_ios["iops"],
        "busy": (job["usr_cpu"] + job["sys_cpu"]) / 100,
        "mean_us": done_ios["lat_ns"]["mean"] / 1e3,
    }


def theirs(case: Case, path: str, core: int, seconds: float) -> Figure:
    words = [f"--ioengine={case.backend}", f"--iodepth={case.depth}", f"--cpus_allowed={core}", f"--runtime={seconds}"]
    words += ["--size=1g"] if case.backend == "null" else [f"--filename={path}"]
    told = fio_job([*words, *case.fio])
    return Figure(told["iops"] / told["busy"], told["mean_us"])


def build(name: str, folder: Path) -> Path:
    """A program of one C file beside these parts."""
    program, source = folder / name, Path(__file__).parents[1] / f"{name}.c"
    subprocess.run(["gcc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, source, "-lm"], check=True)
    return program


def bare(program: Path, case: Case, path: str, core: int, seconds: float) -> float:
    """I/Os per second of CPU time; 0 where there is no such program."""
    if case.backend == "null":
        return 0.0
    words = [program, case.backend, path, case.depth, seconds, core]
    return float(subprocess.run([*map(str, words)], capture_output=True, text=True, check=True).stdout)


def row(program: Path, case: Case, path: str, core: int, seconds: float, repeat: int) -> str:
    turns = [
        (ours(case, path, core, seconds), theirs(case, path, core, seconds), bare(program, case, path, core, seconds))
        for _ in range(repeat)
    ]
    of_fio = sorted(us.per_core / fio.per_core for us, fio, _ in turns)
    best = max((us for us, _, _ in turns), key=lambda f: f.per_core)
    fio = max((fio for _, fio, _ in turns), key=lambda f: f.per_core)
    least = max(least for _, _, least in turns)
    verdict = "met" if middle(of_fio) >= case.goal else "NOT MET"
    of_bare = ""
    if least:
        part = middle([us.per_core / least for us, _, least in turns])
        itself = middle([least / fio.per_core for _, fio, least in turns])
        of_bare = f"{part:.2f}"
        if verdict != "met":
            may = itself < case.goal and part >= LEAST_OF_BARE
            verdict = f"{'met' if may else 'NOT MET'} (bare itself: {itself:.2f})"
    return (
        f"{case.name:38} {best.per_core / 1000:9.0f} {best.mean_us:8.2f} {fio.per_core / 1000:8.0f} {fio.mean_us:8.2f}"
        f" {least / 1000:8.0f} {middle(of_fio):7.2f} {of_fio[0]:6.2f} .. {of_fio[-1]:<6.2f} {of_bare:>8}"
        f" {case.goal:5.2f}  {verdict}"
    )


def middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
