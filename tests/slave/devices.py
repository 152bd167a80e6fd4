"""Loop devices that a test makes and undoes."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

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
    path = run("losetup", "-f", "--show", *options, str(backing)).strip()
    try:
        yield path
    finally:
        run("blockdev", "--setrw", path)  # the node keeps a read-only mark for the next backing file
        run("losetup", "-d", path)
        backing.unlink()


@contextlib.contextmanager
def mounted(device: str, point: Path) -> Iterator[Path]:
    point.mkdir()
    run("mount", device, str(point))
    try:
        yield point
    finally:
        run("umount", str(point))
        point.rmdir()


@contextlib.contextmanager
def partitioned(device: str, *sizes: str) -> Iterator[list[str]]:
    """The paths of new partitions. partx tells the kernel, which may be built without any table's parser."""
    table = "label: gpt\n" + "".join(f"size={size}\n" for size in sizes)
    subprocess.run(["sfdisk", "-q", device], input=table, text=True, check=True, capture_output=True)
    subprocess.run(["partx", "-a", device], check=False, capture_output=True)  # fails where the kernel knows already
    paths = [f"{device}p{i + 1}" for i in range(len(sizes))]
    try:
        for path in paths:
            wait_for_node(path)
        yield paths
    finally:
        run("partx", "-d", device)


def wait_for_node(path: str, seconds: float = 5.0) -> None:
    """devtmpfs makes nodes behind the back of whoever caused them."""
    deadline = time.monotonic() + seconds
    while not os.path.exists(path):
        assert time.monotonic() < deadline, f"no node {path} appeared"
        time.sleep(0.01)
