"""Which I/O errors of a step are told, and how often."""

import errno
from collections.abc import Sequence

import pytest

from ivypy.master.rollup.instances import Rollups
from ivypy.master.run.step.io_faults import MOST_FAULTS, IoFaults
from ivypy.protocol.counters import Count
from tests.support.rollup import instance, rollup_spec
from tests.support.rollup_results import HostData, fault, result

DONE, FAILED = 3, 7  # of each subinterval


def told(subintervals: Sequence[dict[int, int]], completed: int = DONE, luns: int = 2) -> list[str]:
    """Events of a step in whose subintervals these workload instances had errors: {number: errno}."""
    said: list[str] = []
    rollups = Rollups.build([instance(n, "h") for n in range(luns)], (rollup_spec("host"),))
    faults = IoFaults(rollups, 10**9, lambda host, kind, text: said.append(text), lambda finding: None)
    for k, errors in enumerate(subintervals):
        counts = {(n, Count.COMPLETED): completed for n in range(luns)}
        found = tuple(fault(n, code, FAILED) for n, code in errors.items())
        faults.errors("h", result(HostData(luns, 0, {}, counts), k, faults=found))
    return said


@pytest.mark.parametrize(
    ("subintervals", "completed", "says"),
    [
        ([{}, {}], DONE, []),
        ([{}, {1: errno.EIO}, {1: errno.EIO}], DONE, ["h+/dev/sd1+w: EIO (7 in subinterval 1)"]),
        ([{0: 0}], DONE, ["h+/dev/sd0+w: short transfers (7 in subinterval 0)"]),
        ([{}, {1: errno.EIO}, {1: errno.EIO}], 0, ["h+/dev/sd1+w: every I/O failed, EIO (7 in subinterval 1)"]),
    ],
)
def test_each_kind_of_each_instance_is_told_once(
    subintervals: list[dict[int, int]], completed: int, says: list[str]
) -> None:
    assert told(subintervals, completed) == says


def test_a_device_that_vanishes_is_told_after_its_first_errors() -> None:
    rollups = Rollups.build([instance(0, "h")], (rollup_spec("host"),))
    said: list[str] = []
    faults = IoFaults(rollups, 10**9, lambda host, kind, text: said.append(text), lambda finding: None)
    for k, completed in enumerate([9, 0, 0]):
        data = HostData(1, 0, {}, {(0, Count.COMPLETED): completed})
        faults.errors("h", result(data, k, faults=(fault(0, errno.EIO, 5),)))
    assert said == [
        "h+/dev/sd0+w: EIO (5 in subinterval 0)", "h+/dev/sd0+w: every I/O failed, EIO (5 in subinterval 1)",
    ]  # fmt: skip


def test_so_many_are_told_and_no_more() -> None:
    assert len(told([dict.fromkeys(range(30), errno.EIO)] * 2, luns=30)) == MOST_FAULTS
