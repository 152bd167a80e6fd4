"""The I/Os after the last row, which fio never writes, estimated from the job's own JSON.

Rule: JSON total minus logged, per direction, placed between the last row and the job's end. With json+ bins the
tail's histogram is the difference of the two, bucket by bucket; without, its count is known and its shape is taken
from all that was logged. It is an estimate; a note states its share.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ....protocol.histogram import bucket_of
from ...errors import PlanError
from ..readers.bucket_layouts import Layout
from ..readers.fio_json import jobs_of
from ..readers.records import NS_PER_MS, NS_PER_S, Floats, Records
from ..readers.source import DIRECTIONS

_NS_KEYS: Final = ("clat_ns", "lat_ns")  # fio 3; fio 2 says "clat", in us
_NOISE: Final = 0.5  # I/Os: what rounding leaves over


@dataclass(frozen=True, slots=True)
class JobTotals:
    """The I/Os that fio counted in one direction, over all jobs of the files."""

    count: int
    runtime_ms: int  # the longest job's
    bins: dict[int, int]  # ns (middle of a bucket) -> count; empty without json+


def read_totals(paths: Iterable[Path]) -> dict[int, JobTotals]:
    """Totals per direction number. PlanError where a file is no result of fio."""
    totals: dict[int, JobTotals] = {}
    for path in paths:
        try:
            for job in jobs_of(path.read_text(encoding="utf-8")):
                for number, direction in enumerate(DIRECTIONS):
                    _add(totals, number, job.get(direction.value) or {})
        except OSError as error:
            raise PlanError(f"{path}: cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise PlanError(f"{path}: is not fio's JSON; expected the file of --output-format=json+") from None
    return totals


def _add(totals: dict[int, JobTotals], number: int, section: dict[str, Any]) -> None:
    latency = next((section[key] for key in _NS_KEYS if section.get(key, {}).get("N")), None)
    if latency is None:
        return
    before = totals.get(number, JobTotals(0, 0, {}))
    bins = dict(before.bins)
    for middle, count in latency.get("bins", {}).items():
        bins[int(middle)] = bins.get(int(middle), 0) + count
    runtime = max(before.runtime_ms, int(section.get("runtime", 0)))
    totals[number] = JobTotals(before.count + int(latency["N"]), runtime, bins)


class Logged:
    """The I/Os that the logs held, per direction: summed while they are read."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.cells = np.zeros((len(DIRECTIONS), layout.buckets))
        self.last_ns = [0] * len(DIRECTIONS)

    def add(self, records: Records) -> None:
        """To be called by one thread at a time."""
        lengths = records.stop - records.first
        rows = np.repeat(np.arange(len(records)), lengths)
        entries = np.arange(len(rows)) + np.repeat(
            records.first - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths
        )
        flat = records.directions[rows].astype(np.int64) * self.layout.buckets + records.buckets[entries]
        weights = records.counts[entries].astype(np.float64)
        self.cells += np.bincount(flat, weights, self.cells.size).reshape(self.cells.shape)
        for direction in np.unique(records.directions):
            last = int(records.ends[records.directions == direction].max())
            self.last_ns[direction] = max(self.last_ns[direction], last)


@dataclass(frozen=True, slots=True)
class Tail:
    records: Records
    notes: tuple[str, ...]


def estimate(totals: dict[int, JobTotals], logged: Logged, start_ns: int) -> Tail:
    """The tail as a record per direction. `start_ns`: when the jobs began, on the common clock."""
    notes: list[str] = []
    rows: list[tuple[int, int, int, Floats]] = []
    for direction, total in sorted(totals.items()):
        name, own = DIRECTIONS[direction].value, logged.cells[direction]
        missing = total.count - own.sum()
        if missing < _NOISE:
            if missing < -_NOISE:
                notes.append(
                    f"tail: the JSON counts {-missing:,.0f} {name} I/Os fewer than the logs: it is of another run"
                )
            continue
        end_ns = start_ns + total.runtime_ms * NS_PER_MS
        begin_ns = logged.last_ns[direction] or start_ns
        shape = np.maximum(_cells_of(total.bins, logged.layout) - own, 0) if total.bins else own
        if not shape.sum():
            notes.append(f"tail: the shape of {missing:,.0f} {name} I/Os is not known; left out")
            continue
        # Sums are rounded, not buckets: of many that hold less than one I/O nothing would be left.
        cells = np.diff(np.rint(np.cumsum(shape * (missing / shape.sum()))), prepend=0)
        rows.append((begin_ns, max(end_ns, begin_ns), direction, cells))
        how = "json+ bins minus the logs" if total.bins else "count from the JSON, shape from the logs"
        begin_s, end_s = ((at - start_ns) / NS_PER_S for at in (begin_ns, end_ns))
        notes.append(
            f"tail: {missing:,.0f} {name} I/Os ({missing / total.count:.2%} of all) were completed after the last row; "
            f"estimated ({how}) and placed in {begin_s:.3f} .. {end_s:.3f} s"
        )
    return Tail(_records(rows), tuple(notes))


def _cells_of(bins: dict[int, int], layout: Layout) -> Floats:
    cells = np.zeros(layout.buckets)
    for middle_ns, count in bins.items():
        fine = bucket_of(middle_ns // layout.unit_ns)
        cells[min(fine >> layout.coarseness, layout.buckets - 1)] += count
    return cells


def _records(rows: Sequence[tuple[int, int, int, Floats]]) -> Records:
    entries = [(np.flatnonzero(cells), cells) for *_, cells in rows]
    stop = np.cumsum([len(used) for used, _ in entries], dtype=np.int64)
    return Records(
        np.array([begin for begin, *_ in rows], np.int64),
        np.array([end for _, end, *_ in rows], np.int64),
        np.array([direction for _, _, direction, _ in rows], np.uint8),
        np.concatenate([[0], stop[:-1]]).astype(np.int64) if rows else np.empty(0, np.int64),
        stop,
        np.concatenate([np.empty(0, np.int64), *(used for used, _ in entries)]).astype(np.uint16),
        np.concatenate([np.empty(0), *(cells[used] for used, cells in entries)]).astype(np.uint64),
    )
