"""Discovery: every LUN of this host, with its attributes and what stands against writing it.

Rule: a LUN that does not answer is listed and says so; it keeps no other from being listed. So paths are looked up, and
LUNs looked at, in threads, and each time all together get ANSWER_S.
"""

import glob
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from ..protocol.messages import Attribute, Lun, Refusal
from . import extents
from .blocks import ROOT, BlockDevice, all_devices
from .gate import Surroundings, judge, of_block
from .targets import NotDrivable, Target, target

ANSWER_S: Final = 10.0
LOOKERS: Final = 16  # threads; they wait for devices, not for cores

Found = TypeVar("Found")


def discover(
    blocks: bool, globs: Sequence[str], paths: Sequence[str] = (), root: Path = ROOT
) -> tuple[list[Lun], list[Refusal]]:
    """The LUNs of this host: block devices if asked for, and the files that match; and globs that name none.

    `paths` are block devices that have to be there; one that is not is refused. Blocks for as long as devices take to
    answer, at most a little over three times ANSWER_S.
    """
    around = Surroundings.read(root)
    pool = ThreadPoolExecutor(LOOKERS, "look")
    files, refusals = find_files(pool, globs, around, root)
    named, missing = find_devices(pool, paths, around, root)
    refusals += missing
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
    return [replace(lun, named=named.get(lun.path, ())) for lun in luns], refusals


def find_files(
    pool: ThreadPoolExecutor, globs: Sequence[str], around: Surroundings, root: Path
) -> tuple[list[Target], list[Refusal]]:
    """The files that match, each once, and what is wrong with patterns."""
    answers, refusals = answered(pool, globs, lambda pattern: matching(pattern, around, root))
    files: dict[str, Target] = {}
    for found, refused in answers.values():
        files |= {file.path: file for file in found}
        refusals += refused
    return list(files.values()), refusals


def find_devices(
    pool: ThreadPoolExecutor, paths: Sequence[str], around: Surroundings, root: Path
) -> tuple[dict[str, tuple[str, ...]], list[Refusal]]:
    """(by the path of each block device, those of `paths` that lead to it; what is wrong with the others)."""
    answers, refusals = answered(pool, paths, lambda path: device_at(path, around, root))
    named: dict[str, tuple[str, ...]] = {}
    for path, found in answers.items():
        if isinstance(found, Refusal):
            refusals.append(found)
        else:
            named[found.path] = (*named.get(found.path, ()), path)
    return named, refusals


def answered(
    pool: ThreadPoolExecutor, paths: Sequence[str], look: Callable[[str], Found]
) -> tuple[dict[str, Found], list[Refusal]]:
    """What `look` finds at each path, all at once; and a refusal of each that does not answer."""
    searches = {path: pool.submit(look, path) for path in paths}
    wait(searches.values(), timeout=ANSWER_S)
    said = f"its filesystem did not answer within {ANSWER_S:g} s: mend it, or leave it out of the plan"
    return (
        {path: search.result() for path, search in searches.items() if search.done()},
        [Refusal(path, said) for path, search in searches.items() if not search.done()],
    )


def device_at(path: str, around: Surroundings, root: Path = ROOT) -> BlockDevice | Refusal:
    """The block device that a path leads to, by links, too; else what is there instead."""
    try:
        found = target(path, around, root)
    except NotDrivable as error:
        return Refusal(path, str(error))
    return found.device or Refusal(path, "it is a file, and no block device: put it under `files`")


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
