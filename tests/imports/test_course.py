"""Names and edits of an imported plan, in a number of operations that follows from the number of its jobs."""

from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.imports.course import UniqueNames
from ivypy.master.imports.description import whole_blocks


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
    st.lists(st.tuples(st.integers(1, 2048), st.integers(1, 100)), min_size=1, max_size=8),
    st.sampled_from([512, 4096]),
)
def test_a_mean_size_is_as_aligned_as_the_smallest_and_near_the_mean(parts: list[tuple[int, int]], unit: int) -> None:
    sizes = [(count * unit, weight) for count, weight in parts]
    mean = sum(size * weight for size, weight in sizes) / sum(weight for _, weight in sizes)
    smallest = min(size for size, _ in sizes)
    whole, block = whole_blocks(mean, smallest), min(smallest, 4096)
    assert whole % block == 0
    assert abs(whole - mean) <= max(block / 2, 512)


def test_a_mean_size_is_a_multiple_of_512() -> None:
    assert [whole_blocks(mean, 100) for mean in (1.0, 600.0, 1000.0)] == [512, 512, 1024]
