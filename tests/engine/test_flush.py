"""Flushes (`flush`, `end_fsync`), in simulated time, where figures are exact."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivypy.protocol.counters import DELAYED, FLUSH, LATENESS, RESPONSES, SERVICES, Count, Kind, Moment
from tests.support import devices
from tests.support.engine import BACKENDS, MS, Drive, conserved, drive, fields, run

pytestmark = pytest.mark.slow

SIZE = 16 << 20
EACH_NS = 11_000  # to submit a batch, and to poll: what completes does so meanwhile
WRITE_KINDS = (Kind.RANDOM_WRITE, Kind.SEQUENTIAL_WRITE)
WRITES: dict[str, Any] = {"iops": -1.0, "fraction_read": 0.0}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return devices.image(tmp_path, SIZE)


@pytest.fixture
def simulated() -> Iterator[Drive]:
    yield from drive("simulated")


def start(step: Drive, image: Path, length_ns: int = 10 * MS, **changes: Any) -> None:
    step.create(0, step.lun(image, writable=True), **WRITES | changes)
    step.go([0], length_ns)


def finish(step: Drive, last: int) -> None:
    step.engine.stop(last)
    step.finish()
    check(step)


def check(step: Drive) -> None:
    """A flush is an I/O that was due and completed, and is in no series but its own."""
    for result in conserved(step):
        flushes = result.total(Count.FLUSHES)
        assert result.series(FLUSH) == flushes
        assert result.series(FLUSH, Moment.BYTES) == 0
        assert sum(result.series(SERVICES[kind]) for kind in Kind) == result.total(Count.COMPLETED) - flushes
        assert result.series(DELAYED) <= result.total(Count.COMPLETED) - flushes
        written = sum(
            result.series(SERVICES[kind], Moment.BYTES) for kind in (Kind.RANDOM_WRITE, Kind.SEQUENTIAL_WRITE)
        )
        assert result.total(Count.WRITTEN) == written


def writes(step: Drive) -> int:
    return step.total(Count.COMPLETED) - step.total(Count.FLUSHES)


def ended_ns(step: Drive) -> int:
    """After the step's start; 0: it has not ended."""
    last = step.results[-1]
    age_ns = int(last.counts[0, Count.ENDED_NS])
    return last.raw.start_ns + last.raw.length_ns - age_ns - step.start_ns if age_ns else 0


@pytest.mark.parametrize(
    ("maxtags", "every", "ios", "flushes", "batches"),
    [
        (1, 1, 5, 4, 9),  # what the last write calls for would come after its end
        (1, 4, 60, 14, 74),
        (4, 6, 71, 11, 21),  # all tags are always in use
        (4, 4, 16, 3, 5),  # four writes; a flush and three; four; a flush and three; a flush and two
        (4, 4, 17, 4, 6),
        (4, 1, 8, 7, 4),  # four writes, four flushes, and again; three of the last are not the last
    ],
)
def test_it_goes_first_after_so_many_acknowledged_writes(
    simulated: Drive, image: Path, maxtags: int, every: int, ios: int, flushes: int, batches: int
) -> None:
    start(simulated, image, maxtags=maxtags, flush=("fsync", every), until=("ios", ios))
    finish(simulated, 1)
    assert (writes(simulated), simulated.total(Count.FLUSHES)) == (ios, flushes)
    assert ended_ns(simulated) == batches * EACH_NS


@dataclass(frozen=True)
class Outcome:
    """Of writes and flushes that take time."""

    writes: int
    flushes: int
    at_once: int  # the most flushes that were in flight at a time
    ended_ns: int  # after the step's start; 0: it did not
    backlog: int


def outcome(
    maxtags: int,
    every: int,
    ios: int = 0,
    write_ns: int = MS,
    flush_ns: int = MS,
    spread_ns: int = 0,
    iops: float = -1.0,
    think_ns: int = 0,
    end_fsync: bool = False,
) -> Outcome:
    """`ios`: until so many, else for a second. `spread_ns`: up to so much more each takes, at random."""
    words = (maxtags, every, ios, write_ns, flush_ns, spread_ns, iops, think_ns, int(end_fsync))
    with devices.memory_folder() as folder:
        printed = run("faults", "flushing", devices.image(folder, SIZE), *words, sanitizer="simulated")
    return Outcome(*map(int, printed.split()))


# What submission takes of each I/O of one tag, at most: a batch, and polls until its time.
PASS_NS = 1200


@pytest.mark.parametrize(
    ("maxtags", "every", "ios", "end_fsync", "flushes", "at_once", "ended_ms"),
    [
        (1, 32, 64, False, 1, 1, 64 + 30),
        (1, 32, 65, False, 2, 1, 65 + 2 * 30),
        (1, 32, 64, True, 2, 1, 64 + 2 * 30),
        (1, 32, 65, True, 3, 1, 65 + 3 * 30),
        # Flushes 1, 2, 3 begin after 1, 3, 4 ms, beside three, two, and one at a time of the other writes. The 16th
        # completes after 8 ms:
        (4, 4, 16, False, 3, 3, 4 + 30),
        (4, 4, 16, True, 4, 3, 4 + 30 + 30),
        (4, 4, 17, False, 4, 4, 8 + 30),  # flush 4 has the last tag; write 17 waits until flush 1 has ended
        (4, 4, 17, True, 5, 4, 8 + 30 + 30),
        (4, 1, 5, False, 4, 4, 1 + 30 + 1),  # four flushes, then the last write
        (4, 1, 6, False, 5, 4, 1 + 30 + 1 + 30),  # the last two, and a flush for the first of these
        (32, 32, 64, False, 1, 1, 1 + 30),
    ],
)
def test_writes_wait_for_the_tags_of_flushes(
    maxtags: int, every: int, ios: int, end_fsync: bool, flushes: int, at_once: int, ended_ms: int
) -> None:
    """Writes take 1 ms, flushes 30."""
    done = outcome(maxtags, every, ios, flush_ns=30 * MS, end_fsync=end_fsync)
    assert (done.writes, done.flushes, done.at_once) == (ios, flushes, at_once)
    assert ended_ms * MS <= done.ended_ns <= ended_ms * MS + (ios + flushes) * PASS_NS


@pytest.mark.parametrize(("maxtags", "every", "flush_ms"), [(1, 32, 30), (4, 4, 10), (4, 1, 3), (32, 32, 30)])
def test_flushes_take_their_part_of_the_tags(maxtags: int, every: int, flush_ms: int) -> None:
    """All tags are in use: for a write's time, 1 ms, and the part of a flush that falls to it."""
    done = outcome(maxtags, every, flush_ns=flush_ms * MS)
    assert done.writes == pytest.approx(1000 * maxtags / (1 + flush_ms / every), rel=0.05)
    assert done.writes // every - maxtags <= done.flushes + done.at_once and done.flushes <= done.writes // every


@pytest.mark.parametrize(
    ("maxtags", "every", "flush_ms", "iops", "backlog"),
    [
        (1, 10, 9, 1000.0, 1000 - 526),  # ten writes in 19 ms
        (4, 4, 10, 2000.0, 2000 - 1143),  # 4 / (1 + 10 / 4) a millisecond
        (4, 4, 10, 1000.0, 0),
    ],
)
def test_what_slow_flushes_keep_from_its_tag_waits(
    maxtags: int, every: int, flush_ms: int, iops: float, backlog: int
) -> None:
    done = outcome(maxtags, every, flush_ns=flush_ms * MS, iops=iops)
    assert done.backlog == pytest.approx(backlog, abs=25)
    assert done.writes + done.backlog == pytest.approx(iops, abs=maxtags)


def test_each_user_flushes_after_its_write_however_long_that_takes() -> None:
    """A user's cycle: 2 ms, a write of 1 ms, a flush of 5."""
    done = outcome(3, 1, flush_ns=5 * MS, think_ns=2 * MS)
    assert done.writes == pytest.approx(3 * 1000 / (2 + 1 + 5), abs=4)
    assert abs(done.writes - done.flushes) <= 3


@settings(max_examples=60, deadline=None)
@given(
    maxtags=st.integers(1, 32),
    every=st.integers(1, 40),
    ios=st.integers(1, 200),
    write_ns=st.integers(0, MS // 3),
    longer_ns=st.integers(0, 3 * MS),
    spread_ns=st.sampled_from([0, MS // 10, MS]),
    iops=st.sampled_from([-1.0, 2000.0, 1e6]),
    think_ns=st.sampled_from([0, MS // 5]),
    end_fsync=st.booleans(),
)
def test_so_many_writes_have_a_flush_however_many_are_in_flight(
    maxtags: int,
    every: int,
    ios: int,
    write_ns: int,
    longer_ns: int,
    spread_ns: int,
    iops: float,
    think_ns: int,
    end_fsync: bool,
) -> None:
    flush_ns = write_ns + longer_ns
    done = outcome(maxtags, every, ios, write_ns, flush_ns, spread_ns, iops, think_ns, end_fsync)
    assert (done.writes, done.flushes) == (ios, (ios - 1) // every + end_fsync)
    assert done.at_once <= maxtags


def test_reads_call_for_none(simulated: Drive, image: Path) -> None:
    start(simulated, image, maxtags=1, flush=("fsync", 1), fraction_read=1.0)
    finish(simulated, 1)
    assert simulated.total(Count.FLUSHES) == 0 < writes(simulated)


def test_of_a_mix_only_writes_count(simulated: Drive, image: Path) -> None:
    start(simulated, image, maxtags=1, flush=("fdatasync", 5), fraction_read=0.5, until=("written", 500 * 4096))
    finish(simulated, 4)
    assert simulated.total(Count.FLUSHES) == 99
    assert simulated.total(Count.WRITTEN) == 500 * 4096


@pytest.mark.parametrize("sequencer", ["random_steady", "random_independent", "sequential"])
def test_paced_writes_keep_their_due_times_and_flushes_have_none(simulated: Drive, image: Path, sequencer: str) -> None:
    start(simulated, image, maxtags=2, iops=1000.0, flush=("fsync", 10), iosequencer=sequencer, length_ns=100 * MS)
    finish(simulated, 9)
    due = simulated.total(Count.DUE) - simulated.total(Count.FLUSHES)
    assert due == 1000 if sequencer != "random_independent" else 800 < due < 1200
    assert abs(simulated.total(Count.FLUSHES) - due // 10) <= 1
    for kind in WRITE_KINDS:
        assert sum(result.series(RESPONSES[kind]) for result in simulated.results) in (0, writes(simulated))
    assert sum(result.series(LATENESS) for result in simulated.results) == writes(simulated)


def test_who_thinks_flushes_at_once_and_thinks_then(simulated: Drive, image: Path) -> None:
    """Each of three users: 1 ms, a write, a flush."""
    start(simulated, image, maxtags=3, think_time=0.001, flush=("fsync", 1), length_ns=100 * MS)
    finish(simulated, 9)
    cycle_ns = MS + 2 * EACH_NS
    assert abs(writes(simulated) - 3 * 1000 * MS / cycle_ns) < 30
    assert abs(writes(simulated) - simulated.total(Count.FLUSHES)) <= 1


def test_each_of_those_whose_writes_end_at_once_flushes(simulated: Drive, image: Path) -> None:
    """Each of 40 users: 100 us, a write, a flush, and for both of these the rest of a pass before."""
    start(simulated, image, maxtags=40, think_time=0.0001, flush=("fsync", 1), length_ns=100 * MS)
    finish(simulated, 0)
    assert 40 * 100 * MS / (100_000 + 4 * EACH_NS) <= writes(simulated) <= 40 * 100 * MS / (100_000 + 2 * EACH_NS) + 40


def test_at_a_pause_none_begins_and_after_it_it_goes_first(simulated: Drive, image: Path) -> None:
    common = WRITES | {"maxtags": 1, "flush": ("fsync", 2)}
    start(simulated, image, length_ns=MS, **common)
    for number in range(1, 40, 2):
        simulated.until(len(simulated.results) + 2)
        simulated.edit(number, [(0, fields(**common | {"iops": 0.0}))])
        simulated.until(len(simulated.results) + 2)
        assert simulated.results[-1].total(Count.SUBMITTED) == 0
        simulated.edit(number + 1, [(0, fields(**common))])
    finish(simulated, len(simulated.results))
    assert abs(writes(simulated) // 2 - simulated.total(Count.FLUSHES)) <= 1


def test_in_a_cooldown_none_begins(simulated: Drive, image: Path) -> None:
    start(simulated, image, maxtags=1, flush=("fsync", 1), until=("ios", 1 << 20), end_fsync=True)
    simulated.engine.cooldown(3)
    finish(simulated, 5)
    assert [result.total(Count.SUBMITTED) > 0 for result in simulated.results] == [True] * 3 + [False] * 3
    assert ended_ns(simulated) == 0


@pytest.mark.parametrize("iops", [-1.0, 1e6])
@pytest.mark.parametrize(
    ("changes", "flushes", "batches"),
    [
        ({}, 1, 6),
        ({"flush": ("fdatasync", 2)}, 3, 8),
        ({"flush": ("fsync", 5)}, 1, 6),  # this is the end's
        ({"flush": ("fsync", 1)}, 5, 10),
        ({"fraction_read": 1.0}, 0, 5),  # it wrote nothing
    ],
)
def test_an_end_may_be_a_flush(
    simulated: Drive, image: Path, changes: dict[str, Any], flushes: int, batches: int, iops: float
) -> None:
    start(simulated, image, maxtags=1, until=("ios", 5), end_fsync=True, **{"iops": iops} | changes)
    finish(simulated, 1)
    assert (writes(simulated), simulated.total(Count.FLUSHES)) == (5, flushes)
    assert simulated.results[-1].total(Count.LEFT) == 0
    ends_ns = batches * EACH_NS
    assert ended_ns(simulated) == ends_ns if iops < 0 else ends_ns <= ended_ns(simulated) < ends_ns + 2 * EACH_NS


def test_a_pause_before_the_flush_at_the_end_puts_it_off(simulated: Drive, image: Path) -> None:
    """Its last write is in flight as the pause begins."""
    common = WRITES | {"maxtags": 1, "iops": 1000.0, "until": ("ios", 12), "end_fsync": True}
    start(simulated, image, **common)
    simulated.until(1)
    simulated.edit(1, [(0, fields(**common | {"iops": 0.0}))])
    simulated.until(3)
    assert simulated.total(Count.FLUSHES) == 0
    simulated.edit(2, [(0, fields(**common))])
    simulated.until(6)
    finish(simulated, len(simulated.results))
    assert (writes(simulated), simulated.total(Count.FLUSHES)) == (12, 1)
    assert ended_ns(simulated) > 0


def test_an_end_that_a_pause_overtakes_waits_for_the_next_rate(simulated: Drive, image: Path) -> None:
    common = WRITES | {"maxtags": 1, "until": ("ios", 12), "end_fsync": True}
    start(simulated, image, **common | {"iops": 0.0})
    simulated.until(2)
    assert ended_ns(simulated) == 0
    simulated.edit(1, [(0, fields(**common))])
    simulated.until(4)
    finish(simulated, len(simulated.results))
    assert simulated.total(Count.FLUSHES) == 1 and ended_ns(simulated) > 0


SETTING = st.fixed_dictionaries(
    {
        "iops": st.sampled_from([-1.0, 0.0, 700.0, 50_000.0, 1e6]),
        "maxtags": st.integers(1, 32),
        "blocksize": st.sampled_from([4096, 8192, 32768]),
        "fraction_read": st.sampled_from([0.2, 0.5, 0.9]),
    }
)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([("never", 0), ("ios", 700), ("written", 500_000)]),
    st.integers(1, 40),
    st.sampled_from(["random_steady", "random_independent"]),
    st.sampled_from([0.0, 0.0003]),
    st.booleans(),
    st.lists(SETTING, min_size=1, max_size=6),
)
def test_all_adds_up_whatever_is_edited(
    until: tuple[str, int], every: int, sequencer: str, think: float, end: bool, edits: list[dict[str, Any]]
) -> None:
    """But for those that a pause held when the step ended, each so many writes have a flush."""
    common: dict[str, Any] = {
        "until": until,
        "iosequencer": sequencer,
        "think_time": think,
        "flush": ("fsync", every),
        "end_fsync": end and until[0] != "never",
    }
    with devices.memory_folder() as folder:
        path = devices.image(folder, SIZE)
        for step in drive("simulated"):
            step.create(0, step.lun(path, writable=True), ceilings=(32, 32768), **edits[0] | common)
            step.go([0], MS)
            for number, setting in enumerate([*edits[1:], edits[0] | {"iops": -1.0}], 1):
                step.until(len(step.results) + 2)
                step.edit(number, [(0, fields(**setting | common))])
            while until[0] != "never" and not ended_ns(step):
                step.until(len(step.results) + 1)
            finish(step, len(step.results))
            written = sum(result.series(SERVICES[kind]) for result in step.results for kind in (Kind.RANDOM_WRITE,))
            flushes = step.total(Count.FLUSHES) - common["end_fsync"]
            assert flushes == (written - 1) // every if until[0] != "never" else flushes <= written // every
            assert flushes >= written // every - 32


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"end_fsync": True}, "for a workload that ends by `until`")],
)
def test_what_makes_no_sense_is_refused(simulated: Drive, image: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(OSError, match=words):
        start(simulated, image, **changes)


def test_a_ring_that_is_polled_flushes_nothing(image: Path) -> None:
    if "io_uring" not in BACKENDS:
        pytest.skip("this kernel has no io_uring")
    for step in drive("io_uring"):
        step.create(0, step.lun(image, writable=True), flush=("fsync", 1))
        with pytest.raises(OSError, match=r"queue/io_poll is 0|leave `engine: polled` out"):
            step.engine.use("io_uring", polled=True)
