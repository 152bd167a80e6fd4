"""Reap delay: of each row the part of its own completions, whatever its neighbours' are."""

import pytest

from ivypy.master.rollup.instances import Rollups
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.rollup.validity import Validity, check_validity
from ivypy.master.rollup.window import Window
from ivypy.protocol.counters import LATENESS, REAP_DELAY, RESPONSE, SERVICE, Count
from ivypy.protocol.parameters import Iops, Parameters
from tests.support.rollup import instance, merger_of, rollups_by
from tests.support.rollup_results import HostData, result

US = 1000
S = 10**9
DONE = 2000  # I/Os in each subinterval
SUBINTERVALS = 20

Times = list[tuple[int, int]]  # (I/Os of a subinterval, microseconds)


def times(said: Times) -> list[int]:
    return [us * US for count, us in said for _ in range(count)]


def checked(rollups: Rollups, luns: list[tuple[Times, Times]], iops: Iops = 400.0) -> Validity:
    """Of LUNs, each a merge class of its own: their service times, and the recorded reap delays."""
    merger = merger_of(rollups)
    window = Window(merger.layout)
    samples: dict[tuple[int, int], list[int]] = {}
    counts: dict[tuple[int, Count], int] = {}
    for klass, (service, delays) in enumerate(luns):
        samples |= {(klass, SERVICE): times(service), (klass, REAP_DELAY): times(delays)}
        if iops != "max":
            samples |= {(klass, RESPONSE): times(service), (klass, LATENESS): [0] * len(times(service))}
        counts |= {(klass, c): len(times(service)) for c in (Count.DUE, Count.SUBMITTED, Count.COMPLETED)}
    data = HostData(len(luns), len(luns), samples, counts)
    for k in range(SUBINTERVALS):
        merger.open(k)
        merger.add("h", result(data, k, 5 * S))
        window.add(merger.close())
    settings = Settings.of(rollups, {("h", n): Parameters(iops=iops) for n in range(len(luns))})
    return check_validity(window.measurement(), settings, 0.0025, 5.0)


INVALID = "reap_delay[invalid] ({0}% of the mean, {0}% of the p99, {0}% of the p99.9)"
FEW = [(DONE - 30, 100), (30, 2100)]  # the p99 is of the few
FEWER = [(DONE - 10, 100), (10, 2100)]  # the p99.9 is


@pytest.mark.parametrize(
    ("service", "delays", "iops", "says"),
    [
        ([(DONE, 1000)], [], 400.0, ""),
        ([(DONE, 1000)], [(DONE, 90)], 400.0, ""),
        ([(DONE, 1000)], [(DONE, 200)], 400.0, "reap_delay[note] (20% of the mean, 21% of the p99)"),
        ([(DONE, 1000)], [(DONE, 300)], 400.0, INVALID.format(30)),
        ([(DONE, 1000)], [(DONE // 2, 250)], 400.0, "reap_delay[note] (12% of the mean)"),  # the p99 is of the others
        (FEW, [(30, 2000)], 400.0, "reap_delay[invalid] (23% of the mean, 95% of the p99, 95% of the p99.9)"),
        (FEW, [(30, 100)], 400.0, ""),
        (FEWER, [(10, 2000)], 400.0, "reap_delay[note] (95% of the p99.9)"),
        (FEWER, [(10, 400)], 400.0, ""),
        # where a thread is always at work, its batches are part of the load
        ([(DONE, 1000)], [(DONE, 900)], "max", "reap_delay[note] (90% of the mean, 89% of the p99, 89% of the p99.9)"),
        # a thread's own pass, beside a device that is as fast as that
        ([(DONE, 9)], [(DONE, 9)], 400.0, ""),
        ([(DONE, 12)], [(DONE, 12)], 400.0, INVALID.format(100)),
    ],
)  # fmt: skip
def test_reap_delays(service: Times, delays: Times, iops: Iops, says: str) -> None:
    validity = checked(rollups_by([instance(0, "h")]), [(service, delays)], iops)
    assert "; ".join(str(one) for one in validity.findings[0]) == says


@pytest.mark.parametrize("late", [0, 7, 99])
def test_one_late_lun_among_a_hundred_is_seen_and_its_neighbours_keep_their_verdict(late: int) -> None:
    rollups = rollups_by([instance(n, "h") for n in range(100)], "lun")
    one = [(DONE // 100, 1000)]
    validity = checked(rollups, [(one, [(DONE // 100, 500)] if n == late else []) for n in range(100)])
    found = {str(row): [str(finding) for finding in validity.findings[row.row]] for row in rollups.rows}
    assert found.pop(f"lun=h:/dev/sd{late}") == ["reap_delay[invalid] (50% of the mean)"]
    assert set(map(tuple, found.values())) == {()}
