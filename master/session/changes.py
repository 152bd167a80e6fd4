"""Changes of the load while a step runs: control's own, the user's, and a pause that holds back both.

Rule: a change is worked out from the parameters in force and sent while nothing else may change them. Which
subinterval a change from outside acted in is taken from the results themselves, which name the edit in force per
workload instance: so a change that acts just before a boundary is never missed, whenever it is acknowledged.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import Count
from ...protocol.parameters import Iops, Parameters
from ..errors import PlanError
from ..rollup.merge import Interval
from .settings import Key
from .told import Edited, Told


@dataclass(frozen=True, slots=True)
class Present:
    """What a change from outside has to know."""

    parameters: Mapping[Key, Parameters]  # in force
    blocksizes: Mapping[Key, int]  # the most for each instance: what its buffers hold
    steered: frozenset[Key]  # the instances whose IOPS control sets


Alter = Callable[[Present], Mapping[Key, Parameters]]  # to the parameters of those that change

NOT_BEGUN: Final = "no step is running yet; an edit acts on a running step"


class EditRefused(PlanError):
    """A change of a running test that is not made; nothing was sent. Its text is every reason, a line each."""

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("\n".join(self.reasons))


class Disturbed(Enum):
    """What changes from outside did to a subinterval."""

    NO = "no"
    EDITED = "edited"  # a change acted in it: two loads in one row
    PAUSED = "paused"  # it had no load from beginning to end


@dataclass(frozen=True, slots=True)
class Acted:
    """A change that was made."""

    number: int  # of the edit, in the run; 0: nothing was different from before, so nothing was sent
    before: Mapping[Key, Parameters]
    after: Mapping[Key, Parameters]
    effective: Mapping[str, tuple[int, int]]  # by host: the subinterval, and when, on the controller's clock in ns
    failed: Mapping[str, str]  # by host: why it does not have it


@dataclass(frozen=True, slots=True)
class _Sent:
    number: int
    hosts: frozenset[str]
    before: Mapping[Key, Parameters]  # of what it changes


class Changes:
    """Remembers one step's changes. `begin` it with the step's start, `close` it when nothing may change any more."""

    def __init__(self, told: Told, length_ns: int) -> None:
        self._told = told
        self._length_ns = length_ns
        self._start_ns = 0
        self._refusal = NOT_BEGUN
        self._steered: set[Key] = set()  # their IOPS were set by control in this step
        self._held: dict[Key, Iops] | None = None  # while paused: what unpausing sets
        self._outside: set[int] = set()  # numbers of edits from outside
        self._pauses: dict[int, int | None] = {}  # numbers of pauses, and of the edits that ended them
        self._in_force: dict[str, NDArray[np.int64]] = {}  # by host: each instance's last edit, as last seen
        self._sent: list[_Sent] = []  # not yet seen on all of their hosts

    @property
    def paused(self) -> bool:
        return self._held is not None

    def begin(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self._refusal = ""

    def close(self, why: str) -> None:
        """From now on every change from outside is refused, for this reason."""
        self._refusal = why

    def check_changeable(self) -> None:
        """Raises EditRefused where nothing may change now."""
        self._check_open()
        if self._held is not None:
            raise EditRefused(["the run is paused; unpause it first"])

    def steers(self, keys: Iterable[Key]) -> None:
        """Control set the IOPS of these instances, or will."""
        self._steered.update(keys)

    async def alter(self, alter: Alter) -> Acted:
        """A change from outside. Raises EditRefused, also what `alter` raises."""
        async with self._told.changing:
            self.check_changeable()
            present = Present(self._told.parameters, self._told.blocksizes, frozenset(self._steered))
            return await self._send(alter(present))

    async def pause(self) -> Acted:
        """IOPS 0 everywhere, until `unpause`. Raises EditRefused."""
        async with self._told.changing:
            self._check_open()
            if self._held is not None:
                raise EditRefused(["the run is paused already"])
            self._held = {key: one.iops for key, one in self._told.parameters.items()}
            still = {key: replace(one, iops=0.0) for key, one in self._told.parameters.items()}
            acted = await self._send(still)
            self._pauses[acted.number] = None
            return acted

    async def unpause(self) -> Acted:
        """Back to the IOPS from before the pause, or to what control has set since. Raises EditRefused."""
        async with self._told.changing:
            self._check_open()
            if self._held is None:
                raise EditRefused(["the run is not paused"])
            held, self._held = self._held, None
            acted = await self._send({key: replace(self._told.parameters[key], iops=held[key]) for key in held})
            self._pauses |= {begun: acted.number for begun, ended in self._pauses.items() if ended is None}
            return acted

    async def steer(self, work: Callable[[Mapping[Key, Parameters]], Mapping[Key, Parameters]]) -> Mapping[str, str]:
        """A change by the step's own control; while paused it is kept for afterwards. Returns who failed, and why."""
        async with self._told.changing:
            changed = work(self._told.parameters)
            self.steers(changed)
            if self._held is not None:
                self._held.update((key, one.iops) for key, one in changed.items())
                return {}
            return (await self._edit(changed, outside=False)).failed

    def seen(self, interval: Interval) -> Disturbed:
        """What changes from outside did to the subinterval that has just closed. Call it once for each, in order."""
        if not self._sent and not self._pauses:
            return Disturbed.NO
        acted, newest, latest = False, 0, set[int]()
        for host, result in interval.results.items():
            now = np.frombuffer(result.counts.data, "<i8").reshape(-1, len(Count))[:, Count.EDIT]
            before = self._in_force.get(host, np.zeros_like(now))
            # One edit may overtake another in one subinterval, and a long one may arrive in parts: either tells.
            low, high = int(before.max(initial=0)), int(now.max(initial=0))
            acted |= any(low < number <= high for number in self._outside)
            acted |= not self._outside.isdisjoint(now[now != before].tolist())
            self._in_force[host] = now
            newest = max(newest, high)
            latest.update(now.tolist())
        self._sent = [sent for sent in self._sent if any(self._newest(host) < sent.number for host in sent.hosts)]
        if acted:
            return Disturbed.EDITED
        paused = any(begun in latest and (ended is None or ended > newest) for begun, ended in self._pauses.items())
        return Disturbed.PAUSED if paused else Disturbed.NO

    def in_force(self) -> dict[Key, Parameters]:
        """The parameters at the end of the subinterval that was `seen` last: without edits that acted after it."""
        parameters = dict(self._told.parameters)
        for sent in reversed(self._sent):
            late = {host for host in sent.hosts if self._newest(host) < sent.number}
            parameters.update((key, one) for key, one in sent.before.items() if key[0] in late)
        return parameters

    def _newest(self, host: str) -> int:
        """The newest edit that the host had when it was last seen."""
        return int(self._in_force[host].max(initial=0)) if host in self._in_force else 0

    def _check_open(self) -> None:
        if self._refusal:
            raise EditRefused([self._refusal])

    async def _send(self, wanted: Mapping[Key, Parameters]) -> Acted:
        before = self._told.parameters
        after = {key: one for key, one in wanted.items() if self._told.needs(key, one)}
        if not after:
            return Acted(0, {}, {}, {}, {})
        was = {key: before[key] for key in after}
        edited = await self._edit(after, outside=True)
        effective = {
            host: (max(0, (at_ns - self._start_ns) // self._length_ns), at_ns)
            for host, at_ns in edited.effective_ns.items()
        }
        return Acted(edited.number, was, after, effective, edited.failed)

    async def _edit(self, settings: Mapping[Key, Parameters], outside: bool) -> Edited:
        """Send it; that it is under way is known before any host can have it."""
        number = self._told.next_edit()
        if outside:
            self._outside.add(number)
        before = {key: self._told.parameters[key] for key in settings}
        self._sent.append(_Sent(number, frozenset(host for host, _ in settings), before))
        return await self._told.edit(number, settings)
