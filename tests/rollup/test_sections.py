"""Counts by address: sums over subintervals, instances and hosts, against sums by hand."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ivypy.master.rollup.instances import Rollups
from ivypy.master.rollup.merge import Merger
from ivypy.master.rollup.partial_merge import PartialMerger
from ivypy.master.rollup.sections import sections_of_rows
from ivypy.master.rollup.window import Window
from ivypy.protocol.counters import LONGEST, SectionCount
from ivypy.protocol.errors import ProtocolError
from ivypy.protocol.messages import Result
from ivypy.protocol.payload import Array, ArrayType
from tests.support.rollup import instance, merger_of, rollup_spec
from tests.support.rollup_results import HostData, result

SECTIONS = 3
HOSTS = ("h0", "h1", "h2")
OF_HOST = 2  # instances
ROLLUPS = Rollups.build(
    [instance(n, host, port=n) for host in HOSTS for n in range(OF_HOST)],
    [rollup_spec("host"), rollup_spec("port"), rollup_spec("host+port")],
    SECTIONS,
)
SHAPE = (OF_HOST, SECTIONS, len(SectionCount))
Counted = NDArray[np.uint64]

counted = st.lists(st.integers(0, 1 << 40), min_size=int(np.prod(SHAPE)), max_size=int(np.prod(SHAPE))).map(
    lambda numbers: np.array(numbers, np.uint64).reshape(SHAPE)
)
subinterval = st.dictionaries(st.sampled_from(HOSTS), counted)  # of the hosts that are in


def said(sections: Counted, number: int = 0) -> Result:
    return result(HostData(OF_HOST, OF_HOST, {}), number, sections=Array(ArrayType.U64, sections.tobytes()))


def by_hand(row: int, drawn: Sequence[dict[str, Counted]]) -> list[list[int]]:
    """Section by section: counts and times added, the longest the longest."""
    members = ROLLUPS.rows[row].members
    of_row = [hosts[one.host][one.number] for hosts in drawn for one in members if one.host in hosts]
    return [
        [
            (max if column in LONGEST else sum)([int(part[section, column]) for part in of_row] or [0])
            for column in SectionCount
        ]
        for section in range(SECTIONS)
    ]


@given(st.lists(subinterval, min_size=1, max_size=3), st.booleans())
def test_a_measurement_has_the_sums_of_its_subintervals_for_every_row(
    drawn: list[dict[str, Counted]], by_process: bool
) -> None:
    """The same where a driver process merged two of the hosts."""
    merger = merger_of(ROLLUPS)
    window = Window(merger.layout)
    process = PartialMerger(merger.layout.places(HOSTS[:2]))
    for number, hosts in enumerate(drawn):
        merger.open(number)
        process.open(number)
        for host, sections in hosts.items():
            one = said(sections, number)
            if by_process and host in HOSTS[:2]:
                process.add(host, one, process.check(host, one))
                merger.note(host, one)
            else:
                merger.add(host, one)
        if by_process:
            merger.put(process.close())
        window.add(merger.close())
    rows = sections_of_rows(merger.layout, window.measurement().sections)
    for row in range(len(ROLLUPS.rows)):
        assert rows[row].tolist() == by_hand(row, drawn)


def test_what_is_set_aside_is_in_no_section() -> None:
    merger = merger_of(ROLLUPS)
    window = Window(merger.layout)
    for number in range(3):
        merger.open(number)
        for host in HOSTS:
            merger.add(host, said(np.full(SHAPE, 10**number, np.uint64), number))
        (window.set_aside if number == 1 else window.add)(merger.close())
    rows = sections_of_rows(merger.layout, window.measurement().sections)
    assert rows[0, 0].tolist() == [100 if column in LONGEST else 6 * 101 for column in SectionCount]


def test_a_measurement_does_not_change_when_its_window_grows() -> None:
    merger = merger_of(ROLLUPS)
    window = Window(merger.layout)
    measured = []
    for number in range(2):
        merger.open(number)
        for host in HOSTS:
            merger.add(host, said(np.full(SHAPE, 1, np.uint64), number))
        window.add(merger.close())
        measured.append(window.measurement())
    assert [int(one.sections[0, 0, SectionCount.READS]) for one in measured] == [1, 2]


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        (Array(ArrayType.U64, b""), "sections has 0 numbers, not 2 x 3 x 6"),
        (Array(ArrayType.U64, bytes(8 * 37)), "sections has 37 numbers, not 2 x 3 x 6"),
        (Array(ArrayType.I64, bytes(8 * 36)), "sections is of type i8, not u8"),
        (Array(ArrayType.U64, b"\xff" * 8 * 36), "a count of a section is out of range"),
    ],
)
def test_sections_that_do_not_fit_are_refused(sections: Array, says: str) -> None:
    merger: Merger = merger_of(ROLLUPS)
    merger.open(0)
    with pytest.raises(ProtocolError) as error:
        merger.add("h0", result(HostData(OF_HOST, OF_HOST, {}), sections=sections))
    assert str(error.value) == f"h0: the result of subinterval 0 does not fit: {says}"


def test_sections_that_nobody_asked_for_are_refused() -> None:
    merger = merger_of(Rollups.build([instance(0, "h0")], []))
    merger.open(0)
    with pytest.raises(ProtocolError, match=r"sections has 6 numbers, not 1 x 0 x 6"):
        merger.add("h0", result(HostData(1, 1, {}), sections=Array(ArrayType.U64, bytes(8 * 6))))
