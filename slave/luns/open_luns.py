"""The LUNs that this host has open, and whether they may be: held, inspected, compared with consent, opened, closed.

Rule: a LUN is opened once per consent, and once more for I/O through the page cache (`direct: false`): read-only unless
the user agreed to writing, so that the kernel enforces it. One that is to be written is held first (a block device by
an exclusive claim), then compared with what was agreed to, checked again by the gate, and opened through that hold,
which is kept as long as the LUN is open. So nobody mounts a device after the inspection or while it is written, and
what is written is what was agreed to and checked, whatever its path names by then. A file cannot be claimed, and both
may grow: what is open is checked and compared once more, and again before each further step.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Optional

from ...protocol.consent_check import CHANGED, FINGERPRINT, consent_faults, lasting
from ...protocol.older_python import zip_strict
from ...protocol.payload import Identity, Notice, NoticeKind, Refusal, WorkloadToCreate
from ...protocol.quantities import exact_size
from ...protocol.refusals import RefusalReason
from ..bounded_calls import ANSWER_S, call_all
from ..devices.block_devices import ROOT
from ..devices.storage_exports import LunKey, lun_key
from ..engine._engine import Engine
from ..gate.file_changes import note_all, noted, times_of
from ..gate.holds import hold, is_written, through
from ..gate.open_for_writing import filesystem_that_may_hang
from ..gate.write_counters import WriteCounters
from ..gate.write_gate import Evidence, Surroundings, in_use, reasons_against
from .existing_files import MADE, MARK
from .lun_identity import WRITTEN, identity_of, identity_of_file
from .lun_target import LunTarget, NotDrivable, find_target
from .no_answer import no_answer_text
from .page_cache import IN_MEMORY, CachedLun, settle

Key = tuple[LunKey, bool]  # a LUN, and whether it may be written
Finding = tuple[Optional[Identity], tuple[str, ...]]  # which LUN it is; why it must not be written


@dataclass
class OpenLun:
    handles: dict[bool, int] = field(default_factory=dict)  # the engine's: past the page cache (True), through it
    held: int = -1  # of one that may be written: the gate's hold, a file descriptor
    identity: Identity | None = None  # of one that may be written: as it was agreed to, once it is open
    path: str = ""  # once it is open
    users: int = 0  # instances
    stands: str = ""  # of a file: its last change that was agreed to, or that a step made
    kept: bool = False  # of a file: it was marked as one that ivypy made
    running: bool = False  # a step runs that may write it
    driven: bool = False  # such a step ran
    dirty: bool = False  # a step may have written it through the page cache since that was written back

    @property
    def is_open(self) -> bool:
        """Otherwise it is only held, to be checked and then opened."""
        return bool(self.handles)


@dataclass(frozen=True)
class Inspection:
    """The result of inspecting the paths of workloads that are to be created, by path."""

    targets: Mapping[str, LunTarget] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)  # why there is nothing that can be driven
    inspected: Mapping[str, Finding] = field(default_factory=dict)  # of those that are to be written
    refusals: tuple[Refusal, ...] = ()  # why they could not be inspected at all


class OpenLuns:
    """State: which LUNs are open or held, and how many instances use each."""

    def __init__(
        self,
        engine: Engine,
        root: Path = ROOT,
        locked: Callable[[], frozenset[LunKey]] = frozenset,
        counters: WriteCounters | None = None,
        known: Callable[[], frozenset[LunKey]] = frozenset,
    ) -> None:
        """`locked`: the files that this process locked; `counters`: as noted when the LUNs were inspected.

        `known`: those of the locked ones whose contents are this process's own: blkid is not started for these.
        """
        self._engine = engine
        self._root = root
        self._locked = locked
        self._known = known
        self._counters = counters or WriteCounters(root)
        self._luns: dict[Key, OpenLun] = {}
        self._left: dict[
            Identity, Identity
        ] = {}  # of LUNs identified by their contents, too: agreed -> as they were left
        self.unnoted: set[str] = set()  # files that ivypy wrote, and could not note it
        self.written: dict[LunKey, str] = {}  # files that steps wrote: their last change then; "" while they are open

    def handle(self, key: Key, direct: bool) -> int:
        """The engine's, of one that is open so."""
        return self._luns[key].handles[direct]

    def held(self, key: Key) -> int:
        """A descriptor of one that is open; -1 of one that is never written."""
        return self._luns[key].held

    def add_user(self, key: Key) -> None:
        """One more instance uses it."""
        self._luns[key].users += 1

    def start(self, keys: Iterable[Key], buffered: Iterable[Key] = ()) -> list[Refusal]:
        """A step writes these from now on; refused, and none is, where somebody has changed such a file meanwhile.

        `buffered`: those of `keys` that it writes through the page cache. One that does not answer is not refused, as
        in `reinspect`.
        """
        luns = {key[0]: self._luns[key] for key in keys if not self._luns[key].running}
        faults = call_all([partial(_changed_since, lun) for lun in luns.values()], ANSWER_S)
        refusals = [
            Refusal(lun.path, RefusalReason.NO_LONGER_TO_BE_WRITTEN.sentence(reason=reason))
            for lun, reason in zip_strict(list(luns.values()), faults)
            if isinstance(reason, str) and reason
        ]
        if not refusals:
            for what, lun in luns.items():
                lun.running = lun.driven = True
                self.written[what] = ""
            for key in buffered:
                self._luns[key].dirty = True
        return refusals

    def is_dirty(self, key: Key) -> bool:
        """Whether the page cache may hold what earlier steps wrote to it."""
        return self._luns[key].dirty

    def settle_cache(self, dropped: Mapping[Key, LunTarget]) -> list[Notice]:
        """Write back what steps wrote through the page cache, to any LUN, and drop what it has of the LUNs of
        `dropped`; notices of what could not be done. May take long.
        """
        dirty = [key for key, lun in self._luns.items() if lun.dirty]
        once = {key[0]: key for key in sorted({*dropped, *dirty}, key=lambda key: key[1])}  # held ones before others
        drop = {key[0] for key, lun in dropped.items() if lun.filesystem not in IN_MEMORY}
        return self._settle(once.values(), drop)

    def _settle(self, keys: Iterable[Key], drop: Container[LunKey] = ()) -> list[Notice]:
        luns = {key: self._luns[key] for key in keys}
        notices = settle(
            [CachedLun(lun.path, partial(_opened_again, lun, what), what in drop) for (what, _), lun in luns.items()]
        )
        for lun, notice in zip_strict(list(luns.values()), notices):
            lun.dirty = notice is not None and notice.kind is NoticeKind.NOT_WRITTEN_BACK
        return [notice for notice in notices if notice is not None]

    def note_ended(self) -> None:
        """No step runs any more: note the last change of the files that it wrote."""
        luns = {what: lun for (what, _), lun in self._luns.items() if lun.running}
        found = call_all([partial(_standing, lun) for lun in luns.values()], ANSWER_S)
        for (what, lun), stands in zip_strict(list(luns.items()), found):
            lun.running = False
            if isinstance(stands, str):
                lun.stands = self.written[what] = stands
            else:
                self.written.pop(what, None)  # its last change counts as somebody's

    def remove_user(self, key: Key) -> None:
        """One instance fewer uses it; `close_unused` closes those that none uses."""
        self._luns[key].users -= 1

    def inspect(self, workloads: Sequence[WorkloadToCreate]) -> Inspection:
        """Hold the LUNs that these would write, and inspect all of theirs. Reads from those that would be written."""
        barred = self._hold(workloads)
        if any(error.errno == errno.EMFILE for error in barred.values()):
            return Inspection(refusals=(too_many_open_files(len({workload.lun for workload in workloads})),))
        writes = any(workload.consent for workload in workloads)
        around = Surroundings.read(self._root, openers=writes, blkid=writes)
        seen, missing = self._targets(workloads, around)
        written = dict.fromkeys(one.lun for one in workloads if one.consent is not None and one.lun in seen)
        return Inspection(seen, missing, self._inspect_all([seen[path] for path in written], around, barred))

    def open(self, wanted: Sequence[tuple[LunTarget, WorkloadToCreate]]) -> list[Refusal]:
        """Open the LUNs of these workloads as far as they are not open yet; what cannot be opened is refused."""
        refusals: list[Refusal] = []
        opened: dict[Key, tuple[LunTarget, WorkloadToCreate]] = {}  # for the first time
        ways = {(key_of(workload, lun), workload.parameters.direct): (lun, workload) for lun, workload in wanted}
        for (key, direct), (lun, workload) in ways.items():
            if direct in self._handles(key):
                continue
            first = not self._is_open(key)
            try:
                self._open(key, direct, lun, workload)
            except OSError as error:
                if error.errno == errno.EMFILE:
                    return [*refusals, too_many_open_files(len(ways))]
                refusals.append(Refusal(lun.path, _why_not_opened(error, lun)))
            else:
                if first and workload.consent is not None:
                    opened[key] = lun, workload
        return refusals + self._check_opened(list(opened.values()))

    def _open(self, key: Key, direct: bool, lun: LunTarget, workload: WorkloadToCreate) -> None:
        """Raises OSError."""
        if workload.consent is None:
            handle = self._engine.open_lun(lun.path, False, direct=direct)
            self._luns.setdefault(key, OpenLun(path=lun.path)).handles[direct] = handle
            return
        ours = self._luns[key]
        ours.handles[direct] = self._engine.open_lun(through(ours.held), True, lun.path, direct=direct)
        ours.identity, ours.path = workload.consent.identity, lun.path

    def _handles(self, key: Key) -> Mapping[bool, int]:
        return self._luns[key].handles if key in self._luns else {}

    def consent_faults(self, workload: WorkloadToCreate, lun: LunTarget, identity: Identity | None) -> list[str]:
        """Why this is not the LUN that was agreed to."""
        if workload.consent is None:
            return []
        agreed = workload.consent.identity
        if identity is not None and self._left.get(agreed) == identity:  # what has changed since, we wrote
            identity = agreed
        said = consent_faults({lun.path: agreed}, {lun.path: identity})
        return list(_against_writing(lun, list(said.values())))

    def reinspect(self, luns: Sequence[tuple[LunTarget, Identity]]) -> tuple[list[Refusal], list[Notice]]:
        """(refusals of LUNs that are open for writing and must not be any more, notices of those that do not answer).

        `luns`: those, and what was agreed to. The write gate and the identity are checked as before. A LUN that cannot
        be read any more is not refused: it could be read when it was opened, it has been held since, and the run counts
        I/O errors. Its users are still detected, without a read.
        """
        if not luns:
            return [], []
        around = Surroundings.read(self._root)
        looks_of: dict[str, tuple[str, ...] | OSError | None] = {}
        for look in (self._used_by_now, self._changed):
            asked = [(lun, agreed) for lun, agreed in luns if looks_of.get(lun.path, ()) == ()]
            looks = call_all([partial(look, lun, agreed, around) for lun, agreed in asked], ANSWER_S)
            looks_of.update(zip_strict([lun.path for lun, _ in asked], looks))
        refusals = [
            Refusal(path, RefusalReason.NO_LONGER_TO_BE_WRITTEN.sentence(reason=reason))
            for path, look in looks_of.items()
            for reason in (look if isinstance(look, tuple) else ())
        ]
        whats = {lun.path: lun.what for lun, _ in luns}
        for refusal in refusals:  # what somebody else changed is not noted as ours
            self._luns[whats[refusal.what], True].driven = False
            self.written.pop(whats[refusal.what], None)
        notices = [
            Notice(
                NoticeKind.NOT_INSPECTED,
                f"{path} was not inspected before this step: {(look and look.strerror) or _silence(path, around)}",
            )
            for path, look in looks_of.items()
            if not isinstance(look, tuple)
        ]
        return refusals, notices

    def _used_by_now(self, lun: LunTarget, agreed: Identity, around: Surroundings) -> tuple[str, ...]:
        """Who uses a block device that is open. Raises OSError."""
        if lun.device is None:
            return ()  # a file has one check only
        try:
            device = self._as_it_is(lun, around).device
        except NotDrivable as error:
            return (str(error),)
        return reasons_against(in_use(device, around)) if device is not None else ()

    def _changed(self, lun: LunTarget, agreed: Identity, around: Surroundings) -> tuple[str, ...]:
        """Why a LUN that is open must not be written, and whether it is another by now. Raises OSError."""
        ours = self._luns[lun.what, True]
        try:
            now = self._as_it_is(lun, around)
        except NotDrivable as error:
            return (str(error),)
        identity = identity_of(now, ours.held, self._root)
        as_agreed = agreed
        if ours.stands or ours.driven:
            identity, as_agreed = lasting(identity), lasting(agreed)
            if ours.stands and identity == as_agreed:  # a file
                identity, as_agreed = _changed_at(identity, times_of(ours.held)), _changed_at(as_agreed, ours.stands)
        elif self._left.get(agreed) == identity:
            identity = agreed
        said = consent_faults({lun.path: as_agreed}, {lun.path: identity})
        return (*said.values(), *reasons_against(replace(now.evidence(around, ours.held), unreadable="")))

    def _as_it_is(self, lun: LunTarget, around: Surroundings) -> LunTarget:
        """Inspect a LUN that is open as it is by now, through our hold on it. Raises NotDrivable."""
        return replace(find_target(through(self._luns[lun.what, True].held), around, self._root), path=lun.path)

    def close_unused(self) -> None:
        unused = {key: lun for key, lun in self._luns.items() if lun.users == 0}
        self._settle([key for key, lun in unused.items() if lun.dirty])  # else closing it would, without a limit
        around = cache(partial(Surroundings.read, self._root))
        for key, lun in unused.items():
            del self._luns[key]
            for handle in lun.handles.values():
                self._engine.close_lun(handle)
            if lun.held >= 0:
                if lun.driven:
                    self._leave(lun, around)
                os.close(lun.held)
        if any(lun.is_open and lun.held >= 0 for lun in unused.values()):
            self._counters.note()  # what we wrote ourselves does not count

    def settle(self) -> None:
        """Note that ivypy wrote the files that are open for writing. The engine must have closed them."""
        self.note_ended()
        around = cache(partial(Surroundings.read, self._root))
        for lun in list(self._luns.values()):
            if lun.driven:
                self._leave(lun, around)

    def _leave(self, lun: OpenLun, around: Callable[[], Surroundings]) -> None:
        """Note that its contents are ours, unless somebody else changed it, or may still write it."""
        try:
            what = lun_key(os.fstat(lun.held))
            self.written.pop(what, None)
            if what[0] == "file":
                self._leave_file(lun, what, around)
            elif lun.identity is not None and FINGERPRINT in dict(lun.identity.facts):
                there = find_target(through(lun.held), Surroundings.read(self._root), self._root)
                self._left[lun.identity] = identity_of(there, lun.held, self._root)
        except (NotDrivable, OSError):
            self.unnoted.add(lun.path)  # the user has to agree to it again

    def _leave_file(self, lun: OpenLun, what: LunKey, around: Callable[[], Surroundings]) -> None:
        """Raises OSError."""
        size = os.fstat(lun.held).st_size
        now = identity_of_file(through(lun.held), size, lun.held, self._root)
        created = what in self._locked()  # one of `create`, which this process has open for writing for itself
        written = False if created else _written_by_others(lun, around)
        if written is None:
            self.unnoted.add(lun.path)
        # Compared last: what is kept is then of before any change by others.
        if lun.identity is None or written is not False or times_of(lun.held) != lun.stands:
            return
        self.written[what] = lun.stands
        agreed = dict(lun.identity.facts).get(CHANGED)
        if agreed is not None and not created and dict(now.facts).get(CHANGED) != agreed:
            notes = {WRITTEN: agreed.encode()} | ({MARK: MADE} if lun.kept else {})
            if note_all(lun.held, notes, lun.stands):
                now = _changed_at(now, agreed)
                self.unnoted.discard(lun.path)
            else:
                self.unnoted.add(lun.path)
        self._left[lun.identity] = now

    def _targets(
        self, workloads: Sequence[WorkloadToCreate], around: Surroundings
    ) -> tuple[dict[str, LunTarget], dict[str, str]]:
        """(what is at the path of each LUN, why nothing that can be driven is)."""
        seen: dict[str, LunTarget] = {}
        missing: dict[str, str] = {}
        for path in dict.fromkeys(workload.lun for workload in workloads):
            try:
                seen[path] = find_target(path, around, self._root)
            except NotDrivable as error:
                missing[path] = str(error)
        return seen, missing

    def _inspect_all(
        self, luns: Sequence[LunTarget], around: Surroundings, barred: Mapping[str, OSError]
    ) -> dict[str, Finding]:
        """Inspect each LUN that is to be written, all at once."""
        known, by_table = self._known(), replace(around, blkid="")
        arounds = [by_table if lun.what in known else around for lun in luns]
        looks = [partial(self._inspect_one, lun, one, barred.get(lun.path)) for lun, one in zip_strict(luns, arounds)]
        answers = call_all(looks, ANSWER_S)
        return {
            lun.path: look if isinstance(look, tuple) else (None, _against_writing(lun, (_silence(lun.path, around),)))
            for lun, look in zip_strict(luns, answers)
        }

    def _inspect_one(self, lun: LunTarget, around: Surroundings, barred: OSError | None) -> Finding:
        """Its identity, read through our hold on it, if there is one; and why it must not be written."""
        ours = self._luns.get((lun.what, True))
        if ours is None:
            return None, self._gate(lun, around, barred)
        if ours.is_open:
            return ours.identity, ()
        against = self._gate(lun, around, barred) or _against_writing(lun, self._written_since(lun))
        try:
            return identity_of(lun, ours.held, self._root), against
        except OSError:
            return None, against

    def _written_since(self, lun: LunTarget) -> tuple[str, ...]:
        """Whether somebody wrote a device since it was inspected, whoever that was."""
        since = self._counters.since(lun.device) if lun.device is not None else None
        if since is None or not since.completed:
            return ()
        size = exact_size(since.bytes)
        return (RefusalReason.WRITTEN_SINCE.sentence(writes=since.completed, size=size, path=lun.path),)

    def _hold(self, workloads: Sequence[WorkloadToCreate]) -> dict[str, OSError]:
        """Hold the LUNs that are to be written and are not held yet; by its path, why one cannot be."""
        barred: dict[str, OSError] = {}
        locked = self._locked()
        for path in dict.fromkeys(workload.lun for workload in workloads if workload.consent is not None):
            try:
                if (lun_key(os.stat(path)), True) in self._luns:
                    continue
                held = hold(path, locked)
            except OSError as error:
                barred[path] = error
                continue
            lun = OpenLun(held=held)
            if self._luns.setdefault((lun_key(os.fstat(held)), True), lun) is not lun:
                os.close(held)
        return barred

    def _gate(self, lun: LunTarget, around: Surroundings, barred: OSError | None = None) -> tuple[str, ...]:
        """Why a LUN must not be written, whatever the controller requests. `barred`: why it could not be held."""
        ours = self._luns.get((lun.what, True))
        try:
            if ours is not None:
                refusals = reasons_against(lun.evidence(around, ours.held))
            elif barred is not None:
                refusals = reasons_against(_of_barred(lun.evidence(around), barred))
            else:
                refusals = (RefusalReason.PATH_CHANGED.sentence(),)
        except OSError as error:
            refusals = (RefusalReason.NOT_INSPECTED.sentence(error=error.strerror),)
        return _against_writing(lun, refusals)

    def _is_open(self, key: Key) -> bool:
        return key in self._luns and self._luns[key].is_open

    def _check_opened(self, opened: Sequence[tuple[LunTarget, WorkloadToCreate]]) -> list[Refusal]:
        """Why these LUNs, just opened, must not be written any more since they were checked; they may have grown, too.

        Nothing keeps others from a file, nor a claim those from a device who open it without one, as loop devices do.
        """
        if not opened:
            return []
        around = Surroundings.read(self._root)
        luns = [lun for lun, _ in opened]
        answers = call_all([partial(self._since, lun, workload, around) for lun, workload in opened], ANSWER_S)
        return [
            Refusal(lun.path, reason)
            for lun, look in zip_strict(luns, answers)
            for reason in (look if isinstance(look, tuple) else _against_writing(lun, (_silence(lun.path, around),)))
        ]

    def _since(self, lun: LunTarget, workload: WorkloadToCreate, around: Surroundings) -> tuple[str, ...]:
        """Why a LUN that is open must not be written; its size is the engine's by now."""
        ours = self._luns[lun.what, True]
        held = ours.held
        with contextlib.suppress(OSError):  # before it is compared: what changes after that was not agreed to
            ours.stands, ours.kept = _standing(ours), noted(held, MARK) == MADE
        if against := self._against_use(lun, around):
            return against
        identity: Identity | None = None
        with contextlib.suppress(NotDrivable, OSError):
            identity = identity_of(find_target(through(held), around, self._root), held, self._root)
        return tuple(self.consent_faults(workload, lun, identity))

    def _against_use(self, lun: LunTarget, around: Surroundings) -> tuple[str, ...]:
        if lun.device is None:
            return self._gate(lun, around)
        return _against_writing(lun, reasons_against(in_use(lun.device, around)))


def _opened_again(lun: OpenLun, what: LunKey) -> int:
    """A descriptor of its own. Raises OSError, ESTALE where another LUN is at the path by now."""
    if lun.held >= 0:
        return os.dup(lun.held)
    fd = os.open(lun.path, os.O_RDONLY | os.O_CLOEXEC)
    if lun_key(os.fstat(fd)) == what:
        return fd
    os.close(fd)
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def _standing(lun: OpenLun) -> str:
    """A file's last change by now; "" of a device. Raises OSError."""
    return times_of(lun.held) if lun_key(os.fstat(lun.held))[0] == "file" else ""


def _written_by_others(lun: OpenLun, around: Callable[[], Surroundings]) -> bool | None:
    """Whether anyone else has a file open for writing; None where nothing shows that. Raises OSError."""
    written = is_written(through(lun.held))
    if written is not None:
        return written
    status = os.fstat(lun.held)
    if around().unseen or filesystem_that_may_hang(os.readlink(through(lun.held)), around().mounts):
        return None  # a process, or another machine, may
    return bool(around().uses_of(lun_key(status), status.st_size))


def _changed_since(lun: OpenLun) -> str:
    """Whether somebody has changed a file since it was agreed to, or a step that wrote it ended. Raises OSError."""
    now = _standing(lun)
    if now == lun.stands:
        return ""
    return RefusalReason.CONTENTS_CHANGED.sentence(had=f"{CHANGED} {lun.stands}", has=f"{CHANGED} {now}")


def _changed_at(identity: Identity, when: str) -> Identity:
    """A file's identity with another last change."""
    others = [fact for fact in identity.facts if fact[0] != CHANGED]
    return replace(identity, facts=(*others, (CHANGED, when)))


def key_of(workload: WorkloadToCreate, lun: LunTarget) -> Key:
    return lun.what, workload.consent is not None


def _silence(path: str, around: Surroundings) -> str:
    return no_answer_text(ANSWER_S, path, around.mounts, around.root)


def too_many_open_files(luns: int) -> Refusal:
    """A LUN takes a descriptor, one that is written another one."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Refusal(f"{luns:,} LUNs", RefusalReason.TOO_MANY_OPEN.sentence(most=most))


def _against_writing(lun: LunTarget, refusals: Sequence[str]) -> tuple[str, ...]:
    return tuple(RefusalReason.MUST_NOT_BE_WRITTEN.sentence(lun=lun.path, reason=refusal) for refusal in refusals)


def _of_barred(seen: Evidence, error: OSError) -> Evidence:
    """The evidence against a LUN that could not be held: that alone is enough."""
    if error.errno == errno.EBUSY:
        return replace(seen, claimed=True)
    return replace(seen, unreadable=str(error.strerror))


def _why_not_opened(error: OSError, lun: LunTarget) -> str:
    """State what went wrong when a LUN was opened, and the remedy."""
    if error.errno == errno.EINVAL and lun.kind == "file":
        return RefusalReason.NO_O_DIRECT.sentence(filesystem=lun.filesystem, point=lun.mount)
    if error.errno == errno.ETXTBSY:
        return RefusalReason.PROGRAM_RUNS.sentence(path=lun.path)
    if error.errno in (errno.EACCES, errno.EPERM) and os.geteuid() == 0:
        return RefusalReason.OPENING_FORBIDDEN.sentence(error=error.strerror, path=lun.path)
    if error.errno in (errno.EACCES, errno.EPERM):
        return RefusalReason.OPENING_DENIED.sentence(error=error.strerror)
    if error.errno == errno.EBUSY:
        return RefusalReason.OPENED_BY_ANOTHER.sentence()
    if error.errno == errno.EROFS:
        return RefusalReason.OPENED_READ_ONLY.sentence()
    return RefusalReason.NOT_OPENED.sentence(error=error.strerror)
