"""All connectors of a run: started together, gathered from in each step, and read by control at barrier 1.

Rule: a step never waits for a connector, but for one that control looks at, and for that one until its deadline.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..stats.metric_sample import MetricSample
from .element_figures import Connected, ElementIndex, figures_of, metric_name
from .gathered import Gathered, GatherState
from .gatherer import Gatherer

BLANK: Final = MetricSample(0.0, 0.0)
KEPT: Final = 4  # subintervals whose gathers barrier 1 may still ask for


@dataclass(frozen=True, slots=True)
class GatheredSubinterval:
    """The gathers of one subinterval, of all connectors, by title; those of a step that ended meanwhile are missing."""

    number: int
    found: Mapping[str, Gathered]


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
        self._tasks: list[asyncio.Task[None]] = []
        self._found: dict[int, dict[str, Gathered]] = {}  # by subinterval and title
        self._news = asyncio.Event()
        self._report: Callable[[GatheredSubinterval], None] = lambda found: None

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
        self._report = report

        def take(found: Gathered) -> None:
            if found.state is GatherState.LATE:
                late(found)
                return
            of_subinterval = self._found.setdefault(found.subinterval, {})
            of_subinterval[found.spec.title] = found
            if len(of_subinterval) == len(self._gatherers):
                report(GatheredSubinterval(found.subinterval, of_subinterval))
                self._found.pop(found.subinterval - KEPT, None)
            self._news.set()

        self._tasks = [asyncio.ensure_future(one.run(start_ns, length_ns, take)) for one in self._gatherers]

    async def end(self) -> None:
        """The step is over: what is there of its last subintervals is reported."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        for number, found in sorted(self._found.items()):
            if 0 < len(found) < len(self._gatherers):
                self._report(GatheredSubinterval(number, found))
        self._found.clear()

    async def wait(self, subinterval: int, names: Collection[str]) -> None:
        """Until the gathers of the connectors with these names are over for that subinterval; each has a deadline."""
        wanted = {one.title for one in self.connected if one.name in names}
        while wanted - self._found.get(subinterval, {}).keys() and not all(task.done() for task in self._tasks):
            self._news.clear()
            await self._news.wait()

    def sample(self, subinterval: int, metric: str, row: int) -> MetricSample:
        """A connector's metric of one rollup instance in a subinterval, by its full name; blank where a connector that
        has some of its elements gave no values."""
        family = self._family_of.get(metric)
        for figures in figures_of(self.index, self._found.get(subinterval, {}), row, family) if family else ():
            for name, amount, per in zip(figures.metric_names(), figures.amounts, figures.pers, strict=True):
                if name == metric and per > 0:
                    return MetricSample(float(amount), float(per))
        return BLANK
