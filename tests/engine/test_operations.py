"""How the I/Os of mixes count, in simulated time; and what trims and zeroes do to real devices and files."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivypy.protocol.counters import FLUSH, RESPONSES, SERVICES, Count, Kind, Moment
from ivypy.slave.engine import _engine
from tests.support import devices
from tests.support.engine import MS, Drive, Result, conserved, drive, fields

pytestmark = pytest.mark.slow

KIB, MIB = 1 << 10, 1 << 20
SIZE = 16 * MIB
WRITES = (Kind.RANDOM_WRITE, Kind.SEQUENTIAL_WRITE)
DATALESS = (Kind.TRIM, Kind.WRITE_ZEROES)
Mix = tuple[tuple[str, int, float], ...]
ALL: Mix = (
    ("read", 4 * KIB, 0.4),
    ("read", 64 * KIB, 0.1),
    ("write", 8 * KIB, 0.2),
    ("trim", 1 * MIB, 0.2),
    ("write_zeroes", 16 * KIB, 0.1),
)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return devices.image(tmp_path, SIZE)


@pytest.fixture
def simulated() -> Iterator[Drive]:
    yield from drive("simulated")


def of_mix(mix: Mix) -> dict[str, Any]:
    """What else of the parameters follows from it."""
    reads = sum(share for word, _, share in mix if word == "read")
    return {"operations": mix, "blocksize": max(size for _, size, _ in mix), "fraction_read": reads}


def check(step: Drive, mix: Mix) -> None:
    """Each I/O is in the series of its kind alone; only reads and writes have bytes elsewhere."""
    sizes = {word: {size for other, size, _ in mix if other == word} for word, _, _ in mix}
    for result in conserved(step):
        service = {kind: result.series(SERVICES[kind]) for kind in Kind}
        moved = {kind: result.series(SERVICES[kind], Moment.BYTES) for kind in Kind}
        flushes = result.total(Count.FLUSHES)
        assert sum(service.values()) == result.total(Count.COMPLETED) - flushes
        assert result.series(FLUSH) == flushes
        assert result.total(Count.BYTES) == sum(moved[kind] for kind in Kind if kind not in DATALESS)
        assert result.total(Count.WRITTEN) == sum(moved[kind] for kind in WRITES)
        for kind, word in zip(DATALESS, ("trim", "write_zeroes"), strict=True):
            if len(sizes.get(word, ())) == 1:
                (size,) = sizes[word]
                assert moved[kind] == service[kind] * size


def run(step: Drive, image: Path, mix: Mix, last: int = 3, **changes: Any) -> list[Result]:
    parameters = {"iops": -1.0, "maxtags": 8} | of_mix(mix) | changes
    step.create(0, step.lun(image, writable=True), **parameters)
    step.go([0], 10 * MS)
    step.engine.stop(last)
    step.finish()
    check(step, mix)
    return step.results


def count(step: Drive, kind: Kind, series: Sequence[int] = SERVICES) -> int:
    return sum(result.series(series[kind]) for result in step.results)


@pytest.mark.parametrize(
    ("changes", "read", "write"),
    [
        ({"iops": -1.0}, Kind.RANDOM_READ, Kind.RANDOM_WRITE),
        ({"iops": 50_000.0, "sequential": 0.5}, Kind.RANDOM_READ, Kind.RANDOM_WRITE),
        ({"iops": -1.0, "think_time": 0.0003}, Kind.RANDOM_READ, Kind.RANDOM_WRITE),
        ({"iops": -1.0, "iosequencer": "sequential", "streams": 3}, Kind.SEQUENTIAL_READ, Kind.SEQUENTIAL_WRITE),
    ],
)
def test_each_kind_has_series_of_its_own(
    simulated: Drive, image: Path, changes: dict[str, Any], read: Kind, write: Kind
) -> None:
    run(simulated, image, ALL, **changes)
    done = simulated.total(Count.COMPLETED)
    for kind, share in ((read, 0.5), (write, 0.2), (Kind.TRIM, 0.2), (Kind.WRITE_ZEROES, 0.1)):
        assert abs(count(simulated, kind) - done * share) < 5 * (done * share * (1 - share)) ** 0.5
        assert count(simulated, kind, RESPONSES) == (count(simulated, kind) if changes["iops"] > 0 else 0)


@pytest.mark.parametrize("iops", [-1.0, 5000.0, 1e6])
@pytest.mark.parametrize(
    ("until", "low", "high"),
    [
        (("ios", 500), 500, 500),
        (("bytes", 8 * MIB), 8 * MIB, 8 * MIB + 64 * KIB - 1),
        (("read", 4 * MIB), 4 * MIB, 4 * MIB + 64 * KIB - 1),
        (("written", 2 * MIB), 2 * MIB, 2 * MIB + 8 * KIB - 1),
    ],
)
def test_an_end_by_volume_counts_what_it_says(
    simulated: Drive, image: Path, iops: float, until: tuple[str, int], low: int, high: int
) -> None:
    """At a rate, too: nothing that it needs is missing, and nothing goes on."""
    run(simulated, image, ALL, last=100, iops=iops, until=until)
    assert simulated.results[-1].total(Count.ENDED_NS) > 0
    assert simulated.results[-1].total(Count.LEFT) == 0
    amounts = {
        "ios": simulated.total(Count.COMPLETED),
        "bytes": simulated.total(Count.BYTES),
        "read": simulated.total(Count.BYTES) - simulated.total(Count.WRITTEN),
        "written": simulated.total(Count.WRITTEN),
    }
    assert low <= amounts[until[0]] <= high
    assert until[0] != "ios" or simulated.total(Count.DUE) == 500


def test_flushes_follow_writes_alone(simulated: Drive, image: Path) -> None:
    run(simulated, image, ALL, flush=("fdatasync", 4), maxtags=1, until=("ios", 2000))
    writes = count(simulated, Kind.RANDOM_WRITE)
    assert simulated.total(Count.COMPLETED) - simulated.total(Count.FLUSHES) == 2000
    assert simulated.total(Count.FLUSHES) in (writes // 4, (writes - 1) // 4)


WORDS = st.sampled_from(["read", "write", "trim", "write_zeroes"])
MIXES = st.lists(st.tuples(WORDS, st.sampled_from([4 * KIB, 8 * KIB, 32 * KIB])), min_size=1, max_size=6).map(
    lambda parts: tuple((word, size, 1 / (len(parts) + 2)) for word, size in (*parts, ("read", 8192), ("write", 4096)))
)
SETTINGS = st.fixed_dictionaries(
    {"iops": st.sampled_from([-1.0, 0.0, 700.0, 50_000.0, 1e6]), "maxtags": st.integers(1, 32), "mix": MIXES}
)


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([("never", 0), ("ios", 700), ("bytes", 6 * MIB), ("read", MIB), ("written", MIB)]),
    st.sampled_from([{}, {"sequential": 0.4}, {"iosequencer": "sequential", "cursors": "by_operation", "streams": 2}]),
    st.sampled_from([("fsync", 0), ("fsync", 3)]),
    st.sampled_from([0.0, 0.0003]),
    st.lists(SETTINGS, min_size=1, max_size=5),
)
def test_whatever_is_edited_all_adds_up(
    until: tuple[str, int], ways: dict[str, Any], flush: tuple[str, int], think: float, edits: list[dict[str, Any]]
) -> None:
    common = {"until": until, "flush": flush, "think_time": think} | ways
    all_parts = [part for setting in edits for part in setting["mix"]]

    def parameters(setting: dict[str, Any]) -> dict[str, Any]:
        rest = {name: value for name, value in setting.items() if name != "mix"}
        return common | rest | of_mix(setting["mix"])

    with devices.memory_folder() as folder:
        for step in drive("simulated"):
            lun = step.lun(devices.image(folder, SIZE), writable=True)
            step.create(0, lun, ceilings=(32, 32 * KIB), **parameters(edits[0]))
            step.go([0], MS)
            for number, setting in enumerate([*edits[1:], edits[0] | {"iops": -1.0}], 1):
                step.until(len(step.results) + 2)
                step.edit(number, [(0, fields(**parameters(setting)))])
            while until[1] and (not step.results or not step.results[-1].total(Count.ENDED_NS)):
                step.until(len(step.results) + 1)
            step.engine.stop(len(step.results))
            step.finish()
            check(step, tuple(all_parts))


# On real things.


def whole(path: Path | str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def drive_all(step: Drive, path: object, word: str, span: tuple[int, int], unit: int = 64 * KIB) -> None:
    """Once over a range, in order."""
    mix: Mix = ((word, unit, 1.0),)
    step.create(
        0,
        step.lun(path, writable=True),
        iops=-1.0,
        maxtags=4,
        iosequencer="sequential",
        range=span,
        until=("ios", (span[1] - span[0]) // unit),
        extents=(span,),
        ceilings=(4, 4 * KIB),  # no buffer is as large as what moves no data
        **of_mix(mix) | {"fraction_read": 0.0},
    )
    step.go([0], 10 * MS)
    while not step.results or not step.results[-1].total(Count.ENDED_NS):
        step.until(len(step.results) + 1)
    step.engine.halt()
    step.finish()
    check(step, mix)
    assert step.total(Count.ERRORS) == 0, [result.raw.faults for result in step.results]


FROM, BEHIND = 1 * MIB, 3 * MIB


@pytest.mark.parametrize("word", ["trim", "write_zeroes"])
def test_on_a_block_device_the_range_reads_as_zeros_and_no_byte_else(word: str, tmp_path: Path) -> None:
    try:
        with devices.memory_folder() as folder:
            backing = folder / "backing"
            backing.write_bytes(os.urandom(8 * MIB))
            before, blocks = whole(backing), backing.stat().st_blocks
            with devices.loop_over(backing) as path:
                for step in drive("io_uring"):
                    drive_all(step, path, word, (FROM, BEHIND))
            after = whole(backing)
            assert after[FROM:BEHIND] == bytes(BEHIND - FROM)
            assert (after[:FROM], after[BEHIND:]) == (before[:FROM], before[BEHIND:])
            given_back = (blocks - backing.stat().st_blocks) * 512
            assert given_back == (BEHIND - FROM if word == "trim" else given_back)
    except devices.Missing as missing:
        pytest.skip(f"this machine lacks {missing}")


@pytest.mark.parametrize("word", ["trim", "write_zeroes"])
def test_of_a_file_likewise(word: str) -> None:
    """Its size stays."""
    path = Path.cwd() / ".venv" / f"zeroed-{os.getpid()}"  # of a file system of a disk: tmpfs zeroes no range
    try:
        path.write_bytes(os.urandom(4 * MIB))
        before = whole(path)
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
        except OSError:
            pytest.skip("this file system lacks O_DIRECT")
        for step in drive("io_uring"):
            drive_all(step, path, word, (FROM, BEHIND))
        after = whole(path)
        assert after[FROM:BEHIND] == bytes(BEHIND - FROM)
        assert (after[:FROM], after[BEHIND:]) == (before[:FROM], before[BEHIND:])
    finally:
        path.unlink()


# What is refused.

TRIMS: Mix = (("read", 4 * KIB, 0.5), ("trim", 4 * KIB, 0.5))
ZEROES: Mix = (("read", 4 * KIB, 0.5), ("write_zeroes", 4 * KIB, 0.5))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"operations": (("read", 4 * KIB, 0.5),)}, "do not add up to 1"),
        ({"operations": (("read", 4 * KIB, 0.0), ("read", 8 * KIB, 1.0))}, "a share that is not above 0"),
        ({"operations": (("read", 4 * KIB, float("nan")),)}, "a share that is not above 0"),
        ({"operations": (("read", 100, 1.0),)}, "not a multiple of the LUN's logical block size"),
        ({"operations": (("read", 0, 1.0),)}, "not a multiple of the LUN's logical block size"),
        ({"operations": (("read", 128 * KIB, 1.0),)}, "above the ceiling"),
        ({"align": 100}, "align is not a multiple"),
        ({"align": 32 * MIB, "range": (512, 16 * MIB)}, "has no place for the largest I/O at a multiple of align"),
        ({"sequential": 1.5}, "sequential is not in 0 to 1"),
        ({"sequential": 0.5, "iosequencer": "sequential"}, "for a random workload"),
        ({"sequential": 0.5, "random_map": True}, "for a random workload without random_map"),
        ({"streams": 2}, "streams is for a sequential workload"),
        (
            {"streams": 200, "iosequencer": "sequential", "blocksize": 64 * KIB, "range": (0, 4 * MIB)},
            "a stream's part",
        ),
        ({"random_map": True, "align": 8 * KIB}, "random_map is for I/Os of one size"),
        ({"random_map": True, "operations": (("read", 4096, 0.5), ("read", 8192, 0.5))}, "for I/Os of one size"),
        ({"operations": TRIMS, "until": ("written", 1)}, "counts what is written, and nothing is"),
        ({"operations": (("trim", 4096, 1.0),), "until": ("bytes", 1)}, "trims and zeroes move none"),
        ({"operations": (("trim", 32 * MIB, 1.0),)}, "has no place for the largest I/O"),
    ],
)
def test_no_mix_that_cannot_be(simulated: Drive, image: Path, changes: dict[str, Any], words: str) -> None:
    lun = simulated.lun(image, writable=True)
    with pytest.raises(OSError, match=words):
        simulated.create(0, lun, ceilings=(4, 64 * KIB), **changes)


@pytest.mark.parametrize("operations", [TRIMS, ZEROES])
def test_what_trims_or_zeroes_needs_consent(simulated: Drive, image: Path, operations: Mix) -> None:
    with pytest.raises(OSError, match="opened read-only"):
        simulated.create(0, simulated.lun(image), operations=operations, fraction_read=1.0)
    lun = simulated.lun(image, writable=True)
    with pytest.raises(PermissionError, match="what was agreed to"):
        simulated.create(0, lun, operations=operations, fraction_read=1.0, extents=((0, MIB),))
    simulated.create(0, lun, extents=((0, MIB),))
    with pytest.raises(OSError, match="what was agreed to"):
        simulated.engine.edit(1, [(0, fields(operations=operations))])


def test_reads_alone_need_none(simulated: Drive, image: Path) -> None:
    mix: Mix = (("read", 4 * KIB, 0.7), ("read", 8 * KIB, 0.3))
    simulated.create(0, simulated.lun(image), extents=(), ceilings=(4, 8 * KIB), **of_mix(mix))


@pytest.mark.parametrize("operations", [TRIMS, ZEROES])
@pytest.mark.parametrize("backend", ["libaio", "io_uring+polled"])
def test_a_backend_without_them_is_refused_at_once(backend: str, operations: Mix, image: Path) -> None:
    abilities = _engine.abilities()
    assert [name for name in abilities if abilities[name].trims] == ["io_uring", "null"]
    for step in drive("io_uring" if "+" in backend else backend):
        lun = step.lun(image, writable=True)
        if "+" in backend:
            step.create(0, lun, operations=operations, fraction_read=0.5)
            with pytest.raises(OSError, match="polled"):
                step.engine.use("io_uring", polled=True)
            return
        with pytest.raises(OSError, match=f"{backend} neither trims nor writes zeroes"):
            step.create(0, lun, operations=operations, fraction_read=0.5)
        step.create(0, lun)
        with pytest.raises(OSError, match=f"{backend} neither trims nor writes zeroes"):
            step.engine.edit(1, [(0, fields(operations=operations, fraction_read=0.5))])


def test_a_device_that_may_not_be_trimmed_is_asked_nothing() -> None:
    """The trial of a trim on nothing tells a driver without trims, not a LUN without consent."""
    try:
        with devices.loop(8 * MIB) as path:
            for step in drive("io_uring"):
                with pytest.raises(OSError, match="opened read-only"):
                    step.create(0, step.lun(path), operations=TRIMS, fraction_read=0.5)
                step.create(0, step.lun(path, writable=True), operations=TRIMS, fraction_read=0.5)
    except devices.Missing as missing:
        pytest.skip(f"this machine lacks {missing}")


@pytest.mark.parametrize(
    "mix", [("read",), (("read", 4096),), (("write", 4096, "much"),), "read", (("fly", 4096, 1.0),)]
)
def test_what_is_no_mix_is_a_fault_of_the_caller(simulated: Drive, image: Path, mix: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        simulated.create(0, simulated.lun(image, writable=True), operations=mix)
