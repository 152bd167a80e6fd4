"""Merging is addition: exact, in any order, at every level; and what does not fit changes nothing."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivypy.master.rollup.arrays import NO_LEAST, Merged, integers
from ivypy.master.rollup.figures import Figures
from ivypy.master.rollup.half_widths import MOST_SAMPLES, BatchedFigures
from ivypy.master.rollup.host_cpu import HostCpu
from ivypy.master.rollup.instances import Rollups
from ivypy.master.rollup.merge import MergedSubinterval, Merger
from ivypy.master.rollup.partial_merge import PartialMerger
from ivypy.master.rollup.window import Window, carried
from ivypy.protocol.counters import SERIES, Count, Moment, ThreadCount
from ivypy.protocol.errors import ProtocolError
from ivypy.protocol.histogram import BUCKETS, LIMIT_NS, bucket_of
from ivypy.protocol.messages import Result
from ivypy.protocol.payload import ArrayType
from tests.support.rollup import instance, merged, merger_of, rollups_by
from tests.support.rollup_results import HostData, fault, packed, result

HIGHEST = (Count.EDIT, Count.OLDEST_IN_FLIGHT_NS, Count.OLDEST_OUTSTANDING_NS, Count.ENDED_NS)
# Two hosts, two ports, two tiers: classes that differ per host, a type that is the sum of another (host of host+port),
# and one (tier) that crosses it.
INSTANCES = [instance(n, host, port=n % 2, tier=n // 2) for host in ("h1", "h2") for n in range(4)]
BY = ("host", "port", "host+port", "tier")
ROLLUPS = rollups_by(INSTANCES, *BY)
CLASSES = 4

LATENCIES = st.lists(
    st.one_of(st.integers(0, 300), st.integers(10**4, 10**7), st.integers(LIMIT_NS - 2, 2**50)), max_size=6
)
SAMPLES = st.dictionaries(st.tuples(st.integers(0, CLASSES - 1), st.integers(0, SERIES - 1)), LATENCIES, max_size=12)
COUNTS = st.dictionaries(st.tuples(st.integers(0, 3), st.sampled_from(list(Count))), st.integers(0, 2**40), max_size=12)
HOST = st.builds(HostData, st.just(4), st.just(CLASSES), SAMPLES, COUNTS, st.sampled_from([512, 1 << 20]))


def samples_of(rollups: Rollups, row: int, data: dict[str, HostData], series: int) -> list[tuple[int, int]]:
    """(latency, bytes) of every I/O of one series that belongs to a row, by looking at each class."""
    found = []
    for host, one in data.items():
        rows = rollups.classes(host).rows
        for (klass, of), latencies in one.samples.items():
            if of == series and row in rows[klass]:
                found += [(ns, one.blocksize) for ns in latencies]
    return found


def check_against_samples(rollups: Rollups, found: Merged, data: dict[str, HostData]) -> None:
    for row in range(len(rollups.rows)):
        for series in range(SERIES):
            samples = samples_of(rollups, row, data, series)
            ns = [latency for latency, _ in samples]
            limbs = found.moments.limbs[row, series]
            assert integers(limbs, Moment.COUNT) == len(ns)
            assert integers(limbs, Moment.BYTES) == sum(size for _, size in samples)
            assert integers(limbs, Moment.SUM) == sum(ns)
            assert integers(limbs, Moment.SQUARES_LOW) == sum(one * one for one in ns)
            assert found.moments.least[row, series] == min(ns, default=int(NO_LEAST))
            assert found.moments.most[row, series] == max(ns, default=0)
            buckets = found.buckets[series]
            by_hand = np.bincount([bucket_of(one) for one in ns], minlength=BUCKETS) if ns else np.zeros(BUCKETS)
            assert buckets.counts[row].tolist() == by_hand[buckets.low : buckets.high].tolist()
            assert buckets.counts[row].sum() == len(ns)


def check_counts(rollups: Rollups, found: Merged, data: dict[str, HostData]) -> None:
    for row in rollups.rows:
        for column in Count:
            values = [data[m.host].counts.get((m.number, column), 0) for m in row.members if m.host in data]
            highest = column in HIGHEST
            expected = max(values, default=0) if highest else sum(values)
            assert found.counts[row.row, column] == expected, (row, column)


@pytest.mark.slow
@settings(max_examples=30)
@given(HOST, HOST, st.booleans())
def test_merging_is_addition_in_any_order(one: HostData, other: HostData, turned: bool) -> None:
    data = {"h2": other, "h1": one} if turned else {"h1": one, "h2": other}
    found = merged(merger_of(ROLLUPS), data).merged
    check_against_samples(ROLLUPS, found, data)
    check_counts(ROLLUPS, found, data)


@settings(max_examples=30)
@given(HOST, HOST)
def test_every_type_sums_to_all(one: HostData, other: HostData) -> None:
    found = merged(merger_of(ROLLUPS), {"h1": one, "h2": other}).merged
    adds = [c for c in Count if c not in HIGHEST]
    for kind in ROLLUPS.types:
        rows = [row.row for row in kind.instances]
        assert (found.counts[rows][:, adds].sum(axis=0) == found.counts[0, adds]).all()
        assert (found.moments.limbs[rows].sum(axis=0) == found.moments.limbs[0]).all()
        for buckets in found.buckets:
            assert (buckets.counts[rows].sum(axis=0) == buckets.counts[0]).all()
        assert np.allclose(found.rates[rows].sum(axis=0), found.rates[0], rtol=1e-12)


@pytest.mark.slow
@settings(max_examples=15)
@given(st.lists(st.tuples(HOST, HOST), min_size=1, max_size=3))
def test_a_window_is_the_sum_of_its_subintervals(drawn: list[tuple[HostData, HostData]]) -> None:
    merger = merger_of(ROLLUPS)
    window = Window(merger.layout)
    for k, (one, other) in enumerate(drawn):
        window.add(merged(merger, {"h1": one, "h2": other}, k))
    measurement = window.measurement()
    together = {
        host: HostData(4, CLASSES, _joined([pair[place] for pair in drawn]), {}, 0)
        for place, host in enumerate(("h1", "h2"))
    }
    found = measurement.merged
    check_samples_but_bytes(found, together)
    flows = [Count.DUE, Count.SUBMITTED, Count.COMPLETED, Count.BYTES, Count.ERRORS, Count.DROPPED, Count.EAGAIN]
    for column in Count:
        parts = [sum(h.counts.get((n, column), 0) for h in pair for n in range(4)) for pair in drawn]
        if column in flows:
            assert found.counts[0, column] == sum(parts)
        elif column in (Count.BACKLOG, Count.IN_FLIGHT):
            assert found.counts[0, column] == parts[-1]
    assert (measurement.first, measurement.last, measurement.subintervals) == (0, len(drawn) - 1, len(drawn))


def _joined(parts: list[HostData]) -> dict[tuple[int, int], list[int]]:
    found: dict[tuple[int, int], list[int]] = {}
    for part in parts:
        for key, latencies in part.samples.items():
            found.setdefault(key, []).extend(latencies)
    return found


def check_samples_but_bytes(found: Merged, data: dict[str, HostData]) -> None:
    found.moments.limbs[..., 2 * Moment.BYTES : 2 * Moment.BYTES + 2] = 0
    check_against_samples(ROLLUPS, found, data)


def test_memory_of_bucket_tables_follows_what_is_used() -> None:
    """A table covers the used range only, and forgets a range that the next subinterval does not use."""
    merger = merger_of(ROLLUPS)
    wide = merged(merger, {"h1": HostData(4, CLASSES, {(0, 0): [10, 10**9]})}, 0).merged.buckets[0]
    narrow = merged(merger, {"h1": HostData(4, CLASSES, {(0, 0): [10**6]})}, 1).merged.buckets[0]
    unused = merged(merger, {"h1": HostData(4, CLASSES, {})}, 2).merged.buckets[0]
    assert (wide.low, wide.high) == (10, bucket_of(10**9) + 1)
    assert (narrow.low, narrow.high) == (bucket_of(10**6), bucket_of(10**6) + 1)
    assert unused.counts.shape[1] == 0


def test_rates_use_each_hosts_own_length() -> None:
    """100 I/Os in 5 s and 100 in 4 s are 45 per second together, not 200 in 4.5 s."""
    merger = merger_of(ROLLUPS)
    data = HostData(4, CLASSES, {(0, 0): [1000] * 100}, blocksize=4096)
    merger.open(0)
    merger.add("h1", result(data, length_ns=5 * 10**9))
    merger.add("h2", result(data, length_ns=4 * 10**9))
    found = merger.close().merged
    assert found.rates[0, 0].tolist() == pytest.approx([45.0, 45.0 * 4096])
    assert found.presence.length_s[0] == pytest.approx(4.5)


def test_a_windows_rates_use_each_hosts_own_length_too() -> None:
    merger = merger_of(ROLLUPS)
    window = Window(merger.layout)
    for k, length in enumerate((4, 6)):
        merger.open(k)
        merger.add("h1", result(HostData(4, CLASSES, {(0, 0): [1000] * 10 * length}), k, length * 10**9))
        merger.add("h2", result(HostData(4, CLASSES, {(0, 0): [1000] * 70}), k, 7 * 10**9))
        window.add(merger.close())
    assert window.measurement().merged.rates[:3, 0, 0].tolist() == pytest.approx([20, 10, 10])


def test_rows_list_the_hosts_whose_results_they_contain() -> None:
    found = merged(merger_of(ROLLUPS), {"h1": HostData(4, CLASSES, {(0, 0): [5]})}, cpu=(20.0, 90.0)).merged.presence
    names = [str(row) for row in ROLLUPS.rows]
    everywhere, here, there = names.index("all=all"), names.index("host=h1"), names.index("host=h2")
    assert found.hosts_of[[everywhere, here, there]].tolist() == [2, 1, 1]
    assert found.hosts_in[[everywhere, here, there]].tolist() == [1, 1, 0]
    assert found.instances[[everywhere, here, there]].tolist() == [8, 4, 4]
    assert found.cpu[[everywhere, here], HostCpu.BUSY].tolist() == [55, 55]
    assert found.cpu[everywhere, HostCpu.BUSIEST] == 90
    assert np.isnan(found.cpu[there, HostCpu.BUSY])
    assert np.isnan(found.length_s[there])


def test_instances_without_part_in_the_step_are_in_no_row() -> None:
    rollups = rollups_by(INSTANCES, "port")
    merger = Merger(rollups, {"h1": [1, 3]})
    found = merged(merger, {"h1": HostData(2, 1, {(0, 0): [7]}, {(1, Count.DUE): 3})}).merged
    assert [str(row) for row in rollups.rows] == ["all=all", "port=0", "port=1"]
    assert found.counts[:, Count.DUE].tolist() == [3, 0, 3]
    assert found.presence.instances.tolist() == [2, 0, 2]


# What does not fit.

GOOD = HostData(4, CLASSES, {(0, 0): [100, 200], (3, 8): [5]})


def some(n: int, kind: ArrayType) -> Any:
    return packed([0] * n, kind)


def with_moment(column: Moment, value: int) -> Any:
    one = np.frombuffer(result(GOOD).moments.data, "<u8").reshape(CLASSES, SERIES, -1).copy()
    one[0, 0, column] = value
    return packed(one.ravel().tolist(), ArrayType.U64)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"counts": some(4 * len(Count) - 1, ArrayType.I64)},
            f"counts has {4 * len(Count) - 1} numbers, not 4 x {len(Count)}",
        ),
        ({"counts": some(4 * len(Count), ArrayType.U64)}, "counts is of type u8, not i8"),
        ({"counts": packed([-1] + [0] * (4 * len(Count) - 1), ArrayType.I64)}, "EDIT of workload 0 is -1"),
        ({"moments": some(3 * SERIES * len(Moment), ArrayType.U64)}, "moments has 420 numbers, not 4 x 20 x 7"),
        ({"spans": some(7, ArrayType.U32)}, "spans has 7 numbers, not 4 x 20 x 2"),
        ({"buckets": some(100, ArrayType.U32)}, "buckets has 100 numbers, its spans say 66"),
        ({"buckets": some(66, ArrayType.I64)}, "buckets is of type i8, not u1 to u8"),
        ({"buckets": some(66, ArrayType.F64)}, "buckets is of type f8, not u1 to u8"),
        ({"buckets": some(66, ArrayType.U32)}, "series 0 of class 0 counts 2, its buckets hold 0"),
        ({"moments": with_moment(Moment.COUNT, 3)}, "series 0 of class 0 counts 3, its buckets hold 2"),
        (
            {"moments": with_moment(Moment.MIN, 2**63)},
            "the least and the largest value of a series contradict each other",
        ),
        ({"threads": some(5, ArrayType.I64)}, f"threads has 5 numbers, not a multiple of {len(ThreadCount)}"),
        ({"threads": some(2 * len(ThreadCount), ArrayType.U64)}, "threads is of type u8, not i8"),
        ({"length_ns": 0}, "its length is 0 ns"),
        ({"faults": (fault(9, 5, 1),)}, "it names faults of the unknown workloads [9]"),
    ],
)
def test_a_result_that_does_not_fit_is_named_and_changes_nothing(changes: dict[str, object], says: str) -> None:
    merger = merger_of(ROLLUPS)
    merger.open(0)
    with pytest.raises(ProtocolError) as error:
        merger.add("h1", replace(result(GOOD), **changes))  # type: ignore[arg-type]
    assert str(error.value) == f"h1: the result of subinterval 0 does not fit: {says}"
    merger.add("h1", result(GOOD))
    check_against_samples(ROLLUPS, merger.close().merged, {"h1": GOOD})


def test_a_span_after_the_last_bucket_is_refused() -> None:
    good = result(GOOD)
    spans = np.frombuffer(good.spans.data, "<u4").copy()
    spans[0] = BUCKETS - 1
    with pytest.raises(ProtocolError, match="a span ends after the last of 2560 buckets"):
        merged(merger_of(ROLLUPS), {"h1": GOOD}, spans=packed(spans.tolist(), ArrayType.U32))


@pytest.mark.parametrize("subinterval", [3, 5])
def test_results_of_another_subinterval_are_out_of_turn(subinterval: int) -> None:
    merger = merger_of(ROLLUPS)
    merger.open(4)
    with pytest.raises(ProtocolError, match=f"h1: a result of subinterval {subinterval} is out of turn"):
        merger.add("h1", result(GOOD, subinterval))


def test_a_second_result_is_out_of_turn() -> None:
    merger = merger_of(ROLLUPS)
    merger.open(0)
    merger.add("h1", result(GOOD))
    with pytest.raises(ProtocolError, match="out of turn"):
        merger.add("h1", result(GOOD))


# Sums of any size.


@given(st.lists(st.lists(st.integers(0, 2**128 - 1), min_size=1, max_size=5), min_size=1, max_size=6))
def test_sums_of_128_bits_are_exact_for_ever(windows: list[list[int]]) -> None:
    """Limbs are added, carried now and then, and become Python's integers at the end."""
    total = np.zeros(10, np.uint64)
    for values in windows:
        for value in values:
            limbs = [(value >> (32 * i)) & 0xFFFFFFFF for i in range(4)]
            total += np.array([*limbs[:2], *limbs[:2], *limbs[:2], *limbs], np.uint64)
        total = carried(total)
    everything = [value for values in windows for value in values]
    assert integers(total, Moment.SQUARES_LOW) == sum(everything)
    assert integers(total, Moment.SUM) == sum(value & (2**64 - 1) for value in everything)


def test_carried_sums_do_not_overflow() -> None:
    full = np.full(10, 2**64 - 1, np.uint64)
    before = [integers(full, moment) for moment in (Moment.COUNT, Moment.BYTES, Moment.SUM)]
    after = carried(np.full(10, 2**63, np.uint64))
    assert after[0] == 0  # the lowest limb gave everything to the next
    assert [integers(after, m) for m in (Moment.COUNT, Moment.BYTES, Moment.SUM)] == [2**63 + 2**95] * 3
    assert before == [(2**64 - 1) * (2**32 + 1)] * 3


# Windows.


def interval(merger: Merger, k: int, *hosts: str, in_flight: int = 0, **changes: object) -> MergedSubinterval:
    return merged(
        merger,
        {host: HostData(4, CLASSES, {(0, 0): [1000]}, {(0, Count.IN_FLIGHT): in_flight}) for host in hosts},
        k,
        **changes,
    )


def test_a_window_is_not_summed_over_a_change_of_hosts() -> None:
    merger = merger_of(ROLLUPS)
    window = Window(merger.layout)
    window.add(interval(merger, 3, "h1", "h2"))
    assert window.fits(interval(merger, 4, "h1", "h2"))
    assert not window.fits(interval(merger, 4, "h1"))
    assert not window.fits(interval(merger, 5, "h1", "h2"))
    with pytest.raises(ValueError, match="subinterval 5 does not continue"):
        window.add(interval(merger, 5, "h1", "h2"))


@pytest.mark.slow
@given(st.lists(st.tuples(HOST, st.booleans()), max_size=4), HOST)
def test_a_window_goes_on_after_what_is_set_aside(drawn: list[tuple[HostData, bool]], first: HostData) -> None:
    """Its sums are of the others alone; its account of due and done is of all until the last that counts."""
    merger = merger_of(ROLLUPS)
    window, others, whole = (Window(merger.layout) for _ in range(3))
    closed, aside = [merged(merger, {"h1": first}, 0)], [False]
    for k, (data, is_aside) in enumerate(drawn, 1):
        closed.append(merged(merger, {"h1": data}, k))
        aside.append(is_aside)
    last = max(k for k, is_aside in enumerate(aside) if not is_aside)
    for place, interval in enumerate(closed):
        (window.set_aside if aside[place] else window.add)(interval)
        if not aside[place]:
            others.add(replace(interval, subinterval=others.subintervals))
        if place <= last:
            whole.add(interval)
    found, of_others, of_all = (one.measurement() for one in (window, others, whole))
    assert (found.first, found.last, found.subintervals) == (0, last, aside.count(False))
    assert np.array_equal(found.merged.counts, of_others.merged.counts)
    assert np.array_equal(found.merged.moments.limbs, of_others.merged.moments.limbs)
    for one, other in zip(found.merged.buckets, of_others.merged.buckets, strict=True):
        assert one.low == other.low and np.array_equal(one.counts, other.counts)
    assert np.array_equal(found.length_ns, of_others.length_ns)
    assert np.array_equal(found.account.due, of_all.account.due)
    assert np.array_equal(found.account.growth, of_all.account.growth)


def test_nothing_is_set_aside_before_a_window_began_or_outside_of_it() -> None:
    merger = merger_of(ROLLUPS)
    closed = [merged(merger, {"h1": HostData(4, CLASSES, {})}, k) for k in range(3)]
    window = Window(merger.layout)
    with pytest.raises(ValueError, match="subinterval 0"):
        window.set_aside(closed[0])
    window.add(closed[0])
    with pytest.raises(ValueError, match="subinterval 2"):
        window.set_aside(closed[2])


def test_an_empty_window_has_no_measurement() -> None:
    with pytest.raises(ValueError, match="empty"):
        Window(merger_of(ROLLUPS).layout).measurement()


def test_what_is_in_flight_in_a_window_is_the_mean_of_its_ends() -> None:
    merger = merger_of(ROLLUPS)
    window = Window(merger.layout)
    for k, in_flight in enumerate((10, 15, 14)):
        window.add(interval(merger, k, "h1", "h2", in_flight=in_flight))
    assert (window.measurement().account.in_flight.reshape(2, -1)[:, :2] / 3).tolist() == [[13, 0], [13, 0]]
    assert window.measurement().merged.counts[:3, Count.IN_FLIGHT].tolist() == [28, 14, 14]


def test_a_measurement_does_not_change_when_the_window_grows() -> None:
    merger = merger_of(ROLLUPS)
    window = Window(merger.layout)
    window.add(interval(merger, 0, "h1"))
    first = window.measurement()
    window.add(interval(merger, 1, "h1", faults=(fault(0, 5, 2),), missing=(1,)))
    assert first.merged.buckets[0].counts[0].sum() == 1
    assert first.merged.moments.limbs[0, 0, 0] == 1
    assert (first.last, first.faults, first.uncovered) == (0, {}, {})
    second = window.measurement()
    assert (second.last, second.faults, second.uncovered) == (1, {("h1", 0, 5): 2}, {"h1": 1})


def test_cpu_of_a_window_is_weighted_with_time() -> None:
    merger = merger_of(ROLLUPS)
    window = Window(merger.layout)
    for k, (cpu, length) in enumerate((((10.0, 100.0), 10**9), ((50.0, 0.0), 3 * 10**9))):
        merger.open(k)
        merger.add("h1", result(GOOD, k, length, cpu=cpu))
        window.add(merger.close())
    measurement = window.measurement()
    assert measurement.cores == {"h1": (40.0, 25.0)}
    assert measurement.merged.presence.cpu[0, HostCpu.BUSIEST] == 40
    assert measurement.merged.presence.cpu[0, HostCpu.BUSY] == 32.5


def test_half_widths_come_from_the_subintervals() -> None:
    merger = merger_of(ROLLUPS)
    window = Window(merger.layout)
    counts = (9, 13, 10, 12) * 5  # none like the one before it: as good as independent
    for k, n in enumerate(counts):
        window.add(merged(merger, {"h1": HostData(4, CLASSES, {(0, 0): [1000 + n] * n})}, k))
    measurement = window.measurement()
    per_second = np.array(counts) / 5
    assert measurement.iops_half_width[0] == pytest.approx(2.09302 * per_second.std(ddof=1) / 20**0.5, rel=1e-4)
    assert 0 < measurement.service_half_width_us[0] < 0.004
    assert np.isnan(measurement.service_half_width_us[2])  # h2 did nothing


@given(st.integers(1, 4 * MOST_SAMPLES))
def test_samples_stay_few_and_keep_their_mean(n: int) -> None:
    samples = BatchedFigures(1, 1)
    for value in range(n):
        samples.add(np.array([[float(value)]]))
    kept = samples.array()[:, 0, 0]
    assert len(kept) < MOST_SAMPLES
    batch = 1
    while n // batch >= MOST_SAMPLES:
        batch *= 2
    assert kept.mean() == (len(kept) * batch - 1) / 2  # every whole batch, nothing else


def test_an_interval_knows_whether_it_is_the_last() -> None:
    assert interval(merger_of(ROLLUPS), 0, "h1", last=True).last
    assert not interval(merger_of(ROLLUPS), 0, "h1").last


def test_results_stay_with_the_interval() -> None:
    found: Result = interval(merger_of(ROLLUPS), 0, "h1").results["h1"]
    assert found.cpu == (10.0, 30.0)


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(HOST, min_size=4, max_size=4), st.lists(st.integers(0, 2), min_size=4, max_size=4), st.data())
def test_partial_sums_of_any_hosts_equal_the_whole_sum_exactly(
    drawn: list[HostData], adder_of: list[int], more: st.DataObject
) -> None:
    """Some hosts are merged here, others by adders of their own, and some are not in."""
    names = [f"h{n}" for n in range(4)]
    rollups = rollups_by([instance(n, h, port=n % 2, tier=n // 2) for h in names for n in range(4)], *BY)
    data = {host: result(one, 7) for host, one in zip(names, drawn, strict=True)}
    came = more.draw(st.permutations([host for host in names if more.draw(st.booleans())]))
    alone, together = merger_of(rollups), merger_of(rollups)
    alone.open(7)
    together.open(7)
    adders = {}
    for number in (1, 2):
        if mine := [host for host, of in zip(names, adder_of, strict=True) if of == number]:
            adders[number] = PartialMerger(together.layout.places(mine))
            adders[number].open(7)
    for host in came:
        alone.add(host, data[host])
        adder = adders.get(adder_of[names.index(host)])
        if adder is None:
            together.add(host, data[host])
        else:
            adder.add(host, data[host], adder.check(host, data[host]))
            together.note(host, data[host])
    for adder in more.draw(st.permutations(list(adders.values()))):
        together.put(adder.close())
    one, other = alone.close(), together.close()
    assert list(one.results.items()) == list(other.results.items())
    assert pickle.dumps(one.merged.buckets) == pickle.dumps(other.merged.buckets)
    for name in ("counts", "rates"):
        assert getattr(one.merged, name).tobytes() == getattr(other.merged, name).tobytes()
    for part in ("moments", "presence"):
        assert pickle.dumps(getattr(one.merged, part)) == pickle.dumps(getattr(other.merged, part))
    assert one.length_ns.tobytes() == other.length_ns.tobytes() and one.class_io.tobytes() == other.class_io.tobytes()


def test_a_percentiles_half_width_is_of_its_subintervals_histograms() -> None:
    merger = merger_of(ROLLUPS)
    window = Window(merger.layout)
    random = np.random.default_rng(1)
    for k in range(300):  # more than are kept
        samples = {(0, 0): (1000 + random.exponential(1e5, 200)).astype(int).tolist()}
        window.add(merged(merger, {"h1": HostData(4, CLASSES, samples)}, k))
        if k == 18:
            assert np.isnan(window.measurement().service_p99.half_widths_us()).all()
    measurement = window.measurement()
    widths = measurement.service_p99.half_widths_us()
    p99_us = Figures(measurement.merged, np.ones(len(widths), bool)).service("overall").percentile("p99")
    assert 0.005 * p99_us[0] < widths[0] < 0.05 * p99_us[0]  # 60,000 I/Os: 600 beyond
    assert np.isnan(measurement.response_p99.half_widths_us()).all(), "there were none"
    assert measurement.service_p99.half_widths_us()[0] == widths[0], "asked again, it is the same"
