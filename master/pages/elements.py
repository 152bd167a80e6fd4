"""The readings of connectors in a step, as data of a page: each element beside the LUNs' service times.

Rule: a gather that failed leaves a gap in every line, and is listed; nothing stands for it. A line has all its points,
or the lowest and the highest of each stretch where they are many.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..connectors.connector_spec import ELEMENTS, HOST
from ..connectors.gathered import GatherState
from ..errors import PlanError
from ..output.connector_columns import COMBINED_ROW, EXTREMES
from ..output.connector_files import combined_file
from ..output.connector_sums import NEWEST, units_in, values_since
from ..results.connector_rows import TIMES_IN_US, is_busy, is_time
from ..results.saturation import Element, Level, Saturation, first_saturated
from ..stats.correlation import correlations
from ..text.metric_amounts import unit_by_suffix
from .element_table import ElementFile
from .growing_table import AddedRows, GrowingTable, number
from .instances import newest_row

Floats = NDArray[np.float64]

MOST_LINES: Final = 20
MOST_SUBINTERVALS: Final = 10_000_000  # of a step: more is damage
MOST_TIMES: Final = 8  # metrics that are drawn beside service times
MOST_POINTS: Final = 1200  # of a line
MOST_CORRELATIONS: Final = 300
MOST_MISSING: Final = 200  # gathers that are listed: the newest
_LEAST_SHARE: Final = 0.5  # of a level's subintervals, for an element to count there


@dataclass(frozen=True, slots=True)
class FailedGather:
    """A gather that gave no values."""

    subinterval: int
    connector: str
    host: str
    state: str
    why: str


@dataclass(frozen=True, slots=True)
class NewestFigure:
    """A metric of a rollup instance in the newest subinterval that has a row."""

    subinterval: int
    connector: str
    element: str
    attribute: str
    unit: str
    value: float


@dataclass(slots=True)
class Gathers:
    """gathers.csv: how many of each state, and those without values."""

    path: Path
    states: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)  # by connector and host
    missing: list[FailedGather] = field(default_factory=list)
    missing_total: int = 0
    _added: AddedRows = field(init=False)

    def __post_init__(self) -> None:
        self._added = AddedRows(self.path)

    def refresh(self) -> None:
        while rows := self._added.read():
            columns = self._added.places(("subinterval", "connector", "host", "state", "why"))
            for row in rows:
                number, connector, host, state, why = (row[place] for place in columns)
                self.states.setdefault((connector, host), Counter())[state] += 1
                if state != GatherState.GATHERED and number.lstrip("-").isdecimal():
                    self.missing_total += 1
                    self.missing = [
                        *self.missing[1 - MOST_MISSING :],
                        FailedGather(int(number), connector, host, state, why),
                    ]


@dataclass(slots=True)
class _HostTimes:
    """The times of one rollup instance that test hosts read, by metric and subinterval."""

    next: int = 0  # the first subinterval that was not read yet
    values: dict[str, dict[int, float]] = field(default_factory=dict)


class StepElements:
    """The files of one step that connectors made."""

    def __init__(self, step: Path, number: int) -> None:
        """`step`: its folder."""
        self._step = step
        self._tables: dict[Path, ElementFile] = {}
        self._combined: dict[Path, GrowingTable] = {}
        self._units: dict[str, str] = {}
        self._gathers = Gathers(step / "gathers.csv")
        self._sums = step.parent / "connectors.sqlite"
        self._number = number
        self._host_times: dict[tuple[str, str], _HostTimes] = {}  # by rollup type and instance

    def tables(self) -> list[ElementFile]:
        """Of each element type, with what was added. Raises PlanError."""
        for path in sorted((self._step / ELEMENTS).glob("*.csv")):
            self._tables.setdefault(path, ElementFile(path)).refresh()
        return [one for one in self._tables.values() if one.attributes]

    def element_types(self) -> list[tuple[str, str]]:
        """(connector, element type); no file is read."""
        found = [path.name.removesuffix(".csv").rpartition(".") for path in (self._step / ELEMENTS).glob("*.csv")]
        return sorted((connector, element) for connector, _, element in found)

    def newest(self, kind: str, instance: str, taken: Collection[str]) -> Iterator[NewestFigure]:
        """Of a rollup instance; blanks are left out. `taken`: as `combined_file` takes it. Raises PlanError."""
        of_hosts = lambda connector, metric: connector == HOST  # noqa: E731
        for figure in values_since(self._sums, self._number, NEWEST, (kind, instance), of_hosts)[0]:
            yield NewestFigure(figure.subinterval, HOST, figure.element, figure.attribute, figure.unit, figure.value)
        for connector, element in self.element_types():
            row = newest_row(combined_file(self._step, kind, instance, f"{connector}.{element}", taken))
            for attribute in [*row][len(COMBINED_ROW) :: 1 + len(EXTREMES)]:
                value, metric = number(row[attribute]), f"{connector}.{element}_{attribute}"
                if value is not None and row["subinterval"].isdecimal():
                    unit = self._unit(metric)
                    yield NewestFigure(int(row["subinterval"]), connector, element, attribute, unit, value)

    def _unit(self, metric: str) -> str:
        """As its connector declared it."""
        if metric not in self._units:
            self._units |= units_in(self._sums)
        return self._units.setdefault(metric, str(unit_by_suffix(metric)))

    def gathers(self) -> Gathers:
        """Raises PlanError."""
        self._gathers.refresh()
        return self._gathers

    def families(self) -> list[dict[str, Any]]:
        """The element types, with their metrics."""
        return [
            {
                "connector": table.connector,
                "element": table.element,
                "elements": len(table.places),
                "left_out_from": table.left_out_from,
                "metrics": [
                    {
                        "name": table.metric(name), "attribute": name, "unit": self._unit(table.metric(name)),
                        "is_busy": is_busy(name),
                    }
                    for name in table.attributes
                ],
            }
            for table in self.tables()
        ]  # fmt: skip

    def lines(self, metric: str) -> dict[str, Any]:
        """The elements with the highest values of a metric. Raises KeyError."""
        for table in self.tables():
            for name in table.attributes:
                if table.metric(name) == metric:
                    lines = list(_lines([(table, name)]))
                    return {"metric": metric, "elements": len(table.places), "lines": lines}
        raise KeyError(f"metric {metric}")

    def busiest(self) -> list[dict[str, Any]]:
        """The elements with the highest busy figures."""
        return list(_lines([(one, name) for one in self.tables() for name in one.attributes if is_busy(name)]))

    def times(self, instance: str, kind: str, taken: Collection[str]) -> list[dict[str, Any]]:
        """The times that connectors report of a rollup instance, in us. `taken`: as `combined_file` takes it."""
        lines = []
        for table in self.tables():
            wanted = [name for name in table.attributes if is_time(name)]
            if not wanted:
                continue
            path = combined_file(self._step, kind, instance, f"{table.connector}.{table.element}", taken)
            rows = self._combined.setdefault(path, GrowingTable(path, ("subinterval", *wanted)))
            rows.refresh()
            at = [int(text) for text in rows.columns["subinterval"] if text.isdecimal()]
            if len(at) != len(rows) or max(at, default=0) > MOST_SUBINTERVALS:
                raise PlanError(f"{path}: not read: a subinterval has no number")
            for name in wanted:
                values = np.full(max(at, default=-1) + 1, np.nan)
                values[at] = [np.nan if one is None else one for one in rows.numbers(name)]
                if np.isfinite(values).any():
                    lines.append({"metric": table.metric(name), **_points(values * TIMES_IN_US[unit_by_suffix(name)])})
        return [*lines, *self._times_of_hosts(kind, instance)][:MOST_TIMES]

    def _times_of_hosts(self, kind: str, instance: str) -> Iterator[dict[str, Any]]:
        """Those that test hosts read of themselves."""
        kept = self._host_times.setdefault((kind, instance), _HostTimes())
        figures, kept.next = values_since(
            self._sums, self._number, kept.next, (kind, instance), lambda name, metric: name == HOST and is_time(metric)
        )
        for figure in figures:
            if figure.subinterval <= MOST_SUBINTERVALS:
                kept.values.setdefault(figure.metric, {})[figure.subinterval] = figure.value
        for metric, by_subinterval in kept.values.items():
            values = np.full(max(by_subinterval) + 1, np.nan)
            values[[*by_subinterval]] = [*by_subinterval.values()]
            yield {"metric": metric, **_points(values * TIMES_IN_US[unit_by_suffix(metric)])}

    def correlated(self, service_us: Sequence[float | None]) -> tuple[list[dict[str, Any]], int]:
        """(of each metric and element its correlation with service times, the strongest first; how many there are).

        `service_us`: of each subinterval, None where the LUNs were not under load.
        """
        known = np.array([np.nan if one is None else one for one in service_us], np.float64)
        found = [row for table in self.tables() for name in table.attributes for row in _correlated(table, name, known)]
        found.sort(key=lambda one: (one["r"] is None, -abs(one["r"] or 0.0), one["metric"], one["element"]))
        return found[:MOST_CORRELATIONS], len(found)

    def busy(self, subintervals: Collection[int]) -> dict[Element, float]:
        """The mean busy figure over some subintervals, of each element that has it in half of them or more.

        Without those of the test hosts: their cores busy-wait, and their disks are "busy" with a single I/O in flight.
        """
        busy_of = {}
        for table in self.tables():
            if table.connector == HOST:
                continue
            rows = [one for one in subintervals if one < table.subintervals]
            for name in table.attributes if rows else ():
                if not is_busy(name):
                    continue
                values = table.values(name)[rows]
                counts, sums = np.isfinite(values).sum(axis=0), np.nansum(values, axis=0)
                for element, place in table.places.items():
                    if counts[place] >= max(_LEAST_SHARE * len(subintervals), 1):
                        busy_of[Element(table.metric(name), element)] = float(sums[place] / counts[place])
        return busy_of


def elements_answer(
    elements: StepElements,
    chosen: tuple[str, str],
    taken: Collection[str],
    service_us: Sequence[float | None],
    levels: Sequence[Level],
) -> dict[str, Any]:
    """All but the lines of single metrics. `chosen`: a rollup type and an instance of it."""
    rows, total = elements.correlated(service_us)
    gathers = elements.gathers()
    return {
        "by": chosen[0],
        "instance": chosen[1],
        "families": elements.families(),
        "times": elements.times(chosen[1], chosen[0], taken),
        "busiest": elements.busiest(),
        "correlations": rows,
        "correlations_total": total,
        "saturation": _saturation(first_saturated(levels)),
        "gathers": [
            {"connector": connector, "host": host, "states": dict(states)}
            for (connector, host), states in gathers.states.items()
        ],
        "missing": [
            {"subinterval": one.subinterval, "connector": one.connector, "host": one.host, "state": one.state,
             "why": one.why}
            for one in gathers.missing
        ],
        "missing_total": gathers.missing_total,
    }  # fmt: skip


def no_elements(by: str, instance: str) -> dict[str, Any]:
    """The same where a file cannot be read."""
    nothing: dict[str, list[Any]] = {
        name: [] for name in ("families", "times", "busiest", "correlations", "gathers", "missing")
    }
    totals = {"correlations_total": 0, "missing_total": 0}
    return {"by": by, "instance": instance, **nothing, **totals, "saturation": _saturation(Saturation(()))}


def _saturation(saturation: Saturation) -> dict[str, Any]:
    return {
        "sentence": saturation.sentence(),
        "levels": [{"name": one.name, "iops": one.iops, "service_us": one.service_us} for one in saturation.levels],
        "first": [
            {"level": one.level.name, "metric": one.element.metric, "element": one.element.name,
             "busy_percent": one.busy_percent, "rule": one.rule.value}
            for one in saturation.first[:MOST_LINES]
        ],
    }  # fmt: skip


def _correlated(table: ElementFile, name: str, service_us: Floats) -> Iterator[dict[str, Any]]:
    values = table.values(name)
    both = min(len(values), len(service_us))
    r, pairs = correlations(values[:both], service_us[:both])
    for element, place in table.places.items():
        yield {
            "metric": table.metric(name),
            "element": element,
            "participating": table.participating[place],
            "r": _number(r[place]),
            "n": int(pairs[place]),
        }


def _lines(metrics: Sequence[tuple[ElementFile, str]]) -> Iterator[dict[str, Any]]:
    """The elements with the highest means of these metrics, as lines."""
    means: list[tuple[float, int, int, str]] = []
    columns = [table.values(name) for table, name in metrics]
    for at, (table, _) in enumerate(metrics):
        counts, sums = np.isfinite(columns[at]).sum(axis=0), np.nansum(columns[at], axis=0)
        for element, place in table.places.items():
            if counts[place]:
                means.append((float(sums[place] / counts[place]), at, place, element))
    for mean, at, place, element in sorted(means, key=lambda one: -one[0])[:MOST_LINES]:
        table, name = metrics[at]
        metric = table.metric(name)
        yield {"metric": metric, "element": element, "mean": mean, **_points(columns[at][:, place])}


def _points(values: Floats) -> Mapping[str, list[Any]]:
    """`at`: subintervals; a None among the values is a gap."""
    at = shown_places(values)
    return {"at": at, "values": [_number(values[place]) for place in at]}


def shown_places(values: Floats, most: int = MOST_POINTS) -> list[int]:
    """The points of a line that are shown: all, or of each stretch the lowest and the highest, and one for a gap."""
    if len(values) <= most:
        return [*range(len(values))]
    size = -(-3 * len(values) // most)
    places = []
    for begin in range(0, len(values), size):
        stretch = values[begin : begin + size]
        known = np.flatnonzero(np.isfinite(stretch))
        kept = {begin + int(one) for one in np.flatnonzero(~np.isfinite(stretch))[:1]}
        if len(known):
            kept |= {begin + int(known[place(stretch[known])]) for place in (np.argmin, np.argmax)}
        places += sorted(kept)
    return places


def _number(value: float) -> float | None:
    return float(f"{value:.7g}") if np.isfinite(value) else None
