"""The connectors of a run: every process that was started is closed, however the start of another one went."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ivypy.master.connectors.connector_spec import ConnectorSpec
from ivypy.master.connectors.lifecycle import OPTIONAL_S, Connectors
from ivypy.master.errors import HostsError
from ivypy.master.hosts.controller_lag import ControllerLag
from tests.support.rollup import instance, rollups_by
from tests.support.scripted_connector import S, ScriptedPipe, now_ns, spec
from tests.support.simulated.loop import simulate


async def answer(number: int, asked_ns: int) -> dict[str, Any]:
    return {"facts": []}


async def never(number: int, asked_ns: int) -> dict[str, Any]:
    await asyncio.Event().wait()
    raise AssertionError


async def crowd(number: int, asked_ns: int) -> dict[str, Any]:
    """More elements than a connector may have."""
    return {"facts": [["port", f"{place}", "ios_per_s", 1] for place in range(20_001)]}


async def nonsense(number: int, asked_ns: int) -> dict[str, Any]:
    return {}


def silent() -> ScriptedPipe:
    """One that never says a word."""
    return ScriptedPipe(answer, begins=False)


class Launched:
    """Makes the next of some pipes at each start."""

    def __init__(self, *makers: Callable[[], ScriptedPipe]) -> None:
        self._makers = iter(makers)
        self.pipes: list[ScriptedPipe] = []
        self.events: list[str] = []
        self.connectors = Connectors(self._launch, lambda name: lambda text: None, self._event)
        self.lag = ControllerLag(now_ns, lambda: 0)

    async def _launch(self, spec: ConnectorSpec, log: Callable[[str], None]) -> ScriptedPipe:
        self.pipes.append(next(self._makers)())
        return self.pipes[-1]

    def _event(self, kind: str, text: str, host: str) -> None:
        self.events.append(text)

    async def start(self, *names: str) -> None:
        await self.connectors.start([spec(name) for name in names], self.lag)

    async def gather_once(self) -> None:
        gathering = self.connectors.gathering(rollups_by([instance(0, "h1")]))
        gathering.begin(now_ns(), S, lambda found: None, lambda found: None)
        await asyncio.sleep(0.5)
        await gathering.end()


async def never_interrupted(launched: Launched) -> None:
    await launched.connectors.restart(asyncio.Event())


def test_one_that_is_gone_for_what_it_sent_is_closed_before_it_is_started_again() -> None:
    async def main() -> Launched:
        launched = Launched(lambda: ScriptedPipe(nonsense), lambda: ScriptedPipe(answer))
        await launched.start("array")
        await launched.gather_once()
        await never_interrupted(launched)
        assert [pipe.closed for pipe in launched.pipes] == [True, False]
        await launched.connectors.close()
        return launched

    launched = simulate(main())
    assert launched.events == ["the connector array was started again"]
    assert all(pipe.closed for pipe in launched.pipes)


def test_one_that_does_not_start_again_is_closed_and_a_step_waits_for_a_while() -> None:
    async def main() -> tuple[Launched, float]:
        launched = Launched(lambda: ScriptedPipe(nonsense), silent)
        await launched.start("array")
        await launched.gather_once()
        began_ns = now_ns()
        await never_interrupted(launched)
        took_s = (now_ns() - began_ns) / S
        assert all(pipe.closed for pipe in launched.pipes)
        await launched.connectors.close()
        return launched, took_s

    launched, took_s = simulate(main())
    assert took_s == OPTIONAL_S and "was not started again: it sent no config" in launched.events[0]


@pytest.mark.parametrize("waits_s, restarted", [(5, False), (15, True)])
def test_one_that_hangs_is_started_again_between_steps(waits_s: float, restarted: bool) -> None:
    async def main() -> Launched:
        launched = Launched(lambda: ScriptedPipe(never), lambda: ScriptedPipe(answer))
        await launched.start("array")
        await launched.gather_once()
        await asyncio.sleep(waits_s)
        await never_interrupted(launched)
        await launched.connectors.close()
        return launched

    assert len(simulate(main()).pipes) == 1 + restarted


def test_one_with_too_many_elements_takes_no_part_any_more() -> None:
    async def main() -> Launched:
        launched = Launched(lambda: ScriptedPipe(crowd), lambda: ScriptedPipe(answer))
        await launched.start("array")
        await launched.gather_once()
        await never_interrupted(launched)
        await launched.connectors.close()
        return launched

    assert [pipe.closed for pipe in simulate(main()).pipes] == [True, True]


def test_an_interrupt_ends_a_start() -> None:
    async def main() -> tuple[Launched, float]:
        launched, interrupted = Launched(lambda: ScriptedPipe(nonsense), silent), asyncio.Event()
        await launched.start("array")
        await launched.gather_once()
        asyncio.get_running_loop().call_later(1, interrupted.set)
        began_ns = now_ns()
        await launched.connectors.restart(interrupted)
        took_s = (now_ns() - began_ns) / S
        await launched.connectors.close()
        return launched, took_s

    launched, took_s = simulate(main())
    assert took_s == 1 and all(pipe.closed for pipe in launched.pipes)


def test_those_that_have_started_are_closed_where_the_start_of_another_is_given_up() -> None:
    async def main() -> Launched:
        launched = Launched(lambda: ScriptedPipe(answer), silent)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await launched.start("good", "silent")
        await launched.connectors.close()
        return launched

    assert all(pipe.closed for pipe in simulate(main()).pipes)


def test_those_that_have_started_are_closed_where_another_cannot_be_used() -> None:
    async def main() -> Launched:
        launched = Launched(lambda: ScriptedPipe(answer), silent)
        with pytest.raises(HostsError, match="it sent no config within 30 s"):
            await launched.start("good", "silent")
        await launched.connectors.close()
        return launched

    assert all(pipe.closed for pipe in simulate(main()).pipes)
