"""Whether a workload's blocks and range fit a LUN, said in sentences.

Rule: pure, and the same on both sides: the controller asks before it sends an edit, the slave before it obeys.
"""

from .parameters import Parameters
from .quantities import of_bytes


def misfits(parameters: Parameters, path: str, kind: str, size: int, block: int) -> list[str]:
    """What speaks against these parameters on that LUN; `size` in bytes, `block` its logical block size."""
    each = parameters.blocksize
    if each % block:
        return [f"blocksize is {each:,}, and {path} takes multiples of {block:,} bytes: choose one of these"]
    first = 1 if kind == "block" else 0  # block 0 of a block device is never driven
    if size // each <= first:
        holds = f"{path} has {of_bytes(size)}"
        where = " behind block 0, which is never driven" if first and size >= each else ""
        return [f"{holds}, no block of {of_bytes(each)}{where}: choose a smaller blocksize or a larger LUN"]
    start, end = parameters.range
    if (start, end) == (0, 0):
        return []
    if not 0 <= start < end:
        return [f"range is {start:,} to {end:,}, which holds nothing: its start comes before its end"]
    if end > size:
        return [f"range ends at {end:,}, and {path} at {size:,}: choose an end within it"]
    if end // each <= max(-(-start // each), first):
        return [f"range is {start:,} to {end:,}, which holds no whole block of {of_bytes(each)}: make it wider"]
    return []
