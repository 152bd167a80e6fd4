"""The result of a step in rounds, as SNIA's PTS reports it: of each pass the mean over the last five rounds.

Rule: the mean is of the rounds' own figures, each of the same weight. A mean is marked as the worst of them would be.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ..control.choices import SNIA_ROUNDS
from ..plan.attempts import ROUND, step_of_attempt, step_of_plan
from ..text.table import ColumnGroup, TextColumn, header_lines, row_line
from ..text.wrapping import shortened
from ..verdicts import Reason, Verdict
from .headline import IOPS, THROUGHPUT, full_title, marked, scope_of, text_of
from .measured import MeasurementRow, StepEnds

_SERVICE_MEAN: Final = "overall_service_us_mean"
_SERVICE_MAX: Final = "overall_service_us_max"
_COLUMNS: Final = (
    ("IOPS", IOPS, "mean"),
    ("least", IOPS, "min"),
    ("most", IOPS, "max"),
    ("MiB/s", THROUGHPUT, "mean"),
    (full_title(_SERVICE_MEAN), _SERVICE_MEAN, "mean"),
    ("max", _SERVICE_MAX, "max"),
)  # title, metric, and of its values in the rounds which
_WIDTHS: Final = (9, 8, 8, 9, 12, 9)
_LEAST_NAME: Final = 18
_ENDS: Final = {Reason.STEADY_ROUNDS: "steady", Reason.ROUNDS_NOT_STEADY: "not steady"}
_WEIGHT: Final = (Verdict.INVALID, Verdict.PARTIAL)  # of the figures of a round, the worst first


@dataclass(frozen=True, slots=True)
class RoundsTable:
    """Texts: a title for each column, and a row for each pass."""

    caption: str
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def without_rounds(steps: Sequence[StepEnds]) -> list[StepEnds]:
    """The steps that ran once."""
    return [step for step in steps if ROUND not in step.name]


def last_rounds(steps: Sequence[StepEnds]) -> list[StepEnds]:
    """Of each pass of a step in rounds, what its result is of: the last rounds, of attempts the last."""
    return [step for rounds in _in_rounds(steps) for number in _window(rounds) for step in rounds[number].values()]


def rounds_tables(steps: Sequence[StepEnds]) -> list[RoundsTable]:
    """Of each step that ran in rounds, in their order."""
    return [_table(one) for one in _in_rounds(steps)]


def rounds_lines(table: RoundsTable, width: int) -> list[str]:
    """The same as lines."""
    figures = sum(_WIDTHS) + len(_WIDTHS)
    longest = max(len(row[0]) for row in table.rows)
    name = max(_LEAST_NAME, min(longest, width - figures))
    columns = [TextColumn(table.titles[0], -name), *map(TextColumn, table.titles[1:], _WIDTHS)]
    groups = [ColumnGroup("", tuple(columns))]
    rows = (row_line(groups, [shortened(row[0], name), *row[1:]]) for row in table.rows)
    return [table.caption, *header_lines(groups), *rows]


def _in_rounds(steps: Iterable[StepEnds]) -> Iterator[dict[int, dict[str, StepEnds]]]:
    """The rounds of each step that has some: by their number, passes by their name in the plan; of attempts the last.
    A number that is lower than the one before is of another step."""
    rounds: dict[int, dict[str, StepEnds]] = defaultdict(dict)
    for step in steps:
        if ROUND not in step.name:
            continue
        number = round_of(step.name)
        if rounds and number < max(rounds):
            yield rounds
            rounds = defaultdict(dict)
        rounds[number][step_of_plan(step.name)] = step
    if rounds:
        yield rounds


def round_of(name: str) -> int:
    """The number of the round that a step with this name is a pass of; 0 where it is none."""
    number = step_of_attempt(name).partition(ROUND)[2]
    return int(number) if re.fullmatch(r"\d+", number) else 0


def _table(rounds: Mapping[int, Mapping[str, StepEnds]]) -> RoundsTable:
    passes = [*rounds[min(rounds)]]
    window = _window(rounds)
    name = _step_of_pass(passes[0])
    ended = [rounds[number] for number in window]
    of_window = f"round {window[0]}" if len(window) == 1 else f"the mean of rounds {window[0]} to {window[-1]}"
    rows = [_row(one.removeprefix(f"{name}+"), [by[one].standing for by in ended if one in by]) for one in passes]
    return RoundsTable(
        f"{name}: {of_window}{_state(ended[-1].values())}",
        ("pass", *(title for title, _, _ in _COLUMNS)),
        tuple(rows),
    )


def _window(rounds: Mapping[int, Mapping[str, StepEnds]]) -> list[int]:
    """The numbers of the last rounds that have all passes; of a first one that has not, its own."""
    passes = rounds[min(rounds)].keys()
    return sorted([number for number, ended in rounds.items() if ended.keys() >= passes] or rounds)[-SNIA_ROUNDS:]


def _step_of_pass(name: str) -> str:
    """The step in the plan, without the values of its loop."""
    return name.partition("=")[0].rpartition("+")[0] or name


def _state(last: Iterable[StepEnds]) -> str:
    """How the rounds ended, as a finding of the last one has it."""
    for finding in (finding for step in last for finding in step.findings):
        if finding.reason in _ENDS:
            return f", {_ENDS[finding.reason]}: {finding.detail.rpartition('steady: ')[2]}"
    return ", which have not come to their end"


def _row(name: str, rows: Sequence[MeasurementRow]) -> tuple[str, ...]:
    return (name, *(_cell(rows, metric, which) for _, metric, which in _COLUMNS))


def _cell(rows: Sequence[MeasurementRow], metric: str, which: str) -> str:
    """Blank where a round has no such figure."""
    values = [row.figures[metric] for row in rows if metric in row.figures]
    if not values or len(values) < len(rows):
        return text_of(metric, {})
    value = {"mean": sum(values) / len(values), "min": min(values), "max": max(values)}[which]
    verdicts = [row.verdict_of(scope_of(metric)) for row in rows]
    worst = next((one for one in _WEIGHT if one in verdicts), Verdict.VALID)
    return marked(text_of(metric, {metric: value}), worst)
