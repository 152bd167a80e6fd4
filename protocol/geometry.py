"""Whether a workload's blocks and range fit a LUN: a sentence for each fault.

Rule: pure, and the same on both sides: the controller checks before it sends an edit, the slave before it applies one.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from .parameters import Parameters, sizes_of
from .quantities import exact_size

Extent = tuple[int, int]  # first byte, and the one after the last


class Misfit(NamedTuple):
    """Why a parameter does not fit a LUN."""

    parameter: str
    text: str


LEAST_BLOCK: Final = 512  # bytes, the least logical block size that a LUN has
LEAST_CACHED: Final = 4096  # of a block device through the page cache, which writes whole pages back


def unit_of(parameters: Parameters, kind: str, block: int) -> int:
    """The bytes that the sizes of I/Os are multiples of, on a LUN with that logical block size."""
    if parameters.direct:
        return block
    return max(block, LEAST_CACHED) if kind == "block" else 1


def geometry_faults(parameters: Parameters, path: str, kind: str, size: int, block: int) -> list[Misfit]:
    """The faults of a workload's geometry on that LUN; `size` in bytes, `block` its logical block size."""
    each, (start, end) = parameters.blocksize, parameters.range
    block, streams = unit_of(parameters, kind, block), parameters.streams
    aligned = _aligned(parameters)
    parameter, text = "blocksize", ""
    if odd := next((one for one in sizes_of(parameters.operations, each) if one % block), 0):
        text = f"blocksize is {odd:,}, and {path} takes multiples of {block:,} bytes: choose one of these"
    elif parameters.align % block:
        parameter = "align"
        text = f"align is {parameters.align:,}, and {path} takes multiples of {block:,} bytes: choose one of these"
    elif not _fit(aligned, 0, size, kind):
        where = " after block 0, which is never driven" if kind == "block" and size >= each else ""
        remedy = "choose a smaller blocksize or a larger LUN"
        text = f"{path} has {exact_size(size)}, no block of {exact_size(each)}{where}: {remedy}"
    elif (start, end) != (0, 0):
        parameter = "range"
        if not 0 <= start < end:
            text = f"range is {start:,} to {end:,}, which is empty: its start must be below its end"
        elif end > size:
            text = f"range ends at {end:,}, and {path} at {size:,}: choose an end within it"
        elif not _fit(aligned, start, end, kind):
            text = f"range is {start:,} to {end:,}, which holds no whole block of {exact_size(each)}"
            text += f" at a multiple of {exact_size(parameters.align)}" if parameters.align else ""
            text += ": make it wider"
    if not text and streams > 1 and not _fit(aligned, *extent(parameters.range, size), kind, streams):
        parameter, remedy = "streams", "give fewer streams, or a wider range"
        text = f"one of {streams} parts of its range on {path} holds no block of {exact_size(each)}: {remedy}"
    return [Misfit(parameter, text)] if text else _faults_of_places(parameters, path, kind, extent((start, end), size))


def _faults_of_places(parameters: Parameters, path: str, kind: str, driven: Extent) -> list[Misfit]:
    """Those of its places in a range that it fits."""
    start, end = driven
    faults = []
    if 0 < parameters.working_set < max(parameters.align, parameters.blocksize):
        text = f"working_set is {exact_size(parameters.working_set)}, less than a block; choose more, like 10%"
        faults.append(Misfit("working_set", text))
    if parameters.working_set > end - start:
        text = f"working_set is {exact_size(parameters.working_set)}, and the range on {path} {exact_size(end - start)}"
        faults.append(Misfit("working_set", f"{text}: choose a part of it"))
    if parameters.start and not start <= parameters.start <= end - parameters.blocksize:
        text = f"start is {parameters.start:,}, and the range on {path} {start:,} to {end:,}"
        faults.append(Misfit("start", f"{text}: choose a place with room for a block within it"))
    for zone in parameters.hot_zones:
        if not start <= zone.start <= zone.end <= end:
            text = f"a hot zone is {zone.start:,} to {zone.end:,}, and the range on {path} {start:,} to {end:,}"
            return [*faults, Misfit("hot_zones", f"{text}: choose zones within it")]
        if zone.reads + zone.others and not _fit(_aligned(parameters), zone.start, zone.end, kind):
            text = f"a hot zone on {path} is {zone.start:,} to {zone.end:,}, which holds no whole block of"
            return [*faults, Misfit("hot_zones", f"{text} {exact_size(parameters.blocksize)}: make it wider")]
    return faults


def _aligned(parameters: Parameters) -> list[tuple[int, int]]:
    """Of each operation its alignment and its largest size."""
    return [(parameters.align or min(sizes), max(sizes)) for sizes in _sizes_by_operation(parameters)]


def _sizes_by_operation(parameters: Parameters) -> list[list[int]]:
    if not parameters.operations:
        return [[parameters.blocksize]]
    operations = {part.operation for part in parameters.operations}
    return [[part.bytes for part in parameters.operations if part.operation is one] for one in operations]


def _fit(aligned: Sequence[tuple[int, int]], start: int, end: int, kind: str, streams: int = 1) -> bool:
    """Whether each of so many parts of an extent has a place for each operation, by its alignment and largest size."""
    finest = min(align for align, _ in aligned)
    first = _first(start, kind, finest)
    part = (end - first) // streams
    if streams > 1:
        part -= part % finest
    starts = [first + part * number for number in range(streams)]
    return all(-(-at // align) * align + largest <= at + part for at in starts for align, largest in aligned)


def least_block(parameters: Parameters) -> int:
    """The size of a workload's smallest I/O, in bytes."""
    return sizes_of(parameters.operations, parameters.blocksize)[0]


def _first(start: int, kind: str, align: int) -> int:
    """The first offset of an I/O in a range: block 0 of a block device is never driven."""
    return max(-(-start // align), 1 if kind == "block" else 0) * align


def whole_blocks(parameters: Parameters, kind: str, size: int) -> int:
    """How many of its smallest blocks a workload's range has, on a LUN that it fits."""
    start, end = extent(parameters.range, size)
    least = least_block(parameters)
    return (end - _first(start, kind, parameters.align or least)) // least


def extent(of: tuple[int, int], size: int) -> Extent:
    """A workload's range on a LUN of that size, where (0, 0) is all of it."""
    return (0, size) if of == (0, 0) else of


def within(one: Extent, extents: Iterable[Extent]) -> bool:
    return any(start <= one[0] and one[1] <= end for start, end in extents)
