"""The log of a connector: the conversation, of which long lines stand there by their beginning."""

import asyncio
from typing import Any

from ivypy.master.connectors.connector_driver import MOST_LOGGED, ConnectorDriver
from tests.support.scripted_connector import ScriptedPipe, now_ns
from tests.support.simulated.loop import simulate


def test_ten_thousand_readings_a_second_fill_no_disk_with_their_log() -> None:
    async def answer(number: int, asked_ns: int) -> dict[str, Any]:
        return {"facts": [["port", f"p{one}", "ios_per_s", one] for one in range(10_000)]}

    async def main() -> list[str]:
        lines: list[str] = []
        driver = ConnectorDriver(ScriptedPipe(answer), now_ns, lines.append, lines.append)
        driving = asyncio.ensure_future(driver.drive())
        await driver.hello()
        await driver.config(())
        await driver.gather()
        await driver.close()
        await driving
        return lines

    readings = next(line for line in simulate(main()) if '"readings"' in line)
    assert len(readings) < MOST_LOGGED + 100 and readings.endswith("... (377.8 kB)")
