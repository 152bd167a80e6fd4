"""Takes what test hosts read of themselves and of their disks from their results: the connector `host`.

Rule: all hosts together are one connector, computed at once, so that a thousand of them cost little more than ten. A
host's readings are counted from those of its subinterval before, by its own stamps; where one is missing, nothing of
the host has a rate. What a host sends that does not fit its elements costs that host.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.connector import ElementMetric
from ...protocol.errors import ProtocolError
from ...protocol.messages import MOST_ELEMENTS, ElementsFound, FindElements, HostReadings, Result
from ...protocol.payload import ArrayType, Facts
from ..hosts.controller_lag import Deadline
from ..hosts.driver import Driver, barrier
from ..rollup.arrays import Floats, Ints
from ..rollup.instances import Rollups
from .catalog import LONGEST_INSTANCE, Catalog, Values
from .connector_spec import ConnectorSpec
from .counter_rates import Rates, rates
from .element_figures import Connected, metric_name
from .errors import ConnectorFault
from .gathered import Gathered, GatherState, GatherTimesOf, HostsGathered, ReadingCounts
from .joined_luns import JoinedLuns
from .membership import Membership

NOTHING_YET: Final = -2  # in the place of a subinterval; -1 is the start of the step
NOBODY: Final = -1  # in the place of a host
NOT_READY: Final = "it was not read in time for its result"
CUT: Final = "its last subinterval was cut short"
NO_RESULT: Final = "its result is not in"
NEVER: Final = GatherTimesOf()
NOTHING_READ: Final = ReadingCounts()
Event = Callable[[str, str], None]  # text, host


@dataclass(frozen=True, slots=True, eq=False)
class _Host:
    """One host, and its elements."""

    spec: ConnectorSpec
    elements: ElementsFound
    joined: JoinedLuns


class _Places:
    """Where the readings of each host stand in the cells of all: (cells,) each.

    Elements that no host has any more, since it was connected again, keep their rows: their host is NOBODY.
    """

    def __init__(self, catalog: Catalog, hosts: Mapping[str, _Host]) -> None:
        self.layout = catalog.layout
        self.number = {host: place for place, host in enumerate(hosts)}
        self.of_host: dict[str, Ints] = {}  # the cells in the order in which that host sends them
        self.host = np.full(len(self.layout.is_counter), NOBODY, np.int64)  # its place among the hosts
        self.type = np.zeros_like(self.host)  # the place of its element type
        self.host_of_row = {name: np.full(len(table.rows), NOBODY, np.int64) for name, table in catalog.tables.items()}
        for place, (host, known) in enumerate(hosts.items()):
            parts = [np.zeros(0, np.int64)]
            for name, table in catalog.tables.items():
                first, _, columns = self.layout.tables[name]
                for instance in known.elements.instances.get(name, ()):
                    row = table.rows[known.spec.qualified(instance)]
                    self.host_of_row[name][row] = place
                    parts.append(first + row * columns + np.arange(columns))
            self.of_host[host] = np.concatenate(parts)
            self.host[self.of_host[host]] = place
        for number, (first, rows, columns) in enumerate(self.layout.tables.values()):
            self.type[first : first + rows * columns] = number

    def by_cell(self, by_host: NDArray[Any]) -> NDArray[Any]:
        """(hosts,) as (cells,); 0 or False where it is nobody's."""
        return np.append(by_host, np.zeros(1, by_host.dtype))[self.host]  # NOBODY is the last

    def by_type(self, by_host: NDArray[Any]) -> NDArray[Any]:
        """(hosts, element types) as (cells,), likewise."""
        return np.append(by_host, np.zeros((1, by_host.shape[1]), by_host.dtype), axis=0)[self.host, self.type]

    def by_row(self, by_host: NDArray[Any], element: str) -> NDArray[Any]:
        """(hosts,) as (instances,) of an element type, likewise."""
        return np.append(by_host, np.zeros(1, by_host.dtype))[self.host_of_row[element]]


class _Readings:
    """The readings of some subinterval of each host; nan, and NOTHING_YET, of hosts that have none."""

    def __init__(self, places: _Places) -> None:
        hosts, types = len(places.of_host), len(places.layout.tables)
        self.cells: Floats = np.full(len(places.host), np.nan)
        self.numbers = np.full(hosts, NOTHING_YET, np.int64)
        self.spans = np.zeros((hosts, 2), np.int64)  # start and end, by the host's clock
        self.stamps = np.zeros((hosts, types), np.int64)

    def put(self, place: int, cells: Ints, readings: HostReadings) -> None:
        """Of one host."""
        self.cells[cells] = np.frombuffer(readings.values.data, "<f8")
        self.numbers[place] = readings.subinterval
        self.spans[place] = readings.start_ns, readings.end_ns
        self.stamps[place] = readings.stamps

    def take_over(self, other: "_Readings", places: _Places) -> None:
        """Replace the readings of the hosts that have some in `other`."""
        newer = other.numbers != NOTHING_YET
        self.cells = np.where(places.by_cell(newer), other.cells, self.cells)
        self.numbers[newer], self.spans[newer] = other.numbers[newer], other.spans[newer]
        self.stamps[newer] = other.stamps[newer]


@dataclass(frozen=True, slots=True)
class Taken:
    """The readings that came with results."""

    gathered: HostsGathered | None  # None: no host has any elements
    late: tuple[Gathered, ...] = ()  # readings that were not ready for earlier results
    misfits: Mapping[str, str] = field(default_factory=dict)  # by host: why what it sent does not fit


class HostElements:
    """The elements of all hosts. State: what each host has; in a step, the newest readings of each."""

    def __init__(self, spec: ConnectorSpec, luns: Mapping[str, Sequence[str]], event: Event) -> None:
        """`luns`: by host, the paths that the run drives."""
        self.name = spec.name
        self._spec, self._luns, self._event = spec, luns, event
        self._asked: dict[str, Driver] = {}  # by host: the connection over which it was asked last
        self._hosts: dict[str, _Host] = {}
        self._catalog: Catalog | None = None  # once a host has answered
        self._places: _Places | None = None
        self._start_ns = self._length_ns = 0  # of the step's first subinterval, on the controller's clock
        self._newest: _Readings | None = None

    async def find(self, drivers: Collection[Driver], deadline: Deadline) -> None:
        """Ask the hosts that have a new connection what there is. One that does not answer in time is left out, as are
        those that are not among `drivers` any more."""
        asked = [
            driver
            for driver in drivers
            if self._asked.get(driver.name) is not driver and not driver.has_pending(FindElements)
        ]
        answers, failed = await barrier(asked, self._ask, deadline)
        for driver in asked:
            if not driver.has_pending(FindElements):  # else it is asked again, once it has answered
                self._asked[driver.name] = driver
            self._hosts.pop(driver.name, None)
            if driver in answers:
                self._take_elements(driver, answers[driver])
        for driver, why in failed.items():
            if driver.lost is None:  # else the run reports it
                self._not_there(driver.name, why)
        gone = self._hosts.keys() - {driver.name for driver in drivers}
        for host in gone:
            del self._hosts[host]
        if (asked or gone) and self._catalog is not None:
            self._places = _Places(self._catalog, self._hosts)

    async def _ask(self, driver: Driver) -> ElementsFound:
        """Raises HostLost, or CommandRefused."""
        (answer,) = await driver.request(FindElements, luns=tuple(self._luns.get(driver.name, ())))
        assert isinstance(answer, ElementsFound)
        return answer

    def _not_there(self, host: str, why: str) -> None:
        self._event(f"the connector {self.name} is not there: {why}", host)

    def _take_elements(self, driver: Driver, elements: ElementsFound) -> None:
        name, spec = driver.name, replace(self._spec, test_host=driver.name)
        try:
            if fault := _fault_of(spec, elements):
                raise ConnectorFault(fault)
            catalog = Catalog(elements.metrics, None)
        except ConnectorFault as error:
            driver.lose(f"protocol error: {error}")
            return
        if (many := sum(map(len, elements.instances.values()))) > MOST_ELEMENTS:
            self._not_there(name, f"it has {many:,} elements, more than {MOST_ELEMENTS:,}")
            return
        if self._catalog is None:
            self._catalog = catalog
        elif _metrics_of(catalog) != _metrics_of(self._catalog):
            self._not_there(name, "its metrics are not those of the other hosts")
            return
        for element, table in self._catalog.tables.items():
            for instance in elements.instances.get(element, ()):
                self._catalog.row(table, spec.qualified(instance))
        self._hosts[name] = _Host(spec, elements, JoinedLuns(spec, _qualified(spec, elements)))

    def connected(self, rollups: Rollups) -> Connected | None:
        """The connector in the steps of these rollups; None where no host has anything."""
        if self._catalog is None:
            return None
        joined = {name: one.joined for name, one in self._hosts.items()}
        hosts = {
            one.spec.qualified(instance): name
            for name, one in self._hosts.items()
            for instances in one.elements.instances.values()
            for instance in instances
        }
        return Connected(self.name, self._catalog, Membership(joined, rollups, hosts))

    @property
    def element_types(self) -> list[str]:
        """Those that some host has an element of."""
        return [] if self._catalog is None else sorted(name for name, one in self._catalog.tables.items() if one.rows)

    @property
    def metrics(self) -> frozenset[str]:
        """Their full names."""
        metrics = () if self._catalog is None else _metrics_of(self._catalog)
        return frozenset(metric_name(self.name, metric) for metric in metrics)

    def begin(self, start_ns: int, length_ns: int) -> None:
        """A step begins: the subintervals of the hosts do not continue those of the step before."""
        self._start_ns, self._length_ns = start_ns, length_ns
        self._newest = None if self._places is None else _Readings(self._places)

    def take(
        self, k: int, results: Mapping[str, Result], arrived_ns: Mapping[str, int], lost: Mapping[str, str]
    ) -> Taken:
        """The readings of subinterval `k`. `results`: those that are in, by host, and when they arrived; `lost`: why
        hosts are, by name."""
        places, before = self._places, self._newest
        if places is None or before is None:
            return Taken(None)
        now, late, misfits = _Readings(places), list[Gathered](), dict[str, str]()
        for host, result in results.items():
            try:
                late += self._put(host, result, now, arrived_ns[host])
            except ProtocolError as error:
                misfits[host] = str(error)
        gave = now.numbers == k
        continued = gave & (before.numbers == k - 1)
        metrics = rates(
            Values(np.where(places.by_cell(continued), before.cells, np.nan), places.layout),
            Values(now.cells, places.layout),
            places.by_type(np.where(continued[:, None], now.stamps - before.stamps, 0)) / 1e9,
        )
        seconds = np.where(continued, now.spans[:, 1] - before.spans[:, 1], 0) / 1e9
        counts, gathers = self._counts(places, metrics), list[Gathered]()
        for host, place in places.number.items():
            if gave[place]:
                result = results[host]
                times = self._times(k, now.spans[place].tolist(), result.start_ns + result.length_ns, arrived_ns[host])
                gathers.append(self._gathered(host, k, GatherState.GATHERED, times, "", seconds[place], counts[place]))
            elif host in lost:
                gathers.append(self._gathered(host, k, GatherState.LOST, why=lost[host]))
            else:
                why = NO_RESULT if host not in results else CUT if results[host].last else NOT_READY
                gathers.append(self._gathered(host, k, GatherState.NO_ANSWER, why=why))
        before.take_over(now, places)
        rows = {name: places.by_row(gave, name) for name in places.host_of_row}
        return Taken(HostsGathered(self._boundary_ns(k), tuple(gathers), metrics, rows), tuple(late), misfits)

    def take_late(self, host: str, result: Result, arrived_ns: int) -> Taken:
        """The readings of a result that came after its subinterval was closed: the next are counted from them."""
        if self._places is None or self._newest is None or host not in self._hosts:
            return Taken(None)
        now, k = _Readings(self._places), result.subinterval
        try:
            late = self._put(host, result, now, arrived_ns)
        except ProtocolError as error:
            return Taken(None, (), {host: str(error)})
        place = self._places.number[host]
        if now.numbers[place] == k:
            late.append(self._gathered(host, k, GatherState.LATE, GatherTimesOf(answered_ns=arrived_ns)))
            if k > self._newest.numbers[place]:
                self._newest.take_over(now, self._places)
        return Taken(None, tuple(late))

    def _gathered(
        self,
        host: str,
        k: int,
        state: GatherState,
        times: GatherTimesOf = NEVER,
        why: str = "",
        seconds: float = 0.0,
        counts: ReadingCounts = NOTHING_READ,
    ) -> Gathered:
        spec = self._hosts[host].spec
        return Gathered(spec, k, self._boundary_ns(k), state, times, why, float(seconds), counted=counts)

    def _times(self, k: int, span_ns: Sequence[int], end_ns: int, arrived_ns: int) -> GatherTimesOf:
        """`span_ns`: start and end of the readings, `end_ns`: that of the subinterval, both by the host's own clock."""
        after_ns = self._boundary_ns(k) - end_ns
        return GatherTimesOf(None, arrived_ns, span_ns[0] + after_ns, span_ns[1] + after_ns)

    def _put(self, host: str, result: Result, now: _Readings, arrived_ns: int) -> list[Gathered]:
        """Put a result's readings of its own subinterval into `now`, and those that were not ready for the results
        before among the newest; these are late gathers. Raises ProtocolError where they do not fit."""
        assert self._places is not None and self._newest is not None
        late = list[Gathered]()
        if host not in self._hosts:
            return late
        place, cells = self._places.number[host], self._places.of_host[host]
        for readings in result.readings:
            k = readings.subinterval
            _check(host, readings, result.subinterval, len(cells), len(self._places.layout.tables))
            if k == result.subinterval:
                now.put(place, cells, readings)
            elif k > self._newest.numbers[place]:
                self._newest.put(place, cells, readings)
                if k >= 0:
                    late.append(self._gathered(host, k, GatherState.LATE, GatherTimesOf(answered_ns=arrived_ns)))
        return late

    def _boundary_ns(self, k: int) -> int:
        """The end of a subinterval, on the controller's clock."""
        return self._start_ns + (k + 1) * self._length_ns

    def _counts(self, places: _Places, metrics: Rates) -> list[ReadingCounts]:
        """Of each host."""
        hosts = len(self._hosts)
        elements = np.zeros(hosts, np.int64)
        for name, of_row in places.host_of_row.items():
            elements += np.bincount(of_row[(metrics.tables[name].pers > 0).any(axis=1)], minlength=hosts)
        resets, wraps = (np.bincount(places.host[cells], minlength=hosts) for cells in (metrics.resets, metrics.wraps))
        return [ReadingCounts(*one) for one in np.stack([elements, resets, wraps], axis=1).tolist()]


def _metrics_of(catalog: Catalog) -> tuple[ElementMetric, ...]:
    """In the order in which a host sends their values."""
    return tuple(metric for table in catalog.tables.values() for metric in table.metrics)


def _check(host: str, readings: HostReadings, newest: int, cells: int, types: int) -> None:
    """Raises ProtocolError."""
    k, values = readings.subinterval, readings.values
    fault = ""
    if k > newest:
        fault = f"they came with the result of subinterval {newest}"
    elif values.type is not ArrayType.F64 or len(values) != cells:
        fault = f"it has {len(values)} values of type {values.type}, not {cells} of type {ArrayType.F64}"
    elif len(readings.stamps) != types:
        fault = f"it has {len(readings.stamps)} stamps, not {types}"
    elif not all(readings.start_ns <= stamp_ns <= readings.end_ns for stamp_ns in readings.stamps):
        fault = "a stamp is not between its start and its end"
    elif np.isinf(np.frombuffer(values.data, "<f8")).any():
        fault = "a value is infinite"
    if fault:
        raise ProtocolError(f"{host}: the readings of subinterval {k} do not fit: {fault}")


def _fault_of(spec: ConnectorSpec, elements: ElementsFound) -> str:
    """Why this cannot be what a host has; "": it can."""
    types = {metric.element for metric in elements.metrics}
    names = [name for names in elements.instances.values() for name in names]
    if unknown := elements.instances.keys() - types:
        return f"there are elements of types without metrics: {', '.join(sorted(unknown))}"
    if [metric.element for metric in elements.metrics] != sorted(
        (metric.element for metric in elements.metrics), key=[*dict.fromkeys(m.element for m in elements.metrics)].index
    ):
        return "the metrics of an element type are apart"
    if any(len({*names}) < len(names) for names in elements.instances.values()):
        return "an element is there twice"
    if not all(name and len(spec.qualified(name)) <= LONGEST_INSTANCE for name in names):
        return "the name of an element is empty, or too long"
    return ""


def _qualified(spec: ConnectorSpec, elements: ElementsFound) -> Facts:
    """Its facts, in which each element, also one that an attribute names, has its name in the run."""
    types = {metric.element for metric in elements.metrics}
    return Facts(
        fact._replace(
            instance=spec.qualified(fact.instance),
            value=spec.qualified(str(fact.value)) if fact.attribute in types else fact.value,
        )
        for fact in elements.facts
    )
