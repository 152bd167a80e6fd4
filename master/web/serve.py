"""The server itself, from the socket that listens to its end."""

import logging
import os
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from ..pages.run_data import RunData
from .access import WebAccess
from .guard import add_headers, guarded
from .live_clients import LiveClients
from .open_runs import OpenRuns
from .routes import Routes

LONGEST_BODY: Final = 64 << 10  # bytes
NICER: Final = 10  # than a run beside it, which must not wait for a page
END_S: Final = 1.0  # for answers that are under way


@dataclass(frozen=True, slots=True)
class Served:
    """What is served, to whom."""

    roots: Sequence[Path]
    access: WebAccess
    control: bool
    tls: ssl.SSLContext | None = None


def application(served: Served, clients: LiveClients, opened: Callable[[Path], RunData] = RunData) -> web.Application:
    runs = OpenRuns(served.roots, opened, served.control)
    routes = Routes(runs, clients, served.control)
    app = web.Application(middlewares=[guarded(served.access)], client_max_size=LONGEST_BODY)
    app.add_routes(routes.table())
    app.on_response_prepare.append(add_headers)

    async def end(app: web.Application) -> None:
        clients.close()

    async def clean(app: web.Application) -> None:
        routes.close()
        runs.close()

    app.on_shutdown.append(end)
    app.on_cleanup.append(clean)
    return app


def _is_no_malformed_request(record: logging.LogRecord) -> bool:
    """Whoever reaches the port can send such, without the token, and would fill the terminal with tracebacks."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


async def serve(
    listening: Sequence[socket.socket], served: Served, until: Callable[[LiveClients], Awaitable[None]]
) -> None:
    """Serve until that is done."""
    os.nice(NICER)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    logging.getLogger("aiohttp.server").addFilter(_is_no_malformed_request)
    clients = LiveClients()
    runner = web.AppRunner(application(served, clients), access_log=None, shutdown_timeout=END_S)
    await runner.setup()
    try:
        for one in listening:
            await web.SockSite(runner, one, ssl_context=served.tls).start()
        await until(clients)
    finally:
        await runner.cleanup()
