"""Loop devices that a test makes and undoes."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ivypy.protocol.payload import Consent, Lun, Refusal
from ivypy.slave.luns.discovery import inspect_luns, list_luns
from tests.support.devices import losetup
from tests.support.waits import wait_until


def found_files(*globs: str) -> tuple[list[Lun], list[Refusal]]:
    """The files that match, listed and looked at."""
    luns, refusals = list_luns(False, globs)
    looked, more = inspect_luns([lun.path for lun in luns])
    return looked, refusals + more


def agreed(lun: str, *extents: tuple[int, int]) -> Consent:
    """Consent to a LUN as it is now: to all of it, or to these extents."""
    ((found,), _) = inspect_luns([lun])
    assert found.identity is not None, found
    return Consent(found.identity, extents or ((0, found.size),))


needs_loops = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("losetup") is None or not os.path.exists("/dev/loop-control"),
    reason="loop devices need root, losetup and /dev/loop-control",
)


def need(*programs: str) -> None:
    """Skip, naming them, where the machine lacks programs."""
    if missing := [program for program in programs if shutil.which(program) is None]:
        pytest.skip(f"this machine lacks {', '.join(missing)}")


def run(*words: str) -> str:
    """A command's output; its error in the test's report where it fails."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return done.stdout


@contextlib.contextmanager
def loop_device(folder: Path, size: int = 32 << 20, *options: str) -> Iterator[str]:
    """The path of a new loop device over a new file in `folder`, which should be on tmpfs."""
    backing = folder / f"backing-{len(list(folder.iterdir()))}"
    with open(backing, "wb") as file:
        file.truncate(size)
    path = losetup("-f", "--show", *options, str(backing))
    try:
        yield path
    finally:
        if is_over(path, folder):
            run("blockdev", "--setrw", path)  # the node keeps a read-only mark for the next backing file
            losetup("-d", path)
        backing.unlink()


def detach(loop: str) -> None:
    """Take its file from a loop device; the kernel does it once nobody has that open, not even for a moment."""
    losetup("-d", loop)
    wait_until(lambda: not os.path.exists(f"/sys/block/{Path(loop).name}/loop/backing_file"), f"{loop} is detached")


def attach(loop: str, image: Path, *options: str) -> None:
    """Put a file behind a loop device that was detached. Skips where another process of this machine has it by now."""
    try:
        losetup(*options, loop, image)
    except OSError as error:
        if "busy" in str(error):
            pytest.skip(f"somebody else was given {loop} meanwhile")
        raise


def is_over(loop: str, folder: Path) -> bool:
    """Whether a loop device is over a file in `folder`, and not somebody else's by now."""
    try:
        return Path(f"/sys/block/{Path(loop).name}/loop/backing_file").read_text().startswith(f"{folder.resolve()}/")
    except OSError:
        return False


@contextlib.contextmanager
def mounted(device: str, point: Path, *options: str) -> Iterator[Path]:
    point.mkdir()
    run("mount", *options, device, str(point))
    try:
        yield point
    finally:
        run("umount", str(point))
        point.rmdir()


@contextlib.contextmanager
def partitioned(device: str, *sizes: str) -> Iterator[list[str]]:
    """The paths of new partitions. partx tells the kernel, which may be built without any table's parser."""
    drop_partitions(device)
    table = "label: gpt\n" + "".join(f"size={size}\n" for size in sizes)
    subprocess.run(["sfdisk", "-q", device], input=table, text=True, check=True, capture_output=True)
    run("partx", "-u", device)
    paths = [f"{device}p{i + 1}" for i in range(len(sizes))]
    try:
        for path in paths:
            wait_for_node(path)
        yield paths
    finally:
        drop_partitions(device)


def drop_partitions(device: str) -> None:
    """A loop device's number keeps those of an earlier file: the kernel would refuse new ones in their place."""
    if list(Path(f"/sys/block/{Path(device).name}").glob(f"{Path(device).name}p*")):
        run("partx", "-d", device)


def wait_for_node(path: str) -> None:
    """devtmpfs makes nodes after the call that caused them has returned."""
    wait_until(lambda: os.path.exists(path), f"there is a node {path}")


def machine(root: Path, swaps: Sequence[str] = ()) -> Path:
    """A root folder of this machine's devices and mounts, with other swap, and no process."""
    for name in ("sys", "dev"):
        (root / name).symlink_to(f"/{name}")
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_bytes(Path("/proc/self/mountinfo").read_bytes())
    (root / "proc/swaps").write_text("Filename\n" + "".join(f"{path} partition\n" for path in swaps))
    (root / "proc/1/fd").mkdir(parents=True)
    return root
