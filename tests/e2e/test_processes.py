"""Runs whose hosts are driven by real processes beside the controller: what ends whom."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.fork_server import Command
from tests.support.real_runs import Finished, answered, only_late, presence, wait_for_line, written
from tests.support.waits import PATIENCE_S, is_running, none_runs, wait_until, wait_until_ended

pytestmark = pytest.mark.slow

PLAN = """\
name: processes
engine: { threads: 1, backend: "null" }
lease: 2s
hosts:
  - { name: a, launcher: local }
  - { name: b, launcher: local }
  - { name: c, launcher: local }
luns: { create: { path: "PATH/{host}", size: 1MiB } }
workloads: { w: { iops: 200, maxtags: 8, fraction_read: 50% } }
connectors: { host: off }
rollups: [ host ]
defaults: { subinterval: 0.5s, warmup: 0.5s, measure: MEASURE, disturbed: keep }
steps: [ go: one ]
"""


class Going:
    """A run under way: `a` and `b` driven by one process, `c` by another."""

    def __init__(self, process: Command, root: Path) -> None:
        self.process, self.root = process, root
        self.of = psutil.Process(process.pid)
        wait_for_line(process)
        self.drivers = sorted(self.of.children(), key=lambda one: len(one.children()), reverse=True)
        self.slaves = [driver.children() for driver in self.drivers]

    def ended(self) -> Finished:
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return Finished(self.process.returncode, out, err, self.root)


@contextmanager
def going(tmp_path: Path, measure: str, steps: str = "go: one") -> Iterator[Going]:
    text = PLAN.replace("PATH", str(tmp_path)).replace("MEASURE", measure).replace("go: one", steps)
    plan = written(tmp_path, text)
    with Command(str(plan), str(tmp_path / "runs"), program="split_run") as process:
        one = Going(process, tmp_path / "runs")
        assert [len(slaves) for slaves in one.slaves] == [2, 1]
        yield one


STARVED_S = 30.0  # a slave that receives nothing ends after this, too


def living(of: psutil.Process) -> int:
    """Its children that run."""
    return sum(map(is_running, of.children()))


def test_a_run_with_driver_processes_adds_up(tmp_path: Path) -> None:
    with going(tmp_path, "2s") as run:
        done = run.ended()
    assert done.code in (0, 8), done.out + done.err
    (whole,) = done.rows("summary.all.csv")
    parts = done.rows("summary.host.csv")
    assert presence(whole) == "3/3" and len(parts) == 3 and only_late(whole["reasons"]), whole["reasons"]
    for column in ("due", "overall_service_count", "read_service_count"):
        assert float(whole[column]) == sum(float(part[column]) for part in parts)
    logs = [(done.folder / "log" / f"{host}.log").read_text() for host in "abc"]
    assert all('"type":"go"' in log and '"type":"result"' in log for log in logs)


def test_a_killed_driver_process_loses_only_its_hosts(tmp_path: Path) -> None:
    with going(tmp_path, "3s") as run:
        run.drivers[0].kill()
        wait_until_ended(*run.slaves[0])
        assert not none_runs(*run.slaves[1])
        done = run.ended()
    assert done.code in (7, 8), done.out + done.err  # 8: the machine was busy, too
    lost = {row["host"]: row["text"] for row in done.rows("events.csv") if row["kind"] == "lost"}
    said = "its driver process ended: it was killed by SIGKILL, as the kernel does when memory runs out"
    assert lost == dict.fromkeys("ab", said)
    (whole,) = done.rows("summary.all.csv")
    assert whole["verdict"] != "valid" and presence(done.rows("step0000.one/all/all.csv")[-1]) == "1/3"


def test_driver_processes_leave_signals_to_the_controller(tmp_path: Path) -> None:
    with going(tmp_path, "60s") as run:
        for one in run.drivers:
            one.send_signal(signal.SIGINT)
            one.send_signal(signal.SIGTERM)
        os.killpg(run.process.pid, signal.SIGINT)
        done = run.ended()
        assert done.code == 130, done.out + done.err
        assert none_runs(*run.drivers, *run.slaves[0], *run.slaves[1])


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_no_host_outlives_its_controller(tmp_path: Path, how: signal.Signals) -> None:
    """A frozen one is gone after the lease, here 2 s."""
    with going(tmp_path, "60s") as run:
        run.process.send_signal(how)
        wait_until_ended(*run.drivers, *run.slaves[0], *run.slaves[1], seconds=STARVED_S - 5)


def test_a_frozen_driver_process_loses_only_its_hosts(tmp_path: Path) -> None:
    with going(tmp_path, "3s") as run:
        run.drivers[0].suspend()
        done = run.ended()
        assert none_runs(*run.drivers, *run.slaves[1])
        wait_until_ended(*run.slaves[0], seconds=STARVED_S - 5)  # with their input, which its end closed
    assert done.code in (7, 8), done.out + done.err
    lost = {row["host"]: row["text"] for row in done.rows("events.csv") if row["kind"] == "lost"}
    assert set(lost) == set("ab") and all("driver process" in words for words in lost.values()), lost
    assert presence(done.rows("step0000.one/all/all.csv")[-1]) == "1/3"


@pytest.mark.realtime
@pytest.mark.long
def test_hosts_of_a_driver_process_that_is_gone_come_back_driven_by_the_controller(tmp_path: Path) -> None:
    with going(tmp_path, "5s", "go: one, go: two") as run:
        run.drivers[0].kill()
        wait_until(lambda: living(run.of) == 3, "the controller has two slaves and a driver process")
        done = run.ended()
    assert {row["host"] for row in done.rows("events.csv") if row["kind"] == "rejoined"} == {"a", "b"}
    assert presence(done.rows("step0001.two/all/all.csv")[-1]) == "3/3"


def test_a_host_of_a_driver_process_comes_back_driven_by_it(tmp_path: Path) -> None:
    with going(tmp_path, "10m", "go: one, go: { name: two, measure: 1s }") as run:
        run.slaves[0][0].kill()
        wait_until_ended(run.slaves[0][0])
        wait_until(lambda: living(run.drivers[0]) == 2, "the driver process has two slaves again")
        assert answered("skip").returncode == 0
        done = run.ended()
    assert len([row for row in done.rows("events.csv") if row["kind"] == "rejoined"]) == 1
    assert presence(done.rows("step0001.two/all/all.csv")[-1]) == "3/3"
    assert not [path for path in tmp_path.iterdir() if path.is_file() and path.suffix != ".yaml"], "files are left"
