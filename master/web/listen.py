"""Where `ivypy web` listens: the address of the command line, checked, as sockets with their TLS.

Rule: beyond loopback it takes TLS, or the user's word that the network is safe. On loopback the page has a name below
`localhost` that is another one at each start: what another user's server leaves in the browser under this port is no
page of that origin. Such names stand for both loopback addresses, so both are taken.
"""

import errno
import ipaddress
import secrets
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ..errors import PlanError

DEFAULT: Final = "127.0.0.1:8808"
BACKLOG: Final = 128
LOOPBACKS: Final = {
    "127.0.0.1": (socket.AF_INET6, "::1"),
    "::1": (socket.AF_INET, "127.0.0.1"),
}  # what `localhost` stands for: each, and the other one
NONE_HERE: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)  # of a machine without that protocol
PORT_TRIES: Final = 16  # of free ports, until one is free on both


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """As on the command line."""

    host: str  # a name, an address, or "" for all addresses of this machine
    port: int  # 0: any that is free

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen(text: str) -> ListenAddress:
    """Read `127.0.0.1:8808`, `[::1]:8808`, `localhost:0`, `:8808` or a port alone. Raises PlanError."""
    fault = PlanError(f"--listen {text}: write ADDRESS:PORT, like {DEFAULT}")
    if text.isascii() and text.isdigit():
        text = f"127.0.0.1:{text}"
    try:
        parts = urlsplit(f"//{text}")
        if parts.port is None or parts.path or parts.query or parts.fragment or "@" in text:
            raise fault
        return ListenAddress(parts.hostname or "", parts.port)
    except ValueError:
        raise fault from None


def tls_of(cert: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """None without files. Raises PlanError."""
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise PlanError("--tls-cert and --tls-key belong together: give both")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ValueError) as error:
        why = error.reason if isinstance(error, ssl.SSLError) else getattr(error, "strerror", None)
        raise PlanError(f"--tls-cert {cert} --tls-key {key}: not read: {why or error}") from None
    return context


def own_name(address: ListenAddress, encrypted: bool) -> str:
    """A name for the page that no start before had; "" where names below `localhost` do not lead there.

    A certificate would not be for it.
    """
    _, place = _resolved(address)
    return "" if encrypted or place[0] not in LOOPBACKS else f"ivypy-{secrets.token_hex(8)}.localhost"


def listening(
    address: ListenAddress, encrypted: bool, insecure: bool, or_any_port: bool = False
) -> list[socket.socket]:
    """Sockets that listen there, on the same port: on both loopback addresses, if it is one of them. Raises PlanError.

    `or_any_port`: where that port is in use.
    """
    family, place = _resolved(address)
    if not (ipaddress.ip_address(place[0]).is_loopback or encrypted or insecure):
        raise PlanError(
            f"--listen {address}: other machines could read the token on the way and then use the page as you; give "
            "--tls-cert FILE --tls-key FILE, or --insecure if nobody else is on that network. Or keep to this machine, "
            "and forward the port: ssh -L 8808:127.0.0.1:8808 THIS_MACHINE"
        )
    try:
        return _bound_to_both(family, place)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and or_any_port:
            return listening(ListenAddress(address.host, 0), encrypted, insecure)
        if error.errno == errno.EADDRINUSE:
            raise PlanError(
                f"--listen {address}: another program listens there, perhaps another `ivypy web`; "
                f"end it, or take any free port: --listen {ListenAddress(address.host, 0)}"
            ) from None
        raise PlanError(f"--listen {address}: {error.strerror or error}") from None


def _bound_to_both(family: socket.AddressFamily, place: tuple[str, int]) -> list[socket.socket]:
    """Raises OSError."""
    for left in reversed(range(PORT_TRIES if place[1] == 0 else 1)):
        first = _bound(family, place)
        if place[0] not in LOOPBACKS:
            return [first]
        other, host = LOOPBACKS[place[0]]
        try:
            return [first, _bound(other, (host, first.getsockname()[1]))]
        except OSError as error:
            if error.errno in NONE_HERE:
                return [first]
            first.close()
            if error.errno != errno.EADDRINUSE or not left:
                raise
    raise AssertionError("the last try returns or raises")


def _bound(family: socket.AddressFamily, place: tuple[str, int]) -> socket.socket:
    """Raises OSError."""
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
        made.listen(BACKLOG)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


def _resolved(address: ListenAddress) -> tuple[socket.AddressFamily, tuple[str, int]]:
    """The first address that a name stands for."""
    try:
        addresses = socket.getaddrinfo(
            address.host or "0.0.0.0", address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise PlanError(f"--listen {address}: {error.strerror or error}") from None
    family, *_, place = addresses[0]
    return family, (str(place[0]), int(place[1]))


def url_of(listening: socket.socket, address: ListenAddress, name: str, encrypted: bool) -> str:
    """The page's address, without the token; `name`: its own, if it has one."""
    port = listening.getsockname()[1]
    host = name or address.host
    with suppress(ValueError):
        if not host or ipaddress.ip_address(host).is_unspecified:
            host = socket.gethostname()
    return f"{'https' if encrypted else 'http'}://{ListenAddress(host, port)}/"
