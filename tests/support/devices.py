"""Real block devices, and real faults on them, that a test makes and undoes: loop, zram, faultfs, a throttle.

Rule: numbers and names are whatever is free, never fixed; each is a context manager, and a machine that cannot have
one raises Missing, which the fixtures turn into a skip that names it. No other device is ever touched.
"""

import contextlib
import fcntl
import functools
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support import leftovers
from tests.support.waits import PATIENCE_S

ENGINE_TESTS = Path(__file__).parents[1] / "engine"
BLKIO = Path("/sys/fs/cgroup/blkio")  # cgroup v1; v2's io.max is not there on the machine that this was written on


ALIKE = b"ivypy..." * (1 << 17)  # a MiB that zram keeps as one word of 8 bytes


class Missing(Exception):
    """What this machine lacks for a device."""


def _need(*programs: str) -> None:
    if os.geteuid() != 0:
        raise Missing("the rights of root")
    for program in programs:
        if shutil.which(program) is None:
            raise Missing(program)


def _run(*words: object) -> str:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout.strip()


_holds_loops = False


@contextlib.contextmanager
def loops_alone() -> Iterator[None]:
    """No other test of this machine attaches a loop device meanwhile: one that is detached here stays so."""
    global _holds_loops
    if _holds_loops:
        yield
        return
    with open("/dev/loop-control") as control:
        fcntl.flock(control, fcntl.LOCK_EX)
        _holds_loops = True
        try:
            yield
        finally:
            _holds_loops = False


def losetup(*words: object) -> str:
    """One at a time on this machine: of two that look for a free device both may open the same one for writing."""
    with loops_alone():
        return _run("losetup", *words)


def _until_let_go(undo: Callable[[], object]) -> None:
    """Once all that used it has really let go, which the kernel does behind their backs."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            undo()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@contextlib.contextmanager
def memory_folder(prefix: str = "device-") -> Iterator[Path]:
    """A folder in memory, where there is memory."""
    with tempfile.TemporaryDirectory(prefix=prefix, dir=leftovers.memory_root()) as name:
        yield Path(name)


def image(folder: Path, size: int, name: str = "image") -> Path:
    """A sparse file."""
    path = folder / name
    with open(path, "wb") as file:
        file.truncate(size)
    return path


@contextlib.contextmanager
def loop_over(backing: Path) -> Iterator[str]:
    """The path of a loop device that reads and writes `backing` directly."""
    _need("losetup")
    if not os.path.exists("/dev/loop-control"):
        raise Missing("loop devices")
    path = losetup("-f", "--show", "--direct-io=on", backing)
    try:
        yield path
    finally:
        losetup("-d", path)


@contextlib.contextmanager
def loop(size: int = 256 << 20) -> Iterator[str]:
    """A loop device over a file in memory."""
    with memory_folder() as folder, loop_over(image(folder, size)) as path:
        yield path


@contextlib.contextmanager
def zram(size: int = 256 << 20, alike: bool = False) -> Iterator[str]:
    """A zram device whose every page was written once: with incompressible data, which a read has to copy (the same
    MiB again and again, as zram compares no pages); or all alike, of which it keeps one word, so that a read costs it
    least."""
    _need()
    control = Path("/sys/class/zram-control")
    if not control.exists():
        raise Missing("zram")
    number = (control / "hot_add").read_text().strip()
    settings = Path(f"/sys/block/zram{number}")
    try:
        (settings / "disksize").write_text(str(size))
        with open(f"/dev/zram{number}", "wb") as file:
            block = ALIKE if alike else os.urandom(1 << 20)
            for _ in range(size >> 20):
                file.write(block)
        yield f"/dev/zram{number}"
    finally:
        _until_let_go(lambda: (settings / "reset").write_text("1"))
        _until_let_go(lambda: (control / "hot_remove").write_text(number))


@contextlib.contextmanager
def ext4_file(device: str, size: int, alike: bool = False) -> Iterator[Path]:
    """A file on ext4 on `device`, every block of it written: with incompressible data, or all alike."""
    _need("mkfs.ext4", "mount", "umount")
    _run("mkfs.ext4", "-q", "-b", 4096, "-m", 0, device)
    with memory_folder() as folder:
        _run("mount", device, folder)
        try:
            with open(folder / "lun", "wb") as file:
                block = ALIKE if alike else os.urandom(1 << 20)
                for _ in range(size >> 20):
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
            yield folder / "lun"
        finally:
            _until_let_go(lambda: _run("umount", folder))


@contextlib.contextmanager
def disk_in_memory(size: int, prefix: str = "device-", idle: bool = False) -> Iterator[Path]:
    """A folder on an ext4 of its own, over a file in memory that grows by what is written, and shrinks again.

    `idle`: the file system neither reads nor writes for itself, in the first minutes, what it could do at once.
    """
    _need("losetup", "mkfs.ext4", "mount", "umount")
    if not os.path.isdir("/dev/shm") or shutil.disk_usage("/dev/shm").free < size:
        raise Missing(f"{size >> 30} GiB of memory")
    with memory_folder(prefix) as folder, loop_over(image(folder, size)) as device:
        lazy = 0 if idle else 1
        _run("mkfs.ext4", "-q", "-m", 0, "-E", f"lazy_itable_init={lazy},lazy_journal_init={lazy}", device)
        point = folder / "disk"
        point.mkdir()
        _run("mount", "-o", "discard,no_prefetch_block_bitmaps" if idle else "discard", device, point)
        try:
            yield point
        finally:
            _run("umount", "--lazy", point)  # a process that a test started may be about to end


@functools.cache
def _faultfs_program() -> Path:
    """Built by `scripts/setup test`, and here for a bench without it."""
    _need("gcc", "make", "pkg-config", "fusermount3")
    if subprocess.run(["pkg-config", "--exists", "fuse3"], check=False).returncode != 0:
        raise Missing("libfuse3-dev")
    built = "../../.venv/built/faultfs"
    _run("make", "-s", "-C", ENGINE_TESTS, built)
    return (ENGINE_TESTS / built).resolve()


@dataclass
class FaultFs:
    """A block device that does as configured."""

    device: str
    control: Path
    process: "subprocess.Popen[bytes]"

    @property
    def image(self) -> Path:
        """The file that the device is over."""
        return self.control.with_name("dev.img")

    def tell(
        self,
        read_us: int = 0,
        write_us: int = 0,
        read_ppm: int = 0,
        write_ppm: int = 0,
        bad: tuple[int, int] = (-1, -1),
    ) -> None:
        """Delays, shares of I/Os that fail, and a range of bytes where all do."""
        self.control.write_text(f"{read_us} {write_us} {read_ppm} {write_ppm} {bad[0]} {bad[1]}")

    def hang(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def faultfs(size: int = 256 << 20, threads: int = 64, synchronous: bool = False) -> Iterator[FaultFs]:
    """A loop device over faultfs, which does so many I/Os at once, over a file in memory.

    `synchronous`: a submit call on its image does the I/O, and returns once it is done.
    """
    program = _faultfs_program()
    if not os.path.exists("/dev/fuse"):
        raise Missing("FUSE")
    with memory_folder() as folder, contextlib.ExitStack() as undo:
        mount = folder / "mount"
        mount.mkdir()
        options = ["-f", "-o", f"max_threads={threads},clone_fd"]
        words = [program, image(folder, size), *options, mount]
        variables = os.environ | ({"FAULTFS_SYNCHRONOUS": "1"} if synchronous else {})
        process = subprocess.Popen([*map(str, words)], stderr=subprocess.DEVNULL, env=variables)
        undo.callback(process.wait, PATIENCE_S)
        undo.callback(process.send_signal, signal.SIGTERM)
        undo.callback(process.send_signal, signal.SIGCONT)
        deadline = time.monotonic() + PATIENCE_S
        while not (mount / "dev.img").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise Missing("a FUSE that mounts")
            time.sleep(0.01)
        undo.callback(_until_let_go, lambda: _run("fusermount3", "-u", mount))
        device = undo.enter_context(loop_over(mount / "dev.img"))
        faultfs = FaultFs(device, mount / "ctl", process)
        undo.callback(faultfs.resume)  # else nothing below could be undone
        yield faultfs


@dataclass(frozen=True)
class Throttle:
    """A limit on the I/Os per second of processes, on one device."""

    folder: Path
    device: str

    def join(self, pid: int) -> None:
        (self.folder / "cgroup.procs").write_text(str(pid))

    def limit(self, iops: int) -> None:
        """0: none. May change at any time."""
        number = os.stat(self.device).st_rdev
        for way in ("read", "write"):
            (self.folder / f"blkio.throttle.{way}_iops_device").write_text(
                f"{os.major(number)}:{os.minor(number)} {iops}"
            )


@contextlib.contextmanager
def throttle(device: str, iops: int) -> Iterator[Throttle]:
    """A cgroup whose processes do at most `iops` reads and as many writes a second on `device`."""
    _need()
    if not (BLKIO / "blkio.throttle.read_iops_device").exists():
        raise Missing("cgroup v1 blkio with throttling")
    folder = BLKIO / f"ivypy-{secrets.token_hex(4)}"
    folder.mkdir()
    try:
        throttle = Throttle(folder, device)
        throttle.limit(iops)
        yield throttle
    finally:
        for pid in (folder / "cgroup.procs").read_text().split():
            (BLKIO / "cgroup.procs").write_text(pid)
        _until_let_go(folder.rmdir)
