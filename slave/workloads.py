"""The workload instances of this host: which there are, which LUNs they have open, which thread drives each.

Rule: a list is created whole or not at all, and every reason against it is told at once. A LUN is opened once per
consent: read-only unless the user agreed to writing, so that the kernel enforces it. One that is to be written is held
first (a block device by an exclusive claim), then compared with what was agreed to, judged anew by the gate, and opened
through that hold, which is kept as long as the LUN is open. So nobody mounts a device behind the look or while it is
written, and what is written is what was agreed to and judged, whatever its path names by then. A file cannot be
claimed, and both may grow: what is open is judged and compared once more, and again before each further step.
"""

import contextlib
import errno
import itertools
import os
import resource
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..protocol.agreement import FINGERPRINT, unagreed
from ..protocol.messages import ArrayType, EditWorkloads, Go, Identity, Notice, NoticeKind, Refusal, WorkloadToCreate
from ..protocol.parameters import MAX, Parameters
from . import validation
from .block_devices import ROOT
from .bounded_calls import ANSWER_S, answers, silent
from .engine._engine import Engine
from .holds import hold, through
from .host_info import aio_left
from .huge_pages import HUGE
from .lun_identity import identity_of
from .lun_target import NotDrivable, Target, target
from .spread import FIRST_FURTHER, Order, Part, split, threads_wanted
from .storage_exports import What, what_is
from .thread_assignment import Load, Wanted, deal, shares
from .write_gate import Evidence, Surroundings, in_use, judge

if TYPE_CHECKING:
    from .engine._engine import Fields  # a shape, not a class: only its stub knows it

PAGE: Final = 4096

Key = tuple[What, bool]  # a LUN, and whether it may be written
Look = tuple[Identity | None, tuple[str, ...]]  # which LUN it is; why it must not be written


@dataclass(slots=True)
class OpenLun:
    handle: int = -1  # the engine's; -1: it is only held, to be judged and then opened
    held: int = -1  # of one that may be written: the gate's hold, a file descriptor
    identity: Identity | None = None  # of one that may be written: as it was agreed to, once it is open
    users: int = 0  # instances


@dataclass(frozen=True, slots=True)
class Instance:
    workload: WorkloadToCreate
    target: Target
    parts: tuple[Part, ...]  # at least one
    parameters: Parameters  # in force

    @property
    def lun(self) -> Key:
        return key_of(self.workload, self.target)


class Workloads:
    """Remembers the instances; every method that changes them leaves engine and memory agreeing."""

    def __init__(
        self,
        engine: Engine,
        backend: str,
        nodes: Sequence[int | None],
        root: Path = ROOT,
        locked: Callable[[], frozenset[What]] = frozenset,
    ) -> None:
        """`nodes`: of each workload thread's core; None: not known. `locked`: the files that this process locked."""
        self._engine = engine
        self.backend = backend
        self._nodes = tuple(nodes)
        self._contexts = [0] * len(nodes)  # I/Os that the kernel holds room for since the last step, per thread
        self._root = root
        self._locked = locked
        self._numbers = itertools.count(FIRST_FURTHER)  # of further parts
        self._freed: list[int] = []  # such numbers, to be used again
        self._instances: dict[int, Instance] = {}
        self._luns: dict[Key, OpenLun] = {}
        self._left: dict[Identity, Identity] = {}  # of LUNs known by their contents alone: as they were left
        self.written: set[What] = set()  # LUNs that were ever opened to be written

    def use(self, backend: str) -> None:
        """Drive them another way; before the first step only. Raises OSError."""
        self._engine.use(backend)
        self.backend = backend

    def create(self, workloads: Sequence[WorkloadToCreate]) -> list[Refusal]:
        """Create all of these, or none and say why. Reads from the LUNs, so it may block as long as they do."""
        targets, refusals = self._check(workloads)
        nodes = [lun.node for lun in targets] if not refusals else [None] * len(workloads)
        wanted = [
            Wanted(workload.ceiling, node, threads_wanted(workload.parameters))
            for workload, node in zip(workloads, nodes, strict=True)
        ]
        threads = deal(self._loads(), wanted)
        refusals += self._check_tags(workloads, threads)
        if not refusals:
            refusals += self._open({key_of(w, t): (t, w) for w, t in zip(workloads, targets, strict=True)})
        if not refusals:
            refusals += self._place(workloads, targets, threads)
        if refusals:
            self._close_unused()
        return refusals

    @property
    def large_buffers(self) -> int:
        """Bytes of I/O buffers that are in areas as large as a huge page."""
        areas = [buffers_of(one.workload, part) for one in self._instances.values() for part in one.parts]
        return sum(area for area in areas if area >= HUGE)

    def delete(self, numbers: Sequence[int]) -> list[Refusal]:
        """Delete all of these, or none and say why; but those that the kernel does not let go stay alone."""
        refusals = self._unknown(numbers)
        if refusals:
            return refusals
        for number in dict.fromkeys(numbers):
            try:
                self._forget(number)
            except OSError as error:
                refusals.append(Refusal(self._name(number), f"it cannot be deleted: {error.strerror}"))
        self._close_unused()
        return refusals

    def look_again(self) -> tuple[list[Refusal], list[Notice]]:
        """(what came to stand against the LUNs that are open to be written, notices of those that do not tell).

        By the same gate, and by identity. That one cannot be read any more is no reason: it could when it was opened,
        it is held since then, and I/O errors are for a run to count. But who uses it is looked for without a read.
        """
        written = [one for one in {one.lun: one for one in self._instances.values()}.values() if one.lun[1]]
        if not written:
            return [], []
        around = Surroundings.read(self._root)
        found: dict[str, tuple[str, ...] | OSError | None] = {}
        for look in (self._used_by_now, self._changed):
            asked = [one for one in written if found.get(one.target.path, ()) == ()]
            looks = answers([partial(look, one, around) for one in asked], ANSWER_S)
            found.update(zip((one.target.path for one in asked), looks, strict=True))
        refusals = [
            Refusal(path, f"it must not be written any more: {reason}")
            for path, look in found.items()
            for reason in (look if isinstance(look, tuple) else ())
        ]
        notices = [
            Notice(
                NoticeKind.NOT_INSPECTED,
                f"{path} was not looked at before this step: {(look and look.strerror) or silent(ANSWER_S)}",
            )
            for path, look in found.items()
            if not isinstance(look, tuple)
        ]
        return refusals, notices

    def _used_by_now(self, one: Instance, around: Surroundings) -> tuple[str, ...]:
        """Who uses a block device that is open. Raises OSError."""
        if one.target.device is None:
            return ()  # a file is looked at at once
        try:
            device = self._as_it_is(one, around).device
        except NotDrivable as error:
            return (str(error),)
        return judge(in_use(device, around)) if device is not None else ()

    def _changed(self, one: Instance, around: Surroundings) -> tuple[str, ...]:
        """What stands against a LUN that is open, and whether it is another by now. Raises OSError."""
        assert one.workload.consent is not None
        held = self._luns[one.lun].held
        try:
            lun = self._as_it_is(one, around)
        except NotDrivable as error:
            return (str(error),)
        agreed, found = one.workload.consent.identity, identity_of(lun, held, self._root)
        said = unagreed({lun.path: _lasting(agreed)}, {lun.path: _lasting(found)})
        return (*said.values(), *judge(replace(lun.evidence(around, held), unreadable="")))

    def _as_it_is(self, one: Instance, around: Surroundings) -> Target:
        """What a LUN that is open is by now, through our hold on it. Raises NotDrivable."""
        return replace(target(through(self._luns[one.lun].held), around, self._root), path=one.target.path)

    def check_edit(self, command: EditWorkloads) -> list[Refusal]:
        """Why these settings cannot be taken; empty if they can."""
        counted = Counter(setting.number for setting in command.settings)
        refusals = self._unknown(counted)
        refusals += [
            Refusal(self._name(number), "it is edited twice at once: send one setting for each")
            for number, count in counted.items()
            if count > 1
        ]
        for setting in command.settings:
            if (instance := self._instances.get(setting.number)) is not None:
                workload, lun = instance.workload, instance.target
                reasons = validation.of_edit(instance.parameters, setting.parameters, workload, lun)
                refusals += [Refusal(instance.workload.instance, reason) for reason in reasons]
        return refusals

    def edited(self, command: EditWorkloads) -> None:
        """Remember settings that every thread has taken."""
        for setting in command.settings:
            old = self._instances[setting.number]
            self._instances[setting.number] = replace(old, parameters=setting.parameters)

    def settings_of(self, command: EditWorkloads) -> "list[tuple[int, Fields]]":
        """What the engine is to be told for it."""
        return [
            (part.number, fields_of(parameters))
            for setting in command.settings
            for parts in [self._instances[setting.number].parts]
            for part, parameters in zip(parts, split(setting.parameters, len(parts)), strict=True)
        ]

    def order_of(self, go: Go) -> Order:
        """The engine's order behind that of a `go` that was checked."""
        parts = {number: instance.parts for number, instance in self._instances.items()}
        return Order.of(array("I", go.order.data), parts)

    def check_go(self, go: Go) -> str | None:
        """Why a `go` cannot name these instances and classes; None if it can."""
        if (go.order.type, go.classes.type) != (ArrayType.U32, ArrayType.U32):
            return "its order and classes are not arrays of u32"
        return validation.of_order(array("I", go.order.data), array("I", go.classes.data), list(self._instances))

    def gone(self) -> None:
        """Remember what the kernel holds for each thread since a `go`: room for all its instances, and one more."""
        self._contexts = [max(room, 1 + load.tags) for room, load in zip(self._contexts, self._loads(), strict=True)]

    def _check(self, workloads: Sequence[WorkloadToCreate]) -> tuple[list[Target], list[Refusal]]:
        """(the LUN of each, what stands against them); with refusals, the list of LUNs is short."""
        barred = self._hold(workloads)
        if any(error.errno == errno.EMFILE for error in barred.values()):
            return [], [too_many_files(len({workload.lun for workload in workloads}))]
        around = Surroundings.read(self._root, openers=any(workload.consent for workload in workloads))
        counted = Counter(workload.number for workload in workloads)
        seen, missing = self._targets(workloads, around)
        written = dict.fromkeys(one.lun for one in workloads if one.consent is not None and one.lun in seen)
        looks = self._looks([seen[path] for path in written], around, barred)
        targets, refusals = [], []
        for workload in workloads:
            name = workload.instance
            if workload.number >= FIRST_FURTHER:
                refusals.append(Refusal(name, f"its number is {workload.number}, and they end at {FIRST_FURTHER - 1}"))
            if workload.number in self._instances or counted[workload.number] > 1:
                refusals.append(Refusal(name, f"its number {workload.number} is another instance's: number it anew"))
            if workload.lun in missing:
                refusals.append(Refusal(name, f"{workload.lun}: {missing[workload.lun]}"))
                continue
            lun = seen[workload.lun]
            targets.append(lun)
            found, against = looks[workload.lun] if workload.consent is not None else (None, ())
            # What does not tell which LUN it is is refused already.
            another = self._unagreed(workload, lun, found) if found is not None or not against else []
            reasons = [*(another or validation.of_workload(workload, lun)), *against]
            refusals += [Refusal(name, reason) for reason in reasons]
        return targets, refusals

    def _targets(
        self, workloads: Sequence[WorkloadToCreate], around: Surroundings
    ) -> tuple[dict[str, Target], dict[str, str]]:
        """(what is at the path of each LUN, why nothing that can be driven is)."""
        seen: dict[str, Target] = {}
        missing: dict[str, str] = {}
        for path in dict.fromkeys(workload.lun for workload in workloads):
            try:
                seen[path] = target(path, around, self._root)
            except NotDrivable as error:
                missing[path] = str(error)
        return seen, missing

    def _looks(self, luns: Sequence[Target], around: Surroundings, barred: Mapping[str, OSError]) -> dict[str, Look]:
        """A look at each LUN that is to be written, all at once."""
        found = answers([partial(self._look, lun, around, barred.get(lun.path)) for lun in luns], ANSWER_S)
        return {
            lun.path: look if isinstance(look, tuple) else (None, _against_writing(lun, (silent(ANSWER_S),)))
            for lun, look in zip(luns, found, strict=True)
        }

    def _look(self, lun: Target, around: Surroundings, barred: OSError | None) -> Look:
        """Which LUN it is, through our hold on it, if it tells; and why it must not be written."""
        ours = self._luns.get((lun.what, True))
        if ours is None:
            return None, self._gate(lun, around, barred)
        if ours.handle >= 0:
            return ours.identity, ()
        against = self._gate(lun, around, barred)
        try:
            return identity_of(lun, ours.held, self._root), against
        except OSError:
            return None, against

    def _unagreed(self, workload: WorkloadToCreate, lun: Target, found: Identity | None) -> list[str]:
        """Why this is not the LUN that was agreed to."""
        if workload.consent is None:
            return []
        agreed = workload.consent.identity
        if found is not None and self._left.get(agreed) == found:  # what has changed since, we wrote
            found = agreed
        said = unagreed({lun.path: agreed}, {lun.path: found})
        return list(_against_writing(lun, list(said.values())))

    def _hold(self, workloads: Sequence[WorkloadToCreate]) -> dict[str, OSError]:
        """Hold the LUNs that are to be written and are not held yet; by its path, why one cannot be."""
        barred: dict[str, OSError] = {}
        locked = self._locked()
        for path in dict.fromkeys(workload.lun for workload in workloads if workload.consent is not None):
            try:
                if (what_is(os.stat(path)), True) in self._luns:
                    continue
                held = hold(path, locked)
            except OSError as error:
                barred[path] = error
                continue
            lun = OpenLun(held=held)
            if self._luns.setdefault((what_is(os.fstat(held)), True), lun) is not lun:
                os.close(held)
        return barred

    def _gate(self, lun: Target, around: Surroundings, barred: OSError | None = None) -> tuple[str, ...]:
        """Why a LUN must not be written, whatever the controller says. `barred`: why it could not be held."""
        ours = self._luns.get((lun.what, True))
        try:
            if ours is not None:
                refusals = judge(lun.evidence(around, ours.held))
            elif barred is not None:
                refusals = judge(_of_barred(lun.evidence(around), barred))
            else:
                refusals = ("its path became another's while it was looked at: see who changes it, and try again",)
        except OSError as error:
            refusals = (f"it cannot be looked at: {error.strerror}",)
        return _against_writing(lun, refusals)

    def _is_open(self, key: Key) -> bool:
        return key in self._luns and self._luns[key].handle >= 0

    def _check_tags(self, workloads: Sequence[WorkloadToCreate], threads: Sequence[tuple[int, ...]]) -> list[Refusal]:
        """Whether the kernel has room for so many I/Os prepared at once, beside those that it holds room for."""
        rooms = [1 + load.tags for load in self._loads()]
        for workload, chosen in zip(workloads, threads, strict=True):
            for thread, tags in zip(chosen, shares(workload.ceiling, len(chosen)), strict=True):
                rooms[thread] += tags
        needed = sum(max(room - held, 0) for room, held in zip(rooms, self._contexts, strict=True))
        return self._against_tags(f"{len(workloads)} workload instances", needed)

    def against_tags(self, tags: int) -> list[Refusal]:
        """What speaks against so many I/Os in flight, before there is anything to drive."""
        return self._against_tags("the plan's workloads", tags + len(self._contexts)) if tags else []

    def _against_tags(self, who: str, needed: int) -> list[Refusal]:
        left = aio_left()
        if self.backend != "libaio" or needed <= left:
            return []
        return [
            Refusal(
                who,
                f"they need room for {needed:,} more I/Os in flight, and fs.aio-max-nr leaves {left:,}:"
                " raise it (sysctl -w fs.aio-max-nr=1048576), or lower maxtags",
            )
        ]

    def _open(self, wanted: dict[Key, tuple[Target, WorkloadToCreate]]) -> list[Refusal]:
        """Open the LUNs that are not open yet; what cannot be opened is refused."""
        refusals: list[Refusal] = []
        opened = {key: lun for key, (lun, _) in wanted.items() if not self._is_open(key)}
        for key, lun in opened.items():
            try:
                if consent := wanted[key][1].consent:
                    ours = self._luns[key]
                    ours.handle = self._engine.open_lun(through(ours.held), True, lun.path)
                    ours.identity = consent.identity
                    self.written.add(lun.what)
                else:
                    self._luns[key] = OpenLun(self._engine.open_lun(lun.path, False))
            except OSError as error:
                if error.errno == errno.EMFILE:
                    return [*refusals, too_many_files(len(wanted))]
                refusals.append(Refusal(lun.path, _why_not_opened(error, lun)))
        return refusals + self._look_again([wanted[key] for key in opened if key[1] and self._is_open(key)])

    def _look_again(self, opened: Sequence[tuple[Target, WorkloadToCreate]]) -> list[Refusal]:
        """What came to stand against writing these LUNs since they were judged; they may have grown, too.

        Nothing keeps others from a file, nor a claim those from a device who open it without one, as loop devices do.
        """
        if not opened:
            return []
        around = Surroundings.read(self._root)
        luns = [lun for lun, _ in opened]
        found = answers([partial(self._since, lun, workload, around) for lun, workload in opened], ANSWER_S)
        return [
            Refusal(lun.path, reason)
            for lun, look in zip(luns, found, strict=True)
            for reason in (look if isinstance(look, tuple) else _against_writing(lun, (silent(ANSWER_S),)))
        ]

    def _since(self, lun: Target, workload: WorkloadToCreate, around: Surroundings) -> tuple[str, ...]:
        """What stands against writing a LUN that is open; its size is the engine's by now."""
        if against := self._against_use(lun, around):
            return against
        held = self._luns[lun.what, True].held
        found: Identity | None = None
        with contextlib.suppress(NotDrivable, OSError):
            found = identity_of(target(through(held), around, self._root), held, self._root)
        return tuple(self._unagreed(workload, lun, found))

    def _against_use(self, lun: Target, around: Surroundings) -> tuple[str, ...]:
        if lun.device is None:
            return self._gate(lun, around)
        return _against_writing(lun, judge(in_use(lun.device, around)))

    def _place(
        self, workloads: Sequence[WorkloadToCreate], targets: Sequence[Target], threads: Sequence[tuple[int, ...]]
    ) -> list[Refusal]:
        """Create the instances on their threads; on a refusal none of them is left."""
        for place, (workload, lun, chosen) in enumerate(zip(workloads, targets, threads, strict=True)):
            instance = Instance(workload, lun, (), workload.parameters)
            self._luns[instance.lun].users += 1
            self._instances[workload.number] = instance
            try:
                self._create_parts(workload, instance.lun, chosen)
            except OSError as error:
                for created in workloads[: place + 1]:
                    self._forget(created.number)
                return [Refusal(workload.instance, f"the engine cannot drive it: {error.strerror}")]
        return []

    def _create_parts(self, workload: WorkloadToCreate, key: Key, threads: Sequence[int]) -> None:
        """Raises OSError; the parts that were created are remembered."""
        told = split(workload.parameters, len(threads))
        ceilings = shares(workload.ceiling, len(threads))
        for k, (thread, ceiling, parameters) in enumerate(zip(threads, ceilings, told, strict=True)):
            number = workload.number if k == 0 else self._freed.pop() if self._freed else next(self._numbers)
            part = Part(number, thread, ceiling)
            self._engine.create(
                part.number,
                self._luns[key].handle,
                thread,
                ceiling,
                workload.blocksize_ceiling,
                fields_of(parameters),
                workload.consent.extents if workload.consent else (),
            )
            old = self._instances[workload.number]
            self._instances[workload.number] = replace(old, parts=(*old.parts, part))

    def _loads(self) -> list[Load]:
        loads = [Load(node=node) for node in self._nodes]
        for instance in self._instances.values():
            for part in instance.parts:
                loads[part.thread] = loads[part.thread].plus(part.ceiling)
        return loads

    def _forget(self, number: int) -> None:
        """Raises OSError for a part that the engine does not let go of; those that it did are forgotten."""
        while parts := self._instances[number].parts:
            self._engine.delete(parts[-1].number)
            if len(parts) > 1:
                self._freed.append(parts[-1].number)
            self._instances[number] = replace(self._instances[number], parts=parts[:-1])
        self._luns[self._instances.pop(number).lun].users -= 1

    def _close_unused(self) -> None:
        for key, lun in list(self._luns.items()):
            if lun.users == 0:
                del self._luns[key]
                if lun.handle >= 0:
                    self._engine.close_lun(lun.handle)
                if lun.held >= 0:
                    self._remember(lun)
                    os.close(lun.held)

    def _remember(self, lun: OpenLun) -> None:
        """What a LUN that is known by its contents alone is known by from now on."""
        if lun.identity is None or FINGERPRINT not in dict(lun.identity.facts):
            return
        with contextlib.suppress(NotDrivable, OSError):  # then it is not known any more
            there = target(through(lun.held), Surroundings.read(self._root), self._root)
            self._left[lun.identity] = identity_of(there, lun.held, self._root)

    def _unknown(self, numbers: Sequence[int] | Counter[int]) -> list[Refusal]:
        return [Refusal(self._name(n), "there is no such instance") for n in numbers if n not in self._instances]

    def _name(self, number: int) -> str:
        instance = self._instances.get(number)
        return instance.workload.instance if instance else f"workload instance number {number}"


def key_of(workload: WorkloadToCreate, lun: Target) -> Key:
    return lun.what, workload.consent is not None


def _lasting(identity: Identity) -> Identity:
    """What stays while we write to it."""
    return replace(identity, facts=tuple(fact for fact in identity.facts if fact[0] != FINGERPRINT))


def fields_of(parameters: Parameters) -> "Fields":
    """The parameters as the engine takes them."""
    return {
        "iosequencer": str(parameters.iosequencer),
        "blocksize": parameters.blocksize,
        "fraction_read": parameters.fraction_read,
        "maxtags": parameters.maxtags,
        "iops": -1.0 if parameters.iops == MAX else float(parameters.iops),
        "range": parameters.range,
        "seed": parameters.seed,
    }


def too_many_files(luns: int) -> Refusal:
    """A LUN takes a descriptor, one that is written another one."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    said = f"this process may have {most:,} files open at once: raise that limit (ulimit -Hn, LimitNOFILE)"
    return Refusal(f"{luns:,} LUNs", said)


def buffers_of(workload: WorkloadToCreate, part: Part) -> int:
    """The size of a part's I/O buffers, in bytes: one for each tag to read to, and to write from if it may."""
    stride = -(-workload.blocksize_ceiling // PAGE) * PAGE
    return stride * part.ceiling * (2 if workload.consent is not None else 1)


def _against_writing(lun: Target, refusals: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{lun.path} must not be written: {refusal}" for refusal in refusals)


def _of_barred(seen: Evidence, error: OSError) -> Evidence:
    """The evidence against a LUN that could not be held: that alone is enough."""
    if error.errno == errno.EBUSY:
        return replace(seen, claimed=True)
    return replace(seen, unreadable=str(error.strerror))


def _why_not_opened(error: OSError, lun: Target) -> str:
    """What went wrong when a LUN was opened with O_DIRECT, and what to do."""
    match error.errno:
        case errno.EINVAL if lun.kind == "file":
            return f"{lun.filesystem} on {lun.mount} refuses O_DIRECT: use a file on ext4, xfs or another that has it"
        case errno.EACCES | errno.EPERM:
            return f"it cannot be opened ({error.strerror}): run the slave as root, or as a user who may"
        case errno.EBUSY:
            return "another program has opened it exclusively: find it with fuser -v, and end it"
        case errno.EROFS:
            return "it cannot be opened for writing: it is read-only"
    return f"it cannot be opened: {error.strerror}"
