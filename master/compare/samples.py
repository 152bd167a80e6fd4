"""A run's figures from histograms.sqlite: of each subinterval of a measurement, the sums that a metric is made of."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from ...protocol.counters import KINDS, RESPONSE, SERIES, SERVICE, Moment
from ...protocol.messages import Result
from ..output.histogram_db_reader import Distribution, HistogramReader
from ..rollup.arrays import Floats
from ..rollup.figures import CATEGORIES
from ..rollup.metrics import Metric, Quantity
from ..stats.metric_sample import MetricSample
from ..stats.percentiles import NS_PER_US
from .finished_run import Key

Samples = Mapping[tuple[Key, str], Sequence[MetricSample]]  # by metric's name; a sample a subinterval


def samples_of(
    reader: HistogramReader, step: int, measured: Mapping[Key, Collection[int]], metrics: Sequence[Metric]
) -> Samples:
    """The samples of these rollup instances of a step, each over its measured subintervals, in their order.

    Raises OutputError, where the file cannot be read.
    """
    classes = _classes(reader, step, measured)
    found: dict[tuple[Key, str], list[MetricSample]] = {(key, one.name): [] for key in measured for one in metrics}
    every = {number for numbers in measured.values() for number in numbers}
    parts: list[tuple[str, Result]] = []

    def close() -> None:
        for key, numbers in measured.items():
            if parts and parts[0][1].subinterval in numbers:
                merged = _Subinterval(parts, classes[key])
                for metric in metrics:
                    found[key, metric.name].append(merged.sample(metric))

    for host, result in reader.results(step, min(every, default=0), max(every, default=-1)):
        if parts and parts[0][1].subinterval != result.subinterval:
            close()
            parts.clear()
        parts.append((host, result))
    close()
    return found


def _classes(reader: HistogramReader, step: int, keys: Collection[Key]) -> dict[Key, dict[str, list[int]]]:
    """Host: its merge classes that belong to the rollup instance."""
    found: dict[Key, dict[str, list[int]]] = {key: {} for key in keys}
    for one in reader.classes(step):
        for key in keys:
            if one.rollups.get(key.rollup_type) == key.instance:
                found[key].setdefault(one.host, []).append(one.number)
    return found


class _Subinterval:
    """The results of all hosts in one subinterval, merged for one rollup instance."""

    def __init__(self, parts: Sequence[tuple[str, Result]], classes: Mapping[str, Sequence[int]]) -> None:
        self._sums = Distribution()
        self._rates = np.zeros((KINDS, 2))  # I/Os and bytes per second: each host's over its own length
        lengths = []
        for host, result in parts:
            if host in classes:
                self._sums.add(result, classes[host])
                self._rates += _io(result, classes[host]) / (result.length_ns * 1e-9)
                lengths.append(result.length_ns * 1e-9)
        self._length_s = float(np.mean(lengths)) if lengths else 0.0

    def sample(self, metric: Metric) -> MetricSample:
        kinds = list(CATEGORIES[metric.category])
        if metric.is_rate:
            per_s = self._rates[kinds].sum(axis=0)
            rate = float(per_s[0] if metric.quantity is Quantity.IOPS else per_s[1] / 2**20)
            return MetricSample(rate * self._length_s, self._length_s)
        first = SERVICE if metric.quantity is Quantity.SERVICE else RESPONSE
        series = [first + kind for kind in kinds]
        if metric.fraction is None:
            total, count = (sum(self._sums.moment(one, of) for one in series) for of in (Moment.SUM, Moment.COUNT))
            return MetricSample(float(total), count * NS_PER_US)
        buckets = self._sums.buckets[series].sum(axis=0)
        used = np.flatnonzero(buckets)
        if not len(used):
            return MetricSample(0.0, 0.0)
        low, end = int(used[0]), int(used[-1]) + 1
        least, most = int(self._sums.least[series].min()), int(self._sums.most[series].max())
        return MetricSample(0.0, 0.0, buckets[low:end].astype(np.uint32), low, least, most)


def _io(result: Result, classes: Sequence[int]) -> Floats:
    """I/Os and bytes of each kind, shape (KINDS, 2)."""
    moments = np.frombuffer(result.moments.data, "<u8").reshape(-1, SERIES, len(Moment))
    chosen = moments[list(classes), SERVICE : SERVICE + KINDS]
    return np.asarray(chosen[..., [Moment.COUNT, Moment.BYTES]].sum(axis=0), np.float64)
