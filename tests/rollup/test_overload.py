"""Law: a workload instance that falls behind makes every row that holds it say so; one that does not, none."""

from collections.abc import Callable, Collection, Sequence
from functools import reduce
from math import asinh, exp, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ivypy.master.rollup.merge_layout import MergeLayout
from ivypy.master.rollup.overload import (
    FALSE_ALARM,
    Account,
    Outstanding,
    account,
    allowed,
    check_each,
    check_together,
    rows_ahead,
    rows_behind,
    rows_of_earlier,
    rows_surged,
    why_not_sustained,
)
from ivypy.protocol.counters import Count
from tests.support.rollup import instance, rollups_by

Ints = NDArray[np.int64]
TOLERANCE = 0.0025
FLEET = 24_000
rng = np.random.default_rng


def load(due: Ints, ends: Ints, in_flight: Ints | None = None) -> list[Outstanding]:
    """Subintervals 1 .. n of instances with `due` (I,) I/Os each, and `ends` (n + 1, I) outstanding at their ends, all
    of it in flight unless said otherwise."""
    flying = ends if in_flight is None else in_flight
    backlog = ends - flying
    return [
        Outstanding(
            due,
            ends[k] - ends[k - 1],
            backlog[k] - backlog[k - 1],
            flying[k],
            backlog[k],
            0 * due,
            np.ones(len(due), bool),
        )
        for k in range(1, len(ends))
    ]


def layout_of(instances: int, hosts: int = 1) -> MergeLayout:
    rollups = rollups_by([instance(i, f"h{i % hosts}", lun=str(i)) for i in range(instances)], "host", "host+lun")
    return MergeLayout.build(rollups, {host: rollups.order(host) for host in rollups.hosts()})


Plant = Callable[[np.random.Generator, Ints], Ints]  # (n + 1, I) outstanding at the ends, of loads due a subinterval


def in_service(random: np.random.Generator, due: Ints) -> Ints:
    """A Poisson number, of a service time from 10 us to 100 ms."""
    return random.poisson(due * 10 ** random.uniform(-5, -1, len(due)), (25, len(due)))


def queueing(random: np.random.Generator, due: Ints) -> Ints:
    """M/M/1 at up to 90 % of its capacity: geometric. It takes many I/Os a subinterval to be another at its end."""
    due[:] = np.maximum(due, 300)
    return random.geometric(1 - random.uniform(0.1, 0.9, len(due)), (25, len(due))) - 1


def waiting_for_the_host(random: np.random.Generator, due: Ints) -> Ints:
    """Now and then a host's thread is 1 ms late at a boundary."""
    return (random.random((25, len(due))) < 0.2) * (due // 1000)


@pytest.mark.parametrize("plant", [in_service, queueing, waiting_for_the_host])
def test_a_sustained_fleet_is_found_sustained(plant: Plant) -> None:
    random = rng(1)
    for _ in range(3):
        due = random.choice([3, 30, 300, 3000, 30_000], FLEET)
        assert why_not_sustained(account(load(due, plant(random, due))), TOLERANCE) == ""


@pytest.mark.parametrize("share", [0.5, 0.8, 0.97])
@pytest.mark.parametrize("plant", [in_service, waiting_for_the_host])
def test_one_unsustained_instance_among_many_is_found(plant: Plant, share: float) -> None:
    random = rng(2)
    due = random.choice([300, 3000, 30_000], FLEET)
    due[77] = 1000
    ends = plant(random, due)
    ends[:, 77] = np.arange(25) * round((1 - share) * 1000) + 2
    assert why_not_sustained(account(load(due, ends)), TOLERANCE).startswith(
        "1 of 24,000 workload instances; of the worst outstanding"
    )
    half_way = ends.copy()  # it begins in mid-measurement, as a LUN that hangs does
    half_way[:, 77] = np.maximum(np.arange(25) - 12, 0) * 500
    assert why_not_sustained(account(load(due, half_way)), TOLERANCE).startswith(
        "1 of 24,000 workload instances; of the worst"
    )


@st.composite
def fleets(draw: st.DrawFn) -> tuple[int, int, list[str], int]:
    """Instances, hosts, what each does, a seed."""
    instances = draw(st.integers(1, 12))
    kinds = st.sampled_from(("steady", "steady", "max", "behind"))
    return (
        instances, draw(st.integers(1, 4)), draw(st.lists(kinds, min_size=instances, max_size=instances)),
        draw(st.integers(0, 1000)),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("plant", [in_service, queueing, waiting_for_the_host])
def test_a_sustained_fleet_has_no_earlier_backlog(plant: Plant) -> None:
    random, layout = rng(2), layout_of(FLEET)
    for _ in range(3):
        due = random.choice([3, 30, 300, 3000, 30_000], FLEET)
        parts = load(due, plant(random, due))
        assert not rows_ahead(layout, account(parts), TOLERANCE)


@settings(max_examples=60, deadline=None)
@given(fleets(), st.floats(0.05, 0.9), st.sampled_from((200, 1000, 20_000)))
def test_exactly_the_rows_of_an_instance_with_earlier_backlog_have_the_reason(
    fleet: tuple[int, int, list[str], int], share: float, rate: int
) -> None:
    instances, hosts, kinds, seed = fleet
    layout, random = layout_of(instances, hosts), rng(seed)
    names = [(host, number) for host in layout.hosts for number in layout.numbers[host]]
    before = np.array([kinds[number] == "behind" for _, number in names])
    due = np.full(instances, rate)
    ends = random.poisson(rate * 1e-3, (13, instances))
    ends[:, before] += (np.arange(13)[::-1] * round(share * rate))[:, None]
    found = rows_ahead(layout, account(load(due, ends)), TOLERANCE)
    those = {key for key, what in zip(names, before.tolist(), strict=True) if what}
    rows = layout.rollups.rows
    assert set(found) == {row.row for row in rows if any((one.host, one.number) in those for one in row.members)}


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(fleets(), st.floats(0.1, 0.9), st.sampled_from((200, 1000, 20_000)))
def test_exactly_the_rows_of_an_unsustained_instance_have_the_reason(
    fleet: tuple[int, int, list[str], int], share: float, rate: int
) -> None:
    instances, hosts, kinds, seed = fleet
    layout, random = layout_of(instances, hosts), rng(seed)
    names = [(host, number) for host in layout.hosts for number in layout.numbers[host]]
    kind = np.array([kinds[number] for _, number in names])
    due = np.where(kind == "max", 1_000_000, rate)
    ends = random.poisson(rate * 1e-3, (13, instances))
    ends[:, kind == "behind"] += (np.arange(13) * round((1 - share) * rate))[:, None]
    ends[:, kind == "max"] = random.integers(0, 4096, (13, int((kind == "max").sum())))  # tags come and go
    parts = [one.of_paced(kind != "max") for one in load(due, ends)]
    found = rows_behind(layout, account(parts), TOLERANCE)
    behind = {key for key, what in zip(names, kind, strict=True) if what == "behind"}
    holding = {
        row.row for row in layout.rollups.rows if any((one.host, one.number) in behind for one in row.members)
    }  # fmt: skip
    assert set(found) == holding
    assert bool(why_not_sustained(account(parts), TOLERANCE)) is bool(behind), "control says the same"
    for row in holding:
        assert any(f"{one.host}+{one.lun}" in found[row] for one in layout.rollups.rows[row].members), found[row]


def a_little_behind(instances: int, of_them: int, hosts: int) -> dict[str, str]:
    """Rows that are said to fall behind where the first hosts' instances each are 4 I/Os short of 480."""
    layout = layout_of(instances, hosts)
    ends = np.zeros((25, instances), np.int64)
    ends[:, :of_them] = (np.arange(25) // 6)[:, None]
    found = rows_behind(layout, account(load(np.full(instances, 20), ends, np.zeros_like(ends))), TOLERANCE)
    return {str(layout.rollups.rows[row]): text for row, text in found.items()}


def test_many_instances_slightly_behind_are_not_sustained_together() -> None:
    """0.8 % each, which chance might be; together it is none."""
    found = a_little_behind(2000, 1000, hosts=2)
    assert found == {
        "all=all": "outstanding I/O grew by 4,000 of 960,000 due",
        "host=h0": "outstanding I/O grew by 4,000 of 480,000 due",
    }  # fmt: skip


def test_a_row_that_contains_an_unsustained_instance_is_not_sustained() -> None:
    """The sum of a host's two instances is short; of the fleet's it is 0.01 %."""
    found = a_little_behind(200, 2, hosts=100)
    assert found == {
        "host=h0": "outstanding I/O grew by 8 of 960 due", "all=all": "host=h0: outstanding I/O grew by 8 of 960 due",
    }  # fmt: skip


@pytest.mark.parametrize("subintervals", [8, 15, 60, 300])
@pytest.mark.parametrize("broken", [0.1, 0.2, 0.4, 0.6, 0.8])  # the last part of the window
@pytest.mark.parametrize("behind", [0.02, 0.04])  # of all that fell due
def test_a_load_that_fails_within_the_window_is_not_sustained(subintervals: int, broken: float, behind: float) -> None:
    """A device that slows down is no queue that comes and goes, though it, too, is far from a straight line."""
    last = max(1, round(subintervals * broken))
    ends = rng(3).poisson(4.0, (subintervals + 1, 1))
    ends[-last:, 0] += (np.arange(1, last + 1) * subintervals * 1000 * behind / last).astype(np.int64)
    assert why_not_sustained(account(load(np.array([1000]), ends)), TOLERANCE) != ""


@pytest.mark.slow
@pytest.mark.parametrize(("share", "a_second"), [(0.5, 100), (0.8, 300), (0.9, 1000), (0.95, 3000)])
def test_a_queue_near_saturation_is_sustained(share: float, a_second: int) -> None:
    """M/M/1 by its I/Os, so that what waits at one end of a subinterval is not independent of the end before."""
    random = rng(4)
    behind = earlier = 0
    for _ in range(100):
        arrives = random.exponential(1 / a_second, 90 * a_second).cumsum()
        served = random.exponential(share / a_second, len(arrives)).cumsum()
        leaves = served + np.maximum.accumulate(arrives - np.concatenate([[0.0], served[:-1]]))
        at = np.arange(50, 76)
        came, went = np.searchsorted(arrives, at), np.searchsorted(leaves, at)
        waits = (came - went)[:, None]
        parts = [
            Outstanding(
                np.array([due]),
                waits[k + 1] - waits[k],
                np.array([0]),
                waits[k + 1],
                np.array([0]),
                np.array([0]),
                np.ones(1, bool),
            )
            for k, due in enumerate(np.diff(came))
        ]
        behind += why_not_sustained(account(parts), TOLERANCE) != ""
        for first in range(0, 24, 8):  # short windows of it
            earlier += earlier_of(account(parts[first : first + 8]), [8 * a_second]) != ""
    assert behind == 0
    assert earlier <= 1  # of 300


@pytest.mark.parametrize("levels", [[0, 1, 2, 3, 4, 5], [5, 3, 8, 1, 9, 2], [4, 4, 4, 4, 4, 4], [0, 0, 0, 0, 0, 60]])
def test_the_variance_is_that_about_a_least_squares_line(levels: Sequence[int]) -> None:
    ends = np.array([[0], *([level] for level in levels)])
    found = account(load(np.array([100]), ends)).variance()[0]
    times = np.arange(len(levels))
    residuals = np.array(levels) - np.polyval(np.polyfit(times, levels, 1), times)
    assert found == pytest.approx(float(residuals @ residuals) / (len(levels) - 2), abs=1e-9)
    for flying in (0 * ends, ends // 2):  # what waits for the host is outstanding, too
        assert account(load(np.array([100]), ends, flying)).variance()[0] == found


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40))
def test_the_first_part_of_a_window_is_between_a_quarter_and_half_of_it(levels: list[int]) -> None:
    found = account(load(np.array([100]), np.array([[0], *([level] for level in levels)])))
    count = found.first.subintervals
    assert len(levels) < 2 or (len(levels) < 4 * count <= 2 * len(levels))
    rest = account(load(np.array([100]), np.array([[level] for level in [0, *levels][count:]])))
    assert found.ends.after(found.first).variance() == pytest.approx(rest.ends.variance(), abs=1e-6)


def test_the_bound_of_one_subinterval_is_that_of_what_was_in_flight_at_its_end() -> None:
    one = account(load(np.array([1000]), np.array([[0], [40]])))
    assert check_each(one, 0.0).bound == allowed(1000, 0.0, 41, 0, 1)


def covered(parts: list[Outstanding], places: Collection[int]) -> list[Outstanding]:
    """The same, where these subintervals of the first instance are in the result of the next one that is not."""
    found, of_before = [], np.zeros((4, len(parts[0].due)), np.int64)
    first = np.arange(len(parts[0].due)) == 0
    for place, one in enumerate(parts):
        sums = np.array([one.due, one.growth, one.backlog_growth, one.expired]) + of_before
        absent = first & (place in places)
        of_before = sums * absent
        due, growth, backlog_growth, expired = sums * ~absent
        found.append(
            Outstanding(due, growth, backlog_growth, one.in_flight * ~absent, one.backlog * ~absent, expired, ~absent)
        )
    return found


@given(st.integers(0, 2**32), st.sets(st.integers(0, 28), min_size=1, max_size=8), st.sampled_from([0, 15]))
@settings(max_examples=60, deadline=None)
@pytest.mark.slow
def test_a_result_that_covers_several_subintervals_does_not_hide_that_a_load_falls_behind(
    seed: int, places: set[int], behind: int
) -> None:
    """Of 1,000 due, about 200 are in flight, and `behind` more wait each time."""
    random, due = rng(seed), np.array([1000, 1000])
    in_flight = random.poisson(200, (31, 2))
    ends = in_flight + np.arange(31)[:, np.newaxis] * np.array([behind, 0])
    parts = load(due, ends, in_flight)
    said = why_not_sustained(account(covered(parts, places)), TOLERANCE)
    assert bool(said) is bool(behind) is bool(why_not_sustained(account(parts), TOLERANCE))
    assert account(covered(parts, places)).before[0] == account(parts).before[0]


COUNTS = st.integers(0, 1 << 40)


@st.composite
def subintervals(draw: st.DrawFn) -> list[Outstanding]:
    """Of one to three instances, each of which may be absent at any time."""
    instances = draw(st.integers(1, 3))

    def column(values: st.SearchStrategy[int]) -> Ints:
        return np.array(draw(st.lists(values, min_size=instances, max_size=instances)), np.int64)

    def subinterval() -> Outstanding:
        present = column(st.sampled_from([0, 1, 1]))
        due, growth, backlog_growth, in_flight, backlog, expired = (column(COUNTS) * present for _ in range(6))
        return Outstanding(due, growth - expired, backlog_growth, in_flight, backlog, expired, present > 0)

    return [subinterval() for _ in range(draw(st.integers(1, 18)))]


def flat(account: Account) -> list[float]:
    """All that it holds."""
    parts = [account.ends, account.first, account.doubled]
    own = [
        account.due, account.growth, account.in_flight, account.expired, account.before, account.last,
        account.last_in_flight, account.seen, *(sums for one in parts for sums in (one.total, one.rising, one.squares)),
    ]  # fmt: skip
    return [account.subintervals, *(one.subintervals for one in parts), *np.concatenate(own).tolist()]


@given(subintervals())
def test_an_account_of_all_at_once_is_that_of_one_after_the_other(parts: list[Outstanding]) -> None:
    one_by_one = reduce(Account.plus, parts, Account.none(len(parts[0].due)))
    assert flat(account(parts)) == pytest.approx(flat(one_by_one), rel=1e-12)


@pytest.mark.parametrize("mean", [1e-6, 0.01, 1, 3.7, 200, 1e5, 1e9])
def test_the_bound_of_chance_is_where_chernoffs_is_what_was_asked_for(mean: float) -> None:
    """However the others that are asked for with it converge."""
    unlikely = -np.log(FALSE_ALARM)
    bound, _ = allowed(np.zeros(2), 0.0, np.array([mean, 1e4]), np.zeros(2), 1)
    u = bound / (2 * mean)
    assert 2 * mean * (u * asinh(u) - sqrt(1 + u * u) + 1) == pytest.approx(unlikely, rel=1e-6 if mean < 1e6 else 1e-2)


def test_no_subintervals_give_no_finding() -> None:
    assert why_not_sustained(Account.none(0), TOLERANCE) == ""


def test_a_sudden_backlog_of_one_instance_is_detected() -> None:
    layout = layout_of(100, hosts=2)
    due, ends = np.full(100, 1000), np.full((2, 100), 10)
    ends[1, 60] = 500
    (one,) = load(due, ends)
    place = [(host, number) for host in layout.hosts for number in layout.numbers[host]][60]
    assert set(np.flatnonzero(rows_surged(layout, one)).tolist()) == set(layout.rollups.rows_of(*place))


def test_control_takes_no_load_that_discards_for_sustained() -> None:
    """Whatever the tolerance: one I/O of ten thousand that waited too long."""
    counts = np.zeros((1, len(Count)), np.int64)
    counts[0, [Count.DUE, Count.SUBMITTED, Count.COMPLETED]] = 1000
    good = Outstanding.of(counts.copy())
    counts[0, [Count.SUBMITTED, Count.COMPLETED, Count.EXPIRED]] = 999, 999, 1
    window = [good] * 9 + [Outstanding.of(counts)]
    assert why_not_sustained(account([good] * 10), TOLERANCE) == ""
    said = "1 of 10,000 due I/Os waited for longer than drop_after, and were discarded"
    assert why_not_sustained(account(window), TOLERANCE) == said
    assert why_not_sustained(account(window), 0.5) == said


def test_a_backlog_that_is_discarded_is_a_surge() -> None:
    """At every level: the backlog at the ends stays the same."""
    counts = np.zeros((1, len(Count)), np.int64)
    counts[0, [Count.DUE, Count.SUBMITTED, Count.COMPLETED, Count.EXPIRED, Count.BACKLOG]] = 1000, 700, 700, 300, 200
    assert Outstanding.of(counts).surged().all()


def test_outstanding_is_what_was_due_and_is_not_done() -> None:
    counts = np.zeros((1, len(Count)), np.int64)
    of = {
        Count.DUE: 1000, Count.DROPPED: 1, Count.COMPLETED: 900, Count.ERRORS: 20, Count.WITHDRAWN: 300,
        Count.SUBMITTED: 950, Count.IN_FLIGHT: 30, Count.BACKLOG: 4, Count.EXPIRED: 5,
    }  # fmt: skip
    for column, value in of.items():
        counts[0, column] = value
    found = Outstanding.of(counts)
    names = ("due", "growth", "backlog_growth", "in_flight", "backlog", "expired")
    assert [int(getattr(found, name)[0]) for name in names] == [1000, 79, 349, 30, 4, 5]


def one_subinterval(**columns: int) -> Outstanding:
    names = ("due", "growth", "backlog_growth", "in_flight", "backlog", "expired")
    due, growth, backlog_growth, in_flight, backlog, expired = (np.array([columns.get(name, 0)]) for name in names)
    return Outstanding(due, growth, backlog_growth, in_flight, backlog, expired, np.ones(1, bool))


@pytest.mark.parametrize(
    ("one", "is_surge"),
    [
        # a twentieth of what fell due, by the backlog alone
        (one_subinterval(due=100_000, backlog_growth=5000, backlog=20_000), False),
        (one_subinterval(due=100_000, backlog_growth=5001, backlog=20_000), True),
        # or by what chance may put in flight: none at the end does not mean that there are none
        (one_subinterval(due=10, backlog_growth=7, backlog=20), False),
        (one_subinterval(due=10, backlog_growth=8, backlog=20), True),
        # or in all, and then by more than twice what was outstanding before
        (one_subinterval(due=100_000, growth=20_000, in_flight=20_000, backlog=10_000), False),
        (one_subinterval(due=100_000, growth=20_001, in_flight=20_001, backlog=10_000), True),
        (one_subinterval(due=100_000, growth=5000, in_flight=5000), False),
        (one_subinterval(due=100_000, growth=5001, in_flight=5001), True),
        # of which what expired is not there at the end: before, there were 9,000
        (one_subinterval(due=100_000, growth=12_000, in_flight=15_000, expired=6000), False),
        (one_subinterval(due=100_000, growth=18_001, in_flight=21_001, expired=6000), True),
    ],
)
def test_a_surge_is_more_than_a_change_of_the_load_explains(one: Outstanding, is_surge: bool) -> None:
    assert one.surged().tolist() == [is_surge]


def test_an_account_without_what_is_at_max_is_that_of_the_others() -> None:
    ends = rng(5).poisson(20.0, (10, 2))
    paced = np.array([True, False])
    whole, alone = account(load(np.array([100, 100]), ends)), account(load(np.array([100, 0]), ends * paced))
    found = whole.of_paced(paced)
    assert found.subintervals == 9
    for name in ("due", "growth", "in_flight", "expired"):
        assert getattr(found, name).tolist() == getattr(alone, name).tolist()
    for name in ("ends", "first", "doubled"):
        of, other = getattr(found, name), getattr(alone, name)
        assert (of.subintervals, of.total.tolist()) == (other.subintervals, other.total.tolist())
        assert (of.rising.tolist(), of.squares.tolist()) == (other.rising.tolist(), other.squares.tolist())
    assert account(load(np.array([100]), ends[:, :1])).of_paced(np.array([True])).due.tolist() == [900]
    one = load(np.array([100, 100]), ends)[1].of_paced(paced)
    assert (one.due.tolist(), one.growth.tolist()) == ([100, 0], [int(ends[2, 0] - ends[1, 0]), 0])


def test_the_variance_is_at_most_36_times_that_of_the_calmer_part() -> None:
    """Six deviations: the calm part has 8 of 24 subintervals."""
    levels = [0, 1] * 4 + [0, 100] * 8
    found = account(load(np.array([1000]), np.array([[0], *([level] for level in levels)])))
    calm = account(load(np.array([1000]), np.array([[0], *([level] for level in levels[:8])]))).ends.variance()[0]
    assert found.first.subintervals == 8 and found.ends.variance()[0] > 36 * calm
    assert found.variance()[0] == pytest.approx(36 * calm)
    short = account(load(np.array([1000]), np.array([[0], *([level] for level in [0, 1, 0, 100, 0, 100, 0])])))
    assert short.variance()[0] == short.ends.variance()[0]  # two subintervals show no swing


@pytest.mark.parametrize("mean", [1e-3, 0.1, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("checked", [1, 1000])
def test_what_chance_may_do_in_flight_is_chernoffs_bound(mean: float, checked: int) -> None:
    bound = float(allowed(0, 0.0, mean, mean, checked))
    u = bound / (2 * mean)
    assert exp(-2 * mean * (u * asinh(u) - sqrt(1 + u * u) + 1)) == pytest.approx(FALSE_ALARM / checked, rel=1e-6)
    assert allowed(0, 0.0, 0.0, 0.0, checked) == 0.0


def test_a_swing_is_allowed_up_to_a_twentieth_of_what_fell_due() -> None:
    assert allowed(1000, 0.01, 0.0, 4.0, 1) == pytest.approx(2 * np.log(1 / FALSE_ALARM))
    assert allowed(1000, 0.01, 0.0, 1e6, 1) == pytest.approx(50.0)
    assert allowed(1000, 0.06, 0.0, 1e6, 1) == pytest.approx(60.0)
    assert allowed(1000, 0.01, 0.0, 0.25, 1) == 10.0


@pytest.mark.parametrize(("more", "is_behind"), [(0, False), (1, True)])
def test_each_instance_of_a_sum_may_have_one_io_that_is_about_to_be_submitted(more: int, is_behind: bool) -> None:
    ends = np.zeros((25, 1000), np.int64)
    ends[-1] = 1
    ends[-1, 0] += more
    of = account(load(np.full(1000, 30), ends, np.zeros_like(ends)))
    together = check_together(of, 0.0, np.zeros(1000, np.int64), 1, 1000)
    assert (together.bound.tolist(), together.unsustained.tolist()) == ([1000.0], [is_behind])
    assert not check_each(of, 0.0).unsustained.any()


def test_the_worst_instance_is_the_one_that_is_behind_by_the_largest_share() -> None:
    layout = layout_of(2)
    due, ends = np.array([1000, 100_000]), np.arange(13)[:, None] * np.array([[300, 8000]])
    behind = account(load(due, ends))
    assert why_not_sustained(behind, TOLERANCE) == (
        "2 of 2 workload instances; of the worst outstanding I/O grew by 3,600 of 12,000 due"
    )
    found = {str(layout.rollups.rows[row]): text for row, text in rows_behind(layout, behind, TOLERANCE).items()}
    of_0 = "outstanding I/O of h0+/dev/sd0+w grew by 3,600 of 12,000 due"
    assert found["all=all"] == f"{of_0}, and by 1 more"
    assert sorted(found.values(), key=len)[0] == of_0
    ahead = account(load(due, ends[::-1]))
    assert (
        rows_ahead(layout, ahead, TOLERANCE)[0]
        == "h0+/dev/sd0+w did 3,600 more than the 12,000 that fell due, and by 1 more"
    )
    alone = account(load(due[:1], ends[:, :1]))
    assert why_not_sustained(alone, TOLERANCE) == "outstanding I/O grew by 3,600 of 12,000 due"


def earlier_of(of: Account, completed: list[int]) -> str:
    instances = len(of.due)
    return rows_of_earlier(layout_of(instances), of, np.resize(completed, 2 * instances + 2)).get(0, "")


@pytest.mark.parametrize(
    ("ends", "completed", "says"),
    [
        # a level that drained what a stall in its warmup had left: its p99 was 986 ms, its neighbours' 120
        ([249, 90, 12, 9, 6, 8, 7, 6, 7], 2824, "249 of 2,824 had fallen due before it, 7 are usual"),
        ([8, 7, 9, 9, 6, 8, 7, 6, 7], 2824, ""),
        ([120, 30, 12, 9, 6, 8, 7, 6, 7], 2824, ""),  # a queue may be so long by chance
        ([249, 90, 12, 9, 6, 8, 7, 6, 7], 100_000, ""),  # too few for the p99
        ([249, 90, 12, 9, 60, 8, 7, 6, 70], 2824, ""),  # it is so now and then
        ([249, 90, 12, 9], 2824, ""),  # nothing to compare with
    ],
)
def test_a_window_that_begins_with_what_fell_due_before(ends: list[int], completed: int, says: str) -> None:
    one = account(load(np.array([320]), np.array(ends)[:, None]))
    assert earlier_of(one, [completed]) == says
    two = account(load(np.array([320, 320]), np.repeat(ends, 2).reshape(-1, 2)))
    assert (earlier_of(two, [2 * completed]) != "") is (says != "")


def test_a_load_at_max_has_no_earlier_ios() -> None:
    one = account(load(np.array([320]), np.array([249, 90, 12, 9, 6, 8, 7, 6, 7])[:, None]))
    assert earlier_of(one.of_paced(np.array([False])), [2824]) == ""


def test_earlier_backlog_is_beyond_twice_the_bound() -> None:
    """Which is 25 of 10,000."""
    for left, is_ahead in ((50, False), (51, True)):
        ends = np.full((11, 1), 0)
        ends[0] = left
        of = account(load(np.array([1000]), ends, np.zeros_like(ends)))
        assert check_each(of, TOLERANCE).bound.tolist() == [25.0]
        assert check_each(of, TOLERANCE).ahead.tolist() == [is_ahead]
