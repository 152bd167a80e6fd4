"""The message about a LUN that did not answer, with what to look at: whoever serves the filesystem that it is on.

Rule: nothing here touches the LUN, nor its filesystem, which may hang: mounts and sysfs are read as text.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ...protocol.refusals import RefusalReason
from ..devices.block_devices import ROOT
from ..devices.mounts import Mount, mount_of
from ..gate.open_for_writing import is_served_by_a_program, may_hang
from ..kernel_files import first_line


def no_answer_text(patience_s: float, path: str, mounts: Sequence[Mount], root: Path = ROOT) -> str:
    """Of the LUN at `path`, or the loop device over a file, after so many seconds."""
    device = os.path.basename(path) if os.path.dirname(path) == "/dev" else ""
    backing = first_line(root / "sys/block" / device / "loop/backing_file") if device else None
    mount = mount_of(backing or path, mounts)
    if mount is None or not may_hang(mount):
        return RefusalReason.NO_ANSWER.sentence(seconds=patience_s)
    return RefusalReason.NO_ANSWER_ON_MOUNT.sentence(
        seconds=patience_s,
        what=f"the file {backing} below it" if backing else "it",
        point=mount.point,
        filesystem=mount.filesystem,
        who="program" if is_served_by_a_program(mount) else "server",
    )
