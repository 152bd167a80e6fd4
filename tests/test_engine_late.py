"""Late harvests: what a thread without a core finds late is counted, whether it slept or worked."""

import os
from pathlib import Path

import pytest

from ivypy.protocol.counters import SERVICE, Count, Moment, ThreadCount
from ivypy.slave.engine._engine import Engine
from tests.engine import MS, REAL, Drive
from tests.hogs import wanted_core


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(os.urandom(16 << 20))  # what was never written is read without the disk
    return path


def beside(image: Path, backend: str, tags: int, hogs: int) -> tuple[float, float]:
    """Flat out on a core that so many others want: (mean service time, how late a completion was looked for), in ns."""
    core = max(os.sched_getaffinity(0))
    engine = Engine(backend, [core])
    try:
        step = Drive(engine)
        step.create(0, step.lun(image), iops=-1.0, maxtags=tags)
        with wanted_core(core, hogs):
            step.go([0], 500 * MS)
            engine.stop(3)
            step.finish()
    finally:
        assert engine.close(15.0) == []
    late_ns = sum(result.thread(ThreadCount.HARVEST_LATE_SUM) for result in step.results)
    service_ns = sum(result.series(SERVICE, Moment.SUM) for result in step.results)
    completed = step.total(Count.COMPLETED)
    return service_ns / completed, late_ns / completed


@pytest.mark.slow
@pytest.mark.parametrize("tags", [1, 8])
@pytest.mark.parametrize("backend", REAL)
def test_what_waits_for_a_thread_without_a_core_is_counted(backend: str, tags: int, image: Path) -> None:
    """Beside others a thread has a part of its core; by what the I/Os in flight take longer, they are found late."""
    alone_ns, _ = beside(image, backend, tags, 0)
    service_ns, late_ns = beside(image, backend, tags, 3)
    assert 0.4 * (service_ns - alone_ns) <= late_ns <= service_ns


@pytest.mark.slow
def test_so_it_is_of_what_takes_no_time_itself(image: Path) -> None:
    _, late_ns = beside(image, "null", 32, 3)
    assert late_ns > 0


def test_a_sleep_that_finds_nothing_is_not_late(image: Path) -> None:
    engine = Engine("null", [-1])
    try:
        step = Drive(engine)
        step.create(0, step.lun(image), iops=0.0)
        step.go([0], 50 * MS)
        engine.stop(1)
        step.finish()
    finally:
        assert engine.close(15.0) == []
    assert all(result.thread(ThreadCount.HARVEST_LATE_SUM) == 0 for result in step.results)
    assert all(result.thread(ThreadCount.HARVEST_LATE_P99) == 0 for result in step.results)
