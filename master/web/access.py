"""Who may use the page: the token of the printed address, the cookie that a browser gets for it, Host and Origin.

Rule: pure, but for the key of the cookies, which a file keeps, so that a browser that was let in is not shut out when
the server is started again. That file is the user's own, beside the control sockets.
"""

import hmac
import ipaddress
import os
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ..errors import OutputError
from ..live.socket_paths import folder

KEY_BYTES: Final = 32
BEARER: Final = "Bearer "


@dataclass(frozen=True)
class Access:
    """Decides about requests. `names`: by which this machine may be called, beside its addresses."""

    port: int
    names: frozenset[str]
    key: str  # what the cookie of a browser holds
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def cookie(self) -> str:
        """Its name: browsers send a cookie to all ports of a machine."""
        return f"ivypy_{self.port}"

    def is_token(self, text: str) -> bool:
        return _same(text, self.token)

    def admits(self, cookie: str, authorization: str) -> bool:
        """Whether a request comes from whom the token was given to."""
        return _same(cookie, self.key) or self.is_script(authorization)

    def is_script(self, authorization: str) -> bool:
        """Whether the token itself was sent, which no other site can make a browser do."""
        return authorization.startswith(BEARER) and self.is_token(authorization.removeprefix(BEARER))

    def is_here(self, host: str) -> bool:
        """Whether a Host header names this machine: a site that has its own name lead here (DNS rebinding) does not.

        An address is no such name. Any port: it may be forwarded by ssh.
        """
        name = _name(host)
        if name is None:
            return False
        with suppress(ValueError):
            return bool(ipaddress.ip_address(name))
        return name in self.names


def is_same_origin(origin: str, host: str) -> bool:
    """Whether a request that changes something was made by the page itself."""
    scheme, _, place = origin.partition("://")
    return scheme in ("http", "https") and bool(place) and place.lower() == host.lower()


def names_of_this_machine(listen: str) -> frozenset[str]:
    """`listen`: the name that the command line gave, or an address."""
    named = (listen, "localhost", socket.gethostname(), socket.getfqdn())
    return frozenset(name.lower() for name in named if name)


def kept_key(port: int) -> str:
    """The key of the cookies of this user's servers on a port; one that lasts only as long as the server where
    nothing can be kept."""
    fresh = secrets.token_urlsafe(KEY_BYTES)
    try:
        place = folder(make=True)
        assert place is not None
        return _kept(place / f"web-{port}.key", fresh)
    except (OSError, OutputError):
        return fresh


def _kept(path: Path, fresh: str) -> str:
    with suppress(FileExistsError):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(file, "w") as opened:
            opened.write(fresh)
    kept = path.read_text()
    return kept if len(kept) == len(fresh) else fresh  # a server that starts at the same time has not written it yet


def _name(host: str) -> str | None:
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    return parts.hostname if host and not parts.path and "@" not in host else None


def _same(text: str, secret: str) -> bool:
    """In a time that does not tell how much of it is right."""
    return hmac.compare_digest(text.encode("utf-8", "surrogateescape"), secret.encode())
