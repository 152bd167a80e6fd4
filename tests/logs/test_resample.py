"""Records and samples added into quanta: against the definition, and wherever on the time axis they lie."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.logs.readers.bucket_layouts import Layout
from ivypy.master.logs.readers.records import Records, Samples
from ivypy.master.logs.timeline.resample import BLOCK, EVERY, Accumulator, Weighting, on_grid, tolerance_ns
from ivypy.protocol.histogram import bucket_of

LENGTH = 1000  # ns of a quantum
LAYOUT = Layout(1, 12)  # up to 131 us: two blocks
Quantum = tuple[dict[int, float], float, float, int, int, float, int]  # of a table: what `Block` has of it

# Ends lie on boundaries as often as between them, and what is in flight reaches over a block and more.
ENDS = st.one_of(st.integers(1, 80).map(lambda k: k * LENGTH), st.integers(1, 80 * LENGTH))
VALUES = st.one_of(st.integers(0, 3), st.integers(1, 100).map(lambda k: k * LENGTH), st.integers(0, 100 * LENGTH))
SHIFTS = st.one_of(st.integers(0, 130), st.sampled_from([BLOCK - 1, BLOCK, BLOCK + 1, -1, -BLOCK]))
MASKS = st.sampled_from([EVERY, 0b001, 0b110])
OFFSETS = st.sampled_from([0, 1, LENGTH - 1, LENGTH])  # of where an I/O may have completed instead
BEGINS = st.none() | st.integers(-5, 80).map(lambda k: k * LENGTH - k % 2) | st.integers(-5 * LENGTH, 80 * LENGTH)


@st.composite
def samples_of(draw: st.DrawFn) -> Samples:
    rows = draw(st.lists(st.tuples(ENDS, VALUES, st.integers(0, 2)), min_size=1, max_size=12))
    if draw(st.booleans()):
        rows.sort()
    ends, values, directions = zip(*rows, strict=True)
    return Samples(np.array(ends, np.int64), np.array(values, np.int64), np.array(directions, np.uint8))


@st.composite
def records_of(draw: st.DrawFn) -> Records:
    lengths = st.one_of(st.integers(0, 70).map(lambda k: k * LENGTH), st.integers(0, 3 * LENGTH))
    entries = st.dictionaries(st.integers(0, LAYOUT.buckets - 1), st.integers(1, 9), max_size=3)
    rows = draw(st.lists(st.tuples(ENDS, lengths, st.integers(0, 2), entries), min_size=1, max_size=6))
    ends = np.array([end for end, *_ in rows], np.int64)
    starts = ends - np.array([length for _, length, *_ in rows], np.int64)
    stop = np.cumsum([len(held) for *_, held in rows])
    sorted_entries = [entry for *_, held in rows for entry in sorted(held.items())]
    records = Records(
        starts, ends, np.array([direction for _, _, direction, _ in rows], np.uint8),
        stop - np.array([len(held) for *_, held in rows]), stop,
        np.array([bucket for bucket, _ in sorted_entries], np.uint16),
        np.array([count for _, count in sorted_entries], np.uint64),
    )  # fmt: skip
    known = draw(st.sampled_from(["elsewhere", "nothing", "extremes", "sums", "squares", "elsewhere"]))
    if known == "elsewhere":
        return replace(records, elsewhere=ends + np.array([draw(OFFSETS) for _ in rows], np.int64))
    if known == "nothing" or (starts == ends).any():
        return records
    numbers = np.array([draw(st.integers(0, 1000)) for _ in rows], np.int64)
    exact = replace(records, lowest=numbers, highest=numbers + 7)
    if known == "extremes":
        return exact
    exact = replace(exact, sums=numbers.astype(np.float64) * 64)
    return exact if known == "sums" else replace(exact, squares=numbers.astype(np.float64) * 4096)


def table(of: Accumulator) -> dict[int, Quantum]:
    """What is known of each quantum that has anything."""
    found = {}
    for number, block in of.blocks.items():
        for at in range(BLOCK):
            (used,) = np.nonzero(block.cells[at])
            if len(used) or block.highest[at] >= 0:
                found[number * BLOCK + at] = (
                    {int(bucket): float(block.cells[at, bucket]) for bucket in used},
                    float(block.sums[at]), float(block.squares[at]), int(block.lowest[at]), int(block.highest[at]),
                    float(block.split[at]), int(block.top[at]),
                )  # fmt: skip
    return found


def added(what: Samples | Records, weighting: Weighting, mask: int = EVERY, begin_ns: int | None = None) -> Accumulator:
    accumulator = Accumulator(LAYOUT, LENGTH, weighting, isinstance(what, Samples))
    if isinstance(what, Samples):
        accumulator.add_samples(what, mask, begin_ns)
    else:
        accumulator.add_records(what, mask, begin_ns)
    return accumulator


def shifted(what: Samples | Records, by_ns: int) -> Samples | Records:
    if isinstance(what, Samples):
        return replace(what, ends=what.ends + by_ns)
    elsewhere = None if what.elsewhere is None else what.elsewhere + by_ns
    return replace(what, starts=what.starts + by_ns, ends=what.ends + by_ns, elsewhere=elsewhere)


@pytest.mark.parametrize("weighting", Weighting)
@given(what=st.one_of(samples_of(), records_of()), quanta=SHIFTS, mask=MASKS, begin_ns=BEGINS)
def test_shifting_a_log_by_whole_intervals_shifts_the_table(
    weighting: Weighting, what: Samples | Records, quanta: int, mask: int, begin_ns: int | None
) -> None:
    by_ns = quanta * LENGTH
    late = added(shifted(what, by_ns), weighting, mask, None if begin_ns is None else begin_ns + by_ns)
    early = added(what, weighting, mask, begin_ns)
    assert table(late) == {quantum + quanta: known for quantum, known in table(early).items()}
    assert (late.has_sums, late.has_moments) == (early.has_sums, early.has_moments)


@pytest.mark.parametrize("weighting", Weighting)
@pytest.mark.parametrize("quanta", [1, BLOCK - 1, BLOCK, 2 * BLOCK])
def test_the_first_io_is_not_lost_where_it_completes_at_the_end_of_a_block(weighting: Weighting, quanta: int) -> None:
    """As a sample, and as a record that is a moment."""
    first, last = quanta * LENGTH, (quanta + 1) * LENGTH
    ends, none = np.array([first, last]), np.zeros(2, np.int64)
    samples = Samples(ends, none, np.zeros(2, np.uint8))
    records = Records(
        ends, ends, np.zeros(2, np.uint8), np.array([0, 1]), np.array([1, 2]), np.zeros(2, np.uint16),
        np.ones(2, np.uint64),
    )  # fmt: skip
    for what in (samples, records):
        found = {quantum: known[0] for quantum, known in table(added(what, weighting)).items()}
        assert found == {quanta - 1: {0: 1.0}, quanta: {0: 1.0}}


def shares(start: int, end: int, earliest: int | None) -> dict[int, Fraction]:
    """The share of (start, end] in each quantum; what lies before the `earliest` is in it. A moment is in one."""
    first, last = (start if start < end else end - 1) // LENGTH, (end - 1) // LENGTH
    found: dict[int, Fraction] = {}
    for quantum in range(first, last + 1):
        inside = min(end, (quantum + 1) * LENGTH) - max(start, quantum * LENGTH)
        where = quantum if earliest is None else max(quantum, min(earliest, last))
        found[where] = found.get(where, Fraction(0)) + (Fraction(inside, end - start) if end > start else 1)
    return found


def summed(parts: Iterable[tuple[int, int, Fraction]]) -> dict[int, dict[int, float]]:
    """Quantum: bucket: weight, of (quantum, bucket, weight)."""
    found: dict[int, dict[int, Fraction]] = {}
    for quantum, bucket, weight in parts:
        own = found.setdefault(quantum, {})
        own[bucket] = own.get(bucket, Fraction(0)) + weight
    return {quantum: {bucket: float(weight) for bucket, weight in own.items()} for quantum, own in found.items()}


@given(samples_of(), MASKS, BEGINS)
def test_a_sample_in_flight_counts_in_the_quanta_that_it_was_in_flight_in(
    samples: Samples, mask: int, begin_ns: int | None
) -> None:
    earliest = None if begin_ns is None else begin_ns // LENGTH
    rows = [
        (shares(int(end - value), int(end), earliest), int(value))
        for end, value, direction in zip(samples.ends, samples.values, samples.directions, strict=True)
        if mask >> direction & 1
    ]
    found = table(added(samples, Weighting.IN_FLIGHT, mask, begin_ns))
    expected = summed((quantum, bucket_of(value), share) for own, value in rows for quantum, share in own.items())
    assert found.keys() == expected.keys()
    for quantum, (cells, sums, squares, lowest, highest, split, top) in found.items():
        there = [(value, float(own[quantum])) for own, value in rows if quantum in own]
        assert cells == pytest.approx(expected[quantum], abs=1e-7)
        assert (lowest, highest) == (min(there)[0], max(there)[0])
        assert sums == pytest.approx(sum(value * share for value, share in there), rel=1e-6, abs=1e-2)
        assert squares == pytest.approx(sum(value**2 * share for value, share in there), rel=1e-6, abs=1e3)
        assert (split, top) == (0.0, -1)


@given(samples_of(), MASKS)
def test_a_sample_counts_where_it_completed(samples: Samples, mask: int) -> None:
    rows = [
        ((int(end) - 1) // LENGTH, int(value))
        for end, value, direction in zip(samples.ends, samples.values, samples.directions, strict=True)
        if mask >> direction & 1
    ]
    found = table(added(samples, Weighting.UNIFORM, mask))
    assert {quantum: known[0] for quantum, known in found.items()} == summed(
        (quantum, bucket_of(value), Fraction(1)) for quantum, value in rows
    )
    for quantum, (_, sums, squares, lowest, highest, _, _) in found.items():
        there = [value for at, value in rows if at == quantum]
        assert (sums, squares) == (sum(there), sum(value**2 for value in there))
        assert (lowest, highest) == (min(there), max(there))


@given(records_of(), MASKS)
def test_a_record_counts_by_its_share_of_each_quantum(records: Records, mask: int) -> None:
    """And what is known exactly of it, in all that it touches."""
    assert_as_defined(records, mask)


BEGIN = BLOCK * LENGTH  # of the second block


@pytest.mark.parametrize(
    ("start", "end", "elsewhere"),
    [
        (BEGIN, BEGIN + 500, BEGIN + 1001),
        (BEGIN, BEGIN + LENGTH, BEGIN + LENGTH + 1),  # a whole quantum, and the next
        (BEGIN, BEGIN + LENGTH, BEGIN + LENGTH),
        (BEGIN - 1, BEGIN + 1, BEGIN + LENGTH + 1),  # cut, so it counts as a share already
        (BEGIN - LENGTH, BEGIN, BEGIN + 1),
        (BEGIN - LENGTH, BEGIN - 1, BEGIN),
        (BEGIN + 1, BEGIN + 2, BEGIN + 3),
        (2 * BEGIN - LENGTH, 2 * BEGIN, 2 * BEGIN + 1),
        (BEGIN - 1, 2 * BEGIN + 1, 2 * BEGIN + 1),
    ],
)
@pytest.mark.parametrize("direction", [0, 1])
def test_a_record_of_one_io_that_may_have_completed_elsewhere(
    start: int, end: int, elsewhere: int, direction: int
) -> None:
    one, two = np.array([start, 3 * BEGIN]), np.array([end, 3 * BEGIN + 1])
    records = Records(
        one, two, np.array([direction, 0], np.uint8), np.array([0, 1]), np.array([1, 2]), np.array([7, 8], np.uint16),
        np.ones(2, np.uint64),
    )  # fmt: skip
    assert_as_defined(replace(records, elsewhere=np.array([elsewhere, 3 * BEGIN + 1])), 0b001)
    exact = np.array([5, 6])
    known = replace(records, lowest=exact, highest=exact + 7, sums=exact * 1.0, squares=exact * 2.0)
    assert_as_defined(known, 0b001)


def test_samples_in_any_order_are_added_where_they_completed() -> None:
    ends = np.array([2 * BEGIN, BEGIN + 1, BEGIN, 5])
    found = table(added(Samples(ends, np.arange(4), np.zeros(4, np.uint8)), Weighting.UNIFORM))
    assert {quantum: known[0] for quantum, known in found.items()} == {
        2 * BLOCK - 1: {0: 1.0}, BLOCK: {1: 1.0}, BLOCK - 1: {2: 1.0}, 0: {3: 1.0},
    }  # fmt: skip


@pytest.mark.parametrize("weighting", Weighting)
def test_no_block_is_made_of_which_nothing_is_known(weighting: Weighting) -> None:
    samples = Samples(np.array([BEGIN + 501, 2 * BEGIN]), np.array([500, 500]), np.zeros(2, np.uint8))
    assert added(samples, weighting).blocks.keys() == {1}
    assert not added(samples, weighting, mask=0b110).blocks


def assert_as_defined(records: Records, mask: int) -> None:
    """The table of the records, with the uniform weighting."""
    expected: list[tuple[int, int, Fraction]] = []
    split: dict[int, Fraction] = {}
    cut: dict[int, int] = {}
    top: dict[int, int] = {}
    known: dict[int, list[tuple[int, float, float]]] = {}  # extreme, sum, squares of each record that touches a quantum
    for row in range(len(records)):
        if not mask >> records.directions[row] & 1:
            continue
        own = shares(int(records.starts[row]), int(records.ends[row]), None)
        held = range(records.first[row], records.stop[row])
        is_sure = (
            records.elsewhere is None or (records.elsewhere[row] - 1) // LENGTH == (records.ends[row] - 1) // LENGTH
        )
        for quantum, share in own.items():
            expected += [(quantum, int(records.buckets[i]), share * int(records.counts[i])) for i in held]
            if len(own) > 1:
                ios = share * sum(int(records.counts[i]) for i in held)
                split[quantum] = split.get(quantum, Fraction(0)) + ios
                cut[quantum] = cut.get(quantum, 0) + sum(int(records.counts[i]) for i in held)
            elif not is_sure:
                split[quantum] = split.get(quantum, Fraction(0)) + 1
            elif held:
                top[quantum] = max(top.get(quantum, -1), int(records.buckets[held[-1]]))
            if records.lowest is not None:
                sums = 0.0 if records.sums is None else float(records.sums[row] * share)
                squares = 0.0 if records.squares is None else float(records.squares[row] * share)
                known.setdefault(quantum, []).append((int(records.lowest[row]), sums, squares))
    accumulator = added(records, Weighting.UNIFORM, mask)
    found, cells = table(accumulator), summed(expected)
    assert found.keys() == cells.keys() | known.keys()
    for quantum, (own_cells, sums, squares, lowest, highest, own_split, own_top) in found.items():
        assert own_cells == pytest.approx(cells.get(quantum, {}), abs=1e-6)
        assert own_split == pytest.approx(float(split.get(quantum, 0)), abs=1e-6)
        assert own_top == top.get(quantum, -1)
        assert accumulator.blocks[quantum // BLOCK].cut[quantum % BLOCK] == cut.get(quantum, 0)
        if quantum in known:
            assert (lowest, highest) == (min(known[quantum])[0], max(known[quantum])[0] + 7)
            assert sums == pytest.approx(sum(one[1] for one in known[quantum]))
            assert squares == pytest.approx(sum(one[2] for one in known[quantum]))
    is_any = bool((mask >> records.directions & 1).any())
    assert accumulator.has_sums is (is_any and records.sums is not None)
    assert accumulator.has_moments is (is_any and records.squares is not None)


@given(records_of())
def test_an_io_of_a_record_counts_once_in_all_while_it_was_in_flight(records: Records) -> None:
    """From when its slowest I/O can have begun."""
    found = table(added(records, Weighting.IN_FLIGHT))
    counts: dict[int, float] = {}
    for cells, *_ in found.values():
        for bucket, weight in cells.items():
            counts[bucket] = counts.get(bucket, 0.0) + weight
    expected = np.bincount(records.buckets, weights=records.counts.astype(float), minlength=LAYOUT.buckets)
    assert counts == {int(bucket): expected[bucket] for bucket in np.flatnonzero(expected)}
    held = [row for row in range(len(records)) if records.stop[row] > records.first[row]]
    if held and records.lowest is None:
        slowest = [LAYOUT.middles[records.buckets[records.stop[row] - 1]] for row in held]
        begins = np.minimum(records.starts[held] - slowest, records.ends[held] - 1)  # of a moment
        assert min(found) >= min(begins) // LENGTH and max(found) == max((records.ends[held] - 1) // LENGTH)


MS = 10**6


@pytest.mark.parametrize(
    ("length_ms", "quantum_ms", "near_ms"),
    [
        (500, 1000, 10),
        (1000, 1000, 20),  # 2 %
        (500, 500, 10),
        (40, 1000, 10),
        (39, 1000, 9.75),  # a quarter of the record
        (60_000, 4000, 1000),  # a quarter of the quantum
        (60_000, 10_000, 1200),
    ],
)
def test_how_near_to_a_boundary_is_on_it(length_ms: int, quantum_ms: int, near_ms: float) -> None:
    assert tolerance_ns(np.array([length_ms * MS]), quantum_ms * MS).tolist() == [near_ms * MS]


@pytest.mark.parametrize(
    ("start_ms", "end_ms", "on"),
    [
        (501, 1001, (501, 1000)),
        (500, 1010, (500, 1000)),  # 2 % of 510 ms are 10.2
        (500, 1011, (500, 1011)),
        (490, 990, (490, 1000)),
        (489, 989, (489, 989)),
        (991, 1491, (1000, 1491)),
        (1010, 1510, (1000, 1510)),
    ],
)
def test_an_end_near_a_boundary_is_moved_onto_it(start_ms: int, end_ms: int, on: tuple[int, int]) -> None:
    none = np.zeros(1, np.int64)
    records = Records(
        np.array([start_ms * MS]), np.array([end_ms * MS]), np.zeros(1, np.uint8), none, none,
        np.zeros(0, np.uint16), np.zeros(0, np.uint64), elsewhere=np.array([end_ms * MS]),
    )  # fmt: skip
    found = on_grid(records, 1000 * MS)
    assert found.elsewhere is not None
    moved = (found.starts[0], found.ends[0], found.elsewhere[0])
    assert moved == (on[0] * MS, on[1] * MS, on[1] * MS)
    assert on_grid(replace(records, elsewhere=None), 1000 * MS).elsewhere is None


def test_a_block_that_another_thread_adds_to_is_added_to_last() -> None:
    """A thread waits for it, and has done all else by then."""
    accumulator = Accumulator(LAYOUT, LENGTH, Weighting.UNIFORM, True)
    one_each = Samples(
        np.array([1, BLOCK * LENGTH + 1, 2 * BLOCK * LENGTH + 1]), np.array([5, 6, 7]), np.zeros(3, np.uint8)
    )
    accumulator.add_samples(one_each)
    busy = accumulator.blocks[0]
    with busy.lock:
        thread = threading.Thread(target=accumulator.add_samples, args=(one_each,))
        thread.start()
        wait_until(lambda: accumulator.blocks[2].cells[0, 7] == 2.0)
        assert busy.cells[0, 5] == 1.0 and thread.is_alive()
        assert not accumulator.blocks[1].lock.locked()
    thread.join()
    assert [known[0] for known in table(accumulator).values()] == [{5: 2.0}, {6: 2.0}, {7: 2.0}]
    assert not any(block.lock.locked() for block in accumulator.blocks.values())


def wait_until(is_so: Callable[[], bool]) -> None:
    """Yields to other threads meanwhile; pytest's timeout ends it."""
    pause = threading.Event()
    while not is_so():
        pause.wait(0.001)
