"""What every request passes first, and every answer carries: access, Host and Origin, errors as sentences, headers."""

import logging
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from ..errors import IvypyError
from .access import Access, is_same_origin
from .answers import failure

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
    "Open the address that `ivypy web` printed, with its token; scripts send `Authorization: Bearer TOKEN`."
)
_LOG: Final = logging.getLogger("ivypy.web")


def guarded(access: Access, secure: bool) -> Middleware:
    """The middleware. `secure`: cookies only by https."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = _refusal(request, access)
        if refusal is not None:
            return refusal
        if request.path == "/" and "token" in request.query:
            return _let_in(request, access, secure)
        if not access.admits(request.cookies.get(access.cookie, ""), request.headers.get("Authorization", "")):
            return _sentence(request, 403, NO_TOKEN)
        return await _answered(request, handler)

    return guard


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


def _refusal(request: web.Request, access: Access) -> web.Response | None:
    """Of what another site made a browser send."""
    host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
    if not access.is_here(host):
        return _sentence(request, 403, "This machine is not called so; use its address or its name.")
    changes = request.method not in ("GET", "HEAD")
    if not changes and "Upgrade" not in request.headers:
        return None
    if origin is None and access.is_script(request.headers.get("Authorization", "")):
        return None
    if origin is None or not is_same_origin(origin, host):
        return _sentence(request, 403, "The request does not come from this page.")
    return None


def _let_in(request: web.Request, access: Access, secure: bool) -> web.Response:
    """The token for a cookie, and out of the address."""
    if request.method != "GET" or not access.is_token(request.query["token"]):
        return _sentence(request, 403, f"The token is not that of this server. {NO_TOKEN}")
    response = web.Response(status=303, headers={"Location": "/", "Cache-Control": "no-store"})
    response.set_cookie(access.cookie, access.key, path="/", httponly=True, samesite="Strict", secure=secure)
    return response


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
    return web.Response(status=status, text=f"{text}\n", headers={"Cache-Control": "no-store"})
