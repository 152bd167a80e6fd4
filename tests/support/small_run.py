"""A small run, written to a folder: two hosts, two ports, two steps whose every number can be worked out by hand."""

import csv
from datetime import UTC, datetime
from pathlib import Path

from ivypy.master.output.folder import RunFolder
from ivypy.master.output.record_types import (
    Event,
    HostRecord,
    HostTiming,
    LunRecord,
    RunRecord,
    StepRecord,
    SubintervalRecord,
    SummaryRecord,
    Timing,
    WindowRecord,
)  # fmt: skip
from ivypy.master.rollup.instances import Rollups
from ivypy.master.rollup.merge import MergedSubinterval, Merger
from ivypy.master.rollup.parameters_in_force import Settings
from ivypy.master.rollup.validity import check_validity
from ivypy.master.rollup.window import Window
from ivypy.protocol.counters import LATENESS, RESPONSES, SERVICES, Count, Kind, ThreadCount
from ivypy.protocol.messages import Hello, Role
from ivypy.protocol.parameters import Parameters
from ivypy.protocol.payload import ArrayType, Lun, Notice, NoticeKind
from tests.support.rollup import instance, rollup_spec
from tests.support.rollup_results import HostData, packed, result

HOSTS = ("h1", "h2")
START = 1_763_723_405_250_000_000  # 2025-11-21T11:10:05.25Z
LENGTH = 5 * 10**9
FLOWS = (Count.DUE, Count.SUBMITTED, Count.COMPLETED)
CORES = {"h1": (0, 1), "h2": (2, 3)}
SPECS = (rollup_spec("host", max_droop=0.9), rollup_spec("host+port"), rollup_spec("port", csv=False))
INSTANCES = [instance(n, host, port=f"{n + 1}:A") for host in HOSTS for n in range(2)]
PARAMETERS = {(one.host, one.number): Parameters(iops=20.0 + one.number, blocksize=8192) for one in INSTANCES}


def rollups() -> Rollups:
    return Rollups.build(INSTANCES, SPECS)


def samples(host: str, k: int) -> dict[tuple[int, int], list[int]]:
    """(class, series) -> ns: h1 reads and writes, h2 only reads and is slower; class 0 is port 1:A."""
    slow = 1 if host == "h1" else 3
    reads = [slow * (100_000 + 1000 * i + k) for i in range(100)]
    found = {(klass, SERVICES[Kind.RANDOM_READ]): reads for klass in (0, 1)}
    if host == "h1":
        found[0, SERVICES[Kind.RANDOM_WRITE]] = [50_000] * 20
    for (klass, series), ns in list(found.items()):
        found[klass, RESPONSES[0] + series] = [one + 10_000 for one in ns]
        found[klass, LATENESS] = [*found.get((klass, LATENESS), []), *([2_000] * len(ns))]
    return found


def data(host: str, k: int) -> HostData:
    counts = {(n, column): ios for n, ios in enumerate((120, 100)) for column in FLOWS}
    counts |= {(0, Count.BACKLOG): 1, (1, Count.IN_FLIGHT): 2}
    return HostData(2, 2, samples(host, k), counts, blocksize=8192)


def threads() -> list[int]:
    return [
        100 * column if column > ThreadCount.OVERRUNS else int(column is ThreadCount.SWAPPED) for column in ThreadCount
    ]


def interval(merger: Merger, k: int, hosts: tuple[str, ...] = HOSTS) -> MergedSubinterval:
    merger.open(k)
    for host in hosts:
        merger.add(host, result(data(host, k), k, LENGTH, threads=packed(threads() * 2, ArrayType.I64)))
    return merger.close()


def record(merged: MergedSubinterval, settings: Settings, phase: str, timed: bool = True) -> SubintervalRecord:
    host = HostTiming(3_000_000, 1_000_000, -2_500, 40_000, 1.25, 900, -800)
    timing = Timing(4_000_000, 2_000_000, 1_500_000, 4_990_000_000, dict.fromkeys(HOSTS, host) if timed else {})
    start = START + merged.subinterval * LENGTH
    return SubintervalRecord(merged, merged.figures.shown(settings.response_rows()), settings, phase, start, timing)


HELLO = Hello(
    Role.SLAVE, 1, "0.1.0", "abc", "machine, one", 17, "3.11.7", "6.1", "glibc 2.36", "x86_64", (0, 1), "tsc",
    ("libaio", "null"), 65536, ("iopoll", "registered_ring"),
)  # fmt: skip
LUN = Lun(
    "/dev/sd0",
    "block",
    1 << 30,
    512,
    {"vendor": 'A "B", C', "port": "1:A"},
    (),
    (Notice(NoticeKind.NO_ANSWER, "one"), Notice(NoticeKind.WRITERS_UNKNOWN, "another")),
)


def write_run(root: Path) -> Path:
    """The whole run; its folder."""
    sliced = rollups()
    settings = Settings.of(sliced, PARAMETERS)
    run = RunFolder.create(root, "two hosts", datetime(2025, 11, 21, 11, 10, tzinfo=UTC))
    run.plan("name: two hosts\n")
    run.run(RunRecord("0.1.0", ("ivypy", "run", "p.yaml"), "p.yaml", START, 7, hosts={"h1": HELLO}))
    run.hosts([HostRecord("h1", "ssh", "10.0.0.1", HELLO), HostRecord("h2", "local", "", HELLO)])
    run.luns([LunRecord("h1", LUN), LunRecord("h2", LUN)])
    run.workloads(sliced, PARAMETERS)
    run.event(Event(START, "mark", 'he said "x, y"\nand left', step=0, subinterval=1, host="h1"))
    for number, name in enumerate(("max", "half, again")):
        write_step(run, number, name, sliced, settings)
    steps = (StepRecord(0, "max", START, START + 4 * LENGTH, "valid"),)
    run.run(
        RunRecord("0.1.0", ("ivypy",), "p.yaml", START, 7, START + LENGTH, 0, {"h1": HELLO}, steps, {"socket": "/s"})
    )
    run.close()
    return run.path


def write_step(run: RunFolder, number: int, name: str, sliced: Rollups, settings: Settings) -> None:
    merger = Merger(sliced, {host: sliced.order(host) for host in HOSTS})
    step = run.step(number, name, merger.layout, CORES)
    warmup = interval(merger, 0)
    step.subinterval(record(warmup, settings, "warmup"))
    window = Window(merger.layout)
    for k in range(1, 7):
        one = interval(merger, k)
        window.add(one)
        step.subinterval(record(one, settings, "run"))
    step.subinterval(record(interval(merger, 7, ("h1",)), settings, "tail"))
    step.late("h2", result(data("h2", 7), 7, LENGTH))
    measurement = window.measurement()
    validity = check_validity(measurement, settings, 0.0025, LENGTH * 1e-9)
    begin, end = START + LENGTH, START + 7 * LENGTH
    step.window(WindowRecord("measurement", 1, 6, 0, begin, end, 2, "fixed time"))
    step.measured(range(1, 7))
    summary = SummaryRecord(START, begin, end, measurement, validity, settings)
    assert summary.figures is not None
    step.histograms(summary.figures)
    run.summary(number, name, summary, sliced)


def table(path: Path) -> list[dict[str, str]]:
    """A CSV's rows by its header, every row as long as the header."""
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert all(len(row) == len(header) for row in rows), path
    assert len(set(header)) == len(header), path
    return [dict(zip(header, row, strict=True)) for row in rows]
