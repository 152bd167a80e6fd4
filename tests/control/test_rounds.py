"""Rounds: when they are steady, and what is said of them. Against SNIA's definition, worked out by numpy."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivypy.master.control.observe import focus_on
from ivypy.master.control.rounds import Rounds, RoundsSpec
from ivypy.master.verdicts import Reason

SPEC = RoundsSpec("mix", focus_on("overall_iops"), 25)


def after(*values: float | None, spec: RoundsSpec = SPEC) -> Rounds:
    """Rounds of one pass."""
    return of_passes(*({"mix": value} for value in values), spec=spec)


def of_passes(*values: Mapping[str, float | None], spec: RoundsSpec = SPEC) -> Rounds:
    rounds = Rounds(spec)
    for one in values:
        rounds = rounds.after(one)
    return rounds


@given(st.lists(st.floats(1.0, 1e7), min_size=5, max_size=30))
def test_rounds_are_steady_as_snia_defines_it(values: list[float]) -> None:
    """Largest less smallest at most 20 % of the mean; the fitted line rises by at most 10 % over the window."""
    window = np.array(values[-5:])
    slope, _ = np.polyfit(np.arange(5), window, 1)
    figures = (window.max() - window.min()) / window.mean(), abs(slope * 4) / window.mean()
    (pass_window,) = after(*values).windows
    assert (pass_window.excursion, pass_window.rise) == pytest.approx([100 * one for one in figures], abs=1e-6)
    if all(abs(one - limit) > 1e-9 for one, limit in zip(figures, (0.2, 0.1), strict=True)):
        assert after(*values).is_steady is bool(figures[0] <= 0.2 and figures[1] <= 0.1)


@pytest.mark.parametrize(
    ("values", "is_steady"),
    [
        ([100] * 4, False),
        ([100] * 5, True),
        ([900, 500, 100, 100, 100, 100, 100], True),
        ([100, 100, None, 100, 100, 100], False),
        ([100, 100, None, 100, 100, 100, 100, 100], True),
        ([110, 90, 110, 90, 100], True),
        ([110.1, 89.9, 110, 90, 100], False),
        ([105, 102.5, 100, 97.5, 95], True),
        ([105.1, 102.5, 100, 97.5, 94.9], False),
        ([0] * 5, True),
        ([-1, 1, 0, 0, 0], False),
    ],
)
def test_a_window_is_of_five_rounds_in_a_row_with_figures(values: list[float | None], is_steady: bool) -> None:
    rounds = after(*values)
    assert rounds.is_steady is is_steady is rounds.is_over


def test_every_pass_has_to_be_steady() -> None:
    calm = [{"a": 100.0, "b": 100.0 + 9 * n} for n in range(5)]
    assert not of_passes(*calm).is_steady
    assert of_passes(*({"a": one["a"], "b": 100.0} for one in calm)).is_steady
    assert "overall_iops of b, excursion 30.5%" in of_passes(*calm).in_words, "the one that is furthest from it"


def test_they_are_over_after_so_many_and_that_is_invalid() -> None:
    spec = RoundsSpec("mix", SPEC.focus, 6)
    rising = [100.0 * n for n in range(1, 7)]
    assert not after(*rising[:5], spec=spec).is_over and after(*rising[:5], spec=spec).finding() is None
    finding = after(*rising, spec=spec).finding()
    assert finding is not None and finding.reason is Reason.ROUNDS_NOT_STEADY
    assert finding.detail.startswith("in 6 rounds, rounds 2 to 6 not steady: overall_iops of mix, excursion 100.0%")


def test_steady_rounds_are_told_with_their_figures() -> None:
    finding = after(500, 100, 102, 98, 100, 100).finding()
    assert finding is not None and finding.reason is Reason.STEADY_ROUNDS
    assert finding.detail == "rounds 2 to 6 steady: overall_iops of mix, excursion 4.0%, slope 0.8% of a mean of 100"


def test_a_figure_beyond_its_limit_is_never_told_as_the_limit() -> None:
    assert "excursion 20.02%, slope" in after(110.01, 89.99, 110, 90, 100).in_words
    assert "excursion 20.0%, slope" in after(110, 90, 110, 90, 100).in_words


def test_the_mean_is_told_in_the_metrics_unit() -> None:
    assert after(*[347_741.0] * 5).in_words.endswith("of a mean of 348 k")
    latency = RoundsSpec("mix", focus_on("overall_service_us_mean"), 25)
    assert after(*[1234.5] * 5, spec=latency).in_words.endswith("of a mean of 1.234 ms")


def test_a_round_that_does_not_count_says_which_figure_is_missing() -> None:
    assert after(100).in_words == "round 1 of at most 25"
    assert after(100, None).in_words == "round 2 of at most 25: mix has no figure of overall_iops that can be used"


def test_rows_have_each_pass_that_is_looked_at() -> None:
    rows = of_passes(*({"a": 0.0, "b": n} for n in (-1.0, 1.0, 0.0, 0.0, 0.0))).rows()
    assert [(row["round"], row["pass"], row["value"], row["mean"], row["steady"]) for row in rows] == [
        (5, "a", 0.0, 0.0, True), (5, "b", 0.0, 0.0, False),
    ]  # fmt: skip
    assert [row["excursion_percent"] for row in rows] == [0.0, None], "in percent of a mean of 0"
