"""Several elements as one figure: sums, means, maxima, ratios of sums; and no figure where a part is missing."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest

from ivypy.master.connectors.catalog import Catalog
from ivypy.master.connectors.connector_spec import ConnectorSpec
from ivypy.master.connectors.counter_rates import rates
from ivypy.master.connectors.element_figures import Connected, ElementIndex, FamilyFigures, family_figures
from ivypy.master.connectors.gathered import Gathered, GatherState
from ivypy.master.connectors.joined_luns import JoinedLuns
from ivypy.master.connectors.membership import Membership
from ivypy.master.hosts.host_spec import HostSpec, Launcher
from ivypy.protocol.connector import Combine, ConnectorConfig, ElementMetric, ReadingKind, Unit
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


def connected(host: str) -> Connected:
    spec = ConnectorSpec("host", HostSpec(host, Launcher.LOCAL, host), (), test_host=host)
    return Connected(
        "host", spec.title, Catalog(ConnectorConfig(1, METRICS)), Membership(spec, JoinedLuns(spec, ()), ROLLUPS)
    )


def facts(host: str, disk: str, values: Mapping[str, float]) -> list[Fact]:
    return [Fact("disk", f"{host}:{disk}", name, value) for name, value in values.items()]


def gathered(one: Connected, host: str, before: list[Fact], now: list[Fact], seconds: float) -> Gathered:
    spec = ConnectorSpec("host", HostSpec(host, Launcher.LOCAL, host), (), test_host=host)
    found = rates(one.catalog.values(before), one.catalog.values(now), seconds)
    return Gathered(spec, 0, 0, GatherState.GATHERED, seconds=seconds, rates=found)


def two_hosts() -> tuple[list[Connected], dict[str, Gathered]]:
    """h1 has two disks, h2 one, whose gather spans another time."""
    h1, h2 = connected("h1"), connected("h2")
    zero = dict.fromkeys(NAMES, 0.0)
    now1 = [
        *facts("h1", "sda", dict(zip(NAMES, (10, 1, 5, 100, 200), strict=True))),
        *facts("h1", "sdb", dict(zip(NAMES, (20, 2, 7, 300, 1800), strict=True))),
    ]
    now2 = facts("h2", "sda", dict(zip(NAMES, (60, 4, 6, 1000, 1000), strict=True)))
    return [h1, h2], {
        h1.title: gathered(h1, "h1", [*facts("h1", "sda", zero), *facts("h1", "sdb", zero)], now1, 1.0),
        h2.title: gathered(h2, "h2", facts("h2", "sda", zero), now2, 2.0),
    }


def figures_of(index: ElementIndex, found: Mapping[str, Gathered]) -> FamilyFigures:
    (layout,) = index.families.values()
    return family_figures(layout, found)


def values(many: list[Connected], found: Mapping[str, Gathered], row: int) -> dict[str, float]:
    figures = figures_of(ElementIndex(many), found)
    return dict(zip(NAMES, figures.values[figures.layout.rows.index(row)].tolist(), strict=True))


def test_figures_of_one_host() -> None:
    many, found = two_hosts()
    row = ROLLUPS.type("host").instance("h1").row
    expected = {"busy_percent": 15, "depth": 3, "worst": 7, "reads_per_s": 400, "read_ms": 2000 / 400}
    assert values(many, found, row) == pytest.approx(expected)


def test_figures_over_hosts_are_sums_of_rates_and_ratios_of_sums() -> None:
    many, found = two_hosts()
    expected = {
        "busy_percent": (10 + 20 + 60) / 3,
        "depth": 7,
        "worst": 7,
        "reads_per_s": 400 + 1000 / 2.0,
        "read_ms": 3000 / 1400,  # not the mean of 2, 6 and 1
    }
    assert values(many, found, 0) == pytest.approx(expected)


def test_extremes_are_of_single_elements() -> None:
    many, found = two_hosts()
    figures = figures_of(ElementIndex(many), found)
    assert figures.least[0].tolist() == pytest.approx([10, 1, 5, 100, 1])
    assert figures.most[0].tolist() == pytest.approx([60, 4, 7, 500, 6])


@pytest.mark.parametrize("state", [GatherState.NO_ANSWER, GatherState.LOST, GatherState.DECLINED, None])
def test_there_is_no_figure_where_a_connector_gave_none(state: GatherState | None) -> None:
    """A sum of the others would look like less load."""
    many, found = two_hosts()
    lost = found.pop(many[1].title)
    if state is not None:
        found[many[1].title] = Gathered(lost.spec, 0, 0, state)
    assert all(np.isnan(value) for value in values(many, found, 0).values())
    figures = figures_of(ElementIndex(many), found)
    assert (figures.layout.counts[0], figures.complete[0]) == (3, False)
    assert values(many, found, ROLLUPS.type("host").instance("h1").row)["reads_per_s"] == pytest.approx(400)


def test_elements_that_come_later_belong_at_once() -> None:
    many, found = two_hosts()
    index = ElementIndex(many)
    assert figures_of(index, found).layout.counts[0] == 3
    many[0].catalog.values(facts("h1", "sdc", {"busy_percent": 1}))
    assert figures_of(index, found).layout.counts[0] == 4


def test_what_was_counted_while_its_divisor_stood_still_counts() -> None:
    h1 = connected("h1")
    at = [facts("h1", "sda", {"reads_per_s": reads, "read_ms": ms}) for reads, ms in ((0, 0), (0, 60), (10, 100))]
    sums = np.zeros(2)
    for before, now in pairwise(at):
        one = figures_of(ElementIndex([h1]), {h1.title: gathered(h1, "h1", before, now, 1.0)})
        sums += one.amounts[0, NAMES.index("read_ms")], one.pers[0, NAMES.index("read_ms")]
    assert sums.tolist() == [100.0, 10.0], "10 ms, and not 4"


def test_a_reset_counter_of_one_element_leaves_no_figure_of_all() -> None:
    """A sum of the others would look like less load. Metrics that it does not concern have theirs."""
    one = connected("h1")
    full = dict(zip(NAMES, (10, 1, 5, 100, 200), strict=True))
    before = [*facts("h1", "sda", full), *facts("h1", "sdb", full)]
    now = [*facts("h1", "sda", full | {"reads_per_s": 300}), *facts("h1", "sdb", full | {"reads_per_s": 7})]
    found = {one.title: gathered(one, "h1", before, now, 1.0)}
    shown = values([one], found, ROLLUPS.type("host").instance("h1").row)
    assert np.isnan(shown["reads_per_s"]) and shown["busy_percent"] == 10


def test_an_element_that_one_gather_lacks_leaves_no_figure_and_one_that_never_had_it_does() -> None:
    one = connected("h1")
    full = dict(zip(NAMES, (10, 1, 5, 100, 200), strict=True))
    less = {name: value for name, value in full.items() if name != "depth"}
    row = ROLLUPS.type("host").instance("h1").row
    for before, now, expected in ((full, less, float("nan")), (less, less, 1.0)):
        earlier = [*facts("h1", "sda", full), *facts("h1", "sdb", before)]
        found = {one.title: gathered(one, "h1", earlier, [*facts("h1", "sda", full), *facts("h1", "sdb", now)], 1.0)}
        assert values([one], found, row)["depth"] == pytest.approx(expected, nan_ok=True)
