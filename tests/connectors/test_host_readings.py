"""What test hosts read of themselves, from their results: true rates, or none, whatever comes late or not at all."""

import asyncio
import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.connectors.connector_spec import ConnectorSpec
from ivypy.master.connectors.element_figures import ElementIndex, family_figures
from ivypy.master.connectors.gathered import Gathered, GatherState
from ivypy.master.connectors.host_readings import HostElements, Taken
from ivypy.master.hosts.controller_lag import ControllerLag
from ivypy.master.hosts.driver import CommandRefused, HostLost
from ivypy.master.hosts.host_spec import HostSpec, Launcher
from ivypy.protocol.connector import Combine, ElementMetric, ReadingKind, Unit
from ivypy.protocol.messages import ElementsFound, FindElements, HostReadings, Result
from ivypy.protocol.payload import Array, ArrayType, Fact, Facts, Refusal
from tests.support.rollup import instance, rollups_by

S = 10**9
COUNTER = ReadingKind.COUNTER
METRICS = (
    ElementMetric("disk", "reads_per_s", Unit.PER_S, COUNTER, Combine.SUM),
    ElementMetric("disk", "read_ms", Unit.MS, COUNTER, per="reads_per_s", bits=32),
    ElementMetric("memory", "dirty_mib", Unit.MIB),
    ElementMetric("memory", "faults_per_s", Unit.PER_S, COUNTER),
)
SPEC = ConnectorSpec("host", HostSpec("host", Launcher.LOCAL, "host"), (), join={"path": "path"})
DISKS: Mapping[str, tuple[str, ...]] = {"h1": ("sda", "sdb"), "h2": ("sda",)}
READS = {"h1": (1000, 50), "h2": (7,)}  # a second, of each disk
FAULTS = 100_000  # a second, of each host's memory, which is read after its disks
ROLLUPS = rollups_by(
    [instance(0, "h1", path="/dev/sda"), instance(1, "h1", path="/dev/sdb"), instance(0, "h2", path="/dev/sda")], "host"
)


def found(host: str) -> ElementsFound:
    joins = [Fact("disk", disk, "path", f"/dev/{disk}") for disk in DISKS[host]]
    return ElementsFound(1, METRICS, {"disk": DISKS[host], "memory": ("host",)}, Facts(joins))


class AskedDriver:
    """A host that answers what it has; `answer`: instead."""

    def __init__(self, name: str, answer: Any = None) -> None:
        self.name = name
        self.lost: str | None = None
        self.asked: list[tuple[str, ...]] = []
        self._answer = answer if answer is not None else found(name)
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self._pending = 0

    async def request(self, kind: type, luns: tuple[str, ...]) -> list[Any]:
        assert kind is FindElements
        self.asked.append(luns)
        self._pending += 1
        await self.may_answer.wait()
        self._pending -= 1
        if isinstance(self._answer, Exception):
            self.lost = str(self._answer) if isinstance(self._answer, HostLost) else None
            raise self._answer
        return [self._answer]

    def has_pending(self, kind: type) -> bool:
        return self._pending > 0

    def answer_late(self) -> None:
        """When nobody waits for it any more."""
        self._pending = 0
        self.may_answer.set()

    def lose(self, reason: str) -> None:
        self.lost = reason

    def lose_for_bug(self, error: Exception) -> None:
        self.lost = f"a bug: {error}"


async def elements_of(*drivers: AskedDriver, events: list[str] | None = None) -> HostElements:
    shown: list[str] = [] if events is None else events
    hosts = HostElements(SPEC, {"h1": ["/dev/sda"]}, lambda text, host: shown.append(f"{host}: {text}"))
    await find(hosts, *drivers)
    return hosts


async def find(hosts: HostElements, *drivers: AskedDriver, within_s: float = 10.0) -> None:
    await hosts.find(drivers, ControllerLag(time.monotonic_ns).deadline(within_s))  # type: ignore[arg-type]


def read_at(host: str, k: int) -> int:
    """When a host reads at the end of subinterval `k`, on its own clock: somewhat late, and never by as much."""
    return (k + 2) * S + (k * 7_919_000 + len(host) * 31_000_000) % 50_000_000


def readings(host: str, k: int, **changes: Any) -> HostReadings:
    at_ns = read_at(host, k)
    cells: list[float] = []
    for each in READS[host]:
        count = round(each * at_ns / S)
        cells += [count, 3 * count % (1 << 32)]
    later_ns = at_ns + (k + 1) * 5_000_000
    cells += [float(k), float(FAULTS * later_ns // S)]
    values = Array(ArrayType.F64, array("d", cells).tobytes())
    made = HostReadings(k, at_ns - 1000, later_ns + 1000, (at_ns, later_ns), values)
    return replace(made, **changes)


def result(k: int, carried: Sequence[HostReadings]) -> Result:
    empty = Array(ArrayType.I64, b"")
    return Result(k, (k + 1) * S, S, False, 0, (), empty, empty, empty, empty, empty, (), (), readings=tuple(carried))


def take(
    hosts: HostElements, k: int, carried: Mapping[str, Sequence[HostReadings]], lost: Mapping[str, str] | None = None
) -> Taken:
    results = {host: result(k, some) for host, some in carried.items()}
    return hosts.take(k, results, dict.fromkeys(results, 100 * S), lost or {})


def rates_of(taken: Taken) -> dict[str, float]:
    """The reads a second of each disk."""
    assert taken.gathered is not None
    values = taken.gathered.rates.tables["disk"].values
    return dict(zip(["h1:sda", "h1:sdb", "h2:sda"], values[:, 0].tolist(), strict=True))


def states(taken: Taken) -> list[str]:
    assert taken.gathered is not None
    return [f"{one.spec.test_host} {one.state}{': ' if one.why else ''}{one.why}" for one in taken.gathered.gathers]


# When the readings of a subinterval come, by what its host does: with its result, with the next one, never; or its
# whole result comes late, or never.
WITH_RESULT, WITH_NEXT, NEVER, RESULT_LATE, NO_RESULT = range(5)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
async def test_a_rate_is_true_and_shown_exactly_where_both_readings_are_known(plan: list[tuple[int, int]]) -> None:
    hosts = await elements_of(AskedDriver("h1"), AskedDriver("h2"))
    hosts.begin(0, S)
    known: dict[str, set[int]] = {"h1": set(), "h2": set()}  # subintervals whose readings have arrived, by host
    waiting: dict[str, list[HostReadings]] = {"h1": [readings("h1", -1)], "h2": [readings("h2", -1)]}
    for k, fates in enumerate(plan):
        carried: dict[str, list[HostReadings]] = {}
        late: dict[str, list[HostReadings]] = {}
        for host, fate in zip(("h1", "h2"), fates, strict=True):
            own = [readings(host, k)] if fate in (WITH_RESULT, RESULT_LATE) else []
            if fate != NO_RESULT:
                (late if fate == RESULT_LATE else carried)[host] = [*waiting[host], *own]
                waiting[host] = []
            if fate == WITH_NEXT:
                waiting[host] = [readings(host, k)]
        taken = take(hosts, k, carried)
        for host, some in carried.items():
            known[host] |= {one.subinterval for one in some}
        shown = rates_of(taken)
        for host in ("h1", "h2"):
            for disk, reads in zip(DISKS[host], READS[host], strict=True):
                if {k - 1, k} <= known[host]:
                    assert shown[f"{host}:{disk}"] == pytest.approx(reads, abs=2.0)
                else:
                    assert np.isnan(shown[f"{host}:{disk}"])
        assert taken.gathered is not None
        assert [host for host in known if k in known[host]] == [
            one.spec.test_host for one in taken.gathered.gathers if one.state is GatherState.GATHERED
        ]
        for host, some in late.items():
            assert hosts.take_late(host, result(k, some), 100 * S).misfits == {}
            known[host] |= {one.subinterval for one in some}


async def test_rates_are_by_the_hosts_own_stamps() -> None:
    """Exactly: the increase over the time between the stamps of that element type."""
    hosts = await elements_of(AskedDriver("h1"), AskedDriver("h2"))
    hosts.begin(0, S)
    take(hosts, 0, {"h1": [readings("h1", 0)]})
    shown = rates_of(take(hosts, 1, {"h1": [readings("h1", 1)]}))
    counts = [round(1000 * read_at("h1", k) / S) for k in (0, 1)]
    assert shown["h1:sda"] == (counts[1] - counts[0]) / ((read_at("h1", 1) - read_at("h1", 0)) / 1e9)


async def test_each_element_type_has_a_stamp_of_its_own() -> None:
    hosts = await elements_of(AskedDriver("h1"), AskedDriver("h2"))
    hosts.begin(0, S)
    take(hosts, 0, {"h1": [readings("h1", 0)], "h2": [readings("h2", 0)]})
    taken = take(hosts, 1, {"h1": [readings("h1", 1)], "h2": [readings("h2", 1)]})
    assert taken.gathered is not None
    faults = taken.gathered.rates.tables["memory"].values[:, 1]
    assert faults.tolist() == pytest.approx([FAULTS, FAULTS], abs=3.0), "5 ms would be 500"
    for one in taken.gathered.gathers:
        ends = [readings(one.spec.test_host, k).end_ns for k in (0, 1)]
        assert one.seconds == (ends[1] - ends[0]) / 1e9


async def test_what_is_missing_is_labelled() -> None:
    hosts = await elements_of(AskedDriver("h1"), AskedDriver("h2"))
    hosts.begin(0, S)
    assert states(take(hosts, 0, {"h1": [readings("h1", -1), readings("h1", 0)], "h2": []})) == [
        "h1 gathered", "h2 no_answer: it was not read in time for its result",
    ]  # fmt: skip
    second = take(hosts, 1, {"h2": [readings("h2", 0), readings("h2", 1)]}, {"h1": "its cable was cut"})
    assert states(second) == ["h1 lost: its cable was cut", "h2 gathered"]
    assert [(one.spec.test_host, one.subinterval, one.state) for one in second.late] == [("h2", 0, GatherState.LATE)]
    assert states(take(hosts, 2, {"h1": [readings("h1", 2)]})) == ["h1 gathered", "h2 no_answer: its result is not in"]
    late = hosts.take_late("h2", result(2, [readings("h2", 2)]), 100 * S).late
    assert [(one.spec.test_host, one.subinterval, one.state) for one in late] == [("h2", 2, GatherState.LATE)]


async def test_times_are_after_the_end_of_the_subinterval_by_the_hosts_own_clock() -> None:
    hosts = await elements_of(AskedDriver("h1"), AskedDriver("h2"))
    hosts.begin(500 * S, S)
    taken = take(hosts, 3, {"h1": [readings("h1", 3)]})
    assert taken.gathered is not None
    one: Gathered = taken.gathered.gathers[0]
    assert one.boundary_ns == 504 * S
    assert one.times.skew_ns(one.boundary_ns) == readings("h1", 3).end_ns - 5 * S  # its result ends at 5 s
    assert one.times.duration_ns == 20_000_000 + 2000
    assert one.seconds == 0.0, "there is nothing to count from"
    assert (one.times.requested_ns, one.times.answered_ns) == (None, 100 * S)
    assert (one.counted.elements, one.counted.resets, one.counted.wraps) == (1, 0, 0), "its memory has a gauge"


async def test_counters_that_fell_are_counted_for_their_host() -> None:
    hosts = await elements_of(AskedDriver("h1"), AskedDriver("h2"))
    hosts.begin(0, S)
    cells = {0: (1e6, 2.0**32 - 5, 10.0, 10.0, 1.0, nan), 1: (1e3, 5.0, 20.0, 20.0, 1.0, nan)}
    for k, values in cells.items():
        packed = Array(ArrayType.F64, array("d", values).tobytes())
        taken = take(hosts, k, {"h1": [readings("h1", k, values=packed)], "h2": [readings("h2", k)]})
    assert taken.gathered is not None
    first, second = taken.gathered.gathers
    assert (first.counted.resets, first.counted.wraps, first.counted.elements) == (1, 1, 2)
    assert (second.counted.resets, second.counted.wraps, second.counted.elements) == (0, 0, 2)


async def test_a_step_begins_anew() -> None:
    hosts = await elements_of(AskedDriver("h1"), AskedDriver("h2"))
    hosts.begin(0, S)
    take(hosts, 0, {"h1": [readings("h1", 0)]})
    hosts.begin(50 * S, S)
    assert np.isnan(rates_of(take(hosts, 1, {"h1": [readings("h1", 1)]}))["h1:sda"])


BROKEN = {
    "too few values": ({"values": Array(ArrayType.F64, b"")}, "it has 0 values of type f8, not 6 of type f8"),
    "other values": ({"values": Array(ArrayType.I64, bytes(48))}, "it has 6 values of type i8"),
    "an infinite value": ({"values": Array(ArrayType.F64, array("d", [nan, 1, 1, 1, inf, 1]).tobytes())}, "infinite"),
    "a stamp too few": ({"stamps": (1,)}, "it has 1 stamps, not 2"),
    "a stamp after the end": ({"end_ns": read_at("h1", 0) + 4_999_999}, "a stamp is not between"),
    "a stamp before the start": ({"start_ns": read_at("h1", 0) + 1}, "a stamp is not between"),
    "of a later subinterval": ({"subinterval": 1}, "they came with the result of subinterval 0"),
}  # fmt: skip


@pytest.mark.parametrize("changes, fault", BROKEN.values(), ids=[*BROKEN])
async def test_readings_that_do_not_fit_name_their_host_and_cost_no_other(changes: dict[str, Any], fault: str) -> None:
    hosts = await elements_of(AskedDriver("h1"), AskedDriver("h2"))
    hosts.begin(0, S)
    broken = readings("h1", 0, **changes)
    taken = take(hosts, 0, {"h1": [broken], "h2": [readings("h2", 0)]})
    assert list(taken.misfits) == ["h1"] and fault in taken.misfits["h1"], taken.misfits
    assert states(taken)[1] == "h2 gathered"
    assert fault in hosts.take_late("h1", result(0, [broken]), 0).misfits["h1"]


async def test_stamps_may_be_the_start_and_the_end() -> None:
    hosts = await elements_of(AskedDriver("h1"), AskedDriver("h2"))
    hosts.begin(0, S)
    tight = readings("h1", 0, start_ns=read_at("h1", 0), end_ns=read_at("h1", 0) + 5_000_000)
    assert not take(hosts, 0, {"h1": [tight]}).misfits


async def test_a_late_result_of_long_ago_changes_nothing() -> None:
    hosts = await elements_of(AskedDriver("h1"), AskedDriver("h2"))
    hosts.begin(0, S)
    take(hosts, 1, {"h1": [readings("h1", 1)]})
    again = readings("h1", 1, values=Array(ArrayType.F64, bytes(48)))
    assert [one.subinterval for one in hosts.take_late("h1", result(0, [readings("h1", 0)]), 0).late] == [0]
    assert take(hosts, 2, {"h1": [readings("h1", 0), again, readings("h1", 2)]}).late == ()
    assert rates_of(take(hosts, 3, {"h1": [readings("h1", 3)]}))["h1:sda"] == pytest.approx(1000, abs=2.0)


# Asking.


async def test_a_host_is_asked_once_for_each_connection() -> None:
    first, again = AskedDriver("h1"), AskedDriver("h1", replace(found("h1"), instances={"disk": ("sdb",)}))
    hosts = await elements_of(first, AskedDriver("h2"))
    await find(hosts, first)
    assert first.asked == [("/dev/sda",)]
    await find(hosts, again)
    hosts.begin(0, S)
    packed = Array(ArrayType.F64, array("d", [1.0, 2.0]).tobytes())
    taken = take(hosts, 0, {"h1": [readings("h1", 0, values=packed)]})
    assert not taken.misfits and taken.gathered is not None
    assert taken.gathered.rows["disk"].tolist() == [False, True, False], "sda is there no more"


async def test_a_new_host_among_those_that_were_asked_is_laid_out() -> None:
    first = AskedDriver("h2")
    hosts = await elements_of(first)
    await find(hosts, first, AskedDriver("h1"))
    hosts.begin(0, S)
    for k in (0, 1):
        taken = take(hosts, k, {"h1": [readings("h1", k)], "h2": [readings("h2", k)]})
    assert taken.gathered is not None
    disks = hosts.connected(ROLLUPS)
    assert disks is not None
    names = disks.catalog.tables["disk"].instances
    values = dict(zip(names, taken.gathered.rates.tables["disk"].values[:, 0].tolist(), strict=True))
    assert values == pytest.approx({"h1:sda": 1000, "h1:sdb": 50, "h2:sda": 7}, abs=2.0)


NO_METRIC = replace(found("h1"), instances={"disk": ("sda",), "cache": ("0",)})
FAULTY = {
    "elements without metrics": (NO_METRIC, "of types without metrics: cache"),
    "an element twice": (replace(found("h1"), instances={"disk": ("sda", "sda")}), "an element is there twice"),
    "an element without a name": (replace(found("h1"), instances={"disk": ("",)}), "is empty, or too long"),
    "a long name": (replace(found("h1"), instances={"disk": ("x" * 198,)}), "is empty, or too long"),
    "metrics apart": (
        replace(found("h1"), metrics=(METRICS[0], *METRICS[2:], METRICS[1])),
        "of an element type are apart",
    ),
    "a metric twice": (
        replace(found("h1"), metrics=METRICS[:1] * 2, instances={}),
        "its name disk_reads_per_s is that",
    ),
}


@pytest.mark.parametrize("answer, fault", FAULTY.values(), ids=[*FAULTY])
async def test_what_no_host_can_have_costs_it(answer: ElementsFound, fault: str) -> None:
    driver = AskedDriver("h1", answer)
    hosts = await elements_of(driver, AskedDriver("h2"))
    assert driver.lost is not None and fault in driver.lost
    connected = hosts.connected(ROLLUPS)
    assert connected is not None and connected.catalog.tables["disk"].instances == ["h2:sda"]


async def test_names_and_numbers_at_their_limits_are_fine() -> None:
    many = {"disk": ("x", "y" * 197, *map(str, range(19_998)))}
    driver = AskedDriver("h1", replace(found("h1"), instances=many))
    await elements_of(driver)
    assert driver.lost is None


async def test_other_metrics_than_those_of_the_first_host_leave_it_out() -> None:
    events: list[str] = []
    other = AskedDriver("h2", replace(found("h2"), metrics=METRICS[:2], instances={"disk": ("sda",)}))
    await elements_of(AskedDriver("h1"), other, events=events)
    assert events == ["h2: the connector host is not there: its metrics are not those of the other hosts"]
    assert other.lost is None


async def test_a_host_that_refuses_or_is_lost_leaves_the_others() -> None:
    events: list[str] = []
    refusing = AskedDriver("h1", CommandRefused((Refusal("find_elements", "no"),)))
    hosts = await elements_of(refusing, AskedDriver("h2"), AskedDriver("h3", HostLost("gone")), events=events)
    assert events == ["h1: the connector host is not there: find_elements: no"]
    hosts.begin(0, S)
    assert states(take(hosts, 0, {"h1": [], "h2": [readings("h2", 0)]})) == ["h2 gathered"]


async def test_a_host_that_is_lost_is_in_no_later_step() -> None:
    """Its elements, which nobody reads any more, would leave the sums of everything empty."""
    lost, other = AskedDriver("h1"), AskedDriver("h2")
    hosts = await elements_of(lost, other)
    await find(hosts, other)
    hosts.begin(0, S)
    assert states(take(hosts, 0, {"h2": [readings("h2", 0)]})) == ["h2 gathered"]
    connected = hosts.connected(ROLLUPS)
    assert connected is not None
    for table in connected.catalog.tables.values():
        everything = [table.instances[row] for row in connected.membership.rows(table, 0)]
        assert everything and all(name.startswith("h2:") for name in everything)
    hosts.begin(0, S)
    for k in (0, 1):
        taken = take(hosts, k, {"h2": [readings("h2", k)]})
    assert figures(hosts, taken, "memory") == {"all": 1.0, "h2": 1.0}, "nor are they those of others"
    await find(hosts, AskedDriver("h1"), other)
    hosts.begin(0, S)
    assert len(states(take(hosts, 0, {}))) == 2, "it is connected again"


async def test_without_any_host_that_has_elements_there_is_no_connector() -> None:
    hosts = await elements_of(AskedDriver("h1", HostLost("gone")))
    hosts.begin(0, S)
    assert hosts.connected(ROLLUPS) is None and take(hosts, 0, {}).gathered is None
    assert hosts.take_late("h1", result(0, []), 0) == Taken(None)
    assert (hosts.metrics, hosts.element_types) == (frozenset(), [])


async def test_elements_belong_to_their_own_hosts_luns() -> None:
    hosts = await elements_of(AskedDriver("h1"), AskedDriver("h2"))
    connected = hosts.connected(ROLLUPS)
    assert connected is not None
    tables, of_h2 = connected.catalog.tables, ROLLUPS.type("host").instance("h2").row
    assert [tables["disk"].instances[row] for row in connected.membership.rows(tables["disk"], of_h2)] == ["h2:sda"]
    assert [tables["memory"].instances[row] for row in connected.membership.rows(tables["memory"], of_h2)] == [
        "h2:host"
    ]
    assert hosts.metrics == {f"host.{one.element}_{one.attribute}" for one in METRICS}


async def test_types_without_elements_are_not_told() -> None:
    hosts = await elements_of(AskedDriver("h1", replace(found("h1"), instances={"memory": ("host",)})))
    assert hosts.element_types == ["memory"]


async def test_a_host_that_was_not_asked_has_nothing() -> None:
    hosts = await elements_of(AskedDriver("h1"))
    assert take(hosts, 0, {"h1": [readings("h1", 0)]}).gathered is None, "no step has begun"
    hosts.begin(0, S)
    taken = take(hosts, 0, {"h2": [readings("h2", 0)]})
    assert not taken.misfits and states(taken) == ["h1 no_answer: its result is not in"]
    assert hosts.take_late("h2", result(0, [readings("h2", 0)]), 0) == Taken(None)


async def test_a_host_that_does_not_answer_in_time_is_left_out() -> None:
    events: list[str] = []
    silent = AskedDriver("h1")
    silent.may_answer.clear()
    hosts = HostElements(SPEC, {}, lambda text, host: events.append(f"{host}: {text}"))
    await find(hosts, silent, AskedDriver("h2"), within_s=0.05)
    (event,) = events
    assert event.startswith("h1: the connector host is not there: no answer within ")
    hosts.begin(0, S)
    assert states(take(hosts, 0, {"h2": [readings("h2", 0)]})) == ["h2 gathered"]
    await find(hosts, silent, AskedDriver("h2"))
    assert len(silent.asked) == 1, "which it has not answered yet"
    silent.answer_late()
    await find(hosts, silent, AskedDriver("h2"))
    hosts.begin(0, S)
    assert "h1 gathered" in states(take(hosts, 0, {"h1": [readings("h1", 0)]})), "it is asked again"


async def test_hosts_are_in_the_order_in_which_they_were_asked() -> None:
    """And not in that of their answers, which is another in every run."""
    slow, hosts = AskedDriver("h1"), HostElements(SPEC, {}, lambda text, host: None)
    slow.may_answer.clear()
    asyncio.get_running_loop().call_later(0.01, slow.may_answer.set)
    await find(hosts, slow, AskedDriver("h2"))
    hosts.begin(0, S)
    assert [line.split()[0] for line in states(take(hosts, 0, {}))] == ["h1", "h2"]


async def test_a_host_with_too_many_elements_is_left_out_and_not_lost() -> None:
    events: list[str] = []
    many = AskedDriver("h1", replace(found("h1"), instances={"disk": tuple(map(str, range(20_001)))}))
    await elements_of(many, events=events)
    assert events == ["h1: the connector host is not there: it has 20,001 elements, more than 20,000"]
    assert many.lost is None


async def test_the_first_host_that_is_wrong_speaks_for_no_other() -> None:
    first = AskedDriver("h1", replace(found("h1"), metrics=(METRICS[0], *METRICS[2:], METRICS[1])))
    events: list[str] = []
    hosts = await elements_of(first, AskedDriver("h2"), events=events)
    assert events == [] and hosts.metrics == {f"host.{one.element}_{one.attribute}" for one in METRICS}


def figures(hosts: HostElements, taken: Taken, element: str) -> dict[str, float]:
    """The first metric of an element type: of each rollup instance by host, and of all; nan where there is none."""
    connected = hosts.connected(ROLLUPS)
    assert connected is not None and taken.gathered is not None
    layout = ElementIndex([connected]).families.get(("host", element))
    if layout is None:
        return {}
    values = family_figures(layout, {"host": taken.gathered}).values[:, 0].tolist()
    names = [row.name if row.row else "all" for row in ROLLUPS.rows]
    return {names[row] if row >= 0 else "others": value for row, value in zip(layout.rows, values, strict=True)}


async def test_elements_that_a_host_has_no_more_are_nobodys() -> None:
    """It was connected again, with another disk, and its other values go on."""
    first = AskedDriver("h1")
    hosts = await elements_of(first, AskedDriver("h2"))
    joins = Facts([Fact("disk", "sdz", "path", "/dev/sda")])
    other = replace(found("h2"), instances={"disk": ("sdz",), "memory": ("host",)}, facts=joins)
    await find(hosts, first, AskedDriver("h2", other))
    hosts.begin(0, S)
    for k in (0, 1):
        taken = take(hosts, k, {"h1": [readings("h1", k)], "h2": [readings("h2", k)]})
    assert figures(hosts, taken, "memory") == {"all": 1.0, "h1": 1.0, "h2": 1.0}
    disks = figures(hosts, taken, "disk")
    assert disks == pytest.approx({"all": 1057.0, "h1": 1050.0, "h2": 7.0}, abs=3), "and no others"
    assert taken.gathered is not None and taken.gathered.present("disk", 5).tolist() == [True, True, False, True, False]


REFUSED = CommandRefused((Refusal("find_elements", "no"),))


@pytest.mark.parametrize("answer", [REFUSED, HostLost("gone")], ids=["refused", "lost"])
async def test_a_host_that_has_nothing_once_it_is_connected_again(answer: Exception) -> None:
    """Alone, or beside another, whose values are as if it had never been there."""
    for others in ([], [AskedDriver("h2")]):
        hosts = await elements_of(AskedDriver("h1"), *others)
        await find(hosts, AskedDriver("h1", answer), *others)
        hosts.begin(0, S)
        taken = take(hosts, 0, {"h2": [readings("h2", 0)]} if others else {})
        assert states(taken) == (["h2 gathered"] if others else [])
        shown = figures(hosts, taken, "memory")
        assert shown == pytest.approx({"all": 0.0, "h2": 0.0} if others else {}, nan_ok=True)


async def test_elements_that_come_while_rows_are_written_are_not_there_yet() -> None:
    first = AskedDriver("h1")
    hosts = await elements_of(first)
    hosts.begin(0, S)
    taken = take(hosts, 0, {"h1": [readings("h1", 0)]})
    await find(hosts, first, AskedDriver("h2"))
    assert figures(hosts, taken, "memory")["h1"] == 0.0


async def test_a_last_subinterval_that_is_cut_short_is_labelled() -> None:
    hosts = await elements_of(AskedDriver("h1"))
    hosts.begin(0, S)
    cut = replace(result(0, [readings("h1", -1)]), last=True)
    assert states(hosts.take(0, {"h1": cut}, {"h1": 0}, {})) == ["h1 no_answer: its last subinterval was cut short"]
