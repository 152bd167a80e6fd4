"""Steps as one step with a loop: the same steps in the same order, or none."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.imports.vdbench import folded

VALUES = {"blocksize": ["4KiB", "8KiB", "16KiB"], "maxtags": ["1", "2"], "fraction_read": ["0%", "50%", "100%"]}


def combined(
    dimensions: list[tuple[str, list[str]]], common: dict[str, dict[str, str]]
) -> list[dict[str, dict[str, str]]]:
    return [
        {name: {**own, **dict(zip((key for key, _ in dimensions), one, strict=True))} for name, own in common.items()}
        for one in product(*(values for _, values in dimensions))
    ]


@given(
    st.lists(st.sampled_from(sorted(VALUES)), unique=True).flatmap(
        lambda keys: st.tuples(*(st.lists(st.sampled_from(VALUES[key]), min_size=1, unique=True) for key in keys)).map(
            lambda values: list(zip(keys, values, strict=True))
        )
    ),
    st.dictionaries(st.sampled_from("abc"), st.just({"iops": "max"}), min_size=1),
)
def test_a_loop_makes_the_steps_that_it_was_made_of(
    dimensions: list[tuple[str, list[str]]], common: dict[str, dict[str, str]]
) -> None:
    steps = combined(dimensions, common)
    assert folded(steps, [(key, len(values)) for key, values in dimensions]) == (
        common,
        tuple((key, tuple(values)) for key, values in dimensions),
    )


@given(st.integers(0, 5), st.sampled_from(["iops", "maxtags", "seed"]))
def test_steps_that_differ_otherwise_are_no_loop(place: int, key: str) -> None:
    steps = combined([("blocksize", VALUES["blocksize"]), ("maxtags", VALUES["maxtags"])], {"a": {"iops": "max"}})
    steps[place]["a"][key] = "7"
    assert folded(steps, [("blocksize", 3), ("maxtags", 2)]) is None


def test_values_that_are_equal_or_differ_between_streams_are_no_loop() -> None:
    assert folded([{"a": {"maxtags": "1"}}, {"a": {"maxtags": "1"}}], [("maxtags", 2)]) is None
    assert folded([{"a": {"maxtags": "1"}, "b": {"maxtags": "2"}}], [("maxtags", 1)]) is None
    assert folded([{"a": {"maxtags": "1"}}, {"b": {"maxtags": "2"}}], [("maxtags", 2)]) is None
