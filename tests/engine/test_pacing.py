"""Due times: even, exponential, across edits, and with a backlog; and the addresses that go with them."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.support.engine import S, run

pytestmark = pytest.mark.slow

HOUR = 3600 * S


def talk(gaps: str, *commands: str, drop_after_ns: int = 0, bursts_ns: tuple[int, int] = (0, 0)) -> list[list[int]]:
    """What a pacer answers to each command."""
    lines = run("pacing", gaps, drop_after_ns, *bursts_ns, stdin="\n".join(commands) + "\n").splitlines()
    assert len(lines) == len(commands)
    return [list(map(int, line.split())) for line in lines]


@pytest.mark.parametrize("iops", [1.0, 3.0, 7000.0, 5000.1, 333333.3, 1e9])
def test_even_gaps_do_not_drift_in_an_hour(iops: float) -> None:
    _, first, (count, backlog, since), (due, fraction) = talk(
        "even", f"start 5 {iops} {S}", "next", f"due {S + HOUR}", "next"
    )
    start = Fraction(first[0]) + Fraction(first[1], 2**64)
    exact = start + count * Fraction(S) / Fraction(iops)
    assert abs(Fraction(due) + Fraction(fraction, 2**64) - exact) < Fraction(1, 1000)  # ns
    assert (backlog, since) == (count, first[0])
    assert abs(count - 3600 * iops) <= 1 + 3600 * iops * 1e-12


@pytest.mark.parametrize("drift_ppm", [0, 200, -35])
@pytest.mark.parametrize("length_ns", [5 * S, S, 999_999_937, 100_000_001])
def test_boundaries_do_not_drift_by_a_nanosecond_in_a_day(length_ns: int, drift_ppm: float) -> None:
    assert int(run("day", length_ns, drift_ppm)) == 24 * HOUR // length_ns


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("iops", [100.0, 300_000.0])
def test_gaps_of_random_independent_are_exponential(iops: float, seed: int) -> None:
    count = 20_000
    horizon = S + int(2 * count / iops * S)
    *_, taken = talk("exponential", f"start {seed} {iops} {S}", f"due {horizon}", f"take {count}")
    gaps = np.diff(np.array([S, *taken], dtype=np.float64))
    assert stats.kstest(gaps, stats.expon(scale=S / iops).cdf).pvalue > 0.01
    assert abs(gaps.mean() * iops / S - 1) < 4 / count**0.5
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 4 / count**0.5


def test_first_due_times_are_staggered_over_a_gap() -> None:
    firsts = [talk("even", f"start {seed} 1000 {S}", "next")[1][0] - S for seed in range(0, 400, 20)]
    assert stats.kstest(np.array(firsts) / 1e6, "uniform").pvalue > 0.01


def test_a_backlog_keeps_its_due_times() -> None:
    """What is taken late is what would have been taken in time."""
    for gaps in ("even", "exponential"):
        _, (count, *_), in_time = talk(gaps, f"start 9 1000 {S}", f"due {3 * S}", "take 1000")
        commands = [f"start 9 1000 {S}"]
        commands += [f"due {S + n * S // 1000}" for n in range(2000)]  # counted one by one, not all at once
        late = talk(gaps, *commands, "take 1000")[-1]
        assert count >= 1000
        assert late == in_time


def test_a_new_rate_discards_the_backlog_and_reschedules_the_rest() -> None:
    edit = 2 * S
    _, (before, *_), (discarded,), (after, backlog, since), taken = talk(
        "even", f"start 1 1000 {S}", f"due {edit}", f"retime 4000 {edit}", f"due {3 * S}", "take 4000"
    )
    assert (before, discarded, after, backlog) == (1000, 1000, 4000, 4000)
    assert edit <= since == taken[0] <= edit + 250_000
    assert {b - a for a, b in pairwise(taken)} == {250_000}


def test_the_count_is_the_integral_of_the_rate_however_often_it_changes() -> None:
    commands, at, expected = [f"start 3 10 {S}"], S, 0.0
    for n in range(300):
        rate = 1 + n % 17
        commands += [f"retime {rate} {at}"]
        at += S // 20  # most gaps are longer than the time between two edits
        expected += rate / 20
        commands += [f"due {at}"]
    answers = talk("even", *commands)
    total = sum(answer[0] for answer in answers if len(answer) == 3)
    assert abs(total - expected) <= 1


def test_exponential_gaps_stay_exponential_across_edits() -> None:
    commands, at = [f"start 3 100 {S}"], S
    for _ in range(400):
        at += S // 40
        commands += [f"due {at}", f"retime 100 {at}"]  # the same rate: nothing may change
    plain = talk("exponential", f"start 3 100 {S}", f"due {at}")[1][0]
    count = sum(answer[0] for answer in talk("exponential", *commands) if len(answer) == 3)
    assert abs(count - plain) <= 1


def test_nothing_falls_due_in_a_pause_and_its_end_staggers_anew() -> None:
    _, _, (discarded,), (paused, backlog, _), nothing, _, (due, _) = talk(
        "even",
        f"start 1 1000 {S}",
        f"due {2 * S}",
        f"retime 0 {2 * S}",
        f"due {9 * S}",
        "next",
        f"retime 1000 {9 * S}",
        "next",
    )
    assert (discarded, paused, backlog) == (1000, 0, 0)
    assert nothing[0] == 2**64 - 1
    assert 9 * S <= due <= 9 * S + 1_000_000


@pytest.mark.parametrize("pause", [f"retime 0 {2 * S}", "stop"])
def test_after_a_pause_first_due_times_are_spread_over_a_gap(pause: str) -> None:
    """Instances that were paused together do not go on together."""
    firsts = [
        talk("even", f"start {seed} 1000 {S}", f"due {2 * S}", pause, f"retime 1000 {9 * S}", "next")[-1][0] - 9 * S
        for seed in range(0, 400, 20)
    ]
    assert stats.kstest(np.array(firsts) / 1e6, "uniform").pvalue > 0.01


def test_a_fresh_start_has_no_backlog() -> None:
    _, (before, *_), _, (count, backlog, since), taken = talk(
        "even", f"start 1 1000 {S}", f"due {2 * S}", f"start 1 1000 {3 * S}", f"due {4 * S}", "take 1"
    )
    assert (before, count, backlog) == (1000, 1000, 1000)
    assert 3 * S <= since == taken[0] <= 3 * S + 1_000_000


def test_discarded_ios_are_counted() -> None:
    assert talk("even", f"start 1 1000 {S}", f"due {2 * S}", "stop", f"due {9 * S}")[2:] == [[1000], [0, 0, 0]]


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["even", "exponential"]),
    st.lists(st.tuples(st.integers(1, 10**9), st.sampled_from([0, 1, 50, 3000, 10**6])), max_size=30),
)
def test_no_outstanding_io_is_forgotten(gaps: str, turns: list[tuple[int, int]]) -> None:
    """Due = backlog + discarded while nothing is taken, whatever the edits; and due times never go back."""
    at = S
    commands = [f"start 4 200 {S}"]
    for step, rate in turns:
        at += step
        commands += [f"due {at}", f"retime {rate} {at}"]
    answers = talk(gaps, *commands)
    counted = [answer for answer in answers if len(answer) == 3]
    discarded = sum(answer[0] for answer in answers if len(answer) == 1)
    assert sum(answer[0] for answer in counted) == discarded
    (due, backlog, _), taken = talk(gaps, *commands, f"due {at + S}", "take 0")[-2:]
    assert (due, taken) == (backlog, [])
    if backlog:
        times = talk(gaps, *commands, f"due {at + S}", f"take {min(backlog, 2000)}")[-1]
        assert times == sorted(times)
        assert at <= times[0] and times[-1] < at + S


def ios(*words: object) -> list[tuple[int, bool]]:
    lines = run("addresses", *words).splitlines()
    return [(int(offset), writes == "1") for offset, writes in (line.split() for line in lines)]


def test_sequential_ascends_through_every_whole_block_and_wraps() -> None:
    offsets = [offset for offset, _ in ios("sequential", 4096, 0, 0, 5 * 4096 + 100, 0, 1, 12)]
    assert offsets == [n % 5 * 4096 for n in range(12)]


@pytest.mark.parametrize(
    ("start", "end", "size", "device", "blocks"),
    [
        (0, 0, 8 * 8192, 0, range(0, 8)),
        (0, 0, 8 * 8192, 1, range(1, 8)),  # block 0 of a device is never driven
        (0, 3 * 8192, 8 * 8192, 1, range(1, 3)),
        (8192, 3 * 8192, 8 * 8192, 1, range(1, 3)),
        (100, 3 * 8192 + 100, 8 * 8192, 0, range(1, 3)),  # whole blocks only
        (0, 0, 8 * 8192 + 4096, 0, range(0, 8)),
        (7 * 8192, 8 * 8192, 8 * 8192, 1, range(7, 8)),
    ],
)
def test_random_reaches_every_block_of_the_range_and_no_other(
    start: int, end: int, size: int, device: int, blocks: range
) -> None:
    counts = Counter(offset for offset, _ in ios("random", 8192, start, end, size, device, 1, 4000))
    assert sorted(counts) == [block * 8192 for block in blocks]
    if len(blocks) > 1:
        assert stats.chisquare(list(counts.values())).pvalue > 0.001


@pytest.mark.parametrize(
    ("start", "end", "size", "device"),
    [(0, 0, 4096, 0), (0, 8192, 65536, 1), (4096, 8192, 65536, 0), (0, 99999, 65536, 0)],
)
def test_a_range_without_a_whole_block_is_refused(start: int, end: int, size: int, device: int) -> None:
    assert run("addresses", "random", 8192, start, end, size, device, 1, 1) == "no block\n"


@pytest.mark.parametrize("fraction", [0.0, 0.3, 1.0])
def test_the_share_of_reads_is_kept(fraction: float) -> None:
    count = 20_000
    reads = sum(not writes for _, writes in ios("random", 4096, 0, 0, 1 << 30, 0, fraction, count))
    assert abs(reads - fraction * count) <= 4 * (count * fraction * (1 - fraction)) ** 0.5


def permuted(*asked: tuple[int, int, int, int]) -> list[list[int]]:
    """Of (key, blocks, place, count), each: the blocks at these places of the pass."""
    lines = run("addresses", "permutation", stdin="\n".join(" ".join(map(str, one)) for one in asked)).splitlines()
    return [list(map(int, line.split())) for line in lines]


def test_a_permutation_of_any_number_of_blocks_has_each_once() -> None:
    """The driver checks it, of two orders."""
    same = list(map(int, run("addresses", "all", 5000).split()))
    assert len(same) == 5000
    assert sum(same[1000:]) / 4000 == pytest.approx(1, abs=0.1), "places where two random orders agree"


@pytest.mark.parametrize("blocks", [1_000_000, 1 << 20, (1 << 20) + 1, 5_000_011])
def test_a_pass_over_millions_of_blocks_misses_none(blocks: int) -> None:
    assert int(run("addresses", "once", 11, blocks)) < 10


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 2**55), st.integers(0, 2**64 - 1), st.integers(0, 2**55))
def test_blocks_of_a_large_range_lie_in_it_and_differ(blocks: int, key: int, place: int) -> None:
    first = place % blocks
    count = min(200, blocks - first)
    (order,) = permuted((key, blocks, first, count))
    assert len(set(order)) == count
    assert 0 <= min(order) and max(order) < blocks


@pytest.mark.parametrize("blocks", [1000, 65_536, 1_000_003, (1 << 40) + 7, 1 << 55])
@pytest.mark.parametrize("key", [0, 1, 2, 3**40])
def test_a_pass_has_no_stripes(blocks: int, key: int) -> None:
    """Where blocks lie, how far neighbours in time are apart, and what their low bits are, is random."""
    count = min(blocks, 20_000)
    (order,) = permuted((key, blocks, 0, count))
    at = np.array(order, dtype=np.float64) / blocks
    if count < blocks:
        assert stats.kstest(at, "uniform").pvalue > 1e-4
    for lag in (1, 2, 64):
        apart = (at[lag:] - at[:-lag]) % 1
        assert stats.kstest(apart[::2], "uniform").pvalue > 1e-4, lag
        assert abs(np.corrcoef(at[lag:], at[:-lag])[0, 1]) < 4.5 / count**0.5 + 1 / blocks, lag
    low = np.array([block % 16 for block in order])
    pairs = np.bincount(low[:-1] * 16 + low[1:], minlength=256)
    assert stats.chisquare(pairs).pvalue > 1e-4


@pytest.mark.parametrize("blocks", [2, 3, 5, 8, 16])
def test_of_few_blocks_each_comes_first_equally_often(blocks: int) -> None:
    """And last: keys choose among the orders."""
    orders = permuted(*((key, blocks, 0, blocks) for key in range(4000)))
    for place in (0, blocks // 2, blocks - 1):
        assert stats.chisquare(np.bincount([order[place] for order in orders], minlength=blocks)).pvalue > 1e-4


def test_passes_have_orders_of_their_own_and_each_has_every_block() -> None:
    offsets = [offset // 4096 for offset, _ in ios("permuted", 4096, 4096, 101 * 4096, 101 * 4096, 0, 1, 1000)]
    assert offsets == [offset // 4096 for offset, _ in ios("permuted", 4096, 0, 0, 101 * 4096, 1, 1, 1000)]
    passes = [offsets[n : n + 100] for n in range(0, 1000, 100)]
    assert all(sorted(blocks) == list(range(1, 101)) for blocks in passes)
    assert len(set(map(tuple, passes))) == 10


def test_reads_and_writes_share_one_map() -> None:
    drawn = ios("permuted", 4096, 0, 0, 1000 * 4096, 0, 0.3, 1000)
    assert sorted(offset for offset, _ in drawn) == [n * 4096 for n in range(1000)]
    assert abs(sum(not writes for _, writes in drawn) - 300) < 60


def test_another_block_size_begins_a_new_pass() -> None:
    moved = list(map(int, run("addresses", "moved_permuted").split()))
    assert len(set(moved[:5])) == 5  # of 16 blocks of 4 KiB
    assert sorted(moved[5:13]) == [n * 8192 for n in range(8)]
    assert sorted(moved[13:21]) == [n * 8192 for n in range(8)]
    assert moved[5:13] != moved[13:21]


ASKED = st.tuples(st.sampled_from(["due", "expire", "take"]), st.integers(0, 4_000_000))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["even", "exponential"]),
    st.sampled_from([300.0, 7e3, 1e6, 9e8]),
    st.sampled_from([1, 1_000_000, 5_000_000]),
    st.lists(ASKED, min_size=1, max_size=12),
)
def test_exactly_what_waited_longer_is_discarded(
    gaps: str, iops: float, drop_after_ns: int, asked: list[tuple[str, int]]
) -> None:
    """Whatever is counted, taken and discarded in turn: the next to be taken is the first that is young enough."""
    now = S
    horizon = S + sum(amount for _, amount in asked)
    if horizon > S:  # all due times are listed below
        iops = min(iops, 20_000 * S / (horizon - S))
    start = f"start 3 {iops} {S}"
    due = talk(gaps, start, f"due {horizon}")[1][0]
    times = talk(gaps, start, f"due {horizon}", f"take {due}")[2]
    fallen = gone = 0
    commands = [start]
    expected: list[list[int]] = [[]]
    for what, amount in asked:
        if what == "take":
            count = min(amount % 50, fallen - gone)
            commands.append(f"take {count}")
            expected.append(times[gone : gone + count])
            gone += count
            continue
        now += amount
        commands.append(f"{what} {now}")
        before = fallen if what == "due" else gone
        if what == "due":
            fallen = sum(one < now for one in times)
        else:
            gone = max(gone, min(fallen, sum(one + drop_after_ns < now for one in times)))
        since = times[gone] if fallen > gone else 0
        expected.append([(fallen if what == "due" else gone) - before, fallen - gone, since])
    assert talk(gaps, *commands, drop_after_ns=drop_after_ns) == expected


@pytest.mark.parametrize("gaps", ["even", "exponential"])
def test_nothing_is_discarded_without_a_bound(gaps: str) -> None:
    *_, (expired, backlog, _) = talk(gaps, f"start 3 1000 {S}", f"due {11 * S}", f"expire {100 * S}")
    assert expired == 0
    assert backlog > 9000
