"""Discovery: every LUN of this host, with its attributes and what stands against writing it.

Rule: a LUN that does not answer is listed and says so; it keeps no other from being listed. So paths are looked up, and
LUNs looked at, in threads, and each time all together get ANSWER_S.
"""

import glob
import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final

from ..protocol.messages import Attribute, Lun, Refusal
from . import extents
from .blocks import ROOT, BlockDevice, all_devices
from .gate import Surroundings, judge, of_block
from .targets import NotDrivable, Target, target

ANSWER_S: Final = 10.0
LOOKERS: Final = 16  # threads; they wait for devices, not for cores


def discover(blocks: bool, globs: Sequence[str], root: Path = ROOT) -> tuple[list[Lun], list[Refusal]]:
    """The LUNs of this host: block devices if asked for, and the files that match; and globs that name none.

    Blocks for as long as devices take to answer, at most a little over twice ANSWER_S.
    """
    around = Surroundings.read(root)
    pool = ThreadPoolExecutor(LOOKERS, "look")
    files, refusals = find_files(pool, globs, around, root)
    looks: list[tuple[Future[Lun], BlockDevice | Target]] = []
    if blocks:
        looks += [(pool.submit(block_lun, device, around), device) for device in all_devices(root)]
    looks += [(pool.submit(file_lun, file, around), file) for file in files]
    wait([look for look, _ in looks], timeout=ANSWER_S)
    pool.shutdown(wait=False, cancel_futures=True)
    luns = []
    for look, what in looks:
        if not look.done() or look.cancelled():
            luns.append(unanswering(what))
        elif isinstance(error := look.exception(), OSError):
            refusals.append(Refusal(what.path, f"it cannot be looked at: {error.strerror}"))
        else:
            luns.append(look.result())
    return luns, refusals


def find_files(
    pool: ThreadPoolExecutor, globs: Sequence[str], around: Surroundings, root: Path
) -> tuple[list[Target], list[Refusal]]:
    """The files that match, each once, and what is wrong with patterns."""
    searches = [(pool.submit(matching, pattern, around, root), pattern) for pattern in globs]
    wait([search for search, _ in searches], timeout=ANSWER_S)
    files: dict[str, Target] = {}
    refusals: list[Refusal] = []
    for search, pattern in searches:
        if search.done():
            found, refused = search.result()
            files |= {file.path: file for file in found}
            refusals += refused
        else:
            said = f"its filesystem did not answer within {ANSWER_S:g} s: mend it, or leave it out of the plan"
            refusals.append(Refusal(pattern, said))
    return list(files.values()), refusals


def matching(pattern: str, around: Surroundings, root: Path = ROOT) -> tuple[list[Target], list[Refusal]]:
    """The files that match, and a refusal where a plain path is none.

    A pattern that matches nothing is no fault here: another host may have what it names.
    """
    full = os.path.abspath(os.path.expanduser(pattern))
    plain = not glob.has_magic(full)
    files, refusals = [], []
    for path in [full] if plain else sorted(glob.glob(full, recursive=True)):
        try:
            found = target(path, around, root)
        except NotDrivable as error:
            if plain:
                refusals.append(Refusal(path, str(error)))
            continue
        if found.kind == "file":
            files.append(found)
        elif plain:
            refusals.append(Refusal(path, f"it is a block device: select it instead, `select: {{path: {path}}}`"))
    return files, refusals


def block_lun(device: BlockDevice, around: Surroundings) -> Lun:
    refusals = judge(of_block(device, around))
    return Lun(device.path, "block", device.size, device.block, device.attributes, refusals, ())


def file_lun(file: Target, around: Surroundings) -> Lun:
    """Raises OSError where it went, or cannot be looked at."""
    path = file.path
    evidence = file.evidence(around)
    remark = extents.remark(path)
    attributes: dict[str, Attribute] = {
        "path": path,
        "name": os.path.basename(path),
        "kind": "file",
        "size": file.size,
        "logical_block_size": file.block,
        "read_only": int(bool(evidence.read_only)),
        "filesystem": file.filesystem,
        "mount": file.mount,
    }
    present = {name: value for name, value in attributes.items() if value != ""}
    return Lun(path, "file", file.size, file.block, present, judge(evidence), (remark,) if remark else ())


def unanswering(what: BlockDevice | Target) -> Lun:
    """The LUN that did not answer in time, as far as it is known without asking it."""
    said = f"it did not answer a read within {ANSWER_S:g} s: mend it, or leave it out of the selection"
    if isinstance(what, BlockDevice):
        return Lun(what.path, "block", what.size, what.block, what.attributes, (said,), (said,))
    attributes: dict[str, Attribute] = {"path": what.path, "kind": "file", "size": what.size}
    return Lun(what.path, "file", what.size, what.block, attributes, (said,), (said,))
