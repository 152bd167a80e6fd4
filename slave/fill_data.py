"""Bytes to write that nothing can compress or find twice, faster than disks take them.

Rule: one random MiB is made at the start; every MiB that is written is that one with each byte value replaced by
another, by a new random permutation of the 256 values. So every MiB is as random as the first, and no block of 512
bytes occurs twice: it would have to be the same place under two permutations that agree on all of its some 220 values.
"""

import os
import random
from collections.abc import Iterator
from typing import Final

PIECE: Final = 1 << 20


def pieces(size: int) -> Iterator[bytes]:
    """`size` bytes, in pieces of PIECE and one shorter at the end."""
    base = os.urandom(min(size, PIECE))
    permutations = random.Random(os.urandom(32))
    for start in range(0, size, PIECE):
        piece = base.translate(bytes(permutations.sample(range(256), 256)))
        yield piece if size - start >= PIECE else piece[: size - start]
