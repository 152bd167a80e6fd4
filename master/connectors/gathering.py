"""All connectors of a run: started together, gathered from in each step, and read by control at barrier 1.

Rule: a step never waits for a connector, but for one that control looks at, and for that one until its deadline.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..stats.metric_sample import MetricSample
from .element_figures import Connected, ElementIndex, Family, FamilyFigures, FamilyLayout, family_figures, metric_name
from .gathered import Gathered, GatherState
from .gatherer import Gatherer

BLANK: Final = MetricSample(0.0, 0.0)
KEPT: Final = 4  # subintervals whose gathers barrier 1 may still ask for
NOTHING_YET: Final = -2  # in the place of a subinterval; the first gather of a step is -1


@dataclass(frozen=True, slots=True)
class GatheredSubinterval:
    """The gathers of one subinterval, of all connectors, by title; those of a step that ended meanwhile are missing."""

    number: int
    by_title: Mapping[str, Gathered]


class Gathering:
    """Holds the connectors of a run, and the newest gathers of the step that runs."""

    def __init__(self, gatherers: Sequence[Gatherer], connected: Sequence[Connected]) -> None:
        """Both in the same order."""
        self.connected = tuple(connected)
        self.index = ElementIndex(connected)
        self._family_of = {
            metric_name(one.name, metric): (one.name, table.name)
            for one in connected
            for table in one.catalog.tables.values()
            for metric in table.metrics
        }
        self._gatherers = tuple(gatherers)
        self._tasks: list[asyncio.Task[None]] = []  # of the gatherers, in their order
        self._newest: dict[str, int] = {}  # by title: the subinterval of the newest gather that is over
        self._found: dict[int, dict[str, Gathered]] = {}  # by subinterval and title
        self._newest_figures: tuple[tuple[int, Family], FamilyFigures] | None = None
        self._news = asyncio.Event()
        self._report: Callable[[GatheredSubinterval], None] = lambda gathered: None

    def begin(
        self,
        start_ns: int,
        length_ns: int,
        report: Callable[[GatheredSubinterval], None],
        late: Callable[[Gathered], None],
    ) -> None:
        """Gather for the subintervals of a step that starts at `start_ns` on the controller's clock.

        `report` gets the gathers of a subinterval once all of them are over; `late` those that came after that.
        """
        self._found.clear()
        self._newest.clear()
        self._newest_figures = None
        self._report = report

        def take(gathered: Gathered) -> None:
            if gathered.state is GatherState.LATE:
                late(gathered)
                return
            of_subinterval = self._found.setdefault(gathered.subinterval, {})
            of_subinterval[gathered.spec.title] = gathered
            self._newest[gathered.spec.title] = gathered.subinterval
            if len(of_subinterval) == len(self._gatherers):
                report(GatheredSubinterval(gathered.subinterval, of_subinterval))
                self._found.pop(gathered.subinterval - KEPT, None)
            self._news.set()

        self._tasks = [asyncio.ensure_future(one.run(start_ns, length_ns, take)) for one in self._gatherers]
        for task in self._tasks:
            task.add_done_callback(lambda _: self._news.set())

    async def end(self) -> None:
        """The step is over: what is there of its last subintervals is reported. Raises what a `report` raised."""
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        for fault in ended:
            if isinstance(fault, Exception):
                raise fault
        for number, by_title in sorted(self._found.items()):
            if 0 < len(by_title) < len(self._gatherers):
                self._report(GatheredSubinterval(number, by_title))
        self._found.clear()

    async def wait(self, subinterval: int, names: Collection[str]) -> None:
        """Until the gathers of the connectors with these names are over for that subinterval; each has a deadline."""
        while any(
            one.name in names and self._newest.get(one.title, NOTHING_YET) < subinterval and not task.done()
            for one, task in zip(self.connected, self._tasks, strict=False)  # no task: the step is over
        ):
            self._news.clear()
            await self._news.wait()

    def sample(self, subinterval: int, metric: str, row: int) -> MetricSample:
        """A connector's metric of one rollup instance in a subinterval, by its full name; blank where a connector that
        has some of its elements gave no values."""
        family = self._family_of.get(metric)
        layout = None if family is None else self.index.families.get(family)
        if layout is None or row not in layout.rows:
            return BLANK
        figures = self._figures(subinterval, layout)
        place, column = layout.rows.index(row), self._columns(layout)[metric]
        return MetricSample(float(figures.amounts[place, column]), float(figures.pers[place, column]))

    def _figures(self, subinterval: int, layout: FamilyLayout) -> FamilyFigures:
        """Of all rollup rows; kept, since control reads the rows of a type one after the other."""
        key = subinterval, layout.family
        if self._newest_figures is None or self._newest_figures[0] != key:
            self._newest_figures = key, family_figures(layout, self._found.get(subinterval, {}))
        return self._newest_figures[1]

    def _columns(self, layout: FamilyLayout) -> dict[str, int]:
        return {metric_name(layout.family[0], one): place for place, one in enumerate(layout.metrics)}
