"""Which stamps rates go by: those of a gather that something speaks against are used for no rate, before or after."""

import asyncio
from typing import Any

import pytest

from ivypy.master.connectors.gathered import StampFault
from tests.support.scripted_connector import S, gathers, now_ns
from tests.support.simulated.loop import simulate

RATE = 1000
TOOK_S = 0.01
HOUR = 3600 * S


def stamps_of(fault: StampFault, start_ns: int, end_ns: int) -> dict[str, Any]:
    match fault:
        case StampFault.ABSENT:
            return {}
        case StampFault.TOO_LONG:
            return {"start_ns": start_ns - S, "end_ns": end_ns}
        case StampFault.BACKWARDS:
            return {"start_ns": end_ns, "end_ns": start_ns - S}
        case StampFault.AHEAD:
            return {"start_ns": start_ns, "end_ns": end_ns, "stamps": {"port": end_ns + S // 2}}
        case StampFault.JUMPED:
            return {"start_ns": start_ns + HOUR, "end_ns": end_ns + HOUR}
    return {"start_ns": start_ns, "end_ns": end_ns}


@pytest.mark.parametrize("fault", [one for one in StampFault if one is not StampFault.NONE])
def test_one_faulty_gather_makes_no_rate_wrong(fault: StampFault) -> None:
    """The third gather's stamps are faulty, its counters are true, and so are those before and after it."""

    async def answer(number: int, asked_ns: int) -> dict[str, Any]:
        await asyncio.sleep(TOOK_S)
        ios = RATE * ((asked_ns + now_ns()) // 2) // S
        stamps = stamps_of(fault if number == 2 else StampFault.NONE, asked_ns + 7 * S, now_ns() + 7 * S)
        return {"facts": [["port", "1A", "ios_per_s", ios]], **stamps}

    found = simulate(gathers(answer, 5))
    rates = [float(one.rates.tables["port"].values[0, 0]) for one in found[1:]]
    assert rates == pytest.approx([RATE] * len(rates), rel=0.002)
    assert [one.stamps for one in found[:3]] == [StampFault.NONE, StampFault.NONE, fault]
    assert found[3].stamps is not StampFault.NONE, "its rates are since the faulty one"
    assert found[5].stamps is StampFault.NONE
