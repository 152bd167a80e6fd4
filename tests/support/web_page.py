"""The page's server for tests: in the test's own event loop, or as the command that users start."""

import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from ivypy.master.pages.run_data import RunData
from ivypy.master.web.access import WebAccess, names_of_this_machine
from ivypy.master.web.live_clients import LiveClients
from ivypy.master.web.run_index import run_id
from ivypy.master.web.serve import Served, application
from tests.support.fork_server import Command


@dataclass
class Page:
    """A server, and a client that sends its token."""

    access: WebAccess
    client: aiohttp.ClientSession
    address: str  # http://127.0.0.1:PORT
    clients: LiveClients

    def of(self, folder: Path) -> str:
        """The data of a run."""
        return f"{self.address}/api/runs/{run_id(folder.resolve())}"


@asynccontextmanager
async def page_of(
    *roots: Path,
    control: bool = False,
    opened: Callable[[Path], RunData] = RunData,
    names: frozenset[str] = frozenset(),
) -> AsyncIterator[Page]:
    clients = LiveClients()
    access = WebAccess(names_of_this_machine("127.0.0.1") | names)
    runner = web.AppRunner(application(Served(roots, access, control), clients, opened), shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        _, port, *_ = runner.addresses[0]
        headers = {"Authorization": f"Bearer {access.token}"}
        async with aiohttp.ClientSession(headers=headers) as client:
            yield Page(access, client, f"http://127.0.0.1:{port}", clients)
    finally:
        await runner.cleanup()


def by_address(printed: str) -> str:
    """The printed address for what leads no names below `localhost` here."""
    return re.sub(r"//[^/]*:", "//127.0.0.1:", printed)


@contextmanager
def command(*words: str, started: Callable[..., Any] = Command) -> Iterator[tuple[Any, str]]:
    """`ivypy web`, and the address that it prints, with the token; Ctrl-C ends it with the block."""
    process = started("web", *words)
    try:
        yield process, process.stdout.readline().strip()
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
