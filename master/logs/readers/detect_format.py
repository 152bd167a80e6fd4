"""Detects the format of a file from its content; the name only adds what the content lacks.

Rule: the first lines decide. A file of no known format is a fault that states what was expected and what was
found, so that no log is missing from the result without a reason.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ..faults import Fault
from .bucket_layouts import NS_PER_UNIT, Layout, LayoutHints, lead_and_layout
from .line_chunks import StreamError, head
from .logging_period import is_regular
from .records import NS_PER_MS
from .source import FileName, Format, Source, named

EPOCH_MS: Final = 10**11  # stamps from here on count from 1970: as a job's own time it would be three years
_POINTER: Final = 1 << 44  # a "latency" of five hours: a heap address, not nanoseconds
_FEWEST_HISTOGRAM_COLUMNS: Final = 21  # 19 groups at coarseness 6, without block size
_LATENCY_FIELDS: Final = range(4, 9)
_LOOKED_AT: Final = _LATENCY_FIELDS.stop
_MOST_LINES: Final = 200  # that are read
_ZLIB: Final = 0x78  # the first byte of a zlib stream; the first two are a multiple of 31
_SQLITE: Final = b"SQLite format 3\0"
_OTHER_LOGS: Final = ("_bw.", "_iops.")
_INI_SECTION: Final = re.compile(r"\[[^\[\]{}\",]+\]")
_EXPECTED: Final = "expected a fio histogram or latency log, smallfile's response times, or ivypy's histograms.sqlite"


@dataclass(frozen=True, slots=True)
class Hints:
    """The facts of a log that the user overrides; None: detected."""

    format: Format | None = None
    layout: LayoutHints = LayoutHints()  # noqa: RUF009  # frozen
    period_ms: float | None = None


def detect(path: Path, hints: Hints, copy: Path | None = None) -> Source | Fault:
    """Detect the log that `path` holds, or (a pipe) its copy. A Fault where it is no log."""
    found = _detect(path, copy or path, hints)
    return replace(found, content=copy) if copy and isinstance(found, Source) else found


def _detect(path: Path, content: Path, hints: Hints) -> Source | Fault:
    try:
        start = head(content)
    except StreamError as error:
        return Fault(str(path), str(error))
    if not start:
        return _empty(path)
    if start.startswith(_SQLITE):
        return Source(path, Format.IVYPY, "", "", "")
    if start[0] == _ZLIB and int.from_bytes(start[:2], "big") % 31 == 0:
        remedy = f"unpack it with fio --inflate-log={path} > FILE.log"
        return Fault(str(path), "is compressed, as fio's log_store_compressed writes it", remedy)
    start = start[: start.rfind(b"\n", 0, start.find(b"\0")) + 1] if b"\0" in start else start  # a crash's tail
    if not start.isascii() or not start:
        return Fault(str(path), f"is binary, not text; {_EXPECTED}")
    text = start.decode("ascii")
    whole_lines = text[: text.rfind("\n") + 1].split("\n", _MOST_LINES)[:_MOST_LINES]
    lines = [line.strip() for line in whole_lines if line.strip()] or [text.strip()]
    if not lines[0]:
        return Fault(str(path), "holds only blank lines")
    return _of_lines(path, lines, hints)


def _empty(path: Path) -> Fault:
    name = named(path)
    if name.is_histogram:
        return Fault(str(path), "is empty", "was it written with log_hist_msec, and did the job end?")
    if name.quantity == "slat":
        return Fault(str(path), "is empty", "fio logs slat only of asynchronous engines; give the clat or lat log")
    return Fault(str(path), "is empty", "did its job end, with I/Os?")


def _of_lines(path: Path, lines: list[str], hints: Hints) -> Source | Fault:
    name = named(path)
    if _INI_SECTION.fullmatch(lines[0]):
        return Fault(str(path), "looks like a job file of fio, not a log", "make a plan of it with ivypy import")
    if lines[0][0] in "{[":
        return Fault(str(path), "is JSON, not a log", "fio's own result is given as --fio-json FILE")
    # Of a histogram's thousands of cells only the leading ones are read.
    fields = [[cell.strip() for cell in line.split(",", _LOOKED_AT)[:_LOOKED_AT]] for line in lines]
    columns = lines[0].count(",") + 1
    if not fields[0][0].isdigit() and hints.format in (None, Format.SMALLFILE):
        return _smallfile(path, fields[0], name)
    if hints.format is Format.SMALLFILE:
        return _smallfile(path, fields[0], name)
    is_histogram = (
        columns >= _FEWEST_HISTOGRAM_COLUMNS if hints.format is None else hints.format is Format.FIO_HISTOGRAM
    )
    if is_histogram:
        return _histogram(path, lines[0], fields, columns, name, hints)
    if columns in _LATENCY_FIELDS:
        return _latency(path, fields, name, hints)
    return Fault(str(path), f"has rows of {columns} columns; {_EXPECTED}", line=1)


def _smallfile(path: Path, cells: list[str], name: FileName) -> Source | Fault:
    if len(cells) != 3 or not all(_is_number(cell) for cell in cells[1:]):
        return Fault(str(path), f"begins with {','.join(cells)[:40]!r}; {_EXPECTED}", line=1)
    start_ns = name.start_ns or 0
    return Source(
        path, Format.SMALLFILE, "response_time", name.host, name.job or cells[0], epoch=start_ns > 0, start_ns=start_ns
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _histogram(
    path: Path, line: str, fields: list[list[str]], columns: int, name: FileName, hints: Hints
) -> Source | Fault:
    """`line`: the first one; `fields`: the leading cells of the first lines."""
    shape = lead_and_layout(columns, hints.layout)
    if shape is None:
        known = "1,859 columns (fio 3) or 1,219 (fio 2), or a half, quarter ... of the buckets for a coarse log"
        return Fault(
            str(path),
            f"has rows of {columns} columns, which is no histogram layout: {known}",
            "--groups and --coarseness name the layout of a recompiled fio",
            line=1,
        )
    lead, layout = shape
    stamps = _stamps(fields, 1)
    period_ns = _period_ns(stamps, hints)
    first_ns = _first_ns(fields)
    return Source(
        path,
        Format.FIO_HISTOGRAM,
        name.quantity or "clat",
        name.host,
        name.job,
        layout,
        lead,
        epoch=_is_epoch(fields),
        first_ns=first_ns,
        silent_ns=max(first_ns - (period_ns or 0) - _slowest_ns(line, lead, layout, first_ns), 0),
        period_ns=period_ns,
        is_regular=is_regular(stamps),
    )


def _stamps(fields: list[list[str]], direction_at: int) -> list[list[int]]:
    """The stamps of each direction."""
    stamps: dict[str, list[int]] = {}
    for row in fields:
        if len(row) > direction_at and row[0].isdigit():
            stamps.setdefault(row[direction_at], []).append(int(row[0]))
    return list(stamps.values())


def _slowest_ns(line: str, lead: int, layout: Layout, most_ns: int) -> int:
    """How long the slowest I/O of a row took at most; `most_ns` where it is in the bucket without end."""
    cells = line.split(",")[lead:]
    filled = [bucket for bucket, cell in enumerate(cells) if cell.strip() not in ("", "0")]
    if not filled:
        return 0
    return most_ns if filled[-1] >= layout.buckets - 1 else int(layout.edges[filled[-1] + 1])


def _period_ns(stamps: Sequence[list[int]], hints: Hints) -> int | None:
    """log_hist_msec: given; of rows that came regularly, their mean distance, as each is late by a little; else the
    step that a fifth of the time was spent in steps of at most.

    Not the plain median: after a stall come many rows with steps of a millisecond. For rows that came irregularly
    logging_period.py looks further.
    """
    if hints.period_ms is not None:
        return round(hints.period_ms * NS_PER_MS)
    if is_regular(stamps):
        passed_ms = sum(own[-1] - own[0] for own in stamps)
        return round(passed_ms / sum(len(own) - 1 for own in stamps)) * NS_PER_MS
    steps = sorted(b - a for own in stamps for a, b in itertools.pairwise(own) if b > a)
    passed = itertools.accumulate(steps)
    return next((step * NS_PER_MS for step, until in zip(steps, passed, strict=True) if 5 * until >= sum(steps)), None)


def _is_epoch(fields: list[list[str]]) -> bool:
    return fields[0][0].isdigit() and int(fields[0][0]) >= EPOCH_MS


def _first_ns(fields: list[list[str]]) -> int:
    return int(fields[0][0]) * NS_PER_MS if fields[0][0].isdigit() else 0


def _latency(path: Path, fields: list[list[str]], name: FileName, hints: Hints) -> Source | Fault:
    rows = [row for row in fields if len(row) == len(fields[0])]
    if any(row[1].isdigit() and int(row[1]) >= _POINTER for row in rows):
        return Fault(
            str(path),
            "holds heap addresses instead of histograms: fio's log_compression and log_store_compressed ruin "
            "histogram logs when they write them",
            "the data is lost; run again without log_compression",
            line=1,
        )
    if name.is_histogram:
        return Fault(str(path), f"is a histogram log by its name, but has rows of {len(fields[0])} columns", line=1)
    if any(word in path.name for word in _OTHER_LOGS):
        return Fault(str(path), "is a bandwidth or IOPS log by its name; it holds no latencies")
    for direction_at in (2, 3):
        if all(row[direction_at] in ("0", "1", "2") for row in rows) and len(fields[0]) > direction_at:
            source = Source(path, Format.FIO_LATENCY, name.quantity or "lat", name.host, name.job)
            size_at = direction_at + 1
            averaged = direction_at == 3 or all(row[size_at] == "0" for row in rows)
            unit_ns = NS_PER_UNIT[hints.layout.unit or "ns"]
            first_ns, took_ns = _first_ns(fields), int(fields[0][1]) * unit_ns if fields[0][1].isdigit() else 0
            distance_ns = _period_ns(_stamps(rows, direction_at), Hints()) or 0
            return replace(
                source,
                fields=len(fields[0]),
                direction_at=direction_at,
                averaged=averaged,
                epoch=_is_epoch(fields),
                first_ns=first_ns,
                silent_ns=max(first_ns - took_ns - distance_ns, 0),
                unit_ns=unit_ns,
            )
    return Fault(
        str(path), "has no column that is a direction (0, 1 or 2): expected time, value, direction, block size", line=1
    )
