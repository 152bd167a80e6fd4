"""Whether a workload's blocks and range fit a LUN: a sentence for each fault.

Rule: pure, and the same on both sides: the controller checks before it sends an edit, the slave before it applies one.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from .parameters import Parameters
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
    block = unit_of(parameters, kind, block)
    first = 1 if kind == "block" else 0  # block 0 of a block device is never driven
    parameter, text = "blocksize", ""
    if each % block:
        text = f"blocksize is {each:,}, and {path} takes multiples of {block:,} bytes: choose one of these"
    elif size // each <= first:
        where = " after block 0, which is never driven" if first and size >= each else ""
        remedy = "choose a smaller blocksize or a larger LUN"
        text = f"{path} has {exact_size(size)}, no block of {exact_size(each)}{where}: {remedy}"
    elif (start, end) != (0, 0):
        parameter = "range"
        if not 0 <= start < end:
            text = f"range is {start:,} to {end:,}, which is empty: its start must be below its end"
        elif end > size:
            text = f"range ends at {end:,}, and {path} at {size:,}: choose an end within it"
        elif end // each <= max(-(-start // each), first):
            text = f"range is {start:,} to {end:,}, which holds no whole block of {exact_size(each)}: make it wider"
    return [Misfit(parameter, text)] if text else []


def whole_blocks(parameters: Parameters, kind: str, size: int) -> int:
    """How many blocks a workload's range has on a LUN that it fits: block 0 of a block device is never driven."""
    (start, end), each = extent(parameters.range, size), parameters.blocksize
    return end // each - max(-(-start // each), 1 if kind == "block" else 0)


def extent(of: tuple[int, int], size: int) -> Extent:
    """A workload's range on a LUN of that size, where (0, 0) is all of it."""
    return (0, size) if of == (0, 0) else of


def within(one: Extent, extents: Iterable[Extent]) -> bool:
    return any(start <= one[0] and one[1] <= end for start, end in extents)
