"""The sizes and operations of a workload's I/Os, as a plan states them; and the table of parts that they make.

Rule: pure. A plan has sizes, by operation where they differ, and the share of each operation; a workload instance has
one part for each operation and size, with its share of all I/Os.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...protocol.parameters import Mix, MixPart, Operation, Parameters, VolumeKind

_PLAIN: Final = (Operation.READ, Operation.WRITE)
COUNTED: Final = {  # the operations whose bytes count
    VolumeKind.READ: (Operation.READ,), VolumeKind.WRITTEN: (Operation.WRITE,), VolumeKind.BYTES: _PLAIN,
}  # fmt: skip
_DIGITS: Final = 12  # of a share

Weighted = tuple[tuple[int, float], ...]  # sizes, and the share of each; the shares add up to 1
Operations = tuple[tuple[Operation, float], ...]  # the share of each, which add up to 1; (): reads and writes


@dataclass(frozen=True, slots=True)
class Sizes:
    """Several sizes of I/Os."""

    usual: Weighted  # of an operation that has none of its own; () where each has
    own: tuple[tuple[Operation, Weighted], ...] = ()

    def of(self, operation: Operation) -> Weighted:
        """Those of one that has none are the largest of all."""
        return dict(self.own).get(operation) or self.usual or ((self.largest, 1.0),)

    def has(self, operation: Operation) -> bool:
        return bool(self.usual) or operation in dict(self.own)

    @property
    def all(self) -> list[int]:
        return sorted({size for weighted in (self.usual, *dict(self.own).values()) for size, _ in weighted})

    @property
    def largest(self) -> int:
        return self.all[-1]


def share_of_reads(operations: Operations) -> float:
    return dict(operations).get(Operation.READ, 0.0)


def shares_of(operations: Operations, fraction_read: float) -> Operations:
    """Of the operations that a workload has: reads as `fraction_read` says, the others in their proportions."""
    others = [one for one in operations if one[0] is not Operation.READ] or [(Operation.WRITE, 1.0)]
    rest = (1 - fraction_read) / sum(share for _, share in others)
    shares = ((Operation.READ, fraction_read), *((operation, share * rest) for operation, share in others))
    return tuple(one for one in shares if one[1] > 0)


def mix_of(blocksize: int | Sizes, fraction_read: float, operations: Operations) -> Mix:
    """The parts of a workload."""
    return tuple(
        MixPart(operation, size, round(share * weight, _DIGITS))
        for operation, share in shares_of(operations, fraction_read)
        for size, weight in (((blocksize, 1.0),) if isinstance(blocksize, int) else blocksize.of(operation))
        if round(share * weight, _DIGITS)
    )


def is_plain(mix: Mix) -> bool:
    """Whether one size and the share of reads say all of it."""
    return len({part.bytes for part in mix}) == 1 and all(part.operation in _PLAIN for part in mix)


def resized(parameters: Parameters, blocksize: int) -> Parameters:
    """A workload whose I/Os all have this size."""
    shares: dict[Operation, float] = defaultdict(float)
    for part in parameters.operations:
        shares[part.operation] += part.share
    return _with_mix(parameters, blocksize, [MixPart(one, blocksize, share) for one, share in shares.items()])


def reading(parameters: Parameters, fraction_read: float) -> Parameters:
    """A workload with this share of reads; its sizes, and what else it does, keep their proportions. Where it has no
    reads yet, or reads alone, the new ones have the sizes of the others.

    Raises ValueError where nothing would be left of parts that no later edit could bring back.
    """
    reads = [part for part in parameters.operations if part.operation is Operation.READ]
    others = [part for part in parameters.operations if part.operation is not Operation.READ]
    lost = {0.0: reads, 1.0: others}.get(fraction_read, [])
    if reads and others and _written(reads) != _written(others):
        for part in lost[:1]:
            what = f"{part.operation} ({part.bytes:,} bytes)"
            raise ValueError(f"fraction_read: no {what} would be left to come back to; keep a small share of it")
    scaled = [
        *_scaled(reads or [replace(part, operation=Operation.READ) for part in others], fraction_read),
        *_scaled(others or [replace(part, operation=Operation.WRITE) for part in reads], 1 - fraction_read),
    ]
    return _with_mix(replace(parameters, fraction_read=fraction_read), parameters.blocksize, scaled)


def _written(parts: Sequence[MixPart]) -> dict[int, float]:
    """The share of each size, were they all the same operation, in millionths; {} where some are no transfers."""
    if any(part.operation not in _PLAIN for part in parts):
        return {}
    total = sum(part.share for part in parts)
    return {part.bytes: round(part.share / total, 6) for part in parts}


def _scaled(parts: Sequence[MixPart], total: float) -> list[MixPart]:
    """Parts whose shares add up to `total`; of one operation and size, one."""
    merged: dict[tuple[Operation, int], float] = defaultdict(float)
    for part in parts:
        merged[part.operation, part.bytes] += part.share
    factor = total / sum(merged.values()) if merged else 0.0
    shares = {key: round(share * factor, _DIGITS) for key, share in merged.items()}
    return [MixPart(*key, share) for key, share in shares.items() if share]


def _with_mix(parameters: Parameters, blocksize: int, parts: Sequence[MixPart]) -> Parameters:
    mix = tuple(parts)
    largest = max((part.bytes for part in mix), default=blocksize)
    return replace(parameters, blocksize=largest, operations=() if not mix or is_plain(mix) else mix)


def bytes_per_io(what: VolumeKind, parameters: Parameters) -> float:
    """How many bytes of those that count an I/O of a workload has in the mean."""
    mix = parameters.operations or mix_of(parameters.blocksize, parameters.fraction_read, ())
    return sum(part.share * part.bytes for part in mix if part.operation in COUNTED[what])


def all_sizes(blocksize: int | Sizes) -> list[int]:
    return [blocksize] if isinstance(blocksize, int) else blocksize.all
