"""Which LUNs lack RWF_NOWAIT: their driver or file system cannot report that an I/O would wait.

So a submit call of libaio may block on such a LUN, and io_uring has threads of the kernel do its I/Os.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Sequence
from functools import partial

from ...protocol.older_python import zip_strict
from ..bounded_calls import ANSWER_S, call_all


def lacks_nowait(lun: str) -> bool:
    """By one read. False where it cannot be opened: the one who drives it reports why. Blocks if the LUN hangs."""
    try:
        fd = os.open(lun, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        return False
    try:
        with mmap.mmap(-1, mmap.PAGESIZE) as page:
            os.preadv(fd, [page], mmap.PAGESIZE, os.RWF_NOWAIT)
    except OSError as error:
        return error.errno == errno.EOPNOTSUPP
    finally:
        os.close(fd)
    return False


def without_nowait(luns: Sequence[str]) -> list[str]:
    """Those that lack it, each once, in their order; also one that does not answer its read in time."""
    once = list(dict.fromkeys(luns))
    found = call_all([partial(lacks_nowait, lun) for lun in once], ANSWER_S)
    return [lun for lun, lacks in zip_strict(once, found) if lacks is not False]
