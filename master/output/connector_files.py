"""The files of a step that hold what connectors said.

Rule: they are beside the files of rollup instances, never in them: a connector that is slow, or ends, leaves those as
they are. What test hosts read of themselves has one file for each element type, and none for each rollup instance: a
thousand hosts would have ten thousand of them. Called by the writer's thread.
"""

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from ..connectors.connector_spec import ELEMENTS, HOST, OTHERS
from ..connectors.element_figures import (
    NOT_PARTICIPATING,
    Connected,
    ElementIndex,
    Family,
    FamilyFigures,
    FamilyLayout,
    family_figures,
)
from ..connectors.gathered import Gathered, HostsGathered
from ..connectors.gathering import GatheredSubinterval
from ..rollup.instances import Rollups
from .column import names
from .connector_columns import COMBINED_ROW, CONNECTOR_SUMMARY, ELEMENT_ROW, EXTREMES, GATHERS
from .connector_sums import ConnectorSums
from .csv_text import append, cells, lines, make_folder, number_cells, utc
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
        self._connected = {one.name: one for one in connected}
        self._summary_cells: dict[tuple[str, ...], str] = {}
        self._element_cells: dict[Family, tuple[FamilyLayout, list[str]]] = {}
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
        self._gathers(gathered.gathers)
        if gathered.number < 0:
            return
        end = utc(self._to_utc(next(iter(gathered.by_name.values())).boundary_ns))
        figures = [family_figures(layout, gathered.by_name) for layout in self._index.families.values()]
        for of_family in figures:
            connector = of_family.layout.family[0]
            if connector != HOST:
                self._combined(gathered.number, end, of_family)
            self._elements(gathered.number, end, of_family.layout, gathered.by_name.get(connector))
        if figures:
            self._sums.add(self._number, gathered.number, figures, self._rollups)
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
        begin = cells((self._number, name))
        rows = []
        for value in self._sums.window(self._number, first, last, set_aside):
            key = value.kind, value.instance, value.metric, value.unit
            if (named := self._summary_cells.get(key)) is None:
                named = self._summary_cells[key] = cells(key)
            figures = f"{_number(value.value) or ''},{_number(value.least) or ''},{_number(value.most) or ''}"
            missing = of_window - value.subintervals
            rows.append(f"{begin},{named},{figures},{value.subintervals},{missing},{value.elements}\n")
        return "".join(rows)

    def _gathers(self, found: Sequence[Gathered]) -> None:
        ends = {at: utc(self._to_utc(at)) for at in {one.boundary_ns for one in found}}
        rows = [_gather_row(one, ends[one.boundary_ns]) for one in found]
        self._append(self._folder / "gathers.csv", names(GATHERS), "".join(rows))

    def _elements(self, k: int, end: str, layout: FamilyLayout, gathered: Gathered | HostsGathered | None) -> None:
        """A row for each element that gave values."""
        if gathered is None or not gathered.has_values:
            return
        connector, element = layout.family
        values = gathered.rates.tables[element].values[: layout.elements]
        present = gathered.present(element, len(values))
        numbers = number_cells([("%.7g", values[:, place]) for place in range(len(layout.metrics))])
        begin = f"{k},{end},"
        rows = [
            f"{begin}{name},{cells_of}\n"
            for name, cells_of, is_there in zip(self._named(layout), numbers, present.tolist(), strict=False)
            if is_there
        ]
        header = [*names(ELEMENT_ROW), *(metric.attribute for metric in layout.metrics)]
        self._append(self._folder / ELEMENTS / f"{connector}.{element}.csv", header, "".join(rows))

    def _named(self, layout: FamilyLayout) -> Sequence[str]:
        """The cells of each element that stay the same: its host, its name, whether it participates."""
        known = self._element_cells.get(layout.family)
        if known is None or known[0] is not layout:
            connected, others = self._connected[layout.family[0]], layout.others
            instances, host_of = connected.catalog.tables[layout.family[1]].instances, connected.membership.host_of
            named = [cells((host_of.get(one, ""), one, int(row not in others))) for row, one in enumerate(instances)]
            known = self._element_cells[layout.family] = layout, named
        return known[1]

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

    def _append(self, file: Path, header: Sequence[str], text: str) -> None:
        if file not in self._begun:
            make_folder(file.parent)
            append(file, lines([header]))
            self._begun.add(file)
        append(file, text)


def combined_file(step: Path, kind: str, instance: str, element: str, taken: Collection[str]) -> Path:
    """The file of an element type in a rollup instance. `element`: with its connector, `array.mp`; `taken`: the stems
    of all rollup instances of the step."""
    name = f"{stem(instance)}.{element}"
    if name in taken:  # another instance has that name, and its file
        name = f"{stem(instance)}%2E{element}"
    return step / stem(kind) / f"{name}.csv"


SUMMARY_HEADER: Final = lines([names(CONNECTOR_SUMMARY)])


def _gather_row(gathered: Gathered, end: str) -> str:
    times, counted, boundary_ns = gathered.times, gathered.counted, gathered.boundary_ns
    after = [None if at is None else at - boundary_ns for at in (times.requested_ns, times.answered_ns)]
    figures = ",".join(map(_ms, (*after, times.skew_ns(boundary_ns), times.duration_ns)))
    seconds = f"{gathered.seconds:.6g}" if gathered.seconds else ""
    counts = f"{counted.elements if gathered.has_values else ''},{counted.resets},{counted.wraps}"
    named = _cells_of(gathered.spec.name, gathered.spec.test_host, str(gathered.state), gathered.why)
    ignored = cells((gathered.ignored.count, str(gathered.ignored))) if gathered.ignored.count else "0,"
    return f"{gathered.subinterval},{named},{end},{figures},{gathered.stamps},{seconds},{counts},{ignored}\n"


@lru_cache(maxsize=10_000)
def _cells_of(*texts: str) -> str:
    """Of a gather: a thousand hosts have the same in every subinterval."""
    return cells(texts)


def _ms(ns: int | None) -> str:
    return "" if ns is None else f"{ns / 1e6:.3f}"


def _number(value: float) -> str | None:
    return None if value != value else f"{value:.7g}"
