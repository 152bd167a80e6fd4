"""The means of the last rounds, from the rows of the steps alone."""

import pytest

from ivypy.master.summary.measured import MeasurementRow, StepEnds
from ivypy.master.summary.rounds_table import last_rounds, rounds_lines, rounds_tables, without_rounds
from ivypy.master.verdicts import Finding, Reason, Verdict


def ended(number: int, name: str, iops: float | None = None, rate: Verdict = Verdict.VALID, *why: Finding) -> StepEnds:
    figures = {} if iops is None else {"overall_iops": iops, "overall_service_us_max": 10 * iops}
    row = MeasurementRow(name, rate, rate, Verdict.VALID, Verdict.VALID, why, "", figures, stands=True)
    return StepEnds(number, name, rate, why, (row,))


def rounds(values: list[float | None], of_pass: str = "mix+a=1", begin: int = 0) -> list[StepEnds]:
    return [ended(begin + n, f"{of_pass}+round={n + 1}", value) for n, value in enumerate(values)]


def test_the_mean_is_of_the_last_five_rounds() -> None:
    (table,) = rounds_tables([*rounds([900.0, 100.0, 110.0, 120.0, 130.0, 140.0]), ended(9, "other", 1.0)])
    assert table.caption == "mix: the mean of rounds 2 to 6, which have not come to their end"
    assert table.rows == (("a=1", "120", "100", "140", "-", "-", "1.40 ms"),)


def test_how_they_ended_is_said_as_the_last_round_has_it() -> None:
    steady = Finding(Reason.STEADY_ROUNDS, "rounds 1 to 5 steady: x")
    *first, last = rounds([100.0] * 5)
    (table,) = rounds_tables([*first, ended(4, last.name, 100.0, Verdict.VALID, steady)])
    assert table.caption == "mix: the mean of rounds 1 to 5, steady: x"
    not_reached = Finding(Reason.ROUNDS_NOT_STEADY, "in 5 rounds, rounds 1 to 5 not steady: y")
    (table,) = rounds_tables([*first, ended(4, last.name, 100.0, Verdict.INVALID, not_reached)])
    assert table.caption == "mix: the mean of rounds 1 to 5, not steady: y"
    assert table.rows[0][1] == "[100]", "as the worst of the rounds is marked"


def test_of_attempts_the_last_counts_and_a_round_that_was_cut_off_does_not() -> None:
    steps = [
        ended(0, "mix+a=1+round=1", 100.0), ended(1, "mix+a=2+round=1", 500.0, Verdict.INVALID),
        ended(2, "mix+a=2+round=1+attempt=2", 200.0), ended(3, "mix+a=1+round=2", 900.0),
    ]  # fmt: skip
    (table,) = rounds_tables(steps)
    assert [row[:2] for row in table.rows] == [("a=1", "100"), ("a=2", "200")]
    assert table.caption.startswith("mix: round 1, ")
    assert [step.name for step in last_rounds(steps)] == ["mix+a=1+round=1", "mix+a=2+round=1+attempt=2"]
    assert without_rounds([*steps, ended(4, "half")]) == [ended(4, "half")]


def test_steps_in_rounds_one_after_the_other_have_tables_of_their_own() -> None:
    steps = [*rounds([1.0] * 5), *rounds([2.0] * 6, "mix+b=1", begin=5)]
    assert [table.rows[0][:2] for table in rounds_tables(steps)] == [("a=1", "1"), ("b=1", "2")]


def test_a_step_whose_name_has_a_plus_keeps_it() -> None:
    (table,) = rounds_tables(rounds([1.0] * 5, "rw+sync+a=1+b=2"))
    assert table.caption.startswith("rw+sync: the mean") and table.rows[0][0] == "a=1+b=2"
    (table,) = rounds_tables(rounds([1.0] * 5, "alone"))
    assert table.caption.startswith("alone: the mean") and table.rows[0][0] == "alone"


def test_a_figure_that_some_round_lacks_is_blank() -> None:
    (table,) = rounds_tables(rounds([1.0, 1.0, None, 1.0, 1.0]))
    assert table.rows == (("a=1", "-", "-", "-", "-", "-", "-"),)


@pytest.mark.parametrize("width", [80, 120])
def test_lines_fit_their_terminal(width: int) -> None:
    (table,) = rounds_tables(rounds([123_456_789.0] * 5, "mix+" + "+".join(f"parameter{n}=100%" for n in range(9))))
    assert all(len(line) <= width for line in rounds_lines(table, width)[1:])
