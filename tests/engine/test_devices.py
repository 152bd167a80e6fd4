"""The engine on real devices with real faults; fio beside it where it can be compared."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from math import sqrt
from pathlib import Path

import pytest

from ivypy.protocol.counters import LATENESS, RESPONSES, SERVICES, Count, Moment, ThreadCount
from ivypy.protocol.histogram import lower_edge
from ivypy.slave.engine._engine import now_ns
from tests.support.devices import FaultFs, Throttle
from tests.support.engine import MS, REAL, Drive, S, drive, fields
from tests.support.fio import fio
from tests.support.waits import PATIENCE_S, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(params=REAL)
def aio(request: pytest.FixtureRequest) -> Iterator[Drive]:
    """To be asked for after devices, so that it is closed before they are undone."""
    yield from drive(request.param)


# What takes long, with one of them always, and with the others in the long tier.
ONE_AND_LONG = pytest.mark.parametrize(
    "aio", [way if way == "libaio" else pytest.param(way, marks=pytest.mark.long) for way in REAL], indirect=True
)


def merged(step: Drive, series: int, results: slice = slice(None)) -> dict[int, int]:
    """The histogram of a series over all results, or some of them, and all classes."""
    total: dict[int, int] = {}
    for result in step.results[results]:
        for of_class in result.histograms:
            for bucket, count in of_class[series].items():
                total[bucket] = total.get(bucket, 0) + count
    return total


def _longer(histogram: dict[int, int], ns: float) -> int:
    """How many took longer, by whole buckets."""
    return sum(count for bucket, count in histogram.items() if lower_edge(bucket) > ns)


def percentile(histogram: dict[int, int], share: float) -> float:
    """The middle of the bucket that holds it, in nanoseconds."""
    wanted, seen = share * sum(histogram.values()), 0
    for bucket in sorted(histogram):
        seen += histogram[bucket]
        if seen >= wanted:
            return (lower_edge(bucket) + lower_edge(bucket + 1)) / 2
    raise AssertionError("an empty histogram")


def mean(step: Drive, series: int) -> float:
    return sum(r.series(series, Moment.SUM) for r in step.results) / sum(r.series(series) for r in step.results)


def run(step: Drive, seconds: float) -> float:
    """Runs instance 0 for so long: its IOPS."""
    step.go([0], int(seconds * S / 4))
    step.engine.stop(3)
    step.finish()
    return step.total(Count.COMPLETED) / sum(result.raw.length_ns for result in step.results) * S


@pytest.mark.realtime
@ONE_AND_LONG
def test_a_paced_file_falls_due_exactly_and_is_submitted_in_time(aio: Drive, tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(os.urandom(64 << 20))
    aio.create(0, aio.lun(path), iops=5000.0, maxtags=16)
    run(aio, 3)
    assert abs(aio.total(Count.DUE) / 15_000 - 1) < 0.001
    assert aio.results[-1].total(Count.BACKLOG) <= 50  # what fell due in its last 10 ms
    assert percentile(merged(aio, LATENESS), 0.5) < 15_000


@ONE_AND_LONG
def test_a_stall_is_in_the_response_of_all_that_fell_due_meanwhile(faulty_lun: FaultFs, aio: Drive) -> None:
    aio.create(0, aio.lun(faulty_lun.device), iops=1000.0, maxtags=8)
    aio.go([0], S)
    aio.until(2)
    faulty_lun.hang()
    time.sleep(2)
    faulty_lun.resume()
    aio.engine.stop(7)
    aio.finish()
    response = merged(aio, RESPONSES[0])
    assert aio.total(Count.DUE) == 8000
    assert sum(response.values()) == aio.total(Count.COMPLETED)
    assert (
        aio.total(Count.COMPLETED) + aio.results[-1].total(Count.BACKLOG) + aio.results[-1].total(Count.IN_FLIGHT)
        == 8000
    )
    assert percentile(response, 0.99) >= 1.9 * S
    # All tags are in flight within 8 ms of the hang. In a result, which is of a second, no tag can wait so long twice.
    held = [_longer(merged(aio, SERVICES[0], slice(at, at + 1)), 1.9 * S) for at in range(len(aio.results))]
    assert sum(held) >= 1 and max(held) <= 8
    assert _longer(response, S) >= 900


def test_of_two_luns_on_a_thread_one_hangs_and_the_other_goes_on(
    faulty_lun: FaultFs, loop_lun: str, aio: Drive
) -> None:
    """That it keeps its rate is shown in simulated time (test_core.py: hung)."""
    aio.create(0, aio.lun(faulty_lun.device), iops=20_000.0, maxtags=256)
    aio.create(1, aio.lun(loop_lun), iops=2000.0, maxtags=16)
    aio.go([0, 1], 250 * MS)
    aio.until(1)
    faulty_lun.hang()
    try:
        aio.until(12)
    finally:
        faulty_lun.resume()
    hung = aio.results[7:12]
    assert hung[-1].counts[0, Count.OLDEST_IN_FLIGHT_NS] > S
    assert all(result.counts[0, Count.COMPLETED] == 0 for result in hung)
    # nr_requests of a loop device, and a batch that the kernel gave back
    assert all(result.counts[0, Count.IN_FLIGHT] <= 128 + 32 for result in hung)
    assert all(result.counts[0, Count.OLDEST_OUTSTANDING_NS] > S // 4 for result in hung)
    assert all(result.counts[1, Count.DUE] == 2000 * result.raw.length_ns // S for result in hung)
    assert sum(result.counts[1, Count.COMPLETED] for result in hung) > 0
    aio.engine.halt()
    assert aio.finish().uncaught == 0


@ONE_AND_LONG
def test_a_lun_that_hangs_at_the_end_delays_it_for_a_bounded_time(
    faulty_lun: FaultFs, loop_lun: str, aio: Drive
) -> None:
    aio.create(0, aio.lun(faulty_lun.device), iops=-1.0, maxtags=4)
    aio.create(1, aio.lun(loop_lun), iops=500.0)
    aio.go([0, 1], 500 * MS)
    aio.until(1)
    faulty_lun.hang()
    try:
        aio.until(2)
        asked = now_ns()
        aio.engine.halt()
        end = aio.finish(30)
        assert 9 * S < now_ns() - asked < 25 * S
        assert (end.uncaught, end.reason) == (4, "commanded")
        assert end.oldest_uncaught_ns > 10 * S
        with pytest.raises(OSError, match="4 I/Os of the instance have not come back"):
            aio.engine.delete(0)
        aio.go([1], 500 * MS)  # the rest goes on
        aio.engine.stop(1)
        assert aio.finish().uncaught == 0
        # As many as in a second, of which a stall of the machine may leave some.
        left = aio.results[-1].total(Count.BACKLOG) + aio.results[-1].total(Count.IN_FLIGHT)
        assert aio.total(Count.DUE) == 500
        assert 0 < aio.total(Count.COMPLETED) == aio.total(Count.DUE) - aio.total(Count.DROPPED) - left
    finally:
        faulty_lun.resume()


def test_errors_are_counted_by_errno_and_enter_no_latency(faulty_lun: FaultFs, aio: Drive) -> None:
    faulty_lun.tell(read_ppm=50_000)
    aio.create(0, aio.lun(faulty_lun.device), iops=2000.0, maxtags=8)
    run(aio, 4)
    errors = aio.total(Count.ERRORS)
    tried = errors + aio.total(Count.COMPLETED)
    assert abs(errors - tried / 20) < 5 * sqrt(tried / 20) + 1  # standard deviations
    assert {(number, code) for result in aio.results for number, code, _ in result.raw.faults} == {(0, errno.EIO)}
    assert sum(count for result in aio.results for _, _, count in result.raw.faults) == errors
    assert sum(merged(aio, SERVICES[0]).values()) == aio.total(Count.COMPLETED) <= 8000 - errors
    assert aio.total(Count.SHORT) == 0


def test_a_removed_device_fails_at_once_without_busy_waiting(faulty_lun: FaultFs, aio: Drive) -> None:
    aio.create(0, aio.lun(faulty_lun.device), iops=-1.0, maxtags=8)
    aio.go([0], 500 * MS)
    aio.until(1)
    faulty_lun.process.kill()
    while not aio.results[-1].total(Count.ERRORS):  # the kernel takes its time to end the process
        aio.until(len(aio.results) + 1)
    dead = aio.until(len(aio.results) + 1)[-1]
    aio.engine.halt()
    aio.finish()
    assert dead.total(Count.COMPLETED) == 0
    assert 0 < dead.total(Count.ERRORS) <= 500 * 8  # at most all tags once a millisecond
    assert dead.thread(ThreadCount.CPU_TIME) < 300 * MS


def test_block_0_is_never_written_and_the_last_one_is(loop_lun: str, aio: Drive) -> None:
    aio.create(
        0, aio.lun(loop_lun, writable=True), iosequencer="sequential", fraction_read=0.0, iops=-1.0, blocksize=1 << 20
    )
    run(aio, 4)
    assert aio.total(Count.COMPLETED) > 255
    with open(loop_lun, "rb") as file:
        assert file.read(1 << 20) == bytes(1 << 20)
        file.seek(-4096, os.SEEK_END)
        assert file.read() != bytes(4096)


def test_a_full_queue_does_not_block_submission(faulty_lun: FaultFs, aio: Drive) -> None:
    limit = int(Path(f"/sys/block/{Path(faulty_lun.device).name}/queue/nr_requests").read_text())
    faulty_lun.tell(read_us=50_000)
    aio.create(0, aio.lun(faulty_lun.device), iops=-1.0, maxtags=4 * limit)
    aio.go([0], 250 * MS)
    aio.engine.stop(7)
    aio.finish()
    given_back = 32  # a batch, which counts as in flight while it waits to be submitted again
    assert max(result.total(Count.IN_FLIGHT) for result in aio.results) <= limit + given_back
    assert aio.total(Count.QUEUE_LIMITED) > 0
    # A call that waits for room takes 50 ms, in each subinterval; a busy machine does not stall in each.
    assert min(result.thread(ThreadCount.POLL_GAP_MAX) for result in aio.results) < 40 * MS
    assert aio.total(Count.ERRORS) == 0


def test_a_process_that_thaws_after_its_lease_submits_nothing(faulty_lun: FaultFs) -> None:
    """While it is frozen, its device begins to fail all reads, whosever they are: it has none that failed."""
    code = f"""
import sys
sys.path[:0] = {sys.path!r}
from tests.support.engine import Count, Drive, Engine
step = Drive(Engine("libaio", [-1]))
step.create(0, step.lun({faulty_lun.device!r}), 0, iops=2000.0)
step.go([0], 100_000_000, lease_s=1.5)
step.until(3)
print("running", flush=True)
print(step.finish().reason, step.total(Count.COMPLETED) > 0, step.total(Count.ERRORS), flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "running\n"
    child.send_signal(signal.SIGSTOP)
    time.sleep(2)
    in_flight = Path(f"/sys/block/{Path(faulty_lun.device).name}/inflight")
    wait_until(lambda: in_flight.read_text().split() == ["0", "0"], "what was in flight is done")
    faulty_lun.tell(read_ppm=1_000_000)
    child.send_signal(signal.SIGCONT)
    assert child.communicate(timeout=PATIENCE_S)[0] == "lease True 0\n"


def beside(theirs: Callable[[], tuple[float, ...]], ours: Callable[[], tuple[float, ...]], within: float) -> None:
    """Ours and fio's in turn, three times. The middle of each figure must be within the given share of fio's; where
    either's own figures are further apart than that, the machine has too much else to do to tell: skip."""
    pairs = [(theirs(), ours()) for _ in range(3)]
    for figures in zip(*[zip(*pair, strict=True) for pair in pairs], strict=True):
        them, us = (sorted(of_one) for of_one in zip(*figures, strict=True))
        if max(them[-1] / them[0], us[-1] / us[0]) - 1 >= within:
            pytest.skip(f"the machine is too busy: fio's {them}, ours {us}")
        assert abs(us[1] / them[1] - 1) < within, f"fio's {them}, ours {us}"


@pytest.mark.realtime
@pytest.mark.long
@ONE_AND_LONG
def test_beside_fio_on_a_device_of_known_iops(throttled_lun: Throttle, aio: Drive) -> None:
    """At least 20 s: the throttle dispenses in bursts of 100 ms."""
    launcher = ["sh", "-c", f'echo $$ > {throttled_lun.folder}/cgroup.procs; exec "$@"', "sh"]
    theirs = fio(throttled_lun.device, 20, "--iodepth=8", launcher=launcher)
    throttled_lun.join(os.getpid())
    aio.create(0, aio.lun(throttled_lun.device), iops=-1.0, maxtags=8)
    ours = run(aio, 20)
    assert abs(ours / theirs.iops - 1) < 0.01, f"{ours} of ours, {theirs.iops} of fio's, of 1000"


@pytest.mark.realtime
@pytest.mark.long
@pytest.mark.parametrize("depth", [1, 16])
@ONE_AND_LONG
def test_beside_fio_on_a_device_of_known_latency(faulty_lun: FaultFs, aio: Drive, depth: int) -> None:
    """5 ms in a FUSE below a loop device: mean and p99."""
    faulty_lun.tell(read_us=5000)
    aio.create(0, aio.lun(faulty_lun.device), iops=-1.0, maxtags=depth)

    def ours() -> tuple[float, ...]:
        run(aio, 3)
        return mean(aio, SERVICES[0]), percentile(merged(aio, SERVICES[0]), 0.99)

    beside(lambda: fio(faulty_lun.device, 3, f"--iodepth={depth}").latency, ours, 0.02)


def moved(device: str) -> int:
    """Bytes that the kernel has read from and written to a device."""
    figures = Path(f"/sys/block/{Path(device).name}/stat").read_text().split()
    return 512 * (int(figures[2]) + int(figures[6]))


def test_bytes_are_those_that_the_kernel_counts_while_block_size_and_range_change(loop_lun: str, aio: Drive) -> None:
    lun = aio.lun(loop_lun, writable=True)
    before = moved(loop_lun)
    aio.create(0, lun, ceilings=(8, 262144), iops=-1.0, maxtags=8, fraction_read=0.5)
    aio.go([0], 50 * MS)
    for number, size in enumerate([65536, 512, 262144, 4096, 131072], 1):
        aio.until(2 * number - 1)
        aio.edit(number, [(0, fields(iops=-1.0, maxtags=1 + number, fraction_read=0.5, blocksize=size,
                                     range=(number << 20, 64 << 20)))])  # fmt: skip
    aio.engine.stop(12)
    end = aio.finish()
    assert aio.total(Count.ERRORS) == 0
    assert 0 <= moved(loop_lun) - before - aio.total(Count.BYTES) <= end.caught * 131072


def test_with_spin_a_thread_does_not_sleep_while_something_is_in_flight(loop_lun: str, aio: Drive) -> None:
    """iops: max: nothing ever falls due."""
    aio.create(0, aio.lun(loop_lun), iops=-1.0, maxtags=1)
    sleeps = {}
    for spin in ("off", "on"):
        aio.engine.spin(spin)
        aio.go([0], 100 * MS)
        aio.engine.stop(1)
        aio.finish()
        sleeps[spin] = sum(result.thread(ThreadCount.SLEEPS) for result in aio.results)
    assert sleeps["off"] > 0
    assert sleeps["on"] == 0


def test_large_ios_from_huge_pages_are_all_in_flight(loop_lun: str, aio: Drive) -> None:
    """1 MiB is one request of a loop device, as its own counters say: nothing waits for room with 120 tags."""
    stat = Path(f"/sys/block/{Path(loop_lun).name}/stat")
    lun, before = aio.lun(loop_lun), int(stat.read_text().split()[0])
    aio.create(0, lun, blocksize=1 << 20, iops=-1.0, maxtags=120)
    aio.go([0], 50 * MS)
    aio.engine.stop(19)
    end = aio.finish()
    requests = int(stat.read_text().split()[0]) - before
    assert aio.total(Count.QUEUE_LIMITED) == 0
    assert requests <= aio.total(Count.COMPLETED) + end.caught
