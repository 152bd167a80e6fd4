"""Discovery: every LUN of this host with its attributes; then the identities of those that were selected, and the
reasons against writing them.

Rule: two steps. `list_luns` opens nothing: it reads sysfs, udev and folders. Only what was selected from that list is
inspected, by `inspect_luns`: opened, read, claimed for a moment. A LUN that does not answer is listed with a notice; it
delays no other.
"""

from __future__ import annotations

import glob
import os
import pwd
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from ...protocol.older_python import zip_strict
from ...protocol.payload import Attribute, Lun, Notice, NoticeKind, Refusal
from ...protocol.refusals import RefusalReason
from ...protocol.text import sendable, why_unsendable
from ..bounded_calls import ANSWER_S, call_all
from ..devices import extents
from ..devices.block_devices import ROOT, BlockDevice, all_devices
from ..devices.mounts import parse_mountinfo
from ..gate.holds import through
from ..gate.write_gate import Surroundings, notices, reasons_against
from .existing_files import Existing, PlannedFile, existing_at
from .lun_identity import identity_of
from .lun_target import LunTarget, NotDrivable, find_target
from .no_answer import no_answer_text

Found = TypeVar("Found")


def list_luns(
    blocks: bool, globs: Sequence[str], paths: Sequence[str] = (), root: Path = ROOT
) -> tuple[list[Lun], list[Refusal]]:
    """The LUNs of this host: block devices if requested, and the files that match; and globs that name none.

    `paths` are block devices that have to be there; one that is not is refused. Nothing is opened.
    """
    around = Surroundings(root, parse_mountinfo((root / "proc/self/mountinfo").read_bytes()), {})
    files, refusals = find_files(globs, around, root)
    named, missing = find_devices(paths, around, root)
    luns = [block_lun(device, named.get(device.path, ())) for device in all_devices(root)] if blocks else []
    return luns + [file_lun(file) for file in files], refusals + missing


def inspect_luns(
    paths: Sequence[str], files: Sequence[PlannedFile] = (), root: Path = ROOT
) -> tuple[list[Lun], list[Refusal]]:
    """Inspect these LUNs, and those files to be created that exist already; and refuse what cannot be inspected.

    May block for about ANSWER_S, longer only where many do not answer.
    """
    around = Surroundings.read(root, blkid=True)
    inspections: dict[str, Callable[[], list[Lun | Refusal]]] = {
        path: partial(inspect, path, around, root) for path in paths
    }
    inspections |= {file.path: partial(inspect_planned, file, around, root) for file in files}
    return _collect(inspections, around)


def inspect_created(
    files: Sequence[tuple[str, int]], made: Container[str] = (), root: Path = ROOT
) -> tuple[list[Lun], list[Refusal]]:
    """Inspect the files (path, our open file of it) that this process has created or uses."""
    around = Surroundings.read(root)
    luns, refusals = _collect({path: partial(inspect, path, around, root, held) for path, held in files}, around)
    return [replace(lun, ours=True, made=lun.path in made) for lun in luns], refusals


def _collect(
    inspections: Mapping[str, Callable[[], list[Lun | Refusal]]], around: Surroundings
) -> tuple[list[Lun], list[Refusal]]:
    """The results of inspections, by path."""
    luns: list[Lun] = []
    refusals: list[Refusal] = []
    for path, answer in zip_strict(inspections, call_all(list(inspections.values()), ANSWER_S)):
        if answer is None:
            luns.append(unresponsive_lun(path, around))
        elif isinstance(answer, OSError):
            refusals.append(Refusal(path, RefusalReason.NOT_INSPECTED.sentence(error=answer.strerror)))
        else:
            luns += [one for one in answer if isinstance(one, Lun)]
            refusals += [one for one in answer if isinstance(one, Refusal)]
    return luns, refusals


def inspect_planned(file: PlannedFile, around: Surroundings, root: Path = ROOT) -> list[Lun | Refusal]:
    """Inspect what already exists where a file is to be created, if it may be used. Raises OSError."""
    existing = existing_at(file)
    if existing is Existing.NOTHING:
        return []
    if isinstance(existing, str):
        return [Refusal(file.path, existing)]
    return [
        replace(one, ours=existing is Existing.OURS) for one in inspect(file.path, around, root) if isinstance(one, Lun)
    ]


def inspect(path: str, around: Surroundings, root: Path = ROOT, held: int = -1) -> list[Lun | Refusal]:
    """Inspect one LUN; `held`: our own hold on it. Raises OSError where it is gone, or cannot be opened."""
    try:
        lun = find_target(through(held) if held >= 0 else path, around, root)
    except NotDrivable as error:
        return [Refusal(path, str(error))]
    lun = replace(lun, path=path)
    described = block_lun(lun.device) if lun.device else file_lun(lun)
    evidence = lun.evidence(around, held)
    refusals = reasons_against(evidence)
    unwritten = extents.notice(path) if lun.kind == "file" else None
    noticed = (*((unwritten,) if unwritten else ()), *notices(evidence))
    try:
        identity = identity_of(lun, held, root)
    except OSError as error:
        identity = None
        refusals = refusals or (RefusalReason.UNIDENTIFIED.sentence(error=error.strerror),)
    lost = (*((evidence.contents,) if evidence.contents else ()), *(_about_file(path, held) if not lun.device else ()))
    return [replace(described, refusals=refusals, notices=noticed, identity=identity, holds=lost)]


def _about_file(path: str, held: int) -> tuple[str, ...]:
    """Whose it is and how old, for whoever is about to agree to its loss."""
    status = os.fstat(held) if held >= 0 else os.stat(path)
    try:
        owner = sendable(pwd.getpwuid(status.st_uid).pw_name)
    except KeyError:
        owner = f"uid {status.st_uid}"
    written = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(status.st_mtime))
    return (f"owner {owner}", f"modified {written}")


def find_files(globs: Sequence[str], around: Surroundings, root: Path) -> tuple[list[LunTarget], list[Refusal]]:
    """The files that match, each once, and what is wrong with patterns."""
    answers, refusals = find_at(globs, lambda pattern: matching(pattern, around, root))
    files: dict[str, LunTarget] = {}
    for found, refused in answers.values():
        files |= {file.path: file for file in found}
        refusals += refused
    return list(files.values()), refusals


def find_devices(
    paths: Sequence[str], around: Surroundings, root: Path
) -> tuple[dict[str, tuple[str, ...]], list[Refusal]]:
    """(by the path of each block device, those of `paths` that lead to it; what is wrong with the others)."""
    answers, refusals = find_at(paths, lambda path: device_at(path, around, root))
    named: dict[str, tuple[str, ...]] = {}
    for path, answer in answers.items():
        if isinstance(answer, Refusal):
            refusals.append(answer)
        else:
            named[answer.path] = (*named.get(answer.path, ()), path)
    return named, refusals


def find_at(paths: Sequence[str], look: Callable[[str], Found]) -> tuple[dict[str, Found], list[Refusal]]:
    """Return what `look` finds at each path, all at once; and a refusal for each that does not answer."""
    answers: dict[str, Found] = {}
    refusals: list[Refusal] = []
    for path, answer in zip_strict(paths, call_all([partial(look, path) for path in paths], ANSWER_S)):
        if answer is None:
            refusals.append(Refusal(path, RefusalReason.PATH_SILENT.sentence(seconds=ANSWER_S)))
        elif isinstance(answer, OSError):
            refusals.append(Refusal(path, RefusalReason.NOT_INSPECTED.sentence(error=answer.strerror)))
        else:
            answers[path] = answer
    return answers, refusals


def device_at(path: str, around: Surroundings, root: Path = ROOT) -> BlockDevice | Refusal:
    """The block device that a path leads to, by links, too; else what is there instead."""
    try:
        target = find_target(path, around, root)
    except NotDrivable as error:
        return Refusal(path, str(error))
    return target.device or Refusal(path, RefusalReason.FILE_AS_DEVICE.sentence())


def matching(pattern: str, around: Surroundings, root: Path = ROOT) -> tuple[list[LunTarget], list[Refusal]]:
    """The files that match, and a refusal where a plain path is none.

    A pattern that matches nothing is no fault here: another host may have what it names.
    """
    full = os.path.abspath(os.path.expanduser(pattern))
    plain = not glob.has_magic(full)
    files, refusals = [], []
    for path in [full] if plain else sorted(glob.glob(full, recursive=True)):
        if why_unsendable(path):
            refusals.append(Refusal(path, RefusalReason.NAME_UNPRINTABLE.sentence()))
            continue
        try:
            target = find_target(path, around, root)
        except NotDrivable as error:
            if plain:
                refusals.append(Refusal(path, str(error)))
            continue
        if target.kind == "file":
            files.append(target)
        elif plain:
            refusals.append(Refusal(path, RefusalReason.DEVICE_AS_FILE.sentence(path=path)))
    return files, refusals


def block_lun(device: BlockDevice, named: tuple[str, ...] = ()) -> Lun:
    """As it is listed."""
    return Lun(device.path, "block", device.size, device.block, device.attributes, (), (), named)


def file_lun(file: LunTarget) -> Lun:
    """As it is listed."""
    attributes: dict[str, Attribute] = {
        "path": file.path,
        "name": os.path.basename(file.path),
        "kind": "file",
        "size": file.size,
        "logical_block_size": file.block,
        "read_only": int(file.read_only),
        "filesystem": file.filesystem,
        "mount": file.mount,
    }
    present = {name: value for name, value in attributes.items() if value != ""}
    return Lun(file.path, "file", file.size, file.block, present, (), ())


def unresponsive_lun(path: str, around: Surroundings) -> Lun:
    """A LUN that did not answer in time: nothing is known of it but what was listed."""
    said = no_answer_text(ANSWER_S, path, around.mounts, around.root)
    return Lun(path, "", 0, 1, {}, (said,), (Notice(NoticeKind.NO_ANSWER, said),), silent=True)
