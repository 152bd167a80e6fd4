"""`select`: which LUNs match which conditions."""

from pathlib import Path
from typing import Any

import pytest

from ivypy.master.errors import PlanError
from ivypy.master.plan.load import read
from ivypy.master.plan.select.attributes import ATTRIBUTES
from ivypy.master.plan.select.conditions import condition
from ivypy.master.plan.select.selection import Select
from ivypy.slave.luns.discovery import list_luns
from tests.support.plan import completed

DISK: dict[str, Any] = {
    "host": "lab03", "hostname": "lab03.example.com", "kind": "block", "path": "/dev/nvme1n1", "name": "nvme1n1",
    "vendor": "HITACHI", "model": "SAMSUNG MZ7LH960", "serial": "0012", "size": 200 << 30, "logical_block_size": 512,
    "rotational": 0, "read_only": 0, "numa_node": 1, "nr_requests": 256, "scheduler": "none", "transport": "nvme",
}  # fmt: skip


def select(text: str) -> Select:
    made = read(
        completed(f"luns: {{ select: {text} }}\nattributes: [ {{ match: {{ kind: file }}, set: {{ pool: x }} }} ]"), "p"
    )
    assert made.luns.select is not None
    return made.luns.select


@pytest.mark.parametrize(
    "text, matches",
    [
        ("{ vendor: HITACHI }", True),
        ("{ vendor: hitachi }", True),
        ("{ vendor: HITA }", False),
        ("{ vendor: [IBM, HITACHI] }", True),
        ("{ vendor: HITACHI, transport: fc }", False),
        ("[ { transport: fc }, { vendor: HITACHI } ]", True),
        ("[ { transport: fc }, { vendor: IBM } ]", False),
        ('{ model: "SAM*" }', True),
        ('{ model: "sam*960" }', True),
        ('{ model: "*mz?lh*" }', True),
        ('{ model: "SAM" }', False),
        ('{ model: "S[A]M*" }', False),
        ("{ serial: 0012 }", True),  # a number with leading zeros is not the number
        ("{ serial: 12 }", False),
        ('{ size: ">= 200GiB" }', True),
        ('{ size: "> 200GiB" }', False),
        ('{ size: "<=200GiB" }', True),
        ('{ size: "< 200GiB" }', False),
        ("{ size: 200GiB }", True),
        ("{ size: 214748364800 }", True),
        ("{ size: 100GiB..200GiB }", True),
        ("{ size: 201GiB..1TiB }", False),
        ("{ size: [ 100GiB, 200GiB ] }", True),
        ("{ logical_block_size: 512 }", True),
        ("{ rotational: false }", True),
        ("{ rotational: 1 }", False),
        ("{ numa_node: 1 }", True),
        ('{ nr_requests: ">= 128" }', True),
        ("{ transport: not usb }", True),
        ("{ transport: [ not usb, not nvme ] }", False),
        ("{ transport: [ not usb, not loop ] }", True),
        ('{ model: [ "SAM*", not "*960" ] }', False),
        ("{ partition_of: none }", True),
        ("{ vendor: none }", False),
        ("{ vendor: not none }", True),
        ("{ scheduler: none }", True),  # here it is a value
        ("{ wwn: naa.5 }", False),
        ("{ wwn: not naa.5 }", True),
        ('{ host: "lab[01-04]" }', True),
        ('{ host: "LAB[05-09]" }', False),
        ('{ path: "/dev/nvme[0-1]n*" }', True),
        ('{ hostname: "*.example.com" }', True),
        ("{ kind: block, size: '> 1GiB', rotational: false, transport: [nvme, fc] }", True),
        ("{ pool: none }", True),  # an attribute of the plan's own
        ("{ pool: '> 5' }", False),
    ],
)
def test_conditions_match_as_documented(text: str, matches: bool) -> None:
    text = text.replace('not "*960"', '"not *960"')
    assert select(text).matches(DISK) is matches


@pytest.mark.parametrize(
    "text, fault",
    [
        ("{ size: big }", "size: 'big' is not a size; write for example 8KiB, 1.5GiB or 4096 (bytes)"),
        ('{ size: ">= 10G" }', "size: '10G' can mean two sizes"),
        ('{ model: ">= 5" }', "model cannot be compared with '5', since it is not a number; name its value"),
        ("{ numa_node: 1KiB }", "numa_node: '1KiB' is not a number"),
        ("{ numa_node: 3..1 }", "numa_node: '3..1' runs backwards; write the smaller value first"),
        ("{ vendor: { a: b } }", "vendor is a mapping; it needs a value, a list of values, or a comparison"),
        ("{ vendor: 'not ' }", "vendor: 'not ' does not say which value"),
        ("{ lun: x }", "nothing can be selected by 'lun'; name its host and path"),
        ("{ all: all }", "nothing can be selected by 'all'; leave the select out to have all"),
        ("vendor", "select is 'vendor'; it needs attributes, like vendor: HITACHI"),
        ("[ {} ]", "select is a list; it needs attributes, like vendor: HITACHI"),
    ],
)
def test_conditions_that_cannot_be_read(text: str, fault: str) -> None:
    with pytest.raises(Exception) as caught:
        select(text)
    assert fault in str(caught.value)


def test_a_select_is_described_in_words() -> None:
    made = select('[ { vendor: [ A, B, not C ], size: ">= 1GiB" }, { kind: file } ]')
    assert made.attributes_named == {"vendor", "size", "kind"}
    assert str(made) == "vendor: A or B and not C, size: >= 1GiB; or kind: file"


def test_what_is_known_of_a_lun_may_rule_it_out() -> None:
    made = select("{ kind: block, vendor: HITACHI }")
    assert made.allows({"kind": "block"})
    assert not made.allows({"kind": "file"})
    assert made.allows({})


def test_attributes_of_the_plans_own() -> None:
    made = read(
        completed(
            "attributes:\n"
            "- { match: { path: [/dev/sdb, /dev/sdc] }, set: { port: 1A, pool: 7 } }\n"
            "rollups: [ port, pool+port ]\nworkloads: { a: { select: { port: 1A } } }"
        ),
        "p",
    )
    rule = made.attributes[0]
    assert rule.match.matches({"path": "/dev/sdc"})
    assert rule.attributes == {"port": "1A", "pool": "7"}
    assert [rollup.name for rollup in made.rollups] == ["all", "port", "pool+port"]


def test_what_hosts_find_can_be_selected(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(4096))
    found, _ = list_luns(True, [str(tmp_path / "f")])
    named = {name for lun in found for name in lun.attributes}
    assert "filesystem" in named
    assert named <= {name for name, about in ATTRIBUTES.items() if about.selectable}


def test_all_is_the_first_rollup_even_where_it_is_named_last() -> None:
    made = read(completed("rollups: [ host, { by: all, csv: false } ]"), "p.yaml")
    assert [(rollup.name, rollup.csv) for rollup in made.rollups] == [("all", False), ("host", True)]


@pytest.mark.parametrize("wanted", ["/dev/mapper/data", "/dev/mapper/da*", "/dev/mapper/dat?"])
def test_paths_are_compared_with_their_case(wanted: str) -> None:
    select = Select(({"path": (condition("path", wanted),)},))
    assert select.matches({"path": "/dev/mapper/data"})
    assert not select.matches({"path": "/dev/mapper/DATA"})


@pytest.mark.parametrize("name", ["connectors", "non_participating"])
def test_no_rollup_has_the_name_of_a_folder_of_the_connectors(name: str) -> None:
    rules = f"attributes: [ {{ match: {{ path: /dev/sdb }}, set: {{ {name}: a }} }} ]\n"
    read(completed(rules), "p.yaml")
    with pytest.raises(PlanError, match=f"{name!r} is the name of a folder of the connectors' files"):
        read(completed(f"{rules}rollups: [ {name} ]"), "p.yaml")
    read(completed(f"{rules}rollups: [ {name}+host ]"), "p.yaml")
