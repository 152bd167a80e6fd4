"""fio's latency logs (write_lat_log): rows of `time_ms, value, direction, block_size, ...`, one for every I/O.

Rule: the stamp is the completion, rounded down to a millisecond. The value is in nanoseconds since fio 2.99, in
microseconds before; the log does not record which. With log_avg_msec rows are means, which percentiles cannot be
had from: such a log keeps a quantity of its own, so that it is never merged with single I/Os.
"""

from collections.abc import Iterator

import numpy as np

from ..native._rows import parse_latencies
from .line_chunks import CHUNK
from .records import NS_PER_MS, Directions, Ints, LogClock, Samples
from .text_rows import Parsed, Reading

_COMPARED = 20  # I/Os at the begin of a job: no two jobs have as many in common
_SHORTEST_ROW = len("0,0,0,0\n")


def read(reading: Reading) -> Iterator[Samples]:
    """The log's samples, a batch at a time; each batch is valid until the next. Faults go to `reading`."""
    source = reading.source
    most = CHUNK // _SHORTEST_ROW + 1
    stamps, values, directions = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.uint8)

    def parse(text: memoryview) -> Parsed:
        return parse_latencies(text, source.fields, source.direction_at, stamps, values, directions)

    clock = LogClock(source.start_ns, source.drift)
    log_begin, first_ms = b"", -1
    for _, (rows, *_) in reading.parse(parse):
        if not log_begin:
            log_begin, first_ms = _first_ios(0, stamps[:rows], values, directions), int(stamps[0])
        begins = np.flatnonzero(np.diff(stamps[:rows]) < 0) + 1  # of jobs that share the log
        for begin in begins[stamps[begins] == first_ms].tolist():
            content = _first_ios(begin, stamps[:rows], values, directions)
            reading.repeated_jobs += bool(content) and content == log_begin
        value = values[:rows] if source.unit_ns == 1 else values[:rows] * source.unit_ns
        yield Samples(clock.common(stamps[:rows] * NS_PER_MS), value, directions[:rows])


def _first_ios(begin: int, stamps: Ints, values: Ints, directions: Directions) -> bytes:
    """The content of a job's first I/Os; blank where the batch ends before."""
    held = slice(begin, begin + _COMPARED)
    if begin + _COMPARED > len(stamps):
        return b""
    return b"".join(column[held].tobytes() for column in (stamps, values, directions))
