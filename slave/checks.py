"""What is wrong with a workload instance that is to be created, or with an edit of one.

Rule: pure; a sentence with its remedy for each fault, all of them at once. Nothing here trusts that the controller has
checked before.
"""

from collections.abc import Sequence
from dataclasses import fields

from ..protocol.messages import WorkloadToCreate
from ..protocol.parameters import LIVE, PARAMETERS, Parameters, faults
from .quantities import of_bytes
from .targets import Target


def of_workload(workload: WorkloadToCreate, lun: Target) -> list[str]:
    """What speaks against creating this instance on that LUN."""
    parameters = workload.parameters
    found = faults(parameters)
    most = PARAMETERS["maxtags"].high or 0
    if not parameters.maxtags <= workload.ceiling <= most:
        found.append(
            f"its ceiling of {workload.ceiling} tags is not within maxtags ({parameters.maxtags}) and {most:g}"
        )
    if parameters.fraction_read < 1 and not workload.consent:
        found.append("it would write, and nobody agreed to that: `destroy: true` in the plan, and its token")
    if not found:
        found += _of_geometry(parameters, lun)
    return found


def _of_geometry(parameters: Parameters, lun: Target) -> list[str]:
    """Whether blocks of that size and that range fit the LUN. Offsets and ends in bytes."""
    size = parameters.blocksize
    if size % lun.block:
        return [f"blocksize is {size:,}, and {lun.path} takes multiples of {lun.block:,} bytes: choose one of these"]
    first = 1 if lun.kind == "block" else 0  # block 0 of a block device is never driven
    if lun.size // size <= first:
        holds = f"{lun.path} has {of_bytes(lun.size)}"
        where = " behind block 0, which is never driven" if first and lun.size >= size else ""
        return [f"{holds}, no block of {of_bytes(size)}{where}: choose a smaller blocksize or a larger LUN"]
    start, end = parameters.range
    if (start, end) == (0, 0):
        return []
    if not 0 <= start < end:
        return [f"range is {start:,} to {end:,}, which holds nothing: its start comes before its end"]
    if end > lun.size:
        return [f"range ends at {end:,}, and {lun.path} at {lun.size:,}: choose an end within it"]
    if end // size <= max(-(-start // size), first):
        return [f"range is {start:,} to {end:,}, which holds no whole block of {of_bytes(size)}: make it wider"]
    return []


def of_edit(before: Parameters, after: Parameters, consent: bool) -> list[str]:
    """What speaks against changing an instance's parameters while it exists."""
    changed = [f.name for f in fields(Parameters) if getattr(before, f.name) != getattr(after, f.name)]
    fixed = [name for name in changed if name not in LIVE]
    found = faults(after)
    if fixed:
        names, live = ", ".join(fixed), ", ".join(sorted(LIVE))
        found.append(f"{names} cannot change while the instance exists (only {live} can): delete it and create it anew")
    if after.fraction_read < 1 and not consent:
        found.append("it would write to a LUN that is opened read-only, since nobody agreed to writing when it began")
    return found


def of_order(order: Sequence[int], classes: Sequence[int], existing: Sequence[int]) -> str | None:
    """Why a `go` cannot name these instances and merge classes; None if it can."""
    if len(order) != len(classes):
        return f"{len(order)} instances have {len(classes)} merge classes: name one class for each"
    if len(set(order)) < len(order):
        return "an instance stands twice in its order: name each once"
    unknown = sorted(set(order) - set(existing))
    if unknown:
        return f"there are no instances {', '.join(map(str, unknown[:10]))}: create them first"
    if set(classes) != set(range(max(classes, default=-1) + 1)):
        return "its merge classes are not 0, 1, 2 ... without a gap: number them so"
    return None
