"""Whether a connector keeps to its protocol: what is wrong with its config and its gathers, and what it has.

Rule: pure; messages and times are handed in. A *deviation* is something by which a run would have no values, or wrong
ones; a *remark* is something that its author may want to know. Of several of one kind the first is shown, with how many
there were.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from typing import Final

from ...protocol.connector import ConnectorConfig, ConnectorHello, ElementMetric, ReadingKind, Readings
from ...protocol.payload import Attribute, Fact
from .catalog import LONGEST_INSTANCE, MOST_INSTANCES, metric_faults
from .connector_spec import USUAL_JOIN
from .gathered import StampFault
from .stamp_checks import ConnectorClock

JOINS: Final = (*USUAL_JOIN, "path")  # attributes of LUNs that a plan usually joins by
_SHOWN: Final = 3  # examples of one thing
_STAMP_WORDS: Final = {
    StampFault.ABSENT: "it sends no stamps (start_ns, end_ns): rates are by the controller's clock, and less true",
    StampFault.BACKWARDS: "stamps run backwards: the end before the start, or before that of an earlier gather",
    StampFault.AHEAD: "the stamp of an element type is after the end of its gather",
    StampFault.TOO_LONG: "from start_ns to end_ns is longer than from the request to the answer",
    StampFault.JUMPED: "its clock was stepped, or is not as fast as time: use one like CLOCK_MONOTONIC",
}


class Deviation(StrEnum):
    """The ways in which a connector may break the protocol."""

    NOT_STARTED = "not started"
    NO_HELLO = "no hello"
    NOT_FLUSHED = "not flushed"
    NO_CONFIG = "no config"
    SILENT = "silent"
    DECLINED = "declined"
    UNREADABLE = "unreadable"  # what it sent is no message, or not the one that was due
    FLOOD = "flood"
    ENDED = "ended"  # before the end of its input
    STAYED = "stayed"  # after it
    EXIT_STATUS = "exit status"
    METRIC = "metric"
    UNDECLARED = "undeclared"
    TEXT = "text"
    DUPLICATE = "duplicate"
    INSTANCE = "instance"
    COUNTER = "counter"
    STAMPS = "stamps"


@dataclass(frozen=True, slots=True)
class Seen:
    """The answer to one gather, and when it was requested and arrived on our clock."""

    readings: Readings
    sent_ns: int
    arrived_ns: int


@dataclass(slots=True)
class Conformance:
    """Collects what was seen of one connector. Its methods are called in the order in which things happen."""

    deviations: dict[tuple[Deviation, str], list[str]] = field(default_factory=dict)  # by kind and what it is about
    remarks: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    hello: ConnectorHello | None = None
    config: ConnectorConfig | None = None
    seen: list[Seen] = field(default_factory=list)
    _clock: ConnectorClock = field(default_factory=ConnectorClock)
    _values: dict[tuple[str, str, str], Attribute] = field(default_factory=dict)  # of the newest gather

    @property
    def conforms(self) -> bool:
        return not self.deviations

    def deviates(self, kind: Deviation, text: str, about: str = "") -> None:
        """Note a deviation. `about`: those of one kind about different things are shown apart."""
        self.deviations.setdefault((kind, about), []).append(text)

    def configured(self, config: ConnectorConfig) -> None:
        """Its config has come."""
        self.config = config
        for text in metric_faults(config.metrics):
            self.deviates(Deviation.METRIC, text, text)
        if not config.metrics:
            self.deviates(Deviation.METRIC, "it declares no metric")
        for element, instance, attribute, _ in _again(config.facts):
            self.deviates(
                Deviation.DUPLICATE, f"config: {element} {instance} {attribute} has one value twice", "config"
            )

    def gathered(self, seen: Seen) -> None:
        """A gather was answered."""
        before = self.seen[-1] if self.seen else None
        self.seen.append(seen)
        where = f"gather {len(self.seen)}"
        self._check_stamps(where, seen, before)
        metrics = {(one.element, one.attribute): one for one in self.config.metrics} if self.config else {}
        values: dict[tuple[str, str, str], Attribute] = {}
        for element, instance, attribute, value in seen.readings.facts:
            key, what = (element, instance, attribute), f"{element} {_quoted(instance)} {attribute}"
            metric = metrics.get((element, attribute))
            if metric is None:
                text = f"{where}: {element} {attribute} is not among the metrics of its config"
                self.deviates(Deviation.UNDECLARED, text, f"{element} {attribute}")
                continue
            if not instance or len(instance) > LONGEST_INSTANCE:
                text = f"{where}: an instance of {element} has a name of {len(instance)} characters"
                self.deviates(Deviation.INSTANCE, f"{text}; use 1 to {LONGEST_INSTANCE}")
                continue
            if isinstance(value, str):
                text = f"{where}: {what} is the text {_quoted(value)}; send a number, or leave it out"
                self.deviates(Deviation.TEXT, text)
                continue
            if key in values:
                text = f"{where}: {what} is there twice, as {values[key]} and as {value}"
                self.deviates(Deviation.DUPLICATE, text)
                continue
            values[key] = value
            self._check_counter(where, what, metric, value, self._values.get(key))
        if len(instances := {key[:2] for key in values}) > MOST_INSTANCES:
            text = f"{where}: {len(instances):,} elements; a run takes {MOST_INSTANCES:,}"
            self.deviates(Deviation.INSTANCE, text, "count")
        self._values |= values

    def finished(self, interval_s: float) -> None:
        """All gathers are over: what can be said only then."""
        if self.config is None or not self.seen:
            return
        read = {(element, attribute) for element, _, attribute, _ in _facts(self.seen)}
        if never := [one for one in self.config.metrics if (one.element, one.attribute) not in read]:
            names = _some([f"{one.element} {one.attribute}" for one in never])
            self.remarks.append(f"declared, and never reported: {names}")
        took_s = median(_took_s(one) for one in self.seen)
        if took_s > interval_s / 2:
            self.remarks.append(
                f"a gather takes {took_s:.3g} s (median): with subintervals below {2 * took_s:.2g} s it misses some"
            )

    def _check_stamps(self, where: str, seen: Seen, before: Seen | None) -> None:
        earlier = None if before is None else before.readings
        fault = self._clock.fault(seen.readings, earlier, seen.sent_ns, seen.arrived_ns)
        if fault is StampFault.ABSENT:
            if _STAMP_WORDS[fault] not in self.remarks:
                self.remarks.append(_STAMP_WORDS[fault])
        elif fault is not StampFault.NONE:
            self.deviates(Deviation.STAMPS, f"{where}: {_STAMP_WORDS[fault]}", fault)

    def _check_counter(
        self, where: str, what: str, metric: ElementMetric, value: float, before: Attribute | None
    ) -> None:
        if metric.kind is not ReadingKind.COUNTER or before is None or isinstance(before, str) or value >= before:
            return
        if metric.bits and value - before + 2**metric.bits < 2 ** (metric.bits - 1):
            return  # it wrapped
        remedy = "" if metric.bits else "; if it wraps, declare at how many `bits`; if it is no counter, use kind gauge"
        self.deviates(Deviation.COUNTER, f"{where}: {what} fell from {before} to {value}{remedy}")

    def lines(self) -> Iterator[str]:
        """The report, as users read it."""
        yield from self._summary()
        for text in self.notices[:_SHOWN]:
            yield f"notice            {_quoted(text)}"
        for text in self.remarks:
            yield f"remark            {text}"
        for (kind, _), texts in self.deviations.items():
            more = f" (and {len(texts) - 1} more like it)" if len(texts) > 1 else ""
            yield f"deviation         {kind}: {texts[0]}{more}"
        yield "conforms" if self.conforms else f"does not conform: {_counted(len(self.deviations), 'deviation')}"

    def _summary(self) -> Iterator[str]:
        if self.hello is not None:
            yield f"program           {' '.join(filter(None, (self.hello.name, self.hello.version)))}"
        if self.config is None:
            return
        instances: dict[str, set[str]] = {}
        for element, instance, _, _ in _facts(self.seen):
            instances.setdefault(element, set()).add(instance)
        for element in dict.fromkeys(metric.element for metric in self.config.metrics):
            of_element = [metric for metric in self.config.metrics if metric.element == element]
            there = instances.get(element, set())
            names = f": {_some(sorted(there))}" if there else ""
            yield f"element type      {element}, {_counted(len(there), 'instance')}{names}"
            for metric in of_element:
                yield f"  {metric.attribute:<24} {metric.unit or '-':<6} {_how(metric)}"
        yield from joins(self.config)
        if self.seen:
            took = sorted(map(_took_s, self.seen))
            facts = max(len(seen.readings.facts) for seen in self.seen)
            span = f"{took[0] * 1e3:.1f} to {took[-1] * 1e3:.1f} ms"
            yield f"gathers           {len(took)}, of up to {facts:,} facts, {span}"


def joins(config: ConnectorConfig) -> Iterator[str]:
    """Which elements can be LUNs, and what rollups and selections can name then."""
    attributes: dict[str, dict[str, set[str]]] = {}  # by element type and attribute: its values
    for element, _, attribute, value in config.facts:
        attributes.setdefault(element, {}).setdefault(attribute, set()).add(str(value))
    measured = {one.element for one in config.metrics}
    any_joins = False
    for element, of_element in attributes.items():
        keys = [name for name in JOINS if name in of_element]
        if not keys:
            continue
        any_joins = True
        yield f"joins LUNs        {element}, by {' or '.join(keys)} ({_some(sorted(of_element[keys[0]]))})"
        for name, values in of_element.items():
            if name not in keys:
                selects = ", selects its elements" if name in measured else ""
                yield f"  {name:<24} {_counted(len(values), 'value')}: {_some(sorted(values))}{selects}"
    if not any_joins:
        yield f"joins LUNs        none by {', '.join(JOINS)}: elements belong to all LUNs, unless `join` says more"


def _again(facts: Iterable[Fact]) -> list[Fact]:
    """Facts that are there more than once."""
    return [fact for fact, count in Counter(facts).items() if count > 1]


def _facts(seen: Iterable[Seen]) -> Iterator[Fact]:
    for one in seen:
        yield from one.readings.facts


def _took_s(seen: Seen) -> float:
    return (seen.arrived_ns - seen.sent_ns) / 1e9


def _how(metric: ElementMetric) -> str:
    """Describe how its readings become figures."""
    if metric.kind is ReadingKind.GAUGE:
        return f"gauge, {metric.combine}"
    if metric.per:
        return f"counter, per {metric.per}"
    return f"counter, {metric.combine}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _some(names: Sequence[str]) -> str:
    """The first few."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
