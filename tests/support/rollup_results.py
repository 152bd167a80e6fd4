"""Results as a host would send them, made from samples, so that every merged number can be worked out by hand."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ivypy.protocol.counters import SERIES, Count, ThreadCount
from ivypy.protocol.histogram import BUCKETS, bucket_of
from ivypy.protocol.messages import IoFault, Result
from ivypy.protocol.payload import Array, ArrayType, CpuTaken

# (class, series) -> latencies in ns, each of an I/O of `blocksize` bytes
Samples = Mapping[tuple[int, int], Sequence[int]]


@dataclass(frozen=True)
class HostData:
    """One host's subinterval, before it is packed."""

    instances: int
    classes: int
    samples: Samples
    counts: Mapping[tuple[int, Count], int] = field(default_factory=dict)  # (position in order, column)
    blocksize: int = 4096


def packed(values: Iterable[int], kind: ArrayType) -> Array:
    return Array(kind, np.array(list(values), "<" + kind).tobytes())


def moments_of(samples: Sequence[int], blocksize: int) -> list[int]:
    """The columns of counters.Moment, by hand."""
    squares = sum(s * s for s in samples)
    least = min(samples, default=2**64 - 1)
    return [
        len(samples), len(samples) * blocksize, sum(samples), squares & (2**64 - 1), squares >> 64,
        least, max(samples, default=0),
    ]  # fmt: skip


def result(data: HostData, subinterval: int = 0, length_ns: int = 5 * 10**9, **changes: object) -> Result:
    """The message that says `data`."""
    moments: list[int] = []
    spans: list[int] = []
    buckets: list[int] = []
    for klass in range(data.classes):
        for series in range(SERIES):
            samples = data.samples.get((klass, series), ())
            moments += moments_of(samples, data.blocksize)
            histogram = np.bincount([bucket_of(s) for s in samples], minlength=BUCKETS) if samples else np.zeros(0, int)
            used = np.flatnonzero(histogram)
            first, count = (int(used[0]), int(used[-1] - used[0]) + 1) if len(used) else (0, 0)
            spans += [first, count]
            buckets += histogram[first : first + count].tolist()
    counts = np.zeros((data.instances, len(Count)), int)
    for (place, column), value in data.counts.items():
        counts[place, column] = value
    fields: dict[str, object] = {
        "subinterval": subinterval,
        "start_ns": subinterval * length_ns,
        "length_ns": length_ns,
        "last": False,
        "collected_ns": (subinterval + 1) * length_ns,
        "cpu": (10.0, 30.0),
        "counts": packed(counts.ravel().tolist(), ArrayType.I64),
        "moments": packed(moments, ArrayType.U64),
        "spans": packed(spans, ArrayType.U32),
        "buckets": packed(buckets, ArrayType.U32),
        "threads": packed([1 if c is ThreadCount.SWAPPED else 0 for c in ThreadCount], ArrayType.I64),
        "faults": (),
        "missing": (),
    }
    return Result(**(fields | changes))  # type: ignore[arg-type]


def lost(taken: CpuTaken, instances: int, length_ns: int) -> dict[tuple[int, Count], int]:
    """The counts of instances whose threads all lost what the host's worst one did."""
    of_each = {Count.KEPT_NS: taken.wait, Count.STOLEN_NS: taken.steal_beside}
    return {(n, c): round(share / 100 * length_ns) for n in range(instances) for c, share in of_each.items()}


def fault(number: int, errno: int, count: int) -> IoFault:
    return IoFault(number, errno, count)
