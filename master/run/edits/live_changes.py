"""Changes of the load while a step runs: control's own, the user's, and a pause, which holds back both.

Rule: a change is worked out from the parameters in force and sent under the lock of HostSettings. The results name the
edit in force per workload instance, and so which subinterval a change from outside acted in: a change just before a
boundary is never missed, whenever its host acknowledges it.
"""

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ....protocol.counters import Count
from ....protocol.messages import Result
from ....protocol.parameters import MAX, Iops, Parameters
from ...hosts.controller_lag import Deadline
from ...rollup.instances import InstanceKey
from ...rollup.merge import MergedSubinterval
from ...rollup.validity import ScopedFinding
from ...verdicts import Finding, Reason
from ..setup.host_settings import EditResult, HostSettings
from .edit_backlog import Backlogs
from .edit_types import EditRefused, InForce

ANSWER_S: Final = 5.0  # the most that an edit from outside waits for its answers, and holds up control's own
MUTE_S: Final = 0.1  # for control's edits, where a host has not answered the one before
NOT_BEGUN: Final = "no step is running yet; an edit changes a running step"


class EditEffect(Enum):
    """The effect of changes from outside on a subinterval."""

    NO = "no"
    EDITED = "edited"  # a change acted in it: two loads in one row
    CATCHING_UP = "catching up"  # what fell due before a change was still being done in it
    PAUSED = "paused"  # it had no load from beginning to end


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """A change that was made."""

    number: int  # of the edit, in the run; 0: nothing was different from before, so nothing was sent
    before: Mapping[InstanceKey, Parameters]
    after: Mapping[InstanceKey, Parameters]
    effective: Mapping[str, tuple[int, int]]  # by host: the subinterval, and when, on the controller's clock in ns
    failed: Mapping[str, str]  # by host: why it does not have it
    discarded: int = 0  # overdue I/Os that the change of rates discarded

    @property
    def first(self) -> int:
        """The first subinterval in which any host had it."""
        return min((subinterval for subinterval, _ in self.effective.values()), default=0)


@dataclass(frozen=True, slots=True)
class _SentEdit:
    number: int
    hosts: frozenset[str]
    before: Mapping[InstanceKey, Parameters]  # of what it changes


@dataclass(frozen=True, slots=True)
class _OutsideChange:
    """A change from outside, for people."""

    words: str
    since: int  # the subinterval in which it acted first
    keys: frozenset[InstanceKey]  # what it changed


@dataclass(frozen=True, slots=True)
class _UnappliedEdit:
    """A change that a host did not answer, or not with yes."""

    host: str
    number: int
    settings: Mapping[InstanceKey, Parameters]
    since: int  # the subinterval in which it was sent
    why: str

    def finding(self, until: int | None) -> ScopedFinding:
        """On all rows of the host: a row that holds it beside others has two loads."""
        finding = Finding(Reason.EDIT_NOT_APPLIED, f"{self.host}: {self.why}")
        return ScopedFinding(finding, self.host, since=self.since, until=until)


class LiveChanges:
    """Holds one step's changes. `begin` it with the step's start, `close` it when nothing may change any more."""

    def __init__(self, host_settings: HostSettings, length_ns: int) -> None:
        self._host_settings = host_settings
        self._length_ns = length_ns
        self._start_ns = 0
        self._refusal: str | None = NOT_BEGUN  # None: changes are taken
        self._steered: dict[InstanceKey, Iops] = {}  # what control set them to in this step
        self._held: dict[InstanceKey, Iops] | None = None  # while paused: what unpausing sets
        self._outside: set[int] = set()  # numbers of edits from outside
        self._pauses: dict[int, int | None] = {}  # numbers of pauses, and of the edits that ended them
        self._in_force: dict[str, NDArray[np.int64]] = {}  # by host: each instance's last edit, as last seen
        self._absent: frozenset[str] = frozenset()  # not in the interval that was seen last, though they take part
        self._changed_in = -1  # the last subinterval that no measurement has, since one load was not all that it had
        self._changed_late = False  # a later one was so, too, as a result that came late says
        self._sent: list[_SentEdit] = []  # not yet seen on all of their hosts
        self._outside_changes: list[_OutsideChange] = []
        self._begun: Mapping[InstanceKey, Parameters] = {}  # the step's own: what the plan says
        self._untaken: list[_UnappliedEdit] = []
        self._backlogs = Backlogs()
        self._retimed: dict[int, frozenset[InstanceKey]] = {}  # by edit from outside: whose rate it changed
        self._numbers: Mapping[str, Sequence[int]] = {}  # by host: its workload instances, in the layout's order
        self._findings: list[ScopedFinding] = []

    @property
    def paused(self) -> bool:
        return self._held is not None

    @property
    def as_planned(self) -> bool:
        """Neither control nor anybody else has set the load in this step."""
        return not self._steered and not self._outside_changes

    @property
    def catching_up(self) -> int:
        """I/Os that wait since loads before changes, whether or not the step still waits for them."""
        return self._backlogs.waiting

    def begin(self, start_ns: int) -> None:
        self._start_ns = start_ns
        self._refusal = None
        self._begun = dict(self._host_settings.parameters)

    @property
    def wanted(self) -> Mapping[InstanceKey, Parameters]:
        """The parameters that were sent last, acknowledged or not; of lost hosts, those that would have been."""
        return self._host_settings.wanted

    @property
    def steered(self) -> Collection[InstanceKey]:
        """The instances whose IOPS control has set in this step."""
        return self._steered.keys()

    def release(self, settings: Mapping[InstanceKey, Parameters]) -> None:
        """Note what lost hosts are to drive no more, while `changing`."""
        self._host_settings.release(settings)

    def close(self, why: str) -> None:
        """From now on every change from outside is refused, for this reason."""
        self._refusal = why

    def running(self) -> int:
        """The subinterval that runs, whichever is decided on."""
        return max(0, (self._host_settings.now_ns() - self._start_ns) // self._length_ns)

    def check_changeable(self) -> None:
        """Raises EditRefused where nothing may change now."""
        self._check_open()
        if self._held is not None:
            raise EditRefused(["the run is paused; unpause it first"])

    def steers(self, changed: Mapping[InstanceKey, Parameters]) -> None:
        """Control set the IOPS of these instances."""
        self._steered.update((key, one.iops) for key, one in changed.items())

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[InForce]:
        """Yield what is in force, which nobody else changes before the end of the block: `send` a change there.

        Raises EditRefused where nothing may change now.
        """
        async with self._host_settings.changing:
            self.check_changeable()
            yield InForce(self._host_settings.parameters, self._host_settings.blocksizes, frozenset(self._steered))

    async def pause(self) -> ChangeResult:
        """IOPS 0 everywhere, until `unpause`. Raises EditRefused."""
        async with self._host_settings.changing:
            self._check_open()
            if self._held is not None:
                raise EditRefused(["the run is paused already"])
            self._held = {key: one.iops for key, one in self._host_settings.parameters.items()}
            still = {key: replace(one, iops=0.0) for key, one in self._host_settings.parameters.items()}
            acted = await self.send(still, "paused")
            self._pauses[acted.number] = None
            return acted

    async def unpause(self) -> ChangeResult:
        """Back to the IOPS from before the pause, or to what control has set since. Raises EditRefused."""
        async with self._host_settings.changing:
            self._check_open()
            if self._held is None:
                raise EditRefused(["the run is not paused"])
            held, self._held = self._held, None
            wanted = {key: replace(self._host_settings.parameters[key], iops=held[key]) for key in held}
            acted = await self.send(wanted, "unpaused")
            self._pauses |= {begun: acted.number for begun, ended in self._pauses.items() if ended is None}
            return acted

    @asynccontextmanager
    async def steering(self) -> AsyncIterator[Mapping[InstanceKey, Parameters]]:
        """Yield the parameters in force, which nobody else changes before the end of the block: `steer` them there."""
        async with self._host_settings.changing:
            yield self._host_settings.parameters

    async def steer(self, changed: Mapping[InstanceKey, Parameters], deadline: Deadline) -> Mapping[str, str]:
        """A change by the step's own control, while `steering`; while paused it is kept for afterwards. Returns who
        failed, and why."""
        self.steers(changed)
        if self._held is not None:
            self._held.update((key, one.iops) for key, one in changed.items())
            return {}
        return (await self._edit(changed, deadline, outside=False)).failed

    def seen(self, interval: MergedSubinterval) -> EditEffect:
        """Return what changes from outside did to the subinterval that has just closed. Call it once for each, in
        order.
        """
        self._absent, self._numbers = interval.absent, interval.layout.numbers
        if not (self._sent or self._pauses or self._untaken or self._backlogs or self._changed_late):
            return EditEffect.NO
        acted, newest, latest, catching_up = False, 0, set[int](), self._backlogs.total > 0
        self._backlogs.only(interval.part)
        for host in interval.results:
            counts = interval.counts[interval.layout.instances[host]]
            acted |= self._follow(interval.subinterval, host, counts)
            newest = max(newest, self._newest(host))
            latest.update(self._in_force[host].tolist())
        self._sent = [sent for sent in self._sent if any(self._newest(host) < sent.number for host in sent.hosts)]
        if acted:
            self._changed_in, self._changed_late = interval.subinterval, False
            return EditEffect.EDITED
        paused = any(begun in latest and (ended is None or ended > newest) for begun, ended in self._pauses.items())
        if paused:
            return EditEffect.PAUSED
        if self._changed_late or catching_up:
            edited, self._changed_in, self._changed_late = self._changed_late, interval.subinterval, False
            return EditEffect.EDITED if edited else EditEffect.CATCHING_UP
        return EditEffect.NO

    def joined(self, host: str, result: Result) -> None:
        """Note what changes from outside did to a subinterval that was seen without the host, and whose result came
        late.

        A measurement that has ended may include it; one that goes on begins anew after what is seen next, unless it
        began after the same change.
        """
        counts = np.frombuffer(result.counts.data, np.int64).reshape(-1, len(Count))
        number, catching_up = result.subinterval, self._backlogs.waits(host)
        if acted := self._follow(number, host, counts):
            words = f"{host}: it has two loads in subinterval {number}, whose result came late"
            finding = Finding(Reason.EDIT_NOT_APPLIED, words)
            self._findings.append(ScopedFinding(finding, host, since=number, until=number))
        self._changed_late |= (acted or catching_up) and number > self._changed_in

    def _follow(self, number: int, host: str, counts: NDArray[np.int64]) -> bool:
        """A host's result of subinterval `number`, in its turn: whether a change from outside acted there."""
        now = counts[:, Count.EDIT]
        before = self._in_force.get(host, np.zeros_like(now))
        acted = self._acted(before, now)
        self._in_force[host] = now
        self._follow_backlog(number, host, counts, (now != before) & acted)
        self._taken_late(host, number)
        return acted

    def _acted(self, before: NDArray[np.int64], now: NDArray[np.int64]) -> bool:
        """Whether a change from outside acted between these last edits of a host's instances."""
        # One edit may overtake another in one subinterval, and a long one may arrive in parts: both count.
        low, high = int(before.max(initial=0)), int(now.max(initial=0))
        passed = any(low < number <= high for number in self._outside)
        return passed or not self._outside.isdisjoint(now[now != before].tolist())

    def in_force(self) -> dict[InstanceKey, Parameters]:
        """The parameters at the end of the subinterval that was `seen` last: without edits that acted after it. What a
        host has that was not in is not known: what it was sent.
        """
        parameters = dict(self._host_settings.parameters)
        for sent in reversed(self._sent):
            late = {host for host in sent.hosts - self._absent if self._newest(host) < sent.number}
            parameters.update((key, one) for key, one in sent.before.items() if key[0] in late)
        return parameters

    def edited(self, first: int, last: int) -> Iterator[ScopedFinding]:
        """The findings of a measurement whose load was changed from outside.

        One that was edited back says nothing, where what is in force now is what was in force at its end.
        """
        made = [change for change in self._outside_changes if change.since <= last]
        if not made:
            return
        now = self.in_force() if len(made) == len(self._outside_changes) else None
        for one in made:
            words = f"{one.words}, in subinterval {one.since}"
            keys = one.keys if now is None else {key for key in one.keys if self._differs(key, now[key])}
            finding = Finding(Reason.EDITED, words)
            yield from (ScopedFinding(finding, host, number, first, last) for host, number in sorted(keys))

    def findings(self) -> Iterator[ScopedFinding]:
        """The findings of the whole step."""
        yield from self._findings
        yield from (one.finding(None) for one in self._untaken)
        for left in self._backlogs.left:
            words = f"{left.waiting:,} earlier I/Os are still outstanding and stopped shrinking"
            finding, number = Finding(Reason.EARLIER_BACKLOG, words), self._numbers[left.host][left.place]
            yield ScopedFinding(finding, left.host, number, left.since, left.until)

    def _differs(self, key: InstanceKey, now: Parameters) -> bool:
        """Whether parameters differ from the plan's, or from the IOPS that control has set since."""
        plan = self._begun[key]
        return now != replace(plan, iops=self._steered.get(key, plan.iops))

    def _follow_backlog(
        self, subinterval: int, host: str, counts: NDArray[np.int64], edited: NDArray[np.bool_]
    ) -> None:
        if not self._backlogs and not edited.any():
            return
        numbers = self._numbers[host]
        paced = np.array([self._host_settings.parameters[host, number].iops != MAX for number in numbers], bool)
        newest = counts[:, Count.EDIT].tolist()
        of_rate = [(host, n) in self._retimed.get(edit, ()) for n, edit in zip(numbers, newest, strict=True)]
        retimed = edited & np.array(of_rate, bool)
        self._backlogs.seen(subinterval, host, counts, edited & ~retimed, retimed, paced)

    def _taken_late(self, host: str, subinterval: int) -> None:
        """Its results show an edit that it did not acknowledge in time: the finding ends with this subinterval."""
        for taken in [
            change for change in self._untaken if change.host == host and change.number <= self._newest(host)
        ]:
            self._untaken.remove(taken)
            self._host_settings.acknowledged(taken.settings)
            self._findings.append(taken.finding(subinterval))

    def _newest(self, host: str) -> int:
        """The newest edit that the host had when it was last seen."""
        return int(self._in_force[host].max(initial=0)) if host in self._in_force else 0

    def _check_open(self) -> None:
        if self._refusal is not None:
            raise EditRefused([self._refusal])

    async def send(self, wanted: Mapping[InstanceKey, Parameters], words: str) -> ChangeResult:
        """A change from outside, while `changing`; `words`: what it is, and whose."""
        before = self._host_settings.parameters
        after = {key: one for key, one in wanted.items() if self._host_settings.needs(key, one)}
        if not after:
            return ChangeResult(0, {}, {}, {}, {})
        was = {key: before[key] for key in after}
        deadline = self._host_settings.deadline(min(ANSWER_S, max(self._length_ns / 1e9, 1.0)))
        edited = await self._edit(after, deadline, outside=True)
        effective = {
            host: (max(0, (at_ns - self._start_ns) // self._length_ns), at_ns)
            for host, at_ns in edited.effective_ns.items()
        }
        since = min((subinterval for subinterval, _ in effective.values()), default=self.running())
        self._outside_changes.append(_OutsideChange(words, since, frozenset(after)))
        failed = {**edited.failed, **dict.fromkeys(edited.lost, "it is lost")}
        return ChangeResult(edited.number, was, after, effective, failed, edited.discarded)

    async def _edit(self, settings: Mapping[InstanceKey, Parameters], deadline: Deadline, outside: bool) -> EditResult:
        """Send it; that it is under way is known before any host can have it."""
        number = self._host_settings.next_edit()
        if outside:
            self._outside.add(number)
        before = {key: self._host_settings.parameters[key] for key in settings}
        if outside:
            self._retimed[number] = frozenset(key for key, one in settings.items() if one.iops != before[key].iops)
        self._sent.append(_SentEdit(number, frozenset(host for host, _ in settings), before))
        since = self.running()
        edited = await self._host_settings.edit(number, settings, deadline, None if outside else MUTE_S)
        for host, why in edited.failed.items():
            mine = {key: one for key, one in settings.items() if key[0] == host}
            self._untaken.append(_UnappliedEdit(host, number, mine, since, why))
        return edited
