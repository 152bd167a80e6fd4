"""Names and edits of an imported plan, in a number of operations that follows from the number of its jobs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.imports.course import UniqueNames
from ivypy.master.imports.sizes import fewer, spaced


class Counting(set[str]):
    """Counts how often it was asked for a name."""

    asked = 0

    def __contains__(self, name: object) -> bool:
        self.asked += 1
        return super().__contains__(name)


def by_hand(name: str, taken: set[str]) -> str:
    """The first of name, name-2, name-3, ... that is free."""
    number, unique = 1, name
    while unique.lower() in taken:
        number += 1
        unique = f"{name}-{number}"
    taken.add(unique.lower())
    return unique


@given(st.lists(st.sampled_from(["a", "A", "a-2", "a-3", "a-2-2", "b", "a-02"]), max_size=60))
def test_a_name_is_the_first_that_is_free_and_no_number_is_tried_twice(names: list[str]) -> None:
    unique, taken = UniqueNames(), set[str]()
    unique._taken = counting = Counting()
    assert [unique.of(name) for name in names] == [by_hand(name, taken) for name in names]
    assert counting.asked <= 2 * len(names)


@given(
    st.lists(
        st.tuples(st.integers(1, 2048), st.integers(1, 100)), min_size=1, max_size=80, unique_by=lambda one: one[0]
    ),
    st.integers(1, 64),
    st.sampled_from([512, 4096]),
)
def test_fewer_sizes_have_the_mean_of_all(parts: list[tuple[int, int]], most: int, unit: int) -> None:
    total = sum(weight for _, weight in parts)
    sizes = [(count * unit, weight / total) for count, weight in parts]
    kept = fewer(sizes, most, unit)
    assert len(kept) <= most and all(size % unit == 0 for size, _ in kept)
    assert sum(share for _, share in kept) == pytest.approx(1)
    tolerance = unit / 2 + 1 if len(sizes) > most else 1
    assert sum(size * share for size, share in kept) == pytest.approx(
        sum(size * share for size, share in sizes), abs=tolerance
    )


@given(st.integers(1, 99), st.integers(1, 99), st.integers(1, 5000), st.integers(1, 64))
def test_spaced_sizes_are_spread_over_all(first: int, step: int, count: int, most: int) -> None:
    kept = spaced(first, step, count, most)
    assert len(kept) == min(count, most) and all((size - first) % step == 0 for size, _ in kept)
    assert first <= kept[0][0] <= kept[-1][0] <= first + step * (count - 1)
    assert abs(sum(size * share for size, share in kept) - (first + step * (count - 1) / 2)) <= step / 2 + 1
