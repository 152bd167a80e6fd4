"""Late reaping: what a thread without a core reaps late is counted, whether it slept or worked.

That the figures add up is shown exactly in simulated time (test_core.py: preempted, late_for_a_tag); here, that the
kernel's own figures are what they are taken for.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ivypy.protocol.counters import LATE, LATENESS, PUNCTUAL, RESPONSES, SERVICES, Count, Kind, Moment, ThreadCount
from ivypy.slave.engine._engine import Engine
from tests.support.engine import MS, REAL, Drive
from tests.support.hogs import wanted_core


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(os.urandom(16 << 20))  # what was never written is read without the disk
    return path


@pytest.fixture
def memory_image() -> Iterator[Path]:
    """A file whose reads are done by the thread that asks for them: no worker of the kernel waits for a core, too."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = Path(folder) / "image"
        path.write_bytes(os.urandom(16 << 20))
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
        except OSError:
            pytest.skip("this kernel's tmpfs has no O_DIRECT (Linux 6.6)")
        yield path


def beside(image: Path, backend: str, tags: int, hogs: int, iops: float = -1.0) -> Drive:
    """On a core that so many others want, for two seconds."""
    core = max(os.sched_getaffinity(0))
    engine = Engine(backend, [core])
    try:
        step = Drive(engine)
        step.create(0, step.lun(image), iops=iops, maxtags=tags)
        with wanted_core(core, hogs):
            step.go([0], 500 * MS)
            engine.stop(3)
            step.finish()
    finally:
        assert engine.close(15.0) == []
    return step


def service_ns(step: Drive) -> int:
    return sum(result.series(SERVICES[0], Moment.SUM) for result in step.results)


def found_late_ns(step: Drive) -> int:
    """By how much completions were looked for late, in all."""
    return sum(result.thread(ThreadCount.REAP_DELAY_SUM) for result in step.results)


@pytest.mark.realtime
@pytest.mark.slow
def test_completions_that_wait_for_a_preempted_thread_count_as_reap_delay(memory_image: Path) -> None:
    """Beside others a thread has a part of its core; by what the I/Os in flight take longer, they are found late."""
    alone, wanted = beside(memory_image, REAL[0], 1, 0), beside(memory_image, REAL[0], 1, 3)
    longer_ns, later_ns = (
        total_ns(wanted) / wanted.total(Count.COMPLETED) - total_ns(alone) / alone.total(Count.COMPLETED)
        for total_ns in (service_ns, found_late_ns)
    )
    assert later_ns == pytest.approx(longer_ns, rel=0.2)


@pytest.mark.slow
def test_reap_delay_is_seen_on_a_backend_without_service_time(image: Path) -> None:
    assert found_late_ns(beside(image, "null", 32, 3)) > 0


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
    assert all(result.thread(ThreadCount.REAP_DELAY_SUM) == 0 for result in step.results)
    assert all(result.thread(ThreadCount.REAP_DELAY_P99) == 0 for result in step.results)


@pytest.mark.parametrize(("backend", "iops"), [("null", 200_000.0), ("libaio", 5_000.0)])
def test_late_ios_are_counted_with_and_without_their_lateness(backend: str, iops: float, image: Path) -> None:
    """Whatever made them late: what the pairs differ by is the lateness, but for what is too little to be paired."""
    engine = Engine(backend, [-1])
    try:
        step = Drive(engine)
        step.create(0, step.lun(image), iops=iops, maxtags=8)
        step.go([0], 100 * MS)
        engine.stop(3)
        step.finish()
    finally:
        assert engine.close(15.0) == []

    def total(series: int, moment: Moment) -> int:
        return sum(result.series(series, moment) for result in step.results)

    late, responses = total(LATE, Moment.COUNT), sum(total(RESPONSES[kind], Moment.COUNT) for kind in Kind)
    response_ns = sum(total(RESPONSES[kind], Moment.SUM) for kind in Kind)
    paired_ns = total(LATE, Moment.SUM) - total(PUNCTUAL, Moment.SUM)
    in_flight = total(LATENESS, Moment.COUNT) - responses  # at the end
    assert late == total(PUNCTUAL, Moment.COUNT) <= responses and 0 <= in_flight <= 8
    assert late > 0 or backend != "null"
    most_ns = max(result.series(LATENESS, Moment.MAX) for result in step.results)
    unpaired_ns = total(LATENESS, Moment.SUM) - paired_ns
    assert 0 <= unpaired_ns <= response_ns / 32 + responses * 1000 + in_flight * most_ns
