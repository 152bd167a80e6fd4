"""The faults: what each is called, whom it hits, and how it is injected and lifted."""

import random
from dataclasses import dataclass, field
from enum import Enum


class Kind(Enum):
    """Value: (on a host rather than on the controller's side, least and most seconds)."""

    KILL = (True, 0.0, 0.0)
    FREEZE = (True, 0.2, 6.0)
    CUT = (True, 0.3, 7.0)
    DELAY = (True, 0.5, 3.0)
    GARBAGE = (True, 0.0, 0.0)
    EIO = (True, 0.5, 2.0)
    HANG = (True, 0.3, 4.0)
    SLOW = (True, 0.5, 3.0)
    CONSOLE = (False, 0.5, 8.0)
    DISK_FROZEN = (False, 0.5, 5.0)
    DISK_FULL = (False, 0.5, 3.0)
    CONTROLLER = (False, 0.3, 3.0)

    @property
    def on_host(self) -> bool:
        return bool(self.value[0])

    def lasts(self, draw: random.Random) -> float:
        return draw.uniform(self.value[1], self.value[2])


@dataclass
class Injected:
    """One fault, planned; and when it really was, in UTC seconds by the run's clock."""

    kind: Kind
    host: str  # "" where it is not on one
    at_s: float  # after the first step began
    lasts_s: float
    began: float = field(default=float("inf"), init=False)
    ended: float = field(default=float("inf"), init=False)

    def overlap_s(self, start: float, end: float) -> float:
        return max(min(self.ended, end) - max(self.began, start), 0.0)


def drawn(draw: random.Random, hosts: list[str], count: int, within_s: float) -> list[Injected]:
    """`count` faults at random; no two of one kind on one host at the same time."""
    found: list[Injected] = []
    while len(found) < count:
        kind = draw.choice(list(Kind))
        host = draw.choice(hosts) if kind.on_host else ""
        at_s, lasts_s = draw.uniform(0.0, within_s), kind.lasts(draw)
        clear = all(
            (one.kind, one.host) != (kind, host)
            or at_s > one.at_s + one.lasts_s + 0.5
            or at_s + lasts_s + 0.5 < one.at_s
            for one in found
        )
        if clear:
            found.append(Injected(kind, host, at_s, lasts_s))
    return sorted(found, key=lambda one: one.at_s)
