"""A real slave that is given up while it is frozen: once it thaws, it does no I/O to speak of, and ends.

One on the controller's machine is killed instead.
"""

import asyncio
import os
import signal
import time
from array import array
from pathlib import Path

import psutil
import pytest

from ivypy.master.hosts.bundle import Bundle
from ivypy.master.hosts.driver import Driver, Event, Lost
from ivypy.master.hosts.host_spec import HostSpec
from ivypy.master.hosts.launch import open_pipe
from ivypy.master.hosts.login_throttle import LoginThrottle
from ivypy.master.hosts.pipe_driver import PipeDriver
from ivypy.protocol import messages as m
from ivypy.protocol.parameters import Parameters
from ivypy.protocol.payload import Array, ArrayType, EngineOptions, WorkloadToCreate
from tests.support.lab import Lab
from tests.support.stand_in_slave import real_slave
from tests.support.waits import is_running, wait_until_ended

pytestmark = pytest.mark.slow

IOPS = 400
LEASE_S = 6.0  # longer than the freeze: it is not the lease that ends the step


@pytest.fixture
def bundle() -> Bundle:
    return real_slave()


def u32(*numbers: int) -> Array:
    return Array(ArrayType.U32, array("I", numbers).tobytes())


async def driving(spec: HostSpec, bundle: Bundle, lun: Path) -> tuple[Driver, psutil.Process]:
    """A host that reads from a file."""
    pipe = await open_pipe(spec, [bundle], LoginThrottle(), lambda text: None)
    inbox: asyncio.Queue[tuple[Driver, Event]] = asyncio.Queue()
    driver = PipeDriver("h1", pipe, inbox, time.monotonic_ns)
    driver.tasks = [asyncio.create_task(driver.drive()), asyncio.create_task(driver.probe())]  # type: ignore[attr-defined]
    await driver.wait_hello()
    assert driver.hello is not None
    await driver.request(m.Prepare, engine=EngineOptions("libaio", 1), lease_ns=round(LEASE_S * 1e9))
    workload = WorkloadToCreate(0, "h1+lun+w", str(lun), None, Parameters(iops=float(IOPS)), 4, 4096)
    await driver.request(m.CreateWorkloads, workloads=(workload,))
    assert driver.clock
    start_ns = driver.clock.to_local(time.monotonic_ns() + 200_000_000)
    await driver.request(m.Go, start_ns=start_ns, length_ns=10**9, order=u32(0), classes=u32(0))
    return driver, psutil.Process(driver.hello.pid)


def read_bytes(process: psutil.Process) -> int:
    """From devices, by the kernel's count; what it was when the process was last there."""
    return process.io_counters().read_bytes


@pytest.mark.realtime
async def test_a_frozen_slave_that_was_given_up_does_nothing_when_it_thaws(
    lab: Lab, bundle: Bundle, tmp_path: Path
) -> None:
    lun = tmp_path / "lun"
    with lun.open("wb") as file:
        file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())
    driver, slave = await driving(lab.hosts[0].spec(), bundle, lun)
    try:
        before = read_bytes(slave)
        await asyncio.sleep(1)
        if read_bytes(slave) == before:
            pytest.skip("the kernel does not count reads of this file system")
        os.kill(slave.pid, signal.SIGSTOP)
        frozen = time.monotonic()
        done = read_bytes(slave)
        while not isinstance((await driver._inbox.get())[1], Lost):
            pass
        assert driver.lost == "it did not answer for 3 s" and time.monotonic() - frozen < LEASE_S - 1
        await asyncio.sleep(max(frozen + 5 - time.monotonic(), 0))
        with_signal = time.monotonic()
        while is_running(slave) and time.monotonic() - with_signal < 4:
            try:
                os.kill(slave.pid, signal.SIGCONT)
                done_after = read_bytes(slave)
            except (psutil.Error, OSError):
                break
            assert done_after - done <= IOPS * 4096 // 2, "less than half a second of I/O"
            await asyncio.sleep(0.02)
        wait_until_ended(slave)
    finally:
        for task in driver.tasks:  # type: ignore[attr-defined]
            task.cancel()
        await driver.close()
