"""Jobs with several sizes, operations and orders of addresses: what the plan has; its I/Os are those of fio."""

import math
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from ivypy.master.imports.description import ImportContext
from ivypy.master.imports.fio import read_fio
from ivypy.master.imports.fio_sizes import of_range, of_split
from ivypy.master.imports.to_plan import to_plan
from ivypy.master.plan.load import read
from ivypy.protocol.parameters import MAX, Iosequencer, Operation, Parameters
from tests.support.mixes import Part, Ways, drawn

DEVICE = "filename=/dev/sdb\ndirect=1\nioengine=io_uring\ntime_based\nruntime=9\n"
KIB, GIB = 1 << 10, 1 << 30


def text_of(options: str) -> str:
    around = ImportContext("/data", {}, lambda name: "", lambda path: False)
    return to_plan(read_fio(f"[job]\n{DEVICE}{options}\n", "job.fio", around), "ivypy import job.fio")


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ("rw=rw\nrwmixread=70", ["sequential", "fraction_read: 70%", "cursors: by_operation"]),
        ("rw=rw\nrate_iops=50", ["fraction_read: 50%", "iops: 100", "cursors: by_operation"]),
        ("rw=readwrite\nbs=4k,8k", ["blocksize: { read: 4KiB, write: 8KiB }", "cursors: by_operation"]),
        ("rw=read\nbssplit=4k/60:64k/40", ["blocksize: { 4KiB: 60%, 64KiB: 40% }"]),
        ("rw=randrw\nbssplit=4k/60:64k/40\nnorandommap", ["blocksize: { 4KiB: 60%, 64KiB: 40% }"]),
        ("rw=randrw\nnorandommap\nbssplit=4k/60:8k,16k", ["{ read: { 4KiB: 60%, 8KiB: 40% }, write: 16KiB }"]),
        ("rw=read\nbssplit=4k/60:6k/40", ["blocksize: 4KiB\n"]),  # a size is a multiple of the smallest
        ("rw=read\nbssplit=4k/60:6k/40\nbs_unaligned", ["{ 4KiB: 60%, 6KiB: 40% }", "align: 2KiB"]),
        ("rw=randread\nbssplit=16k/100:4k/0", ["blocksize: 16KiB", "align: 4KiB"]),
        ("rw=read\nbsrange=4k-16k", ["blocksize: { 4KiB: 25%, 8KiB: 25%, 12KiB: 25%, 16KiB: 25% }"]),
        ("rw=read\nbsrange=16k-8k", ["blocksize: { 8KiB: 50%, 16KiB: 50% }"]),
        ("rw=randread\nbs=16k\nba=4k", ["blocksize: 16KiB", "align: 4KiB"]),
        ("rw=randwrite\nbs=16k\nba=4k,8k", ["align: 8KiB"]),
        ("rw=randread\nnorandommap\npercentage_random=30", ["iosequencer: random_steady", "sequential: 70%"]),
        ("rw=randrw\nnorandommap\npercentage_random=30", ["sequential: 70%", "cursors: by_operation"]),
        ("rw=randrw\npercentage_random=0", ["iosequencer: sequential", "cursors: by_operation"]),
        ("rw=trim\nbs=1m", ["iosequencer: sequential", "operations: { trim: 100% }", "# destroy: true"]),
        ("rw=randtrim\nbs=4k,8k\niodepth=8", ["blocksize: 8KiB", "random_map: true", "maxtags: 1 "]),
        ("rw=trim\nbs=1m\ntime_based=0\nloops=2", ["until: { ios: 2x }"]),
        ("rw=trim\nbs=1m\ntime_based=0\nio_size=5m", ["until: { ios: 5 }"]),
        ("rw=read\nbs=32m", ["blocksize: 32MiB"]),
        ("rw=randread\nbs=4k\nba=4k", ["random_map: true"]),
        ("rw=write\nioengine=libaio", ['backend: "libaio"']),
    ],
)
def test_what_the_plan_has(options: str, lines: list[str]) -> None:
    text = text_of(options)
    assert [line for line in lines if line not in text] == [], text
    assert read(text.replace("# destroy: true", "destroy: true"), "job.yaml")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("rw=randread\nbs=16k\nba=4k", ["random_map"]),  # fio has none then
        ("rw=randread\nbs=4k,8k\nba=4k", ["random_map", "align"]),  # nor then
        ("rw=randtrim\nioengine=libaio", ["backend", "direct"]),
        ("rw=read\nbs=16k\nba=1m", ["align"]),
        ("rw=read\npercentage_random=30", ["sequential: "]),
        ("rw=randread\npercentage_random=30", ["cursors", "random_map"]),
    ],
)
def test_what_the_plan_leaves_out(options: str, words: list[str]) -> None:
    assert [word for word in words if f"{word}:" in text_of(options).replace("# not in", "")] == []


def test_a_range_of_too_many_sizes_has_its_mean() -> None:
    for low, high in ((4, 1024), (4, 4 * 65), (1, 4096), (8, 8 * 100 + 4)):
        drawn = of_range(low * KIB, high * KIB, 64)
        whole = of_range(low * KIB, high * KIB, 1 << 20)
        assert len(drawn.weighted) == 64 and not drawn.is_whole and whole.is_whole
        assert drawn.mean == pytest.approx(whole.mean, rel=0.02)
        assert all(size % (low * KIB) == 0 for size in drawn.all)


def test_a_split_of_too_many_sizes_has_its_mean() -> None:
    split = tuple((size * 4 * KIB, 2) for size in range(1, 51))
    drawn, whole = of_split(split, 4 * KIB, 4 * KIB, 32), of_split(split, 4 * KIB, 4 * KIB, 64)
    assert len(drawn.weighted) <= 32 and not drawn.is_whole and whole.is_whole
    assert drawn.mean == pytest.approx(whole.mean, rel=0.02)


# The same I/Os.


class Io(NamedTuple):
    op: Operation
    offset: int
    bytes: int


ALIKE = [
    "rw=rw\nrwmixread=70\nbs=4k,16k",
    "rw=rw\nbssplit=4k/50:8k/30:16k,64k",
    "rw=read\nbsrange=4k-64k",
    "rw=read\nbsrange=6k-20k",
    "rw=write\nbssplit=4k/60:10k/40\nbs_unaligned",
    "rw=randrw\nrwmixread=30\nbs=4k,8k\nnorandommap",
    "rw=randrw\nbssplit=4k/60:64k/40,16k\nnorandommap",
    "rw=randread\nbssplit=4k/60:64k/40\nnorandommap\noffset=64k",
    "rw=randread\nbssplit=6k/50:8k/20:13k/30\nnorandommap",
    "rw=randwrite\nbsrange=4k-18k\nnorandommap",
    "rw=randread\nbs=16k\nba=4k",
    "rw=randread\nbs=4k\nba=64k",
    "rw=randwrite\nbssplit=4k/50:64k/50\nba=512",
    "rw=randread\npercentage_random=30\nnorandommap",
    "rw=randrw\npercentage_random=60\nbs=4k,8k\nnorandommap",
    "rw=randrw\npercentage_random=0\nrwmixread=80",
    "rw=randtrim\nbs=4k,8k,64k\nnorandommap",
    "rw=trim\nbsrange=64k-256k",
]
COUNT = 20_000
SIGMAS = 5.0  # the seeds of both are fixed


def ios_of_fio(options: str, folder: Path) -> list[Io]:
    words = [f"--{line}" for line in options.split("\n")]
    common = ["--name=job", "--filename=none", "--ioengine=null", "--size=1g", f"--number_ios={COUNT}", "--io_size=1t"]
    subprocess.run(
        ["fio", *common, "--write_iolog=log", "--output=out", *words], cwd=folder, check=True, timeout=120,
        capture_output=True,
    )  # fmt: skip
    lines = [line.split() for line in (folder / "log").read_text().splitlines()]
    drawn = [line[-3:] for line in lines if line[-3] in ("read", "write", "trim")]
    return [Io(Operation(operation), int(offset), int(size)) for operation, offset, size in drawn]


def ios_of_ivypy(options: str) -> list[Io]:
    """The first that the engine's mix draws."""
    plan = read(text_of(options).replace("# destroy: true", "destroy: true"), "job.yaml")
    (workload,) = plan.workloads
    parameters = workload.parameters.absolute(GIB, "file", MAX)
    ways = Ways(
        order="sequential" if parameters.iosequencer is Iosequencer.SEQUENTIAL else "random",
        align=parameters.align, sequential=parameters.sequential,
        by_operation=parameters.cursors == "by_operation", span=parameters.range, size=GIB,
    )  # fmt: skip
    operations = list(Operation)
    return [Io(operations[io.op], io.offset, io.bytes) for io in drawn(parts_of(parameters), COUNT, ways)]


def parts_of(parameters: Parameters) -> list[Part]:
    operations = list(Operation)
    reads = parameters.fraction_read
    plain = [(Operation.READ, parameters.blocksize, reads), (Operation.WRITE, parameters.blocksize, 1 - reads)]
    parts = [(part.operation, part.bytes, part.share) for part in parameters.operations] or plain
    return [Part(share, size, operations.index(one)) for one, size, share in parts if share]


def shares(ios: Sequence[Io]) -> dict[object, float]:
    """What can be said of a load by counting: how often each operation and size, and what follows what."""
    counts: Counter[object] = Counter((io.op, io.bytes) for io in ios)
    counts["follows any"] = sum(b.offset == a.offset + a.bytes for a, b in pairwise(ios))
    last: dict[Operation, Io] = {}
    for io in ios:
        before = last.get(io.op)
        counts["follows its own"] += before is not None and io.offset == before.offset + before.bytes
        last[io.op] = io
    counts["in the first half"] = sum(io.offset < GIB // 2 for io in ios)
    return {key: count / len(ios) for key, count in counts.items()}


def units(ios: Sequence[Io]) -> dict[Operation, int]:
    return {op: math.gcd(*(io.offset for io in ios if io.op is op)) for op in {io.op for io in ios}}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fio") is None, reason="this machine lacks fio")
@pytest.mark.parametrize("options", ALIKE)
def test_operations_sizes_and_places_are_those_of_fio(options: str, tmp_path: Path) -> None:
    theirs, ours = ios_of_fio(options, tmp_path), ios_of_ivypy(options)
    assert len(theirs) == len(ours) == COUNT
    of_fio, of_ivypy = shares(theirs), shares(ours)
    assert of_fio.keys() == of_ivypy.keys()
    for key, share in of_fio.items():
        sigma = math.sqrt(max(share * (1 - share), 1 / COUNT) * 2 / COUNT)
        if key != "in the first half" or ("rw=rand" in options and "percentage_random=0" not in options):
            assert abs(share - of_ivypy[key]) <= SIGMAS * sigma, key
    assert units(theirs) == units(ours)
    assert min(io.offset for io in theirs) // (1 << 20) == min(io.offset for io in ours) // (1 << 20)
