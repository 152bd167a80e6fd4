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


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "tags"), [("null", 32), *((backend, 1) for backend in REAL)])
def test_what_waits_for_a_thread_without_a_core_is_counted(backend: str, tags: int, image: Path) -> None:
    """Flat out beside others a thread has a part of its core; I/Os that are in flight meanwhile are found late."""
    core = max(os.sched_getaffinity(0))
    engine = Engine(backend, [core])
    try:
        step = Drive(engine)
        step.create(0, step.lun(image), iops=-1.0, maxtags=tags)
        with wanted_core(core):
            step.go([0], 500 * MS)
            engine.stop(3)
            step.finish()
    finally:
        assert engine.close(15.0) == []
    length_ns = sum(result.raw.length_ns for result in step.results)
    late_ns = sum(result.thread(ThreadCount.HARVEST_LATE_SUM) for result in step.results)
    assert late_ns > 0.01 * length_ns
    if backend != "null":  # its I/O takes no time, so that what is found late is not longer than it should be
        service_ns = sum(result.series(SERVICE, Moment.SUM) for result in step.results)
        assert late_ns < 3 * service_ns  # it is sampled
    assert step.total(Count.COMPLETED) > 0


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
