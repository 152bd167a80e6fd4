"""A law of the gate: whatever devices are stacked in whatever way, bytes that someone writes already are not written.

Loop devices at random offsets over files, partitions and each other. Where each byte lies is known here by addition,
and in the gate by what the kernel tells.
"""

import contextlib
import os
import random
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ivypy.slave.devices.storage_exports import LOOP_INFO64, recorded
from ivypy.slave.gate.write_gate import Surroundings, in_use, reasons_against
from ivypy.slave.luns.lun_target import find_target
from tests.support.devices import losetup
from tests.support.loop_devices import need, needs_loops, run, wait_for_node

pytestmark = [pytest.mark.slow, needs_loops]

UNIT = 1 << 20


@dataclass(frozen=True)
class Node:
    """A file or device, and where its bytes lie in one of the files, in MiB."""

    path: str
    file: str
    start: int
    end: int

    def overlaps(self, other: "Node") -> bool:
        return self.file == other.file and self.start < other.end and other.start < self.end


@contextlib.contextmanager
def stack(seed: int, folder: Path) -> Iterator[list[Node]]:
    """Two files, and what is over them and over that."""
    choose = random.Random(seed)
    with contextlib.ExitStack() as undo:
        nodes = []
        for name in "ab":
            file = folder / f"{seed}{name}"
            file.write_bytes(bytes(16 * UNIT))
            undo.callback(file.unlink)
            nodes.append(Node(str(file), str(file), 0, 16))
        for _ in range(6):
            below = choose.choice([node for node in nodes if node.end - node.start > 2])
            size = choose.randint(1, below.end - below.start)
            at = choose.randint(0, below.end - below.start - size)
            whole = below.path.startswith("/dev/loop") and "p" not in below.path.removeprefix("/dev/loop")
            path = partition(undo, below.path, at, size) if whole and choose.random() < 0.5 else ""
            if not path:
                words = ["-o", str(at * UNIT), "--sizelimit", str(size * UNIT), below.path]
                path = losetup("-f", "--show", *words)
                undo.callback(losetup, "-d", path)
            nodes.append(Node(path, below.file, below.start + at, below.start + at + size))
        yield nodes


def partition(undo: contextlib.ExitStack, disk: str, at: int, size: int) -> str:
    """Its path; "" where another is in the way."""
    for number in range(1, 8):
        path = f"{disk}p{number}"
        if os.path.exists(path):
            continue
        sectors = [str(of * UNIT // 512) for of in (at, size)]
        if subprocess.run(["addpart", disk, str(number), *sectors], capture_output=True, check=False).returncode:
            return ""
        undo.callback(run, "delpart", disk, str(number))
        wait_for_node(path)
        return path
    return ""


def allowed(nodes: list[Node]) -> list[Node]:
    around = Surroundings.read()
    luns = [(node, find_target(node.path, around)) for node in nodes]
    return [
        node
        for node, lun in luns
        if not reasons_against(in_use(lun.device, around) if lun.device else lun.evidence(around))
    ]


@pytest.mark.parametrize("seed", range(6))
def test_what_overlaps_with_what_is_open_for_writing_is_refused(seed: int, shm: Path) -> None:
    need("addpart", "delpart", "bash")
    with stack(seed, shm) as nodes:
        for used in random.Random(seed).sample(nodes, 3):
            words = ["bash", "-c", 'exec 3<>"$1"; echo done; read -r _', "bash", used.path]
            with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as opener:
                assert opener.stdout is not None and opener.stdout.readline()
                assert [node for node in allowed(nodes) if node.overlaps(used)] == []
        free = allowed(nodes)
        assert not any(one.overlaps(two) for one in free for two in nodes if one is not two and not below(one, two))


def below(upper: Node, lower: Node) -> bool:
    """Whether all bytes of the one are of the other: that is only what it is made of."""
    return lower.file == upper.file and lower.start <= upper.start and upper.end <= lower.end


@pytest.mark.parametrize(
    "device, inode, number, what",
    [
        ((8, 1), 77, (0, 0), ("file", os.makedev(8, 1), 77)),
        ((0, 27), 77, (0, 0), ("file", os.makedev(0, 27), 77)),
        ((0, 27), 77, (0, 27), ("file", os.makedev(0, 27), 77)),  # tmpfs, btrfs or NFS, as told before Linux 4.16
        ((0, 6), 97, (8, 1), ("block", os.makedev(8, 1), 0)),
    ],
)
def test_backing_of_a_loop_device_is_as_the_kernel_reports(
    device: tuple[int, int], inode: int, number: tuple[int, int], what: tuple[str, int, int]
) -> None:
    info = struct.pack("=3Q", os.makedev(*device), inode, os.makedev(*number)).ljust(LOOP_INFO64, b"\0")
    assert recorded(info) == what
