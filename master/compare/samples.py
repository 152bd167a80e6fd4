"""A run's figures from histograms.sqlite: of each subinterval of a measurement, the sums that a metric is made of."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import RESPONSES, SERIES, SERVICES, Moment
from ...protocol.messages import Result
from ..output.histogram_db_reader import HistogramReader
from ..results.finished_run import Key
from ..rollup.figures import CATEGORIES
from ..rollup.metrics import Metric, Quantity
from ..stats.metric_sample import MetricSample
from ..stats.percentiles import NS_PER_US

Samples = Mapping[tuple[Key, str], Sequence[MetricSample]]  # by metric's name; a sample a subinterval


def samples_of(
    reader: HistogramReader, step: int, measured: Mapping[Key, Collection[int]], metrics: Sequence[Metric]
) -> Samples:
    """The samples of these rollup instances of a step, each over its measured subintervals, in their order.

    Raises OutputError, where the file cannot be read.
    """
    classes = _classes(reader, step, measured)
    samples: dict[tuple[Key, str], list[MetricSample]] = {(key, one.name): [] for key in measured for one in metrics}
    every = {number for numbers in measured.values() for number in numbers}
    results = reader.results(step, min(every, default=0), max(every, default=-1))
    for number, parts in groupby(results, lambda part: part[1].subinterval):
        decoded = {host: _Decoded.of(result) for host, result in parts}
        for key, numbers in measured.items():
            if number in numbers:
                merged = _Subinterval([(decoded[host], own) for host, own in classes[key].items() if host in decoded])
                for metric in metrics:
                    samples[key, metric.name].append(merged.sample(metric))
    return samples


def _classes(reader: HistogramReader, step: int, keys: Collection[Key]) -> dict[Key, dict[str, list[int]]]:
    """Host: its merge classes that belong to the rollup instance."""
    classes: dict[Key, dict[str, list[int]]] = {key: {} for key in keys}
    by_type: dict[str, dict[str, list[Key]]] = {}
    for key in keys:
        by_type.setdefault(key.rollup_type, {}).setdefault(key.instance, []).append(key)
    for klass in reader.classes(step):
        for kind, by_instance in by_type.items():
            for key in by_instance.get(klass.rollups.get(kind, ""), ()):
                classes[key].setdefault(klass.host, []).append(klass.number)
    return classes


@dataclass(frozen=True, slots=True, eq=False)
class _Decoded:
    """A host's result as arrays. `starts`: where in `buckets` each class and series begins."""

    length_s: float
    moments: NDArray[np.uint64]  # (classes, SERIES, Moment)
    spans: NDArray[np.int64]  # (classes, SERIES, 2): first bucket, number of buckets
    starts: NDArray[np.int64]  # (classes, SERIES)
    buckets: NDArray[np.unsignedinteger]

    @classmethod
    def of(cls, result: Result) -> "_Decoded":
        moments = np.frombuffer(result.moments.data, "<u8").reshape(-1, SERIES, len(Moment))
        spans = np.frombuffer(result.spans.data, "<u4").reshape(-1, SERIES, 2).astype(np.int64)
        widths = spans[..., 1].reshape(-1)
        starts = (widths.cumsum() - widths).reshape(-1, SERIES)
        buckets = np.frombuffer(result.buckets.data, "<" + result.buckets.type)
        return cls(result.length_ns * 1e-9, moments, spans, starts, buckets)


class _Subinterval:
    """One rollup instance in one subinterval: the results of its hosts, each with its merge classes."""

    def __init__(self, parts: Sequence[tuple[_Decoded, Sequence[int]]]) -> None:
        self._parts = parts
        own = [one.moments[list(classes)] for one, classes in parts]
        self._moments = np.concatenate(own) if own else np.zeros((0, SERIES, len(Moment)), np.uint64)
        self._hosts = list(zip(parts, own, strict=True))
        self._length_s = float(np.mean([one.length_s for one, _ in parts])) if parts else 0.0

    def sample(self, metric: Metric) -> MetricSample:
        kinds = list(CATEGORIES[metric.category])
        if metric.is_rate:
            return self._rate(kinds, metric.quantity)
        series = [SERVICES[kind] if metric.quantity is Quantity.SERVICE else RESPONSES[kind] for kind in kinds]
        chosen = self._moments[:, series]
        if metric.fraction is None:
            return MetricSample(
                float(chosen[..., Moment.SUM].sum()), float(chosen[..., Moment.COUNT].sum()) * NS_PER_US
            )
        if not chosen[..., Moment.COUNT].any():
            return MetricSample(0.0, 0.0)
        return self._histogram(series, int(chosen[..., Moment.MIN].min()), int(chosen[..., Moment.MAX].max()))

    def _rate(self, kinds: Sequence[int], quantity: Quantity) -> MetricSample:
        """Each host's I/Os or bytes over its own length."""
        column, unit = (Moment.COUNT, 1) if quantity is Quantity.IOPS else (Moment.BYTES, 2**20)
        series = [SERVICES[kind] for kind in kinds]
        rate = sum(float(own[:, series, column].sum()) / part.length_s for (part, _), own in self._hosts)
        return MetricSample(rate / unit * self._length_s, self._length_s)

    def _histogram(self, series: Sequence[int], least: int, most: int) -> MetricSample:
        """The buckets that are used."""
        used = [
            (int(first), part.buckets[start : start + width])
            for part, classes in self._parts
            for (first, width), start in zip(
                part.spans[np.ix_(classes, series)].reshape(-1, 2),
                part.starts[np.ix_(classes, series)].reshape(-1),
                strict=True,
            )
            if width
        ]
        low, end = min(first for first, _ in used), max(first + len(counts) for first, counts in used)
        total = np.zeros(end - low, np.uint64)
        for first, counts in used:
            total[first - low : first - low + len(counts)] += counts
        return MetricSample(0.0, 0.0, total, low, least, most)
