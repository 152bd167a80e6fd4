"""A metric of many instances over any number of subintervals: few samples, each the sum of a batch of subintervals.

Rule: neighbours are combined when there are MOST samples, so memory and the time to check them do not grow with a
step's length. A batch has as much information about the mean as the subintervals in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .metric_sample import MetricSample, merged

MOST = 64  # samples, a batch each; when there are so many, neighbours are combined


@dataclass(frozen=True, slots=True)
class BatchMeans:
    """Sums of subintervals: `total` of all of them, `whole` of those in finished batches."""

    whole: tuple[Mapping[str, MetricSample], ...] = ()  # each of `size` subintervals, by instance
    part: Mapping[str, MetricSample] = field(default_factory=dict)  # the batch that is not finished
    in_part: int = 0
    size: int = 1
    total: Mapping[str, MetricSample] = field(default_factory=dict)

    def added(self, samples: Mapping[str, MetricSample]) -> "BatchMeans":
        """With one more subinterval."""
        part, total = _merged(self.part, samples), _merged(self.total, samples)
        if self.in_part + 1 < self.size:
            return BatchMeans(self.whole, part, self.in_part + 1, self.size, total)
        whole, size = (*self.whole, part), self.size
        if len(whole) == MOST:
            whole, size = tuple(map(_merged, whole[::2], whole[1::2])), 2 * size
        return BatchMeans(whole, size=size, total=total)

    def of(self, instance: str) -> list[MetricSample]:
        """One instance's samples."""
        return [batch[instance] for batch in self.whole]


def _merged(one: Mapping[str, MetricSample], other: Mapping[str, MetricSample]) -> dict[str, MetricSample]:
    return {name: merged(one[name], sample) if name in one else sample for name, sample in other.items()}
