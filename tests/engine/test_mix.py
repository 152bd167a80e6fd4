"""Mixes of operations, sizes and places: which I/Os are issued, and where they go."""

import itertools
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support import devices
from tests.support.engine import run
from tests.support.mixes import (
    BATCHES,
    EVERYWHERE,
    KIB,
    MIB,
    READ,
    TRIM,
    WRITE,
    ZEROES,
    Part,
    Parts,
    Setting,
    Ways,
    Where,
    drawn,
    is_fair,
    submitted,
)

pytestmark = pytest.mark.slow


# Shares.


def probabilities(rows: list[int]) -> list[Fraction]:
    """Of each part, as its table has it."""
    found = [Fraction(0)] * (len(rows) // 2)
    for row, (threshold, other) in enumerate(zip(rows[::2], rows[1::2], strict=True)):
        own = Fraction(threshold, 2**64)
        found[row] += own / len(found)
        found[other] += (1 - own) / len(found)
    return found


SHARES = st.lists(st.integers(1, 10**6), min_size=1, max_size=16)


@settings(max_examples=30, deadline=None)  # a process each
@given(st.lists(SHARES, min_size=1, max_size=20))
@example([[1], [1, 1], [10**6, 1], [1] * 16, [1, 10**6, 1, 10**6, 1]])
def test_the_table_is_the_shares(tables: list[list[int]]) -> None:
    lines = [" ".join(repr(weight / sum(weights)) for weight in weights) for weights in tables]
    for weights, said in zip(tables, run("mix", "table", stdin="\n".join(lines)).splitlines(), strict=True):
        for weight, probability in zip(weights, probabilities([*map(int, said.split())]), strict=True):
            assert abs(probability - Fraction(weight, sum(weights))) < Fraction(1, 2**40)


EVERYTHING = [
    Part(0.4, 4 * KIB, READ),
    Part(0.15, 64 * KIB, READ),
    Part(0.2, 4 * KIB, WRITE),
    Part(0.1, 12 * KIB, WRITE),
    Part(0.1, 1 * MIB, TRIM),
    Part(0.05, 16 * KIB, ZEROES),
]


@pytest.mark.parametrize("order", ["random", "sequential"])
def test_each_operation_and_size_has_its_share_of_what_is_issued(order: str) -> None:
    ios = drawn(EVERYTHING, 100_000, Ways(order))
    counts = Counter((io.op, io.bytes) for io in ios)
    assert set(counts) == {(part.op, part.bytes) for part in EVERYTHING}
    for part in EVERYTHING:
        assert is_fair(counts[part.op, part.bytes], len(ios), part.share), part


def test_what_an_io_is_does_not_depend_on_the_one_before() -> None:
    ios = drawn(EVERYTHING, 100_000, Ways())
    pairs = Counter((a.op, a.bytes, b.op, b.bytes) for a, b in itertools.pairwise(ios))
    for a, b in itertools.product(EVERYTHING, repeat=2):
        assert is_fair(pairs[a.op, a.bytes, b.op, b.bytes], len(ios) - 1, a.share * b.share), (a, b)


# Places.

SIZES = st.integers(1, 40).map(lambda n: n * 512)
PARTS = st.lists(st.tuples(SIZES, st.integers(0, 3)), min_size=1, max_size=6).map(
    lambda parts: [Part(1 / len(parts), *part) for part in parts]
)
SPANS = st.one_of(
    st.just((0, 0)),
    st.tuples(st.integers(0, 100_000), st.integers(1, 400_000)).map(lambda span: (span[0], span[0] + span[1])),
)
WHERES = st.builds(
    Where,
    zipf=st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.2, 16.0]),
    working_set=st.one_of(st.just(0), st.integers(1, 100_000)),
    scattered=st.booleans(),
    seed=st.integers(0, 2**63 - 1),
    zones=st.just(()),
) | st.builds(
    Where,
    pareto=st.sampled_from([0.0, 0.01, 0.2, 0.99]),
    normal=st.sampled_from([0.0, 0.01, 0.4, 10.0]),
    zones=st.just(()),
)
WAYS = st.builds(
    Ways,
    order=st.sampled_from(["random", "sequential"]),
    align=st.one_of(st.just(0), SIZES),
    sequential=st.sampled_from([0.0, 0.3, 1.0]),
    streams=st.integers(1, 5),
    by_operation=st.booleans(),
    span=SPANS,
    size=st.integers(1, 1000).map(lambda n: n * 512),
    device=st.booleans(),
    where=WHERES,
).map(lambda ways: ways._replace(streams=1) if ways.order == "random" else ways._replace(where=EVERYWHERE))


def up(at: int, align: int) -> int:
    return -(-at // align) * align


def aligns_of(parts: Parts, ways: Ways) -> dict[int, int]:
    """By operation."""
    return {op: ways.align or min(part.bytes for part in parts if part.op == op) for op in {part.op for part in parts}}


@settings(max_examples=150, deadline=None)  # a process each
@given(PARTS, WAYS)
def test_every_io_lies_in_the_range_and_begins_at_a_multiple(parts: list[Part], ways: Ways) -> None:
    ios = drawn(parts, 200, ways)
    aligns = aligns_of(parts, ways)
    align = min(aligns.values())
    start, end = ways.span if ways.span != (0, 0) else (0, ways.size)
    least = max(-(-start // align), 1 if ways.device else 0) * align
    piece = (end - least) // ways.streams // align * align if ways.streams > 1 else end - least
    fits = end <= ways.size and all(
        up(least + k * piece, aligns[part.op]) + part.bytes <= least + (k + 1) * piece
        for k in range(ways.streams)
        for part in parts
    )
    assert (len(ios) == 200) is fits
    for io in ios:
        assert io.offset % aligns[io.op] == 0
        assert least <= io.offset and io.end <= end
        if ways.streams > 1:
            assert (io.offset - least) // piece == (io.end - 1 - least) // piece < ways.streams


@pytest.mark.parametrize(("align", "size"), [(4 * KIB, 4 * KIB), (4 * KIB, 16 * KIB), (16 * KIB, 4 * KIB)])
def test_random_places_are_alike_and_include_the_last(align: int, size: int) -> None:
    ios = drawn([Part(0.5, size), Part(0.5, 4 * KIB, WRITE)], 100_000, Ways(align=align, span=(1000, 160 * KIB + 1000)))
    first = align
    for part in (0, 1):
        mine = [io for io in ios if io.op == part]
        bytes_each = mine[0].bytes
        places = range(first, 160 * KIB + 1000 - bytes_each + 1, align)
        counts = Counter(io.offset for io in mine)
        assert set(counts) == set(places)
        assert all(is_fair(counts[place], len(mine), 1 / len(places)) for place in places)


def test_a_sequential_mix_of_sizes_is_a_cursor_in_bytes() -> None:
    """Each begins at the end of the last, rounded up; what does not fit before the end begins at the start again."""
    parts = [Part(0.3, 4 * KIB), Part(0.2, 8 * KIB), Part(0.3, 12 * KIB, WRITE), Part(0.2, 6 * KIB, TRIM)]
    for align in (0, KIB, 8 * KIB):
        ways = Ways("sequential", align=align, span=(3 * KIB, 100 * KIB))
        ios, aligns = drawn(parts, 2000, ways), aligns_of(parts, ways)
        at = 3 * KIB
        for io in ios:
            at = up(at, aligns[io.op])
            if at + io.bytes > 100 * KIB:
                at = up(3 * KIB, aligns[io.op])
            assert io.offset == at
            at = io.end


def test_of_a_sequential_table() -> None:
    ios = drawn([Part(1.0, 12 * KIB)], 5, Ways("sequential", align=8 * KIB, span=(0, 48 * KIB)))
    assert [io.offset // KIB for io in ios] == [0, 16, 32, 0, 16]


@pytest.mark.parametrize("by_operation", [False, True])
def test_streams_take_turns_in_their_own_parts_of_the_range(by_operation: bool) -> None:
    """Three pieces of 32 KiB of a range of 100; the rest is of none."""
    parts = [Part(0.5, 8 * KIB), Part(0.5, 8 * KIB, WRITE)]
    ios = drawn(parts, 3000, Ways("sequential", streams=3, by_operation=by_operation, span=(0, 100 * KIB)))
    seen: dict[tuple[int, int], list[int]] = defaultdict(list)
    for turn, io in enumerate(ios):
        seen[turn % 3, io.op if by_operation else 0].append(io.offset // KIB)
    for (stream, _), offsets in seen.items():
        assert offsets == [stream * 32 + n * 8 % 32 for n in range(len(offsets))]
    assert len(seen) == (6 if by_operation else 3)


@pytest.mark.parametrize("order", ["random", "sequential"])
def test_cursors_by_operation_follow_the_last_of_theirs(order: str) -> None:
    parts = [Part(0.25, 4 * KIB, op) for op in (READ, WRITE, TRIM, ZEROES)]
    ios = drawn(parts, 4000, Ways(order, by_operation=True, sequential=1.0))
    for op in (READ, WRITE, TRIM, ZEROES):
        mine = [io for io in ios if io.op == op]
        assert all(b.offset == a.end for a, b in itertools.pairwise(mine))
        assert order == "random" or mine[0].offset == 0


@pytest.mark.parametrize("share", [0.3, 0.9])
@pytest.mark.parametrize("by_operation", [False, True])
def test_a_share_of_random_ios_follows_the_last(share: float, by_operation: bool) -> None:
    """Runs are as long as chance has it: geometric. The range is so large that none follows by chance."""
    parts = [Part(0.7, 4 * KIB), Part(0.3, 8 * KIB, WRITE)]
    ios = drawn(parts, 100_000, Ways(align=4 * KIB, sequential=share, by_operation=by_operation, size=1 << 45))
    groups = [[io for io in ios if io.op == op] for op in (READ, WRITE)] if by_operation else [ios]
    for mine in groups:
        follows = [b.offset == a.end for a, b in itertools.pairwise(mine)]
        assert is_fair(sum(follows), len(follows), share)
        triples = sum(all(three) for three in zip(follows, follows[1:], follows[2:], strict=False))
        assert abs(triples / len(follows) - share**3) < 0.02
        reads = sum(b.op == READ for (a, b) in itertools.pairwise(mine) if b.offset == a.end)
        assert by_operation or is_fair(reads, sum(follows), 0.7), "what it is stays random"


def test_where_the_next_does_not_fit_it_goes_anywhere() -> None:
    ios = drawn([Part(1.0, 4 * KIB)], 20_000, Ways(sequential=1.0, size=64 * KIB))
    wraps = [b.offset for a, b in itertools.pairwise(ios) if b.offset != a.end]
    assert all(a.end == 64 * KIB for a, b in itertools.pairwise(ios) if b.offset != a.end)
    assert set(wraps) == set(range(0, 64 * KIB, 4 * KIB))


# By an engine.


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return devices.image(tmp_path, 4 * MIB)


def test_an_engine_submits_what_the_mix_is(image: Path) -> None:
    ios = submitted(image, Setting(0, EVERYTHING, maxtags=32), ios=100_000, tags=32)
    counts = Counter((io.op, io.bytes) for io in ios)
    for part in EVERYTHING:
        assert is_fair(counts[part.op, part.bytes], len(ios), part.share), part
    assert all(io.offset % (4 * KIB) == 0 and io.end <= 4 * MIB for io in ios)


@pytest.mark.parametrize("sanitizer", ["asan", "tsan"])
@pytest.mark.parametrize("order", [0, 2])
def test_edits_lead_from_a_mix_to_plain_ios_and_back(image: Path, order: int, sanitizer: str) -> None:
    half, whole = (1 * MIB, 3 * MIB), (0, 0)
    changes = [
        Setting(0, span=half, blocksize=8 * KIB),
        Setting(2000, EVERYTHING, span=half),
        Setting(4000, [Part(1.0, 2 * KIB, WRITE)], span=half),
        Setting(6000, span=half, blocksize=64 * KIB, fraction_read=0.0),
        Setting(8000, [Part(0.5, 4 * KIB), Part(0.5, 64 * KIB, ZEROES)], span=whole),
        Setting(10_000, span=half, blocksize=4 * KIB, fraction_read=0.5),
    ]
    ios = submitted(image, *changes, order=order, ios=12_000, sanitizer=sanitizer)
    begins = [change.since for change in changes] + [len(ios)]
    for change, (begin, end) in zip(changes, itertools.pairwise(begins), strict=True):
        mine = ios[begin + BATCHES : end]
        wanted = {(part.op, part.bytes) for part in change.parts} or {
            (op, change.blocksize) for op in (READ, WRITE) if op != change.fraction_read
        }
        assert {(io.op, io.bytes) for io in mine} == wanted, change
        assert change.span == whole or all(half[0] <= io.offset and io.end <= half[1] for io in mine)


def test_a_sequential_mix_goes_on_where_plain_ios_ended(image: Path) -> None:
    changes = [
        Setting(0, blocksize=4 * KIB),
        Setting(1000, [Part(1.0, 8 * KIB, WRITE)]),
        Setting(2000, blocksize=4 * KIB),
    ]
    ios = submitted(image, *changes, order=2, ios=3000)
    assert {io.bytes for io in ios} == {4 * KIB, 8 * KIB}
    for a, b in itertools.pairwise(ios):
        at = -(-a.end // b.bytes) * b.bytes
        assert b.offset == (at if at + b.bytes <= 4 * MIB else 0)


EXTENTS = st.lists(st.integers(0, 256), min_size=2, max_size=6, unique=True).map(
    lambda ends: [(a * 16 * KIB, b * 16 * KIB) for a, b in zip(sorted(ends)[::2], sorted(ends)[1::2], strict=False)]
)
CHANGES = st.lists(
    st.tuples(
        st.lists(
            st.tuples(st.sampled_from([512, 4 * KIB, 12 * KIB, 40 * KIB]), st.integers(0, 3)), min_size=0, max_size=5
        ),
        st.integers(0, 4 * MIB),
        st.integers(0, 4 * MIB),
        st.sampled_from([0.0, 0.5, 1.0]),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=60, deadline=None)  # a process each
@given(
    EXTENTS,
    CHANGES,
    st.sampled_from([(0, EVERYWHERE), (2, EVERYWHERE), (0, Where(zipf=1.1, scattered=True)), (0, Where(normal=0.2))]),
    st.sampled_from([0, 512, 8 * KIB]),
    st.integers(0, 2),
)
def test_nothing_is_written_trimmed_or_zeroed_but_what_was_agreed_to(
    extents: list[tuple[int, int]],
    changes: list[tuple[list[tuple[int, int]], int, int, float]],
    ways: tuple[int, Where],
    align: int,
    in_extent: int,
) -> None:
    with devices.memory_folder() as folder:
        image = devices.image(folder, 4 * MIB)
        asked = []
        for number, (parts, start, length, fraction_read) in enumerate(changes):
            span = (start, start + length)
            if in_extent and number % 2 < in_extent:
                span = extents[start % len(extents)]
            mix = [Part(1 / len(parts), *part) for part in parts]
            asked.append(Setting(number * 200, mix, span, fraction_read))
        first = Setting(0, span=(0, 0))
        ios = submitted(
            image, first, *asked, order=ways[0], where=ways[1], align=align, ios=200 * len(asked) + 200, agreed=extents
        )
    for io in ios:
        assert io.op == READ or any(start <= io.offset and io.end <= end for start, end in extents)
        assert io.end <= 4 * MIB
