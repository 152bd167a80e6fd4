"""Who may use the page: the token of the printed address, the key that a browser gets for it, Host and Origin.

Rule: pure, the clock is handed in. A key is another one for each browser and each start of the server, and ends when it
was not used for a week. The page's own script keeps it where only its origin can read it, port included, and sends it
in a header: a cookie would go to whoever listens at another port of this machine, or at this one afterwards.
"""

import hmac
import ipaddress
import secrets
import socket
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

BEARER: Final = "Bearer "
WEBSOCKET: Final = "ivypy"  # the protocol that the page's websockets speak
KEY_AGE_S: Final = 7 * 24 * 3600.0  # without a request: pages that nobody looks at make none
MOST_KEYS: Final = 1000  # the one that was not used for longest is given up


class Keys:
    """State: the digests of the keys that were given, and when each was last used; the oldest use is first."""

    def __init__(self) -> None:
        self._used_s: OrderedDict[bytes, float] = OrderedDict()

    def new(self, now_s: float) -> str:
        key = secrets.token_urlsafe(32)
        self._used_s[_digest(key)] = now_s
        while len(self._used_s) > MOST_KEYS:
            self._used_s.popitem(last=False)
        return key

    def admits(self, key: str, now_s: float) -> bool:
        """Whether it was given, and has not ended; this is a use of it."""
        digest = _digest(key)
        used_s = self._used_s.pop(digest, None)
        if used_s is None or now_s - used_s > KEY_AGE_S:
            return False
        self._used_s[digest] = now_s
        return True


@dataclass(frozen=True)
class WebAccess:
    """Decides about requests. `names`: by which this machine may be called, beside its addresses."""

    names: frozenset[str]
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    keys: Keys = field(default_factory=Keys)

    def is_token(self, secret: str) -> bool:
        return _same(secret, self.token)

    def admits(self, secret: str, now_s: float) -> bool:
        """Whether a request comes from whom the token was given to."""
        return self.is_token(secret) or self.keys.admits(secret, now_s)

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


def _digest(text: str) -> bytes:
    """A look-up by it tells nothing of the text, however long it takes."""
    return sha256(text.encode("utf-8", "surrogateescape")).digest()


def secret_of(authorization: str) -> str:
    """Of the header; "" where there is none."""
    return authorization.removeprefix(BEARER) if authorization.startswith(BEARER) else ""
