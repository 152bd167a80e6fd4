"""Several elements as one figure: sums, means, maxima, ratios of sums; and no figure where a part is missing."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest

from ivypy.master.connectors.catalog import Catalog
from ivypy.master.connectors.connector_spec import ConnectorSpec
from ivypy.master.connectors.counter_rates import rates
from ivypy.master.connectors.element_figures import Connected, ElementIndex, FamilyFigures, family_figures
from ivypy.master.connectors.gathered import Gathered, GatherState, HostsGathered
from ivypy.master.connectors.joined_luns import JoinedLuns
from ivypy.master.connectors.membership import Membership
from ivypy.master.hosts.host_spec import HostSpec, Launcher
from ivypy.protocol.connector import Combine, ElementMetric, ReadingKind, Unit
from ivypy.protocol.payload import Fact
from tests.support.rollup import instance, rollups_by

COUNTER = ReadingKind.COUNTER
METRICS = (
    ElementMetric("disk", "busy_percent", Unit.PERCENT),
    ElementMetric("disk", "depth", Unit.IOS, combine=Combine.SUM),
    ElementMetric("disk", "worst", Unit.NONE, combine=Combine.MAX),
    ElementMetric("disk", "reads_per_s", Unit.PER_S, COUNTER, Combine.SUM),
    ElementMetric("disk", "read_ms", Unit.MS, COUNTER, per="reads_per_s"),
)
NAMES = [metric.attribute for metric in METRICS]
ROLLUPS = rollups_by([instance(0, "h1"), instance(0, "h2")], "host")
H1 = ROLLUPS.type("host").instance("h1").row


SDA, SDB = "h1:sda", "h1:sdb"
OF_H2 = "h2:sda"
HOST_OF = {SDA: "h1", SDB: "h1", OF_H2: "h2"}
Disks = Mapping[str, Mapping[str, float]]  # by name: the values of each


def connected() -> Connected:
    """The disks of two hosts."""
    joined = {host: JoinedLuns(spec_of(host), ()) for host in ("h1", "h2")}
    return Connected("host", Catalog(METRICS), Membership(joined, ROLLUPS, HOST_OF))


def spec_of(host: str) -> ConnectorSpec:
    return ConnectorSpec("host", HostSpec(host, Launcher.LOCAL, host), (), test_host=host)


def facts(disks: Disks) -> list[Fact]:
    return [Fact("disk", disk, name, value) for disk, values in disks.items() for name, value in values.items()]


def gathered(one: Connected, before: Disks, now: Disks, seconds: Mapping[str, float]) -> HostsGathered:
    """`seconds`: between the gathers of each host that gave values."""
    earlier, later = one.catalog.values(facts(before)), one.catalog.values(facts(now))
    hosts = [HOST_OF[disk] for disk in one.catalog.tables["disk"].instances]
    time = np.repeat([seconds.get(host, 0.0) for host in hosts], len(METRICS))
    gave = np.array([host in seconds for host in hosts])
    return HostsGathered(0, (), rates(earlier, later, time), {"disk": gave})


def two_hosts(without: str = "") -> tuple[Connected, HostsGathered]:
    """h1 has two disks, h2 one, whose gather spans another time."""
    one, zero = connected(), dict.fromkeys(NAMES, 0.0)
    now = {
        SDA: dict(zip(NAMES, (10, 1, 5, 100, 200), strict=True)),
        SDB: dict(zip(NAMES, (20, 2, 7, 300, 1800), strict=True)),
        OF_H2: dict(zip(NAMES, (60, 4, 6, 1000, 1000), strict=True)),
    }
    seconds = {host: s for host, s in (("h1", 1.0), ("h2", 2.0)) if host != without}
    return one, gathered(one, dict.fromkeys(now, zero), now, seconds)


def figures_of(index: ElementIndex, found: Gathered | HostsGathered | None) -> FamilyFigures:
    (layout,) = index.families.values()
    return family_figures(layout, {} if found is None else {"host": found})


def values(one: Connected, found: Gathered | HostsGathered | None, row: int) -> dict[str, float]:
    figures = figures_of(ElementIndex([one]), found)
    return dict(zip(NAMES, figures.values[figures.layout.rows.index(row)].tolist(), strict=True))


def test_figures_of_one_host() -> None:
    expected = {"busy_percent": 15, "depth": 3, "worst": 7, "reads_per_s": 400, "read_ms": 2000 / 400}
    assert values(*two_hosts(), H1) == pytest.approx(expected)


def test_figures_over_hosts_are_sums_of_rates_and_ratios_of_sums() -> None:
    expected = {
        "busy_percent": (10 + 20 + 60) / 3,
        "depth": 7,
        "worst": 7,
        "reads_per_s": 400 + 1000 / 2.0,
        "read_ms": 3000 / 1400,  # not the mean of 2, 6 and 1
    }
    assert values(*two_hosts(), 0) == pytest.approx(expected)


def test_extremes_are_of_single_elements() -> None:
    one, found = two_hosts()
    figures = figures_of(ElementIndex([one]), found)
    assert figures.least[0].tolist() == pytest.approx([10, 1, 5, 100, 1])
    assert figures.most[0].tolist() == pytest.approx([60, 4, 7, 500, 6])


def test_there_is_no_figure_where_a_host_gave_none() -> None:
    """A sum of the others would look like less load."""
    one, found = two_hosts(without="h2")
    assert all(np.isnan(value) for value in values(one, found, 0).values())
    figures = figures_of(ElementIndex([one]), found)
    assert (figures.layout.counts[0], figures.complete[0]) == (3, False)
    assert values(one, found, H1)["reads_per_s"] == pytest.approx(400)


@pytest.mark.parametrize("state", [GatherState.NO_ANSWER, GatherState.LOST, GatherState.DECLINED, None])
def test_there_is_no_figure_where_a_connector_gave_none(state: GatherState | None) -> None:
    one, _ = two_hosts()
    found = None if state is None else Gathered(spec_of(""), 0, 0, state)
    assert all(np.isnan(value) for value in values(one, found, 0).values())


def test_elements_that_come_later_belong_at_once() -> None:
    one, found = two_hosts()
    index = ElementIndex([one])
    assert figures_of(index, found).layout.counts[0] == 3
    HOST_OF["h1:sdc"] = "h1"
    one.catalog.values(facts({"h1:sdc": {"busy_percent": 1}}))
    later = HostsGathered(0, (), found.rates, {"disk": np.array([True] * 4)})
    assert figures_of(index, later).layout.counts[0] == 4


def test_what_was_counted_while_its_divisor_stood_still_counts() -> None:
    one, sums = connected(), np.zeros(2)
    at = [{SDA: {"reads_per_s": reads, "read_ms": ms}} for reads, ms in ((0, 0), (0, 60), (10, 100))]
    for before, now in pairwise(at):
        found = figures_of(ElementIndex([one]), gathered(one, before, now, {"h1": 1.0}))
        sums += found.amounts[0, NAMES.index("read_ms")], found.pers[0, NAMES.index("read_ms")]
    assert sums.tolist() == [100.0, 10.0], "10 ms, and not 4"


def test_a_reset_counter_of_one_element_leaves_no_figure_of_all() -> None:
    """A sum of the others would look like less load. Metrics that it does not concern have theirs."""
    one, full = connected(), dict(zip(NAMES, (10, 1, 5, 100, 200), strict=True))
    before, now = {SDA: full, SDB: full}, {SDA: full | {"reads_per_s": 300}, SDB: full | {"reads_per_s": 7}}
    shown = values(one, gathered(one, before, now, {"h1": 1.0}), H1)
    assert np.isnan(shown["reads_per_s"]) and shown["busy_percent"] == 10


def test_an_element_that_one_gather_lacks_leaves_no_figure_and_one_that_never_had_it_does() -> None:
    one, full = connected(), dict(zip(NAMES, (10, 1, 5, 100, 200), strict=True))
    less = {name: value for name, value in full.items() if name != "depth"}
    for before, now, expected in ((full, less, float("nan")), (less, less, 1.0)):
        found = gathered(one, {SDA: full, SDB: before}, {SDA: full, SDB: now}, {"h1": 1.0})
        assert values(one, found, H1)["depth"] == pytest.approx(expected, nan_ok=True)
