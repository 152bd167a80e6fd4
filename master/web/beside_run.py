"""The server as a child of a run (`ivypy run --web`): started before it, told of its end, never waited for.

Rule: whatever becomes of the server, the run goes on. It has a session of its own: Ctrl-C reaches the run alone. Its
standard input is a pipe of the run: while that is open the run goes on. STAY before its end says that the run came to
its own end: then the server stays for those who look at its page. A run that was interrupted or killed leaves none.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from .live_clients import LiveClients

STAY: Final = b"stay\n"
LAST_S: Final = 5.0  # for pages to read how an interrupted run ended
ALONE_S: Final = 10.0  # without a client, who may only be loading the page again
LONGEST_S: Final = 12 * 3600.0
ROUND_S: Final = 0.5
PROGRAM: Final = "from ivypy.master.cli.main import main; main()"


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


class PageBesideRun:
    """Holds the child. `address` of the page; "" where the server did not start, and `fault` says why."""

    def __init__(self, root: Path) -> None:
        """Start it, and wait for its address, as long as it takes: Ctrl-C ends the wait. `root`: the folder in which
        the run makes its own."""
        self.address = self.fault = ""
        words = ["web", "--beside-run", "--", str(root)]
        with tempfile.TemporaryFile() as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", PROGRAM, *words],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
            )  # fmt: skip
            assert self._process.stdout is not None
            self.address = self._process.stdout.readline().decode().strip()  # "" where it ended before
            if not self.address:
                self._process.wait()
                errors.seek(0)
                self.fault = errors.read(4096).decode(errors="replace").strip() or "the server ended without a word"
            self._process.stdout.close()

    def end(self, stay: bool) -> None:
        """The run has ended. `stay`: the server may stay for those who look at its page."""
        assert self._process.stdin is not None
        with suppress(OSError):
            if stay:
                self._process.stdin.write(STAY)
            self._process.stdin.close()
