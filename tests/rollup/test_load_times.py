"""Which part of a load that is not always on was measured: told of rows, from the plan's times."""

import pytest

from ivypy.master.rollup.merge import MergedSubinterval
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.rollup.validity import check_validity
from ivypy.master.rollup.window import Window
from ivypy.master.verdicts import Reason
from ivypy.protocol.counters import Count
from ivypy.protocol.parameters import NO_BURSTS, Bursts, Iops, Parameters, Until, VolumeKind
from tests.support.rollup import instance, merged, merger_of, rollups_by
from tests.support.rollup_results import HostData

LENGTH_S = 5.0
INSTANCES = [instance(n, host) for host in ("h1", "h2") for n in range(2)]
ROLLUPS = rollups_by(INSTANCES, "host")


def closed(subinterval: int, hosts: tuple[str, ...] = ("h1", "h2")) -> MergedSubinterval:
    data = {host: HostData(2, 1, {(0, 0): [100] * 50}, {(n, Count.DUE): 5 for n in range(2)}) for host in hosts}
    return merged(merger_of(ROLLUPS), data, subinterval)


def details(
    reason: Reason, parameters: list[Parameters], intervals: list[MergedSubinterval], aside: int = -1
) -> dict[str, str]:
    """By row, what is found of these subintervals, but for the one that is set aside."""
    keys = [(one.host, one.number) for one in INSTANCES]
    window = Window(merger_of(ROLLUPS).layout)
    for interval in intervals:
        (window.set_aside if interval.subinterval == aside else window.add)(interval)
    settings = Settings.of(ROLLUPS, dict(zip(keys, parameters, strict=True)))
    validity = check_validity(window.measurement(), settings, 0.0025, LENGTH_S)
    return {
        str(row): finding.detail
        for row, findings in zip(ROLLUPS.rows, validity.findings, strict=True)
        for finding in findings
        if finding.reason is reason
    }


def late(*starts: float, warmup: int = 0) -> dict[str, str]:
    """Of two subintervals after a warmup, where the instances begin so late in the step."""
    parameters = [Parameters(start_after=start) for start in starts]
    return details(Reason.STARTED_LATE, parameters, [closed(warmup), closed(warmup + 1)])


def test_rows_that_began_late_have_their_rate_since_then() -> None:
    """200 I/Os of h1 in two subintervals of 5 s, of which it was driven in 6 s."""
    assert late(4, 5, 0, 0) == {
        "all=all": "the last 5 s after the measurement's start",
        "host=h1": "all 4 s after the measurement's start: 16.67 IOPS since then",
    }
    assert (
        late(4, 5, 0, 0, warmup=1)
        == {}
        == late(5.2, 5.2, 5.2, 5.2, warmup=1)
        == late(0, 0, 0, 0)
        == late(0.4, 0.4, 0.4, 0.4)
    )


WORKLOADS = 4
WHOLE: list[tuple[Bursts, float, int, int]] = [  # bursts, start, first and last subinterval of 5 s
    (Bursts(1, 3), 0, 0, 3),
    (Bursts(1, 4), 0, 7, 7),
    (Bursts(10, 10), 0, 2, 5),
    (Bursts(10, 10), 0, 3, 6),  # half of a burst at either end
    (Bursts(10, 10), 7, 3, 6),
    (Bursts(0.01, 0.03), 0, 1, 2),
    (NO_BURSTS, 0, 0, 0),
]
CUT: list[tuple[Bursts, float, int, int, str]] = [
    (Bursts(10, 10), 0, 0, 1, "100% more"),
    (Bursts(10, 10), 0, 2, 3, "100% less"),
    (Bursts(10, 10), 0, 0, 2, "33% more"),
    (Bursts(2, 20), 0, 0, 0, "340% more"),
    (Bursts(1, 3), 0, 0, 0, "60% more"),
]


def measured(first: int, last: int, hosts: tuple[str, ...] = ("h1", "h2")) -> list[MergedSubinterval]:
    return [closed(number, hosts) for number in range(first, last + 1)]


@pytest.mark.parametrize("iops", ["max", 100.0])
@pytest.mark.parametrize(("bursty", "start", "first", "last"), WHOLE)
def test_whole_periods_are_the_load(bursty: Bursts, start: float, first: int, last: int, iops: Iops) -> None:
    parameters = [Parameters(iops=iops, bursty=bursty, start_after=start)] * WORKLOADS
    assert details(Reason.BURSTS_CUT, parameters, measured(first, last)) == {}


@pytest.mark.parametrize("iops", ["max", 100.0])
@pytest.mark.parametrize(("bursty", "start", "first", "last", "text"), CUT)
def test_a_part_of_a_period_is_none(bursty: Bursts, start: float, first: int, last: int, text: str, iops: Iops) -> None:
    """On the rows that have it, whatever the others drive, and without a host, too."""
    one = Parameters(iops=iops, bursty=bursty, start_after=start)
    others = [Parameters()] * (WORKLOADS - 1)
    words = f"{text} of the load than in whole periods"
    found = details(Reason.BURSTS_CUT, [one, *others], measured(first, last))
    assert found == {"all=all": words, "host=h1": words}
    assert details(Reason.BURSTS_CUT, [one] * WORKLOADS, measured(first, last, ("h1",)))["host=h1"] == words


def test_one_that_is_paused_or_ends_by_volume_has_other_times() -> None:
    cut = Bursts(10, 10)
    for one in (Parameters(iops=0, bursty=cut), Parameters(bursty=cut, until=Until(VolumeKind.IOS, 5))):
        assert details(Reason.BURSTS_CUT, [one] * WORKLOADS, measured(0, 1)) == {}


def test_where_one_is_set_aside_nothing_is_known() -> None:
    parameters = [Parameters(bursty=Bursts(10, 10))] * WORKLOADS
    assert details(Reason.BURSTS_CUT, parameters, measured(0, 2), aside=1) == {}
