"""The pipe driver against a simulated host: every way to be lost becomes a reason, never an exception of a task."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from ivypy.master.hosts import pipe_driver
from ivypy.master.hosts.controller_lag import ControllerLag, Deadline
from ivypy.master.hosts.driver import CommandRefused, Delivered, Driver, Event, HostLost, LateAnswer, Lost, barrier
from ivypy.master.hosts.message_checks import MOST_AT_ONCE, MOST_LUNS
from ivypy.master.hosts.pipe_driver import PipeDriver
from ivypy.protocol import messages as m
from ivypy.protocol.connector import ElementMetric, Unit
from ivypy.protocol.lines import encode_line
from ivypy.protocol.payload import Array, ArrayType, EngineOptions, Facts, Notice, NoticeKind
from ivypy.protocol.states import State
from tests.support.simulated.loop import simulate
from tests.support.simulated.slave import Faults, SimulatedSlave, lun_of


@asynccontextmanager
async def connected(slave: SimulatedSlave) -> AsyncIterator[PipeDriver]:
    loop = asyncio.get_running_loop()
    inbox: asyncio.Queue[tuple[Driver, Event]] = asyncio.Queue()
    driver = PipeDriver(slave.name, slave.pipe, inbox, lambda: int(loop.time() * 1e9))
    tasks = [asyncio.create_task(t) for t in (slave.serve(), driver.drive(), driver.probe())]
    await driver.wait_hello()
    try:
        yield driver
    finally:
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            assert outcome is None or isinstance(outcome, asyncio.CancelledError), outcome


def with_host(test: Callable[[PipeDriver], Awaitable[None]], **slave: object) -> None:
    async def main() -> None:
        async with connected(SimulatedSlave("h1", **slave)) as driver:  # type: ignore[arg-type]
            await test(driver)

    simulate(main())


async def event(driver: Driver) -> Event:
    return (await driver._inbox.get())[1]


async def prepared(driver: Driver) -> None:
    await driver.request(m.Prepare, engine=EngineOptions("null", 1), lease_ns=10**10)


def test_a_host_sends_hello_and_answers_commands() -> None:
    async def test(driver: PipeDriver) -> None:
        assert driver.hello is not None and driver.hello.hostname == "h1"
        await prepared(driver)
        answer = await driver.request(m.ListLuns, blocks=True, globs=())
        assert [type(saying) for saying in answer] == [m.Luns, m.End]

    with_host(test, luns=(lun_of("/dev/a"),))


def test_probes_find_the_offset_while_nothing_else_happens() -> None:
    async def test(driver: PipeDriver) -> None:
        await asyncio.sleep(30)
        now = int(asyncio.get_running_loop().time() * 1e9)
        offset = driver.clock.at(now)
        assert offset.offset_ns == pytest.approx(5000 * 10**9 + now * 20e-6, abs=offset.bound_ns + 1000)
        assert offset.bound_ns < 1_000_000 and offset.rate_ppm == pytest.approx(20, abs=15)

    with_host(test, clock_offset_s=5000.0, drift_ppm=20.0)


def test_a_refused_command_does_not_lose_the_host() -> None:
    async def test(driver: PipeDriver) -> None:
        with pytest.raises(CommandRefused, match="prepare: no such backend"):
            await prepared(driver)
        assert driver.lost is None and driver.state is State.IDLE

    with_host(test, faults=Faults(refuse={"prepare": "no such backend"}))


def test_a_command_that_the_state_does_not_allow_is_not_sent() -> None:
    async def test(driver: PipeDriver) -> None:
        with pytest.raises(CommandRefused, match="stop: the host is idle"):
            await driver.request(m.Stop, last=1)

    with_host(test)


@pytest.mark.parametrize(
    "said, reason",
    [
        (b"Welcome to host h1!\n", "protocol error: a line is not JSON"),
        (b'{"type":"hallo"}\n', "protocol error: unknown message 'hallo'"),
        (encode_line(m.Ok(1, 0)), "protocol error: 'ok' was sent in state connecting"),
        (encode_line(m.ClockProbe(1)), "protocol error: the host sent a command, 'clock_probe'"),
        (b"", "it closed the connection"),
    ],
)
def test_whatever_is_not_a_hello_loses_the_host(said: bytes, reason: str) -> None:
    async def test(driver: PipeDriver) -> None:
        assert driver.lost is not None and driver.lost.startswith(reason)
        assert isinstance(await event(driver), Lost)
        with pytest.raises(HostLost):
            await prepared(driver)

    with_host(test, faults=Faults(hello=said))


def test_an_answer_to_nothing_loses_the_host() -> None:
    async def test(driver: PipeDriver) -> None:
        driver._pipe.say(encode_line(m.Ok(77, 0)))  # type: ignore[attr-defined]
        lost = await event(driver)
        assert isinstance(lost, Lost) and lost.reason == "protocol error: 'ok' answers 77, which was not sent"

    with_host(test)


def test_a_host_that_falls_silent_between_steps_is_lost_when_its_time_to_prepare_has_passed() -> None:
    async def test(driver: PipeDriver) -> None:
        await driver.request(m.Prepare, engine=EngineOptions("null", 1), lease_ns=10**10, patience_ns=20 * 10**9)
        driver._pipe.delay_s = 1e6  # type: ignore[attr-defined]
        before = asyncio.get_running_loop().time()
        question = asyncio.create_task(driver.request(m.CreateWorkloads, workloads=()))
        lost = await event(driver)
        assert isinstance(lost, Lost) and lost.reason == "it did not answer for 20 s"
        assert 20 <= asyncio.get_running_loop().time() - before <= 21.1
        with pytest.raises(HostLost, match="did not answer"):
            await question

    with_host(test)


def test_silence_for_a_third_of_the_lease_loses_no_host() -> None:
    async def test(driver: PipeDriver) -> None:
        pipe = driver._pipe
        await driver.request(m.Prepare, engine=EngineOptions("null", 1), lease_ns=60 * 10**9)
        for _ in range(20):
            await asyncio.sleep(7.3)
            pipe.delay_s = 20  # type: ignore[attr-defined]
            await asyncio.sleep(5)
            pipe.delay_s = 0.0001  # type: ignore[attr-defined]
            await asyncio.sleep(20)
        assert driver.lost is None

    with_host(test)


@pytest.mark.parametrize("said", [b"rubbish\n", encode_line(m.Ok(77, 0))])
def test_the_input_of_a_host_that_is_given_up_ends_at_once(said: bytes) -> None:
    """The end of its input is what halts a slave, however many probes wait in front of it."""

    async def main() -> None:
        slave = SimulatedSlave("h1")
        async with connected(slave) as driver:
            slave.pipe.say(said)
            lost = await event(driver)
            assert isinstance(lost, Lost) and lost.reason.startswith("protocol error")
            before = asyncio.get_running_loop().time()
            await driver.close()
            assert asyncio.get_running_loop().time() - before < 0.1
            assert await slave.ended() < 0.1

    simulate(main())


def test_a_probe_carries_the_newest_stamp_read_before_it() -> None:
    async def main() -> None:
        slave = SimulatedSlave("h1", clock_offset_s=5000.0)
        async with connected(slave) as driver:
            await prepared(driver)
            await asyncio.sleep(30)
            probes = [heard for heard in slave.received if isinstance(heard, m.ClockProbe)]
            assert probes[0].newest_stamp_ns == 0
            proven = [probe.newest_stamp_ns / 1e9 - 5000 for probe in probes[1:]]
            assert proven == sorted(proven) and proven[-1] > 20
            left_s = (slave._lease_until_ns - slave.now_ns()) / 1e9
            assert 4.9 < left_s <= 10
            assert driver.round_trip_s == pytest.approx(0.0002, rel=0.01)

    simulate(main())


def test_a_pending_request_gets_the_reason_of_the_loss() -> None:
    async def test(driver: PipeDriver) -> None:
        question = asyncio.create_task(prepared(driver))
        await asyncio.sleep(0.01)
        driver._pipe.say(b'{"type":"notice","te')  # type: ignore[attr-defined]
        driver._pipe.say(b"")  # type: ignore[attr-defined]
        with pytest.raises(HostLost, match="the stream ended inside a line of 20 bytes"):
            await question

    with_host(test, faults=Faults(mute={"prepare"}))


def test_an_answer_that_nobody_waits_for_any_more_is_reported() -> None:
    async def test(driver: PipeDriver) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(prepared(driver), 1)
        assert driver.has_pending(m.Prepare) and not driver.has_pending(m.Go)
        (asked,) = driver.pending
        driver._pipe.say(encode_line(m.Ok(asked, 0)))  # type: ignore[attr-defined]
        assert await event(driver) == LateAnswer(m.Ok(asked, 0)) and not driver.has_pending(m.Prepare)
        assert driver.lost is None

    with_host(test, faults=Faults(mute={"prepare"}))


def test_messages_of_a_lost_host_are_ignored() -> None:
    async def test(driver: PipeDriver) -> None:
        driver.lose("it has not stopped")
        driver._pipe.say(encode_line(Notice(NoticeKind.CREATING_FILES, "here I am")))  # type: ignore[attr-defined]
        await asyncio.sleep(1)
        assert await event(driver) == Lost("it has not stopped") and driver._inbox.empty()

    with_host(test)


def within(seconds: float) -> Deadline:
    loop = asyncio.get_running_loop()
    return ControllerLag(lambda: int(loop.time() * 1e9)).deadline(seconds)


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
                [a, b, c], lambda d: d.request(m.Prepare, engine=EngineOptions("null", 1), lease_ns=1), within(2)
            )
            assert list(answers) == [a] and failed == {b: "no answer within 2.0 s", c: "prepare: not here"}
            assert loop.time() == pytest.approx(before + 2)
            assert b.lost is None

    simulate(main())


NOTHING_READ = m.HostReadings(0, 0, 0, (), Array(ArrayType.F64, b""))
READ = replace(NOTHING_READ, values=Array(ArrayType.F64, bytes(1 << 20)))


def a_result(subinterval: int = 0, **changes: object) -> m.Result:
    none = Array(ArrayType.U32, b"")
    given = m.Result(subinterval, 0, 10**9, False, 10**9, (0.0, 0.0), none, none, none, none, none, (), ())
    return replace(given, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ([a_result(0), a_result(0)], "a second result of subinterval 0"),
        ([a_result(2)], "a result of subinterval 2, which cannot have begun"),
        ([a_result(length_ns=8 * 10**8)], "the result of subinterval 0 is of 800000000 ns, not 1000000000"),
        ([a_result(length_ns=16 * 10**8, last=True)], "the result of subinterval 0 is of 1600000000 ns"),
        ([a_result(cpu=(1.0,))], "the result of subinterval 0 is of 1 cores, not 2"),
        ([a_result(readings=(NOTHING_READ,) * 9)], "the result of subinterval 0 has 9 readings"),
        ([a_result(readings=(READ,))], "result: its arrays announce 1048576 bytes"),
        ([a_result(counts=Array(ArrayType.I64, bytes(1 << 20)))], "result: its arrays announce 1048576 bytes"),
    ],
)
def test_a_result_that_does_not_fit_its_go_loses_the_host(results: list[m.Result], said: str) -> None:
    async def test(driver: PipeDriver) -> None:
        none = Array(ArrayType.U32, b"")
        await driver.request(m.Go, start_ns=10**18, length_ns=10**9, order=none, classes=none)
        await asyncio.sleep(1.5)
        for result in results:
            driver._pipe.say(encode_line(result))  # type: ignore[attr-defined]
        heard = [await event(driver) for _ in results]
        assert isinstance(heard[-1], Lost) and said in heard[-1].reason
        assert all(isinstance(one, Delivered) for one in heard[:-1])

    with_host(test)


@pytest.mark.parametrize("most", [1000, 10])
def test_readings_have_room_once_their_elements_are_known(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Also where the host found them only when it had `go`, but never for more than a host may have."""
    monkeypatch.setattr(pipe_driver, "MOST_CELLS", most)

    async def test(driver: PipeDriver) -> None:
        none, metrics = Array(ArrayType.U32, b""), (ElementMetric("disk", "reads_per_s", Unit.PER_S),)
        asked = asyncio.ensure_future(driver.request(m.FindElements, luns=()))
        await asyncio.sleep(0)
        (number,) = driver.pending
        await driver.request(m.Go, start_ns=10**18, length_ns=10**9, order=none, classes=none)
        await asyncio.sleep(1.5)
        disks = tuple(f"disk{place}" for place in range(1000))
        driver._pipe.say(encode_line(m.ElementsFound(number, metrics, {"disk": disks}, Facts())))  # type: ignore[attr-defined]
        await asked
        read = replace(NOTHING_READ, values=Array(ArrayType.F64, bytes(8 * 1000)))
        driver._pipe.say(encode_line(a_result(readings=(read,) * 8)))  # type: ignore[attr-defined]
        assert isinstance(await event(driver), Delivered if most == 1000 else Lost)

    with_host(test, faults=Faults(mute={"find_elements"}))


def test_a_host_that_chatters_is_lost() -> None:
    async def test(driver: PipeDriver) -> None:
        for _ in range(2 * MOST_AT_ONCE):
            driver._pipe.say(encode_line(Notice(NoticeKind.CREATING_FILES, "la")))  # type: ignore[attr-defined]
        await asyncio.sleep(1)
        assert driver.lost == "protocol error: more than 1,000 notices and dying words came at once"
        assert driver._inbox.qsize() == MOST_AT_ONCE + 1

    with_host(test)


@pytest.mark.parametrize("most", [1_000, pytest.param(MOST_LUNS, marks=pytest.mark.long)])
def test_a_host_that_lists_luns_without_end_is_lost(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(pipe_driver, "MOST_LUNS", most)

    async def test(driver: PipeDriver) -> None:
        question = asyncio.create_task(driver.request(m.ListLuns, blocks=True, globs=()))
        await asyncio.sleep(0.01)
        (asked,) = driver.pending
        many = encode_line(m.Luns(asked, (lun_of("/dev/a"),) * (most // 5)))
        for _ in range(6):
            driver._pipe.say(many)  # type: ignore[attr-defined]
        with pytest.raises(HostLost, match=f"it lists more than {most:,} LUNs"):
            await question

    with_host(test, faults=Faults(mute={"list_luns"}))


def test_a_host_that_lists_nothing_without_end_is_lost() -> None:
    """Each message cost as much as there were before it: a megabyte of them kept the controller busy for a minute."""

    async def test(driver: PipeDriver) -> None:
        question = asyncio.create_task(driver.request(m.ListLuns, blocks=True, globs=()))
        await asyncio.sleep(0.01)
        (asked,) = driver.pending
        driver._pipe.say(encode_line(m.Luns(asked, ())))  # type: ignore[attr-defined]
        with pytest.raises(HostLost, match="it lists no LUNs in a message of its own"):
            await question

    with_host(test, faults=Faults(mute={"list_luns"}))


@pytest.mark.slow
def test_a_host_that_lists_luns_at_great_length_is_lost() -> None:
    async def test(driver: PipeDriver) -> None:
        question = asyncio.create_task(driver.request(m.ListLuns, blocks=True, globs=()))
        await asyncio.sleep(0.01)
        (asked,) = driver.pending
        lun = replace(lun_of("/dev/a"), attributes={str(i): "x" * 30_000 for i in range(100)})
        one = encode_line(m.Luns(asked, (lun,)))
        for _ in range(50):
            driver._pipe.say(one)  # type: ignore[attr-defined]
        with pytest.raises(HostLost, match="it lists LUNs in more than 128 MiB"):
            await question

    with_host(test, faults=Faults(mute={"list_luns"}))


def test_a_message_that_raises_in_our_code_loses_the_host_with_a_traceback_in_its_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log: list[str] = []

    async def test(driver: PipeDriver) -> None:
        driver.log = log.append

        def add(*stamps: int) -> None:
            raise OverflowError("too large")

        monkeypatch.setattr(driver.clock, "add", add)
        lost = await event(driver)
        assert lost == Lost("protocol error: OverflowError: too large")
        assert "Traceback (most recent call last):" in "\n".join(log) and "OverflowError: too large" in "\n".join(log)

    with_host(test)


def test_barrier_loses_the_host_whose_answer_raises() -> None:
    async def main() -> None:
        async with connected(SimulatedSlave("good")) as a, connected(SimulatedSlave("bad")) as b:

            async def ask(driver: Driver) -> int:
                await prepared(driver)
                return 1 // (driver is a)

            answers, failed = await barrier([a, b], ask, within(2))
            assert answers == {a: 1} and list(failed) == [b]
            assert b.lost is not None and b.lost.startswith("protocol error: ZeroDivisionError")
            assert a.lost is None

    simulate(main())


def test_no_reason_contains_control_characters() -> None:
    async def test(driver: PipeDriver) -> None:
        driver.lose("\x1b[31mit exited\u202e")
        assert await event(driver) == Lost("\\x1b[31mit exited\\u202e")

    with_host(test)


class Busy(SimulatedSlave):
    """Creates files for `takes_s`, but gets no further once it has worked for `works_s`."""

    def __init__(self, name: str, takes_s: float, works_s: float) -> None:
        super().__init__(name)
        self._takes_s, self._works_s, self._since_s = takes_s, works_s, math.inf

    def _obey(self, command: Any) -> None:
        now_s = asyncio.get_running_loop().time()
        if isinstance(command, m.CreateFiles | m.CreateWorkloads):
            self._since_s = now_s
            ended = m.End(command.id) if isinstance(command, m.CreateFiles) else m.Ok(command.id, self.now_ns())
            self._say_after(self._takes_s, ended)
        elif isinstance(command, m.ClockProbe):
            done = int(max(min(now_s - self._since_s, self._works_s), 0) // 60)
            self._say(m.ClockReading(command.id, self.now_ns(), self.now_ns(), done))
        else:
            super()._obey(command)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "fields", "limit_s"),
    [
        (m.CreateFiles, {"files": (), "used": (), "tags": 0}, 120),
        (m.CreateWorkloads, {"workloads": ()}, 90),  # the plan's prepare_timeout
    ],
)
@pytest.mark.parametrize(("works_s", "lost"), [(9000, False), (1800, True), (0, True)])
def test_a_command_with_progress_is_waited_for_and_one_without_is_not(
    works_s: float, lost: bool, kind: type[m.Command], fields: dict[str, Any], limit_s: int
) -> None:
    async def main() -> None:
        async with connected(Busy("h1", 8000, works_s)) as driver:
            await driver.request(m.Prepare, engine=EngineOptions("null", 1), lease_ns=10**10, patience_ns=90 * 10**9)
            begun_s = asyncio.get_running_loop().time()
            if not lost:
                await driver.request(kind, **fields)
                await asyncio.sleep(1000)
                assert driver.lost is None
                return
            said = f"it answers probes, but made no progress with '{m.wire_name(kind)}' for {limit_s} s"
            with pytest.raises(HostLost, match=said):
                await driver.request(kind, **fields)
            waited_s = asyncio.get_running_loop().time() - begun_s
            assert works_s - 60 + limit_s <= waited_s <= works_s + limit_s + 10

    simulate(main())
