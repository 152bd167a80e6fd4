"""The engine beside fio, on one pinned core: `python -m tests.bench.engine [--seconds S] [--repeat N] [--core C]`.

What is measured and how stands in parts/: closed_loop.py, paced.py, blocking.py, loads.py, written_data.py,
instructions.py.
`--only TEXT`: the rows whose name holds it. On a machine with other load, `--fifo` keeps it from taking the core that
is measured.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ivypy.slave.engine._engine import backends
from tests.support import devices

from .parts import blocking, closed_loop, instructions, loads, paced, written_data


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench engine", description="The engine beside fio, on one pinned core.")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument(
        "--only",
        default="",
        help="rows whose name holds this: null, libaio, io_uring, alike, CPU, page cache, mix ...",
    )
    parser.add_argument("--before", type=Path, help="another checkout, to measure lateness of in turn with this one's")
    parser.add_argument("--fifo", action="store_true", help="measure before all else that runs here (as root)")
    chosen = parser.parse_args(words)
    if chosen.fifo:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))  # and of all that it starts
    for program in ("fio", "gcc"):
        if shutil.which(program) is None:
            print(f"this machine lacks {program}", file=sys.stderr)
            return 1
    cores = sorted(os.sched_getaffinity(0))
    others = {*cores} - {chosen.core}
    if others:
        os.sched_setaffinity(0, others)  # the collector's; the engine's thread is pinned by itself
    version = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{version}; core {chosen.core} of {os.cpu_count()}; load {os.getloadavg()[0]:.1f}; {chosen.repeat} turns")
    print(closed_loop.HEADER)
    null_alone = chosen.only.startswith("null")  # seconds until the other devices are full of data
    for name, measure in measurements(cores, chosen.core, chosen.seconds, chosen.repeat, chosen.before, null_alone):
        if chosen.only in name:
            print(measure(), flush=True)
    return 0


def measurements(
    cores: Sequence[int], core: int, seconds: float, repeat: int, before: Path | None, null_alone: bool
) -> Iterator[tuple[str, Callable[[], str]]]:
    """(its name, what makes its lines), in order; what the machine cannot have is left out."""
    with closed_loop.paths(null_alone) as found, devices.memory_folder() as folder:
        bare = closed_loop.build("bare", folder)
        for case in closed_loop.CASES:
            path = found.get(case.device)
            if path and case.backend in backends():
                yield case.name, lambda case=case, path=path: closed_loop.row(bare, case, path, core, seconds, repeat)  # type: ignore[misc]
        for name in ("zram, alike", "zram, random"):
            if path := found.get(name):
                yield f"CPU, {name}", lambda path=path: paced.cost(bare, path, core, seconds, repeat)  # type: ignore[misc]
                yield (
                    f"lateness, {name}",
                    lambda path=path: paced.lateness_beside(path, core, seconds, repeat),  # type: ignore[misc]
                )
        if path := found.get("loop"):
            floor = closed_loop.build("floor", folder)
            yield "on time", lambda: paced.on_time(floor, path, core, seconds, repeat, before)
            yield "low depth", lambda: paced.low_depth(path, core, seconds, repeat)
            if len(cores) >= blocking.THREADS:
                yield "neighbours of blocking submits", lambda: blocking.neighbours(cores, path, seconds, repeat)
                if zram := found.get("zram, random"):
                    yield "cost of blocking submits", lambda: blocking.cost(cores, zram, path, seconds, repeat)
        if file := found.get("ext4, random"):
            yield "page cache", lambda: "\n".join(loads.rows(loads.PAGE_CACHE, file, core, seconds, repeat))
            yield "mix", lambda: "\n".join(loads.rows(loads.MIXES, file, core, seconds, repeat))
        yield "written data", lambda: written_data.rows(found["null"], core, seconds, repeat)
        yield "instructions", lambda: "\n".join(instructions.rows(folder, found["null"]))


if __name__ == "__main__":
    sys.exit(main())
