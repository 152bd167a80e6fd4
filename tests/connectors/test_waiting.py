"""Control waits for the gathers of connectors that it looks at, and for none that is not to come any more."""

import asyncio
from typing import Any

from ivypy.master.connectors.gathering import KEPT, GatheredSubinterval, Gathering
from tests.support.scripted_connector import Rig, S, now_ns
from tests.support.simulated.loop import simulate


async def answer(number: int, asked_ns: int) -> dict[str, Any]:
    return {"facts": [["port", "1A", "ios_per_s", number]]}


async def once(number: int, asked_ns: int) -> dict[str, Any]:
    if number > 0:
        await asyncio.sleep(10**6)
    return await answer(number, asked_ns)


async def waited(rigs: dict[str, Rig], begin_s: float, subinterval: int, report: Any = lambda found: None) -> float:
    """How long control waits for `array` in a subinterval, from so long after the step's start."""
    gatherers = [await rig.begin(name) for name, rig in rigs.items()]
    gathering = Gathering(gatherers, [rig.connected for rig in rigs.values()])
    gathering.begin(now_ns(), S, report, report)
    await asyncio.sleep(begin_s)
    began_ns = now_ns()
    async with asyncio.timeout(100):
        await gathering.wait(subinterval, {"array"})
    waited_ns = now_ns() - began_ns
    try:
        await gathering.end()
    finally:
        for rig in rigs.values():
            await rig.close()
    return waited_ns / S


def test_no_longer_than_to_the_deadline() -> None:
    async def main() -> float:
        return await waited({"array": Rig(once)}, 0.5, 0)

    assert simulate(main()) == 0.75  # its end, and a quarter of its length


def test_not_for_a_subinterval_whose_gathers_are_forgotten() -> None:
    """The controller has fallen behind: it decides on one that ended long ago."""

    async def main() -> float:
        return await waited({"array": Rig(answer)}, KEPT + 5, 1)

    assert simulate(main()) == 0


def test_not_for_a_connector_whose_gathers_have_ended_by_a_fault() -> None:
    """The disk is full: that is the run's end, and no reason to wait for the other connector's."""

    def report(found: GatheredSubinterval) -> None:
        if found.number == 2:
            raise OSError("no space left on device")

    async def main() -> None:
        try:
            await waited({"array": Rig(answer), "other": Rig(answer)}, 6.5, 7, report)
        except OSError as error:
            raise AssertionError("seen") from error

    try:
        simulate(main())
    except AssertionError as error:
        assert str(error) == "seen"
    else:
        raise AssertionError("the fault is lost")
