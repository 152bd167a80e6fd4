"""Finds what is wrong with a workload instance that is to be created, or with an edit of one.

Rule: pure; a sentence with its remedy for each fault, all of them at once. Nothing here trusts that the controller has
checked before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Final

from ...protocol.geometry import extent, geometry_faults, within
from ...protocol.parameters import LIVE, PARAMETERS, Parameters, faults, largest_transfer
from ...protocol.payload import WorkloadToCreate
from ...protocol.refusals import RefusalReason
from .lun_target import LunTarget

PAGE: Final = 4096  # bytes; the least of any kernel


def workload_faults(workload: WorkloadToCreate, lun: LunTarget) -> list[str]:
    """Why this instance cannot be created on that LUN."""
    parameters = workload.parameters
    wrong = faults(parameters)
    most = PARAMETERS["maxtags"].high or 0
    if not parameters.maxtags <= workload.ceiling <= most:
        wrong.append(
            f"its ceiling of {workload.ceiling} tags is not within maxtags ({parameters.maxtags}) and {most:g}"
        )
    largest = PARAMETERS["blocksize"].high or 0
    least = largest_transfer(parameters)
    if not least <= workload.blocksize_ceiling <= largest:
        wrong.append(
            f"its ceiling of {workload.blocksize_ceiling} bytes is not within blocksize ({least}) and {largest:.10g}"
        )
    if parameters.fraction_read < 1:
        wrong += _of_writing(parameters, workload, lun, RefusalReason.WRITES_UNAGREED)
    if not wrong:
        wrong += _of_geometry(parameters, lun)
    return wrong


def _of_writing(
    parameters: Parameters, workload: WorkloadToCreate, lun: LunTarget, unagreed: RefusalReason
) -> list[str]:
    """Whether what it would write was agreed to, all of it."""
    if workload.consent is None:
        return [unagreed.sentence()]
    start, end = extent(parameters.range, lun.size)
    if within((start, end), workload.consent.extents):
        return []
    agreed = ", ".join(f"{first:,} to {behind:,}" for first, behind in workload.consent.extents) or "nothing"
    return [RefusalReason.RANGE_UNAGREED.sentence(start=start, end=end, agreed=agreed)]


def edit_faults(before: Parameters, after: Parameters, workload: WorkloadToCreate, lun: LunTarget) -> list[str]:
    """Why an instance's parameters cannot be changed so while it exists."""
    changed = [f.name for f in fields(Parameters) if getattr(before, f.name) != getattr(after, f.name)]
    fixed = [name for name in changed if name not in LIVE]
    wrong = faults(after)
    if fixed:
        names, live = ", ".join(fixed), ", ".join(sorted(LIVE))
        wrong.append(
            f"{names} cannot change while the instance exists (only {live} can): delete it and create it again"
        )
    wanted = {"maxtags": (after.maxtags, workload.ceiling)}
    wanted["blocksize"] = largest_transfer(after), workload.blocksize_ceiling
    for name, (value, most) in wanted.items():
        if value > most:
            wrong.append(f"{name} is {value}, and its buffers were made for {most}: create it again")
    if after.fraction_read < 1:
        wrong += _of_writing(after, workload, lun, RefusalReason.EDITED_TO_WRITE)
    return wrong or _of_geometry(after, lun)


def _of_geometry(parameters: Parameters, lun: LunTarget) -> list[str]:
    block = io_unit(parameters, lun)
    return [one.text for one in geometry_faults(parameters, lun.path, lun.kind, lun.size, block)]


def io_unit(parameters: Parameters, lun: LunTarget) -> int:
    """Return the bytes of which sizes and addresses have to be multiples. The page cache takes any of a file, but whole
    pages of a device."""
    if parameters.direct:
        return lun.block
    return 1 if lun.kind == "file" else max(lun.block, PAGE)


def order_fault(order: Sequence[int], classes: Sequence[int], existing: Sequence[int]) -> str | None:
    """Why a `go` cannot name these instances and merge classes; None if it can."""
    if len(order) != len(classes):
        return f"{len(order)} instances have {len(classes)} merge classes: name one class for each"
    if len(set(order)) < len(order):
        return "duplicate instance in the order: name each once"
    unknown = sorted(set(order) - set(existing))
    if unknown:
        return f"there are no instances {', '.join(map(str, unknown[:10]))}: create them first"
    if len(set(classes)) != max(classes, default=-1) + 1:
        return "its merge classes are not 0, 1, 2 ... without a gap: number them so"
    return None
