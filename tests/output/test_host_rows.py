"""Tables about hosts: the worst of each host's threads, what a call carried, blanks where nothing is known."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ivypy.master.output.column import Column, names
from ivypy.master.output.columns import CLOCK, CPU, INTERLOCK
from ivypy.master.output.host_rows import clock_rows, core_numbers, cpu_rows, interlock_rows, thread_rows
from ivypy.master.output.record_types import HostTiming, SubintervalRecord, Timing
from ivypy.master.rollup.instances import Rollups
from ivypy.protocol.counters import ThreadCount
from ivypy.protocol.payload import ArrayType, CpuTaken
from tests.support.rollup import instance, merger_of
from tests.support.rollup_results import HostData, packed, result

MS = 10**6
S = 10**9
HOST = HostTiming(3 * MS, None, -(10**15) + 1, 12_345, 1.25, 0, 7)
Thread = Mapping[ThreadCount, int]


NONE, BLANK = ["0"] * 8, [""] * 8  # of what is taken from a host's threads


def record(threads: Mapping[str, Sequence[Thread]], cpu: tuple[float, ...] = (10.0, 30.0)) -> SubintervalRecord:
    """One subinterval of 5 s; timing is known of h1 alone."""
    merger = merger_of(Rollups.build([instance(0, host) for host in threads], []))
    merger.open(4)
    for host, figures in threads.items():
        table = packed([thread.get(column, 0) for thread in figures for column in ThreadCount], ArrayType.I64)
        merger.add(host, result(HostData(1, 1, {}), 4, 5 * S, threads=table, cpu=cpu, missing=()))
    unused: Any = SimpleNamespace()
    return SubintervalRecord(merger.close(), unused, unused, "run", 0, Timing(4 * MS, MS, 2 * MS, 4 * S, {"h1": HOST}))


def table_of(header: Sequence[str], text: str) -> dict[str, dict[str, str]]:
    return {row["host"]: row for row in csv.DictReader([",".join(header), *text.splitlines()])}


def interlock(threads: Mapping[str, Sequence[Thread]]) -> dict[str, dict[str, str]]:
    return table_of(names(INTERLOCK), interlock_rows(record(threads)))


def test_the_worst_thread_and_the_mean_call() -> None:
    one = {
        ThreadCount.SWAPPED: 1, ThreadCount.DISPATCH: 1500, ThreadCount.IN_SUBMIT: S, ThreadCount.CPU_TIME: 2 * S,
        ThreadCount.SUBMITTED: 30, ThreadCount.SUBMIT_CALLS: 10, ThreadCount.COMPLETED: 60, ThreadCount.REAPS: 12,
    }  # fmt: skip
    other = {ThreadCount.DISPATCH: 250, ThreadCount.OVERRUNS: 2}
    other |= {ThreadCount.SUBMITTED: 10, ThreadCount.SUBMIT_CALLS: 10}
    row = interlock({"h1": [one, other]})["h1"]
    assert {name: row[name] for name in ("send_up_ms", "acknowledgement_ms", "slack_ms", "collected_ms")} == {
        "send_up_ms": "3", "acknowledgement_ms": "", "slack_ms": "4000", "collected_ms": "0",
    }  # fmt: skip
    assert (row["threads"], row["not_swapped"], row["overruns"]) == ("2", "1", "2")
    assert (row["dispatch_us_max"], row["in_submit_percent_max"], row["cpu_percent_max"]) == ("1.5", "20", "40")
    assert (row["ios_per_submit"], row["ios_per_reap"]) == ("2", "5")


def test_a_host_without_threads_or_calls_has_blanks() -> None:
    rows = interlock({"h1": [], "h2": [{}], "h3": [{ThreadCount.LATENESS_MAX: 1}]})
    assert (rows["h1"]["threads"], rows["h1"]["not_swapped"], rows["h1"]["overruns"]) == ("0", "0", "")
    assert rows["h1"]["cpu_percent_max"] == rows["h2"]["ios_per_submit"] == rows["h2"]["send_up_ms"] == ""
    assert rows["h2"]["lateness_us_max"] == "0" and rows["h3"]["lateness_us_max"] == "0.001"


@pytest.mark.parametrize(
    ("cores", "cpu", "cells"),
    [
        ({"h1": (0, 1)}, (10.0, 30.0), ["20", "1", "30", *NONE, "10", "30"]),
        ({"h1": (5, 2), "other": (0,)}, (30.0, 10.0), ["20", "5", "30", *NONE, "", "10", "30"]),
        ({"h1": (0, 1)}, (0.0, 0.0), ["0", "0", "0", *NONE, "0", "0"]),
        ({"h1": (0, 1)}, (), ["", "", "", *BLANK, "", ""]),
        ({}, (10.0,), ["", "", "", *BLANK]),
    ],
)
def test_cores_stand_in_their_columns(
    cores: dict[str, tuple[int, ...]], cpu: tuple[float, ...], cells: list[str]
) -> None:
    text = cpu_rows(record({"h1": []}, cpu), cores)
    assert text == ",".join(["4", "h1", *cells]) + "\n"
    assert len(names(CPU)) - 2 + len(core_numbers(cores)) == len(cells)


def test_what_was_taken_from_threads_stands_in_milliseconds_and_percent() -> None:
    taken = CpuTaken(61.0, 60.0, 98.0, 1.5, 12.0, 99.0, 48.0, 340 * MS, 120 * MS, 45 * MS)
    one = record({"h1": []}, (99.0,))
    one.interval.results["h1"] = replace(one.interval.results["h1"], taken=taken)  # type: ignore[index]
    row = table_of([*names(CPU), "core_0"], cpu_rows(one, {"h1": (0,)}))["h1"]
    assert [row[name] for name in names(CPU)[5:]] == ["61", "98", "1.5", "12", "48", "340", "120", "45"]


def test_nanoseconds_keep_every_digit() -> None:
    row = table_of(names(CLOCK), clock_rows(record({"h1": []})))["h1"]
    assert round(float(row["offset_us"]) * 1000) == -(10**15) + 1 and row["error_bound_us"] == "12.345"
    assert (row["rate_ppm"], row["start_skew_us"], row["boundary_skew_us"]) == ("1.25", "0", "0.007")


def test_without_hosts_nothing_is_written() -> None:
    nobody = record({"h1": []})
    nobody.interval.results.clear()  # type: ignore[attr-defined]
    assert cpu_rows(nobody, {}) == interlock_rows(nobody) == thread_rows(nobody) == ""


def test_every_column_has_a_cell() -> None:
    def width(columns: tuple[Column, ...], text: str) -> bool:
        return all(line.count(",") == len(columns) - 1 for line in text.splitlines())

    assert width(INTERLOCK, interlock_rows(record({"h1": [{}], "h2": []}))) and width(CLOCK, clock_rows(record({})))
