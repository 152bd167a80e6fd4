"""Hosts and LUNs that are not alike: a line for each fact, whatever their number."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from ivypy.master.rollup.instances import Rollups, WorkloadInstance
from ivypy.master.run.setup.differences import MOST_LINES, host_differences, lun_differences
from ivypy.master.run.setup.placement import PlacedLun, Placement
from ivypy.protocol.messages import Hello
from ivypy.protocol.payload import Attribute, Lun
from tests.support.rollup import instance, rollup_spec
from tests.support.small_run import HELLO

PERFORMANCE: dict[str, Attribute] = {"governor": "performance", "turbo": "off"}


def hosts(*facts: Mapping[str, Attribute]) -> dict[str, Hello]:
    return {f"h{i:02}": replace(HELLO, facts=dict(one)) for i, one in enumerate(facts)}


@pytest.mark.parametrize(
    ("facts", "lines"),
    [
        ([PERFORMANCE], []),
        ([PERFORMANCE] * 16, []),
        (
            [*[PERFORMANCE] * 7, {**PERFORMANCE, "governor": "powersave"}, *[PERFORMANCE] * 8],
            ["governor: performance on 15 hosts, powersave on h07"],
        ),
        ([PERFORMANCE, {"turbo": "off"}], ["governor: performance on h00, not known on h01"]),
        (
            [{"turbo": "on"}, {"turbo": "on"}, {"turbo": "off"}, {"turbo": "off"}],
            ["turbo: on on h00 and h01, off on h02 and h03"],
        ),
        (
            [{"idle_states": f"C{i} {i} us"} for i in range(1000)],
            ["idle_states: C0 0 us on h00, C1 1 us on h01, C2 2 us on h02, and 997 other values"],
        ),
        # how much memory it has, or what it is called, makes no latency
        ([{"memory": 1 << 30, "distribution": "a"}, {"memory": 1 << 31, "distribution": "b"}], []),
    ],
)
def test_lines_about_hosts(facts: Sequence[Mapping[str, Attribute]], lines: list[str]) -> None:
    assert host_differences(hosts(*facts)) == lines


def test_hosts_that_differ_in_everything_give_no_flood() -> None:
    names = (
        "hardware", "cpu_model", "cpus", "numa_nodes", "smt", "idle_driver", "idle_states", "governor", "turbo",
        "mitigations",
    )  # fmt: skip
    lines = host_differences(hosts(*({name: f"{name}{i}" for name in names} for i in range(500))))
    assert len(lines) == MOST_LINES + 1
    assert lines[-1] == "and 2 other differences: see hosts.csv"
    assert max(map(len, lines)) < 120


def placed(luns: Sequence[tuple[str, Mapping[str, str]]], *by: str) -> tuple[Placement, Rollups]:
    """(host, attributes) of each LUN, with one workload instance on it."""
    numbers: dict[str, int] = {}
    instances: list[WorkloadInstance] = []
    lun_of = {}
    for host, attributes in luns:
        number = numbers[host] = numbers.get(host, -1) + 1
        instances.append(instance(number, host, **attributes))
        lun = Lun(f"/dev/sd{number}", "block", 1, 512, dict(attributes), (), ())
        lun_of[host, number] = PlacedLun(host, lun, attributes, False)
    placement = Placement(tuple(lun_of.values()), tuple(instances), lun_of, {})
    return placement, Rollups.build(instances, [rollup_spec(one) for one in by])


NONE: Mapping[str, str] = {"scheduler": "none", "model": "A"}
DEADLINE: Mapping[str, str] = {"scheduler": "mq-deadline", "model": "B"}


@pytest.mark.parametrize(
    ("luns", "by", "lines"),
    [
        ([("h1", NONE), ("h2", NONE)], (), []),
        (
            [("h1", NONE), ("h1", NONE), ("h1", NONE), ("h2", DEADLINE)],
            (),
            ["model: A on 3 LUNs, B on h2:/dev/sd0", "scheduler: none on 3 LUNs, mq-deadline on h2:/dev/sd0"],
        ),
        # hosts may differ where their results are not merged
        ([("h1", NONE), ("h2", DEADLINE)], ("host",), []),
        (
            [("h1", NONE), ("h2", NONE), ("h2", {**NONE, "scheduler": "kyber"})],
            ("host",),
            ["host=h2: scheduler: none on h2:/dev/sd0, kyber on h2:/dev/sd1"],
        ),
    ],
)
def test_lines_about_luns(luns: Sequence[tuple[str, Mapping[str, str]]], by: tuple[str, ...], lines: list[str]) -> None:
    assert lun_differences(*placed(luns, *by)) == lines
