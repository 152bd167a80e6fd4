"""How many logins may be under way to one address.

sshd refuses at random beyond ten that have not yet proved themselves (its default, `MaxStartups 10:30:100`), and the
refused one cannot tell that from a broken network; so no more than eight go at a time.
"""

import asyncio
from typing import Final

LOGINS_AT_A_TIME: Final = 8


class LoginGate:
    """Remembers, per address, who is at the door; one gate serves a whole run."""

    def __init__(self, at_a_time: int = LOGINS_AT_A_TIME) -> None:
        self._at_a_time = at_a_time
        self._doors: dict[str, asyncio.Semaphore] = {}

    def to(self, address: str) -> asyncio.Semaphore:
        """The door of an address: `async with gate.to(address): log in`."""
        return self._doors.setdefault(address, asyncio.Semaphore(self._at_a_time))
