"""A metric of many instances for as long as it may take: few samples, each of many subintervals.

Rule: neighbours are put together when there are MOST samples, so that memory and the time to judge them do not grow
with a step's length. A batch says as much of the mean as what is in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .metric_sample import MetricSample, merged

MOST = 64  # samples, a batch each; they are halved when there are as many


@dataclass(frozen=True, slots=True)
class BatchMeans:
    """What subintervals come to: `total` of all of them, `whole` of those in finished batches."""

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
