"""Which element is which LUN, and which elements belong to which rollup instance."""

import pytest

from ivypy.master.connectors.catalog import Catalog
from ivypy.master.connectors.connector_spec import USUAL_JOIN, ConnectorSpec
from ivypy.master.connectors.joined_luns import JoinedLuns
from ivypy.master.connectors.membership import Membership
from ivypy.master.hosts.host_spec import HostSpec, Launcher
from ivypy.protocol.connector import ElementMetric, Unit
from ivypy.protocol.payload import Attribute, Fact
from tests.support.rollup import instance, rollups_by

HERE = HostSpec("array", Launcher.LOCAL, "array")
LDEVS = [
    Fact("ldev", "00:01", "serial", "A1"),
    Fact("ldev", "00:01", "pg", "1-1"),
    Fact("ldev", "00:01", "port", "1A"),
    Fact("ldev", "00:01", "port", "2A"),
    Fact("ldev", "00:02", "serial", "A2"),
    Fact("ldev", "00:02", "pg", "1-2"),
    Fact("ldev", "00:03", "serial", "A3"),
    Fact("ldev", "00:03", "pg", "1-3"),
]


def spec(join: dict[str, str] | None = None, test_host: str = "") -> ConnectorSpec:
    return ConnectorSpec("array", HERE, ("x",), join=join or USUAL_JOIN, test_host=test_host)


@pytest.mark.parametrize(
    "lun, expected",
    [
        ({"serial": "A1"}, {"ldev": ("00:01",), "serial": ("A1",), "pg": ("1-1",), "port": ("1A", "2A")}),
        ({"serial": "a1"}, {"ldev": ("00:01",), "serial": ("A1",), "pg": ("1-1",), "port": ("1A", "2A")}),
        ({"serial": "A9"}, {}),
        ({"serial": ""}, {}),
        ({}, {}),
    ],
)
def test_a_lun_has_what_the_element_with_its_serial_has(
    lun: dict[str, Attribute], expected: dict[str, tuple[str, ...]]
) -> None:
    assert JoinedLuns(spec(), LDEVS).of_lun("h1", lun) == expected


@pytest.mark.parametrize(
    "written", ["0x6006048000019010", "naa.6006048000019010", "60:06:04:80:00:01:90:10", "6006048000019010"]
)
def test_world_wide_names_are_one_however_they_are_written(written: str) -> None:
    joined = JoinedLuns(spec(), [Fact("ldev", "1", "wwn", written), Fact("ldev", "1", "pool", "gold")])
    assert joined.of_lun("h1", {"wwn": "0x6006048000019010"})["pool"] == ("gold",)


def test_the_wwn_decides_before_the_serial() -> None:
    facts = [Fact("ldev", "1", "wwn", "0x5001"), Fact("ldev", "2", "serial", "A1")]
    assert JoinedLuns(spec(), facts).of_lun("h1", {"serial": "A1", "wwn": "0x5001"})["ldev"] == ("1",)


def test_another_attribute_can_be_the_key() -> None:
    joined = JoinedLuns(
        spec({"by_id": "disk_name"}), [Fact("v", "x", "disk_name", "scsi-1"), Fact("v", "x", "pool", "p")]
    )
    assert joined.of_lun("h1", {"by_id": "scsi-1", "serial": "z"})["pool"] == ("p",)


def test_a_connector_of_a_test_host_knows_only_its_luns() -> None:
    joined = JoinedLuns(spec({"path": "path"}, "h1"), [Fact("disk", "h1:sdb", "path", "/dev/sdb")])
    assert joined.of_lun("h1", {"path": "/dev/sdb"})["disk"] == ("h1:sdb",)
    assert joined.of_lun("h2", {"path": "/dev/sdb"}) == {}


INSTANCES = [
    instance(0, "h1", serial="A1", pg="1-1"),
    instance(1, "h1", serial="A2", pg="1-2"),
    instance(0, "h2", serial="A1", pg="1-1"),
]
ROLLUPS = rollups_by(INSTANCES, "host", "pg")
METRICS = tuple(ElementMetric(element, "busy_percent", Unit.PERCENT) for element in ("pg", "port", "cache"))


def members(joined: JoinedLuns, owner: ConnectorSpec, element: str, names: list[str]) -> dict[str, list[str]]:
    """The elements of each rollup instance, and those that do not participate."""
    catalog = Catalog(METRICS)
    catalog.values([Fact(element, owner.qualified(name), "busy_percent", 1) for name in names])
    host_of = {owner.qualified(name): owner.test_host for name in names}
    table, membership = catalog.tables[element], Membership({owner.test_host: joined}, ROLLUPS, host_of)
    found = {str(row): [table.instances[i] for i in membership.rows(table, row.row)] for row in ROLLUPS.rows}
    return {**found, "others": [table.instances[i] for i in membership.not_participating(table)]}


def test_elements_belong_where_their_luns_do_and_others_do_not_participate() -> None:
    assert members(JoinedLuns(spec(), LDEVS), spec(), "pg", ["1-1", "1-2", "1-3"]) == {
        "all=all": ["1-1", "1-2"],
        "host=h1": ["1-1", "1-2"],
        "host=h2": ["1-1"],
        "pg=1-1": ["1-1"],
        "pg=1-2": ["1-2"],
        "others": ["1-3"],
    }


def test_an_attribute_with_several_values_names_several_elements() -> None:
    assert members(JoinedLuns(spec(), LDEVS), spec(), "port", ["1A", "2A", "3A"])["pg=1-1"] == ["1A", "2A"]


def test_what_no_attribute_can_name_belongs_to_everything() -> None:
    found = members(JoinedLuns(spec(), LDEVS), spec(), "cache", ["0"])
    assert found.pop("others") == []
    assert all(elements == ["0"] for elements in found.values())


def test_what_no_attribute_can_name_on_a_test_host_belongs_to_its_luns() -> None:
    mine = spec({"path": "path"}, "h2")
    found = members(JoinedLuns(mine, [Fact("disk", "h2:sdb", "path", "/dev/sdb")]), mine, "cache", ["0"])
    assert {name for name, elements in found.items() if elements} == {"all=all", "host=h2", "pg=1-1"}


def test_luns_that_match_nothing_leave_all_elements_of_a_lun_out() -> None:
    """A join that fails must not look like one that was never meant."""
    strangers = [fact._replace(value="Z9") if fact.attribute == "serial" else fact for fact in LDEVS]
    assert members(JoinedLuns(spec(), strangers), spec(), "pg", ["1-1"])["others"] == ["1-1"]
