"""The write gate: what must not be written, whatever plan and user request.

Rule: what is signed, held or in use is never written, nor what has blocks in common with it: a disk and its partitions,
a volume and what it is made of. First the evidence is gathered (`block_evidence`,
`file_evidence`), then `reasons_against` checks it: a pure function from evidence to sentences, each with its remedy.
What cannot be read cannot be cleared, so it is refused. The controller shows these sentences before a run; the slave
gathers and checks again before it opens a LUN for writing, since a device may have been mounted in between. It holds
the LUN first (holds.py), so that nobody mounts it after the check, and inspects and opens what it holds, whatever its
path names by then.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ...protocol.payload import Notice, NoticeKind
from ...protocol.refusals import RefusalReason
from ..devices import signatures
from ..devices.blkid import find_blkid, found_by_blkid
from ..devices.block_devices import ROOT, BlockDevice
from ..devices.contents import kind_of
from ..devices.mounts import Mount, mount_of, parse_mountinfo, parse_swaps
from ..devices.storage_exports import LunKey, ServedPath, Use, block, lun_key, lun_key_at, served_paths
from ..kernel_files import first_line, number_in
from .holds import IMMUTABLE, fixed_as, is_claimed, is_locked, is_written, read_ends, through
from .open_for_writing import OpenFile, Processes, filesystem_that_may_hang, program, scan_processes
from .shared_blocks import held_below, overlaps_of


@dataclass(frozen=True)
class Surroundings:
    """The storage of this machine that is in use; read once for many LUNs."""

    root: Path
    mounts: tuple[Mount, ...]  # of this mount namespace
    uses: Mapping[LunKey, tuple[Use, ...]]  # of each block device and file that is in use
    unasked: Mapping[int, tuple[ServedPath, ...]] = field(
        default_factory=dict
    )  # on filesystems that may hang, by these
    ours: frozenset[LunKey] = frozenset()  # what this process has open for writing
    twins: Mapping[int, tuple[LunKey, ...]] = field(default_factory=dict)  # of files in use, by `_own`; see `uses_of`
    plain: frozenset[int] = frozenset()  # filesystems, by st_dev, whose files are no other filesystem's
    unseen: str = ""  # why processes may have something open for writing that is not among the uses
    blkid: str = ""  # the program, if it is asked for signatures, too

    @classmethod
    def read(cls, root: Path = ROOT, openers: bool = True, blkid: bool = False) -> Surroundings:
        """Scan this machine. `openers`: also what its processes have open; not needed where nothing is written.

        `blkid`: LUNs are inspected for the first time, so what is on them is not what we wrote.
        """
        mounts = parse_mountinfo((root / "proc/self/mountinfo").read_bytes())
        seen = scan_processes(root) if openers else Processes()
        uses: defaultdict[LunKey, list[Use]] = defaultdict(list)
        unasked: defaultdict[int, list[ServedPath]] = defaultdict(list)
        for what, use in _mounted(root, mounts, seen.mounts):
            uses[what].append(use)
        for entry in parse_swaps((root / "proc/swaps").read_bytes()):
            if (key := lun_key_at(root, entry)) is not None:
                uses[key].append(Use(RefusalReason.SWAP, {"entry": entry}))
        served = ((served_path, mounts) for served_path in served_paths(root))
        for served_path, table in (*served, *_mounted_files(root, mounts, seen.mounts)):
            if filesystem := filesystem_that_may_hang(served_path.path, table):
                unasked[filesystem].append(served_path)
            elif (key := served_path.what()) is not None:
                uses[key].append(served_path.use)
        ours: set[LunKey] = set()
        for opened in seen.writing:
            if opened.pid == os.getpid():
                ours.update(() if opened.what is None else (opened.what,))
            elif opened.what is not None:
                uses[opened.what].append(_of_open(opened))
            else:
                unasked[opened.filesystem].append(ServedPath(opened.path, _of_open(opened), opened.ask))
        # What was mounted while uses were looked for has uses among them, too.
        later = parse_mountinfo((root / "proc/self/mountinfo").read_bytes())
        return cls(
            root,
            mounts,
            {what: tuple(dict.fromkeys(found)) for what, found in uses.items()},
            {filesystem: tuple(found) for filesystem, found in unasked.items()},
            frozenset(ours),
            *_twins(uses, [mount for own in (mounts, later, *seen.mounts.values()) for mount in own]),
            seen.unseen,
            find_blkid() if blkid else "",
        )

    def uses_of(self, what: LunKey, size: int = -1) -> tuple[Use, ...]:
        """Everything that uses a block device, or a file of `size` bytes; may block as long as its filesystem does.

        An overlay's file is one of a filesystem below it, with the same inode number but for some high bits (xino), and
        nothing tells which one.
        """
        uses = [*self.uses.get(what, ())]
        kind, filesystem, inode = what
        if kind == "file":
            uses += [one.use for one in self.unasked.get(filesystem, ()) if one.what() == what]
            for twin in self.twins.get(_own(inode), ()):
                if not {filesystem, twin[1]} <= self.plain:
                    uses += [use for use in self.uses[twin] if use.size in (-1, size)]
        return tuple(dict.fromkeys(uses))


@dataclass(frozen=True)
class Evidence:
    """The evidence against writing to a LUN; by default nothing."""

    path: str
    uses: tuple[tuple[str, Use], ...] = ()  # (what is used, as a sentence's subject: "it", "/dev/sdb1 on it"; how)
    partitions: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    names: int = 1  # of a file: hard links
    read_only: str = ""  # what is: "the device", or the filesystem's mount point
    claimed: bool = False  # someone has it opened exclusively
    open_elsewhere: bool = False  # of a file: the kernel reports that it is open for writing
    locked: bool = False  # of a file: someone has a lock on some of its bytes
    fixed: str = ""  # of a file: "immutable" or "append-only"
    signatures: tuple[str, ...] = ()
    contents: str = ""  # what kind of data it seems to hold, for the user to know
    unreadable: str = ""  # why its first or last bytes cannot be read
    unseen: str = ""  # why someone may have it open for writing all the same


def reasons_against(seen: Evidence) -> tuple[str, ...]:
    """Why it must not be written, a sentence with its remedy each; empty if it may be."""
    path = seen.path
    reasons = [use.sentence(subject) for subject, use in seen.uses]
    if seen.partitions:
        names = ", ".join(seen.partitions)
        reasons.append(RefusalReason.PARTITIONED.sentence(names=names, path=path))
    if seen.holders:
        names = ", ".join(seen.holders)
        reasons.append(RefusalReason.BUILT_UPON.sentence(names=names))
    if seen.names > 1:
        reasons.append(RefusalReason.SEVERAL_NAMES.sentence(count=seen.names))
    if seen.read_only == path:
        reasons.append(RefusalReason.DEVICE_READ_ONLY.sentence(path=path))
    elif seen.read_only:
        reasons.append(RefusalReason.FILESYSTEM_READ_ONLY.sentence(point=seen.read_only))
    if seen.fixed == IMMUTABLE:
        reasons.append(RefusalReason.IMMUTABLE.sentence(path=path))
    elif seen.fixed:
        reasons.append(RefusalReason.APPEND_ONLY.sentence(path=path))
    if not (seen.uses or seen.holders):
        if seen.claimed:
            reasons.append(RefusalReason.CLAIMED.sentence(path=path))
        elif seen.open_elsewhere:
            reasons.append(RefusalReason.OPEN_ELSEWHERE.sentence(path=path))
        elif seen.locked:
            reasons.append(RefusalReason.LOCKED.sentence(path=path))
    for name in seen.signatures:
        reasons.append(RefusalReason.SIGNED.sentence(format=name, path=path))
    if seen.unreadable:
        reasons.append(RefusalReason.UNREADABLE.sentence(error=seen.unreadable))
    return tuple(map(_readable, reasons))


def notices(seen: Evidence) -> tuple[Notice, ...]:
    """Notices of what could not be checked, for the user who is about to agree to writing."""
    if not seen.unseen or reasons_against(seen):
        return ()
    text = f"whether a program has it open for writing is not known: {seen.unseen}"
    return (Notice(NoticeKind.WRITERS_UNKNOWN, text),)


def block_evidence(device: BlockDevice, around: Surroundings, held: int = -1) -> Evidence:
    """Evidence about a block device. Opens it read-only for a moment; may block where the device does.

    `held`: our own hold on it, if there is one; it is read through that, and its claim is no evidence.
    """
    ends, unreadable = read_ends(through(held) if held >= 0 else device.path)
    seen = in_use(device, around)
    return replace(
        seen,
        uses=(*seen.uses, *_found_below(device, around.root)),
        read_only=device.path if first_line(device.folder / "ro") == "1" else "",
        claimed=held < 0 and is_claimed(device.path),
        contents=kind_of(ends) if ends else "",
        signatures=_signatures(ends, through(held) if held >= 0 else device.path, held, around),
        unreadable=unreadable,
    )


def in_use(device: BlockDevice, around: Surroundings) -> Evidence:
    """Collect what uses a block device, or another that has blocks in common with it. Opens and reads none of them."""
    overlaps = tuple(overlaps_of(device, around.root))
    within = {overlap.what for overlap in overlaps}  # what is served to the LUN itself is no use by another
    uses = [
        (overlap.subject, use)
        for overlap in overlaps
        for use in (*around.uses_of(overlap.what), *held_below(overlap, within))
        if use.user not in within and not _serves(use.pid, device, around.root)
    ]
    return Evidence(
        device.path,
        uses=tuple(dict.fromkeys(uses)),
        partitions=device.partitions,
        holders=device.holders,
        unseen=around.unseen,
    )


def file_evidence(path: str, around: Surroundings, held: int = -1) -> Evidence:
    """Evidence about a regular file, through links, or the one that is `held`. Raises OSError if there is none."""
    real = os.path.realpath(through(held) if held >= 0 else path)
    status = os.fstat(held) if held >= 0 else os.stat(real)
    what = lun_key(status)
    mount = mount_of(real, around.mounts)
    ends, unreadable = read_ends(through(held) if held >= 0 else real)
    place, ours = through(held) if held >= 0 else real, what in around.ours
    written = None if ours else is_written(place)
    return Evidence(
        path,
        uses=tuple(("it", use) for use in around.uses_of(what, status.st_size)),
        names=status.st_nlink,
        read_only=mount.point if mount and mount.read_only else "",
        open_elsewhere=bool(written),
        locked=not ours and is_locked(place),
        fixed=fixed_as(place),
        contents=kind_of(ends) if ends else "",
        signatures=_signatures(ends, place, held, around),
        unreadable=unreadable,
        unseen=around.unseen if written is None else "",
    )


def _signatures(ends: signatures.DeviceEnds | None, path: str, held: int, around: Surroundings) -> tuple[str, ...]:
    """By our own table, and what only blkid knows."""
    found = signatures.formats_in(ends) if ends else ()
    return found or (found_by_blkid(around.blkid, path, held) if around.blkid and ends else ())


def _readable(sentence: str) -> str:
    """A byte of a path that is no UTF-8 as `\\xff`: sentences travel, and are printed."""
    return os.fsencode(sentence).decode("utf-8", "backslashreplace")


def _mounted(
    root: Path, mounts: Sequence[Mount], others: Mapping[int, Sequence[Mount]]
) -> Iterator[tuple[LunKey, Use]]:
    """The block devices that are mounted, here and in other mount namespaces: those of the process `others` names."""
    sources = {mount.source for mount in mounts if mount.source.startswith("/dev/")}
    devices = {source: lun_key_at(root, source) for source in sources}
    known = {mount.number for mount in mounts}
    for mount in mounts:
        is_root = mount.point == "/"
        use = Use(RefusalReason.OF_SYSTEM, {}) if is_root else Use(RefusalReason.MOUNTED, {"point": mount.point})
        yield block(os.makedev(*mount.number)), use
        # btrfs has a number of its own making in mountinfo; there the source names the device.
        if (device := devices.get(mount.source)) is not None and device[0] == "block":
            yield device, use
    for pid, theirs in others.items():
        for mount in theirs:
            if mount.number not in known:
                name = program(root / "proc" / str(pid))
                words = {"point": mount.point, "pid": pid, "program": name}
                yield block(os.makedev(*mount.number)), Use(RefusalReason.MOUNTED_ELSEWHERE, words)


def _mounted_files(
    root: Path, mounts: Sequence[Mount], others: Mapping[int, Sequence[Mount]]
) -> Iterator[tuple[ServedPath, Sequence[Mount]]]:
    """Files that are mounted without a loop device, here and in other mount namespaces, with the mounts that their path
    is to be looked up among."""
    known = set[tuple[int, int]]()
    for pid, table in ((0, mounts), *others.items()):
        for mount in table:
            if mount.filesystem != "erofs" or not mount.source.startswith("/") or mount.number in known:
                continue
            known.add(mount.number)
            words: dict[str, object] = {"point": mount.point}
            if pid:
                words |= {"pid": pid, "program": program(root / "proc" / str(pid))}
            use = Use(RefusalReason.MOUNTED_ELSEWHERE if pid else RefusalReason.MOUNTED, words)
            below = root / "proc" / str(pid) / "root" if pid else root
            yield ServedPath(mount.source, use, partial(_file_at, below, mount.source)), table


def _file_at(root: Path, path: str) -> LunKey | None:
    found = lun_key_at(root, path)
    return found if found is not None and found[0] == "file" else None


def _own(inode: int) -> int:
    """The part that an overlay keeps of the number of a file below it: with xino, its high bits tell the filesystem."""
    return inode & 0xFFFFFFFF


def _of_open(opened: OpenFile) -> Use:
    who = {"pid": opened.pid, "program": opened.program}
    reason = RefusalReason.IS_RUN if opened.runs else RefusalReason.OPEN_FOR_WRITING
    return Use(reason, who, pid=opened.pid, size=opened.size)


def _twins(uses: Iterable[LunKey], mounts: Sequence[Mount]) -> tuple[dict[int, tuple[LunKey, ...]], frozenset[int]]:
    """(files by `_own` inode number, filesystems that are not made of others); both empty where there is no overlay."""
    if not any(mount.filesystem == "overlay" for mount in mounts):
        return {}, frozenset()
    files: defaultdict[int, list[LunKey]] = defaultdict(list)
    for what in uses:
        if what[0] == "file":
            files[_own(what[2])].append(what)
    overlays, plain = (
        {os.makedev(*mount.number) for mount in mounts if (mount.filesystem == "overlay") is is_overlay}
        for is_overlay in (True, False)
    )
    return {inode: tuple(found) for inode, found in files.items()}, frozenset(plain - overlays)


def _found_below(device: BlockDevice, root: Path) -> Iterator[tuple[str, Use]]:
    """Uses of what a loop device is over, by a claim and by its first and last bytes. Opens it read-only."""
    for overlap in overlaps_of(device, root):
        path = overlap.path
        if not path or lun_key_at(root, path) != overlap.what:
            continue  # it has no name
        if overlap.folder is not None and is_claimed(path):
            yield overlap.subject, Use(RefusalReason.OPENED_EXCLUSIVELY, {"path": path})
        ends, _ = read_ends(path) if overlap.partly else (None, "")
        for name in signatures.formats_in(ends) if ends else ():
            if name not in signatures.TABLES:  # partitions are made to be written one by one
                yield overlap.subject, Use(RefusalReason.SIGNED_BELOW, {"format": name, "path": path})


def _serves(pid: int, device: BlockDevice, root: Path) -> bool:
    """Whether a process that has the device open is the one that makes it: nbd's client."""
    client = number_in(device.disk / "pid") if pid else None
    return client is not None and (client == pid or (root / f"proc/{pid}/task/{client}").exists())
