"""Steps through the binding, as the slave commands them: in simulated time, where figures are exact, and with real
backends on a file."""

import contextlib
import math
import os
import subprocess
import sys
import zlib
from array import array
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from ivypy.protocol.counters import KINDS, LATENESS, RESPONSES, SERIES, SERVICES, Count, Kind, Moment, ThreadCount
from ivypy.protocol.histogram import bucket_of, lower_edge
from ivypy.protocol.parameters import EngineFields
from ivypy.slave.engine._engine import Engine
from tests.support.engine import MS, REAL, Drive, Result, S, drive, fields, run

pytestmark = pytest.mark.slow

SIZE = 16 << 20


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(bytes(SIZE))
    return path


@pytest.fixture(params=["simulated", *REAL])
def step(request: pytest.FixtureRequest) -> Iterator[Drive]:
    yield from drive(request.param)


@pytest.fixture
def simulated() -> Iterator[Drive]:
    yield from drive("simulated")


@pytest.fixture(params=REAL)
def real(request: pytest.FixtureRequest) -> Iterator[Drive]:
    yield from drive(request.param)


def check_sums(step: Drive) -> None:
    """What must hold of any step, whatever happened in it."""
    backlog = in_flight = 0
    for result in step.results:
        assert (result.counts >= 0).all()
        withdrawn = result.total(Count.WITHDRAWN)
        backlog += result.total(Count.DUE) - result.total(Count.SUBMITTED) - result.total(Count.DROPPED) + withdrawn
        backlog -= result.total(Count.EXPIRED)
        done = result.total(Count.COMPLETED) + result.total(Count.ERRORS)
        in_flight += result.total(Count.SUBMITTED) - done - withdrawn
        assert result.total(Count.BACKLOG) == backlog
        assert result.total(Count.IN_FLIGHT) == in_flight
        flying, waiting = result.counts[:, Count.IN_FLIGHT] > 0, result.counts[:, Count.BACKLOG] > 0
        assert not result.counts[~flying, Count.OLDEST_IN_FLIGHT_NS].any()
        assert not result.counts[~flying & ~waiting, Count.OLDEST_OUTSTANDING_NS].any()
        services = [SERVICES[kind] for kind in range(KINDS)]
        assert sum(result.series(n) for n in services) == result.total(Count.COMPLETED)
        assert sum(result.series(n, Moment.BYTES) for n in services) == result.total(Count.BYTES)
        check_histograms(result)
    assert [result.raw.last for result in step.results] == [False] * (len(step.results) - 1) + [True]
    starts = [result.raw.start_ns for result in step.results]
    ends = [result.raw.start_ns + result.raw.length_ns for result in step.results]
    assert starts == [step.start_ns, *ends[:-1]]
    assert step.end is not None and step.end.caught == in_flight


def check_histograms(result: Result) -> None:
    """A histogram and the moments beside it are of the same I/Os."""
    for of_class, moments in zip(result.histograms, result.moments.tolist(), strict=True):
        for buckets, m in zip(of_class, moments, strict=True):
            assert sum(buckets.values()) == m[Moment.COUNT]
            if not buckets:
                assert (m[Moment.MIN], m[Moment.MAX], m[Moment.SUM]) == (2**64 - 1, 0, 0)
                continue
            assert min(buckets) == bucket_of(m[Moment.MIN])
            assert max(buckets) == bucket_of(m[Moment.MAX])
            low = sum(n * lower_edge(b) for b, n in buckets.items())
            high = sum(n * lower_edge(b + 1) for b, n in buckets.items())
            assert low <= m[Moment.SUM] < high


def test_closed_loop_has_neither_response_times_nor_lateness(step: Drive, image: Path) -> None:
    step.create(0, step.lun(image), iops=-1.0, maxtags=8)
    step.go([0], 100 * MS)
    while step.total(Count.COMPLETED) <= 100:  # however busy the machine is
        step.until(len(step.results) + 1)
    step.engine.stop(len(step.results))
    end = step.finish()
    check_sums(step)
    assert (end.reason, end.uncaught, end.dropped) == ("commanded", 0, 0)
    assert step.total(Count.DUE) == step.total(Count.SUBMITTED)
    assert all(result.series(RESPONSES[kind]) == 0 for result in step.results for kind in Kind)
    assert all(result.series(LATENESS) == 0 for result in step.results)


def lateness(results: list[Result], column: Moment) -> int:
    return sum(result.series(LATENESS, column) for result in results)


@pytest.mark.parametrize(
    ("tags", "think_ns"),
    [(1, 100_000), (6, 100_000), (1, 1 * MS), (6, 1 * MS), (6, 37 * MS), (500, 1000)],  # the last: more than it can
)
def test_a_tag_serves_thinks_and_serves_again(simulated: Drive, image: Path, tags: int, think_ns: int) -> None:
    """What its tags do at any time: serve an I/O, think, or are kept waiting by the generator, none for ever."""
    simulated.create(0, simulated.lun(image), iops=-1.0, maxtags=tags, think_time=think_ns / S)
    simulated.go([0], 100 * MS)
    simulated.engine.stop(9)
    simulated.finish()
    check_sums(simulated)
    served_ns = sum(result.series(SERVICES[0], Moment.SUM) for result in simulated.results)
    thought_ns = simulated.total(Count.COMPLETED) * think_ns
    spent_ns = served_ns + thought_ns + lateness(simulated.results, Moment.SUM)
    assert spent_ns == pytest.approx(tags * S, abs=tags * (think_ns + MS))  # what it began with, and was at in the end
    assert lateness(simulated.results, Moment.COUNT) == simulated.total(Count.SUBMITTED)
    assert lateness(simulated.results, Moment.MAX) < 10 * MS, "the sum of that of ten subintervals"
    assert all(result.series(RESPONSES[kind]) == 0 for result in simulated.results for kind in Kind)


def test_tags_that_think_begin_one_after_the_other(simulated: Drive, image: Path) -> None:
    simulated.create(0, simulated.lun(image), iops=-1.0, maxtags=20, think_time=0.1)
    simulated.go([0], 10 * MS)
    simulated.engine.stop(9)
    simulated.finish()
    assert [result.total(Count.DUE) for result in simulated.results] == [2] * 10


@pytest.mark.parametrize("paused", [False, True])
def test_at_a_rate_nobody_thinks(simulated: Drive, image: Path, paused: bool) -> None:
    """However long they would have gone on: the generator is not late by it. Back at max, they begin as at first."""
    think: dict[str, Any] = {"maxtags": 20, "think_time": 0.2}
    simulated.create(0, simulated.lun(image), iops=-1.0, **think)
    simulated.go([0], 10 * MS)
    simulated.until(3)
    for edit, iops in enumerate([*([0.0] if paused else []), 1000.0, -1.0], 1):
        simulated.edit(edit, [(0, fields(iops=iops, **think))])
        simulated.until(len(simulated.results) + 5)
    simulated.engine.stop(len(simulated.results))
    simulated.finish()
    check_sums(simulated)
    due = [result.total(Count.DUE) for result in simulated.results]
    at = len(due) - 5
    assert due[at - 3 : at - 1] == [10, 10] and due[-4:] == [1] * 4
    assert lateness(simulated.results, Moment.MAX) < MS * len(due)


def test_a_tag_that_thinks_is_one_of_maxtags(simulated: Drive, image: Path) -> None:
    """Fewer tags, and more, within the ceiling; a rate, and back; a pause: what nobody asked for is not late."""
    think: dict[str, Any] = {"think_time": 0.001}
    settings: list[dict[str, Any]] = [
        {"iops": -1.0, "maxtags": 8},
        {"iops": -1.0, "maxtags": 2},
        {"iops": -1.0, "maxtags": 4},
        {"iops": 500.0, "maxtags": 4},
        {"iops": -1.0, "maxtags": 4},
        {"iops": 0.0, "maxtags": 4},
        {"iops": -1.0, "maxtags": 1},
    ]
    simulated.create(0, simulated.lun(image), ceilings=(8, 4096), **settings[0], **think)
    simulated.go([0], 100 * MS)
    for number, setting in enumerate(settings):
        if number:
            simulated.edit(number, [(0, fields(**setting, **think))])
        simulated.until(2 * number + 2)
    simulated.engine.stop(2 * len(settings))
    simulated.finish()
    check_sums(simulated)
    settled = simulated.results[1 : 2 * len(settings) : 2]
    assert [round(result.total(Count.DUE) / 50) for result in settled] == [16, 4, 8, 1, 8, 0, 2]
    assert all(lateness([result], Moment.MAX) < MS for result in simulated.results)


def test_ios_due_are_rate_times_length(step: Drive, image: Path) -> None:
    lun = step.lun(image)
    for number, iops in enumerate([1000.0, 333.0, 10.0, 0.0]):
        step.create(number, lun, iops=iops)
    step.go(range(4), 100 * MS)
    step.engine.stop(4)
    step.finish()
    check_sums(step)
    due = sum(result.counts[:, Count.DUE] for result in step.results)
    for count, expected in zip(due.tolist(), [500, 166.5, 5, 0], strict=True):  # type: ignore[union-attr]
        assert abs(count - expected) <= 1
    responses, services = (
        sum(r.series(of, Moment.SUM) for r in step.results) for of in (RESPONSES[0], SERVICES[0])
    )  # random reads are kind 0
    assert responses >= services > 0


def test_rows_have_the_order_and_classes_that_go_gave(simulated: Drive, image: Path) -> None:
    lun = simulated.lun(image, writable=True)
    for number, (blocksize, reads, sequencer) in enumerate(
        [
            (4096, 1.0, "random_steady"),
            (8192, 0.0, "random_independent"),
            (16384, 0.0, "sequential"),
            (512, 1.0, "sequential"),
        ]
    ):
        simulated.create(number, lun, blocksize=blocksize, fraction_read=reads, iosequencer=sequencer)
    simulated.go([2, 0, 3, 1], 100 * MS, classes=[1, 0, 1, 2])
    simulated.engine.stop(0)
    simulated.finish()
    check_sums(simulated)
    (result,) = simulated.results
    sizes = result.counts[:, Count.BYTES] // result.counts[:, Count.COMPLETED]
    assert sizes.tolist() == [16384, 4096, 512, 8192]
    series = (*SERVICES[:KINDS], *RESPONSES)
    counted = [[n for n in series if row[n]] for row in result.moments[:, :, Moment.COUNT].tolist()]
    assert counted == [
        [Kind.RANDOM_READ, RESPONSES[Kind.RANDOM_READ]],
        [
            Kind.SEQUENTIAL_READ,
            Kind.SEQUENTIAL_WRITE,
            RESPONSES[Kind.SEQUENTIAL_READ],
            RESPONSES[Kind.SEQUENTIAL_WRITE],
        ],
        [Kind.RANDOM_WRITE, RESPONSES[Kind.RANDOM_WRITE]],
    ]


def test_parts_of_an_instance_share_its_row(simulated: Drive, image: Path) -> None:
    """Sums add up, the newest edit counts; and the row is the same whichever threads its parts are on."""
    lun, rows = simulated.lun(image), [1, 0, 1, 2, 1, 0]
    for n in range(6):
        simulated.create(n, lun, iops=1000.0 * (n + 1))
    simulated.go(range(6), 100 * MS, rows=rows)
    simulated.until(2)
    simulated.edit(7, [(4, fields(iops=0.0))])
    simulated.edit(8, [(1, fields(iops=0.0))])
    simulated.engine.halt()
    simulated.finish()
    first, last = simulated.results[0], simulated.results[-1]
    assert first.counts[:, Count.DUE].tolist() == [800, 900, 400]
    assert first.counts[:, Count.COMPLETED].sum() + first.counts[:, Count.IN_FLIGHT].sum() == first.total(
        Count.SUBMITTED
    )
    assert last.counts[:, Count.EDIT].tolist() == [8, 7, 0]


def test_rows_beyond_the_instances_are_refused(simulated: Drive, image: Path) -> None:
    simulated.create(0, simulated.lun(image))
    with pytest.raises(OSError, match="go names row 1; 1 instances have at most as many rows"):
        simulated.go([0], 100 * MS, rows=[1])


def test_buckets_are_as_small_as_their_counts(simulated: Drive, image: Path) -> None:
    """What a histogram holds is the same, however wide its numbers are on the link."""
    lun, sizes = simulated.lun(image), []
    for n, iops in enumerate((1000.0, 40_000.0, -1.0)):
        simulated.create(n, lun, maxtags=8, iops=iops)
        simulated.go([n], 100 * MS)
        simulated.until(2)
        simulated.engine.halt()
        simulated.finish()
        whole = simulated.results[1]
        sizes.append(whole.raw.bucket_size)
        for series in range(SERIES):
            assert sum(whole.histograms[0][series].values()) == whole.series(series)
        assert whole.series(0) < 1 << (8 * whole.raw.bucket_size)
    assert sizes[:2] == [1, 2]
    assert sizes[2] >= sizes[1]


def test_instances_that_go_does_not_name_stay_idle(simulated: Drive, image: Path) -> None:
    lun = simulated.lun(image)
    simulated.create(0, lun)
    simulated.create(7, lun, iops=-1.0)
    simulated.go([0], 50 * MS)
    simulated.engine.stop(1)
    simulated.finish()
    check_sums(simulated)
    assert simulated.total(Count.DUE) == 100


def test_an_edit_acts_within_this_subinterval_and_is_named_in_the_rows(simulated: Drive, image: Path) -> None:
    lun = simulated.lun(image, writable=True)
    simulated.create(0, lun)
    simulated.create(1, lun)
    simulated.go([0, 1], 200 * MS)
    simulated.until(1)
    posted = simulated.now_ns()
    taken = simulated.edit(1, [(0, fields(iops=4000.0, fraction_read=0.0))])
    assert 0 <= taken - posted <= MS  # when the thread wakes for its next I/O
    simulated.until(3)
    with pytest.raises(OSError, match="cannot be edited"):
        simulated.engine.edit(2, [(0, fields(seed=2))])
    simulated.engine.stop(3)
    simulated.finish()
    check_sums(simulated)
    assert [result.counts[0, Count.EDIT] for result in simulated.results] == [0, 1, 1, 1]
    assert [result.counts[1, Count.EDIT] for result in simulated.results] == [0, 0, 0, 0]
    assert [result.counts[0, Count.DUE] for result in simulated.results[2:]] == [800, 800]
    assert [result.counts[1, Count.DUE] for result in simulated.results] == [200, 200, 200, 200]
    begin, end = simulated.start_ns + 200 * MS, simulated.start_ns + 400 * MS
    expected = (taken - begin) * 1000 / S + (end - taken) * 4000 / S
    assert abs(simulated.results[1].counts[0, Count.DUE] - expected) <= 1
    after = [(row.series(SERVICES[Kind.RANDOM_WRITE]), row.counts[0, Count.COMPLETED]) for row in simulated.results[2:]]
    assert after == [(800, 800), (800, 800)]


def test_bytes_are_counted_by_each_ios_own_size_across_a_change(step: Drive, image: Path) -> None:
    """In mid-subinterval, with I/Os in flight, down and up: what a result counts as bytes is what was moved."""
    sizes = [4096, 65536, 16384, 512 * 8, 65536]
    step.create(0, step.lun(image, writable=True), ceilings=(8, 65536), iops=-1.0, maxtags=8, fraction_read=0.5)
    step.go([0], 100 * MS)
    taken_ns = [0]
    for number, size in enumerate(sizes[1:], 1):
        step.until(2 * number - 1)
        settings = [(0, fields(iops=-1.0, maxtags=8, fraction_read=0.5, blocksize=size))]
        taken_ns.append(step.edit(number, settings))
    step.until(8)
    step.engine.stop(10)
    step.finish()
    check_sums(step)
    assert step.total(Count.ERRORS) == step.total(Count.SHORT) == 0
    oldest_ns = step.start_ns  # when the oldest I/O that a result may count was submitted
    for result in step.results:
        end_ns = result.raw.start_ns + result.raw.length_ns
        spans = zip(sizes, taken_ns, [*taken_ns[1:], end_ns], strict=True)
        present = {size for size, since_ns, until_ns in spans if since_ns < end_ns and until_ns >= oldest_ns}
        if completed := result.total(Count.COMPLETED):  # else the machine stalled
            assert min(present) <= result.total(Count.BYTES) / completed <= max(present)
        oldest_ns = end_ns - int(result.counts[0, Count.OLDEST_IN_FLIGHT_NS])


def test_a_range_and_tags_follow_an_edit_at_once(real: Drive, image: Path) -> None:
    """What an instance writes before and behind an edit lies where it was sent."""
    half = SIZE // 2
    lun = real.lun(image, writable=True)
    first: dict[str, Any] = {"fraction_read": 0.0, "iops": -1.0, "maxtags": 1, "range": (0, 65536)}
    then = first | {"range": (half + 100, half + 65536), "maxtags": 16, "blocksize": 16384}
    real.create(0, lun, ceilings=(16, 16384), **first)
    real.go([0], 100 * MS)
    real.until(1)
    real.edit(1, [(0, fields(**then))])
    real.until(3)
    assert max(result.total(Count.IN_FLIGHT) for result in real.results) <= 16
    with pytest.raises(OSError, match="maxtags is not in 1 to the ceiling"):
        real.engine.edit(2, [(0, fields(**(then | {"maxtags": 17})))])
    real.edit(2, [(0, fields(**(then | {"maxtags": 2})))])  # down: drains
    real.until(5)
    assert real.results[-1].total(Count.IN_FLIGHT) <= 2
    real.engine.stop(5)
    real.finish()
    check_sums(real)
    written = image.read_bytes()
    touched = {at for at in range(0, SIZE, 4096) if any(written[at : at + 4096])}
    before, after = {*range(0, 65536, 4096)}, {*range(half + 16384, half + 65536, 4096)}
    assert touched <= before | after
    assert touched & before
    assert touched & after


SEQUENCERS = ("random_steady", "random_independent", "sequential")

Extents = tuple[tuple[int, int], ...]


def random_extents(random: Random) -> Extents:
    """Three extents of the image, apart; none is smaller than 60 KiB."""
    ends = iter(sorted(random.sample(range(1, SIZE >> 16), 6)))
    return tuple(
        (start << 16, (end << 16) - random.choice((0, 512, 4096))) for start, end in zip(ends, ends, strict=True)
    )


def random_setting(random: Random, sequencer: str, extents: Extents) -> EngineFields:
    """Half of the ranges lie in an extent, from its very beginning and to its very end among others."""
    blocksize = random.choice((4096, 8192, 16384))
    start = random.randrange(0, SIZE - (1 << 20), 512)
    span = random.choice([(0, 0), *[(start, start + random.randrange(2 * blocksize, 1 << 20, 512))] * 3])
    if random.random() < 0.5:
        start, end = random.choice(extents)
        span = (start + 512 * random.choice((0, 0, 5)), end - 512 * random.choice((0, 0, 7)))
    return fields(
        iosequencer=sequencer,
        iops=-1.0,
        maxtags=8,
        range=span,
        blocksize=blocksize,
        fraction_read=random.choice((0.0, 0.0, 0.5, 1.0)),
    )


def allowed(setting: EngineFields, extents: Extents) -> bool:
    first, behind = setting["range"] if setting["range"] != (0, 0) else (0, SIZE)
    return setting["fraction_read"] == 1 or any(start <= first and behind <= end for start, end in extents)


@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_written_outside_of_what_was_agreed_to(real: Drive, image: Path, seed: int) -> None:
    """Whatever ranges, block sizes and directions instances are sent to while they run flat out: the engine takes what
    stays within their extents, and nothing else; and no byte of the file outside of these changes."""
    random = Random(seed)
    agreed = [random_extents(random) for _ in SEQUENCERS]
    lun = real.lun(image, writable=True)
    for number, sequencer in enumerate(SEQUENCERS):
        first: dict[str, Any] = {
            "iosequencer": sequencer,
            "fraction_read": 0.0,
            "iops": -1.0,
            "range": agreed[number][0],
        }
        real.create(number, lun, ceilings=(8, 16384), extents=agreed[number], **first)
    real.go(range(len(SEQUENCERS)), 20 * MS)
    taken = refused = 0
    while min(taken, refused) < 20:
        number = random.randrange(len(SEQUENCERS))
        setting = random_setting(random, SEQUENCERS[number], agreed[number])
        if allowed(setting, agreed[number]):
            taken += 1
            real.edit(taken, [(number, setting)])
            real.until(len(real.results) + 1)
            continue
        refused += 1
        with pytest.raises(OSError, match="not lie within what was agreed to"):
            real.engine.edit(taken + 1, [(number, setting)])
    real.engine.halt()
    assert real.finish().reason == "commanded"
    check_sums(real)
    outside = np.ones(SIZE, bool)
    for start, end in (extent for extents in agreed for extent in extents):
        outside[start:end] = False
    written = np.frombuffer(image.read_bytes(), np.uint8) != 0
    assert written.sum() > 1 << 20
    assert not (written & outside).any()


def test_a_sequential_stream_goes_on_where_it_was_when_its_blocks_change() -> None:
    """All of a range is covered without a gap: the next block begins where the last I/O ended, or just behind."""
    assert run("addresses", "moved").split() == [
        *("0", "4096", "8192"),  # of 4 KiB
        *("16384", "24576", "32768"),  # of 8 KiB from 12288 on, whole ones
        *("40960", "41472"),  # of 512
        *("49152", "57344", "49152"),  # of 8 KiB, of the range from 48 KiB to 64 KiB
        *("49152",),  # of 16 KiB
    ]


def test_from_max_to_a_number_and_back_in_mid_run(simulated: Drive, image: Path) -> None:
    simulated.create(0, simulated.lun(image), iops=-1.0, maxtags=2)
    simulated.go([0], 100 * MS)
    simulated.until(1)
    simulated.edit(1, [(0, fields(iops=500.0, maxtags=2))])
    simulated.until(3)
    simulated.edit(2, [(0, fields(iops=-1.0, maxtags=2))])
    simulated.until(5)
    simulated.edit(3, [(0, fields(iops=0.0, maxtags=2))])
    simulated.until(7)
    simulated.engine.stop(8)
    simulated.finish()
    check_sums(simulated)
    first, _, paced, _, fast, _, paused = (result.total(Count.DUE) for result in simulated.results[:7])
    assert paced == 50
    assert min(first, fast) > 2 * paced
    assert paused == 0
    assert simulated.results[2].series(RESPONSES[0]) > 0 == simulated.results[4].series(RESPONSES[0])


def test_edits_between_steps_hold_for_the_next(simulated: Drive, image: Path) -> None:
    simulated.create(0, simulated.lun(image))
    simulated.edit(5, [(0, fields(iops=2000.0))])
    simulated.go([0], 100 * MS)
    simulated.engine.stop(0)
    simulated.finish()
    assert simulated.results[0].total(Count.EDIT) == 5
    assert simulated.results[0].total(Count.DUE) == 200


def test_in_a_cooldown_nothing_falls_due_and_the_backlog_is_dropped(simulated: Drive, image: Path) -> None:
    lun = simulated.lun(image)
    simulated.create(0, lun, iops=1e9, maxtags=1)  # owes ever more
    simulated.create(1, lun)
    simulated.go([0, 1], 100 * MS)
    simulated.engine.cooldown(2)
    simulated.engine.stop(3)
    end = simulated.finish()
    check_sums(simulated)
    assert [result.total(Count.DUE) > 0 for result in simulated.results] == [True, True, False, False]
    assert simulated.results[1].total(Count.BACKLOG) > 10**6
    assert simulated.results[1].counts[0, Count.OLDEST_OUTSTANDING_NS] > 50 * MS
    assert simulated.results[2].counts[0, Count.DROPPED] == simulated.results[1].counts[0, Count.BACKLOG]
    assert simulated.results[2].total(Count.BACKLOG) == 0
    assert end.dropped == 0


@pytest.mark.parametrize("iops", [0.0, 10.0, -1.0])
def test_a_new_rate_discards_the_backlog_of_the_old_one(step: Drive, image: Path, iops: float) -> None:
    """Of an overload no I/O goes behind the edit: a paused LUN has none, a slow one its own, and all are counted."""
    step.create(0, step.lun(image), iops=1e9, maxtags=1)
    step.go([0], 50 * MS)
    while len(step.results) < 2:
        step.news(0.1)
        step.collect()
    step.edit(1, [(0, fields(iops=iops, maxtags=1))])
    edited = len(step.results)
    while len(step.results) < edited + 4:
        step.news(0.1)
        step.collect()
    step.engine.halt()
    step.finish()
    check_sums(step)
    assert step.discarded == step.total(Count.DROPPED) > 10**6
    after = step.results[edited + 2 : edited + 4]
    assert all(result.total(Count.BACKLOG) <= 1 for result in after)
    assert iops < 0 or sum(result.total(Count.SUBMITTED) for result in after) <= iops


def test_a_step_begins_with_an_empty_backlog(simulated: Drive, image: Path) -> None:
    simulated.create(0, simulated.lun(image), iops=1e9, maxtags=1)
    simulated.go([0], 50 * MS)
    simulated.engine.stop(1)
    end = simulated.finish()
    check_sums(simulated)
    assert end.dropped == simulated.results[-1].total(Count.BACKLOG) > 0
    simulated.edit(1, [(0, fields(iops=1000.0, maxtags=1))])
    simulated.go([0], 50 * MS)
    simulated.engine.stop(1)
    end = simulated.finish()
    check_sums(simulated)
    length_ms = sum(result.raw.length_ns for result in simulated.results) / MS
    assert simulated.total(Count.DUE) <= length_ms + 1, "nothing of the backlog of millions of the first step"
    assert end.dropped == simulated.results[-1].total(Count.BACKLOG)


def test_a_halt_cuts_the_subinterval_at_its_instant(step: Drive, image: Path) -> None:
    lun = step.lun(image)
    step.create(0, lun, iops=-1.0)
    step.create(1, lun)
    step.go([0, 1], 200 * MS)
    step.until(1)
    before = step.now_ns()
    step.engine.halt()
    after = step.now_ns()
    step.finish()
    check_sums(step)
    last = step.results[-1].raw
    assert len(step.results) >= 2
    assert before <= last.start_ns + last.length_ns <= after
    assert abs(step.results[-1].counts[1, Count.DUE] - last.length_ns / MS) <= 1


def test_a_halt_before_the_start_ends_at_once(simulated: Drive, image: Path) -> None:
    simulated.create(0, simulated.lun(image))
    simulated.engine.set_lease(simulated.now_ns() + 60 * S)
    simulated.engine.go(simulated.now_ns() + 1000 * S, S, *[array("I", [0]).tobytes()] * 3)
    simulated.engine.halt()
    simulated.finish(5)
    assert [(r.raw.length_ns, r.raw.last, r.total(Count.DUE)) for r in simulated.results] == [(0, True, 0)]


def test_an_edit_before_the_start_submits_nothing_before_it(simulated: Drive, image: Path) -> None:
    lun = simulated.lun(image)
    simulated.create(0, lun, iops=0.0)
    simulated.create(1, lun, iops=0.1)
    simulated.engine.set_lease(simulated.now_ns() + 60 * S)
    simulated.engine.go(simulated.now_ns() + 1000 * S, S, *[array("I", [0, 1]).tobytes()] * 3)
    simulated.edit(1, [(0, fields(iops=-1.0)), (1, fields(iops=1e6))])
    simulated.edit(2, [(0, fields(iops=1e6)), (1, fields(iops=-1.0))])
    simulated.engine.halt()
    simulated.finish(5)
    assert simulated.total(Count.DUE) == simulated.total(Count.SUBMITTED) == 0


def test_nothing_is_submitted_without_a_lease(simulated: Drive, image: Path) -> None:
    simulated.create(0, simulated.lun(image), iops=-1.0)
    simulated.go([0], 100 * MS, lease_s=-1)
    assert simulated.finish().reason == "lease"
    assert simulated.total(Count.SUBMITTED) == 0


def test_the_end_of_the_lease_is_the_end_of_the_step(step: Drive, image: Path) -> None:
    lun = step.lun(image)
    step.create(0, lun, iops=-1.0)
    step.create(1, lun)
    step.go([0, 1], 100 * MS)
    until = step.start_ns + 230 * MS
    step.engine.set_lease(until)
    end = step.finish()
    check_sums(step)
    assert end.reason == "lease"
    assert step.results[-1].raw.start_ns + step.results[-1].raw.length_ns == until
    assert step.total(Count.SUBMITTED) > 0
    step.engine.set_lease(step.now_ns() + 60 * S)
    step.go([1], 50 * MS)  # a new lease, a new step
    step.engine.stop(0)
    assert step.finish().reason == "commanded"


def test_a_renewed_lease_goes_on(simulated: Drive, image: Path) -> None:
    simulated.create(0, simulated.lun(image))
    simulated.go([0], 50 * MS, lease_s=0.5)
    for _ in range(14):
        simulated.until(len(simulated.results) + 1)
        simulated.engine.set_lease(simulated.now_ns() + 500 * MS)
    simulated.engine.stop(14)
    assert simulated.finish().reason == "commanded"


def test_uncollected_results_overrun_and_lose_nothing(step: Drive, image: Path) -> None:
    lun = step.lun(image)
    step.create(0, lun)
    step.create(1, lun, iops=-1.0)
    step.go([0, 1], 50 * MS)
    while step.now_ns() < step.start_ns + 375 * MS:
        step.news(0.01)
    assert len(step.until(1)) == 1
    step.engine.stop(11)
    step.finish()
    check_sums(step)
    subintervals = [result.raw.subinterval for result in step.results]
    overruns = [result.thread(ThreadCount.OVERRUNS) for result in step.results]
    assert subintervals[0] == 0 and subintervals[-1] == 11
    assert [b - a - 1 for a, b in pairwise(subintervals)] == overruns[1:]
    assert overruns[1] >= 5
    for result in step.results:
        assert result.raw.length_ns == 50 * MS * (1 + result.thread(ThreadCount.OVERRUNS))
        assert abs(int(result.counts[0, Count.DUE]) - result.raw.length_ns // MS) <= 1


def test_boundaries_move_if_announced_in_time_and_by_little(simulated: Drive, image: Path) -> None:
    simulated.create(0, simulated.lun(image))
    simulated.go([0], 100 * MS)
    start = simulated.start_ns
    simulated.engine.place_boundary(0, start + 105 * MS)
    simulated.engine.place_boundary(1, start + 230 * MS)  # more than a tenth of a length off: ignored
    simulated.engine.place_boundary(2, start + 304 * MS)
    simulated.until(2)
    simulated.engine.place_boundary(0, start + 101 * MS)  # past: ignored
    simulated.engine.place_boundary(1, start + 206 * MS)
    simulated.engine.stop(4)
    simulated.finish()
    check_sums(simulated)
    assert [result.raw.length_ns // MS for result in simulated.results] == [105, 100, 99, 100, 100]


def test_instances_on_several_threads_swap_at_the_same_boundaries(image: Path) -> None:
    for step in drive("simulated", threads=3):
        lun = step.lun(image)
        for number in range(9):
            step.create(number, lun, thread=number % 3, iops=-1.0 if number < 3 else 700.0, maxtags=2)
        step.go(range(9), 20 * MS)
        step.engine.stop(4)
        step.finish()
        check_sums(step)
        assert [result.raw.length_ns for result in step.results] == [20 * MS] * 5
        for result in step.results:
            assert result.threads[:, ThreadCount.OVERRUNS].tolist() == [0, 0, 0]
            assert result.threads[:, ThreadCount.SWAPPED].tolist() == [1, 1, 1]
            assert result.raw.missing == []
            assert result.counts[3:, Count.DUE].tolist() == [14] * 6
            assert result.threads[:, ThreadCount.SUBMITTED].sum() == result.total(Count.SUBMITTED)


def test_with_spin_a_thread_does_not_sleep_while_something_will_fall_due(image: Path) -> None:
    for step in drive("simulated", threads=2):
        lun = step.lun(image)
        step.create(0, lun, thread=0, iops=300.0)
        step.create(1, lun, thread=1, iops=0.0)  # paused: nothing to be awake for
        for spin in ("off", "on"):
            step.engine.spin(spin)
            step.go(range(2), 100 * MS)
            with pytest.raises(OSError, match="a step is running"):
                step.engine.spin("auto")
            step.engine.stop(1)
            step.finish()
            last = step.results[-1].threads
            assert (last[0, ThreadCount.SLEEPS] == 0) == (spin == "on")
            assert last[1, ThreadCount.SLEEPS] > 0
            assert last[0, ThreadCount.BUSY_WAIT] > (50 * MS if spin == "on" else -1)
            assert last[1, ThreadCount.BUSY_WAIT] < 50 * MS
            check_sums(step)
        with pytest.raises(ValueError, match="spin is off, auto or on, not true"):
            step.engine.spin("true")


def test_a_short_file_makes_errors_that_are_in_no_latency(real: Drive, image: Path) -> None:
    real.create(0, real.lun(image), iops=500.0)
    with open(image, "r+b") as file:
        file.truncate(SIZE // 2)  # after it was opened: half of the reads find nothing
    real.go([0], 200 * MS)
    real.engine.stop(1)
    real.finish()
    check_sums(real)
    errors = real.total(Count.ERRORS)
    done = errors + real.total(Count.COMPLETED)
    assert done > 10 and abs(errors - done / 2) < 5 * math.sqrt(done / 4), (
        "an offset is as often in the half that is gone"
    )
    assert real.total(Count.SHORT) == errors
    assert (
        sum(count for r in real.results for number, errno, count in r.raw.faults if (number, errno) == (0, 0)) == errors
    )


def blocks_written(step: Drive, number: int, path: Path, seed: int) -> set[int]:
    """The blocks of a sparse file that one tag writes in a while."""
    with open(path, "wb") as file:
        file.truncate(1 << 30)
    step.create(number, step.lun(path, writable=True), fraction_read=0.0, iops=-1.0, maxtags=1, seed=seed)
    step.go([number], 20 * MS)
    while step.total(Count.COMPLETED) < 100:
        step.until(len(step.results) + 1)
    step.engine.halt()
    step.finish()
    found, at = set(), 0
    with open(path, "rb") as file, contextlib.suppress(OSError):  # ENXIO: no data behind it
        while True:
            at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            found |= set(range(at // 4096, end // 4096))
            at = end
    return found


def test_a_seed_gives_the_same_addresses_and_another_one_others(tmp_path: Path) -> None:
    """In the first step of an engine, as in two runs."""
    once, again, other = (
        blocks_written(step, 0, tmp_path / "lun", seed) for seed in (7, 7, 8) for step in drive(REAL[0])
    )
    assert once <= again or again <= once
    assert len(once & other) < len(once) / 10


def test_reads_do_not_spoil_what_is_written(real: Drive, image: Path) -> None:
    """A file of zeros, read and written by the same tags: no zeros are ever written."""
    real.create(0, real.lun(image, writable=True), fraction_read=0.5, iops=-1.0, maxtags=2)
    real.go([0], 100 * MS)
    while sum(result.series(SERVICES[Kind.RANDOM_WRITE]) for result in real.results) < 500:
        real.until(len(real.results) + 1)
    real.engine.halt()
    real.finish()
    written = image.read_bytes()
    pages = [written[at : at + 4096] for at in range(0, SIZE, 4096)]
    touched = [page for page in pages if any(page)]
    assert len(touched) > 100
    assert all(len(zlib.compress(page)) > 4000 for page in touched)
    assert len({page[:512] for page in touched}) == len(touched)


@pytest.mark.parametrize("backend", REAL)
def test_an_interpreter_may_end_while_threads_run(backend: str, image: Path) -> None:
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
from tests.support.engine import Drive, Engine
step = Drive(Engine({backend!r}, [-1, -1]))
lun = step.lun({str(image)!r})
step.create(0, lun, 0, iops=-1.0)
step.create(1, lun, 1, iops=500.0)
step.go([0, 1], 10_000_000)
step.until(1)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_engine_has_no_threads_and_refuses_commands(image: Path) -> None:
    engine = Engine("null", [-1, -1])
    lun = engine.open_lun(str(image), False)
    assert engine.close(1.0) == []
    assert engine.close(1.0) == []
    with pytest.raises(OSError, match="closed"):
        engine.create(0, lun, 0, 4, 4096, fields())
