"""The workload instances of this host: which there are, on which LUNs, and which thread drives each.

Rule: a list is created whole or not at all, and every reason against it is given at once. Their LUNs are opened, and
kept open, by `open_luns`.
"""

from __future__ import annotations

import hashlib
import itertools
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ...protocol.counters import MOST_SECTIONS
from ...protocol.messages import EditWorkloads, Go
from ...protocol.older_python import zip_strict
from ...protocol.parameters import AUTO, EngineFields, Operation, Parameters, Sync, engine_fields, releases
from ...protocol.payload import Array, ArrayType, Notice, Refusal, WorkloadToCreate
from ..devices.block_devices import ROOT
from ..devices.nowait import without_nowait
from ..devices.storage_exports import LunKey
from ..engine._engine import Abilities, Engine, abilities
from ..gate.cached_io import CachedInstance, CachedIo
from ..gate.foreign_io import ForeignIo
from ..gate.write_counters import WriteCounters
from ..host.huge_pages import HUGE
from ..host.memory_limits import BESIDE_INSTANCE, TAG, why_too_much
from ..kernel_files import aio_left
from ..luns import validation
from ..luns.lun_target import LunTarget
from ..luns.open_luns import Key, OpenLuns, key_of
from ..luns.page_cache import dirty_bytes
from ..worker_progress import WORK
from .spread import (
    FIRST_FURTHER,
    ONE_THREAD_IOPS,
    EngineOrder,
    InstancePart,
    driving_parts,
    split_parameters,
    threads_wanted,
)
from .thread_assignment import LEAST_TAGS, InstanceToAssign, ThreadLoad, assign_threads

PAGE: Final = 4096
PartsToPlace = Sequence[tuple[int, int]]  # of one instance: the thread and the most tags of each part


@dataclass(frozen=True)
class HostInstance:
    workload: WorkloadToCreate
    target: LunTarget
    parts: tuple[InstancePart, ...]  # at least one
    parameters: Parameters  # in force
    may_block: bool  # its submit calls

    @property
    def lun(self) -> Key:
        return key_of(self.workload, self.target)


class Workloads:
    """Keeps the instances; every method that changes them leaves them as the engine has them."""

    def __init__(
        self,
        engine: Engine,
        backend: str,
        nodes: Sequence[int | None],
        root: Path = ROOT,
        locked: Callable[[], frozenset[LunKey]] = frozenset,
        counters: WriteCounters | None = None,
        reserved_pages: bool = False,
        known: Callable[[], frozenset[LunKey]] = frozenset,
    ) -> None:
        """`nodes`: of each workload thread's core; None: not known. `locked`: the files that this process locked.

        `known`: those of them that it wrote from nothing. `counters`: as noted when the LUNs were inspected.
        `reserved_pages`: whether I/O buffers may take such.
        """
        self._engine = engine
        self._root = root
        self._reserved_pages = reserved_pages
        self.backend = backend
        self._nodes = tuple(nodes)
        self._contexts = [0] * len(nodes)  # I/Os that the kernel holds room for since threads were prepared, each
        self._numbers = itertools.count(FIRST_FURTHER)  # of further parts
        self._freed: list[int] = []  # such numbers, to be used again
        self._instances: dict[int, HostInstance] = {}
        self._luns = OpenLuns(engine, root, locked, counters, known)

    @property
    def abilities(self) -> Abilities:
        """Of the backend."""
        return abilities()[self.backend]

    def use(self, backend: str) -> None:
        """Change the backend; before the first step only. Raises OSError."""
        self._engine.use(backend)
        self.backend = backend

    def create(self, workloads: Sequence[WorkloadToCreate]) -> list[Refusal]:
        """Create all of these, or none, and return why not. Reads from the LUNs, so it may block as long as they do."""
        targets, refusals = self._check(workloads)
        nodes = [lun.node for lun in targets] if not refusals else [None] * len(workloads)
        blocking = self._luns_that_block(workloads) if not refusals else frozenset()
        parts, without_room = self._dealt(workloads, nodes, blocking, may_spread=True)
        if without_room and any(w.parameters.spread == AUTO for w in workloads):
            parts, without_room = self._dealt(workloads, nodes, blocking, may_spread=False)
        refusals += without_room
        if not refusals:
            refusals += self._luns.open(list(zip_strict(targets, workloads)))
        if not refusals:
            refusals += self._place(workloads, targets, blocking, parts)
        if refusals:
            self._luns.close_unused()
        return refusals

    def describe_spread(self, workloads: Sequence[WorkloadToCreate]) -> str:
        """Describe what `spread: auto` is for these instances; "" where all of them are on one thread."""
        spread = [(w.instance, len(self._instances[w.number].parts)) for w in workloads if w.parameters.spread == AUTO]
        most = max((parts for _, parts in spread), default=1)
        if most == 1:
            return ""
        names = [name for name, parts in spread if parts > 1]
        return (
            f"spread auto is up to {most} of {len(self._nodes)} threads for {_first_of(names)}: while its iops is max "
            f"or above {ONE_THREAD_IOPS:,}, with {LEAST_TAGS} tags or more for each thread"
        )

    def describe_blocking(self, workloads: Sequence[WorkloadToCreate]) -> str:
        """Whose submit calls may delay which others on a thread of these instances; "" if none."""
        by_thread: list[list[HostInstance]] = [[] for _ in self._nodes]
        for instance in self._instances.values():
            for part in instance.parts:
                by_thread[part.thread].append(instance)
        new = {workload.number for workload in workloads}
        luns, delayed = dict[str, None](), dict[str, None]()
        for on_it in by_thread:
            blocking = [one.target.path for one in on_it if one.may_block]
            others = [one.workload.instance for one in on_it if not one.may_block]
            if blocking and others and any(one.workload.number in new for one in on_it):
                luns.update(dict.fromkeys(blocking))
                delayed.update(dict.fromkeys(others))
        if not luns or not self.abilities.may_block:  # `auto` may have become another since they were created
            return ""
        remedy = (
            "use two threads or more"
            if len(self._nodes) == 1
            else "no thread was left for them alone, as instances keep their threads: create both in the same step"
        )
        return (
            f"submit calls on {_first_of(luns)} may block (no RWF_NOWAIT), and delay the I/Os of "
            f"{_first_of(delayed)} on the same workload thread: {remedy}, or use `engine: {{ backend: io_uring }}`"
        )

    def prepare(self, workloads: Sequence[WorkloadToCreate]) -> list[Refusal]:
        """Allocate and pin what these instances need, which were just created; else delete them, and return why.

        Blocks for as long as their threads make progress.
        """
        try:
            self._engine.prepare()
        except OSError as error:
            refusals = [Refusal(_all_of(workloads), f"the engine cannot prepare for this: {error.strerror}")]
            return refusals + self.delete([workload.number for workload in workloads])
        # The kernel keeps room for all instances of a thread, and for one I/O of its own.
        self._contexts = [max(room, 1 + load.tags) for room, load in zip_strict(self._contexts, self._loads())]
        return []

    @property
    def large_buffers(self) -> int:
        """Bytes of I/O buffers that are in areas as large as a huge page."""
        areas = [buffer_bytes(one.workload, part.ceiling) for one in self._instances.values() for part in one.parts]
        return sum(area for area in areas if area >= HUGE)

    def delete(self, numbers: Sequence[int]) -> list[Refusal]:
        """Delete all of these, or none, and return why not; those that the kernel does not release stay."""
        refusals = self._unknown(numbers)
        if refusals:
            return refusals
        for number in dict.fromkeys(numbers):
            try:
                self._forget(number)
            except OSError as error:
                refusals.append(Refusal(self._name(number), f"it cannot be deleted: {error.strerror}"))
        self._luns.close_unused()
        return refusals

    @property
    def written(self) -> Mapping[LunKey, str]:
        """Files that steps wrote, with their last change then; "" of those that are open."""
        return self._luns.written

    @property
    def unnoted(self) -> frozenset[str]:
        """Files that ivypy wrote, and could not note it."""
        return frozenset(self._luns.unnoted)

    def settle(self) -> None:
        """Note that ivypy wrote the files that are open for writing. The engine must have closed them."""
        self._luns.settle()

    def reinspect(self, order: Sequence[int] = ()) -> tuple[list[Refusal], list[Notice]]:
        """(new refusals of LUNs that are open for writing, notices of those that do not answer), before a step of the
        instances in `order`.

        If none is refused, what earlier steps wrote through the page cache is written back, whichever LUN it is on and
        whether or not caches are to be dropped: no step pays for the writes of another. Last, since an inspection
        reads: LUNs are dropped from the cache.
        """
        written = {
            one.lun: (one.target, one.workload.consent.identity)
            for one in self._instances.values()
            if one.workload.consent is not None
        }
        refusals, notices = self._luns.reinspect(list(written.values()))
        if not refusals:
            taking_part = [self._instances[number] for number in order]
            dropped = {
                one.lun: one.target for one in taking_part if not one.parameters.direct and one.parameters.drop_cache
            }
            notices += self._luns.settle_cache(dropped)
        return refusals, notices

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
                reasons = validation.edit_faults(instance.parameters, setting.parameters, workload, lun)
                refusals += [Refusal(instance.workload.instance, reason) for reason in reasons]
        return refusals

    def note_edited(self, command: EditWorkloads) -> None:
        """Keep settings that every thread has applied."""
        for setting in command.settings:
            old = self._instances[setting.number]
            self._instances[setting.number] = replace(old, parameters=setting.parameters)

    def settings_of(self, command: EditWorkloads) -> list[tuple[int, EngineFields]]:
        """The settings of an edit, for each part of its instances."""
        return [
            (part.number, _fields_on(instance.target, parameters))
            for setting in command.settings
            for instance in [self._instances[setting.number]]
            for part, parameters in zip_strict(
                instance.parts, split_parameters(setting.parameters, len(instance.parts))
            )
        ]

    def order_of(self, go: Go) -> EngineOrder:
        """The engine's order for that of a `go` that was checked."""
        parts = {number: instance.parts for number, instance in self._instances.items()}
        return EngineOrder.of(array("I", go.order.data), parts)

    def driving_threads(self, numbers: Sequence[int]) -> list[tuple[int, ...]]:
        """Of each of these instances, the threads that drive it with the parameters in force."""
        instances = [self._instances[number] for number in numbers]
        return [
            tuple(part.thread for part in one.parts[: driving_parts(one.parameters, len(one.parts))])
            for one in instances
        ]

    def foreign_io(self, go: Go) -> ForeignIo:
        """The accounts of the disks below the instances of a `go` that was checked, but of those that the page cache
        reads and writes for ivypy, and of those that write zeroes: the kernel counts their bytes, BYTES does not."""
        instances = self._taking_part(go)
        left_out = {one.target.disk for one in instances if not one.parameters.direct or _zeroes(one.parameters)}
        left_out |= {one.target.disk for one in self._instances.values() if self._luns.is_dirty(one.lun)}
        disks = [0 if one.target.disk in left_out else one.target.disk for one in instances]
        sizes = [instance.workload.blocksize_ceiling for instance in instances]
        return ForeignIo(disks, sizes, self._root, ours_counted=self.abilities.counted_by_diskstats)

    def cached_io(self, go: Go) -> CachedIo:
        """The accounts of the page cache for the instances of a `go` that was checked; they begin now."""
        instances = [self._cached_instance(instance) for instance in self._taking_part(go)]
        return CachedIo(instances, self._root, self.abilities.counted_by_diskstats, dirty_bytes)

    def _cached_instance(self, instance: HostInstance) -> CachedInstance:
        target, direct = instance.target, instance.parameters.direct
        disk = 0 if target.filesystem.startswith("fuse") else target.disk  # its server reads, not this process
        lun = -1 if direct else self._luns.held(instance.lun)
        return CachedInstance(
            disk, direct, instance.workload.blocksize_ceiling, lun, unflushed_bytes(instance.parameters)
        )

    def _taking_part(self, go: Go) -> list[HostInstance]:
        return [self._instances[number] for number in array("I", go.order.data)]

    def check_order(self, order: Array) -> str | None:
        """Why an order cannot be one of these instances; None if it can."""
        if order.type is not ArrayType.U32:
            return "its order is not an array of u32"
        unknown = sorted(set(array("I", order.data)) - set(self._instances))
        return f"there are no instances {', '.join(map(str, unknown[:10]))}: create them first" if unknown else None

    def check_go(self, go: Go) -> str | None:
        """Why a `go` cannot name these instances and classes; None if it can."""
        if (go.order.type, go.classes.type) != (ArrayType.U32, ArrayType.U32):
            return "its order and classes are not arrays of u32"
        if not 0 <= go.sections <= MOST_SECTIONS:
            return f"it counts by {go.sections} sections of each LUN, not by 0 to {MOST_SECTIONS}"
        return validation.order_fault(array("I", go.order.data), array("I", go.classes.data), list(self._instances))

    def start(self, numbers: Iterable[int]) -> list[Refusal]:
        """A step of these instances begins: those that write may write their LUNs from now on.

        Refused, all of it, where somebody has changed such a file since it was agreed to or ivypy last wrote it.
        """
        return self._start(number for number in numbers if may_write(self._instances[number].parameters))

    def start_edited(self, command: EditWorkloads) -> list[Refusal]:
        """As `start`, of those that an edit of the running step lets write."""
        return self._start(setting.number for setting in command.settings if may_write(setting.parameters))

    def _start(self, numbers: Iterable[int]) -> list[Refusal]:
        instances = [self._instances[number] for number in numbers]
        buffered = [one.lun for one in instances if not one.parameters.direct]
        return self._luns.start(dict.fromkeys(one.lun for one in instances), buffered)

    def note_ended(self) -> None:
        """The engine is idle: what changes from now on, somebody else changed."""
        self._luns.note_ended()

    def _check(self, workloads: Sequence[WorkloadToCreate]) -> tuple[list[LunTarget], list[Refusal]]:
        """(the LUN of each, what stands against them); with refusals, the list of LUNs is short."""
        inspection = self._luns.inspect(workloads)
        if inspection.refusals:
            return [], list(inspection.refusals)
        counted = Counter(workload.number for workload in workloads)
        targets, refusals = [], []
        for workload in workloads:
            name = workload.instance
            if workload.number >= FIRST_FURTHER:
                refusals.append(Refusal(name, f"its number is {workload.number}, and they end at {FIRST_FURTHER - 1}"))
            if workload.number in self._instances or counted[workload.number] > 1:
                refusals.append(
                    Refusal(name, f"its number {workload.number} is another instance's: choose another number")
                )
            if (missing := inspection.missing.get(workload.lun)) is not None:
                refusals.append(Refusal(name, f"{workload.lun}: {missing}"))
                continue
            lun = inspection.targets[workload.lun]
            targets.append(lun)
            found, against = inspection.inspected[workload.lun] if workload.consent is not None else (None, ())
            # A LUN whose identity is not known is refused already.
            another = self._luns.consent_faults(workload, lun, found) if found is not None or not against else []
            reasons = [*(another or validation.workload_faults(workload, lun)), *against]
            refusals += [Refusal(name, reason) for reason in reasons]
        return targets, refusals

    def _luns_that_block(self, workloads: Sequence[WorkloadToCreate]) -> frozenset[str]:
        """The LUNs whose submit calls may block: the kernel cannot report that they would."""
        direct = [one.lun for one in workloads if one.parameters.direct]
        return frozenset(without_nowait(direct) if self.abilities.may_block else ())

    def _dealt(
        self,
        workloads: Sequence[WorkloadToCreate],
        nodes: Sequence[int | None],
        blocking: frozenset[str],
        may_spread: bool,
    ) -> tuple[list[PartsToPlace], list[Refusal]]:
        """(the (thread, tags) of each instance's parts, why there is no room for them). `may_spread`: `auto` may."""
        fair = -(-len(self._nodes) // max(1, len(self._instances) + len(workloads))) if may_spread else 1
        wanted = [
            InstanceToAssign(
                w.ceiling,
                node,
                threads_wanted(w.parameters, w.ceiling, fair),
                w.parameters.spread == AUTO,
                w.lun in blocking,
                w.lun if w.parameters.skew else "",
            )
            for w, node in zip_strict(workloads, nodes)
        ]
        threads = assign_threads(self._loads(), wanted, self._tied())
        parts: list[PartsToPlace] = [
            list(zip_strict(chosen, one.shares(len(chosen)))) for one, chosen in zip_strict(wanted, threads)
        ]
        return parts, self._check_tags(workloads, parts) + self._check_memory(workloads, parts)

    def _check_tags(self, workloads: Sequence[WorkloadToCreate], parts: Sequence[PartsToPlace]) -> list[Refusal]:
        """Whether the kernel has room for so many I/Os prepared at once, beside those that it holds room for."""
        rooms = [1 + load.tags for load in self._loads()]
        for thread, tags in itertools.chain.from_iterable(parts):
            rooms[thread] += tags
        needed = sum(max(room - held, 0) for room, held in zip_strict(rooms, self._contexts))
        return self._against_tags(f"{len(workloads)} workload instances", needed)

    def _check_memory(self, workloads: Sequence[WorkloadToCreate], parts: Sequence[PartsToPlace]) -> list[Refusal]:
        """Whether this host has memory for them: otherwise the kernel would end this process, or another."""
        areas = [buffer_bytes(workload, tags) for workload, of_it in zip_strict(workloads, parts) for _, tags in of_it]
        beside = sum(BESIDE_INSTANCE + TAG * tags for of_it in parts for _, tags in of_it)
        reason = why_too_much(areas, beside, self._root, self._reserved_pages)
        return [Refusal(_all_of(workloads), reason)] if reason else []

    def against_tags(self, tags: int) -> list[Refusal]:
        """Why there is no room for so many I/Os in flight, before there is anything to drive."""
        return self._against_tags("the plan's workloads", tags + len(self._contexts)) if tags else []

    def _against_tags(self, who: str, needed: int) -> list[Refusal]:
        left = aio_left()
        if not self.abilities.needs_aio_nr or needed <= left:
            return []
        return [
            Refusal(
                who,
                f"they need room for {needed:,} more I/Os in flight, and fs.aio-max-nr leaves {left:,}:"
                " raise it (sysctl -w fs.aio-max-nr=1048576), or lower maxtags",
            )
        ]

    def _place(
        self,
        workloads: Sequence[WorkloadToCreate],
        targets: Sequence[LunTarget],
        blocking: frozenset[str],
        parts: Sequence[PartsToPlace],
    ) -> list[Refusal]:
        """Create the instances on their threads; on a refusal none of them is left."""
        for place, (workload, lun, of_it) in enumerate(zip_strict(workloads, targets, parts)):
            instance = HostInstance(workload, lun, (), workload.parameters, workload.lun in blocking)
            self._luns.add_user(instance.lun)
            self._instances[workload.number] = instance
            try:
                self._create_parts(workload, lun, of_it)
            except OSError as error:
                for created in workloads[: place + 1]:
                    self._forget(created.number)
                return [Refusal(workload.instance, f"the engine cannot drive it: {error.strerror}")]
        return []

    def _create_parts(self, workload: WorkloadToCreate, lun: LunTarget, parts: PartsToPlace) -> None:
        """Raises OSError; the parts that were created are remembered."""
        key = key_of(workload, lun)
        split = split_parameters(workload.parameters, len(parts))
        for k, ((thread, ceiling), parameters) in enumerate(zip_strict(parts, split)):
            number = workload.number if k == 0 else self._freed.pop() if self._freed else next(self._numbers)
            part = InstancePart(number, thread, ceiling)
            WORK.step()
            self._engine.create(
                part.number,
                self._luns.handle(key, workload.parameters.direct),
                thread,
                ceiling,
                workload.blocksize_ceiling,
                _fields_on(lun, parameters),
                workload.consent.extents if workload.consent else (),
            )
            old = self._instances[workload.number]
            self._instances[workload.number] = replace(old, parts=(*old.parts, part))

    def _tied(self) -> dict[str, int]:
        """The thread of the instances of each LUN that share it by `skew`."""
        tied = [one for one in self._instances.values() if one.parameters.skew]
        return {one.workload.lun: one.parts[0].thread for one in tied if one.parts}

    def _loads(self) -> list[ThreadLoad]:
        loads = [ThreadLoad(node=node) for node in self._nodes]
        for instance in self._instances.values():
            for part in instance.parts:
                loads[part.thread] = loads[part.thread].plus(part.ceiling, instance.may_block)
        return loads

    def _forget(self, number: int) -> None:
        """Raises OSError for a part that the engine does not let go of; those that it did are forgotten."""
        while parts := self._instances[number].parts:
            self._engine.delete(parts[-1].number)
            WORK.step()
            if len(parts) > 1:
                self._freed.append(parts[-1].number)
            self._instances[number] = replace(self._instances[number], parts=parts[:-1])
        self._luns.remove_user(self._instances.pop(number).lun)

    def _unknown(self, numbers: Sequence[int] | Counter[int]) -> list[Refusal]:
        return [Refusal(self._name(n), "there is no such instance") for n in numbers if n not in self._instances]

    def _name(self, number: int) -> str:
        instance = self._instances.get(number)
        return instance.workload.instance if instance else f"workload instance number {number}"


def may_write(parameters: Parameters) -> bool:
    """Whether an instance with these parameters writes at all."""
    return parameters.fraction_read < 1 and parameters.iops != 0


def _fields_on(lun: LunTarget, parameters: Parameters) -> EngineFields:
    """As the engine takes them: scattered by a key of the LUN's own, which any host that drives it has, too."""
    attributes = lun.device.attributes if lun.device else {}
    name = attributes.get("wwn") or attributes.get("serial") or lun.path
    digest = hashlib.sha256(f"{parameters.scatter_seed}\n{name}".encode()).digest()
    return {**engine_fields(parameters), "scatter_seed": int.from_bytes(digest[:8], "little") >> 1}


def _zeroes(parameters: Parameters) -> bool:
    return Operation.WRITE_ZEROES in releases(parameters)


def unflushed_bytes(parameters: Parameters) -> int | None:
    """Bytes that it writes from one flush to the next; None where it writes without flushes."""
    if parameters.sync is not Sync.NONE:
        return 0
    every = parameters.flush.every
    return every * parameters.blocksize if every else None


def _all_of(workloads: Sequence[WorkloadToCreate]) -> str:
    return workloads[0].instance if len(workloads) == 1 else f"{len(workloads):,} workload instances"


def _first_of(names: Iterable[str]) -> str:
    """The first of some names, and how many more there are."""
    first, *others = names
    return first + (f" and {len(others):,} more" if others else "")


def buffer_bytes(workload: WorkloadToCreate, tags: int) -> int:
    """The size of a part's I/O buffers, in bytes: one for each tag to read to, and to write from if it may."""
    stride = -(-workload.blocksize_ceiling // PAGE) * PAGE
    size = stride * tags * (2 if workload.consent is not None else 1)
    return -(-size // HUGE) * HUGE if size >= HUGE else size
