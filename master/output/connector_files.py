"""The files of a step that hold what connectors said.

Rule: they are beside the files of rollup instances, never in them: a connector that is slow, or ends, leaves those as
they are. Called by the writer's thread.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..connectors.connector_spec import ELEMENTS, OTHERS
from ..connectors.element_figures import (
    NOT_PARTICIPATING,
    Connected,
    ElementIndex,
    Family,
    FamilyFigures,
    FamilyLayout,
    family_figures,
)
from ..connectors.gathered import Gathered
from ..connectors.gathering import GatheredSubinterval
from ..rollup.instances import Rollups
from .column import names
from .connector_columns import COMBINED_ROW, CONNECTOR_SUMMARY, ELEMENT_ROW, EXTREMES, GATHERS
from .connector_sums import ConnectorSums
from .csv_text import append, lines, make_folder, utc
from .file_names import stem

FLUSHED_EVERY: Final = 5  # subintervals: there may be many rollup instances, with a file for each element type
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
        self._catalogs = {one.title: one.catalog for one in connected}
        self._index = ElementIndex(connected)  # its own: the run's is used in another thread
        self._sums = sums
        self._to_utc = to_utc
        self._begun: set[Path] = set()
        self._files: dict[tuple[int, Family], Path] = {}  # of rollup instances
        self._waiting: dict[Path, list[str]] = {}  # rows that are not written yet
        self._rows = {NOT_PARTICIPATING, *(one.row for kind in rollups.types if kind.csv for one in kind.instances)}
        self._stems = {stem(one.name) for one in rollups.rows}

    def add(self, gathered: GatheredSubinterval) -> None:
        """All gathers of one subinterval."""
        self._gathers(list(gathered.by_title.values()))
        if gathered.number < 0:
            return
        end = utc(self._to_utc(next(iter(gathered.by_title.values())).boundary_ns))
        figures = [family_figures(layout, gathered.by_title) for layout in self._index.families.values()]
        for one in figures:
            self._combined(gathered.number, end, one)
            self._elements(gathered.number, end, one.layout, gathered.by_title)
        if figures:
            self._sums.add(self._number, gathered.number, figures)
        if gathered.number % FLUSHED_EVERY == FLUSHED_EVERY - 1:
            self.flush()

    def flush(self) -> None:
        """Write the rows of rollup instances that wait."""
        for file, rows in self._waiting.items():
            append(file, "".join(rows))
        self._waiting.clear()

    def late(self, found: Gathered) -> None:
        """A gather that came after its deadline."""
        self._gathers([found])

    def summary(self, name: str, first: int, last: int, set_aside: Collection[int]) -> str:
        """The rows of connectors.csv for one measurement; in any thread."""
        of_window = last - first + 1 - len(set_aside)
        rows = []
        for value in self._sums.window(self._number, first, last, set_aside):
            kind, instance = (
                (OTHERS, "")
                if value.row == NOT_PARTICIPATING
                else (self._rollups.rows[value.row].type, self._rollups.rows[value.row].name)
            )
            values = map(_number, (value.value, value.least, value.most))
            rows.append([
                self._number, name, kind, instance, value.metric, value.unit, *values, value.subintervals,
                of_window - value.subintervals, value.elements,
            ])  # fmt: skip
        return lines(rows)

    def _gathers(self, found: Sequence[Gathered]) -> None:
        rows = [_gather_row(one, utc(self._to_utc(one.boundary_ns))) for one in found]
        self._append(self._folder / "gathers.csv", names(GATHERS), rows)

    def _elements(self, k: int, end: str, layout: FamilyLayout, gathers: Mapping[str, Gathered]) -> None:
        """A row for each element of the connectors that gave values."""
        rows: list[list[Any]] = []
        others = layout.others
        for title, element, first, many, columns in layout.parts:
            gathered = gathers.get(title)
            if gathered is None or not gathered.has_values:
                continue
            values = gathered.rates.tables[element].values[:many]
            cells = np.full((len(values), len(layout.metrics)), np.nan)
            cells[:, columns] = values
            instances = self._catalogs[title].tables[element].instances
            rows += [
                [k, end, gathered.spec.test_host, instance, int(place not in others), *map(_number, of_one)]
                for place, instance, of_one in zip(count(first), instances, cells.tolist(), strict=False)
            ]
        header = [*names(ELEMENT_ROW), *(metric.attribute for metric in layout.metrics)]
        self._append(self._folder / ELEMENTS / f"{'.'.join(layout.family)}.csv", header, rows)

    def _combined(self, k: int, end: str, figures: FamilyFigures) -> None:
        """A row for each rollup instance that has files, and for those that do not participate."""
        layout = figures.layout
        cells = np.stack([figures.values, figures.least, figures.most], axis=2).reshape(len(layout.rows), -1).tolist()
        counts, missing = layout.counts.tolist(), figures.missing.tolist()
        for row, of_row, many, lacking in zip(layout.rows, cells, counts, missing, strict=True):
            if row in self._rows:
                file = self._file(row, layout)
                text = ",".join([str(k), end, str(many), str(lacking), *(_number(one) or "" for one in of_row)])
                self._waiting.setdefault(file, []).append(text + "\n")

    def _file(self, row: int, layout: FamilyLayout) -> Path:
        """The file, which has its header."""
        key = row, layout.family
        if key not in self._files:
            self._files[key] = path = self._path(row, ".".join(layout.family))
            columns = [f"{metric.attribute}{end}" for metric in layout.metrics for end in ("", *EXTREMES)]
            make_folder(path.parent)
            append(path, lines([[*names(COMBINED_ROW), *columns]]))
        return self._files[key]

    def _path(self, row: int, element: str) -> Path:
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


def _gather_row(gathered: Gathered, end: str) -> list[Any]:
    times = gathered.times
    after = [None if at is None else at - gathered.boundary_ns for at in (times.requested_ns, times.answered_ns)]
    skew = times.skew_ns(gathered.boundary_ns)
    elements = sum(int((ratios.pers > 0).any(axis=1).sum()) for ratios in gathered.rates.tables.values())
    return [
        gathered.subinterval, gathered.spec.name, gathered.spec.test_host, gathered.state, gathered.why, end,
        *map(_ms, (*after, skew, times.duration_ns)), gathered.stamps,
        f"{gathered.seconds:.6g}" if gathered.seconds else None,
        elements if gathered.has_values else None, gathered.rates.resets, gathered.rates.wraps,
        gathered.ignored.count, str(gathered.ignored),
    ]  # fmt: skip


def _ms(ns: int | None) -> str | None:
    return None if ns is None else f"{ns / 1e6:.3f}"


def _number(value: float) -> str | None:
    return None if value != value else f"{value:.7g}"
