"""What a message about a LUN that does not answer tells to look at."""

from pathlib import Path

import pytest

from ivypy.slave.mounts import Mount
from ivypy.slave.no_answer import no_answer_text

MOUNTS = (
    Mount((254, 0), "/", "ext4", "/dev/vda", False),
    Mount((0, 50), "/mnt/far", "fuse.sshfs", "lab:/", False),
    Mount((0, 51), "/home", "nfs4", "nas:/home", False),
)


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("/dev/sda", "repair it"),
        ("/data/f", "repair it"),
        ("/mnt/far/f", "it is on /mnt/far (fuse.sshfs); see whether the program of that filesystem hangs"),
        ("/home/f", "it is on /home (nfs4); see whether the server of that filesystem hangs"),
        ("/dev/loop7", "the file /mnt/far/i below it is on /mnt/far (fuse.sshfs); see whether the program of that"
         " filesystem hangs"),
        ("/dev/loop8", "repair it"),
        ("/data/loop7", "repair it"),
    ],
)  # fmt: skip
def test_who_serves_the_filesystem_is_named(path: str, remedy: str, tmp_path: Path) -> None:
    for loop, backing in (("loop7", "/mnt/far/i"), ("loop8", "/data/i")):
        (tmp_path / f"sys/block/{loop}/loop").mkdir(parents=True)
        (tmp_path / f"sys/block/{loop}/loop/backing_file").write_text(f"{backing}\n")
    assert no_answer_text(10, path, MOUNTS, tmp_path) == (
        f"it did not answer a read within 10 s: {remedy}, or leave it out of the selection"
    )
