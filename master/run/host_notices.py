"""What hosts notify between steps is passed on when it comes: how much of the files is created, for instance.

Rule: everything else that they say unasked waits in the inbox, in its order, for the step that follows.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from ...protocol.payload import Notice
from ..hosts.driver import Driver, Event
from .fleet import Fleet


@asynccontextmanager
async def notices_passed_on(fleet: Fleet, tell: Callable[[str, str], None]) -> AsyncIterator[None]:
    """While the block runs; `tell` gets host and text."""
    waiting: list[tuple[Driver, Event]] = []

    def take(driver: Driver, event: Event) -> None:
        if isinstance(event, Notice):
            tell(driver.name, event.text)
        else:
            waiting.append((driver, event))

    async def listen() -> None:
        while True:
            take(*await fleet.inbox.get())

    listening = asyncio.create_task(listen())
    try:
        yield
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        while not fleet.inbox.empty():
            take(*fleet.inbox.get_nowait())
        for one in waiting:
            fleet.inbox.put_nowait(one)
