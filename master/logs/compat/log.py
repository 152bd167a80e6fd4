"""fio's logs as they stand in the file, dense, for the old tools' arithmetic.

Rule: what is wrong with a log is a LogError; nothing is resampled, aligned or left out here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from ..faults import Fault, LogError
from ..native._rows import parse_latencies
from ..readers.detect_format import Hints, detect
from ..readers.line_chunks import CHUNK, StreamError, head
from ..readers.records import Directions, Floats, Ints
from ..readers.row_arrays import HistogramRows
from ..readers.source import Format, Source, named
from ..readers.text_rows import Parsed, Reading

_OF_FIO: Final = ("clat", "slat", "lat")


@dataclass(frozen=True, slots=True)
class Rows:
    """A histogram log as it stands in the file."""

    source: Source
    stamps: Ints  # ms
    directions: Directions
    sizes: Ints
    counts: Floats  # (rows, buckets)

    def __len__(self) -> int:
        return len(self.stamps)

    def take(self, which: "Ints | np.ndarray") -> "Rows":
        return replace(
            self,
            stamps=self.stamps[which],
            directions=self.directions[which],
            sizes=self.sizes[which],
            counts=self.counts[which],
        )


@dataclass(frozen=True, slots=True)
class LogValues:
    """A latency log (or any log of that shape) as it stands in the file."""

    stamps: Ints  # ms
    values: Ints


def histogram_sources(paths: Sequence[Path], hints: Hints) -> list[Source]:
    """LogError where one is no histogram log, or has another layout than the first."""
    found = [detect(path, hints) for path in _files(paths, is_histogram=True)]
    faults = [fault for fault in found if isinstance(fault, Fault)]
    sources = [source for source in found if isinstance(source, Source)]
    for source in sources:
        if source.format is not Format.FIO_HISTOGRAM:
            faults.append(Fault(source.name, f"is a {source.format} log, where a histogram log of fio was expected"))
        elif source.layout != sources[0].layout:
            faults.append(Fault(source.name, f"has {source.layout}, where {sources[0].layout} was expected"))
    if faults:
        raise LogError(faults)
    return sources


def _files(paths: Sequence[Path], is_histogram: bool) -> list[Path]:
    """The paths, with the logs in it for a folder. LogError where it has none, or logs of several quantities."""
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        names = {file: named(file) for file in sorted(path.iterdir()) if file.is_file()}
        own = [file for file, name in names.items() if name.quantity in _OF_FIO and name.is_histogram is is_histogram]
        quantities = sorted({names[file].quantity for file in own})
        if not own:
            kind = "histogram" if is_histogram else "latency"
            raise LogError([Fault(str(path), f"is a folder without {kind} logs of fio in it")])
        if len(quantities) > 1:
            what = f"holds logs of {' and '.join(quantities)}, which must not be added"
            raise LogError([Fault(str(path), what, f"name those of one, for example {path}/*_{quantities[0]}.*.log")])
        files += own
    return files


def read_rows(source: Source) -> Rows:
    """All rows of a log, dense. LogError where a line is none."""
    columns, into = source.layout.buckets, HistogramRows(source)
    reading = Reading(source)
    parts: list[Rows] = []
    for _, (rows, entries, *_) in reading.parse(into.parse):
        dense = np.zeros((rows, columns))
        row_of = np.repeat(np.arange(rows), np.diff(into.first[: rows + 1]))
        dense[row_of, into.buckets[:entries]] = into.counts[:entries]
        stamps, directions, sizes = into.stamps[:rows].copy(), into.directions[:rows].copy(), into.sizes[:rows].copy()
        parts.append(Rows(source, stamps, directions, sizes, dense))
    if not parts:
        reading.fault("holds no records")
    if reading.faults:
        raise LogError(reading.faults)
    return Rows(
        source,
        np.concatenate([part.stamps for part in parts]),
        np.concatenate([part.directions for part in parts]),
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.counts for part in parts]),
    )


def read_all_values(paths: Sequence[Path]) -> list[LogValues]:
    """The latency, bandwidth or IOPS logs. LogError where one cannot be read."""
    return [_read_values(path) for path in _files(paths, is_histogram=False)]


def _read_values(path: Path) -> LogValues:
    """Stamps and values. LogError where a line is none."""
    try:
        begin = head(path)
    except StreamError as error:
        raise LogError([Fault(str(path), str(error))]) from None
    fields = begin.split(b"\n", 1)[0].count(b",") + 1
    source = Source(path, Format.FIO_LATENCY, "", "", "", fields=fields, direction_at=2)
    reading = Reading(source)
    most = CHUNK // len("0,0,0,0\n") + 1
    stamps, values, directions = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.uint8)

    def parse(text: memoryview) -> Parsed:
        return parse_latencies(text, fields, 2, stamps, values, directions)

    parts: list[LogValues] = []
    if 4 <= fields <= 16:
        for _, (rows, *_) in reading.parse(parse):
            parts.append(LogValues(stamps[:rows].copy(), values[:rows].copy()))
    if not parts:
        reading.fault("holds no samples: expected rows of time, value, direction, block size")
    if reading.faults:
        raise LogError(reading.faults)
    return LogValues(np.concatenate([p.stamps for p in parts]), np.concatenate([p.values for p in parts]))
