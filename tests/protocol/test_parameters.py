"""The table of parameters, and its range checks."""

import math
from dataclasses import fields

import pytest

from ivypy.protocol.parameters import LIVE, PARAMETERS, Iosequencer, Parameters, faults


def test_every_field_is_in_the_table_with_a_sentence() -> None:
    assert PARAMETERS.keys() == {f.name for f in fields(Parameters)}
    assert all(about.doc.endswith(".") for about in PARAMETERS.values())
    assert LIVE == {"iops", "fraction_read", "maxtags", "range", "blocksize"}


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
        (
            Parameters(iosequencer=Iosequencer.SEQUENTIAL, fraction_read=0.7),
            "fraction_read is 0.7; a sequential workload reads (100%) or writes (0%)",
        ),
    ],
)
def test_what_is_out_of_range_is_reported_in_a_sentence(parameters: Parameters, fault: str) -> None:
    assert faults(parameters) == [fault]
