"""What percentiles over time cost: histogram and latency logs of 128 devices, side by side with the published tools.

    scripts/bench percentiles                          2.4 GB of histogram rows, then 30 million samples, in --folder
    scripts/bench percentiles --logs 16 --samples 3000000
    scripts/bench percentiles --tools-logs 128         the published tools on everything: minutes, and 7.5 GB

The published tools come from --tools, or from Debian's fio package; fiologparser_hist.py needs a Python with pandas
(--tools-python). They run on the first --tools-logs logs, ours on the same ones beside them; fiologparser.py, whose
time grows with the square of the samples, on --tools-samples of one log. Each figure is of a process of its own.
The logs are made in a process apart: a child begins with its parent's memory, and that would be counted.
"""

import argparse
import gzip
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

BUCKETS = 1856
IOS_PER_ROW = 500
DISTINCT = 16  # logs that are really made; the others are copies of them
DEBIAN = Path("/usr/share/doc/fio")
OURS = [sys.executable, "-c", "from ivypy.master.cli.percentiles import percentiles; percentiles()"]
MB = 1e6


@dataclass(frozen=True)
class Figure:
    what: str
    wall_s: float
    cpu_s: float
    most_mb: float
    code: int

    def line(self, size: int, beside: "Figure | None" = None) -> str:
        ratio = f"{beside.wall_s / self.wall_s:8.1f} x" if beside else ""
        failed = f"   exit {self.code}" if self.code else ""
        rate = f"{size / self.wall_s / 1e9:6.2f} GB/s"
        return (
            f"{self.what:54} {self.wall_s:8.2f} s {self.cpu_s:8.2f} s cpu {self.most_mb:7.0f} MB {rate}{ratio}{failed}"
        )


def measured(what: str, command: Sequence[object]) -> Figure:
    """Run a process to its end; its output is thrown away."""
    with open(os.devnull, "wb") as nowhere:
        begun = time.perf_counter()
        process = subprocess.Popen([str(word) for word in command], stdout=nowhere, stderr=nowhere)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    return Figure(what, wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / MB, process.returncode)


def bucket_of(ns: "np.ndarray") -> "np.ndarray":
    """protocol/histogram.py's buckets, for arrays."""
    import numpy as np

    shift = np.maximum(np.floor(np.log2(np.maximum(ns, 1))).astype(np.int64) - 6, 0)
    fine = ((shift + 1) << 6) + ((ns >> shift) & 63)
    return np.minimum(np.where(ns < 128, ns, fine), BUCKETS - 1)


def histogram_logs(paths: Sequence[Path], rows: int) -> None:
    """Rows of a second, 500 I/Os each, lognormal: median 2 ms, sigma 0.7."""
    import numpy as np

    rng = np.random.default_rng(1)
    for number, path in enumerate(paths):
        if number >= DISTINCT:
            shutil.copyfile(paths[number % DISTINCT], path)
            continue
        buckets = bucket_of(rng.lognormal(np.log(2e6), 0.7, (rows, IOS_PER_ROW)).astype(np.int64))
        stamps = np.cumsum(1000 + (rng.random(rows) < 0.2)) + rng.integers(0, 300)
        with path.open("w", buffering=1 << 20) as out:
            for stamp, own in zip(stamps.tolist(), buckets, strict=True):
                cells = ["0"] * BUCKETS
                for bucket, count in zip(*np.unique(own, return_counts=True), strict=True):
                    cells[bucket] = str(count)
                out.write(f"{stamp}, 1, 4096, {', '.join(cells)}\n")


def latency_logs(paths: Sequence[Path], samples: int) -> None:
    """An hour of every I/O, in fio 3.18's five columns."""
    import numpy as np

    rng = np.random.default_rng(2)
    each = samples // len(paths)
    for number, path in enumerate(paths):
        if number >= DISTINCT:
            shutil.copyfile(paths[number % DISTINCT], path)
            continue
        stamps = np.sort(rng.integers(1, 3_600_000, each)).tolist()
        values = rng.lognormal(np.log(2e6), 0.7, each).astype(np.int64).tolist()
        path.write_text("".join(f"{s}, {v}, {s & 1}, 4096, 0\n" for s, v in zip(stamps, values, strict=True)))


def made(maker: Callable[[Sequence[Path], int], None], folder: Path, name: str, logs: int, size: int) -> list[Path]:
    """The logs that a process of its own made."""
    paths = [folder / f"syn_{name}.{number + 1}.log" for number in range(logs)]
    process = multiprocessing.get_context("spawn").Process(target=maker, args=(paths, size))
    process.start()
    process.join()
    return paths


def size_of(paths: Sequence[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def tool(name: str, tools: Path | None, folder: Path) -> Path | None:
    """A published tool, unpacked; None where it cannot be had."""
    if tools is not None:
        return next(iter(tools.rglob(name)), None)
    packed = DEBIAN / f"{name}.gz"
    if not packed.exists():
        return None
    path = folder / name
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path


def beside(arguments: argparse.Namespace, folder: Path, logs: Sequence[Path]) -> Iterator[str]:
    """The published tools on histogram logs, and ours on the same."""
    some = list(logs[: arguments.tools_logs])
    size = size_of(some)
    yield f"\nside by side on {len(some)} histogram logs, {size / 1e9:.2f} GB"
    runs = [
        ("fio-histo-log-pctiles.py", sys.executable, []),
        ("fiologparser_hist.py", arguments.tools_python, ["--noweight"]),
        ("fiologparser_hist.py", arguments.tools_python, []),
    ]
    ours = {
        way: measured(f"ivypy percentiles --weighting {way}", [*OURS, "--weighting", way, *some])
        for way in ("uniform", "in-flight")
    }
    for name, python, options in runs:
        path = tool(name, arguments.tools, folder)
        if (
            path is None
            or python is None
            or (name.startswith("fiologparser") and not arguments.slow_tools and not options)
        ):
            yield f"{name} {' '.join(options)}: not run (not found, no pandas, or no --slow-tools)"
            continue
        theirs = measured(f"{name} {' '.join(options)}", [python, path, *options, *some])
        yield theirs.line(size)
        way = "in-flight" if name == "fiologparser_hist.py" and not options else "uniform"
        yield ours[way].line(size, theirs)


def beside_latency(arguments: argparse.Namespace, folder: Path, log: Path) -> Iterator[str]:
    path = tool("fiologparser.py", arguments.tools, folder)
    if path is None:
        yield "fiologparser.py: not found"
        return
    text = path.read_text()
    path = folder / "fiologparser_5.py"  # Debian's copy wants exactly four columns
    path.write_text(text.replace("(time, value, foo, bar) = line", "(time, value, *_) = line"))
    short = folder / "short_clat.1.log"
    with log.open() as whole:
        short.write_text("".join(line for line, _ in zip(whole, range(arguments.tools_samples), strict=False)))
    yield f"\nside by side on {arguments.tools_samples} samples of one log"
    theirs = measured("fiologparser.py -a", [sys.executable, path, "-a", short])
    yield theirs.line(size_of([short]))
    yield measured("ivypy percentiles", [*OURS, short]).line(size_of([short]), theirs)


def bench(arguments: argparse.Namespace, folder: Path) -> Iterator[str]:
    logs = made(histogram_logs, folder, "clat_hist", arguments.logs, arguments.rows)
    size = size_of(logs)
    yield f"{len(logs)} histogram logs of {arguments.rows} rows x {BUCKETS} columns, {size / 1e9:.2f} GB"
    measured("warm", ["cat", *logs])
    cat = measured("cat", ["cat", *logs])
    yield cat.line(size)
    for way in ("uniform", "in-flight"):
        figure = measured(f"ivypy percentiles --weighting {way}", [*OURS, "--weighting", way, *logs])
        yield figure.line(size) + f"   {figure.wall_s / cat.wall_s:.1f} x cat"
    yield from beside(arguments, folder, logs)
    for path in logs:
        path.unlink()
    singles = made(latency_logs, folder, "clat", arguments.logs, arguments.samples)
    size = size_of(singles)
    yield f"\n{arguments.samples:,} samples in {len(singles)} latency logs, {size / 1e9:.2f} GB"
    measured("warm", ["cat", *singles])
    yield measured("cat", ["cat", *singles]).line(size)
    for way in ("uniform", "in-flight"):
        yield measured(f"ivypy percentiles --weighting {way}", [*OURS, "--weighting", way, *singles]).line(size)
    yield from beside_latency(arguments, folder, singles[0])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=128)
    parser.add_argument("--rows", type=int, default=3600)
    parser.add_argument("--samples", type=int, default=30_000_000)
    parser.add_argument("--folder", type=Path, default=Path("/dev/shm"), help="where the logs are made, for a while")
    parser.add_argument("--tools", type=Path, help="a folder with fio's tools")
    parser.add_argument("--tools-python", help="a Python that has pandas")
    parser.add_argument("--tools-logs", type=int, default=8)
    parser.add_argument("--tools-samples", type=int, default=20_000)
    parser.add_argument("--slow-tools", action="store_true", help="fiologparser_hist.py with weights as well")
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        for line in bench(arguments, Path(name)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
