"""The pipe driver against a simulated host: every way to be lost becomes a reason, never an exception of a task."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from ivypy.master.hosts.driver import CommandRefused, Driver, Event, HostLost, Lost, Overdue, barrier
from ivypy.protocol import messages as m
from ivypy.protocol.lines import line
from ivypy.protocol.states import State
from tests.simulated.loop import simulate
from tests.simulated.slave import Faults, SimulatedSlave, lun_of


@asynccontextmanager
async def connected(slave: SimulatedSlave) -> AsyncIterator[Driver]:
    loop = asyncio.get_running_loop()
    inbox: asyncio.Queue[tuple[Driver, Event]] = asyncio.Queue()
    driver = Driver(slave.name, slave.pipe, inbox, lambda: int(loop.time() * 1e9))
    tasks = [asyncio.create_task(t) for t in (slave.serve(), driver.drive(), driver.probe())]
    await driver.greeted()
    try:
        yield driver
    finally:
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            assert outcome is None or isinstance(outcome, asyncio.CancelledError), outcome


def with_host(test: Callable[[Driver], Awaitable[None]], **slave: object) -> None:
    async def main() -> None:
        async with connected(SimulatedSlave("h1", **slave)) as driver:  # type: ignore[arg-type]
            await test(driver)

    simulate(main())


async def event(driver: Driver) -> Event:
    return (await driver._inbox.get())[1]


async def prepared(driver: Driver) -> None:
    await driver.ask(m.Prepare, backend="null", threads=1, lease_ns=10**10)


def test_a_host_is_greeted_and_asked() -> None:
    async def test(driver: Driver) -> None:
        assert driver.hello is not None and driver.hello.hostname == "h1"
        await prepared(driver)
        answer = await driver.ask(m.ListLuns, blocks=True, globs=(), create=(), tags=0)
        assert [type(saying) for saying in answer] == [m.Luns, m.End]

    with_host(test, luns=(lun_of("/dev/a"),))


def test_probes_find_the_offset_while_nothing_else_happens() -> None:
    async def test(driver: Driver) -> None:
        await asyncio.sleep(30)
        now = int(asyncio.get_running_loop().time() * 1e9)
        offset = driver.clock.at(now)
        assert offset.offset_ns == pytest.approx(5000 * 10**9 + now * 20e-6, abs=offset.bound_ns + 1000)
        assert offset.bound_ns < 1_000_000 and offset.rate_ppm == pytest.approx(20, abs=15)

    with_host(test, clock_offset_s=5000.0, drift_ppm=20.0)


def test_a_refusal_costs_nothing() -> None:
    async def test(driver: Driver) -> None:
        with pytest.raises(CommandRefused, match="prepare: no such backend"):
            await prepared(driver)
        assert driver.lost is None and driver.state is State.IDLE

    with_host(test, faults=Faults(refuse={"prepare": "no such backend"}))


def test_a_command_out_of_turn_is_not_even_sent() -> None:
    async def test(driver: Driver) -> None:
        with pytest.raises(CommandRefused, match="stop: the host is idle"):
            await driver.ask(m.Stop, last=1)

    with_host(test)


@pytest.mark.parametrize(
    "said, reason",
    [
        (b"Welcome to host h1!\n", "protocol error: a line is not JSON"),
        (b'{"type":"hallo"}\n', "protocol error: unknown message 'hallo'"),
        (line(m.Ok(1, 0)), "protocol error: 'ok' was said in state connecting"),
        (line(m.ClockProbe(1)), "protocol error: the host sent a command, 'clock_probe'"),
        (b"", "it closed the connection"),
    ],
)
def test_whatever_is_not_a_hello_loses_the_host(said: bytes, reason: str) -> None:
    async def test(driver: Driver) -> None:
        assert driver.lost is not None and driver.lost.startswith(reason)
        assert isinstance(await event(driver), Lost)
        with pytest.raises(HostLost):
            await prepared(driver)

    with_host(test, faults=Faults(hello=said))


def test_an_answer_to_nothing_loses_the_host() -> None:
    async def test(driver: Driver) -> None:
        driver._pipe.say(line(m.Ok(77, 0)))  # type: ignore[attr-defined]
        lost = await event(driver)
        assert isinstance(lost, Lost) and lost.reason == "protocol error: 'ok' answers 77, which was not asked"

    with_host(test)


def test_a_host_that_falls_silent_is_lost_within_seconds() -> None:
    async def test(driver: Driver) -> None:
        driver._pipe.delay_s = 1e6  # type: ignore[attr-defined]
        before = asyncio.get_running_loop().time()
        question = asyncio.create_task(prepared(driver))
        lost = await event(driver)
        assert isinstance(lost, Lost) and lost.reason == "it did not answer for 3 s (3 probes)"
        assert asyncio.get_running_loop().time() - before <= 4.1
        with pytest.raises(HostLost, match="did not answer"):
            await question

    with_host(test)


def test_who_asks_a_host_that_dies_is_told_why() -> None:
    async def test(driver: Driver) -> None:
        question = asyncio.create_task(prepared(driver))
        await asyncio.sleep(0.01)
        driver._pipe.say(b'{"type":"remark","te')  # type: ignore[attr-defined]
        driver._pipe.say(b"")  # type: ignore[attr-defined]
        with pytest.raises(HostLost, match="the stream ended inside a line of 20 bytes"):
            await question

    with_host(test, faults=Faults(mute={"prepare"}))


def test_an_answer_that_nobody_waits_for_any_more_is_told() -> None:
    async def test(driver: Driver) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(prepared(driver), 1)
        assert driver.unanswered(m.Prepare) and not driver.unanswered(m.Go)
        (asked,) = driver._questions
        driver._pipe.say(line(m.Ok(asked, 0)))  # type: ignore[attr-defined]
        assert await event(driver) == Overdue(m.Ok(asked, 0)) and not driver.unanswered(m.Prepare)
        assert driver.lost is None

    with_host(test, faults=Faults(mute={"prepare"}))


def test_what_a_host_says_once_it_was_given_up_counts_no_more() -> None:
    async def test(driver: Driver) -> None:
        driver.lose("it has not stopped")
        driver._pipe.say(line(m.Remark("here I am")))  # type: ignore[attr-defined]
        await asyncio.sleep(1)
        assert await event(driver) == Lost("it has not stopped") and driver._inbox.empty()

    with_host(test)


def test_a_barrier_waits_for_all_and_for_none_beyond_its_deadline() -> None:
    async def main() -> None:
        slaves = [
            SimulatedSlave("good"),
            SimulatedSlave("mute", faults=Faults(mute={"prepare"})),
            SimulatedSlave("no", faults=Faults(refuse={"prepare": "not here"})),
        ]
        async with connected(slaves[0]) as a, connected(slaves[1]) as b, connected(slaves[2]) as c:
            loop = asyncio.get_running_loop()
            before = loop.time()
            answers, failed = await barrier(
                [a, b, c], lambda d: d.ask(m.Prepare, backend="null", threads=1, lease_ns=1), before + 2
            )
            assert list(answers) == [a] and failed == {b: "no answer within 2.0 s", c: "prepare: not here"}
            assert loop.time() == pytest.approx(before + 2)
            assert b.lost is None

    simulate(main())
