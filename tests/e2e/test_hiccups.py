"""Hiccups of real hosts, beside what their devices counted: they cost nothing that was measured."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.support import devices
from tests.support.faults.bench import HOSTS, PLAN, Bench
from tests.support.faults.devices import Counted
from tests.support.faults.kinds import Injected, Kind
from tests.support.lab import Lab
from tests.support.real_runs import (
    Finished,
    hosts_yaml,
    names_of,
    only_late,
    presence,
    start,
    wait_until_measuring,
    written,
)

MEASURE = 14
ABSENT = {"host_late", "host_lost", "host_missing"}
TEXT = (
    PLAN.replace("lease: 5s", "lease: 10s")
    .replace("subinterval: 0.5s, warmup: 1s, measure: 4s", f"subinterval: 1s, warmup: 1s, measure: {MEASURE}s")
    .replace("steps: [ go: one, go: two ]", "steps: [ go: one ]")
)


@pytest.mark.slow
def test_a_frozen_slave_and_a_link_that_is_cut_for_seconds_cost_nothing(faulty_hosts: Bench) -> None:
    """At subintervals of 1 s; the third host has neither."""
    frozen, cut, untouched = HOSTS
    finished = check(faulty_hosts, [Injected(Kind.FREEZE, frozen, 3.3, 2.2), Injected(Kind.CUT, cut, 8.0, 3.0)])
    reasons = {row["host"]: row["reasons"] for row in finished.rows("summary.host.csv")}
    assert only_late(reasons[untouched]), reasons
    assert "overrun[note]" in reasons[frozen] and "no thread of its slave ran for up to 2," in reasons[frozen], reasons


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_random_hiccups_cost_nothing(faulty_hosts: Bench, seed: int) -> None:
    """Three in a run, of 0.5 to 4.5 s each, on any host; they may overlap."""
    draw = random.Random(seed)
    kinds = (Kind.FREEZE, Kind.CUT, Kind.DELAY)
    check(
        faulty_hosts,
        sorted(
            (
                Injected(kind, draw.choice(HOSTS), draw.uniform(0.0, MEASURE - 5.0), draw.uniform(0.5, 4.5))
                for kind in draw.sample(kinds, 3)
            ),
            key=lambda one: one.at_s,
        ),
    )


def check(hosts: Bench, faults: list[Injected]) -> Finished:
    """Run with these; every host is in, from the first subinterval to the last, with what its device counted."""
    finished, counted = hosts.run(faults, TEXT)
    assert finished is not None
    lost_nothing(finished, counted, HOSTS, f"{faults}\n{finished.out}{finished.err}")
    return finished


def lost_nothing(finished: Finished, counted: Counted, hosts: Iterable[str], said: str) -> None:
    blamed = {row["host"] for row in finished.rows("events.csv") if row["kind"] in ("late", "lost", "ended", "absent")}
    assert not blamed, said
    rows = finished.rows("summary.host.csv")
    assert [row["host"] for row in rows] == [*hosts]
    for row in rows:
        host = row["host"]
        assert presence(row) == "1/1" and not ABSENT & names_of(row["reasons"]), said
        assert int(row["last_subinterval"]) - int(row["first_subinterval"]) + 1 >= MEASURE, said
        start, end = (datetime.fromisoformat(row[name]).timestamp() for name in ("start_utc", "end_utc"))
        least, most = (
            counted.between(host, start + 0.02, end - 0.02)[0],
            counted.between(host, start - 0.02, end + 0.02)[1],
        )
        done = int(row["overall_service_count"]) + int(row["errors"])
        assert least - 2 <= done <= most + 2, (host, least, most, done, said)


OVER_SSH = """\
name: ssh
engine: {{ threads: 1 }}
lease: 10s
hosts:
{hosts}
  - local
luns: {{ select: [ {luns} ] }}
workloads: {{ w: {{ iosequencer: random_steady, iops: 100, maxtags: 16, blocksize: 4KiB }} }}
connectors: {{ host: off }}
rollups: [ host ]
defaults: {{ subinterval: 1s, warmup: 1s, measure: {measure}s, disturbed: keep }}
steps: [ go: one ]
"""


@contextlib.contextmanager
def stopped(pids: Iterable[int]) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.slow
def test_over_ssh_a_frozen_slave_a_frozen_sshd_and_a_cut_cable_cost_nothing(tmp_path: Path, namespaces: Lab) -> None:
    """For up to 3 s and at the same time, each on a host of its own; the fourth is left alone."""
    hosts = [*(host.name for host in namespaces.hosts), "local"]
    with contextlib.ExitStack() as undo:
        disks = {host: undo.enter_context(devices.loop(64 << 20)) for host in hosts}
        luns = ", ".join(f"{{ host: {host}, path: {path} }}" for host, path in disks.items())
        specs = hosts_yaml([host.spec() for host in namespaces.hosts])
        plan = written(tmp_path, OVER_SSH.format(hosts=specs, luns=luns, measure=MEASURE))
        with Counted(disks) as counted:
            process = start(plan, tmp_path / "runs")
            folder = wait_until_measuring(tmp_path / "runs")
            frozen, behind, cut = namespaces.hosts
            hello = (folder / "log" / f"{frozen.name}.log").read_text().partition('"type":"hello"')[2]
            slave = int(hello.partition('"pid":')[2].partition(",")[0])
            sshd = [one.pid for one in behind.sshds[0].sessions() if one.name().startswith("sshd")]
            assert slave in [one.pid for one in frozen.sshds[0].sessions()] and sshd
            with cut.unplugged(), stopped(sshd):
                with stopped([slave]):
                    time.sleep(2.2)
                time.sleep(0.8)
            out, err = process.communicate(timeout=60)
        finished = Finished(process.returncode, out, err, tmp_path / "runs")
        lost_nothing(finished, counted, hosts, out + err)
    reasons = {row["host"]: row["reasons"] for row in finished.rows("summary.host.csv")}
    assert only_late("; ".join(names_of(reasons["local"]) - {"unwritten_blocks"})), reasons
    assert "no thread of its slave ran for up to 2," in reasons[frozen.name], reasons
