"""VolumeKind by volume: what is left, and a subinterval that is as long as its I/O went on."""

import numpy as np
import pytest

from ivypy.master.rollup.merge import MergedSubinterval
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.rollup.validity import check_validity
from ivypy.master.rollup.volumes import until_the_end, volumes_of
from ivypy.master.rollup.window import Window
from ivypy.master.verdicts import Reason
from ivypy.protocol.counters import Count
from ivypy.protocol.parameters import Parameters, Until, VolumeKind
from tests.support.rollup import instance, merged, merger_of, rollups_by
from tests.support.rollup_results import HostData

S = 10**9
LENGTH_NS = 5 * S
INSTANCES = [instance(n, host) for host in ("h1", "h2") for n in range(2)]
ROLLUPS = rollups_by(INSTANCES, "host")
FILL = Parameters(fraction_read=0.0, until=Until(VolumeKind.WRITTEN, 1000))
COLUMNS = (Count.LEFT, Count.ENDED_NS, Count.DUE, Count.SUBMITTED, Count.COMPLETED)
State = tuple[int, int]  # bytes left, ns since its end


def closed(states: dict[str, list[State]], subinterval: int = 0, due: int = 0) -> MergedSubinterval:
    data = {
        host: HostData(
            2, 1, {(0, 0): [100] * 50},
            {(n, column): value for n, state in enumerate(of_host)
             for column, value in zip(COLUMNS, (*state, due, due, due), strict=True)},
        )
        for host, of_host in states.items()
    }  # fmt: skip
    return merged(merger_of(ROLLUPS), data, subinterval)


def settings(*parameters: Parameters) -> Settings:
    keys = [(one.host, one.number) for one in INSTANCES]
    return Settings.of(ROLLUPS, dict(zip(keys, parameters or [FILL] * 4, strict=True)))


def test_what_is_left_is_the_share_of_each() -> None:
    interval = closed({"h1": [(1000, 0), (250, 0)], "h2": [(0, 0), (0, 2 * S)]})
    found = volumes_of(interval, settings())
    assert found is not None
    assert found.left.tolist() == [1.0, 0.25, 0.0, 0.0]
    assert (found.ended, found.all_ended, found.most_left, found.since_ns) == (1, False, 1.0, 0)
    assert until_the_end(interval, found) is interval


def test_one_whose_host_is_not_in_has_not_ended() -> None:
    found = volumes_of(closed({"h1": [(0, 1), (0, 1)]}), settings())
    assert found is not None and (found.ended, found.all_ended, found.most_left) == (2, False, 1.0)


def test_paused_and_endless_ones_are_not_waited_for() -> None:
    interval = closed({"h1": [(0, 7), (0, 0)], "h2": [(0, 0), (0, 0)]})
    paused = Parameters(iops=0.0, until=Until(VolumeKind.IOS, 5))
    found = volumes_of(interval, settings(FILL, paused, paused, paused))
    assert found is not None and found.all_ended and found.only
    beside = volumes_of(interval, settings(FILL, paused, paused, Parameters()))
    assert beside is not None and beside.all_ended and not beside.only
    assert until_the_end(interval, beside) is interval
    assert volumes_of(interval, settings(*[Parameters()] * 4)) is None


@pytest.mark.parametrize("since_ns", [1, S, LENGTH_NS - 1])
def test_the_last_subinterval_is_as_long_as_its_io(since_ns: int) -> None:
    interval = closed({"h1": [(0, since_ns), (0, 4 * S + since_ns)], "h2": [(0, since_ns), (0, since_ns)]})
    shortened = until_the_end(interval, volumes_of(interval, settings()))
    driven_s = (LENGTH_NS - since_ns) / S
    assert shortened.length_ns.tolist() == [LENGTH_NS - since_ns] * 2
    assert {one.length_ns for one in shortened.results.values()} == {LENGTH_NS - since_ns}
    assert np.allclose(shortened.figures.rate("overall", 0), np.array([100, 50, 50]) / driven_s)
    assert np.allclose(shortened.merged.presence.length_s, driven_s)
    window = Window(interval.layout)
    window.add(closed({"h1": [(9, 0)] * 2, "h2": [(9, 0)] * 2}))
    later = closed({"h1": [(0, since_ns)] * 2, "h2": [(0, since_ns)] * 2}, 1)
    window.add(until_the_end(later, volumes_of(later, settings())))
    assert np.allclose(window.measurement().merged.rates[0].sum(axis=0)[0], 200 / (driven_s + LENGTH_NS / S))


def test_an_end_in_an_earlier_subinterval_shortens_nothing() -> None:
    interval = closed({"h1": [(0, 2 * LENGTH_NS)] * 2, "h2": [(0, LENGTH_NS)] * 2})
    assert until_the_end(interval, volumes_of(interval, settings())) is interval


def test_an_end_before_the_shortest_result_is_one_of_an_earlier_subinterval() -> None:
    interval = closed({"h1": [(0, LENGTH_NS)] * 2, "h2": [(0, LENGTH_NS)] * 2})
    volumes = volumes_of(interval, settings())
    assert volumes is not None and volumes.ended_before
    within = volumes_of(closed({"h1": [(0, LENGTH_NS - 1)] * 2, "h2": [(0, LENGTH_NS)] * 2}), settings())
    assert within is not None and not within.ended_before


def apart(states: dict[str, list[State]], parameters: tuple[Parameters, ...] = (), due: int = 0) -> dict[str, str]:
    """By row, what is found of two subintervals, at whose end the instances are so."""
    chosen = settings(*parameters)
    window = Window(merger_of(ROLLUPS).layout)
    window.add(closed({"h1": [(9, 0)] * 2, "h2": [(9, 0)] * 2}))
    last = closed(states, 1, due)
    window.add(until_the_end(last, volumes_of(last, chosen)))
    validity = check_validity(window.measurement(), chosen, 0.0025, 5.0)
    return {
        str(row): finding.detail
        for row, findings in zip(ROLLUPS.rows, validity.findings, strict=True)
        for finding in findings
        if finding.reason is Reason.ENDED_APART
    }


def test_rows_that_ended_early_have_their_rate_until_then() -> None:
    """100 I/Os of h1 in the 7 s until its last end, of the 9 s in which h2 was driven."""
    assert apart({"h1": [(0, 4 * S), (0, 3 * S)], "h2": [(0, S), (0, S)]}) == {
        "all=all": "the first 3 s before the last",
        "host=h1": "all 2 s before the measurement did: 14.29 IOPS until then",
    }


def test_ends_within_a_twentieth_of_the_time_are_together() -> None:
    assert apart({"h1": [(0, S + 9 * S // 20), (0, S)], "h2": [(0, S), (0, S)]}) == {}
    assert [*apart({"h1": [(0, S + 9 * S // 20 + 10**6), (0, S)], "h2": [(0, S), (0, S)]})] == ["all=all", "host=h1"]


def test_what_is_driven_beside_and_what_is_paused_has_not_ended() -> None:
    paused = Parameters(iops=0.0)
    found = apart({"h1": [(0, 3 * S), (0, 0)], "h2": [(7, 0), (0, 0)]}, (FILL, paused, FILL, paused))
    early = "all 3 s before the measurement did: 14.29 IOPS until then"
    assert found == {"all=all": "the first 3 s before the last", "host=h1": early}
    beside = apart({"h1": [(0, 3 * S), (0, 0)], "h2": [(7, 0), (7, 0)]}, (FILL, Parameters(), FILL, FILL), due=5)
    assert beside["host=h1"] == "the first 3 s before the last"
    assert apart({"h1": [(0, 3 * S), (0, 0)], "h2": [(7, 0), (0, 0)]}, (paused,) * 4) == {}


def test_one_that_ended_before_the_measurement_began_has_no_rate() -> None:
    found = apart({"h1": [(0, 30 * S), (0, 30 * S)], "h2": [(7, 0), (7, 0)]})
    assert found["host=h1"] == "all 30 s before the measurement did"
