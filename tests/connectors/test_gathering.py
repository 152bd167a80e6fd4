"""Gathers through a step, on simulated time, from connectors that are slow, silent, gone, wrong, or lie about time.

The connector of these tests counts 1,000 I/Os a second by the true clock. Whatever it does, a rate that is shown is
true within what is known of its stamps, and what is not shown is labelled.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from ivypy.master.connectors.catalog import Catalog
from ivypy.master.connectors.connector_driver import ConnectorDriver
from ivypy.master.connectors.connector_spec import ConnectorSpec, GatherAt
from ivypy.master.connectors.element_figures import Connected
from ivypy.master.connectors.errors import ConnectorFault
from ivypy.master.connectors.gathered import Gathered, StampFault
from ivypy.master.connectors.gatherer import Gatherer
from ivypy.master.connectors.gathering import GatheredSubinterval, Gathering
from ivypy.master.connectors.joined_luns import JoinedLuns
from ivypy.master.connectors.membership import ALL_HOSTS, Membership
from ivypy.master.hosts.controller_lag import ControllerLag
from ivypy.master.hosts.host_spec import HostSpec, Launcher
from ivypy.master.hosts.pipe import PipeLost
from tests.support.rollup import instance, rollups_by
from tests.support.simulated.loop import simulate

S = 10**9
LENGTH = S
RATE = 1000.0
ROLLUPS = rollups_by([instance(0, "h1", path="/dev/sd0")])
METRICS = [
    {"element": "pg", "attribute": "ios_per_s", "unit": "1/s", "kind": "counter", "combine": "sum"},
    {"element": "pg", "attribute": "busy_percent", "unit": "%"},
]


def now_ns() -> int:
    return round(asyncio.get_running_loop().time() * S)


@dataclass
class Array:
    """What the far program does. `clock`: from the true time to its own stamps; (0, 0): it sends none."""

    takes_s: Callable[[int], float] = lambda number: 0.05
    clock: Callable[[int], int] = lambda ns: ns + 77 * S
    answers: Mapping[int, Any] = field(default_factory=dict)  # number of the gather: in the place of its readings
    asked_ns: list[int] = field(default_factory=list)


class ScriptedPipe:
    """The pipe to a program that behaves as an Array says."""

    def __init__(self, array: Array) -> None:
        self._array = array
        self._output: asyncio.Queue[bytes] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._output.put_nowait(line(type="connector_hello", protocol=1, name="scripted"))

    async def read(self, n: int) -> bytes:
        data = await self._output.get()
        if data.startswith(b"DIES"):
            raise PipeLost("it exited with status 3 (no licence)")
        return data

    async def write(self, data: bytes) -> None:
        command = json.loads(data)
        if command["type"] == "read_config":
            facts = [["lun", "0", "path", "/dev/sd0"], ["lun", "0", "pg", "1-1"]]
            self._output.put_nowait(line(type="connector_config", re=command["id"], metrics=METRICS, facts=facts))
            return
        task = asyncio.ensure_future(self._gather(command["id"], len(self._array.asked_ns)))
        self._array.asked_ns.append(now_ns())
        self._tasks.add(task)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._output.put_nowait(b"")

    async def _gather(self, number: int, place: int) -> None:
        array, start = self._array, now_ns()
        await asyncio.sleep(array.takes_s(place))
        read_ns = (start + now_ns()) // 2  # in the middle of the gather
        facts = [["pg", "1-1", "ios_per_s", int(RATE * read_ns / S)], ["pg", "1-1", "busy_percent", 40]]
        stamps = {"start_ns": array.clock(start), "end_ns": array.clock(now_ns())}
        usual = line(type="readings", re=number, facts=facts, **stamps)
        instead = array.answers.get(place)
        if instead == "silence":
            return
        self._output.put_nowait(usual if instead is None else instead(number) if callable(instead) else instead)


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


@dataclass
class Step:
    """What a step of some subintervals saw of a connector."""

    gathers: list[GatheredSubinterval] = field(default_factory=list)
    late: list[Gathered] = field(default_factory=list)
    samples: list[float | None] = field(default_factory=list)  # of the counter, at barrier 1
    waited_s: list[float] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def states(self) -> list[str]:
        states = [str(one.state) for of_one in self.gathers for one in of_one.gathers]
        return states[1:]  # without the baseline

    def only(self, k: int) -> Gathered:
        (found,) = (one for of_one in self.gathers if of_one.number == k for one in of_one.gathers)
        return found

    def rate(self, k: int) -> float:
        return float(self.only(k).rates.tables["pg"].values[0, 0])


def step(
    array: Array,
    subintervals: int = 5,
    at: GatherAt = GatherAt.JUST_IN_TIME,
    deadline: float = 0.25,
    meanwhile: Callable[[], Awaitable[None]] | None = None,
) -> Step:
    """A step whose barrier 1 is passed at the end of each subinterval, and waits for the connector's rate."""
    return simulate(_step(array, subintervals, at, deadline, meanwhile))


async def _step(
    array: Array, subintervals: int, at: GatherAt, deadline: float, meanwhile: Callable[[], Awaitable[None]] | None
) -> Step:
    seen, spec = (
        Step(),
        ConnectorSpec(
            "array",
            HostSpec("array", Launcher.LOCAL, "array"),
            ("x",),
            join={"path": "path"},
            gather=at,
            deadline=deadline,
        ),
    )
    lag = ControllerLag(now_ns)
    lag.begin()
    driver = ConnectorDriver(ScriptedPipe(array), now_ns, lambda text: None, seen.notices.append)
    driving = asyncio.ensure_future(driver.drive())
    await driver.hello()
    config = await driver.config(())
    catalog, joined = Catalog(config.metrics), JoinedLuns(spec, config.facts)
    connected = Connected("array", catalog, Membership({ALL_HOSTS: joined}, ROLLUPS, {}))
    gathering = Gathering([Gatherer(spec, driver, catalog, lag)], [connected])
    start_ns = now_ns() + S // 2
    gathering.begin(start_ns, LENGTH, seen.gathers.append, seen.late.append)
    others = asyncio.ensure_future(meanwhile()) if meanwhile else None
    for k in range(subintervals):
        await asyncio.sleep((start_ns + (k + 1) * LENGTH - now_ns()) / S)
        began = now_ns()
        await gathering.wait(k, {"array"})
        seen.waited_s.append((now_ns() - began) / S)
        sample = gathering.sample(k, "array.pg_ios_per_s", 0)
        seen.samples.append(sample.amount / sample.per if sample.per else None)
    await gathering.end()
    await driver.close()
    for task in (driving, others):
        if task is not None:
            task.cancel()
    lag.end()
    return seen


def test_a_gather_just_in_time_ends_with_its_subinterval() -> None:
    found = step(Array(takes_s=lambda number: 0.2))
    assert found.states == ["gathered"] * 5
    for k in range(5):
        skew = found.only(k).times.skew_ns(found.only(k).boundary_ns)
        assert skew is not None and abs(skew) < 0.05 * LENGTH
    assert found.samples == pytest.approx([RATE] * 5, rel=1e-3)
    assert max(found.waited_s) < 0.05


def test_a_gather_at_the_end_begins_there() -> None:
    found, array = step(array := Array(takes_s=lambda number: 0.2), at=GatherAt.END), array
    assert [(asked - array.asked_ns[0]) / S for asked in array.asked_ns] == pytest.approx([0, 1, 2, 3, 4, 5])
    assert found.samples == pytest.approx([RATE] * 5, rel=1e-3)
    assert found.waited_s == pytest.approx([0.2] * 5, abs=0.01)


def test_times_that_vary_change_no_rate() -> None:
    """Rates are by the connector's stamps, and not by the length of a subinterval."""
    found = step(Array(takes_s=lambda number: (0.02, 0.3, 0.1, 0.4, 0.05, 0.2)[number % 6]), subintervals=12)
    shown = [rate for rate in found.samples if rate is not None]
    assert len(shown) >= 8
    assert shown == pytest.approx([RATE] * len(shown), rel=2e-2)


def test_a_slow_gather_is_labelled_and_nobody_waits_beyond_its_deadline() -> None:
    found = step(Array(takes_s=lambda number: 1.6 if number == 2 else 0.05), subintervals=6)
    assert found.states[:5] == ["gathered", "no_answer", "busy", "gathered", "gathered"]
    assert [one.subinterval for one in found.late] == [1]
    assert max(found.waited_s) == pytest.approx(0.25, abs=0.01)
    assert found.samples[1:3] == [None, None]
    assert found.samples[4] == pytest.approx(RATE, rel=1e-3)


def test_the_gather_after_a_gap_has_gauges_and_no_rates() -> None:
    found = step(Array(answers={2: lambda number: line(type="declined", re=number, reason="the array is busy")}))
    assert found.states == ["gathered", "declined", "gathered", "gathered", "gathered"]
    assert found.only(1).why == "the array is busy"
    values = found.only(2).rates.tables["pg"].values[0]
    assert (str(values[0]), values[1]) == ("nan", 40.0)
    assert found.rate(3) == pytest.approx(RATE, rel=1e-3)


def test_one_that_never_answers_again_misses_every_subinterval() -> None:
    found = step(Array(answers={2: "silence"}))
    assert found.states == ["gathered", "no_answer", "busy", "busy", "busy"]
    assert found.samples[1:] == [None] * 4


def test_one_that_dies_is_lost_with_its_last_words() -> None:
    found = step(Array(answers={2: b"DIES"}))
    assert found.states == ["gathered", "lost", "lost", "lost", "lost"]
    assert found.only(3).why == "it exited with status 3 (no licence)"
    assert max(found.waited_s) <= 0.25 + 0.01


NO_ANSWERS = {  # by why
    "is not JSON": b"Traceback (most recent call last):\n",
    "missing ['facts']": b'{"type":"readings","re":2}\n',
    "answers request 99, which is not pending": b'{"type":"readings","re":99,"facts":[]}\n',
    "a second connector_hello": b'{"type":"connector_hello","protocol":1,"name":"x"}\n',
    "is neither text nor a number": b'{"type":"readings","re":2,"facts":[["pg","1","busy_percent",null]]}\n',
    "unknown message 'ok'": b'{"type":"ok","re":2}\n',
    "more than 1,000 notices": b'{"type":"connector_notice","text":"x"}\n' * 1100,
    "longer than 16777216 bytes": b"x" * (17 << 20),
}


@pytest.mark.parametrize("why", NO_ANSWERS)
def test_what_is_no_answer_ends_the_connector_and_is_named(why: str) -> None:
    found = step(Array(answers={2: NO_ANSWERS[why]}))
    assert found.states == ["gathered", *["lost"] * 4]
    assert why in found.only(1).why


def test_a_notice_is_passed_on() -> None:
    notice = line(type="connector_notice", text="cache battery low")
    found = step(Array(answers={2: lambda number: notice + line(type="readings", re=number, facts=[])}))
    assert found.notices == ["cache battery low"]
    assert found.states == ["gathered"] * 5


@pytest.mark.parametrize(
    "clock, fault",
    [
        (lambda ns: 0, StampFault.ABSENT),
        (lambda ns: 10**15 - ns, StampFault.BACKWARDS),
        (lambda ns: ns * 3, StampFault.TOO_LONG),
        (lambda ns: ns + (0 if ns < 2 * S else 3600 * S), StampFault.JUMPED),
        (lambda ns: ns - (0 if ns < 2 * S else S), StampFault.BACKWARDS),
    ],
)
def test_a_connector_that_lies_about_time_is_labelled_and_its_rates_are_by_our_clock(
    clock: Callable[[int], int], fault: StampFault
) -> None:
    found = step(Array(clock=clock))
    assert fault in {found.only(k).stamps for k in range(5)}
    assert found.samples == pytest.approx([RATE] * 5, rel=0.06)
    for k in range(5):
        skew = found.only(k).times.skew_ns(found.only(k).boundary_ns)
        assert skew is not None and abs(skew) <= 0.25 * LENGTH


def test_a_stalled_controller_asks_for_no_subinterval_that_is_over() -> None:
    async def stall() -> None:
        await asyncio.sleep(1.9)
        loop: Any = asyncio.get_running_loop()
        loop.work(2.5)

    array = Array()
    found = step(array, subintervals=7, meanwhile=stall)
    assert {"no_answer"} <= set(found.states) <= {"gathered", "no_answer"}
    shown = [rate for rate in found.samples if rate is not None]
    assert shown == pytest.approx([RATE] * len(shown), rel=1e-2)
    assert len(array.asked_ns) < 8


def test_another_protocol_is_refused() -> None:
    async def wrong() -> None:
        pipe = ScriptedPipe(Array())
        pipe._output.get_nowait()
        pipe._output.put_nowait(line(type="connector_hello", protocol=2, name="x"))
        driver = ConnectorDriver(pipe, now_ns, lambda text: None, lambda text: None)
        driving = asyncio.ensure_future(driver.drive())
        with pytest.raises(ConnectorFault, match="version 2 of the connector protocol"):
            await driver.hello()
        await driver.close()
        driving.cancel()

    simulate(wrong())
