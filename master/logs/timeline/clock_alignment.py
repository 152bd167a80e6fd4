"""When each log's time began, and how far apart the hosts' clocks may be.

Rule: logs with stamps from 1970 (log_unix_epoch, smallfile's names) are used as their hosts' clocks give them; logs
that count from their job's start need `--start-times` to be aligned, or are assumed to have started together, which a
note states. Clocks that begin far apart are a fault, not a flat line with two humps.
"""

import csv
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from ...errors import PlanError
from ..faults import Fault
from ..readers.records import NS_PER_S
from ..readers.source import Format, Source

_COLUMNS: Final = ("host", "start", "drift_ppm", "uncertainty_s")


@dataclass(frozen=True, slots=True)
class HostStart:
    """When a host's jobs began, on the common clock."""

    host: str
    start_ns: int
    drift: float = 0.0  # how much faster its clock runs, as a fraction
    uncertainty_s: float | None = None


def read_start_times(path: Path) -> dict[str, HostStart]:
    """The table of `--start-times`: CSV with the columns host, start (seconds, or ISO 8601) and, optionally,
    drift_ppm and uncertainty_s. PlanError names every line that is wrong."""
    faults: list[str] = []
    starts: dict[str, HostStart] = {}
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file, skipinitialspace=True)
            if not rows.fieldnames or not {"host", "start"} <= set(rows.fieldnames):
                raise PlanError(f"{path}: line 1: expected a header with {', '.join(_COLUMNS[:2])} and, optionally, "
                                f"{', '.join(_COLUMNS[2:])}")  # fmt: skip
            for row in rows:
                try:
                    start = _host_start(row)
                except ValueError as error:
                    faults.append(f"{path}: line {rows.line_num}: {error}")
                    continue
                if start.host in starts:
                    faults.append(f"{path}: line {rows.line_num}: host {start.host!r} is listed twice")
                starts[start.host] = start
    except OSError as error:
        raise PlanError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise PlanError(f"{path}: cannot be read: it is no text") from None
    if faults:
        raise PlanError("\n".join(faults))
    return starts


def _host_start(row: dict[str, str]) -> HostStart:
    text = (row["start"] or "").strip()
    try:
        whole, _, fraction = text.partition(".")
        start_ns = int(whole) * NS_PER_S + int(f"{fraction:<09}"[:9])
    except ValueError:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"start {text!r} is neither seconds nor a time like 2026-11-21T09:00:00Z") from None
        if moment.tzinfo is None:
            raise ValueError(f"start {text!r} has no time zone; write {text}Z for UTC") from None
        start_ns = round(moment.timestamp() * 1e6) * 1000
    uncertainty = (row.get("uncertainty_s") or "").strip()
    drift = float((row.get("drift_ppm") or "0").strip() or 0) / 1e6
    return HostStart(row["host"].strip(), start_ns, drift, float(uncertainty) if uncertainty else None)


def with_start_times(sources: Iterable[Source], starts: dict[str, HostStart]) -> tuple[list[Source], list[Fault]]:
    """The table's starts, given to each host's logs. Logs with stamps from 1970 are not moved: a drift is
    useless there without the moment at which the clock was right."""
    placed: list[Source] = []
    faults: list[Fault] = []
    for source in sources:
        start = starts.get(source.host)
        if not starts or source.format is Format.IVYPY:
            placed.append(source)
        elif start is None:
            known = ", ".join(sorted(starts))
            faults.append(Fault(source.name, f"host {source.host!r} is not in the table of start times ({known})"))
        elif source.epoch:
            placed.append(source)
        else:
            placed.append(replace(source, start_ns=start.start_ns, drift=start.drift))
    return placed, faults


def begins_ns(source: Source) -> int:
    """The first stamp, on the common clock."""
    return source.start_ns + source.first_ns


def apart(sources: Sequence[Source], limit_s: float) -> list[Fault]:
    """Logs that begin further than `limit_s` from the middle one."""
    timed = [source for source in sources if source.format is not Format.IVYPY]
    if len(timed) < 2:
        return []
    middle = statistics.median_low([begins_ns(source) for source in timed])
    faults = []
    for source in timed:
        away_s = (begins_ns(source) - middle) / NS_PER_S
        if abs(away_s) > limit_s:
            way = "after" if away_s > 0 else "before"
            faults.append(
                Fault(
                    source.name,
                    f"host {source.host} begins {abs(away_s):,.0f} s {way} the others: expected stamps on one clock, "
                    f"within {limit_s:g} s",
                    "give the hosts' clocks with --start-times, or allow it with --max-start-spread",
                )
            )
    return faults


def misalignment(
    sources: Sequence[Source], spans: Sequence[tuple[int, int]], starts: dict[str, HostStart]
) -> list[str]:
    """How well the logs are aligned: sentences."""
    notes = []
    if len(spans) > 1:
        first, last = [begin for begin, _ in spans], [end for _, end in spans]
        notes.append(
            f"the logs begin within {(max(first) - min(first)) / NS_PER_S:.3f} s and end within "
            f"{(max(last) - min(last)) / NS_PER_S:.3f} s of one another"
        )
    hosts = {source.host for source in sources if source.format is not Format.IVYPY}
    known = [start.uncertainty_s for host, start in starts.items() if host in hosts and start.uncertainty_s is not None]
    if known:
        notes.append(
            f"estimated misalignment of the hosts: up to {max(known) * 2:.6g} s (twice the largest uncertainty_s)"
        )
    elif len(hosts) > 1 and not starts and not all(source.epoch for source in sources):
        notes.append(
            f"the {len(hosts)} hosts are assumed to have started together; give their starts with --start-times"
        )
    elif len(hosts) > 1:
        notes.append(f"the {len(hosts)} hosts use their own clocks; the logs do not record how far these are apart")
    return notes
