"""One thread, in order, with a short queue; the first error ends it."""

import asyncio
import threading
from functools import partial

import pytest

from ivypy.master.errors import OutputError
from ivypy.master.output.writer import QUEUED, Writer


async def test_jobs_run_in_order_in_one_thread() -> None:
    writer = Writer()
    seen: list[tuple[int, str]] = []

    def job(i: int) -> None:
        seen.append((i, threading.current_thread().name))

    for i in range(20):
        await writer.put(partial(job, i))
    assert await writer.do(lambda: len(seen)) == 20
    await writer.close()
    assert [i for i, _ in seen] == list(range(20))
    assert {name for _, name in seen} == {"ivypy-writer_0"}


async def test_put_waits_while_the_queue_is_full() -> None:
    writer, go = Writer(), threading.Event()
    for _ in range(1 + QUEUED):  # one runs, the others wait
        await asyncio.wait_for(writer.put(go.wait), 5)
    late = asyncio.ensure_future(writer.put(go.wait))
    await asyncio.sleep(0.05)
    assert not late.done()
    go.set()
    await late
    await writer.close()


async def test_an_error_is_raised_at_the_next_call_and_nothing_is_done_after_it() -> None:
    writer = Writer()
    seen: list[int] = []

    def fail() -> None:
        raise OutputError("x.csv: not written: No space left on device")

    await writer.put(fail)
    with pytest.raises(OutputError, match="No space left"):
        await writer.do(lambda: seen.append(1))
    with pytest.raises(OutputError, match="No space left"):
        await writer.put(lambda: seen.append(2))
    with pytest.raises(OutputError, match="No space left"):
        await writer.close()
    assert seen == []


async def test_an_error_of_do_is_raised_there() -> None:
    writer = Writer()
    with pytest.raises(ZeroDivisionError):
        await writer.do(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        await writer.close()
