"""The files of a step that hold what connectors said.

Rule: they are beside the files of rollup instances, never in them: a connector that is slow, or ends, leaves those as
they are. Called by the writer's thread.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..connectors.element_figures import NOT_PARTICIPATING, Connected, ElementFigures, ElementIndex, figures_of
from ..connectors.gathered import Gathered
from ..connectors.gathering import GatheredSubinterval
from ..rollup.instances import Rollups
from .column import names
from .connector_columns import COMBINED_ROW, CONNECTOR_SUMMARY, ELEMENT_ROW, EXTREMES, GATHERS
from .connector_sums import ConnectorSums
from .csv_text import append, lines, make_folder, utc
from .file_names import stem

ELEMENTS: Final = "connectors"  # folder of the files of single elements
OTHERS: Final = "non_participating"  # folder of what belongs to no workload's LUN
Utc = Callable[[int], int]  # from the controller's clock to UTC, ns


class ConnectorFiles:
    """Writes the gathers of one step."""

    def __init__(
        self,
        step: Path,
        number: int,
        rollups: Rollups,
        connected: Sequence[Connected],
        sums: ConnectorSums,
        to_utc: Utc,
    ) -> None:
        self._folder = step
        self._number = number
        self._rollups = rollups
        self._connected = connected
        self._index = ElementIndex(connected)  # its own: the run's is used in another thread
        self._sums = sums
        self._to_utc = to_utc
        self._begun: set[Path] = set()
        self._rows = [0, *(one.row for kind in rollups.types if kind.csv for one in kind.instances if one.row)]
        self._stems = {stem(one.name) for one in rollups.rows}

    def add(self, gathered: GatheredSubinterval) -> None:
        """All gathers of one subinterval."""
        self._gathers(list(gathered.found.values()))
        if gathered.number < 0:
            return
        end = utc(self._to_utc(next(iter(gathered.found.values())).boundary_ns))
        found, k = gathered.found, gathered.number
        figures = [(row, one) for row in self._rows for one in figures_of(self._index, found, row)]
        figures += [(NOT_PARTICIPATING, one) for one in figures_of(self._index, found, NOT_PARTICIPATING)]
        for row, one in figures:
            if row != 0 or self._rollups.types[0].csv:
                self._append(self._file(row, one), _combined_header(one), [_combined_row(k, end, one)])
        self._elements(k, end, found)
        if figures:
            self._sums.add(self._number, k, figures)

    def late(self, found: Gathered) -> None:
        """A gather that came after its deadline."""
        self._gathers([found])

    def summary(self, name: str, first: int, last: int, set_aside: Collection[int]) -> str:
        """The rows of connectors.csv for one measurement."""
        of_window = last - first + 1 - len(set_aside)
        rows = []
        for one in self._sums.window(self._number, first, last, set_aside):
            kind, instance = (
                (OTHERS, "")
                if one.row == NOT_PARTICIPATING
                else (self._rollups.rows[one.row].type, self._rollups.rows[one.row].name)
            )
            values = map(_number, (one.value, one.least, one.most))
            rows.append([
                self._number, name, kind, instance, one.metric, one.unit, *values, one.subintervals,
                of_window - one.subintervals, one.elements,
            ])  # fmt: skip
        return lines(rows)

    def _gathers(self, found: Sequence[Gathered]) -> None:
        rows = [_gather_row(one, utc(self._to_utc(one.boundary_ns))) for one in found]
        self._append(self._folder / "gathers.csv", names(GATHERS), rows)

    def _elements(self, k: int, end: str, found: Mapping[str, Gathered]) -> None:
        for one in self._connected:
            gathered = found.get(one.title)
            if gathered is None or not gathered.has_values:
                continue
            for table in one.catalog.tables.values():
                ratios = gathered.ratios[table.name]
                others = set(one.membership.not_participating(table).tolist())
                rows = [
                    [k, end, gathered.spec.test_host, instance, int(place not in others), *map(_number, values)]
                    for place, (instance, values) in enumerate(
                        zip(table.instances, ratios.values.tolist(), strict=False)
                    )
                ]
                if rows:
                    file = self._folder / ELEMENTS / f"{one.name}.{table.name}.csv"
                    self._append(file, [*names(ELEMENT_ROW), *table.columns], rows)

    def _file(self, row: int, one: ElementFigures) -> Path:
        element = f"{one.connector}.{one.element}"
        if row == NOT_PARTICIPATING:
            return self._folder / OTHERS / f"{element}.csv"
        instance = self._rollups.rows[row]
        return combined_file(self._folder, instance.type, instance.name, element, self._stems)

    def _append(self, file: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        if file not in self._begun:
            make_folder(file.parent)
            append(file, lines([header]))
            self._begun.add(file)
        append(file, lines(rows))


def combined_file(step: Path, kind: str, instance: str, element: str, taken: Collection[str]) -> Path:
    """The file of an element type in a rollup instance. `element`: with its connector, `array.mp`; `taken`: the stems
    of all rollup instances of the step."""
    name = f"{stem(instance)}.{element}"
    if name in taken:  # another instance has that name, and its file
        name = f"{stem(instance)}%2E{element}"
    return step / stem(kind) / f"{name}.csv"


SUMMARY_HEADER: Final = lines([names(CONNECTOR_SUMMARY)])


def _combined_header(one: ElementFigures) -> list[str]:
    columns = [f"{metric.attribute}{end}" for metric in one.metrics for end in ("", *EXTREMES)]
    return [*names(COMBINED_ROW), *columns]


def _combined_row(k: int, end: str, one: ElementFigures) -> list[Any]:
    cells = np.stack([one.values, one.least, one.most], axis=1).ravel().tolist()
    return [k, end, one.elements, one.missing, *map(_number, cells)]


def _gather_row(one: Gathered, end: str) -> list[Any]:
    times = one.times
    after = [None if at is None else at - one.boundary_ns for at in (times.requested_ns, times.answered_ns)]
    skew = times.skew_ns(one.boundary_ns)
    elements = sum(int((ratios.pers > 0).any(axis=1).sum()) for ratios in one.ratios.values())
    return [
        one.subinterval, one.spec.name, one.spec.test_host, one.state, one.why, end,
        *map(_ms, (*after, skew, times.duration_ns)), one.stamps,
        f"{one.seconds:.6g}" if one.seconds else None,
        elements if one.has_values else None, sum(ratios.resets for ratios in one.ratios.values()),
        sum(ratios.wraps for ratios in one.ratios.values()), one.ignored.count, str(one.ignored),
    ]  # fmt: skip


def _ms(ns: int | None) -> str | None:
    return None if ns is None else f"{ns / 1e6:.3f}"


def _number(value: float) -> str | None:
    return None if value != value else f"{value:.7g}"
