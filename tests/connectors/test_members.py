"""Which elements belong to a rollup instance where config facts are about more than LUNs."""

from ivypy.master.connectors.catalog import ElementTable
from ivypy.master.connectors.connector_spec import ConnectorSpec
from ivypy.master.connectors.joined_luns import JoinedLuns
from ivypy.master.connectors.membership import ALL_HOSTS, Membership
from ivypy.master.hosts.host_spec import HostSpec, Launcher
from ivypy.protocol.payload import Fact
from tests.support.rollup import instance, rollups_by

SPEC = ConnectorSpec("array", HostSpec("array", Launcher.LOCAL, "array"), ("array",), join={"path": "path"})
ROLLUPS = rollups_by([instance(0, "h1", path="/dev/sd0")])
OF_LUN = [Fact("ldev", "00:01", "path", "/dev/sd0"), Fact("ldev", "00:01", "pg", "1-1")]


def belongs(facts: list[Fact], element: str) -> bool:
    """Whether the only element of a type belongs to the only workload instance."""
    membership = Membership({ALL_HOSTS: JoinedLuns(SPEC, facts)}, ROLLUPS, {})
    table = ElementTable(element, (), {"0": 0})
    taken = bool(len(membership.rows(table, 0)))
    assert taken != bool(len(membership.not_participating(table)))
    return taken


def test_a_type_that_only_other_elements_name_belongs_to_all_luns() -> None:
    """A processor's controller: no LUN could name it, and nobody could tell whose it is."""
    assert belongs([*OF_LUN, Fact("mp", "0", "controller", "0")], "controller")
    assert belongs([Fact("mp", "0", "controller", "0")], "controller"), "nor where nothing joins at all"


def test_a_type_that_luns_name_belongs_to_those() -> None:
    assert not belongs(OF_LUN, "pg")
    assert not belongs([*OF_LUN, Fact("pg", "0", "speed", 3)], "pg")
    other = [Fact("ldev", "00:02", "path", "/dev/sd9"), Fact("ldev", "00:02", "controller", "0")]
    assert not belongs([*OF_LUN, *other], "controller"), "it is that of an ldev that is no LUN of the plan"
