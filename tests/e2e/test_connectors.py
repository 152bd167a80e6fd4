"""Runs beside a simulated array whose figures follow from the I/O that the hosts drive, and beside connectors that are
slow, silent, dead, wrong, or lie about time."""

import contextlib
import json
import os
import shlex
import signal
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.devices import loop
from tests.support.lab import Lab
from tests.support.loop_devices import needs_loops
from tests.support.made_once import Store
from tests.support.real_runs import (
    Finished,
    hosts_yaml,
    names_of,
    once,
    only_late,
    run,
    start,
    wait_until_measuring,
    written,
)
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

ARRAY = Path(__file__).parents[1] / "support" / "simulated_array.py"
SIZE = 16 << 20
STEP = "step0000.one"


def is_fair(reasons: str) -> bool:
    """Whether nothing but a busy test machine speaks against a row, and that nobody has filled the devices."""
    return only_late("; ".join(names_of(reasons) - {"unwritten_blocks"}))


def program(ldevs: Mapping[str, Mapping[str, Any]], *words: str, python: str = sys.executable) -> str:
    """The command line of a simulated array, as a plan has it."""
    return json.dumps(shlex.join([python, "-IS", str(ARRAY), json.dumps(ldevs), *words]))


def ldev(path: str, group: str, pool: str = "gold", **more: object) -> dict[str, Any]:
    return {"path": path, "parity_group": group, "port": "1A", "mp": "0", "pool": pool, **more}


# On three hosts.

LAB = """\
name: lab
engine: {{ threads: 1 }}
hosts:
{hosts}
luns: {{ select: [ {luns} ] }}
connectors:
  array: {{ program: {program}, join: path, attributes: [ parity_group, pool ], {more} }}
  host: off
workloads: {{ w: {{ iops: 200, maxtags: 4, select: {{ pool: gold }} }} }}
rollups: [ parity_group, host+lun ]
defaults: {{ subinterval: 1s, warmup: 1s, measure: {measure}, disturbed: keep }}
steps: [ go: one ]
"""


@contextlib.contextmanager
def loops(count: int) -> Iterator[list[str]]:
    with contextlib.ExitStack() as undo:
        yield [undo.enter_context(loop(SIZE)) for _ in range(count)]


def on_three_hosts(tmp_path: Path, lab: Lab, paths: Sequence[str], more: str = "", measure: str = "6s") -> Path:
    """Two devices for each host; group 1-1 spans two hosts, 1-2 all three; of pool silver no workload drives any."""
    a, b, c, d, e, f, other = paths
    ldevs = {
        "00:a": ldev(a, "1-1"), "00:b": ldev(b, "1-2"), "00:c": ldev(c, "1-1"), "00:d": ldev(d, "1-2"),
        "00:e": ldev(e, "1-2"), "00:f": ldev(f, "1-3", "silver"), "00:o": ldev(other, "1-4", "silver"),
    }  # fmt: skip
    names = [host.name for host in lab.hosts for _ in range(2)]
    luns = ", ".join(f"{{ host: {name}, path: {path} }}" for name, path in zip(names, paths[:6], strict=True))
    hosts = hosts_yaml([host.spec() for host in lab.hosts])
    text = LAB.format(hosts=hosts, luns=luns, program=program(ldevs), more=more or "deadline: 75%", measure=measure)
    return written(tmp_path, text)


def gathered(done: Finished, name: str = "array", step: str = STEP) -> dict[int, dict[str, str]]:
    """Of each subinterval whose gather has rates: its row of gathers.csv."""
    rows = done.rows(f"{step}/gathers.csv")
    return {int(row["subinterval"]): row for row in rows if row["connector"] == name and row["span_s"]}


@needs_loops
def test_rollups_filters_and_what_does_not_participate_over_three_hosts(tmp_path: Path, lab: Lab) -> None:
    with loops(7) as paths:
        before = [ios_of(path) for path in paths]
        done = run(on_three_hosts(tmp_path, lab, paths), tmp_path / "runs")
        driven = [ios_of(path) - ios for path, ios in zip(paths, before, strict=True)]
    (whole,) = done.rows("summary.all.csv")
    assert done.code in (0, 8) and is_fair(whole["reasons"]), done.out + done.err
    groups = {
        row["parity_group"] if "parity_group" in row else row["instance"]
        for row in done.rows("summary.parity_group.csv")
    }
    assert groups == {"1-1", "1-2"}, "no workload drives the pool silver"

    by_ldev = elements(done, "connectors/array.ldev.csv")
    members = {"1-1": ["00:a", "00:c"], "1-2": ["00:b", "00:d", "00:e"]}
    for group, mine in members.items():
        rows = done.rows(f"{STEP}/parity_group/{group}.array.parity_group.csv")
        assert {row["elements"] for row in rows} == {"1"}
        for row in rows:
            if row["ios_per_s"]:
                k = int(row["subinterval"])
                assert float(row["ios_per_s"]) == pytest.approx(sum(by_ldev[k][name] for name in mine), rel=1e-5)
        assert {row["elements"] for row in done.rows(f"{STEP}/parity_group/{group}.array.ldev.csv")} == {str(len(mine))}
    idle = elements(done, "non_participating/array.parity_group.csv", "elements")
    assert idle and all(row == {"2": 0.0} for row in idle.values()), "1-3 and 1-4, together, at rest"
    assert {row["elements"] for row in done.rows(f"{STEP}/all/all.array.cache.csv")} == {"1"}

    # The same I/Os, counted by the array, by ivypy and by the kernel.
    spans = {k: float(row["span_s"]) for k, row in gathered(done).items() if k >= 0}
    for group, mine in members.items():
        counted = {int(row["subinterval"]): float(row["overall_service_count"]) for row in subintervals(done, group)}
        array = sum(by_ldev[k][name] * spans[k] for k in spans for name in mine)
        ours = sum(counted[k] for k in spans if k in counted)
        assert array == pytest.approx(ours, rel=0.1, abs=20), group
        kernel = sum(ios for ios, name in zip(driven, "abcdefo", strict=True) if f"00:{name}" in mine)
        assert sum(counted.values()) <= kernel and array <= kernel + 1


def ios_of(path: str) -> int:
    words = Path(f"/sys/block/{Path(path).name}/stat").read_text().split()
    return int(words[0]) + int(words[4])


def elements(done: Finished, name: str, key: str = "element", column: str = "ios_per_s") -> dict[int, dict[str, float]]:
    """Subinterval -> element -> I/Os per second, where there is a value."""
    found: dict[int, dict[str, float]] = defaultdict(dict)
    for row in done.rows(f"{STEP}/{name}"):
        if row[column]:
            found[int(row["subinterval"])][row[key]] = float(row[column])
    return found


def subintervals(done: Finished, group: str) -> list[dict[str, str]]:
    return done.rows(f"{STEP}/parity_group/{group}.csv")


@needs_loops
@pytest.mark.realtime
@pytest.mark.long  # the law itself is simulated: tests/connectors/test_gathering.py
def test_gathers_are_aligned_with_their_subintervals(tmp_path: Path, lab: Lab) -> None:
    """The law is one of simulated time; here its median on a real machine, from the fourth gather on."""
    with loops(7) as paths:
        done = run(on_three_hosts(tmp_path, lab, paths, measure="10s"), tmp_path / "runs")
    rows = [row for k, row in gathered(done).items() if k >= 3]
    assert len(rows) > 5 and statistics.median(abs(float(row["skew_ms"])) for row in rows) < 50
    assert all(row["state"] == "gathered" and not row["stamps"] for row in rows)


def test_a_connector_on_another_machine(tmp_path: Path, lab: Lab) -> None:
    """By ssh, with whatever Python is there."""
    spec = hosts_yaml([lab.hosts[0].spec()]).strip().removeprefix("- ")
    ldevs = {"00:01": ldev(str(tmp_path / "data"), "1-1", rate=700)}
    connectors = f"  array: {{ program: {program(ldevs, python='python3')}, join: path, on: {spec} }}\n"
    done = run(alone(tmp_path, connectors, "go: { name: one, measure: 2s }"), tmp_path / "runs")
    assert done.code in (0, 8), done.out + done.err
    values = [float(row["ios_per_s"]) for row in done.rows(f"{STEP}/all/all.array.port.csv") if row["ios_per_s"]]
    assert statistics.median(values) == pytest.approx(700, rel=0.1)


# Beside one host that drives nothing: connectors that do something wrong.

ALONE = """\
name: alone
engine: {{ threads: 1, backend: "null" }}
luns: {{ create: {{ path: {path}, size: 4MiB }} }}
{connectors}
workloads: {{ w: {{ iops: 200, maxtags: 4 }} }}
defaults: {{ subinterval: 0.5s, warmup: 0.5s, measure: 4s, disturbed: keep }}
steps: [ {steps} ]
"""
LYING = ("absent", "backwards", "fast", "jump", "ahead", "too_long")
STRANGE = {"duplicate": "has two values", "undeclared": "was not declared", "text": "is text"}


def alone(tmp_path: Path, connectors: str, steps: str = "go: one") -> Path:
    section = f"connectors:\n  host: off\n{connectors}"
    return written(tmp_path, ALONE.format(path=tmp_path / "data", connectors=section, steps=steps))


def faulty(path: str, name: str, fault: str = "", more: str = "") -> str:
    """A connector in a plan that does that wrong from its third gather on."""
    words = ["--fault", fault, "--after", "2", "--takes", "1.2"] if fault else []
    ldevs = {"00:01": ldev(path, "1-1", rate=1000)}
    return f"  {name}: {{ program: {program(ldevs, *words)}, join: path, deadline: 75%{more} }}\n"


def phases(done: Finished) -> list[str]:
    return [row["phase"] for row in done.rows(f"{STEP}/all/all.csv")]


def without_connectors(folder: Path) -> Finished:
    return run(alone(folder, ""), folder / "runs")


def test_faulty_connectors_are_labelled_and_harm_no_step(tmp_path: Path, store: Store) -> None:
    faults = ("slow", "silent", "dies", "garbage", "wrong_message", "flood", "declines", "falls", *LYING, *STRANGE)
    path = str(tmp_path / "data")
    without = once(store, without_connectors)
    unlicensed = faulty(path, "unlicensed", "exits", ", required: false")
    connectors = "".join(faulty(path, name, name) for name in faults) + faulty(path, "fine") + unlicensed
    done = run(alone(tmp_path, connectors), tmp_path / "with", timeout_s=200)
    for one in (without, done):
        assert one.code in (0, 8), one.out + one.err
        (whole,) = one.rows("summary.all.csv")
        assert only_late(whole["reasons"]), one.out
    assert phases(done) == phases(without)

    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in done.rows(f"{STEP}/gathers.csv"):
        found[row["connector"]].append(row)
    states = {name: [row["state"] for row in rows] for name, rows in found.items()}
    assert {"no_answer", "busy", "late"} <= set(states["slow"])
    assert states["silent"].count("no_answer") == 1 and states["silent"][-1] == "busy"
    whys = {
        "dies": "it exited with status 3 (the array is on fire)", "garbage": "is not JSON",
        "wrong_message": "missing ['facts']", "flood": "which is not pending",
    }  # fmt: skip
    for name, why in whys.items():
        assert states[name][-1] == "lost" and why in found[name][-1]["why"], found[name]
        assert any(f"the connector {name} is gone: " in row["text"] for row in done.rows("events.csv")), name
    assert states["declines"][-1] == "declined" and found["declines"][-1]["why"] == "the array is being serviced"
    assert "1" in {row["resets"] for row in found["falls"]}
    for name in LYING:
        assert name in {row["stamps"].replace("jumped", "jump" if name == "jump" else "fast") for row in found[name]}
    for name, why in STRANGE.items():
        assert found[name][-1]["ignored"] == "1" and why in found[name][-1]["ignored_because"]

    assert any("the connector unlicensed is not there" in row["text"] for row in done.rows("events.csv"))
    for name in ("fine", *LYING):  # which counts 1,000 a second, whatever its clock says
        rows = [row for row in done.rows(f"{STEP}/all/all.{name}.ldev.csv") if row["ios_per_s"]]
        assert statistics.median(float(row["ios_per_s"]) for row in rows) == pytest.approx(1000, rel=0.2), name


def test_a_connector_that_is_gone_is_started_again_before_the_next_step(tmp_path: Path) -> None:
    connectors = faulty(str(tmp_path / "data"), "array", "dies")
    steps = "go: { name: one, measure: 2s }, go: { name: two, measure: 2s }"
    done = run(alone(tmp_path, connectors, steps), tmp_path / "runs")
    assert "the connector array was started again" in " ".join(row["text"] for row in done.rows("events.csv"))
    states = [row["state"] for row in done.rows("step0001.two/gathers.csv")]
    assert states[0] == "gathered" and states[-1] == "lost"


def test_the_hosts_connector_can_be_off(store: Store) -> None:
    done = once(store, without_connectors)
    assert not list(done.folder.glob("log/connector*")) and not list(done.folder.glob("step*/gathers.csv"))


@pytest.mark.parametrize("fault", ["exits", "bad_unit", "twice_declared"])
def test_a_required_connector_that_cannot_be_used_refuses_the_run(tmp_path: Path, fault: str) -> None:
    path = str(tmp_path / "data")
    connectors = faulty(path, "fine") + faulty(path, "array", fault)
    done = run(alone(tmp_path, connectors), tmp_path / "runs")
    whys = {"exits": "status 3 (no licence)", "bad_unit": "'furlongs'", "twice_declared": "mp_busy_percent"}
    assert done.code == 3 and "connector array" in done.err and whys[fault] in done.err, done.err
    assert "Traceback" not in done.err


def test_a_program_that_is_not_there_refuses_the_run(tmp_path: Path) -> None:
    done = run(alone(tmp_path, "  array: { program: /nonexistent/array }\n"), tmp_path / "runs")
    assert done.code == 3 and "connector array" in done.err and "/nonexistent/array" in done.err, done.err


def test_ctrl_c_while_a_connector_hangs_ends_the_run(tmp_path: Path) -> None:
    """It neither answers nor exits: it is killed. Nothing of asyncio's own is printed."""
    path = str(tmp_path / "data")
    steps = "go: { name: one, measure: 60s }"
    words = ["--fault", "silent", "--fault", "stays", "--after", "1"]
    one = f"  array: {{ program: {program({'00:01': ldev(path, '1-1', rate=10)}, *words)}, join: path }}\n"
    process = start(alone(tmp_path, one, steps), tmp_path / "runs")
    try:
        folder = wait_until_measuring(tmp_path / "runs")
        gathers = folder / STEP / "gathers.csv"
        wait_until(lambda: gathers.exists() and "busy" in gathers.read_text(), "the connector hangs")
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130 and "exception" not in err and "Traceback" not in err, out + err


def test_ctrl_c_while_a_connector_does_not_start_again(tmp_path: Path) -> None:
    """Between two steps: the new process never says a word."""
    died = tmp_path / "died"
    ldevs = {"00:01": ldev(str(tmp_path / "data"), "1-1", rate=10)}
    first = shlex.join([sys.executable, "-IS", str(ARRAY), json.dumps(ldevs), "--fault", "dies", "--after", "1"])
    again = f"test -e {died} && exec sleep 1000; touch {died}; exec {first}"
    words = json.dumps(shlex.join(["sh", "-c", again]))
    connectors = f"  array: {{ program: {words}, join: path }}\n"
    process = start(alone(tmp_path, connectors, "go: one, go: two"), tmp_path / "runs")
    try:
        log = "*/log/connector.array.log"
        hangs = lambda: any(path.read_text().count("-> sh -c") == 2 for path in (tmp_path / "runs").glob(log))  # noqa: E731
        wait_until(hangs, "the connector is started again")
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=15)  # of 30 s for its config
    finally:
        process.kill()
    assert process.returncode == 130 and "Traceback" not in err, out + err


# What two hosts read of themselves.

TWO = """\
name: two
engine: {{ threads: 1 }}
hosts: [ {{ name: a, launcher: local }}, {{ name: b, launcher: local }} ]
luns: {{ select: [ {{ host: a, path: {paths[0]} }}, {{ host: b, path: {paths[1]} }} ] }}
workloads:
  slow: {{ iops: 100, maxtags: 4, select: {{ host: a }} }}
  fast: {{ iops: 300, maxtags: 4, select: {{ host: b }} }}
rollups: [ host ]
defaults: {{ subinterval: 0.5s, warmup: 0.5s, disturbed: keep }}
steps: [ go: {{ name: one, measure: 4s, slo: [ {{ metric: host.disk_reads_per_s, at_least: 300 }} ] }} ]
"""


@needs_loops
def test_the_readings_of_hosts_come_with_their_results(tmp_path: Path) -> None:
    with loops(2) as paths:
        done = run(written(tmp_path, TWO.format(paths=paths)), tmp_path / "runs")
    (whole,) = done.rows("summary.all.csv")
    assert done.code in (0, 8) and is_fair(whole["reasons"]), done.out + done.err
    assert not list(done.folder.glob("log/connector*")), "there is no second process"

    # One file for each element type, and none for each rollup instance.
    files = [path.relative_to(done.folder / STEP) for path in (done.folder / STEP).rglob("host.*.csv")]
    assert {path.parent.name for path in files} == {"connectors"}
    assert {"host.disk.csv", "host.cpu.csv", "host.memory.csv"} <= {path.name for path in files}
    assert not list((done.folder / STEP).glob("*/*.host.*.csv"))

    # Each host has its own disk's counters.
    reads = elements(done, "connectors/host.disk.csv", column="reads_per_s")
    disks = {f"{host}:{Path(path).name}": rate for host, path, rate in zip("ab", paths, (100, 300), strict=True)}
    for disk, rate in disks.items():
        rates = [row[disk] for k, row in reads.items() if k >= 1]
        assert statistics.median(rates) == pytest.approx(rate, rel=0.1)
    values = {
        row["rollup_instance"]: float(row["value"])
        for row in done.rows("connectors.csv")
        if row["metric"] == "host.disk_reads_per_s"
    }
    assert values == pytest.approx({"all": 400.0, "a": 100.0, "b": 300.0}, rel=0.1)

    rows = done.rows(f"{STEP}/gathers.csv")
    read = [row for row in rows if row["state"] == "gathered"]
    assert {row["host"] for row in read} == {"a", "b"}
    assert len(read) > len(rows) / 2, "a busy machine may not read within 100 ms after a boundary"
    for row in read:
        assert 0 <= float(row["skew_ms"]) < 500


# A connector's metric as focus metric.

DRIVEN = """\
name: driven
engine: {{ threads: 1 }}
luns: {{ paths: [ {path} ] }}
connectors:
  array: {{ program: {program}, join: path, deadline: 75% }}
  host: off
workloads: {{ w: {{ iops: 200, maxtags: 4 }} }}
defaults: {{ subinterval: 0.5s, warmup: 0.5s, disturbed: keep }}
steps: [ go: {{ name: one, {step} }} ]
"""


def driven(tmp_path: Path, path: str, step: str) -> Finished:
    text = DRIVEN.format(path=path, program=program({"00:01": ldev(path, "1-1")}), step=step)
    return run(written(tmp_path, text), tmp_path / "runs", timeout_s=150)


@needs_loops
def test_thresholds_on_a_connectors_metric(tmp_path: Path, loop_lun: str) -> None:
    """200 IOPS at 100 us each are 2 %, of which one threshold is met and the other is missed."""
    both = ", ".join(f"{{ metric: array.mp_busy_percent, at_most: {limit} }}" for limit in ("50%", "0.1%"))
    done = driven(tmp_path, loop_lun, f"measure: 3s, slo: [ {both} ]")
    (whole,) = done.rows("summary.all.csv")
    (missed,) = [reason for reason in whole["reasons"].split("; ") if "array.mp_busy_percent" in reason]
    assert "array.mp_busy_percent at most 0.1 %: " in missed and done.code in (5, 8), done.out
    (row,) = [row for row in done.rows("connectors.csv") if row["metric"] == "array.mp_busy_percent"]
    assert float(row["value"]) == pytest.approx(2.0, rel=0.1) and row["missing"] == "0"


@pytest.mark.parametrize(
    "step",
    [
        pytest.param("measure: { metric: array.port_ios_per_s, accuracy: 20%, min: 3s, timeout: 30s }", id="measure"),
        pytest.param(
            "steady: { criterion: snia, metric: array.port_ios_per_s, window: 5s, timeout: 40s }",
            id="steady",
            marks=pytest.mark.long,
        ),
    ],
)
@needs_loops
def test_a_measurement_of_a_connectors_metric(tmp_path: Path, loop_lun: str, step: str) -> None:
    done = driven(tmp_path, loop_lun, step)
    (whole,) = done.rows("summary.all.csv")
    assert done.code in (0, 8) and is_fair(whole["reasons"]), done.out
    (row,) = [
        row
        for row in done.rows("connectors.csv")
        if row["metric"] == "array.port_ios_per_s" and row["rollup_type"] == "all"
    ]
    assert float(row["value"]) == pytest.approx(200, rel=0.15)


@needs_loops
def test_a_load_that_holds_a_connectors_metric(tmp_path: Path, loop_lun: str) -> None:
    pid = (
        "pid: { metric: array.mp_busy_percent, target: 4%, low_iops: 100, low_target: 1%,"
        " high_iops: 1000, high_target: 10%, timeout: 60s }"
    )
    done = driven(tmp_path, loop_lun, f"control: {{ {pid} }}, measure: 4s")
    (whole,) = done.rows("summary.all.csv")
    assert done.code in (0, 6, 8), done.out + done.err
    assert float(whole["overall_iops"]) == pytest.approx(400, rel=0.25), done.out
