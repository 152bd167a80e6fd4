"""Where a result begins and ends is what was placed; a host that says otherwise contradicts itself, and is lost."""

from dataclasses import replace
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.hosts.driver import Driver
from ivypy.master.run.step.boundaries import Boundaries
from ivypy.protocol.messages import Result
from ivypy.protocol.payload import Array, ArrayType

LENGTH = 1_000_000_000
HOST = cast(Driver, object())  # a key, and no more
NOTHING = Array(ArrayType.I64, b"")


def result(k: int, start: int, length: int) -> Result:
    return Result(k, start, length, False, 0, (), NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, (), ())


steps = st.lists(st.tuples(st.floats(-0.01, 0.01), st.booleans()), min_size=1, max_size=30)


@given(steps, st.integers(0, 10**15))
def test_boundaries_where_they_were_placed_are_accepted(steps: list[tuple[float, bool]], at: int) -> None:
    """Whatever clock they follow, and whether or not each `continue` came in time."""
    boundaries = Boundaries(LENGTH)
    boundaries.begin(HOST, at)
    start, wanted = at, at + 2 * LENGTH
    for k, (moved, heard) in enumerate(steps):
        end = start + LENGTH
        if k >= 2:
            wanted += round(LENGTH * (1 + moved))
            placed = boundaries.place(HOST, k, wanted)
            end = placed if heard else end
        assert boundaries.against(HOST, result(k, start, end - start)) == ""
        start = end
    assert boundaries.against(HOST, replace(result(len(steps), start, LENGTH // 3), last=True)) == ""


@given(st.integers(0, 20), st.one_of(st.floats(0.1, 0.997), st.floats(1.003, 3.0)))
def test_a_length_other_than_placed_is_refused(k: int, factor: float) -> None:
    """A fifth less makes the rates of a fifth more."""
    boundaries = Boundaries(LENGTH)
    boundaries.begin(HOST, 7)
    for before in range(k):
        if before >= 2:
            boundaries.place(HOST, before, 7 + (before + 1) * LENGTH)
        assert boundaries.against(HOST, result(before, 7 + before * LENGTH, LENGTH)) == ""
    if k >= 2:
        boundaries.place(HOST, k, 7 + (k + 1) * LENGTH)
    forged = round(LENGTH * factor)
    assert "its length is" in boundaries.against(HOST, result(k, 7 + k * LENGTH, forged))
