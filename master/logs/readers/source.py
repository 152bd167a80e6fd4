"""One log among those to be analysed: what it holds, and whose it is.

Rule: the content of a log decides its format (detect_format.py); its name gives host and job, which the content lacks.
Logs are merged only with logs of the same format and quantity: a histogram of completion latencies is never added to
latencies of single I/Os, which may well be the same I/Os.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from .bucket_layouts import IVYPY, Layout

Kind = tuple[str, str, bool]  # format, quantity, averaged
SILENCE_NS: Final = 60_000_000_000  # before a log's first row: more is hardly a job that begins with a pause
NONE: Final = "none"  # the value of an attribute that a log does not have


class Format(StrEnum):
    FIO_HISTOGRAM = "fio-histogram"
    FIO_LATENCY = "fio-latency"
    SMALLFILE = "smallfile"
    IVYPY = "ivypy"


class Direction(StrEnum):
    READ = "read"
    WRITE = "write"
    TRIM = "trim"


DIRECTIONS: Final = tuple(Direction)  # in the order of fio's numbers


@dataclass(frozen=True, slots=True)
class Source:
    path: Path
    format: Format
    quantity: str  # clat, slat, lat (fio), response_time (smallfile), service, response (ivypy)
    host: str
    job: str
    layout: Layout = IVYPY
    lead: int = 3  # fio histograms: columns before the buckets
    fields: int = 5  # fio latency logs: columns
    direction_at: int = 2  # fio latency logs: the direction's column
    averaged: bool = False  # fio latency logs: rows are means over log_avg_msec
    epoch: bool = False  # stamps count from 1970, not from the job's start
    first_ns: int = 0  # the first stamp, on its own clock
    silent_ns: int = 0  # fio: before the first stamp, what neither its latency nor the distance of rows explains
    start_ns: int = 0  # when its time began, on the common clock: smallfile's name, or --start-times
    drift: float = 0.0  # how much faster than the common clock its clock ran, as a fraction
    period_ns: int | None = None  # fio histograms: log_hist_msec; ivypy: the subinterval
    is_regular: bool = True  # fio histograms: the first rows came at one distance
    begins_ms: tuple[int | None, ...] = (None, None, None)  # fio histograms: where each direction's first row begins
    unit_ns: int = 1  # fio latency logs: unit of the values
    step: int = 0  # ivypy: the step's number
    last_ns: int = 0  # ivypy: where its last subinterval ends, on its own clock
    run: str = NONE  # ivypy: the run's folder
    other_phases: tuple[str, ...] = ()  # ivypy: phases whose subintervals are left out
    gaps: tuple[tuple[int, int], ...] = ()  # ivypy: the stretches left out between others, on its own clock
    not_measured: tuple[tuple[int, int], ...] = ()  # ivypy: the stretches of other phases, likewise
    unpaced: tuple[tuple[int, int], ...] = ()  # ivypy, response: where I/Os have none, (begin, end] on its own clock
    blank_rollups: frozenset[str] = frozenset()  # ivypy, response: `all`, `host`: whose row of the step is blank
    is_discredited: bool = False  # ivypy: the step's row in the run's summary has a verdict against this latency
    content: Path | None = None  # the copy that is read, where `path` is a pipe

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def step_name(self) -> str:
        """The step of a run that it is of; blank for other logs."""
        return self.job if self.format is Format.IVYPY else ""

    @property
    def begin_ns(self) -> int | None:
        """When its first I/O can have begun, on the common clock; None where that is unknown."""
        is_unknown = self.begins_late or (self.epoch and self.format is not Format.SMALLFILE)
        return None if is_unknown else self.start_ns

    @property
    def begins_late(self) -> bool:
        """Whether so much time lies before its first row that its stamps may not count from its job's start: fio's
        log_alternate_epoch_clock_id has them count from the machine's, for example."""
        begins_ns = [begin_ms * 1_000_000 for begin_ms in self.begins_ms if begin_ms is not None]
        return not self.epoch and min([self.silent_ns, *begins_ns]) > SILENCE_NS

    @property
    def is_absolute(self) -> bool:
        """Whether its time counts from 1970."""
        return self.epoch or self.start_ns != 0

    @property
    def kind(self) -> Kind:
        """The properties that must agree for logs to be merged."""
        return self.format.value, self.quantity, self.averaged


_COMPRESSED: Final = re.compile(r"\.(gz|xz|zst|zstd)$")
_FIO: Final = re.compile(
    r"^(?P<job>.*?)_?(?P<quantity>[cs]?lat)(?P<hist>_hist)?(\.(?P<number>\d+))?\.log(\.(?P<host>.+))?$"
)
_SMALLFILE: Final = re.compile(r"^rsptimes_(?P<thread>[^_]+)_(?P<host>.+)_(?P<op>[^_]+)_(?P<start>\d+(\.\d+)?)\.csv$")


@dataclass(frozen=True, slots=True)
class FileName:
    """The parts of a log's file name; blank where it lacks a part."""

    host: str = ""
    job: str = ""
    quantity: str = ""
    is_histogram: bool = False
    start_ns: int | None = None


def named(path: Path) -> FileName:
    """Host, job, quantity and start, from names as fio and smallfile make them, compressed or not."""
    name = _COMPRESSED.sub("", path.name)
    if match := _SMALLFILE.match(name):
        whole, _, fraction = match["start"].partition(".")
        start_ns = int(whole) * 1_000_000_000 + int(f"{fraction:<09}"[:9])
        return FileName(match["host"], match["op"], "response_time", False, start_ns)
    if match := _FIO.match(name):
        host = _COMPRESSED.sub("", match["host"] or "")
        return FileName(host, match["job"], match["quantity"], match["hist"] is not None)
    return FileName()


def with_hosts(sources: Iterable[Source]) -> list[Source]:
    """Logs without a host in their name take that of their folder, if the logs come from more than one folder."""
    sources = list(sources)
    folders = {source.path.parent for source in sources}
    if len(folders) < 2:
        return [replace(s, host=s.host or NONE) for s in sources]
    return [replace(s, host=s.host or s.path.parent.name or NONE) for s in sources]
