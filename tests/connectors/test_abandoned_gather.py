"""A gather that a step's end abandons is nobody's any more, and its failure is no news."""

import asyncio
import gc
from typing import Any

from tests.support.scripted_connector import gathers
from tests.support.simulated.loop import simulate


def test_a_connector_that_never_answered_ends_without_a_word_of_asyncios() -> None:
    """asyncio reports an exception that nobody has read when its task is freed; at the interpreter's end that hangs."""

    async def answer(number: int, asked_ns: int) -> dict[str, Any]:
        await asyncio.sleep(0 if number == 0 else 10**6)
        return {"facts": []}

    async def main() -> list[dict[str, Any]]:
        reported: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
        await gathers(answer, 3)
        gc.collect()
        return reported

    assert simulate(main()) == []
