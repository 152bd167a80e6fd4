"""Prints what fiologparser.py prints.

Kept as it is: a sample stands for the time since the row before it, whatever its direction, so that of two rows with
one stamp the second has no weight; the end is that of the shortest log. Better here: 5 columns are read, -A works,
and the time needed grows with the samples, not with their square.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from ..readers.detect_format import Hints
from ..readers.records import Floats
from .log import LogValues, read_all_values
from .options import CompatOptions

_ALL_PERCENTILES = (50, 90, 95, 99)


def lines(paths: Sequence[Path], hints: Hints, options: CompatOptions) -> Iterator[str]:
    logs = read_all_values(paths)
    end = min(int(log.stamps.max()) for log in logs)
    edges = [*range(0, end, options.interval_ms), end]
    if options.show == "all":
        yield from _all(logs, edges, options)
        return
    values = np.array([_over_time(log, edges) for log in logs]) / options.divisor  # (logs, intervals)
    if options.show == "default":
        yield f"{float(np.average(values.sum(axis=0), weights=np.diff(edges))):0.3f}"
        return
    for until, column in zip(edges[1:], values.T, strict=True):
        match options.show:
            case "sum":
                shown = [column.sum()]
            case "average":
                shown = [column.sum() / len(column)]
            case _:
                shown = list(column)
        yield f"{until}, " + ", ".join(f"{value:0.3f}" for value in shown)


def _over_time(log: LogValues, edges: Sequence[int]) -> Floats:
    """The time-weighted mean of a log's values in each interval; time without a sample counts as 0."""
    stamps = np.concatenate([[0], log.stamps]).astype(np.float64)
    forward = np.diff(stamps).clip(min=0)
    area = np.concatenate([[0.0], np.cumsum(log.values * forward)])
    upto = np.interp(np.array(edges, np.float64), np.maximum.accumulate(stamps), area)
    over_time: Floats = np.diff(upto) / np.diff(edges)
    return over_time


def _all(logs: Sequence[LogValues], edges: Sequence[int], options: CompatOptions) -> Iterator[str]:
    yield "start-time, samples, min, avg, median, 90%, 95%, 99%, max"
    spans = [(np.concatenate([[0], log.stamps[:-1]]), log.stamps, log.values) for log in logs]
    for begin, until in pairwise(edges):
        values = np.concatenate([v[(s >= begin) & (e <= until)] for s, e, v in spans]).astype(np.float64)
        if not len(values):
            continue
        found = np.percentile(values, _ALL_PERCENTILES)
        numbers = [values.min(), values.mean(), *found, values.max()]
        yield f"{begin:f}, {len(values)}, " + ", ".join(f"{number:f}" for number in numbers)
