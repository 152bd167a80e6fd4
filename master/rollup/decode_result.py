"""Decodes a result's packed arrays into numpy arrays of the shapes that `go` implies, or raises ProtocolError.

Rule: whatever passes here can be merged without another check: sizes, types, bucket ranges, and that each series' count
is the sum of its buckets.
"""

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...protocol.counters import MOST_THREADS, SERIES, Count, Moment, SectionCount, ThreadCount
from ...protocol.errors import ProtocolError
from ...protocol.histogram import BUCKETS
from ...protocol.messages import Result
from ...protocol.payload import Array, ArrayType
from .arrays import NO_LEAST, Ints, Words

LARGEST_COUNT: Final = 1 << 53  # of I/Os, bytes or nanoseconds in one subinterval: exact as a float, and sums fit


@dataclass(frozen=True, slots=True, eq=False)
class DecodedResult:
    """One host's subinterval."""

    counts: Ints  # (instances, Count)
    moments: Words  # (classes, SERIES, Moment)
    spans: Ints  # (classes * SERIES, 2): first used bucket, how many
    buckets: Words  # the used ranges one after the other
    sections: Words  # (instances, sections, SectionCount)


def decode_result(host: str, result: Result, numbers: Sequence[int], classes: int, sections: int = 0) -> DecodedResult:
    """Raises ProtocolError naming host, subinterval and the array that does not fit."""

    def wrong(what: str) -> ProtocolError:
        return ProtocolError(f"{host}: the result of subinterval {result.subinterval} does not fit: {what}")

    def array(name: str, packed: Array, kind: ArrayType, *shape: int) -> NDArray[Any]:
        if packed.type is not kind:
            raise wrong(f"{name} is of type {packed.type}, not {kind}")
        numbers = np.frombuffer(packed.data, "<" + kind)
        if len(numbers) != math.prod(shape):
            raise wrong(f"{name} has {len(numbers)} numbers, not {' x '.join(map(str, shape))}")
        return numbers.reshape(shape)

    if result.length_ns <= 0:
        raise wrong(f"its length is {result.length_ns} ns")
    counts = array("counts", result.counts, ArrayType.I64, len(numbers), len(Count))
    if counts.size and counts.min() < 0:
        row, column = np.argwhere(counts < 0)[0]
        raise wrong(f"{Count(column).name} of workload {numbers[row]} is {counts[row, column]}")
    if counts.size and counts.max() > LARGEST_COUNT:
        row, column = np.argwhere(counts > LARGEST_COUNT)[0]
        raise wrong(f"{Count(column).name} of workload {numbers[row]} is {counts[row, column]}")
    by_address = array("sections", result.sections, ArrayType.U64, len(numbers), sections, len(SectionCount))
    if sections and by_address.max(initial=0) > LARGEST_COUNT:
        raise wrong("a count of a section is out of range")
    moments = array("moments", result.moments, ArrayType.U64, classes, SERIES, len(Moment))
    spans = array("spans", result.spans, ArrayType.U32, classes, SERIES, 2).reshape(-1, 2).astype(np.int64)
    ends = spans[:, 1].cumsum()
    if len(result.buckets) != (ends[-1] if len(ends) else 0):
        raise wrong(f"buckets has {len(result.buckets)} numbers, its spans say {ends[-1] if len(ends) else 0}")
    if result.buckets.type in (ArrayType.I64, ArrayType.F64):
        raise wrong(f"buckets is of type {result.buckets.type}, not u1 to u8")
    if spans.size and (spans[:, 0] + spans[:, 1]).max() > BUCKETS:
        raise wrong(f"a span ends after the last of {BUCKETS} buckets")
    if len(result.threads) % len(ThreadCount):
        raise wrong(f"threads has {len(result.threads)} numbers, not a multiple of {len(ThreadCount)}")
    if result.threads.type is not ArrayType.I64:
        raise wrong(f"threads is of type {result.threads.type}, not i8")
    threads = threads_of(result)
    if len(threads) > MOST_THREADS:
        raise wrong(f"it is of {len(threads)} threads, more than {MOST_THREADS}")
    if threads.size and (threads.max() > LARGEST_COUNT or threads.min() < -LARGEST_COUNT):
        raise wrong("a figure of a thread is out of range")
    unknown = {fault.number for fault in result.faults} - set(numbers) if result.faults else ()
    if unknown:
        raise wrong(f"it names faults of the unknown workloads {sorted(unknown)}")
    buckets = np.frombuffer(result.buckets.data, "<" + result.buckets.type).astype(np.uint64)
    fault = _moments_fault(moments.reshape(-1, len(Moment)), spans[:, 1], ends, buckets)
    if fault:
        raise wrong(fault)
    return DecodedResult(counts, moments, spans, buckets, by_address)


def _moments_fault(moments: Words, lengths: Ints, ends: Ints, buckets: Words) -> str:
    """Why moments and buckets contradict each other; "" if they do not."""
    count, least, most = moments[:, Moment.COUNT], moments[:, Moment.MIN], moments[:, Moment.MAX]
    used = lengths.nonzero()[0]
    sums = np.zeros(len(count), np.uint64)
    if len(used):
        sums[used] = np.add.reduceat(buckets, ends[used] - lengths[used])
    if (sums != count).any():
        bad = (sums != count).nonzero()[0][0]
        where, series = divmod(int(bad), SERIES)
        return f"series {series} of class {where} counts {count[bad]}, its buckets hold {sums[bad]}"
    empty = count == 0
    if (least[empty] != NO_LEAST).any() or (most[empty] != 0).any() or ((least > most) != empty).any():
        return "the least and the largest value of a series contradict each other"
    return ""


def threads_of(result: Result) -> Ints:
    """The figures of a result's threads, shape (threads, ThreadCount)."""
    return np.frombuffer(result.threads.data, "<i8").reshape(-1, len(ThreadCount))


def light(result: Result) -> Result:
    """A result without the data that only merging needs; the compressed streams stay, to be stored."""
    return _each(result, lambda array: Array(array.type, b"", array.stream) if array.data else array)


def whole(result: Result) -> Result:
    """The result with the data that `light` removed."""
    return _each(result, lambda one: Array(one.type, zlib.decompress(one.packed), one.packed) if one.packed else one)


def _each(result: Result, change: Callable[[Array], Array]) -> Result:
    return replace(
        result, moments=change(result.moments), spans=change(result.spans), buckets=change(result.buckets),
        sections=change(result.sections),
    )  # fmt: skip
