"""One thread, in order, that nobody waits for; the first error ends it, and so does a disk that takes nothing."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial

import pytest

from ivypy.master.errors import OutputError
from ivypy.master.output import writer_thread as writing
from ivypy.master.output.writer_thread import PATIENCE_S, SEEN_AGAIN_S, Writer
from tests.support.simulated.loop import SimulatedLoop, simulate

STALLED = r"^x: not written: its disk has not taken in 6\d s what was to be written; repair it, or give another folder"


async def test_jobs_run_in_order_in_one_thread() -> None:
    writer = Writer("x")
    seen: list[tuple[int, str]] = []

    def job(i: int) -> None:
        seen.append((i, threading.current_thread().name))

    for i in range(20):
        (writer.put if i % 2 else writer.post)(partial(job, i))
    assert await writer.do(lambda: len(seen)) == 20
    writer.close()
    assert [i for i, _ in seen] == list(range(20))
    assert {name for _, name in seen} == {"ivypy-writer"}


async def test_an_error_is_raised_at_the_next_call_and_nothing_is_done_after_it() -> None:
    writer = Writer("x")
    seen: list[int] = []

    def fail() -> None:
        raise OutputError("x.csv: not written: No space left on device")

    writer.put(fail)
    with pytest.raises(OutputError, match="No space left"):
        await writer.do(lambda: seen.append(1))
    with pytest.raises(OutputError, match="No space left"):
        writer.put(lambda: seen.append(2))
    assert seen == []
    assert await writer.last(lambda: 7) == 7, "what says how it ended is written all the same"
    writer.close()


async def test_an_error_of_a_synchronous_job_is_raised_in_its_call() -> None:
    writer = Writer("x")
    with pytest.raises(ZeroDivisionError):
        await writer.do(lambda: 1 / 0)
    writer.close()


def on_a_frozen_disk(frozen_s: float, act: Callable[[Writer, SimulatedLoop], object]) -> list[int]:
    """A job a second is put while the disk is frozen for so long; then `act`. Returns which were done."""
    done: list[int] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        writer = Writer("x")
        loop.freeze_disk(frozen_s)
        try:
            for second in range(90):
                writer.put(partial(done.append, second))
                before = loop.time()
                await asyncio.sleep(1.0)
                assert loop.time() == before + 1.0
            act(writer, loop)
            await writer.do(lambda: None)
        finally:
            writer._thread.shutdown()
            loop._skipping.thawed.set()

    simulate(main())
    return done


@pytest.mark.parametrize("frozen_s", [5.0, 25.0, PATIENCE_S - 1])
def test_a_disk_that_is_slow_for_a_while_delays_nobody(frozen_s: float) -> None:
    assert on_a_frozen_disk(frozen_s, lambda writer, loop: None) == list(range(90))


def test_a_disk_that_takes_nothing_for_too_long_is_an_error() -> None:
    with pytest.raises(OutputError, match=STALLED):
        on_a_frozen_disk(1000.0, lambda writer, loop: None)


def test_waiting_for_the_writer_is_bounded() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        writer = Writer("x")
        loop.freeze_disk(1000.0)
        for wait_s, ask in ((PATIENCE_S, writer.do), (0.0, writer.do), (writing.LAST_S, writer.last)):
            before = loop.time()
            with pytest.raises(OutputError, match=STALLED):
                await ask(lambda: None)
            assert loop.time() - before == pytest.approx(wait_s)
        writer.close()
        loop._skipping.thawed.set()

    simulate(main())


def test_a_stalled_controller_does_not_blame_its_disk() -> None:
    """All was given before it, and is done the moment after it."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        writer = Writer("x")
        loop._skipping.thawed.clear()
        writer.put(lambda: None)
        loop.work(2 * PATIENCE_S)
        writer.put(lambda: None)
        loop._skipping.thawed.set()
        await asyncio.sleep(2 * SEEN_AGAIN_S)
        writer.put(lambda: None)
        await writer.do(lambda: None)
        writer.close()

    simulate(main())
