"""Where the I/Os of a random workload go, if not everywhere alike; and where a sequential one begins."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tests.support import devices
from tests.support.engine import Drive, drive, fields, run
from tests.support.mixes import KIB, MIB, READ, WRITE, Io, Part, Setting, Ways, Where, drawn, submitted, table_drawn

pytestmark = pytest.mark.slow

BLOCK = 4 * KIB
READS = [Part(1.0, BLOCK)]
DRAWS = 100_000
LEAST = 1e-6  # of a p-value; the seeds are fixed
PLACES = [10, 1000, 1 << 40]

Below = Callable[[int], float]  # the probability of the places below one


def places(where: Where, count: int, draws: int = DRAWS) -> NDArray[np.int64]:
    ways = Ways(size=count * 512, align=512, where=where)
    table = table_drawn([Part(1.0, 512)], draws, ways)
    return table[:, Io._fields.index("offset")] // 512


def is_by(found: NDArray[np.int64], count: int, below: Below) -> bool:
    """Chi-square in bins of single places first, then ever wider ones; those that few I/Os would be in are merged."""
    edges = sorted({*range(min(count, 20)), *np.geomspace(1, count, 120).astype(np.int64).tolist(), count})
    shares = np.diff([below(edge) for edge in edges])
    counts = np.histogram(found, bins=edges)[0]
    assert counts.sum() == len(found), "all lie below the count"
    return is_fair(counts, shares)


def is_fair(counts: Sequence[int] | NDArray[np.int64], shares: Sequence[float] | NDArray[np.float64]) -> bool:
    observed, expected = [0.0], [0.0]
    for n, share in zip(counts, np.asarray(shares) * sum(counts), strict=True):
        if expected[-1] >= 10:
            observed.append(0.0)
            expected.append(0.0)
        observed[-1] += n
        expected[-1] += share
    if expected[-1] < 10 and len(expected) > 1:
        observed[-2:], expected[-2:] = [sum(observed[-2:])], [sum(expected[-2:])]
    assert sum(expected) == pytest.approx(sum(observed), rel=1e-9)
    return len(expected) == 1 or bool(
        stats.chisquare(observed, np.array(expected) * sum(observed) / sum(expected)).pvalue > LEAST
    )


def powers(count: int, theta: float) -> float:
    """The sum of k**-theta for k from 1 to count: behind the first thousand by Euler and Maclaurin."""
    first = min(count, 1000)
    total = float((np.arange(1, first + 1, dtype=float) ** -theta).sum())
    if count == first:
        return total
    a, b = float(first + 1), float(count)
    area = np.log(b / a) if theta == 1.0 else (b ** (1 - theta) - a ** (1 - theta)) / (1 - theta)
    return float(total + area + (a**-theta + b**-theta) / 2 + theta * (a ** (-theta - 1) - b ** (-theta - 1)) / 12)


def by_zipf(count: int, theta: float) -> Below:
    whole = powers(count, theta)
    return lambda place: powers(place, theta) / whole if place else 0.0


@pytest.mark.parametrize("count", [10, 1000])
def test_the_sums_that_zipf_is_held_to_are_those_of_scipy(count: int) -> None:
    for theta in (0.5, 0.99, 1.0, 1.2, 2.5):
        below = by_zipf(count, theta)
        assert below(count) == 1
        for place in (1, 2, count // 2):
            assert below(place) == pytest.approx(stats.zipfian.cdf(place, theta, count), rel=1e-9)
    assert powers(10**6, 0.99) == pytest.approx(float((np.arange(1, 10**6 + 1.0) ** -0.99).sum()), rel=1e-12)


@pytest.mark.parametrize("count", PLACES)
@pytest.mark.parametrize("theta", [0.01, 0.5, 0.99, 1.0, 1.0 + 1e-12, 1.2, 2.5, 16.0])
def test_zipf_is_exact(theta: float, count: int) -> None:
    assert is_by(places(Where(zipf=theta), count), count, by_zipf(count, theta))


@pytest.mark.parametrize("count", PLACES)
@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.9])
def test_pareto_is_fio_s(share: float, count: int) -> None:
    """The first part of the places has the rest of the I/Os, and the same part of these again the same part of that."""
    power = np.log(1 - share) / np.log(share)
    found = places(Where(pareto=share), count)
    assert is_by(found, count, lambda place: (place / count) ** power)
    if count > 1000:
        assert np.mean(found < share * count) == pytest.approx(1 - share, abs=0.01)


@pytest.mark.parametrize("count", PLACES)
@pytest.mark.parametrize("deviation", [0.001, 0.1, 0.49, 0.51, 3.0])
def test_normal_is_a_truncated_normal_distribution(deviation: float, count: int) -> None:
    law = stats.truncnorm(-0.5 / deviation, 0.5 / deviation, loc=0.5, scale=deviation)
    found = places(Where(normal=deviation), count)
    edges = np.unique(np.floor(law.ppf(np.linspace(0, 1, 101)) * count))
    assert is_fair(np.histogram(found, bins=edges)[0], np.diff(law.cdf(edges / count)))
    assert 0 <= found.min() and found.max() < count


@pytest.mark.parametrize("where", [Where(zipf=1.2), Where(pareto=0.2), Where(working_set=100 * 512)])
def test_scattered_ranks_have_a_place_each(where: Where) -> None:
    """How often the ranks come is as before; where they lie is anywhere, and another seed has them elsewhere."""
    plain, scattered = places(where, 10_000), places(where._replace(scattered=True, seed=5), 10_000)
    assert sorted(Counter(plain.tolist()).values()) == sorted(Counter(scattered.tolist()).values())
    top = [place for place, _ in Counter(scattered.tolist()).most_common(50)]
    assert len({place // 1000 for place in top}) > 5
    other = places(where._replace(scattered=True, seed=6), 10_000)
    assert len({place for place, _ in Counter(other.tolist()).most_common(50)} & set(top)) < 10


@pytest.mark.parametrize("zipf", [0.0, 0.1])
def test_a_working_set_is_of_so_many_places(zipf: float) -> None:
    where = Where(working_set=1000 * 512 + 511, zipf=zipf)
    assert set(places(where, 16_000).tolist()) == set(range(1000)), "the first, not scattered"
    scattered = places(where._replace(scattered=True, seed=3), 16_000)
    found = set(scattered.tolist())
    assert len(found) == 1000
    assert min(Counter(place // 1000 for place in found).values()) > 30, "all over the range"
    if not zipf:
        assert is_fair([*Counter(scattered.tolist()).values()], [1 / 1000] * 1000)


@pytest.mark.parametrize(("bytes_of_it", "count"), [(1, 1), (512, 1), (1 << 62, 50), (0, 50)])
def test_a_working_set_has_a_place_and_no_more_than_there_are(bytes_of_it: int, count: int) -> None:
    found = places(Where(working_set=bytes_of_it, zipf=0.01), 50, 5000)
    assert len(set(found.tolist())) == count


@pytest.mark.parametrize("where", [Where(zipf=1.2, scattered=True), Where(pareto=0.1), Where(normal=0.01)])
def test_all_operations_and_sizes_have_one_hot_set(where: Where) -> None:
    parts = [Part(0.4, BLOCK), Part(0.3, 4 * BLOCK, WRITE), Part(0.3, 4 * BLOCK)]
    ios = drawn(parts, 200_000, Ways(align=BLOCK, where=where))
    tops = [[place for place, _ in counts.most_common(3)] for counts in by_part(ios).values()]
    assert len(tops) == 3
    if where.normal:
        middles = [np.mean([io.offset for io in ios if (io.op, io.bytes) == (part.op, part.bytes)]) for part in parts]
        assert np.ptp(middles) <= 2 * BLOCK
        return
    assert tops[0] == tops[1] == tops[2]
    whole = by_part(drawn(parts, 200_000, Ways(where=where)))  # at multiples of the least of each operation
    read, write = (whole[kind].most_common(1)[0][0] for kind in ((READ, BLOCK), (WRITE, 4 * BLOCK)))
    assert write == read // (4 * BLOCK) * 4 * BLOCK


def by_part(ios: list[Io]) -> dict[tuple[int, int], Counter[int]]:
    counts: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for io in ios:
        counts[io.op, io.bytes][io.offset] += 1
    return counts


def test_a_share_of_them_follows_the_last() -> None:
    ios = drawn(READS, DRAWS, Ways(sequential=0.5, size=1 << 45, where=Where(zipf=0.9, scattered=True)))
    follows = sum(b.offset == a.end for a, b in itertools.pairwise(ios))
    assert follows / len(ios) == pytest.approx(0.5, abs=0.01)


# Zones.

ZONES = ((0, 8 * MIB, 0.7, 0.1), (8 * MIB, 9 * MIB, 0.0, 0.5), (40 * MIB, 64 * MIB, 0.3, 0.4))


def test_each_zone_has_its_share_of_the_reads_and_of_the_others() -> None:
    parts = [Part(0.3, BLOCK), Part(0.2, 4 * BLOCK), Part(0.3, BLOCK, WRITE), Part(0.2, 16 * BLOCK, 2)]
    ios = drawn(parts, DRAWS, Ways(where=Where(zones=ZONES)))
    for op in (READ, WRITE, 2):
        mine = [io for io in ios if io.op == op]
        counts = [sum(start <= io.offset and io.end <= end for io in mine) for start, end, _, _ in ZONES]
        assert sum(counts) == len(mine), "each lies in one"
        shares = [zone[2] if op == READ else zone[3] for zone in ZONES]
        kept = [n for n, share in enumerate(shares) if share]
        assert all(counts[n] == 0 for n, share in enumerate(shares) if not share)
        assert is_fair([counts[n] for n in kept], [shares[n] for n in kept])


def test_in_a_zone_all_places_are_alike_and_the_last_is_used() -> None:
    zones = ((0, 3 * BLOCK + 100, 0.25, 1.0), (5 * BLOCK - 100, 12 * BLOCK, 0.75, 0.0))
    ios = drawn([Part(0.5, BLOCK), Part(0.5, 2 * BLOCK)], DRAWS, Ways(align=BLOCK, where=Where(zones=zones)))
    counts = by_part(ios)
    assert sorted(counts[0, BLOCK]) == [n * BLOCK for n in (0, 1, 2, *range(5, 12))]
    assert sorted(counts[0, 2 * BLOCK]) == [n * BLOCK for n in (0, 1, *range(5, 11))]
    assert is_fair([counts[0, BLOCK][n * BLOCK] for n in (0, 1, 2, *range(5, 12))], [0.25 / 3] * 3 + [0.75 / 7] * 7)


EDGES = st.lists(st.integers(0, 400), min_size=2, max_size=12, unique=True).map(sorted)


@settings(max_examples=100, deadline=None)  # a process each
@given(EDGES, st.lists(st.integers(0, 4), min_size=6, max_size=6), st.sampled_from([0, 512, 3 * 512]), st.booleans())
def test_every_io_lies_wholly_in_a_zone_that_has_a_share(
    edges: list[int], weights: list[int], align: int, device: bool
) -> None:
    spans = list(itertools.pairwise([edge * 1000 for edge in edges]))[::2]
    weights = [*weights[: len(spans) - 1], 1] if len(spans) > 1 else [1]
    zones = tuple(
        (start, end, weight / sum(weights), 1 / len(spans)) for (start, end), weight in zip(spans, weights, strict=True)
    )
    parts = [Part(0.4, 512), Part(0.3, 2048), Part(0.3, 1024, WRITE)]
    ios = drawn(parts, 300, Ways(align=align, size=400_000, device=device, where=Where(zones=zones)))
    for io in ios:
        (share,) = [zone[2 if io.op == READ else 3] for zone in zones if zone[0] <= io.offset and io.end <= zone[1]]
        assert share > 0
        assert io.offset % (align or (1024 if io.op else 512)) == 0
        assert io.offset > 0 or not device


# By an engine.


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return devices.image(tmp_path, 4 * MIB)


def submitted_by(
    path: Path, where: Where, threads: int, instances: int, steps: int, ios: int, *more: int, sanitizer: str = "asan"
) -> dict[tuple[int, int], list[int]]:
    """Offsets of each instance in each step."""
    of: dict[tuple[int, int], list[int]] = defaultdict(list)
    sequencer, start, blocksize = more or (0, 0, BLOCK)
    words = ["places", path, threads, instances, steps, ios, sequencer, start, blocksize, *where.words()]
    for line in run("mix", *words, sanitizer=sanitizer).splitlines():
        instance, step, offset = map(int, line.split())
        of[instance, step].append(offset)
    return of


@pytest.mark.parametrize("sanitizer", ["asan", "tsan"])
def test_all_parts_threads_and_steps_have_one_hot_place(image: Path, sanitizer: str) -> None:
    first = {}
    for seed in (1, 2):
        where = Where(zipf=1.2, scattered=True, seed=seed)
        of = submitted_by(image, where, 2, 4, 2, 4000, sanitizer=sanitizer)
        assert len(of) == 8
        hottest = {Counter(offsets).most_common(1)[0][0] for offsets in of.values()}
        assert len({tuple(offsets[:50]) for offsets in of.values()}) == 8, "and yet they draw apart"
        (first[seed],) = hottest
    assert first[1] != first[2]
    of = submitted_by(image, Where(zipf=1.2), 2, 4, 2, 4000)
    assert {Counter(offsets).most_common(1)[0][0] for offsets in of.values()} == {0}


@pytest.mark.parametrize("sanitizer", ["asan", "tsan"])
@pytest.mark.parametrize("where", [Where(zipf=1.2), Where(working_set=64 * KIB, scattered=True), Where(normal=0.02)])
def test_edits_of_range_and_sizes_move_it(image: Path, where: Where, sanitizer: str) -> None:
    low, high = (0, 2 * MIB), (2 * MIB, 4 * MIB)
    changes = [
        Setting(0, span=low),
        Setting(4000, span=high, blocksize=8 * KIB, fraction_read=0.5),
        Setting(8000, [Part(0.5, 4 * KIB), Part(0.5, 64 * KIB, 2)], span=low),
        Setting(12_000, span=high, blocksize=16 * KIB, fraction_read=0.0),
    ]
    ios = submitted(image, *changes, where=where, ios=16_000, sanitizer=sanitizer)
    begins = [change.since for change in changes] + [len(ios)]
    for change, (begin, end) in zip(changes, itertools.pairwise(begins), strict=True):
        mine = ios[begin + 64 : end]
        sizes = {part.bytes for part in change.parts} or {change.blocksize}
        assert {io.bytes for io in mine} == sizes
        assert all(change.span[0] <= io.offset and io.end <= change.span[1] for io in mine)
        found = {io.offset for io in mine}
        assert not where.working_set or len(found) <= len(sizes) * 64 * KIB // min(sizes)
        assert where.normal == 0 or np.mean([io.offset for io in mine]) == pytest.approx(
            sum(change.span) / 2, abs=128 * KIB
        )
        assert where.zipf == 0 or Counter(io.offset for io in mine).most_common(1)[0][0] == change.span[0]


def test_zones_are_edited_with_the_range(image: Path) -> None:
    where = Where(zones=((1 * MIB, 2 * MIB, 0.5, 0.0), (2 * MIB, 3 * MIB, 0.5, 1.0)))
    changes = [Setting(0), Setting(3000, span=(1 * MIB, 3 * MIB), fraction_read=0.5, blocksize=32 * KIB)]
    ios = submitted(image, *changes, where=where, ios=6000)
    assert all(MIB <= io.offset and io.end <= 3 * MIB for io in ios)
    assert all(2 * MIB <= io.offset for io in ios if io.op == WRITE)
    assert {io.bytes for io in ios[3100:]} == {32 * KIB}


@pytest.mark.parametrize(
    ("start", "blocksize", "places"),
    [
        (0, MIB, [0, 1, 2, 3, 0]),
        (2 * MIB, MIB, [2, 3, 0, 1, 2]),
        (2 * MIB + 1, MIB, [3, 0, 1, 2, 3]),
        (3 * MIB + 1, MIB, [0, 1, 2, 3, 0]),
        (4 * MIB - 1, MIB, [0, 1, 2, 3, 0]),
    ],
)
def test_a_sequential_workload_begins_at_its_start_and_later_steps_go_on(
    image: Path, start: int, blocksize: int, places: list[int]
) -> None:
    of = submitted_by(image, Where(), 1, 2, 2, 5, 2, start, blocksize)
    for instance in (0, 1):
        assert [offset // MIB for offset in of[instance, 0]] == places
        assert [offset // MIB for offset in of[instance, 1]] == [(places[-1] + n) % 4 for n in range(1, 6)]


def test_so_does_one_of_several_sizes(image: Path) -> None:
    parts = [Part(0.5, 4 * KIB), Part(0.5, 8 * KIB)]
    ios = submitted(image, Setting(0, parts), order=2, start=3 * MIB + 1, ios=1000)
    assert ios[0].offset == 3 * MIB + 4 * KIB
    wrapped = next(n for n, io in enumerate(ios) if io.offset == 0)
    assert all(b.offset == a.end for a, b in itertools.pairwise(ios[:wrapped]))


# What is refused.


@pytest.fixture
def simulated() -> Iterator[Drive]:
    yield from drive("simulated")


ONE = ((0, 4 * MIB, 1.0, 1.0),)
NAN = float("nan")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"zipf": -0.1}, "zipf is not in 0 to 16"),
        ({"zipf": 16.1}, "zipf is not in 0 to 16"),
        ({"zipf": NAN}, "zipf is not in 0 to 16"),
        ({"pareto": 1.0}, "pareto not in 0 to 0.99"),
        ({"pareto": NAN}, "pareto not in 0 to 0.99"),
        ({"normal": 11.0}, "normal not in 0 to 10"),
        ({"normal": NAN}, "normal not in 0 to 10"),
        ({"skew": -1.0}, "skew is not in 0 to 1000000"),
        ({"skew": NAN}, "skew is not in 0 to 1000000"),
        ({"skew": 1e7}, "skew is not in 0 to 1000000"),
        ({"zipf": 1.0, "pareto": 0.2}, "exclude each other"),
        ({"normal": 1.0, "hot_zones": ONE}, "exclude each other"),
        ({"normal": 1.0, "working_set": 4096}, "working_set does not go with normal and hot_zones"),
        ({"hot_zones": ONE, "working_set": 4096}, "working_set does not go with normal and hot_zones"),
        ({"zipf": 1.0, "random_map": True}, "are for a random workload without random_map"),
        ({"working_set": 4096, "iosequencer": "sequential"}, "are for a random workload"),
        ({"start": 4096}, "start is for a sequential workload"),
        ({"start": 4096, "streams": 2, "iosequencer": "sequential"}, "start does not go with several streams"),
        ({"start": 4 * MIB, "iosequencer": "sequential"}, "start does not lie in the range"),
        ({"start": 4096, "range": (8192, MIB), "iosequencer": "sequential"}, "start does not lie in the range"),
        ({"hot_zones": ((0, MIB, 1.0, 1.0), (MIB, 5 * MIB, 0.0, 0.0))}, "does not lie in the range"),
        ({"hot_zones": ONE, "range": (MIB, 4 * MIB)}, "does not lie in the range"),
        ({"hot_zones": ((MIB, 2 * MIB, 0.5, 0.5), (0, MIB, 0.5, 0.5))}, "not ascending and apart"),
        ({"hot_zones": ((0, 2 * MIB, 0.5, 0.5), (MIB, 3 * MIB, 0.5, 0.5))}, "not ascending and apart"),
        ({"hot_zones": ((MIB, MIB, 1.0, 1.0),)}, "not ascending and apart"),
        ({"hot_zones": ((0, MIB, 1.0, 0.9),)}, "the shares of hot_zones do not add up to 1"),
        ({"hot_zones": ((0, MIB, NAN, 1.0),)}, "a share of hot_zones is not in 0 to 1"),
        ({"hot_zones": ((0, MIB, 1.5, 1.0), (MIB, 2 * MIB, -0.5, 0.0))}, "a share of hot_zones is not in 0 to 1"),
        ({"hot_zones": ((0, 1024, 1.0, 1.0),)}, "a hot zone has no place for the largest I/O"),
        ({"hot_zones": ((1, 8191, 1.0, 1.0),)}, "a hot zone has no place for the largest I/O"),
    ],
)
def test_what_makes_no_sense_is_refused(simulated: Drive, image: Path, changes: dict[str, Any], why: str) -> None:
    lun = simulated.lun(image, writable=True)
    with pytest.raises(OSError, match=why):
        simulated.create(0, lun, **changes)


def test_a_zone_without_a_share_of_an_operation_needs_no_place_for_it(simulated: Drive, image: Path) -> None:
    zones = ((0, 1024, 0.0, 1.0), (MIB, 2 * MIB, 1.0, 0.0))
    lun = simulated.lun(image, writable=True)
    simulated.create(0, lun, hot_zones=zones)
    with pytest.raises(OSError, match="a hot zone has no place"):
        simulated.engine.edit(1, [(0, fields(hot_zones=zones, fraction_read=0.5))])


@pytest.mark.parametrize(
    "zones",
    [
        [(0, MIB, 1.0, 1.0)],
        ((0, MIB, 1.0),),
        ((0, MIB, "all", 1.0),),
        ((-1, MIB, 1.0, 1.0),),
        tuple((n * 4096, (n + 1) * 4096, 1 / 65, 1 / 65) for n in range(65)),
    ],
)
def test_what_are_no_zones_is_a_fault_of_the_caller(simulated: Drive, image: Path, zones: Any) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        simulated.create(0, simulated.lun(image), hot_zones=zones)


def test_only_skew_may_be_edited(simulated: Drive, image: Path) -> None:
    simulated.create(0, simulated.lun(image), zipf=1.0)
    for changes in ({"zipf": 1.1}, {"zipf": 1.0, "scatter_seed": 1}, {"zipf": 1.0, "working_set": 4096}):
        with pytest.raises(OSError, match="not live"):
            simulated.engine.edit(1, [(0, fields(**changes))])
    simulated.engine.edit(1, [(0, fields(zipf=1.0, skew=2.0))])
