"""What speaks against a row: a table of what was measured and what is said of it."""

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from ivypy.master.rollup.instances import Rollups, RollupSpec
from ivypy.master.rollup.io_checks import older_by_chance
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.rollup.validity import LEAST_TAIL, ScopedFinding, Validity, check_validity
from ivypy.master.rollup.window import Window
from ivypy.master.verdicts import Finding, Reason, Scope, Verdict
from ivypy.protocol import counters
from ivypy.protocol.counters import LATENESS, PUNCTUAL, RESPONSES, SERVICES, Count, ThreadCount
from ivypy.protocol.parameters import Iops, Parameters
from ivypy.protocol.payload import Array, ArrayType, CpuTaken
from tests.support.rollup import instance, merger_of, rollup_spec
from tests.support.rollup_results import HostData, fault, packed, result

MS = 10**6
SUBINTERVALS = 6  # one before the window


@dataclass(frozen=True)
class Plant:
    """What each of a host's subintervals looked like."""

    due: int = 1000
    done: int = 50
    backlog: tuple[int, ...] = (0,) * SUBINTERVALS
    in_flight: tuple[int, ...] = (0,) * SUBINTERVALS
    service_ns: int = MS
    response_ns: int | None = MS
    lateness_ns: int = 1000
    counts: Mapping[Count, int] = field(default_factory=dict)  # further ones
    iops: Iops = 200.0
    changes: Mapping[str, Any] = field(default_factory=dict)  # of the last result


GOOD = Plant()


def check(
    h1: Plant = GOOD,
    h2: Plant | None = GOOD,
    outside: tuple[ScopedFinding, ...] = (),
    specs: tuple[RollupSpec, ...] = (rollup_spec("host"),),
    subintervals: int = SUBINTERVALS,
    tail: float = LEAST_TAIL,
) -> dict[str, list[str]]:
    """Row: its findings in words, but for what the usual SUBINTERVALS are too few for."""
    rollups, validity = rollups_and_validity(h1, h2, outside, specs, subintervals, tail)
    usual = {Reason.TOO_FEW_SUBINTERVALS} if subintervals == SUBINTERVALS else set[Reason]()
    return {
        str(row): [str(one) for one in validity.findings[row.row] if one.reason not in usual] for row in rollups.rows
    }


def rollups_and_validity(
    h1: Plant,
    h2: Plant | None,
    outside: tuple[ScopedFinding, ...],
    specs: tuple[RollupSpec, ...],
    subintervals: int = SUBINTERVALS,
    tail: float = LEAST_TAIL,
) -> tuple[Rollups, Validity]:
    plants = {"h1": h1, "h2": h2}
    rollups = Rollups.build([instance(0, host) for host in plants], specs)
    merger = merger_of(rollups)
    window = None
    for k in range(subintervals):
        merger.open(k)
        for host, plant in plants.items():
            if plant:
                merger.add(host, result(_data(plant, k), k, **(plant.changes if k == subintervals - 1 else {})))
        interval = merger.close()
        if window is None:
            window = Window(merger.layout)
        else:
            window.add(interval)
    assert window
    settings = Settings.of(rollups, {(host, 0): Parameters(iops=p.iops) for host, p in plants.items() if p})
    return rollups, check_validity(window.measurement(), settings, 0.0025, 5.0, outside, tail=tail)


def _data(plant: Plant, k: int) -> HostData:
    samples = {(0, SERVICES[0]): [plant.service_ns] * plant.done}
    if plant.response_ns is not None:
        samples[0, RESPONSES[0]] = [plant.response_ns] * plant.done
        samples[0, LATENESS] = [plant.lateness_ns] * plant.done
        samples[0, counters.LATE] = [plant.response_ns] * plant.done
        samples[0, PUNCTUAL] = [plant.response_ns - min(plant.lateness_ns, plant.response_ns)] * plant.done
    submitted = plant.due - _grown(plant.backlog, k)
    counts = {
        Count.DUE: plant.due,
        Count.SUBMITTED: submitted,
        Count.COMPLETED: submitted - _grown(plant.in_flight, k),
        Count.BACKLOG: plant.backlog[k],
        Count.IN_FLIGHT: plant.in_flight[k],
    } | dict(plant.counts)
    return HostData(1, 1, samples, {(0, column): value for column, value in counts.items()})


def overruns(*counts: int) -> Array:
    """The figures of so many threads."""
    return packed([count * (c is ThreadCount.OVERRUNS) for count in counts for c in ThreadCount], ArrayType.I64)


def _grown(at_end: tuple[int, ...], k: int) -> int:
    return at_end[k] - (at_end[k - 1] if k else 0)


def test_what_fell_due_before_the_measurement_spoils_response_times_alone() -> None:
    left = (90, 60, 10, 0, 3, 0, 4, 0, 3)
    rollups, validity = rollups_and_validity(
        Plant(backlog=left, in_flight=(0,) * 9),
        Plant(backlog=(0,) * 9, in_flight=(0,) * 9),
        (),
        (rollup_spec("host"),),
        subintervals=len(left),
    )
    rows = {str(row): row.row for row in rollups.rows}
    said = "90 of 8,087 had fallen due before it, 2 are usual"
    assert f"earlier_ios[invalid] ({said})" in map(str, validity.findings[rows["host=h1"]])
    assert validity.scope_verdict(rows["host=h1"], Scope.RESPONSE) is Verdict.INVALID
    assert validity.scope_verdict(rows["host=h1"], Scope.SERVICE) is Verdict.VALID


def test_a_good_measurement_has_no_reason() -> None:
    _, validity = rollups_and_validity(GOOD, GOOD, (), (rollup_spec("host"),))
    assert check() == {"all=all": [], "host=h1": [], "host=h2": []}
    assert validity.worst() is Verdict.VALID
    assert validity.reached.all()


@pytest.mark.parametrize(("completed", "severity"), [(990, "partial"), (989, "invalid")])
def test_more_than_a_hundredth_of_failed_ios_is_no_measurement(completed: int, severity: str) -> None:
    found = check(Plant(counts={Count.ERRORS: 10, Count.COMPLETED: completed}), None)["host=h1"]
    assert found[0] == f"io_errors[{severity}] (50)"


@pytest.mark.parametrize(
    ("errors", "tail", "says"),
    [
        (100, 0.5, None),  # the p99 counts, whatever a step is for
        (101, 0.5, "505 failed, and 5,000 are beyond the p99"),
        (10, 0.999, None),
        (11, 0.999, "55 failed, and 500 are beyond the p99.9"),
        (2, 0.9999, "10 failed, and 50 are beyond the p99.99"),
    ],
)
def test_failed_ios_spoil_a_percentile_of_whose_tail_they_are_a_tenth(
    errors: int, tail: float, says: str | None
) -> None:
    failing = Plant(due=10**5, counts={Count.ERRORS: errors, Count.COMPLETED: 10**5 - errors})
    said = [one for one in check(failing, None, tail=tail)["host=h1"] if one.startswith("failed_tail")]
    assert said == ([f"failed_tail[invalid] ({says})"] if says else [])


def test_a_load_of_which_much_expires_is_not_sustained() -> None:
    """Its backlog does not grow, being discarded: that is no sign of a load that storage can do."""
    plant = Plant(counts={Count.EXPIRED: 300, Count.SUBMITTED: 700, Count.COMPLETED: 700})
    found = check(plant)
    for row in ("host=h1", "all=all"):
        assert [text.split(" ")[0] for text in found[row]] == ["load_not_sustained[invalid]", "expired_due[invalid]"]
    assert found["host=h2"] == []


MAX = Plant(iops="max", response_ns=None, due=50)


@pytest.mark.parametrize(
    ("h1", "says"),
    [
        # the target: by more than 0.25 % of what fell due in the window (5 x 1000), and more than chance may do
        (
            Plant(backlog=(0, 2, 5, 9, 11, 13)),
            "load_not_sustained[invalid] (outstanding I/O of h1+/dev/sd0+w grew by 13 of 5,000 due)",
        ),
        (Plant(backlog=(0, 0, 0, 0, 0, 12)), None),
        (Plant(backlog=(100, 100, 90, 80, 90, 105)), None),
        (Plant(backlog=(100, 0, 0, 0, 0, 100)), None),
        # the target, from above: what was owed before is done in the window
        (Plant(backlog=(12, 0, 0, 0, 0, 0)), None),
        (
            Plant(backlog=(500, 400, 300, 200, 100, 0)),
            "earlier_backlog[invalid] (h1+/dev/sd0+w did 500 more than the 5,000 that fell due)",
        ),
        (Plant(due=10, backlog=(0, 0, 0, 0, 0, 1)), None),
        (Plant(due=10, backlog=(0, 0, 0, 0, 0, 4)), None),
        (
            Plant(due=10, backlog=(0, 2, 4, 6, 8, 10)),
            "load_not_sustained[invalid] (outstanding I/O of h1+/dev/sd0+w grew by 10 of 50 due)",
        ),
        # a deficit in a deep queue: 50 of 1,000 a second are never done; also behind a long warmup
        (
            Plant(due=12_000, in_flight=(500, 1100, 1700, 2300, 2900, 3500)),
            "load_not_sustained[invalid] (outstanding I/O of h1+/dev/sd0+w grew by 3,000 of 60,000 due)",
        ),
        (
            Plant(due=12_000, in_flight=(6000, 6600, 7200, 7800, 8400, 9000)),
            "load_not_sustained[invalid] (outstanding I/O of h1+/dev/sd0+w grew by 3,000 of 60,000 due)",
        ),
        (
            Plant(due=12_000, in_flight=(3500, 4096, 4096, 4096, 4096, 4096), backlog=(0, 4, 604, 1204, 1804, 2404)),
            "load_not_sustained[invalid] (outstanding I/O of h1+/dev/sd0+w grew by 3,000 of 60,000 due)",
        ),
        (Plant(due=12_000, in_flight=(500, 3500, 3500, 2500, 1500, 500)), None),
        # a steady number in flight differs by chance; 200 IOPS at 50 ms have 10 in flight
        (Plant(in_flight=(950, 1000, 1020, 990, 1000, 1050)), None),
        (Plant(due=200, in_flight=(6, 9, 12, 8, 11, 15)), None),
        (
            Plant(due=200, in_flight=(6, 16, 26, 36, 46, 56)),
            "load_not_sustained[invalid] (outstanding I/O of h1+/dev/sd0+w grew by 50 of 1,000 due)",
        ),
        # iops: max has no deficit, however many are in flight
        (Plant(iops="max", response_ns=None, due=50, in_flight=(0, 40, 50, 60, 64, 64)), None),
        # lateness: mean against mean (p99 needs a thousand samples)
        (Plant(lateness_ns=MS // 10), None),
        (Plant(lateness_ns=MS // 10 + 10_000), "generator_late[note] (11% of the mean)"),
        (Plant(lateness_ns=MS // 4), "generator_late[note] (25% of the mean)"),
        (Plant(lateness_ns=MS // 4 + 10_000), "generator_late[invalid] (26% of the mean, 26% of the max)"),
        (
            Plant(lateness_ns=MS // 2, done=200),
            "generator_late[invalid] (50% of the mean, 50% of the p99, 50% of the max)",
        ),
        # a stall at the end: older than the longest in the window
        (Plant(counts={Count.OLDEST_OUTSTANDING_NS: MS}), None),
        (Plant(counts={Count.OLDEST_OUTSTANDING_NS: MS + 1000}), None),  # one of 250 may be so by chance
        (
            Plant(counts={Count.OLDEST_OUTSTANDING_NS: 4 * MS}),
            "stall_at_end[invalid] (oldest outstanding 4.000 ms, longest completed 1.000 ms)",
        ),
        (Plant(counts={Count.OLDEST_OUTSTANDING_NS: 3 * MS}, response_ns=4 * MS), None),
        (
            Plant(counts={Count.OLDEST_OUTSTANDING_NS: 4 * MS}, response_ns=None, iops="max"),
            "stall_at_end[invalid] (oldest outstanding 4.000 ms, longest completed 1.000 ms)",
        ),
        # counters
        (
            Plant(counts={Count.DROPPED: 3, Count.SUBMITTED: 997, Count.COMPLETED: 997}),
            "dropped_due[note] (15 of 5,000 due)",
        ),
        (
            Plant(counts={Count.DROPPED: 11, Count.SUBMITTED: 989, Count.COMPLETED: 989}),
            "dropped_due[invalid] (55 of 5,000 due)",
        ),
        # what drop_after discarded is not done: the load is not sustained where it is more than the tolerance
        (
            Plant(counts={Count.EXPIRED: 2, Count.SUBMITTED: 998, Count.COMPLETED: 998}),
            "expired_due[note] (10 of 5,000 due)",
        ),
        (Plant(counts={Count.QUEUE_LIMITED: 400}), "queue_depth_limited[note] (2,000)"),
        (Plant(counts={Count.EAGAIN: 1}), "eagain[note] (5)"),
        (Plant(due=1000000, counts={Count.ERRORS: 1, Count.COMPLETED: 10**6 - 1}), "io_errors[note] (5)"),
        (Plant(due=999999, counts={Count.ERRORS: 1, Count.COMPLETED: 10**6 - 2}), "io_errors[partial] (5)"),
        (Plant(counts={Count.ERRORS: 1}), "io_errors[partial] (5)"),
        (Plant(due=10, counts={Count.ERRORS: 10, Count.COMPLETED: 0}), "io_errors[invalid] (50)"),
        (
            Plant(counts={Count.ERRORS: 1}, changes={"faults": (fault(0, errno.EIO, 3), fault(0, 0, 2))}),
            "io_errors[partial] (5: EIO 3, short 2)",
        ),
        (
            Plant(counts={Count.ERRORS: 1}, changes={"faults": (fault(0, 0x8080, 3), fault(0, 0x87FF, 2))}),
            "io_errors[partial] (5: NVMe status 0x080 LBA out of range 3, NVMe status 0x7ff 2)",
        ),
        # reads of blocks that were never written
        (Plant(counts={Count.READS_SAMPLED: 100, Count.ZERO_READS: 1}), None),
        (
            Plant(counts={Count.READS_SAMPLED: 100, Count.ZERO_READS: 2}),
            "unwritten_blocks[note] (2% of 500 sampled reads: never written, or zeros)",
        ),
        (
            Plant(counts={Count.READS_SAMPLED: 100, Count.ZERO_READS: 11}),
            "unwritten_blocks[invalid] (11% of 500 sampled reads: never written, or zeros)",
        ),
        # what others did on the disks, beside our 250 x 4 KiB
        (Plant(counts={Count.BYTES: 4 << 20, Count.FOREIGN_BYTES: 40 << 10}), None),
        (
            Plant(counts={Count.BYTES: 4 << 20, Count.FOREIGN_BYTES: 20 << 20}),
            "foreign_io[note] (others 100 MiB, ivypy 20 MiB)",
        ),
        (
            Plant(counts={Count.BYTES: 40 << 10, Count.FOREIGN_BYTES: 2 << 10}),
            "foreign_io[note] (others 10 KiB, ivypy 200 KiB)",
        ),
        # the page cache: our reads are BYTES less WRITTEN
        (Plant(counts={Count.BYTES: 1 << 20, Count.CACHED: 10 << 10}), None),
        (
            Plant(counts={Count.BYTES: 1 << 20, Count.CACHED: 512 << 10}),
            "page_cache[note] (50% of what was read came from memory)",
        ),
        (Plant(counts={Count.BYTES: 1 << 20, Count.WRITTEN: 1 << 20, Count.DIRTY: 10 << 10}), None),
        (
            Plant(counts={Count.BYTES: 2 << 20, Count.WRITTEN: 1 << 20, Count.CACHED: 1 << 20, Count.DIRTY: 1 << 20}),
            "page_cache[note] (100% of what was read came from memory, 20% of what was written had not reached the "
            "disk at the end)",
        ),
        (
            Plant(counts={Count.WRITTEN: 1 << 20, Count.BYTES: 1 << 20, Count.DIRTY: 50 << 20}),  # of the warmup, too
            "page_cache[note] (100% of what was written had not reached the disk at the end)",
        ),
        (
            Plant(counts={Count.BYTES: 1 << 20, Count.UNSEEN: 1 << 20}),
            "page_cache[note] (not known of 5.00 MiB, for whose files no disk is counted)",
        ),
        # buffers
        (Plant(changes={"missing": (0, 1)}), "overrun[invalid] (h1: 2 times)"),
        (
            Plant(changes={"threads": overruns(3)}),
            "overrun[note] (h1: 3 of 5 subintervals are in the result of a later one)",
        ),
        (Plant(changes={"threads": overruns(0, 3, 1)}), "overrun[invalid] (h1: 4 times)"),
        (
            Plant(changes={"threads": overruns(1, 1), "taken": CpuTaken(longest_stall_ns=2_191_000_000)}),
            "overrun[note] (h1: 1 of 5 subintervals are in the result of a later one, no thread of its slave ran for "
            "up to 2,191 ms)",
        ),
        # a busy core: only where it is so throughout
        (Plant(iops="max", response_ns=None, changes={"cpu": (100.0, 5.0)}), None),
        (GOOD, None),
        (MAX, None),
    ],
)
def test_findings_of_a_host_are_on_its_row_alone(h1: Plant, says: str | None) -> None:
    assert check(h1)["host=h1"] == ([says] if says else [])
    assert check(h1)["host=h2"] == []


@pytest.mark.parametrize(
    ("iops", "done", "says"),
    [
        ("max", [100] * 20, []),
        ("max", [100, 101] * 10, []),
        ("max", [100, 140, 60, 120, 80] * 4, ["unsteady[note] (IOPS +/- 14%)"]),
        ("max", [100, 120, 80, 110, 90] * 4, []),  # +/- 7 %
        ("max", [4, 0, 0, 3, 0] * 4, ["unsteady[note] (IOPS +/- "]),  # also below 1 IOPS
        ("max", [0] * 20, ["no_samples[invalid]"]),
        ("max", [150] * 10 + [50] * 10, ["unsteady[note] (IOPS drift throughout)"]),
        ("max", [150] * 5 + [50] * 5, ["too_few_subintervals[note] (10)"]),
        (1e9, [150] * 10 + [50] * 10, ["load_not_sustained[invalid] ("]),
    ],
)
def test_a_maximum_that_is_not_known_to_a_tenth_is_unsteady(iops: Iops, done: list[int], says: list[str]) -> None:
    rollups = Rollups.build([instance(0, "h1")], ())
    merger = merger_of(rollups)
    window = Window(merger.layout)
    for k, ios in enumerate(done):
        merger.open(k)
        due = ios if iops == "max" else 1000
        counts = {(0, Count.DUE): due, (0, Count.SUBMITTED): ios, (0, Count.COMPLETED): ios}
        counts[0, Count.BACKLOG] = sum(1000 - one for one in done[: k + 1]) if iops != "max" else 0
        merger.add("h1", result(HostData(1, 1, {(0, SERVICES[0]): [MS] * ios}, counts), k))
        window.add(merger.close())
    settings = Settings.of(rollups, {("h1", 0): Parameters(iops=iops)})
    found = [str(one) for one in check_validity(window.measurement(), settings, 0.0025, 5.0).findings[0]]
    assert len(found) == len(says) and all(map(str.startswith, found, says)), found


@pytest.mark.parametrize(("subintervals", "severity"), [(2, "note"), (3, "note"), (4, "invalid")])
def test_one_or_two_zero_reads_are_too_few_to_judge_a_lun_by(subintervals: int, severity: str) -> None:
    plant = Plant(counts={Count.READS_SAMPLED: 1, Count.ZERO_READS: 1})
    (said,) = [one for one in check(plant, subintervals=subintervals)["host=h1"] if "few" not in one]
    assert said.startswith(f"unwritten_blocks[{severity}] (100% of {subintervals - 1} sampled reads")


def test_a_core_that_is_busy_throughout_is_the_hosts_limit() -> None:
    def busy(iops: Iops, response_ns: int | None, wait: float = 1.5) -> dict[str, list[str]]:
        rollups = Rollups.build([instance(0, "h1")], [])
        merger = merger_of(rollups)
        window = Window(merger.layout)
        for k in range(20):
            merger.open(k)
            merger.add(
                "h1",
                result(
                    _data(Plant(response_ns=response_ns, backlog=(0,) * 20, in_flight=(0,) * 20), k),
                    k,
                    cpu=(99.5, 10.0),
                    taken=CpuTaken(wait=wait),
                ),
            )
            window.add(merger.close())
        settings = Settings.of(rollups, {("h1", 0): Parameters(iops=iops)})
        return {"all": [str(one) for one in check_validity(window.measurement(), settings, 0.0025, 5.0).findings[0]]}

    assert busy("max", None) == {"all": ["host_limit[note] (busiest core 100 %)"]}
    assert busy(100.0, MS) == {"all": ["host_limit[note] (busiest core 100 %)"]}
    assert busy(100.0, MS, wait=0.2) == {"all": []}  # with others alone: the thread had it whenever it wanted it


def test_a_host_without_samples_is_invalid() -> None:
    assert check(Plant(done=0))["host=h1"] == ["no_samples[invalid]"]
    assert check(Plant(done=0))["all=all"] == []


def test_a_complete_stall_has_all_three_reasons() -> None:
    """Nothing completed, everything waits: both are said."""
    frozen = Plant(done=0, counts={Count.OLDEST_OUTSTANDING_NS: 9 * MS}, backlog=(0, 50, 100, 150, 200, 250))
    assert [one.split("[")[0] for one in check(frozen)["host=h1"]] == [
        "no_samples", "load_not_sustained", "stall_at_end",
    ]  # fmt: skip


def test_response_times_have_no_meaning_where_the_target_was_not_reached() -> None:
    _, validity = rollups_and_validity(Plant(backlog=(0, 0, 0, 0, 0, 400)), GOOD, (), (rollup_spec("host"),))
    assert validity.reached.tolist() == [False, False, True]  # all, h1, h2
    assert [validity.verdict(row) for row in range(3)] == [Verdict.INVALID, Verdict.INVALID, Verdict.VALID]
    assert validity.worst() is Verdict.INVALID


@pytest.mark.parametrize(
    ("spec", "h2", "says"),
    [
        (rollup_spec("host", quantity=2), GOOD, None),
        (rollup_spec("host", quantity=3), GOOD, "quantity[invalid] (2 instances, not 3)"),
        (rollup_spec("host", quantity=2), None, "quantity[invalid] (1 instances, not 2)"),  # h2 was lost
        (rollup_spec("host", max_droop=0.2), Plant(done=41), None),
        (
            rollup_spec("host", max_droop=0.2),
            Plant(done=39),
            "max_droop[invalid] (h2 is 22.0% below the fastest, not 20%)",
        ),
        (
            rollup_spec("host", max_droop=0.21999),
            Plant(done=39),
            "max_droop[invalid] (h2 is 22.000% below the fastest, not 21.999%)",
        ),
        (rollup_spec("host", max_droop=0.0), GOOD, None),
        (rollup_spec("host", max_droop=1.0), Plant(done=0), None),
    ],
)
def test_quantity_and_droop_of_a_type_are_on_all_its_rows(spec: RollupSpec, h2: Plant | None, says: str | None) -> None:
    found = check(GOOD, h2, specs=(spec,))
    of_types = {
        row: [one for one in those if one.startswith(("quantity", "max_droop"))] for row, those in found.items()
    }
    expected = [says] if says else []
    assert of_types == {"all=all": [], "host=h1": expected, "host=h2": expected}


def test_a_droop_is_also_one_of_few_ios_and_none_of_no_ios() -> None:
    def found(h1: int, h2: int) -> list[str]:
        those = check(Plant(done=h1), Plant(done=h2), specs=(rollup_spec("host", max_droop=0.2),))["host=h1"]
        return [one for one in those if one.startswith("max_droop")]

    assert found(4, 2) == ["max_droop[invalid] (h2 is 50.0% below the fastest, not 20%)"]
    assert found(0, 0) == []


def test_a_measurement_that_no_host_is_in_has_no_droop() -> None:
    rollups = Rollups.build([instance(0, "h1")], (rollup_spec("host", quantity=1, max_droop=0.2),))
    merger = merger_of(rollups)
    merger.open(0)
    window = Window(merger.layout)
    window.add(merger.close())
    validity = check_validity(window.measurement(), Settings.of(rollups, {}), 0.0025, 5.0)
    assert [one.reason for one in validity.findings[1]] == [
        Reason.QUANTITY, Reason.TOO_FEW_SUBINTERVALS, Reason.HOST_MISSING,
    ]  # fmt: skip


def test_a_step_without_a_measurement_has_the_same_findings_for_every_row() -> None:
    rollups = Rollups.build([instance(0, "h1"), instance(0, "h2")], (rollup_spec("host"),))
    found = Finding(Reason.HOST_LOST, "h1: gone")
    validity = Validity.unmeasured(rollups, iter([found]))
    assert validity.findings == ((found,),) * 3
    assert validity.reached.tolist() == [False] * 3 and validity.worst() is Verdict.PARTIAL


def test_a_finding_speaks_against_the_figures_of_its_scope() -> None:
    _, validity = rollups_and_validity(Plant(lateness_ns=MS // 2), GOOD, (), (rollup_spec("host"),))
    verdicts = {scope: validity.scope_verdict(1, scope) for scope in Scope}
    assert verdicts == {scope: Verdict.VALID for scope in Scope} | {Scope.RESPONSE: Verdict.INVALID}


@pytest.mark.parametrize(("completed", "times"), [(1, 1.0), (10, 1.0), (10, 1.5), (100, 1.0), (100, 1.3)])
def test_how_often_the_oldest_is_older_by_chance(completed: int, times: float) -> None:
    random = np.random.default_rng(5)
    longest = random.exponential(1.0, (100_000, completed)).max(axis=1)
    seen = (random.exponential(1.0, 100_000) > times * longest).mean()
    assert older_by_chance(times, completed) == pytest.approx(seen, rel=0.15)


def test_several_reasons_can_be_told_apart() -> None:
    words = "2 of 6 workload instances; of the worst outstanding I/O grew by 8 of 9 due"
    assert "; " not in str(Finding(Reason.LOAD_NOT_SUSTAINED, words))


def test_few_subintervals_are_noted() -> None:
    assert check(subintervals=5)["all=all"] == ["too_few_subintervals[note] (4)"]
    assert check(subintervals=6)["all=all"] == []


LATE = Finding(Reason.SLOW_CONTROLLER, "2.6 s")


@pytest.mark.parametrize(
    ("outside", "rows"),
    [
        (ScopedFinding(LATE), ["all=all", "host=h1", "host=h2"]),
        (ScopedFinding(LATE, "h2"), ["all=all", "host=h2"]),
        (ScopedFinding(LATE, "h1", 0), ["all=all", "host=h1"]),
        (ScopedFinding(LATE, "gone"), []),
    ],
)
def test_findings_from_outside_are_on_the_rows_that_they_concern(outside: ScopedFinding, rows: list[str]) -> None:
    found = check(outside=(outside, outside))
    assert [row for row, findings in found.items() if "slow_controller[note] (2.6 s)" in findings] == rows
    assert all(len(findings) <= 1 for findings in found.values())  # each once


@pytest.mark.parametrize(
    ("when", "is_of_it"),
    [({}, True), ({"since": 5}, True), ({"since": 6}, False), ({"until": 1}, True), ({"until": 0}, False)],
)
def test_a_finding_from_outside_is_of_the_measurements_of_its_time(when: dict[str, int], is_of_it: bool) -> None:
    """The window has subintervals 1 to 5."""
    found = check(outside=(ScopedFinding(LATE, **when),))  # type: ignore[arg-type]
    assert found["all=all"] == ["slow_controller[note] (2.6 s)"] * is_of_it


def test_a_finding_of_many_hosts_is_on_no_row_that_is_of_one_host_alone() -> None:
    specs = tuple(rollup_spec(by) for by in ("host", "lun", "workload", "host+workload"))
    found = check(outside=(ScopedFinding(LATE, of_many_hosts=True),), specs=specs)
    assert {row for row, findings in found.items() if findings} == {"all=all", "workload=w"}


def test_a_host_whose_boundaries_were_missed_has_no_second_finding_of_its_length() -> None:
    short = {"length_ns": 10**9}
    assert check(Plant(changes=short))["host=h1"] == [
        "host_missing[partial] (h1: its subintervals are 21 s long in total, not 25 s)"
    ]
    assert check(Plant(changes={**short, "missing": (0, 1)}))["host=h1"] == ["overrun[invalid] (h1: 2 times)"]
