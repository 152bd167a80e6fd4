"""Prints what fio-histo-log-pctiles.py prints.

Kept as it is: a row's stamp is taken as the *begin* of its interval, so that everything comes one period late; the
last row of each direction is stretched to the end of the last quantum; only the time common to all logs is looked
at; of neighbouring rows with one stamp and direction only the first is used. Better here: rows with one stamp that
are no neighbours are moments (there: a division by zero), what lies before the common start is left out (there: it
is added to the end), trims and coarse logs are read, --output-unit nsec works, percentiles are sorted under their
own names.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ..faults import Fault, LogError
from ..readers.bucket_layouts import PER_GROUP, Layout
from ..readers.detect_format import Hints
from ..readers.records import Floats
from .log import Rows, histogram_sources, read_rows
from .options import CompatOptions

_PERCENTILES: Final = (0.0, 50.0, 95.0, 99.0, 100.0)
_RELATIVE_BELOW_MS: Final = 1_000_000  # a first stamp below: counted from the job's start
_LARGEST_BLOCK: Final = 1 << 24
_ALMOST_ALL: Final = 99.9999
_SECOND_MS: Final = 1000
_PER_USEC: Final = {"nsec": 1000.0, "usec": 1.0, "msec": 0.001}


def lines(paths: Sequence[Path], hints: Hints, options: CompatOptions) -> Iterator[str]:
    percentiles = tuple(sorted(options.percentiles or _PERCENTILES))
    sources = histogram_sources(paths, hints)
    layout = sources[0].layout
    quantum_s = max(options.interval_ms // _SECOND_MS, 1)
    yield from _echo(layout, quantum_s, percentiles, options)
    spans = []
    for source in sources:
        rows = _checked(read_rows(source))
        spans.append(_span(rows, options.log_hist_msec))
    begin_ms, end_ms = max(begin for begin, _ in spans), min(end for _, end in spans)
    if begin_ms >= end_ms:
        raise LogError([Fault(sources[0].name, "has no time in common with the other logs")])
    if begin_ms > 0:
        yield (f"all threads running as of unix epoch time {int(begin_ms / 1000)} = {time.ctime(begin_ms / 1000)}")
    count = (end_ms // _SECOND_MS - begin_ms // _SECOND_MS + quantum_s) // quantum_s
    cells = np.zeros((count, layout.buckets))
    for source in sources:  # read again rather than held: a log is 50 MB an hour
        cells += aligned(_checked(read_rows(source)), begin_ms, count, quantum_s)
    yield f"time (millisec), percentiles in increasing order with values in {options.output_unit}"
    yield "msec-since-start, samples, " + "".join(f"{_head(p)}, " for p in percentiles)
    for number, histogram in enumerate(cells):
        row = f"{number * quantum_s * _SECOND_MS:8d}, {int(np.cumsum(histogram)[-1]):8d}, "
        values = percentiles_of(histogram, percentiles, layout)
        if values is None:
            yield row + ", " * len(percentiles)
        else:
            yield row + ", ".join(_value(value, options.output_unit) for value in values)


def _echo(layout: Layout, quantum_s: int, percentiles: Sequence[float], options: CompatOptions) -> Iterator[str]:
    yield f"fio version = {2 if layout.unit_ns == 1000 else 3}"
    yield f"bucket groups = {layout.groups}"
    yield "bucket bits = 6"
    yield f"time quantum = {quantum_s} sec"
    yield "percentiles = " + ",".join(str(p) for p in percentiles)
    yield f"buckets per group = {PER_GROUP}"
    yield f"buckets per interval = {layout.buckets} "
    if options.log_hist_msec is not None:
        yield f"log_hist_msec = {options.log_hist_msec}"
    yield f"output unit = {options.output_unit}"


def _head(percentile: float) -> str:
    return {0.0: "min", 50.0: "median", 100.0: "max"}.get(percentile, f"{percentile:3.1f}")


def _value(usec: float, unit: str) -> str:
    return str(usec / 1000.0 if unit == "msec" else usec * _PER_USEC[unit])


def _checked(rows: Rows) -> Rows:
    """Without the rows that the tool drops. LogError for what it refuses."""
    faults = []
    large = np.flatnonzero(rows.sizes > _LARGEST_BLOCK)
    if len(large):
        faults.append(Fault(rows.source.name, "block size too large", line=int(large[0]) + 1))
    for direction in np.unique(rows.directions):
        back = np.flatnonzero(np.diff(rows.stamps[rows.directions == direction]) < 0)
        if len(back):
            faults.append(Fault(rows.source.name, "timestamp in column 1 decreased"))
    if faults:
        raise LogError(faults)
    repeated = (np.diff(rows.stamps, prepend=-1) == 0) & (np.diff(rows.directions.astype(int), prepend=-1) == 0)
    return rows.take(~repeated)


def _span(rows: Rows, log_hist_msec: int | None) -> tuple[int, int]:
    """When the log is taken to start and end, ms."""
    first, end = int(rows.stamps[0]), int(rows.stamps[-1])
    if first < _RELATIVE_BELOW_MS:
        return 0, end
    if log_hist_msec is not None:
        return first - log_hist_msec, end
    if len(rows) > 1:
        return first - (int(rows.stamps[1]) - first), end
    raise LogError([Fault(rows.source.name, "has one row, so its start cannot be estimated", "give --log-hist-msec")])


def aligned(rows: Rows, begin_ms: int, count: int, quantum_s: int) -> Floats:
    """A log's weighted histograms: (count, buckets)."""
    quantum_ms = quantum_s * _SECOND_MS
    end_ms = (begin_ms // _SECOND_MS + count * quantum_s) * _SECOND_MS
    cells = np.zeros((count, rows.counts.shape[1]))
    for row, until in enumerate(_untils(rows, end_ms)):
        start = int(rows.stamps[row])
        number = (start - begin_ms) // quantum_ms
        if until == start:
            if 0 <= number < count:
                cells[number] += rows.counts[row]
            continue
        while number < count and begin_ms + number * quantum_ms < until:
            low = max(begin_ms + number * quantum_ms, start)
            high = min(begin_ms + (number + 1) * quantum_ms, until)
            if number >= 0:
                cells[number] += (high - low) / (until - start) * rows.counts[row]
            number += 1
    return cells


def _untils(rows: Rows, end_ms: int) -> list[int]:
    """Where each row is taken to end: at the stamp of the direction's next one."""
    untils = [end_ms] * len(rows)
    following: dict[int, int] = {}
    for row in range(len(rows) - 1, -1, -1):
        direction = int(rows.directions[row])
        untils[row] = following.get(direction, end_ms)
        following[direction] = int(rows.stamps[row])
    return untils


def percentiles_of(histogram: Floats, percentiles: Sequence[float], layout: Layout) -> list[float] | None:
    """Of one histogram, in microseconds; None where it is empty."""
    used = np.flatnonzero(histogram)
    if not len(used):
        return None
    upto = np.cumsum(histogram[used])
    reached = 100.0 * upto / upto[-1]
    before = np.concatenate([[0.0], reached[:-1]])
    values = []
    for percentile in percentiles:
        at = int(np.argmax(reached >= _ALMOST_ALL if percentile >= 100 else reached > percentile))
        low, high = (float(edge) / 1000 for edge in layout.edges[used[at] : used[at] + 2])
        share = (percentile - before[at]) / (reached[at] - before[at])
        values.append(float(low + share * (high - low)))
    return values
