"""What the running step has measured so far: it costs its share, waits for nothing, and no failure of it ends a run."""

import asyncio
import errno
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.control.decision import Measured
from ivypy.master.control.observation import Phase
from ivypy.master.errors import OutputError
from ivypy.master.live.reports import MeasuredSoFar, Subinterval
from ivypy.master.output import folder as run_folder
from ivypy.master.output.full_disk import patiently
from ivypy.master.output.writer_thread import Writer
from ivypy.master.rollup.window import Window
from ivypy.master.run.record import so_far
from ivypy.master.run.record.so_far import SHARE, SoFarKeeper
from ivypy.master.run.record.step_recorder import StepRecorder
from ivypy.master.run.session.run import Run
from ivypy.master.run.step.step_measurements import StepMeasurements
from ivypy.master.run.step.step_types import SoFar, StepOutcome, SummedMeasurement
from ivypy.protocol.messages import Result
from tests.support.simulated.loop import SimulatedLoop, simulate
from tests.support.simulated.runs import ONE_STEP, SimulatedRun, controlled, stage
from tests.support.simulated.slave import Faults, steady
from tests.support.small_run import write_run
from tests.support.waits import wait_until

NOTHING = StepOutcome((), ())
READ = Measured(0, 1)


def taken(reads: int = 0, outcome: Callable[[Sequence[Window]], StepOutcome] = lambda _: NOTHING) -> SoFar:
    return SoFar((READ,) * reads, outcome)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """In every subinterval."""
    monkeypatch.setattr(so_far, "FIRST_S", 0.0)
    monkeypatch.setattr(so_far, "SHARE", 1e9)
    monkeypatch.setattr(so_far, "AFTER_FAILURE_S", 0.0)


def a_step(root: Path) -> SimulatedRun:
    async def visit(run: Run, staged: SimulatedRun) -> None:
        pass

    return stage(root, visit, ONE_STEP)


@pytest.mark.slow
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    ("of", "part"),
    [(StepMeasurements, "so_far"), (StepRecorder, "_write_so_far"), (run_folder.RunFolder, "so_far")],
    ids=["in the loop", "in its thread", "in the writer's thread"],
)
def test_whatever_fails_is_reported_once_and_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: type, part: str
) -> None:
    usual, calls = a_step(tmp_path / "usual"), []

    def fails(*given: Any) -> None:
        calls.append(given)
        raise ZeroDivisionError("no such luck")

    monkeypatch.setattr(of, part, fails)
    ended = a_step(tmp_path / "failing")
    assert len(calls) > 1 and ended.code is usual.code and ended.step.verdict is usual.step.verdict
    assert ended.events("so_far") == ["what the step has measured so far is not kept: no such luck"]
    assert not usual.events("so_far") and not (ended.folder / "so_far").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("always")
def test_watchers_are_shown_what_was_measured_so_far(tmp_path: Path) -> None:
    """Whoever is shown it after the last subinterval of the measurement sees what the CSV says in the end."""
    staged = a_step(tmp_path)
    shown = [report for report in staged.eyes.seen if isinstance(report, MeasuredSoFar)]
    assert len(shown) > 1 and {report.step for report in shown} == {"one"}
    assert shown[-1].row.figures == staged.step.measured[-1].figures
    begun = next(at for at, report in enumerate(staged.eyes.seen) if isinstance(report, MeasuredSoFar))
    measured = [one.phase for one in staged.eyes.seen[:begun] if isinstance(one, Subinterval)]
    assert Phase.RUN in measured, "nothing is measured before"


async def test_what_fails_for_a_full_disk_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    monkeypatch.setattr("ivypy.master.output.full_disk.time.sleep", naps.append)
    writer, said = Writer("x"), list[str]()

    def full() -> None:
        raise OSError(errno.ENOSPC, "it is full")

    await SoFarKeeper(writer, said.append).keep(taken, never_read, lambda _: lambda: patiently(full))
    assert said == ["what the step has measured so far is not kept: [Errno 28] it is full"] and not naps
    assert await writer.do(lambda: 7) == 7
    writer.close()


async def test_a_read_that_takes_for_ever_holds_up_no_row_and_ends_with_the_step() -> None:
    writer, reading, ended = Writer("x"), threading.Event(), threading.Event()

    def read(measured: Measured, is_given_up: Callable[[], bool]) -> Window:
        reading.set()
        while not is_given_up():
            pass
        ended.set()
        raise OutputError("given up")

    keeper = SoFarKeeper(writer, lambda _: None)
    keeping = asyncio.create_task(keeper.keep(lambda: taken(1), read, lambda _: lambda: None))
    await asyncio.to_thread(reading.wait)
    assert await writer.do(lambda: 7) == 7
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping
    await asyncio.to_thread(wait_until, ended.is_set, "the read ends")
    keeper.close()
    writer.close()


def never_read(measured: Measured, is_given_up: Callable[[], bool]) -> Window:
    raise AssertionError("nothing is to be read")


class Clock:
    """Time that passes only as it is told."""

    def __init__(self) -> None:
        self.cpu_ns = self.now_ns = 10**12

    def thread_time_ns(self) -> int:
        return self.cpu_ns

    def monotonic_ns(self) -> int:
        return self.now_ns

    def works(self, ns: int) -> None:
        self.cpu_ns += ns
        self.now_ns += ns


def test_rows_that_were_just_handed_over_do_not_put_it_off_but_a_slow_disk_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(so_far, "FIRST_S", 0.0)

    async def main() -> list[bool]:
        loop, writer = asyncio.get_running_loop(), Writer("x")
        assert isinstance(loop, SimulatedLoop)
        keeper, due = SoFarKeeper(writer, fail), []
        keeper.begin()
        loop.freeze_disk(10.0)
        for _ in range(3):
            writer.put(lambda: None)
        for seconds in (0.0, 5.0, 10.0):
            await asyncio.sleep(seconds)
            due.append(keeper.is_due)
        keeper.close()
        writer.close()
        return due

    assert simulate(main()) == [True, False, True]


NS = st.integers(0, 10**10)


@given(NS, st.lists(NS, max_size=3), NS, NS, NS)
def test_all_work_counts_wherever_it_is_done(take: int, reads: list[int], sums: int, makes: int, writes: int) -> None:
    """From its end on, until so much time has passed that it was SHARE of it."""
    clock = Clock()

    def spent(ns: int, result: Any = None) -> Any:
        clock.works(ns)
        return result

    async def main() -> None:
        writer, costs = Writer("x"), iter(reads)
        keeper = SoFarKeeper(writer, fail)
        keeper.begin()
        await keeper.keep(
            lambda: spent(take, taken(len(reads), lambda _: spent(sums, NOTHING))),
            lambda measured, is_given_up: spent(next(costs)),
            lambda _: spent(makes, lambda: spent(writes)),
        )
        await writer.do(lambda: None)
        worked = take + sum(reads) + sums + makes + writes
        clock.now_ns += round(worked / SHARE) - 1
        assert not worked or not keeper.is_due
        clock.now_ns += 1
        assert keeper.is_due
        keeper.close()
        writer.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(so_far, "time", clock)
        asyncio.run(main())


def fail(text: str) -> None:
    raise AssertionError(text)


def test_half_of_what_was_kept_is_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ends the process while it removes what it kept: what makes it count goes first."""
    folder = write_run(tmp_path)
    for number in (3, 4):
        (folder / "so_far" / str(number)).mkdir(parents=True)
        (folder / "so_far" / str(number) / "run.json").write_text("{}")
    kept = object.__new__(run_folder.RunFolder)
    kept.path = folder
    monkeypatch.setattr("ivypy.master.output.folder.shutil.rmtree", lambda *_, **__: None)
    kept.drop_so_far()
    assert not [*folder.glob("so_far/*/run.json")]


STAIRS = "subinterval: 1s, warmup: 1s, measure: 3s, staircase: { start: 200, end: 1200, step: 200 }"


@pytest.mark.slow
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("disk", ["quick", "slow"])
def test_a_late_result_is_in_what_is_kept_as_soon_as_it_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: str
) -> None:
    """Of a level that has closed long before. Slow: what is kept is read before the result is stored."""
    seen: list[Mapping[str, int]] = []
    write, join = StepRecorder._write_so_far, StepRecorder.join
    sums, record = StepRecorder._sum, StepRecorder.record_subinterval
    held: list[tuple[str, Result]] = []
    read_before = threading.Event()

    def keep(self: StepRecorder, outcome: StepOutcome) -> Any:
        seen.extend(one.measurement.within for one in outcome.measurements[:1] if isinstance(one, SummedMeasurement))
        return write(self, outcome)

    def slow(self: StepRecorder, host: str, result: Result) -> None:
        held.append((host, result))

    def read(self: StepRecorder, measured: Measured, *given: Any) -> Window:
        try:
            return sums(self, measured, *given)
        finally:
            read_before.set()

    def stores(self: StepRecorder, closed: Any) -> None:
        while held and read_before.is_set():
            join(self, *held.pop(0))
        record(self, closed)

    monkeypatch.setattr(StepRecorder, "_write_so_far", keep)
    if disk == "slow":
        monkeypatch.setattr(StepRecorder, "join", slow)
        monkeypatch.setattr(StepRecorder, "_sum", read)
        monkeypatch.setattr(StepRecorder, "record_subinterval", stores)
    controlled(tmp_path, STAIRS, steady(), hosts="a, b", faults={"b": Faults(late={2: 8.0})})
    assert {"a": 3, "b": 1} in seen and not held
    assert seen[-1] == {"a": 3, "b": 3}


BURSTS = {"long": "subinterval: 1s, warmup: 1s, measure: 20s", "short": "subinterval: 1s, warmup: 1s, measure: 9s"}


@pytest.mark.slow
@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("go", [*BURSTS.values(), STAIRS], ids=[*BURSTS, "stairs"])
def test_what_is_kept_is_of_recorded_subintervals_however_many_are_decided_on_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, go: str
) -> None:
    """The first host, which is never late, is in each; and no measurement that was kept is missing later."""
    kept: list[tuple[int, int]] = []  # how many measurements, and the last subinterval of these
    write = StepRecorder._write_so_far

    def keep(self: StepRecorder, outcome: StepOutcome) -> Any:
        summed = [one for one in outcome.measurements if isinstance(one, SummedMeasurement)]
        for one in summed:
            assert one.measurement.within["a"] == one.measured.last - one.measured.first + 1
        kept.append((len(summed), summed[-1].measured.last if summed else 0))
        return write(self, outcome)

    monkeypatch.setattr(StepRecorder, "_write_so_far", keep)
    ended = controlled(tmp_path, go, steady(), iops="500", hosts="a, b", faults={"b": Faults(late={5: 8.0})})
    assert not ended.events("so_far") and kept == sorted(kept)
    rows = ended.rows("summary.all.csv")
    assert kept[-1] == (len(rows), int(rows[-1]["last_subinterval"]))


@pytest.mark.usefixtures("always")
def test_a_failed_attempt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[list[str]] = []
    real = run_folder.RunFolder.run

    def full(self: run_folder.RunFolder, record: Any) -> None:
        if self.path.parent.name == "so_far":
            raise OutputError("it is full")
        real(self, record)

    def look(self: run_folder.RunFolder, *given: Any) -> None:
        try:
            whole(self, *given)
        finally:
            left.append([one.name for one in (self.path / "so_far").iterdir()])

    whole = run_folder.RunFolder.so_far
    monkeypatch.setattr(run_folder.RunFolder, "run", full)
    monkeypatch.setattr(run_folder.RunFolder, "so_far", look)
    a_step(tmp_path)
    assert len(left) > 1 and not any(left)
