"""Reap delay: of each row the part of its own completions, whatever its neighbours' are."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ivypy.master.rollup.generator_checks import LATENESS_INVALID, LATENESS_NOTE, LEAST_REAP_DELAY_US
from ivypy.master.rollup.instances import Rollups
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.rollup.validity import Validity, check_validity
from ivypy.master.rollup.window import Window
from ivypy.master.verdicts import Verdict, verdict_of
from ivypy.protocol.counters import DELAYED, LATENESS, RESPONSES, SERVICES, UNDELAYED, Count, ThreadCount
from ivypy.protocol.parameters import Iops, Parameters
from ivypy.protocol.payload import NOTHING_TAKEN, ArrayType, CpuTaken
from tests.support.rollup import instance, merger_of, rollups_by
from tests.support.rollup_results import HostData, lost, packed, result

US = 1000
S = 10**9
DONE = 2000  # I/Os in each subinterval
SUBINTERVALS = 20

Found = list[tuple[int, int, int]]  # (I/Os of a subinterval, their service time and its part of reap delay, in us)


def times(found: Found) -> list[int]:
    return [us * US for count, us, _ in found for _ in range(count)]


def delayed(found: Found) -> Found:
    return [one for one in found if one[2]]


def undelayed(found: Found) -> Found:
    return [(count, us - delay, 0) for count, us, delay in delayed(found)]


def checked(
    rollups: Rollups, luns: list[Found], iops: Iops = 400.0, taken: CpuTaken = NOTHING_TAKEN, **changes: object
) -> Validity:
    """Of LUNs, each a merge class of its own."""
    merger = merger_of(rollups)
    window = Window(merger.layout)
    samples: dict[tuple[int, int], list[int]] = {}
    counts = lost(taken, len(luns), 5 * S)
    for klass, service in enumerate(luns):
        samples |= {(klass, SERVICES[0]): times(service), (klass, DELAYED): times(delayed(service))}
        samples |= {(klass, UNDELAYED): times(undelayed(service))}
        if iops != "max":
            samples |= {(klass, RESPONSES[0]): times(service), (klass, LATENESS): [0] * len(times(service))}
        counts |= {(klass, c): len(times(service)) for c in (Count.DUE, Count.SUBMITTED, Count.COMPLETED)}
    data = HostData(len(luns), len(luns), samples, counts)
    for k in range(SUBINTERVALS):
        merger.open(k)
        merger.add("h", result(data, k, 5 * S, taken=taken, **changes))
        window.add(merger.close())
    in_force = Settings.of(rollups, {("h", n): Parameters(iops=iops) for n in range(len(luns))})
    return check_validity(window.measurement(), in_force, 0.0025, 5.0)


ALL = "reap_delay[{0}] ({1}% of the mean, {1}% of the p99, {1}% of the p99.9)"


@pytest.mark.parametrize(
    ("found", "iops", "says"),
    [
        ([(DONE, 1000, 0)], 400.0, ""),
        ([(DONE, 1000, 90)], 400.0, ""),
        ([(DONE, 1000, 200)], 400.0, "reap_delay[note] (20% of the mean, 20% of the p99)"),
        ([(DONE, 1000, 300)], 400.0, ALL.format("invalid", 30)),
        ([(1000, 1000, 250), (1000, 1000, 0)], 400.0, "reap_delay[note] (12% of the mean)"),  # the p99 is of the others
        # the p99 is of the few: what they waited counts, and not what others did
        (
            [(1970, 100, 0), (30, 2100, 2000)],
            400.0,
            "reap_delay[invalid] (23% of the mean, 95% of the p99, 95% of the p99.9)",
        ),
        ([(1970, 100, 0), (30, 2100, 100)], 400.0, ""),
        ([(1000, 100, 0), (970, 200, 100), (30, 300, 10)], 400.0, "reap_delay[invalid] (32% of the mean)"),
        # the p99.9 is of the few
        ([(1990, 100, 0), (10, 2100, 2000)], 400.0, "reap_delay[note] (95% of the p99.9)"),
        ([(1990, 100, 0), (10, 2100, 400)], 400.0, ""),
        # where a thread is always at work, its batches are part of the load
        ([(DONE, 1000, 900)], "max", ALL.format("note", 90)),
        # as are some of them beside others, who took less time than the slowest hundredth has to be explained
        (
            [(1970, 100, 0), (30, 2100, 2000)],
            "max",
            "reap_delay[note] (23% of the mean, 95% of the p99, 95% of the p99.9)",
        ),
        # a thread's own pass, beside a device that is as fast as that
        ([(DONE, 9, 9)], 400.0, ""),
        ([(DONE, 12, 12)], 400.0, ALL.format("invalid", 100)),
    ],
)  # fmt: skip
def test_reap_delays(found: Found, iops: Iops, says: str) -> None:
    validity = checked(rollups_by([instance(0, "h")]), [found], iops)
    assert "; ".join(str(one) for one in validity.findings[0]) == says


@pytest.mark.parametrize(("wait", "severity"), [(15.2, "note"), (15.4, "invalid"), (24, "invalid")])
def test_at_max_delays_count_where_others_had_the_time_to_cause_them(wait: float, severity: str) -> None:
    """The slowest hundredth of the I/Os waited 2 ms each, which is 15.3 % of the mean, 130 us."""
    taken = CpuTaken(others=50, others_user=50, others_beside=50, wait=wait)
    found: Found = [(1970, 100, 0), (30, 2100, 2000)]
    (delay, *_), *_ = checked(rollups_by([instance(0, "h")]), [found], "max", taken=taken).findings
    assert str(delay) == f"reap_delay[{severity}] (23% of the mean, 95% of the p99, 95% of the p99.9)"


@pytest.mark.parametrize(
    ("delay", "steal", "severity"),
    [
        (100, 10, "note"),  # as long as a pass of the thread, and of all delay a fifth
        (100, 26, "invalid"),  # half of it
        (1000, 2, "note"),  # not enough for a hundredth
        (1000, 9, "invalid"),  # the thread's own work does not take so long
        (1000, 0, "note"),
    ],
)
def test_at_max_a_threads_own_passes_are_not_others_delays(delay: int, steal: float, severity: str) -> None:
    """Every I/O waits 50 us for its thread, and one of 50 for longer."""
    found: Found = [(DONE - DONE // 50, 100, 50), (DONE // 50, 50 + delay, delay)]
    taken = CpuTaken(steal=steal, steal_beside=steal)
    (finding, *_), *_ = checked(rollups_by([instance(0, "h")]), [found], "max", taken=taken).findings
    assert str(finding).startswith(f"reap_delay[{severity}]")


SHAPES = {
    "exponential": lambda random, n: random.exponential(1, n),
    "lognormal": lambda random, n: random.lognormal(-2, 2, n),
    "uniform": lambda random, n: random.uniform(0.9, 1.1, n),
}


def preempted(
    random: np.random.Generator, shape: str, mean_us: float, kept: float, off_us: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """16 tags of an infinite server, whose thread others keep from running for a part of the time, `off_us` at once.

    (service time of each I/O, its part of that wait, the part of the time that it was)
    """
    took: list[float] = []
    delays: list[float] = []
    ends = np.zeros(0)
    all_us = 0.0
    for _ in range(16):
        now = 0.0
        for alone in mean_us * SHAPES[shape](random, 120):
            done = now + float(alone)
            while not len(ends) or ends[-1] <= done:
                gaps = random.exponential(off_us * (1 - kept) / kept, 1000) + off_us
                ends = np.concatenate([ends, gaps.cumsum() + (ends[-1] if len(ends) else 0.0)])
            end = float(ends[np.searchsorted(ends, done, "right")])
            found = end if done >= end - off_us else done
            took.append(found - now)
            delays.append(found - done)
            now = found
        all_us = max(all_us, now)
    off = int(np.searchsorted(ends, all_us)) * off_us / all_us
    return np.array(took), np.array(delays), off


@given(st.floats(0.02, 0.9), st.floats(100, 20_000), st.floats(-2, 2), st.sampled_from([*SHAPES]), st.integers(0))
@settings(max_examples=15, deadline=None)
@pytest.mark.slow
def test_no_valid_p99_at_max_is_longer_by_what_others_took(
    kept: float, mean_us: float, longer: float, shape: str, seed: int
) -> None:
    """Others take the core for a hundredth to a hundred times as long as an I/O takes."""
    took, delays, off = preempted(np.random.default_rng(seed), shape, mean_us, kept, max(mean_us * 10**longer, 20.0))
    true = 1 - np.percentile(took - delays, 99) / np.percentile(took, 99)
    taken = CpuTaken(others_beside=100, wait=min(100.0, 100 * off))
    found = [(1, int(us), int(delay)) for us, delay in zip(took, delays, strict=True)]
    validity = checked(rollups_by([instance(0, "h")]), [found], "max", taken=taken)
    assert verdict_of(validity.findings[0]) is Verdict.INVALID or true <= LATENESS_INVALID + 0.04


@pytest.mark.parametrize(
    ("call_us", "says"),
    [(9.9, ""), (24.6, "h: a submit call takes 25 us on average, and the thread finds no completions meanwhile")],
)
def test_long_submit_calls_are_named_as_the_cause(call_us: float, says: str) -> None:
    threads = {column: [0, 0] for column in ThreadCount}
    threads |= {ThreadCount.SUBMIT_CALLS: [3000, 1000], ThreadCount.IN_SUBMIT: [int(4000 * call_us * US), 0]}
    each = packed([threads[column][n] for n in range(2) for column in ThreadCount], ArrayType.I64)
    validity = checked(rollups_by([instance(0, "h")]), [[(DONE, 1000, 300)]], threads=each)
    assert [finding.cause for finding in validity.findings[0]] == [says]


@pytest.mark.slow
@pytest.mark.parametrize("late", [0, 7, 99])
def test_one_late_lun_among_a_hundred_is_seen_and_its_neighbours_keep_their_verdict(late: int) -> None:
    rollups = rollups_by([instance(n, "h") for n in range(100)], "lun")
    validity = checked(rollups, [[(DONE // 100, 1000, 500 if n == late else 0)] for n in range(100)])
    found = {str(row): [str(finding) for finding in validity.findings[row.row]] for row in rollups.rows}
    assert found.pop(f"lun=h:/dev/sd{late}") == ["reap_delay[invalid] (50% of the mean)"]
    assert set(map(tuple, found.values())) == {()}


IOS = st.tuples(st.integers(1, 200), st.integers(100, 100_000), st.floats(0, 1))  # how many, us, part that is delay


@given(st.lists(IOS, min_size=1, max_size=40))
@settings(max_examples=20, deadline=None)
@pytest.mark.slow
def test_the_share_of_a_percentile_is_that_of_the_same_ios_without_their_delays(
    ios: list[tuple[int, int, float]],
) -> None:
    """Within the width of a bucket, a 64th; no I/O is taken for another."""
    found = [(DONE, 50, 0)] + [(count, us, int(us * part)) for count, us, part in ios]
    took = np.repeat([us for _, us, _ in found], [count for count, _, _ in found])
    least = np.repeat([us - delay for _, us, delay in found], [count for count, _, _ in found])
    pairs = {"mean": (took.mean(), least.mean())}
    for name, percent in (("p99", 99), ("p99.9", 99.9)):
        whole, without = (np.percentile(one, percent, method="inverted_cdf") for one in (took, least))
        pairs[name] = whole, without
    validity = checked(rollups_by([instance(0, "h")]), [found])
    said = {
        name: int(percent) / 100 for percent, name in re.findall(r"(\d+)% of the ([\w.]+)", str(validity.findings[0]))
    }
    limits = {"mean": LATENESS_NOTE, "p99": LATENESS_NOTE, "p99.9": LATENESS_INVALID}
    for name, (whole, without) in pairs.items():
        share = 1 - without / whole
        if name in said:
            assert said[name] == pytest.approx(share, abs=0.04)
        else:
            assert share < limits[name] + 0.04 or whole - without < LEAST_REAP_DELAY_US * 1.04
