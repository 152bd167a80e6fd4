"""A host on which the plan selects no LUN: the error says what there is, and why it is not selected."""

import pytest

from ivypy.master.errors import HostsError
from ivypy.master.plan.load import read
from ivypy.master.run.setup.placement import place
from ivypy.protocol.payload import Attribute, Lun
from tests.support.plan import completed


def refused(luns: str, found: list[Lun]) -> str:
    plan = read(completed(f"name: p\nluns: {luns}"), "p.yaml")
    with pytest.raises(HostsError) as caught:
        place(plan, {"local": found}, {})
    return str(caught.value)


def block(path: str, size: int, **attributes: Attribute) -> Lun:
    return Lun(path, "block", size, 512, attributes, (), ())


@pytest.mark.parametrize(
    ("luns", "says"),
    [
        ("{ files: [ /data/*, /more/* ] }", "no file matches /data/* and /more/*"),
        ("{ select: { vendor: HITACHI } }", "it has no block device"),
    ],
)
def test_a_host_that_has_nothing_to_select_says_so(luns: str, says: str) -> None:
    assert refused(luns, []) == f"local: no LUN is selected: {says}; correct `luns:` (p.yaml:2:1) or leave the host out"


def test_what_there_is_is_listed_with_what_keeps_it_from_being_selected() -> None:
    there = [
        block("/dev/sdb", 2**40, vendor="ATA"),
        block("/dev/sdc", 2**30, vendor="HITACHI"),
        block("/dev/sdd", 2**30),
    ]
    assert refused("{ select: { vendor: HITACHI, size: '>= 1TiB' } }", there).startswith(
        "local: no LUN is selected: there is /dev/sdb (vendor ATA), /dev/sdc (size 1.00 GiB) and /dev/sdd "
        "(vendor unknown, size 1.00 GiB); correct"
    )


def test_of_several_clauses_the_nearest_is_explained() -> None:
    luns = "{ select: [ { vendor: HITACHI, size: '>= 1TiB' }, { vendor: NETAPP } ] }"
    assert "(vendor ATA)" in refused(luns, [block("/dev/sdb", 2**30, vendor="ATA")])


def test_of_many_some_are_listed() -> None:
    there = [block(f"/dev/sd{letter}", 2**30) for letter in "bcdefgh"]
    assert "/dev/sde (vendor unknown) and 3 more" in refused("{ select: { vendor: HITACHI } }", there)
