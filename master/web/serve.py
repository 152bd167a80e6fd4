"""The server itself, from the socket that listens to its end; and what every request passes first, and every answer
carries: access, Host and Origin, errors as sentences, headers.
"""

import logging
import os
import socket
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware

from ..errors import IvypyError
from ..pages.run_data import RunData
from .access import WEBSOCKET, WebAccess, is_same_origin, secret_of
from .answers import NOT_KEPT, failure
from .live_clients import LiveClients
from .open_runs import OpenRuns
from .routes import Routes

LONGEST_BODY: Final = 64 << 10  # bytes
NICER: Final = 10  # than a run beside it, which must not wait for a page
END_S: Final = 1.0  # for answers that are under way
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "ivypy",
}
NO_TOKEN: Final = (
    "Open the address that `ivypy web` printed, with its token. Scripts send `Authorization: Bearer TOKEN`."
)
NOT_ITS_NAME: Final = "This machine is not called so; use its address or its name."
BEGUN_ANEW: Final = "Open the address that `ivypy web` printed last: each start has another one."
SESSION: Final = "/api/session"  # where a browser gets its key
_LOG: Final = logging.getLogger("ivypy.web")


@dataclass(frozen=True, slots=True)
class Served:
    """The runs that are served, and to whom."""

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


def guarded(access: WebAccess) -> Middleware:
    """The middleware. The page's own files hold no secret, and whoever asks gets them."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = _refusal(request, access)
        if refusal is not None:
            return refusal
        secret = _secret(request)
        if request.path == SESSION:
            return _let_in(request, access, secret)
        is_open = request.path == "/" or request.path.startswith("/static/")
        if not is_open and not access.admits(secret, time.monotonic()):
            return _sentence(request, 403, NO_TOKEN)
        return await _answered(request, handler)

    return guard


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    response.headers.setdefault("Cache-Control", NOT_KEPT)


def _refusal(request: web.Request, access: WebAccess) -> web.Response | None:
    """Of what another site made a browser send."""
    host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
    if not access.is_here(host):
        words = BEGUN_ANEW if host.partition(":")[0].endswith(".localhost") else NOT_ITS_NAME
        return _sentence(request, 403, words)
    if request.method in ("GET", "HEAD") and "Upgrade" not in request.headers:
        return None
    if origin is not None and not is_same_origin(origin, host):
        return _sentence(request, 403, "The request does not come from this page.")
    return None


def _secret(request: web.Request) -> str:
    """A browser can give its websockets no header of its own but the protocols that they may speak."""
    spoken = [one.strip() for one in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    if len(spoken) == 2 and spoken[0] == WEBSOCKET:
        return spoken[1]
    return secret_of(request.headers.get("Authorization", ""))


def _let_in(request: web.Request, access: WebAccess, secret: str) -> web.Response:
    """A key for the token."""
    if request.method != "POST":
        return failure(405, "Send a POST.")
    if not access.is_token(secret):
        return failure(403, f"The token is not that of this server. {NO_TOKEN}")
    return web.json_response({"key": access.keys.new(time.monotonic())})


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge:
        return failure(413, "The request is too long.")
    except web.HTTPNotFound:
        return _sentence(request, 404, "There is nothing at this address.")
    except web.HTTPException as error:
        return _sentence(request, error.status, error.text or error.reason)
    except KeyError as error:
        return _sentence(request, 404, f"There is no {error.args[0] if error.args else error}.")
    except FileNotFoundError as error:
        return _sentence(request, 404, f"{error.filename}: is gone.")
    except (IvypyError, OSError) as error:
        return _sentence(request, 500, str(error))
    except Exception:
        _LOG.exception("%s %s", request.method, request.path)
        return _sentence(request, 500, "ivypy itself failed; the terminal of `ivypy web` shows how.")


def _sentence(request: web.Request, status: int, text: str) -> web.Response:
    if request.path.startswith("/api/"):
        return failure(status, text)
    return web.Response(status=status, text=f"{text}\n")
