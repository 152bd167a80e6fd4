"""How long a server stays that was started with a run: `ivypy run --web`.

Rule: its standard input is a pipe of the run. While that is open the run goes on. STAY before its end says that the run
came to its own end: then the server stays for those who look at it. A run that was interrupted or killed leaves none.
"""

import asyncio
import sys
import time
from typing import Final

from .live_clients import LiveClients

STAY: Final = b"stay\n"
LAST_S: Final = 5.0  # for pages to read how an interrupted run ended
ALONE_S: Final = 10.0  # without a client, who may only be loading the page again
LONGEST_S: Final = 12 * 3600.0
ROUND_S: Final = 0.5


async def until_not_needed(clients: LiveClients) -> None:
    """Wait for the end of the run, and of those who look at it."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    if await reader.read() != STAY:
        await asyncio.sleep(LAST_S)
        return
    ended = time.monotonic()
    while (now := time.monotonic()) - ended < LONGEST_S:
        if not clients.count and now - max(clients.alone_since, ended) >= ALONE_S:
            return
        await asyncio.sleep(ROUND_S)
