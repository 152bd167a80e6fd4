"""Which processes of this machine have what open for writing, and what is mounted in their mount namespaces.

Rule: what cannot be read is counted and reported, never taken for nothing. Only what cannot hang is read at once:
whether an open file of a network filesystem, or of one that a process serves (FUSE), is a LUN is read once a LUN is on
the same filesystem. Who has a disk's character device (SCSI generic, NVMe generic) open has the disk. About 20 us for
each open file, once for many LUNs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ..devices.mounts import Mount, mount_of, parse_mountinfo
from ..devices.storage_exports import LunKey, block, lun_key, number_of
from ..kernel_files import first_line

FIRST_PIDS: Final = 0xEFFFFFFC  # inode of the machine's own pid namespace (PROC_PID_INIT_INO of linux/proc_ns.h)
NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "orangefs", "virtiofs", "pvfs2"}
)


@dataclass(frozen=True)
class OpenFile:
    """A block device or file that a process has open for writing, a block device perhaps by a character device; or the
    program that it runs."""

    pid: int
    program: str  # what that process calls itself
    place: str  # of the open file: /proc/<pid>/fd/<n>
    path: str  # as that process sees it
    what: LunKey | None  # None: on a filesystem that may hang, and not read yet
    size: int = -1  # bytes, of a file
    filesystem: int = 0  # st_dev of one that may hang
    runs: bool = False  # it is the process's program, which nobody may write

    def ask(self) -> LunKey | None:
        """The key of the file or device; may block as long as its filesystem does. None where it was closed."""
        try:
            return lun_key(os.stat(self.place))
        except OSError:
            return None


@dataclass
class Processes:
    """The result of a scan."""

    writing: list[OpenFile] = field(default_factory=list)
    mounts: dict[int, tuple[Mount, ...]] = field(default_factory=dict)  # by pid: of other mount namespaces
    denied: int = 0  # processes that may not be inspected
    hidden: str = ""  # why there may be others that do not even show

    @property
    def unseen(self) -> str:
        """State what could not be inspected, and the remedy; "" if nothing."""
        if self.denied:
            they = "1 process" if self.denied == 1 else f"{self.denied} processes"
            return f"{they} could not be inspected" + (": run the slave as root" if os.geteuid() else "")
        return self.hidden


def may_hang(mount: Mount) -> bool:
    """Whether a server, or a process, answers for this filesystem."""
    return mount.filesystem in NETWORK or is_served_by_a_program(mount)


def is_served_by_a_program(mount: Mount) -> bool:
    """Whether a process of this machine answers for this filesystem (FUSE)."""
    return mount.filesystem.startswith("fuse")


def filesystem_that_may_hang(path: str, mounts: Sequence[Mount]) -> int:
    """st_dev of the filesystem that a path lies on, where that may hang; else 0."""
    if not any(map(may_hang, mounts)):
        return 0
    mount = mount_of(path, mounts)
    return os.makedev(*mount.number) if mount is not None and may_hang(mount) else 0


def scan_processes(root: Path) -> Processes:
    """Look at every process. Reads only /proc; blocks for nobody."""
    seen = Processes(hidden=_hidden(root))
    generic = Generic(root)
    proc = str(root / "proc")
    own = _mounts(f"{proc}/self")
    hanging = {_namespace(f"{proc}/self"): _with_one_that_may_hang(own)}  # by mount namespace
    for pid in sorted(int(name) for name in os.listdir(proc) if name.isdigit()):
        try:
            folder, numbers = _living(f"{proc}/{pid}")
            namespace = _namespace(folder)
            if namespace not in hanging:
                seen.mounts[pid] = _mounts(folder)
                hanging[namespace] = _with_one_that_may_hang(seen.mounts[pid])
            seen.writing += _writing(pid, folder, numbers, hanging[namespace], generic)
        except PermissionError:
            seen.denied += 1
        except OSError:
            pass  # it ended
    return seen


def program(folder: Path) -> str:
    """The name of the process of this folder in /proc."""
    return first_line(folder / "comm") or "ended"


def _with_one_that_may_hang(mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
    """These, if one of them may hang; else none, and no path has to be looked up among them."""
    return mounts if any(map(may_hang, mounts)) else ()


def _writing(
    pid: int, folder: str, numbers: Sequence[str], hanging: Sequence[Mount], generic: Generic
) -> Iterator[OpenFile]:
    """`hanging`: its mounts, if one of them may hang. Raises OSError: PermissionError where it may not be read."""
    name = ""
    for number in ("", *numbers):
        runs = not number
        place = f"{folder}/exe" if runs else f"{folder}/fd/{number}"
        try:
            if not runs and not os.lstat(place).st_mode & stat.S_IWUSR:
                continue
            path = os.readlink(place)
            if not path.startswith("/"):
                continue  # a socket, a pipe
            if hanging and (filesystem := filesystem_that_may_hang(path, hanging)):
                yield OpenFile(pid, program(Path(folder)), place, path, None, filesystem=filesystem, runs=runs)
                continue
            status = os.stat(place)
        except PermissionError:
            raise
        except OSError:
            continue  # closed; or its filesystem is gone, so that it is no LUN
        whats = [lun_key(status)] if stat.S_ISREG(status.st_mode) or stat.S_ISBLK(status.st_mode) else []
        if stat.S_ISCHR(status.st_mode):
            whats = generic.blocks_of(status.st_rdev)
        for what in whats:
            name = name or program(Path(folder))
            yield OpenFile(pid, name, place, path, what, status.st_size if what[0] == "file" else -1, runs=runs)


def _living(folder: str) -> tuple[str, list[str]]:
    """(a process's folder in /proc, its open files' numbers); another thread's where its first one has ended."""
    numbers = os.listdir(f"{folder}/fd")
    if not numbers and len(threads := os.listdir(f"{folder}/task")) > 1:
        first = os.path.basename(folder)
        folder = f"{folder}/task/{next(thread for thread in threads if thread != first)}"
        numbers = os.listdir(f"{folder}/fd")
    return folder, numbers


class Generic:
    """State: which block devices character devices stand for, by sysfs."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[int, list[LunKey]] = {}

    def blocks_of(self, number: int) -> list[LunKey]:
        """Those of the character device with this st_rdev: of /dev/sg3, of /dev/ng0n1; else none."""
        if number not in self._known:
            self._known[number] = [block(found) for folder in self._folders(number) if (found := number_of(folder))]
        return self._known[number]

    def _folders(self, number: int) -> list[Path]:
        place = (self._root / f"sys/dev/char/{os.major(number)}:{os.minor(number)}").resolve()
        if place.parent.name == "scsi_generic":
            return list((place / "device/block").glob("*"))
        if place.name.startswith("ng"):
            return [self._root / f"sys/block/nvme{place.name.removeprefix('ng')}"]
        return []


def _namespace(folder: str) -> int:
    """The inode of a process's mount namespace. Raises OSError; 0 where there is nothing of the kind."""
    try:
        return os.stat(f"{folder}/ns/mnt").st_ino
    except FileNotFoundError:
        return 0


def _mounts(folder: str) -> tuple[Mount, ...]:
    with open(f"{folder}/mountinfo", "rb") as file:
        return parse_mountinfo(file.read())


def _hidden(root: Path) -> str:
    """Why processes may be there that /proc does not show."""
    try:
        if os.stat(root / "proc/self/ns/pid").st_ino != FIRST_PIDS:
            return "the slave is in a container, and sees no process outside: run it on the machine itself"
    except OSError:
        pass  # a kernel without them
    if not (root / "proc/1").exists():
        return "/proc hides processes of other users: run the slave as root"
    return ""
