"""Places logs on one time axis: from the clock, from their common begin, or, for runs kept apart, each from its own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...text.units import format_duration
from ..readers.records import NS_PER_MS, NS_PER_S
from ..readers.source import Format, Source
from .clock_alignment import begins_ns
from .resample import tolerance_ns
from .rollups import Slice, shares_of


@dataclass(frozen=True, slots=True)
class PlacedLogs:
    """Logs whose time counts from quantum 0."""

    sources: list[Source]
    zero_ns: int | None  # where quantum 0 begins, from 1970; None: at the jobs' own start
    apart_ns: dict[Slice, int]  # the same of each series, where runs are kept apart
    notes: tuple[str, ...] = ()


def placed_logs(sources: Sequence[Source], by: tuple[tuple[str, ...], ...], align: str | None) -> PlacedLogs:
    """Runs of which no two share a series count from their own begins, all other logs from one origin."""
    origin_ns = _origin_ns(sources, align)
    zero_ns = origin_ns if all(source.is_absolute for source in sources) else None
    runs = {source.run for source in sources}
    are_apart = all(s.format is Format.IVYPY for s in sources) and all("run" in attributes for attributes in by)
    if len(runs) > 1 and are_apart and align != "clock":
        origins = {run: _origin_ns([s for s in sources if s.run == run], align) for run in runs}
        apart_ns = {share.instance: origins[s.run] for s in sources for share in shares_of(s, by)}
        moved = [replace(s, start_ns=s.start_ns - origins[s.run]) for s in sources]
        note = f"{len(runs)} runs, each in a series of its own, from its own begin; --by all adds them"
        return PlacedLogs(moved, zero_ns, apart_ns, (note,))
    moved = [replace(s, start_ns=s.start_ns - origin_ns) for s in sources]
    return PlacedLogs(moved, zero_ns, {}, _note_on_origin(sources, align, origin_ns))


def _note_on_origin(sources: Sequence[Source], align: str | None, origin_ns: int) -> tuple[str, ...]:
    """A sentence where the logs' rows, and not the user, decided on the origin."""
    if align is not None or not origin_ns or not _share_row_ends(sources):
        return ()
    return ("intervals begin with the logs' rows, which agree on when, so that none is cut; --align clock",)


def steps_on_grid(placed: PlacedLogs, length_ns: int) -> tuple[PlacedLogs, list[str]]:
    """Each step of a run moved on to the next boundary of intervals, so that no interval cuts a row or holds two steps.

    Not beside other logs, whose time is the clock's.
    """
    if any(source.format is not Format.IVYPY for source in placed.sources):
        return placed, []
    steps: dict[tuple[str, int], list[Source]] = {}
    for source in sorted(placed.sources, key=lambda s: (s.run, begins_ns(s))):
        steps.setdefault((source.run, source.step), []).append(source)
    moved_ns: dict[tuple[str, int], int] = {}
    free_ns: dict[str, int] = {}  # of each run: where the step before ends
    for (run, step), sources in steps.items():
        begin_ns = min(map(begins_ns, sources))
        earliest_ns = max(begin_ns, free_ns.get(run, begin_ns))
        near_ns = int(tolerance_ns(np.array(sources[0].period_ns or length_ns), length_ns))
        moved_ns[run, step] = -((near_ns - earliest_ns) // length_ns) * length_ns - begin_ns
        free_ns[run] = max(source.last_ns + source.start_ns for source in sources) + moved_ns[run, step]
    moved = [replace(s, start_ns=s.start_ns + moved_ns[s.run, s.step]) for s in placed.sources]
    most_ns = max(map(abs, moved_ns.values()))
    if most_ns < NS_PER_MS:
        return replace(placed, sources=moved), []
    note = (
        f"each step begins on a boundary of intervals, up to {format_duration(most_ns / NS_PER_S)} later than it "
        "did, so that no interval cuts its rows; --align clock keeps the clock's time"
    )
    return replace(placed, sources=moved), [note]


def _origin_ns(sources: Sequence[Source], align: str | None) -> int:
    """Where quantum 0 begins: 1970 (or the jobs' start), or the begin of the first log."""
    if not all(source.is_absolute or source.begins_late for source in sources):
        return 0
    is_run = any(source.format is Format.IVYPY for source in sources)
    if align == "clock" or (align is None and not is_run and not _share_row_ends(sources)):
        return 0
    return min(begins_ns(source) - _first_row_ns(source) for source in sources)


def _first_row_ns(source: Source) -> int:
    """A histogram's first stamp is the end of its first row; a smallfile thread's name says when it began."""
    return (source.period_ns or 0) if source.format is Format.FIO_HISTOGRAM else 0


def _share_row_ends(sources: Sequence[Source]) -> bool:
    """Whether the rows of all histogram logs end at the same moments, as a boundary of intervals counts."""
    logs = [source for source in sources if source.format is Format.FIO_HISTOGRAM]
    periods_ns = [source.period_ns for source in logs if source.is_regular and source.period_ns]
    if not logs or len(periods_ns) < len(logs):
        return False
    period_ns = min(periods_ns)
    near_ns = int(tolerance_ns(np.array(period_ns), period_ns))
    first_ns = begins_ns(logs[0])
    apart_ns = [(begins_ns(source) - first_ns + near_ns) % period_ns for source in logs]
    return max(periods_ns) - period_ns <= near_ns and max(apart_ns) <= 2 * near_ns
