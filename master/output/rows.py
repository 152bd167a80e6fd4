"""Rows of rollup instances: what stands in each column of a subinterval's and a step's rows, for all instances at once.

Rule: numbers are made for all rows in one go, and texts that stay the same between two edits are made once.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...protocol.counters import SectionCount
from ...protocol.parameters import MAX
from ..rollup.arrays import Presence
from ..rollup.figures import Figures
from ..rollup.instances import ALL, RollupInstance, Rollups, RollupType
from ..rollup.metrics import BLOCKS, value
from ..rollup.parameters_in_force import Settings
from ..rollup.sections import sections_of_rows
from ..rollup.validity import Validity
from ..rollup.window import Measurement
from ..verdicts import Scope, Verdict
from .column import names
from .columns import (
    HALF_WIDTHS,
    NARROW,
    NARROW_KEYS,
    NARROW_METRICS,
    PARAMETER_COLUMNS,
    PRESENCE,
    SUBINTERVAL,
    SUMMARY,
    VERDICT,
    attribute_columns,
)  # fmt: skip
from .csv_text import cells, lines, number_cells, utc
from .record_types import SubintervalRecord, SummaryRecord
from .used_categories import metrics_of


def section_rows(measurement: Measurement) -> Iterator[Sequence[object]]:
    """Of by_address.csv, for the types that have files."""
    sections = sections_of_rows(measurement.layout, measurement.sections)
    for kind in measurement.layout.rollups.types:
        for instance in kind.instances if kind.csv else ():
            for place, counts in enumerate(sections[instance.row].tolist()):
                share = 100 * place / measurement.layout.rollups.sections
                reads, changes = counts[: SectionCount.CHANGES], counts[SectionCount.CHANGES :]
                times = *_section_cells(reads), *_section_cells(changes)
                yield kind.name, instance.name, place + 1, f"{share:.6g}", *times


def _section_cells(triple: Sequence[int]) -> tuple[object, ...]:
    """Count, mean and longest in us; the last two are blank where there are none."""
    count, sum_ns, longest_ns = triple
    return (count, f"{sum_ns / count / 1e3:.6g}", f"{longest_ns / 1e3:.6g}") if count else (0, None, None)


def subinterval_header(kind: RollupType, used: Collection[str]) -> str:
    """The first line of <rollup type>/<instance>.csv. `used`: categories that have columns."""
    metrics = [metric.name for metric in metrics_of(used)]
    return lines([[*names(SUBINTERVAL), *attribute_columns(kind), *names(PRESENCE, PARAMETER_COLUMNS), *metrics]])


def summary_header(kind: RollupType, used: Collection[str]) -> str:
    """The first line of summary.<rollup type>.csv."""
    metrics = [metric.name for metric in metrics_of(used)]
    start = [*names(SUMMARY), *attribute_columns(kind), *names(VERDICT, PRESENCE, PARAMETER_COLUMNS)]
    return lines([[*start, *metrics, *names(HALF_WIDTHS)]])


class InstanceCells:
    """The parts of rows that never change: type, instance and its attributes."""

    def __init__(self, rollups: Rollups) -> None:
        by = {kind.name: kind.by for kind in rollups.types}
        self.cells = [cells([row.type, row.name, *_attributes(by[row.type], row)]) for row in rollups.rows]


def _attributes(by: Sequence[str], row: RollupInstance) -> list[str]:
    return [value for name, value in zip(by, row.values, strict=True) if name != ALL]


def setting_cells(settings: Settings) -> list[str]:
    """The parameters in force, a text per row."""
    return [cells(row) for row in zip(settings.iops, *settings.columns.values(), strict=True)]


def presence_cells(presence: Presence) -> list[str]:
    """Hosts and workload instances, a text per row."""
    columns = zip(presence.hosts_in.tolist(), presence.hosts_of.tolist(), presence.instances.tolist(), strict=True)
    return [f"{here},{of},{instances}" for here, of, instances in columns]


def metric_cells(figures: Figures, used: Collection[str]) -> list[str]:
    """The metrics of the used categories, a text per row. Blocks with the same values are made once: few steps use all
    kinds of I/O."""
    made: dict[object, list[str]] = {}
    texts = []
    for category, metrics in BLOCKS:
        if category not in used:
            continue
        key = (figures.kinds(category), len(metrics)) if category else metrics[0].name  # flushes have fewer
        if key not in made:
            made[key] = number_cells([(metric.precision.value, value(figures, metric)) for metric in metrics])
        texts.append(made[key])
    return [",".join(parts) for parts in zip(*texts, strict=True)]


def subinterval_rows(
    record: SubintervalRecord, instances: InstanceCells, settings: Sequence[str], used: Collection[str]
) -> list[str]:
    """One subinterval as a line for each row, not in a measurement yet. `settings`: setting_cells of its settings."""
    merged = record.interval.merged
    start = f"{record.interval.subinterval},0,{utc(record.start_utc_ns)}"
    lengths = number_cells([("%.9g", merged.presence.length_s)])
    metrics = metric_cells(record.figures, used)
    parts = zip(lengths, instances.cells, presence_cells(merged.presence), settings, metrics, strict=True)
    return [
        f"{start},{length},{record.phase},{instance},{present},{setting},{metric}\n"
        for length, instance, present, setting, metric in parts
    ]


def measured_flags(rows: Iterable[bytes], subintervals: Collection[int]) -> list[int]:
    """Where `in_measurement`, one byte, stands in the rows of these subintervals: offsets in a file that has just
    these lines, the header first."""
    places, offset = [], 0
    for line in rows:
        number, _, _ = line.partition(b",")
        if offset and int(number) in subintervals:
            places.append(offset + len(number) + 1)
        offset += len(line)
    return places


def summary_rows(
    number: int, name: str, record: SummaryRecord, instances: InstanceCells, used: Collection[str]
) -> list[str]:
    """One step as a line for each row."""
    start = cells([number, name])
    size = len(instances.cells)
    measurement, validity = record.measurement, record.validity
    window = _window_cells(record, size)
    if measurement is None or record.figures is None:
        presence = ["," * (len(PRESENCE) - 1)] * size
        metrics = ["," * (len(metrics_of(used)) + len(HALF_WIDTHS) - 1)] * size
    else:
        presence = presence_cells(measurement.merged.presence)
        metrics = _measured_cells(measurement, record.figures, used)
    verdicts = [cells([*_verdicts(validity, row), "; ".join(map(str, validity.findings[row]))]) for row in range(size)]
    settings = setting_cells(record.settings)
    parts = zip(instances.cells, verdicts, window, presence, settings, metrics, strict=True)
    return [",".join((start, *part)) + "\n" for part in parts]


def narrow_header(loop: Iterable[str]) -> str:
    """The first line of summary.csv. `loop`: the parameters that the plan's steps loop over."""
    return lines([[*names(NARROW_KEYS), *loop, *names(NARROW)]])


def narrow_rows(
    run: str, number: int, name: str, loop: Sequence[Any], record: SummaryRecord, rows: Sequence[RollupInstance]
) -> str:
    """One step in summary.csv. `loop`: its values of the looped parameters, None where it has none."""
    validity = record.validity
    metrics = [",".join([""] * len(NARROW_METRICS))] * len(rows)
    if record.figures is not None:
        metrics = number_cells([(one.precision.value, value(record.figures, one)) for one in NARROW_METRICS])
    settings = ["" if text == MAX else text for text in record.settings.iops]
    start = cells([run, number, name, *loop])
    return "".join(
        f"{start},{cells([one.type, one.name, *_verdicts(validity, one.row), settings[one.row]])},{metrics[one.row]}\n"
        for one in rows
    )


def _verdicts(validity: Validity, row: int) -> list[Verdict]:
    return [validity.verdict(row), *(validity.scope_verdict(row, scope) for scope in Scope)]


def _window_cells(record: SummaryRecord, size: int) -> list[str]:
    """The measurement's subintervals, times and length; blank where there was none."""
    measurement = record.measurement
    ends = ("", "") if measurement is None else (measurement.first, measurement.last)
    times = [record.step_start_utc_ns, record.start_utc_ns, record.end_utc_ns]
    start = cells([*ends, *("" if ns is None else utc(ns) for ns in times)])
    lengths = number_cells([("%.9g", measurement.merged.presence.length_s)]) if measurement else [""] * size
    return [f"{start},{length}" for length in lengths]


def _measured_cells(measurement: Measurement, figures: Figures, used: Collection[str]) -> list[str]:
    shown = figures.has_response("overall")
    widths = number_cells(
        [
            ("%.7g", measurement.iops_half_width),
            ("%.7g", measurement.service_half_width_us),
            ("%.7g", np.where(shown, measurement.response_half_width_us, np.nan)),
            ("%.7g", measurement.service_p99.half_widths_us()),
            ("%.7g", np.where(shown, measurement.response_p99.half_widths_us(), np.nan)),
        ]
    )
    metrics = metric_cells(figures, used)
    return [f"{metric},{width}" for metric, width in zip(metrics, widths, strict=True)]
