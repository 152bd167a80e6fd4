"""What a message about a LUN that does not answer tells to look at."""

from pathlib import Path

import pytest

from ivypy.protocol.refusals import RefusalReason
from ivypy.slave.devices.mounts import Mount
from ivypy.slave.luns.no_answer import no_answer_text

MOUNTS = (
    Mount((254, 0), "/", "ext4", "/dev/vda", False),
    Mount((0, 50), "/mnt/far", "fuse.sshfs", "lab:/", False),
    Mount((0, 51), "/home", "nfs4", "nas:/home", False),
)


SILENT = RefusalReason.NO_ANSWER.sentence(seconds=10)


def on_mount(what: str, point: str, filesystem: str, who: str) -> str:
    return RefusalReason.NO_ANSWER_ON_MOUNT.sentence(seconds=10, what=what, point=point, filesystem=filesystem, who=who)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/dev/sda", SILENT),
        ("/data/f", SILENT),
        ("/mnt/far/f", on_mount("it", "/mnt/far", "fuse.sshfs", "program")),
        ("/home/f", on_mount("it", "/home", "nfs4", "server")),
        ("/dev/loop7", on_mount("the file /mnt/far/i below it", "/mnt/far", "fuse.sshfs", "program")),
        ("/dev/loop8", SILENT),
        ("/data/loop7", SILENT),
    ],
)
def test_who_serves_the_filesystem_is_named(path: str, said: str, tmp_path: Path) -> None:
    for loop, backing in (("loop7", "/mnt/far/i"), ("loop8", "/data/i")):
        (tmp_path / f"sys/block/{loop}/loop").mkdir(parents=True)
        (tmp_path / f"sys/block/{loop}/loop/backing_file").write_text(f"{backing}\n")
    assert no_answer_text(10, path, MOUNTS, tmp_path) == said
