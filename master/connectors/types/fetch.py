"""One page by HTTP, whole and in time, or the reason why not.

Rule: the timeout bounds the whole of it. A socket's own timeout bounds only each read, so a server that sends a byte
now and then would never end: at the deadline the socket is shut down, which ends any read. No proxy of the environment
is used: what measures must take the way that the plan names.
"""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import SplitResult, urlsplit

from ....protocol.connector import Cannot

MOST_BYTES: Final = 16 << 20
_REMEDIES: Final[Mapping[int, str]] = {
    401: "give `token_file`, a file with a bearer token that it accepts",
    403: "give `token_file`, a file with a bearer token that it accepts",
    404: "exporters usually have it at /metrics",
}


def checked_url(url: str) -> SplitResult:
    """Raises ValueError."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  raises where it is no port
    except ValueError as error:
        raise ValueError(f"options.url: {url!r}: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"options.url: {url!r} is no URL; write for example http://10.0.0.1:9100/metrics")
    if parts.username is not None or parts.password is not None:
        raise ValueError("options.url has a password, which each copy of the plan would have; use `token_file`")
    return parts


def tls_context(ca_file: str) -> ssl.SSLContext:
    """`ca_file`: certificates to trust in place of the system's; "": the system's. Raises ValueError."""
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"options.ca_file: {ca_file}: {error}") from None


def fetch(url: SplitResult, headers: Mapping[str, str], timeout_s: float, tls: ssl.SSLContext | None) -> str:
    """The text of the page. Raises Cannot."""
    host = url.hostname or ""
    connection = (
        http.client.HTTPSConnection(host, url.port, timeout=timeout_s, context=tls)
        if tls is not None
        else http.client.HTTPConnection(host, url.port, timeout=timeout_s)
    )
    shown = url.geturl()
    deadline_s = time.monotonic() + timeout_s
    shut_down: threading.Timer | None = None
    try:
        connection.connect()
        shut_down = threading.Timer(deadline_s - time.monotonic(), _shut_down, [connection.sock])
        shut_down.daemon = True
        shut_down.start()
        connection.request("GET", (url.path or "/") + (f"?{url.query}" if url.query else ""), headers=dict(headers))
        response = connection.getresponse()
        data = response.read(MOST_BYTES + 1)
    except (OSError, http.client.HTTPException, ValueError) as error:
        late = isinstance(error, TimeoutError) or time.monotonic() >= deadline_s
        raise Cannot(_too_late(shown, timeout_s) if late else f"{shown}: {_why(error)}") from None
    finally:
        if shut_down is not None:
            shut_down.cancel()
        connection.close()
    if time.monotonic() >= deadline_s:
        raise Cannot(_too_late(shown, timeout_s))
    if response.status != 200:
        remedy = _REMEDIES.get(response.status, "")
        if location := response.headers.get("Location"):
            remedy = f"it refers to {location}: write that as `url`"
        raise Cannot(f"{shown} answered {response.status} {response.reason}{'; ' + remedy if remedy else ''}")
    if len(data) > MOST_BYTES:
        raise Cannot(f"{shown}: its answer is larger than {MOST_BYTES >> 20} MiB; request fewer metrics in the URL")
    if (length := response.length) not in (None, 0):
        raise Cannot(f"{shown}: its answer ended {length} bytes too early")
    return data.decode("utf-8", "replace")


def _shut_down(connected: socket.socket) -> None:
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


def _too_late(shown: str, timeout_s: float) -> str:
    return f"{shown} gave no whole answer within {timeout_s:g} s; check that it runs there, or give a longer `timeout`"


def _why(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused; check that it runs there, and the port"
    if isinstance(error, socket.gaierror):
        return f"its name is not known here ({error.strerror})"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}); give `ca_file`, a file with its authority's"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
