"""The type `prometheus`: metrics of any exporter, in Prometheus's text format, scraped for each subinterval.

Rule: only lines of the metrics that the plan names are parsed; an exporter has thousands of others, and what is wrong
with them is no matter here. Times that an exporter gives with its samples are its own clock's, which may be set at any
time by an hour: they are moved to this process's clock by one offset that stays, so that their differences are exact.
"""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from ....protocol.connector import OPTIONAL, Cannot, ElementMetric, ReadingKind, Readings, Unit
from ....protocol.payload import Fact
from ...text.suggestions import did_you_mean, listed
from .fetch import checked_url, fetch, tls_context
from .found_facts import FoundFacts, finite
from .options import MetricOptions, declared, instance_of, read_options, read_secret, timeout_seconds

ACCEPT: Final = "text/plain;version=0.0.4, text/plain;q=0.5"
TYPE: Final = re.compile(r"# TYPE (\S+) (\w+)")
NAME: Final = re.compile(r"[^\s{]+")  # of a sample
COUNTED: Final = ("counter", "histogram", "summary")  # types of which all samples but quantiles are sums
REMEDY: Final = "select one of them by `where`, or put the label that differs into `instance`"


@dataclass(frozen=True, kw_only=True)
class SampleOptions(MetricOptions):
    """Samples of one metric, and what they are here."""

    metric: str
    element: str
    attribute: str = field(default="", metadata=OPTIONAL)  # "": only the labels are of interest
    unit: Unit = field(default=Unit.NONE, metadata=OPTIONAL)
    where: dict[str, str] = field(default_factory=dict, metadata=OPTIONAL)  # label: its value, or a glob
    instance: str = field(default="", metadata=OPTIONAL)  # a label, or "{a}:{b}"; "": there is one, called `element`
    attributes: dict[str, str] = field(default_factory=dict, metadata=OPTIONAL)  # label: attribute of the element

    def takes(self, labels: Mapping[str, str]) -> bool:
        return all(fnmatchcase(labels.get(label, ""), pattern) for label, pattern in self.where.items())


@dataclass(frozen=True, kw_only=True)
class PrometheusOptions:
    url: str
    metrics: tuple[SampleOptions, ...]
    timeout: str = field(default="2s", metadata=OPTIONAL)
    token_file: str = field(default="", metadata=OPTIONAL)  # its first line is a bearer token
    ca_file: str = field(default="", metadata=OPTIONAL)  # certificates to trust


@dataclass(frozen=True, slots=True)
class Scraped:
    """The lines of one scrape that are of the plan's metrics."""

    samples: dict[str, list[tuple[str, Sample]]]  # by metric: line, and what it says
    kinds: dict[str, ReadingKind]  # by metric, as far as the exporter says
    names: frozenset[str]  # of all metrics
    start_ns: int
    end_ns: int


class Prometheus:
    """A connector."""

    def __init__(self, **options: Any) -> None:
        self._options = read_options(PrometheusOptions, options)
        self._url = checked_url(self._options.url)
        self._timeout_s = timeout_seconds(self._options.timeout)
        self._tls = tls_context(self._options.ca_file) if self._url.scheme == "https" else None
        self._wanted = frozenset(metric.metric for metric in self._options.metrics)
        self._sent: tuple[SampleOptions, ...] = ()  # those that config declared
        self._offset_ns = time.time_ns() - time.monotonic_ns()
        for i, metric in enumerate(self._options.metrics):
            if not metric.attribute and not metric.attributes:
                raise ValueError(f"options.metrics[{i}]: it has neither an 'attribute' nor 'attributes'")
            if metric.attribute and metric.unit is Unit.NONE and "unit" not in options["metrics"][i]:
                raise ValueError(f"options.metrics[{i}]: option 'unit' is missing; for a number without one write ''")

    def config(self, luns: Sequence[str]) -> tuple[list[ElementMetric], list[Fact]]:
        scraped = self._scrape()
        metrics: list[ElementMetric] = []
        facts: dict[Fact, None] = {}
        sent = []
        for options in self._options.metrics:
            samples = list(_taken(options, scraped))
            if not samples and not options.optional:
                raise Cannot(self._absent(options, scraped))
            if options.attribute and (samples or options.kind != "auto"):
                sent.append(options)
                metrics.append(
                    options.element_metric(options.element, scraped.kinds.get(options.metric, ReadingKind.GAUGE))
                )
            for _, sample, instance in samples:
                for label, attribute in options.attributes.items():
                    facts[Fact(options.element, instance, attribute, _label(sample, label))] = None
        self._sent = tuple(sent)
        return declared(metrics), list(facts)

    def gather(self) -> Readings:
        scraped = self._scrape()
        collected = FoundFacts(REMEDY)
        times: dict[str, list[float | None]] = {}
        for options in self._sent:
            for line, sample, instance in _taken(options, scraped):
                if (value := finite(sample.value)) is not None:
                    collected.add(Fact(options.element, instance, options.attribute, value), line)
                    at = None if sample.timestamp is None else float(sample.timestamp)
                    times.setdefault(options.element, []).append(at)
        return Readings(0, collected.facts(), scraped.start_ns, scraped.end_ns, self._stamps(times))

    def _stamps(self, times: Mapping[str, Sequence[float | None]]) -> dict[str, int]:
        """The newest time of an element type's samples, if all of them have one."""
        stamps = {}
        for element, seconds in times.items():
            given = [one for one in seconds if one is not None and finite(one) is not None]
            if given and len(given) == len(seconds):
                stamps[element] = round(max(given) * 1000) * 1_000_000 - self._offset_ns
        return stamps

    def _scrape(self) -> Scraped:
        headers = {"Accept": ACCEPT, "User-Agent": "ivypy"}
        if self._options.token_file:
            headers["Authorization"] = f"Bearer {read_secret(self._options.token_file)}"
        start_ns = time.monotonic_ns()
        text = fetch(self._url, headers, self._timeout_s, self._tls)
        end_ns = time.monotonic_ns()
        if text.lstrip()[:1] == "<":
            raise Cannot(f"{self._options.url} is a web page, not metrics; exporters usually have them at /metrics")
        samples: dict[str, list[tuple[str, Sample]]] = {}
        types: dict[str, str] = {}
        names: set[str] = set()
        for line in text.splitlines():
            if line.startswith("#"):
                if match := TYPE.match(line):
                    types[match[1]] = match[2]
            elif match := NAME.match(line):
                names.add(match[0])
                if match[0] in self._wanted:
                    samples.setdefault(match[0], []).append((line, _parsed(line)))
        kinds = {name: kind for name in self._wanted if (kind := _kind(name, types)) is not None}
        return Scraped(samples, kinds, frozenset(names), start_ns, end_ns)

    def _absent(self, options: SampleOptions, scraped: Scraped) -> str:
        if options.metric not in scraped.names:
            near = did_you_mean(options.metric, scraped.names)
            what = f"{self._options.url} has no metric {options.metric!r}{near}"
        else:
            labels = {label for _, sample in scraped.samples[options.metric] for label in sample.labels}
            what = f"no sample of {options.metric} satisfies `where`; it has the labels {listed(sorted(labels))}"
        return f"{what}; if it may be missing, write `optional: true`"


def _parsed(line: str) -> Sample:
    try:
        (family,) = text_string_to_metric_families(line)
        (sample,) = family.samples
    except (ValueError, IndexError, KeyError) as error:
        raise Cannot(f"not Prometheus's text format ({error}): {line[:200]!r}") from None
    return sample


def _kind(name: str, types: Mapping[str, str]) -> ReadingKind | None:
    """The kind that the exporter gives a metric; None: it gives none."""
    for suffix in ("", "_total", "_sum", "_count", "_bucket"):
        if (kind := types.get(name.removesuffix(suffix))) is not None:
            counts = kind in COUNTED and (kind == "counter" or suffix not in ("", "_total"))
            return ReadingKind.COUNTER if counts else ReadingKind.GAUGE
    return None


def _taken(options: SampleOptions, scraped: Scraped) -> Iterator[tuple[str, Sample, str]]:
    """Line, sample and instance. Raises Cannot where a label is missing that `instance` needs."""
    for line, sample in scraped.samples.get(options.metric, ()):
        if options.takes(sample.labels):
            named = instance_of(options.instance, partial(_label, sample)) if options.instance else options.element
            yield line, sample, named


def _label(sample: Sample, label: str) -> str:
    if label not in sample.labels:
        has = _listed_labels(sample.labels)
        raise Cannot(f"{sample.name} has no label {label!r}{did_you_mean(label, sample.labels)}; {has}")
    return str(sample.labels[label])


def _listed_labels(labels: Iterable[str]) -> str:
    known = sorted(labels)
    return f"its labels are {listed(known, len(known))}" if known else "it has no labels"
