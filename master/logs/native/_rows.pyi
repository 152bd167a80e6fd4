"""Rows of latency logs, in C, with the GIL released: text to numbers, numbers to weighted histograms over time.

Arrays are contiguous numpy arrays of exactly the type named; those that are written to are marked OUT. The parsers
return (rows, entries, lines passed, bytes passed, bad): with `bad`, the line that starts behind the bytes passed is
not a row; else what is left over did not fit into the arrays. ValueError: arrays that do not fit together.
"""

import numpy as np
from numpy.typing import NDArray

Parsed = tuple[int, int, int, int, bool]
Text = bytes | bytearray | memoryview

def parse_histograms(
    text: Text,
    lead: int,  # columns before the buckets: 3, or 2 without block size
    columns: int,  # buckets
    stamps: NDArray[np.int64],  # OUT, a row each, as in the log
    directions: NDArray[np.uint8],  # OUT
    sizes: NDArray[np.int64],  # OUT, block sizes; -1 where the log has none
    first: NDArray[np.int64],  # OUT, one longer: row r has the entries first[r] .. first[r+1]
    buckets: NDArray[np.uint16],  # OUT, an entry each: non-empty buckets, ascending
    counts: NDArray[np.uint64],  # OUT
    /,
) -> Parsed: ...
def parse_latencies(
    text: Text,
    fields: int,  # columns of every row
    direction_at: int,  # 2, or 3 where a maximum follows the value
    stamps: NDArray[np.int64],  # OUT
    values: NDArray[np.int64],  # OUT
    directions: NDArray[np.uint8],  # OUT
    /,
) -> Parsed: ...
def parse_smallfile(
    text: Text,
    stamps: NDArray[np.int64],  # OUT, start + response time, ns
    values: NDArray[np.int64],  # OUT, response time, ns
    directions: NDArray[np.uint8],  # OUT, 0
    /,
) -> Parsed: ...
def spread_records(
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    directions: NDArray[np.uint8],
    first: NDArray[np.int64],
    stop: NDArray[np.int64],
    buckets: NDArray[np.uint16],
    counts: NDArray[np.uint64],
    mask: int,  # bit d: add the rows of direction d
    latencies: NDArray[np.float64] | None,  # ns a bucket: in-flight weighting; None: uniform
    earliest: int,  # quantum: nothing is in flight before it; what would be counts there
    length: int,  # of a quantum, ns: quantum k is (k * length, (k+1) * length]
    first_quantum: int,
    bucket_count: int,
    cells: NDArray[np.float64],  # OUT (quanta, bucket_count), added to
    split: NDArray[np.float64],  # OUT (quanta), added to: I/Os of rows that lie in several quanta; uniform only
    top: NDArray[np.int64],  # OUT (quanta): the highest bucket of rows that lie in this quantum alone; uniform only
    /,
) -> None: ...
def spread_samples(
    ends: NDArray[np.int64],
    values: NDArray[np.int64],
    directions: NDArray[np.uint8],
    mask: int,
    in_flight: bool,
    earliest: int,
    length: int,
    first_quantum: int,
    bucket_count: int,
    cells: NDArray[np.float64],  # OUT (quanta, bucket_count), protocol/histogram.py's buckets, added to
    sums: NDArray[np.float64],  # OUT (quanta), added to
    squares: NDArray[np.float64],  # OUT (quanta), added to
    lowest: NDArray[np.int64],  # OUT (quanta)
    highest: NDArray[np.int64],  # OUT (quanta)
    /,
) -> None: ...
