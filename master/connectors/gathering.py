"""All connectors of a run: started together, gathered from in each step, and read by control at barrier 1.

Rule: a step never waits for a connector, but for one that control looks at, and for that one until its deadline.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...protocol.messages import Result
from ..stats.metric_sample import MetricSample
from .element_figures import Connected, ElementIndex, Family, FamilyFigures, FamilyLayout, family_figures, metric_name
from .gathered import Gathered, GatherState, HostsGathered
from .gatherer import Gatherer
from .host_readings import HostElements, Taken

BLANK: Final = MetricSample(0.0, 0.0)
KEPT: Final = 4  # subintervals whose gathers barrier 1 may still ask for
NOTHING_YET: Final = -2  # in the place of a subinterval; the first gather of a step is -1


@dataclass(frozen=True, slots=True)
class GatheredSubinterval:
    """The gathers of one subinterval, by connector; those of a step that ended meanwhile are missing."""

    number: int
    by_name: Mapping[str, Gathered | HostsGathered]

    @property
    def gathers(self) -> list[Gathered]:
        """One by one; those of test hosts are one for each."""
        return [gather for one in self.by_name.values() for gather in one.gathers]


class Gathering:
    """Holds the connectors of a run, and the newest gathers of the step that runs."""

    def __init__(
        self, gatherers: Sequence[Gatherer], connected: Sequence[Connected], hosts: HostElements | None = None
    ) -> None:
        """Both in the same order; `connected` has the test hosts' last, if they have any."""
        self.connected = tuple(connected)
        self._hosts = hosts
        self.index = ElementIndex(connected)
        self._family_of = {
            metric_name(one.name, metric): (one.name, table.name)
            for one in connected
            for table in one.catalog.tables.values()
            for metric in table.metrics
        }
        self._gatherers = tuple(gatherers)
        self._tasks: list[asyncio.Task[None]] = []  # of the gatherers, in their order
        self._newest: dict[str, int] = {}  # by connector: the subinterval of the newest gather that is over
        self._found: dict[int, dict[str, Gathered | HostsGathered]] = {}  # by subinterval and connector
        self._newest_figures: tuple[tuple[int, Family], FamilyFigures] | None = None
        self._news = asyncio.Event()
        self._report: Callable[[GatheredSubinterval], None] = lambda gathered: None
        self._report_late: Callable[[Gathered], None] = lambda gathered: None

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
        self._report, self._report_late = report, late
        self._tasks = [asyncio.ensure_future(one.run(start_ns, length_ns, self._take)) for one in self._gatherers]
        for task in self._tasks:
            task.add_done_callback(lambda _: self._news.set())
        if self._hosts is not None:
            self._hosts.begin(start_ns, length_ns)

    def take_results(
        self, subinterval: int, results: Mapping[str, Result], arrived_ns: Mapping[str, int], lost: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Take the readings that came with a subinterval's results; see HostElements.take.

        Returns, by host, why what it sent does not fit.
        """
        if self._hosts is None:
            return {}
        taken = self._hosts.take(subinterval, results, arrived_ns, lost)
        if taken.gathered is not None:
            self._add(subinterval, self._hosts.name, taken.gathered)
        return self._rest(taken)

    def take_late(self, host: str, result: Result, arrived_ns: int) -> Mapping[str, str]:
        """Likewise, of one result that came after its subinterval was decided on."""
        return {} if self._hosts is None else self._rest(self._hosts.take_late(host, result, arrived_ns))

    def _rest(self, taken: Taken) -> Mapping[str, str]:
        for late in taken.late:
            self._report_late(late)
        return taken.misfits

    def _take(self, gathered: Gathered) -> None:
        if gathered.state is GatherState.LATE:
            self._report_late(gathered)
        else:
            self._add(gathered.subinterval, gathered.spec.name, gathered)

    def _add(self, subinterval: int, connector: str, gathered: Gathered | HostsGathered) -> None:
        of_subinterval = self._found.setdefault(subinterval, {})
        of_subinterval[connector] = gathered
        self._newest[connector] = subinterval
        if len(of_subinterval) == self._expected(subinterval):
            self._report(GatheredSubinterval(subinterval, of_subinterval))
            self._found.pop(subinterval - KEPT, None)
        self._news.set()

    def _expected(self, subinterval: int) -> int:
        """How many gather for it. What the hosts read at the start of a step comes with their first results."""
        return len(self._gatherers) if subinterval < 0 else len(self.connected)

    async def end(self) -> None:
        """The step is over: what is there of its last subintervals is reported. Raises what a `report` raised."""
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        for fault in ended:
            if isinstance(fault, Exception):
                raise fault
        for number, by_name in sorted(self._found.items()):
            if 0 < len(by_name) < self._expected(number):
                self._report(GatheredSubinterval(number, by_name))
        self._found.clear()

    async def wait(self, subinterval: int, names: Collection[str]) -> None:
        """Until the gathers of the connectors with these names are over for that subinterval; each has a deadline."""
        while any(
            one.name in names and self._newest.get(one.name, NOTHING_YET) < subinterval and not task.done()
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
