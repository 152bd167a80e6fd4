"""The section `connectors` of a plan: what each is, and what is wrong with it, at its place."""

import pytest

from ivypy.master.connectors.connector_spec import HOST, GatherAt
from ivypy.master.plan.load import read
from ivypy.master.plan.model import Plan
from ivypy.master.plan.read.yaml_positions import PlanFaults

PLAN = """\
hosts: local
luns: {{ create: {{ path: /x/data, size: 1MiB }} }}
workloads: {{ w: {{ iops: 1 }} }}
connectors: {connectors}
steps: [ go: one ]
"""

FAULTS = {
    "{ Array: { program: x } }": "'Array' cannot be a connector's name; use a-z, 0-9 and _",
    "{ array: {} }": "a connector has either a program, a command line that starts it, or a type",
    "{ array: { program: x, type: ceph } }": "a connector has either a program",
    "{ array: { program: x, options: { a: 1 } } }": "options are for a type",
    "{ array: { type: ceph, on: local } }": "a type runs on this machine",
    "{ array: { program: x, deadline: 80% } }": "deadline is 80% of a subinterval; it must be above 0% and at most 75%",
    "{ array: { program: x, join: colour } }": "LUNs have no attribute 'colour' to join by",
    "{ array: { program: x, attributes: [ serial ] } }": "the attribute 'serial' is found on the host",
    "{ host: { deadline: 50% } }": "host is ivypy's own, and has no 'deadline'; give another one another name",
    "{ host: { program: x } }": "the connector host is ivypy's own, and has no 'program'",
    "{ host: { gather: end } }": "the connector host is ivypy's own, and has no 'gather'",
}  # fmt: skip


def plan(connectors: str) -> Plan:
    return read(PLAN.format(connectors=connectors), "plan.yaml", {})


@pytest.mark.parametrize("connectors, fault", FAULTS.items(), ids=[*FAULTS])
def test_what_is_wrong_is_named_at_its_place(connectors: str, fault: str) -> None:
    with pytest.raises(PlanFaults) as raised:
        plan(connectors)
    assert "plan.yaml:4:" in str(raised.value) and fault in str(raised.value)


def test_what_a_plan_says_of_a_connector() -> None:
    (array,) = plan(
        "{ array: { program: [a, b], join: path, gather: end, deadline: 10%, required: false } }"
    ).connectors
    assert (array.name, array.program, array.join) == ("array", ("a", "b"), {"path": "path"})
    assert (array.gather, array.deadline, array.required) == (GatherAt.END, 0.1, False)


@pytest.mark.parametrize("words", ["{}", "{ host: {} }", "{ host: { enabled: true } }"])
def test_the_hosts_are_a_connector_unless_a_plan_says_no(words: str) -> None:
    of_hosts = plan(words).host_connector
    assert of_hosts is not None and of_hosts.name == HOST


@pytest.mark.parametrize("words", ["{ host: off }", "{ host: false }", "{ host: { enabled: false } }"])
def test_the_hosts_may_be_left_out(words: str) -> None:
    assert plan(words).host_connector is None
