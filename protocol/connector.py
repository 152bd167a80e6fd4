"""The link to a connector: a program that reports what an array, a switch or a host says, as four-tuples.

    controller                            connector
                       <-                 connector_hello    once, at its start
    read_config        ->  <-             connector_config   once: what there is, and which metrics it has
    gather             ->  <-             readings           once before a step, and once in each subinterval
    (end of input)     ->                                    it exits

Rule: as for messages.py, messages are data; every command may be answered with `declined` instead. A fact is a
four-tuple: element type, instance, attribute, value; its unit is declared once, with the attribute. Whoever writes a
connector in Python makes a class with the two methods of Connector; any other program writes these lines.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Protocol, Union

from .older_python import StrEnum
from .payload import Fact, Facts, Instant, Within

CONNECTOR_PROTOCOL: Final = 1
OPTIONAL: Final[Mapping[str, Any]] = {"optional": True}  # of a field that a line may leave out


class Unit(StrEnum):
    """The units that readings can have."""

    PERCENT = "%"
    US = "us"
    MS = "ms"
    S = "s"
    PER_S = "1/s"
    MIB_PER_S = "MiB/s"
    KIB_PER_S = "KiB/s"
    BYTES_PER_S = "B/s"
    BYTES = "B"
    KIB = "KiB"
    MIB = "MiB"
    GIB = "GiB"
    CELSIUS = "C"
    WATT = "W"
    VOLT = "V"
    RPM = "rpm"
    MHZ = "MHz"
    IOS = "I/Os"
    COUNT = "count"  # a number of anything else
    NONE = ""  # a number without a unit


class ReadingKind(StrEnum):
    """The kinds of readings."""

    GAUGE = "gauge"  # the value at the time of the reading
    COUNTER = "counter"  # a sum since some start; its increase is the metric


class Combine(StrEnum):
    """How the readings of several elements become one figure."""

    MEAN = "mean"
    SUM = "sum"
    MAX = "max"


@dataclass(frozen=True)
class ElementMetric:
    """A metric that elements of one type have.

    The metric of a gauge is its value. The metric of a counter is `scale` x its increase per second, or, with `per`,
    per unit of the increase of that other counter of the element: the mean time of an I/O is the increase of the sum of
    their times per I/O. The unit is that of the metric.
    """

    element: str  # the element type: "port"
    attribute: str  # "busy_percent"; element and attribute are the metric's name: `array.port_busy_percent`
    unit: Unit
    kind: ReadingKind = field(default=ReadingKind.GAUGE, metadata=OPTIONAL)
    combine: Combine = field(default=Combine.MEAN, metadata=OPTIONAL)  # of no use with `per`: it is a ratio of sums
    scale: float = field(default=1.0, metadata=OPTIONAL)
    per: str = field(default="", metadata=OPTIONAL)  # attribute of another counter
    bits: Annotated[int, Within(0, 64)] = field(default=0, metadata=OPTIONAL)  # the counter wraps at 2**bits; 0: never
    meaning: str = field(default="", metadata=OPTIONAL)


# The controller's commands.


@dataclass(frozen=True)
class ReadConfig:
    """Send what holds for the whole run. Answer: connector_config, or declined."""

    id: int
    luns: tuple[str, ...] = ()  # paths on this machine that the run drives, for a connector that runs on a test host


@dataclass(frozen=True)
class Gather:
    """Read the present values. Answer: readings, or declined."""

    id: int


# The connector's messages.


@dataclass(frozen=True)
class ConnectorHello:
    """The first message."""

    protocol: int
    name: str  # of the program
    version: str = field(default="", metadata=OPTIONAL)


@dataclass(frozen=True)
class ConnectorConfig:
    """`facts` are attributes of elements. Those of the element that is a LUN (its serial or wwn says which) become
    attributes of the LUN. An attribute that has several values has a fact for each."""

    re: int
    metrics: tuple[ElementMetric, ...]
    facts: Facts = field(default=Facts(), metadata=OPTIONAL)


@dataclass(frozen=True)
class Readings:
    """Stamps are nanoseconds of any clock of the connector's that does not jump, always the same; 0: it has none."""

    re: int
    facts: Facts  # of gauges and counters: numbers
    start_ns: Instant = field(default=0, metadata=OPTIONAL)  # before the first value was read
    end_ns: Instant = field(default=0, metadata=OPTIONAL)  # after the last one
    stamps: dict[str, Instant] = field(default_factory=dict, metadata=OPTIONAL)  # element type: when its were counted


@dataclass(frozen=True)
class Declined:
    """It cannot do this now; the next command may succeed."""

    re: int
    reason: str


@dataclass(frozen=True)
class ConnectorNotice:
    """Something that a person should know, at any time: an event of the run."""

    text: str


ConnectorCommand = Union[ReadConfig, Gather]
ConnectorMessage = Union[ConnectorHello, ConnectorConfig, Readings, Declined, ConnectorNotice]

CONNECTOR_COMMANDS: Final[dict[str, type[ConnectorCommand]]] = {"read_config": ReadConfig, "gather": Gather}
CONNECTOR_MESSAGES: Final[dict[str, type[ConnectorMessage]]] = {
    "connector_hello": ConnectorHello,
    "connector_config": ConnectorConfig,
    "readings": Readings,
    "declined": Declined,
    "connector_notice": ConnectorNotice,
}


# A connector in Python.


class Cannot(Exception):
    """Raised by a connector that cannot do this now; its text is the reason that users read."""


class Connector(Protocol):
    """The methods that make a class a connector; it is made with the plan's `options` as keyword arguments."""

    def config(self, luns: Sequence[str]) -> "tuple[Iterable[ElementMetric], Iterable[Fact]]":
        """The metrics, and the attributes of elements. `luns`: see ReadConfig. Raises Cannot."""
        ...

    def gather(self) -> "Union[Iterable[Fact], Readings]":
        """The present values; Readings where it has stamps of its own (`re` is filled in). Raises Cannot."""
        ...
