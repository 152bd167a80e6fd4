"""The readings of a host at the boundaries of a step: each once, in order, with its result or a later one."""

import threading
import time
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.protocol.connector import Readings
from ivypy.protocol.messages import MOST_ELEMENTS, HostReadings
from ivypy.protocol.payload import Array, ArrayType, Fact
from ivypy.slave.host_connector.boundary_reader import MOST_KEPT, PATIENCE_NS, BoundaryReader, _StepReadings
from ivypy.slave.host_connector.connector import METRICS, HostConnector
from tests.support.waits import PATIENCE_S, wait_until

MS = 10**6
LENGTH = 200 * MS


def readings(subinterval: int, start_ns: int = 0) -> HostReadings:
    return HostReadings(subinterval, start_ns, start_ns, (), Array(ArrayType.F64, b""))


class Clock:
    """Time that goes on as it is told."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


# The plan of a step, without threads: time is handed in.


def test_each_boundary_is_read_once_in_order() -> None:
    clock, step = Clock(), _StepReadings(1000, 100)
    seen = []
    for clock.now_ns in range(1000, 1500, 50):
        if clock.now_ns >= 1000 + 100 * (step.subinterval + 1):
            assert step.wait_for_boundary(clock)
            seen.append(step.subinterval)
            step.add(readings(step.subinterval))
    assert seen == [-1, 0, 1, 2, 3]


@given(st.lists(st.integers(-30, 30), min_size=1, max_size=20), st.data())
def test_boundaries_are_where_they_were_placed_and_those_after_follow(moves: list[int], data: st.DataObject) -> None:
    """As the engine has it: a subinterval ends where it was placed, else a length after the one before."""
    clock, step, end = Clock(), _StepReadings(1000, 100), 1000
    ends, placed_late = {-1: end}, dict[int, int]()
    for k, move in enumerate(moves):
        end = end + 100
        when = data.draw(st.sampled_from(["never", "before", "while it runs"]))
        if when != "never":
            end += move
            placed_late[k] = end
        if when == "before":
            step.place(k, placed_late.pop(k))
        ends[k] = end
    for k, end in ends.items():
        if k in placed_late:
            step.place(k, end)
        clock.now_ns = end
        assert step.subinterval == k and step.wait_for_boundary(clock)
        step.add(readings(k))


def test_of_boundaries_that_passed_unseen_only_the_last_is_read() -> None:
    clock, step = Clock(), _StepReadings(1000, 100)
    clock.now_ns = 1350
    assert step.wait_for_boundary(clock)
    assert step.subinterval == 2, "which ended at 1300"


@given(st.lists(st.integers(0, 3), max_size=30))
def test_results_carry_each_reading_once_and_none_of_a_later_subinterval(turns: list[int]) -> None:
    """Readings and results come in any order; those that no result carries for long are dropped, the oldest first."""
    clock, long_after = Clock(), Clock()
    long_after.now_ns = 10**18  # nobody waits
    step, waiting, at = _StepReadings(0, 100), list[int](), 0
    for turn in turns:
        if turn:
            clock.now_ns = 100 * (step.subinterval + 1)
            assert step.wait_for_boundary(clock)
            waiting = [*waiting, step.subinterval][-MOST_KEPT:]
            step.add(readings(step.subinterval))
        else:
            carried = [one.subinterval for one in step.take(at, 100 * (at + 1), long_after)]
            assert carried == [k for k in waiting if k <= at]
            waiting = [k for k in waiting if k > at]
            at += 1


@pytest.mark.parametrize("after_ns, known", [(25, [0]), (26, [])])
def test_what_is_read_too_late_after_a_boundary_is_not_its_reading(after_ns: int, known: list[int]) -> None:
    """A rate since then, or until then, would be of another time."""
    clock, step = Clock(), _StepReadings(0, 100)
    step.add(readings(-1))
    step.add(readings(0, 100 + after_ns))
    clock.now_ns = 10**18
    assert [one.subinterval for one in step.take(0, 100, clock) if one.subinterval == 0] == known
    assert step.subinterval == 1


@pytest.mark.parametrize("end_ns, known", [(75, [-1, 0]), (74, [-1])])
def test_a_subinterval_that_was_cut_short_has_no_readings_of_its_regular_end(end_ns: int, known: list[int]) -> None:
    clock, step = Clock(), _StepReadings(0, 100)
    clock.now_ns = end_ns + 25
    assert step.take(-1, 0, clock) == (), "and nobody waits for them"
    step.add(readings(-1))
    step.add(readings(0, 100))
    assert [one.subinterval for one in step.take(0, end_ns, clock)] == known
    assert step.take(0, end_ns, clock) == ()


@pytest.mark.parametrize("length_ns, patience_ns", [(100, 25), (4 * 10**9, PATIENCE_NS)])
def test_a_result_waits_for_its_readings_but_not_for_long(length_ns: int, patience_ns: int) -> None:
    """A clock that stands still: who waited would do so for ever."""
    clock, step = Clock(), _StepReadings(0, length_ns)
    clock.now_ns = length_ns + patience_ns
    assert step.take(0, length_ns, clock) == ()
    assert patience_ns <= 100 * MS


HOUR = 3600 * 10**9


def in_thread(waiting: Callable[[], object], then: Callable[[], object]) -> object:
    """What one thread gets that waits until another does something."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(waiting)
        then()
        return future.result(PATIENCE_S)


def an_hour_before_the_end_of_the_first() -> _StepReadings:
    step = _StepReadings(time.monotonic_ns(), HOUR)
    step.add(readings(-1))
    return step


def test_a_result_gets_its_readings_as_soon_as_they_are_there() -> None:
    step = an_hour_before_the_end_of_the_first()
    got = in_thread(lambda: step.take(0, time.monotonic_ns() + HOUR, time.monotonic_ns), lambda: step.add(readings(0)))
    assert got == (readings(-1), readings(0))


def test_a_boundary_that_is_placed_nearer_is_seen_at_once() -> None:
    step = an_hour_before_the_end_of_the_first()
    assert in_thread(lambda: step.wait_for_boundary(time.monotonic_ns), lambda: step.place(0, time.monotonic_ns()))


def test_a_step_that_is_over_lets_nobody_wait() -> None:
    step = an_hour_before_the_end_of_the_first()
    assert in_thread(lambda: step.wait_for_boundary(time.monotonic_ns), step.end) is False
    step = an_hour_before_the_end_of_the_first()
    assert in_thread(lambda: step.take(5, time.monotonic_ns() + 6 * HOUR, time.monotonic_ns), step.end) == (
        readings(-1),
    )


# With its thread, on real time.


class CountingConnector(HostConnector):
    """Finds one disk and the host's memory, and counts its gathers; some of them are slow, or fail."""

    def __init__(self, slow: Sequence[int] = (), fails: Sequence[int] = ()) -> None:
        super().__init__((0,), Path("/nonexistent"))
        self.count = -1
        self.disks = 1
        self.may_go_on = threading.Event()
        self._slow, self._fails = slow, fails

    def config(self, luns: Sequence[str]) -> tuple[tuple[object, ...], tuple[Fact, ...]]:  # type: ignore[override]
        return METRICS, (Fact("disk", "sda", "path", luns[0]),)

    def gather(self) -> Readings:
        self.count += 1
        if self.count in self._fails:
            raise RuntimeError("a bug")
        if self.count in self._slow:
            assert self.may_go_on.wait(PATIENCE_S)
        now_ns = time.monotonic_ns()
        facts = [Fact("disk", "sda", "reads_per_s", self.count), Fact("memory", "host", "dirty_mib", 0.5)]
        facts += [Fact("disk", f"sd{number}", "reads_per_s", 1) for number in range(self.disks - 1)]
        facts += [Fact("disk", "new", "reads_per_s", 1)] if self.count else []
        stamps = {metric.element: now_ns for metric in METRICS}
        return Readings(0, facts, now_ns, now_ns, stamps)  # type: ignore[arg-type]


def cells(one: HostReadings) -> list[float]:
    """The values that are there."""
    return [value for value in array("d", one.values.data) if value == value]


def begun(connector: CountingConnector, length_ns: int = LENGTH) -> tuple[BoundaryReader, int]:
    """A reader in a step, and its start."""
    reader = BoundaryReader(connector, time.monotonic_ns)
    found = reader.find(7, ["/dev/sda"])
    assert found.re == 7 and found.metrics == METRICS
    assert found.instances["disk"] == ("sda",) and found.instances["memory"] == ("host",)
    assert not found.instances["pressure"], "of which nothing was read"
    reader.use(found)
    start_ns = time.monotonic_ns() + 10 * MS
    reader.begin(start_ns, length_ns)
    return reader, start_ns


def test_readings_are_of_the_boundary_and_of_the_elements_that_were_found() -> None:
    reader, start_ns = begun(CountingConnector())
    known: list[HostReadings] = []
    for k in range(5):
        known += reader.take(k, start_ns + (k + 1) * LENGTH)
    reader.end()
    assert known
    for one in known:
        boundary_ns = start_ns + (one.subinterval + 1) * LENGTH
        assert boundary_ns <= one.start_ns <= one.end_ns
        count, dirty = cells(one)
        assert count > 0 and dirty == 0.5, "a disk that was not found has no cell"
        assert len(one.stamps) == len({metric.element for metric in METRICS})


def test_a_reading_that_is_slow_goes_with_a_later_result() -> None:
    connector = CountingConnector(slow=[2])  # 0: to find what there is; 1: at the start
    reader, start_ns = begun(connector)
    wait_until(lambda: connector.count >= 2, "the slow one has begun")
    first = [one.subinterval for one in reader.take(10**6, start_ns)]
    assert len(first) == 1
    connector.may_go_on.set()
    wait_until(lambda: connector.count > 3, "it reads on")
    reader.end()
    assert min(one.subinterval for one in reader.take(10**6, start_ns + 10**6 * LENGTH)) > max(first)


def test_a_bug_ends_the_readings_and_delays_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    reader, _ = begun(CountingConnector(fails=[2]))
    wait_until(lambda: "a bug" in capfd.readouterr().err, "the log says why")
    assert len(reader.take(10**6, time.monotonic_ns() + HOUR)) == 1, "and does not wait for the end of that subinterval"


def test_nothing_is_read_of_what_the_controller_does_not_know() -> None:
    connector = CountingConnector()
    reader = BoundaryReader(connector, time.monotonic_ns)
    reader.find(1, ["/dev/sda"])
    reader.begin(time.monotonic_ns(), LENGTH)
    assert reader.take(0, time.monotonic_ns() + HOUR) == () and connector.count == 0


def test_the_host_is_read_by_one_at_a_time() -> None:
    """Its connector keeps what it read last."""
    connector = CountingConnector(slow=[2])
    reader, _ = begun(connector)
    wait_until(lambda: connector.count == 2, "it reads")
    with ThreadPoolExecutor(2) as others:
        finds = [others.submit(reader.find, number, ["/dev/sda"]) for number in (1, 2)]
        assert not wait(finds, timeout=0.1).done
        connector.may_go_on.set()
        assert [find.result().re for find in finds] == [1, 2]
    reader.end()


def test_another_step_begins_anew() -> None:
    connector = CountingConnector()
    reader, start_ns = begun(connector)
    wait_until(lambda: connector.count >= 2, "it has read")
    assert reader.take(10**6, start_ns)
    again_ns = time.monotonic_ns()
    reader.begin(again_ns, LENGTH)
    assert all(again_ns <= one.start_ns for one in reader.take(2, again_ns + 3 * LENGTH))
    wait_until(lambda: [one.name for one in threading.enumerate()].count("readings") == 1, "the other thread ends")
    reader.end()


def test_a_boundary_of_the_running_step_may_be_placed() -> None:
    reader, _ = begun(CountingConnector(), HOUR)
    end_ns = time.monotonic_ns() + 50 * MS
    reader.place(0, end_ns)
    assert [one.subinterval for one in reader.take(0, end_ns)][-1:] == [0]
    reader.end()


def test_a_reading_that_hangs_keeps_the_next_step_from_reading(capfd: pytest.CaptureFixture[str]) -> None:
    """One thread hangs then, and not one for each step."""
    connector = CountingConnector(slow=[2])
    reader, _ = begun(connector)
    wait_until(lambda: connector.count == 2, "it hangs")
    reader.begin(time.monotonic_ns(), HOUR)
    assert reader.take(0, time.monotonic_ns() + HOUR) == () and "hang" in capfd.readouterr().err
    connector.may_go_on.set()


def test_a_thread_that_cannot_be_had_costs_the_readings_alone(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    reader = BoundaryReader(CountingConnector(), time.monotonic_ns)
    reader.use(reader.find(1, ["/dev/sda"]))
    monkeypatch.setattr(threading.Thread, "start", start)
    reader.begin(time.monotonic_ns(), HOUR)
    assert reader.take(0, time.monotonic_ns() + HOUR) == () and "can't start" in capfd.readouterr().err


def test_too_many_elements_are_refused() -> None:
    many, fewer = CountingConnector(), CountingConnector()
    many.disks, fewer.disks = MOST_ELEMENTS, MOST_ELEMENTS - 1  # and the host's memory
    with pytest.raises(ValueError, match="20,001 elements, more than 20,000"):
        BoundaryReader(many, time.monotonic_ns).find(1, ["/dev/sda"])
    assert len(BoundaryReader(fewer, time.monotonic_ns).find(1, ["/dev/sda"]).instances["disk"]) == 19_999
