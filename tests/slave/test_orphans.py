"""No I/O outlives its master: seen in the device's own counters, whatever happens to controller, link or slave."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ivypy.protocol import messages as m
from ivypy.protocol.parameters import Parameters
from ivypy.protocol.payload import WorkloadToCreate
from ivypy.slave.engine._engine import now_ns
from tests.support.devices import FaultFs
from tests.support.loop_devices import loop_device, needs_loops
from tests.support.slave_client import Client, Gone
from tests.support.waits import wait_until

pytestmark = [needs_loops, pytest.mark.slow]

STREAM = Parameters(iops=2000.0, maxtags=4)


@pytest.fixture
def loop(shm: Path) -> Iterator[str]:
    with loop_device(shm) as path:
        yield path


def reads(loop: str) -> int:
    """I/Os that the device has completed, by its own count; those in flight would be added within a moment."""
    stat = Path(f"/sys/block/{Path(loop).name}/stat").read_text().split()
    return int(stat[0])


def still(loop: str, seconds: float = 0.4) -> bool:
    """Whether the device does nothing for so long."""
    before = reads(loop)
    time.sleep(seconds)
    return reads(loop) == before


def running(slave: Client, loop: str) -> None:
    """A step that reads from the device."""
    slave.prepare("libaio")
    slave.create(loop, STREAM)
    slave.ask(m.ClockProbe)
    slave.go(0)
    before = reads(loop)
    wait_until(lambda: reads(loop) > before, "the step reads")


def test_no_io_of_a_slave_that_thaws_after_its_lease(loop: str) -> None:
    with Client(lease_s=1.0) as slave:
        running(slave, loop)
        heard = slave.ask(m.ClockProbe)
        assert isinstance(heard, m.ClockReading)
        os.kill(slave.process.pid, signal.SIGSTOP)
        while now_ns() < heard.received_ns + 1_200_000_000:
            time.sleep(0.05)
        before = reads(loop)
        slave.send(m.ClockProbe)
        os.kill(slave.process.pid, signal.SIGCONT)
        assert slave.until(m.Stopped).reason is m.StopReason.LEASE
        assert reads(loop) == before, "not one, even in the first instant after the thaw"


def test_no_io_after_the_lease_of_a_silent_link(loop: str) -> None:
    with Client(lease_s=1.0) as slave:
        running(slave, loop)
        assert slave.until(m.Stopped).reason is m.StopReason.LEASE
        assert still(loop)
        assert slave.process.poll() is None


CONTROLLER = """
import sys, time
from tests.support.slave_client import Client
from tests.slave.test_orphans import running
with Client() as slave:
    running(slave, sys.argv[1])
    print(slave.process.pid, flush=True)
    time.sleep(60)
"""


def test_no_io_after_the_controller_was_killed(loop: str) -> None:
    root = Path(__file__).parents[2]
    controller = subprocess.Popen([sys.executable, "-c", CONTROLLER, loop], stdout=subprocess.PIPE, cwd=root, text=True)
    assert controller.stdout is not None
    with controller.stdout:
        pid = int(controller.stdout.readline())
    gone = os.pidfd_open(pid)
    try:
        controller.kill()
        controller.wait()
        assert select.select([gone], [], [], 60)[0], "the slave ends with its input"
        assert still(loop)
    finally:
        os.close(gone)


@pytest.mark.parametrize("how", ["its input ends", "a signal"])
def test_a_lun_that_hangs_while_it_is_opened_does_not_delay_the_end(how: str, faulty_lun: FaultFs) -> None:
    """The process is the kernel's until the device answers; what it has to say and do is over before."""
    with Client() as slave:
        slave.prepare("libaio")
        faulty_lun.hang()
        try:
            workload = WorkloadToCreate(0, "h+lun+w", faulty_lun.device, None, STREAM, 4, 4096)
            slave.send(m.CreateWorkloads, workloads=(workload,))
            while not busy(faulty_lun.device):
                slave.ask(m.ClockProbe)
            if how == "a signal":
                slave.process.terminate()
                assert "its last command is still running" in slave.until(m.DyingWords).words
            else:
                slave.end_input()
            with pytest.raises(Gone):
                slave.hear()
        finally:
            faulty_lun.resume()
        slave.gone()


def busy(device: str) -> bool:
    """Whether the device is asked for anything that it has not done."""
    return any(map(int, Path(f"/sys/block/{Path(device).name}/inflight").read_text().split()))
