"""How far a host has come with a command that may take long, and since when no further.

Rule: pure; times are handed in. A slave answers probes whatever its worker thread does; so with each reading it says
how much that has done, a number that grows while it gets on. Looks at devices have a limit each, and files are synced
every 64 MiB: a host whose number stands still for STUCK_NS will not answer.
"""

from typing import Final

STUCK_NS: Final = 120 * 10**9


class Progress:
    """Remembers since when nothing more was done."""

    def __init__(self) -> None:
        self._done = 0
        self._since_ns: int | None = None  # None: nothing that may take long is asked

    def asked(self, now_ns: int) -> None:
        """Something that may take long was asked."""
        self._since_ns = now_ns

    def said(self, done: int, now_ns: int) -> None:
        """The host says how much it has done."""
        if done > self._done:
            self._done = done
            self._since_ns = now_ns if self._since_ns is not None else None

    def answered(self) -> None:
        """Nothing that may take long is left to answer."""
        self._since_ns = None

    def stuck_ns(self) -> int | None:
        """When the host is stuck unless it gets on until then; None while nothing is asked of it."""
        return None if self._since_ns is None else self._since_ns + STUCK_NS
