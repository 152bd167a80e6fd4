"""The table of parameters, and its range checks."""

import math
from dataclasses import fields, replace

import pytest

from ivypy.protocol.parameters import LIVE, PARAMETERS, Iosequencer, MixPart, Operation, Parameters, faults

READ, WRITE = Operation.READ, Operation.WRITE


def mixed(*parts: tuple[Operation, int, float]) -> Parameters:
    reads = sum(share for operation, _, share in parts if operation is READ)
    return Parameters(
        blocksize=max(size for _, size, _ in parts), fraction_read=min(reads, 1.0),
        operations=tuple(MixPart(*part) for part in parts),
    )  # fmt: skip


def test_every_field_is_in_the_table_with_a_sentence() -> None:
    assert PARAMETERS.keys() == {f.name for f in fields(Parameters)}
    assert all(about.doc.endswith(".") for about in PARAMETERS.values())
    assert LIVE == {"iops", "fraction_read", "maxtags", "range", "blocksize", "operations"}


def test_the_defaults_are_in_range() -> None:
    assert faults(Parameters()) == []


@pytest.mark.parametrize(
    "parameters, fault",
    [
        (Parameters(maxtags=0), "maxtags is 0; the least is 1"),
        (Parameters(maxtags=8193), "maxtags is 8193; the most is 8192"),
        (Parameters(fraction_read=math.nan), "fraction_read is nan; the least is 0"),
        (Parameters(fraction_read=1.5), "fraction_read is 1.5; the most is 1"),
        (Parameters(iops=-1.0), "iops is -1; the least is 0"),
        (Parameters(blocksize=0), "blocksize is 0; the least is 1"),
        (mixed((READ, 4096, 0.5), (WRITE, 4096, 0.4)), "the shares of operations add up to 0.9, not to 1"),
        (
            mixed((READ, 4096, 1.5), (WRITE, 4096, -0.5)),
            "operations has a part without a size, or without a share above 0",
        ),
        (mixed(*[(READ, 4096, 1 / 65)] * 65), "operations has 65 parts; the most is 64"),
        (replace(mixed((READ, 4096, 1.0)), blocksize=8192), "blocksize is not the largest of operations"),
        (replace(mixed((READ, 4096, 1.0)), fraction_read=0.9), "fraction_read is not the share of reads in operations"),
        (
            Parameters(iosequencer=Iosequencer.SEQUENTIAL, sequential=0.1),
            "sequential: a share of the I/Os of a random workload, and this one is sequential; leave it out",
        ),
        (
            Parameters(streams=2),
            "streams: those of a sequential workload; leave it out, or set iosequencer: sequential",
        ),
        (
            Parameters(random_map=True, sequential=0.1),
            "random_map: visits each block once, and sequential I/Os would visit some again; leave one out",
        ),
        *(
            (wrong, "random_map: needs I/Os of one size, aligned to it; leave it out, or give one blocksize, no align")
            for wrong in (
                Parameters(random_map=True, align=512),
                replace(mixed((READ, 512, 0.5), (READ, 4096, 0.5)), random_map=True),
            )
        ),
    ],
)
def test_what_is_out_of_range_is_reported_in_a_sentence(parameters: Parameters, fault: str) -> None:
    assert faults(parameters) == [fault]
