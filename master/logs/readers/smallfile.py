"""smallfile's response times: rows of `operation, start, response time`, in seconds since the thread's start.

Rule: a sample counts where it completed (start + response time), on the wall clock that the file's name gives.
"""

from collections.abc import Iterator

import numpy as np

from ..native._rows import parse_smallfile
from .line_chunks import CHUNK
from .records import LogClock, Samples
from .text_rows import Parsed, Reading

_SHORTEST_ROW = len(",0,0\n")


def read(reading: Reading) -> Iterator[Samples]:
    """The log's samples, a batch at a time; each batch is valid until the next. Faults go to `reading`."""
    most = CHUNK // _SHORTEST_ROW + 1
    ends, values, directions = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.uint8)

    def parse(text: memoryview) -> Parsed:
        return parse_smallfile(text, ends, values, directions)

    clock = LogClock(reading.source.start_ns, reading.source.drift)
    for _, (rows, *_) in reading.parse(parse):
        yield Samples(clock.common(ends[:rows]), values[:rows], directions[:rows])
