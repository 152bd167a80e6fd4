"""The C parsers and sums, against the plainest Python."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivypy.master.logs.native import _rows
from tests.support import log_twin

COLUMNS = 29


def parsed(
    text: str, lead: int = 3, columns: int = COLUMNS, rows: int = 64
) -> list[tuple[int, int, int, dict[int, int]]] | None:
    stamps, sizes, first = (np.empty(rows + 1, np.int64) for _ in range(3))
    directions = np.empty(rows, np.uint8)
    entries = rows * columns
    buckets, counts = np.empty(entries, np.uint16), np.empty(entries, np.uint64)
    arrays = (stamps[:rows], directions, sizes[:rows], first, buckets, counts)
    found, _, lines, used, bad = _rows.parse_histograms(text.encode(), lead, columns, *arrays)
    if bad:
        return None
    assert used == len(text) and lines == text.count("\n")
    return [
        (
            int(stamps[r]),
            int(directions[r]),
            int(sizes[r]),
            {
                int(b): int(c)
                for b, c in zip(buckets[first[r] : first[r + 1]], counts[first[r] : first[r + 1]], strict=True)
            },
        )
        for r in range(found)
    ]


cells = st.one_of(
    st.just("0"), st.integers(0, 10**18 - 1).map(str), st.sampled_from(["", "-1", "1a", " 0 ", "00", "7"])
)


@st.composite
def lines(draw: st.DrawFn) -> str:
    separator = draw(st.sampled_from([", ", ",", " , ", ",  "]))
    count = draw(st.sampled_from([COLUMNS, COLUMNS, COLUMNS, COLUMNS - 1, COLUMNS + 1]))
    zeros = draw(st.integers(0, count))
    body = ["0"] * zeros + [draw(cells) for _ in range(count - zeros)]
    return separator.join([draw(cells), draw(st.sampled_from(["0", "1", "2", "3"])), "4096", *body]) + draw(
        st.sampled_from(["\n", " \n", "\r\n", "\n\n"])
    )


@pytest.mark.slow
@given(st.lists(lines(), max_size=4).map("".join))
@settings(max_examples=100, deadline=None)
def test_histogram_rows_are_read_as_python_reads_them(text: str) -> None:
    assert parsed(text) == log_twin.parse_histogram(text, 3, COLUMNS)


@pytest.mark.parametrize("columns", [1, 7, 8, 9, 24, 25, 1216, 1856])
@pytest.mark.parametrize("lead", [2, 3])
def test_every_column_is_found(columns: int, lead: int) -> None:
    """Eight empty cells are passed at once: no position may be lost by that."""
    head = "5, 1, 4096" if lead == 3 else "5, 1"
    text = "".join(
        head + ", " + ", ".join("9" if c == at else "0" for c in range(columns)) + "\n" for at in range(columns)
    )
    found = parsed(text, lead, columns, rows=columns)
    assert found == [(5, 1, 4096 if lead == 3 else -1, {at: 9}) for at in range(columns)]


def test_blanks_before_a_cell_after_empty_ones_are_passed() -> None:
    text = "5, 1, 4096" + ", 0" * 24 + ",  0 ,   7" + ", 0" * 3 + "\n"
    assert parsed(text) == [(5, 1, 4096, {25: 7})]


def test_a_full_array_stops_between_rows() -> None:
    text = "1,0,0,1,1\n2,0,0,1,1\n3,0,0,1,1\n"
    stamps, sizes, first = np.empty(2, np.int64), np.empty(2, np.int64), np.empty(3, np.int64)
    arrays = stamps, np.empty(2, np.uint8), sizes, first, np.empty(9, np.uint16), np.empty(9, np.uint64)
    assert _rows.parse_histograms(text.encode(), 3, 2, *arrays) == (2, 4, 2, len("1,0,0,1,1\n") * 2, False)


LATENCY_ROWS = [
    ("10, 2000, 1, 4096\n", 4, 2, (10, 2000, 1)),
    ("10, 2000, 1, 4096, 0\n", 5, 2, (10, 2000, 1)),
    ("10,2000,0,4096,8192,0x0000\n", 6, 2, (10, 2000, 0)),
    ("10, 2000, 2, 4096, 8192, 0xAf, 77\n", 7, 2, (10, 2000, 2)),
    ("10, 2000, 3000, 1, 4096, 0\n", 6, 3, (10, 2000, 1)),
    ("10, 2000, 3, 4096\n", 4, 2, None),
    ("10, 2000, 1\n", 4, 2, None),
    ("10, 2000, 1, 4096, 5\n", 4, 2, None),
    ("10, 0x, 1, 4096\n", 4, 2, None),
    ("10, 2.5, 1, 4096\n", 4, 2, None),
    ("-10, 2, 1, 4096\n", 4, 2, None),
    ("1234567890123456789, 2, 1, 4096\n", 4, 2, None),
]


@pytest.mark.parametrize(("text", "fields", "direction_at", "expected"), LATENCY_ROWS)
def test_latency_rows(text: str, fields: int, direction_at: int, expected: tuple[int, int, int] | None) -> None:
    out = np.empty(4, np.int64), np.empty(4, np.int64), np.empty(4, np.uint8)
    rows, _, _, used, bad = _rows.parse_latencies(text.encode(), fields, direction_at, *out)
    assert bad == (expected is None)
    if expected is not None:
        assert rows == 1 and used == len(text)
        assert tuple(int(array[0]) for array in out) == expected


SMALLFILE_ROWS = [
    ("  create,  0.000037,  0.000065\n", (102_000, 65_000)),
    ("some-operation,820,40\n", (860 * 10**9, 40 * 10**9)),
    ("ls-l,1.5,0.0000000019\n", (1_500_000_001, 1)),
    ("create, 1.0\n", None),
    ("create, x, 1.0\n", None),
    ("create, 1.0, -1.0\n", None),
    ("create\n", None),
]


@pytest.mark.parametrize(("text", "expected"), SMALLFILE_ROWS)
def test_smallfile_rows(text: str, expected: tuple[int, int] | None) -> None:
    out = np.empty(4, np.int64), np.empty(4, np.int64), np.empty(4, np.uint8)
    rows, *_, bad = _rows.parse_smallfile(text.encode(), *out)
    assert bad == (expected is None)
    if expected is not None:
        assert rows == 1 and (int(out[0][0]), int(out[1][0])) == expected


BUCKETS = 40
LATENCIES = [0.0, *(1.25**n for n in range(BUCKETS - 1))]


@st.composite
def records(draw: st.DrawFn) -> list[tuple[int, int, dict[int, int]]]:
    found = []
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(-500, 3000))
        end = start + draw(st.sampled_from([0, 1, 7, 100, 999, 5000]))
        found.append((start, end, draw(st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 1000), max_size=5))))
    return found


def in_c(
    batch: list[tuple[int, int, dict[int, int]]], length: int, in_flight: bool, earliest: int, low: int, quanta: int
) -> dict[tuple[int, int], float]:
    """Spread in C, in windows of 8 quanta, as the accumulator does it."""
    entries = [sorted(counts.items()) for *_, counts in batch]
    stop = np.cumsum([len(e) for e in entries]).astype(np.int64)
    cells = np.zeros((quanta, BUCKETS))
    for first in range(0, quanta, 8):
        _rows.spread_records(
            np.array([start for start, *_ in batch]),
            np.array([end for _, end, _ in batch]),
            np.zeros(len(batch), np.uint8),
            np.concatenate([[0], stop[:-1]]),
            stop,
            np.array([b for e in entries for b, _ in e], np.uint16),
            np.array([c for e in entries for _, c in e], np.uint64),
            1,
            np.array(LATENCIES) if in_flight else None,
            earliest,
            length,
            low + first,
            BUCKETS,
            cells[first : first + 8],
            np.zeros(len(cells[first : first + 8])),
            np.full(len(cells[first : first + 8]), -1),
        )
    return {(low + int(q), int(b)): float(cells[q, b]) for q, b in zip(*np.nonzero(cells), strict=True)}


@pytest.mark.slow
@given(records(), st.sampled_from([50, 700, 1000]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_records_are_spread_as_the_formulas_say(
    batch: list[tuple[int, int, dict[int, int]]], length: int, in_flight: bool
) -> None:
    low = -40
    found = in_c(batch, length, in_flight, low, low, 320)
    fractions = [Fraction(latency) for latency in LATENCIES] if in_flight else None
    expected = log_twin.spread(batch, length, fractions, low)
    for place in found.keys() | expected.keys():
        tolerance = 2e-9 * sum(counts.get(place[1], 0) for *_, counts in batch)
        assert found.get(place, 0) == pytest.approx(expected.get(place, 0), abs=tolerance)


@given(records(), st.booleans())
def test_every_io_counts_exactly_once(batch: list[tuple[int, int, dict[int, int]]], in_flight: bool) -> None:
    found = in_c(batch, 100, in_flight, -20, -20, 400)
    for bucket in range(BUCKETS):
        total = sum(counts.get(bucket, 0) for *_, counts in batch)
        assert sum(weight for (_, b), weight in found.items() if b == bucket) == total


@given(st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 4000)), min_size=1, max_size=20), st.booleans())
def test_samples_are_spread_as_the_formulas_say(batch: list[tuple[int, int]], in_flight: bool) -> None:
    low, quanta = -10, 30
    cells, sums = np.zeros((quanta, 2560)), np.zeros(quanta)
    lowest, highest = np.full(quanta, 10**9), np.full(quanta, -1)
    _rows.spread_samples(
        np.array([end for end, _ in batch]), np.array([value for _, value in batch]), np.zeros(len(batch), np.uint8),
        1, in_flight, low, 500, low, 2560, cells, sums, np.zeros(quanta), lowest, highest,
    )  # fmt: skip
    found = {(low + int(q), int(b)): float(cells[q, b]) for q, b in zip(*np.nonzero(cells), strict=True)}
    expected = log_twin.spread_samples(batch, 500, in_flight)
    assert found == pytest.approx({k: v for k, v in expected.items() if v}, abs=1e-8)
    assert cells.sum() == len(batch)
    assert sums.sum() == pytest.approx(sum(value for _, value in batch))
    if not in_flight:
        for quantum in range(quanta):
            own = [value for end, value in batch if log_twin.quantum_of(end, 500) == low + quantum]
            assert (lowest[quantum], highest[quantum]) == (min(own, default=10**9), max(own, default=-1))


def test_arrays_that_do_not_fit_are_refused() -> None:
    """A wrong size would be a wild write in C: every check is tried."""
    i64, u8, u16, u64, f64 = (np.zeros(2, t) for t in (np.int64, np.uint8, np.uint16, np.uint64, np.float64))
    good = [b"1,0,0,1\n", 3, 1, i64, u8, i64, np.zeros(3, np.int64), u16, u64]
    assert _rows.parse_histograms(*good)[0] == 1  # type: ignore[arg-type]
    for place, bad in [(0, b"1,0,0,1"), (1, 4), (2, 0), (3, u8), (4, u8[:1]), (5, i64[:1]), (6, i64), (8, u64[:1])]:
        with pytest.raises(ValueError):
            _rows.parse_histograms(*[*good[:place], bad, *good[place + 1 :]])  # type: ignore[arg-type]
    rows = [i64, i64, u8, i64, i64, u16, u64, 7, None, 0, 10, 0, 1, f64, f64.copy(), i64.copy()]
    _rows.spread_records(*rows)  # type: ignore[arg-type]
    for place, bad in [
        (0, i64 + 5),
        (1, i64[:1]),
        (4, i64 + 9),
        (2, u8 + 9),
        (5, u16 + 1),
        (8, np.zeros(2)),
        (10, 0),
        (12, 3),
        (14, f64[:1]),
        (15, u64[:1]),
    ]:
        with pytest.raises(ValueError):
            _rows.spread_records(*[*rows[:place], bad, *rows[place + 1 :]])  # type: ignore[arg-type]


def test_threads_may_add_at_once() -> None:
    """The GIL is given up: two threads with arrays of their own do not disturb each other."""
    from concurrent.futures import ThreadPoolExecutor

    text = "".join(f"{n}, 0, 4096, " + ", ".join(["0"] * 28 + ["3"]) + "\n" for n in range(60))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(parsed, itertools.repeat(text, 40)))
    assert all(one == found[0] for one in found)
