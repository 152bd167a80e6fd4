"""Decides what changes mean: better, worse, equivalent or not distinguishable, and whether a regression is shown.

Rule: pure. Every p is corrected for the number of comparisons (Holm), each question for itself. A regression is shown
only beyond doubt (exit 5), and so is its absence (exit 0); everything else is "cannot tell" (exit 6). The noise within
one run a side decides nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from math import exp, expm1, log, log1p
from statistics import fmean, median
from typing import Final

from ..exit_codes import ExitCode
from ..results.finished_run import Key
from ..rollup.metrics import Metric
from ..stats.comparison import LogRatio, holm
from .load import OTHER_LOAD

ALPHA: Final = 0.05
FEWEST_RUNS: Final = 3  # a side
_FEWEST_FOR_OUTLIERS: Final = 6  # runs of a side
_FAR: Final = 5.0
INVALID: Final = "invalid: "  # begins why a run whose figure is invalid is left out


class Basis(Enum):
    """The source of a comparison's errors; the value says it to the user."""

    RUNS = "the spread of the runs of each side"
    WITHIN = (
        "one run a side: the noise WITHIN the two runs alone. Runs of the same differ by more; three runs or more "
        "a side decide"
    )
    NONE = "nothing"

    @classmethod
    def of(cls, a: int, b: int) -> "Basis":
        """By the number of runs of each side."""
        if min(a, b) >= FEWEST_RUNS:
            return cls.RUNS
        return cls.WITHIN if a == b == 1 else cls.NONE


class Outcome(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    UNCLEAR = "not distinguishable"
    NOT_COMPARED = "not compared"
    NOT_TESTED = "not tested"


@dataclass(frozen=True, slots=True)
class RunFigure:
    """A figure of one run. `left_out`: why it does not count; "" where it does."""

    run: str  # A1, A2 ... B1
    value: float | None  # as the run's report has it
    left_out: str = ""
    step: int | None = None  # its number in that run; None where it does not have it
    compared: float | None = None  # a percentile within its bucket, so that a change is no step of buckets; None: not


def geometric_mean(values: Sequence[float | None]) -> float | None:
    """Of those that are known and not 0."""
    return exp(fmean(log(value) for value in values if value)) if any(values) else None


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure of both sides: the geometric mean of the runs that have it; None where none has."""

    key: Key
    metric: Metric
    a: float | None
    b: float | None
    change: LogRatio | None = None
    why: str = ""  # it is not compared, where there is no change; else which runs are left out
    runs: tuple[RunFigure, ...] = ()  # of all runs, A's first

    @property
    def relative(self) -> float | None:
        """B / A - 1, also where nothing is known of its error. Of percentiles within their buckets.

        None where runs are left out, and nothing is known of its error: of the few that remain it says nothing, and
        would be read.
        """
        if self.change:
            return expm1(self.change.log_ratio)
        if any(run.left_out for run in self.runs):
            return None
        return self.b / self.a - 1 if self.a and self.b is not None else None

    def invalid(self, side: str) -> float | None:
        """The figure of a side of which no run counts, of its runs where it is invalid. `side`: A or B."""
        known = self.a if side == "A" else self.b
        runs = [run for run in self.runs if run.run.startswith(side) and run.left_out.startswith(INVALID)]
        return geometric_mean([run.value for run in runs]) if known is None else None


@dataclass(frozen=True, slots=True)
class Judged:
    """A comparison with its outcome."""

    compared: Compared
    outcome: Outcome
    p: float | None  # that there is no change, corrected
    interval: tuple[float, float] | None  # 95 %, of B / A - 1, not corrected
    is_regression: bool  # shown to be worse by more than the limit
    is_no_regression: bool  # shown not to be

    @property
    def is_of_other_load(self) -> bool:
        """It is not compared, since the runs did not have the same load."""
        return self.outcome is Outcome.NOT_COMPARED and OTHER_LOAD in self.compared.why


def judge(rows: Sequence[Compared], limit: float) -> list[Judged]:
    """The outcome of each; `limit`: the regression, and the margin of equivalence, as a fraction below 1.

    A row without a change has no outcome, and shows neither a regression nor that there is none.
    """
    changes = [row.change for row in rows if row.change]
    low, high = log1p(-limit), log1p(limit)
    different = iter(holm([change.p_different() for change in changes]))
    within = iter(holm([change.p_within(low, high) for change in changes]))
    beyond = iter(holm([_p_beyond(row.metric, row.change, limit) for row in rows if row.change]))
    return [
        _judged(row, row.change, next(different), next(within), next(beyond), limit)
        if row.change
        else Judged(row, Outcome.NOT_COMPARED, None, None, False, False)
        for row in rows
    ]


def outliers(values: Mapping[str, float], least: float) -> list[str]:
    """The runs whose figure is further from the median than _FAR robust standard deviations, and `least`, in natural
    logarithms (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 3.3); none of fewer than _FEWEST_FOR_OUTLIERS.
    """
    if len(values) < _FEWEST_FOR_OUTLIERS:
        return []
    logs = {name: log(value) for name, value in values.items()}
    middle = median(logs.values())
    deviation = median(abs(one - middle) for one in logs.values()) / 0.6745
    return [name for name, one in logs.items() if abs(one - middle) > max(_FAR * deviation, least)]


def untested(row: Compared) -> Judged:
    """A row that is only shown: a figure chosen after the outcomes were seen would change those of the others."""
    if row.change is None:
        return Judged(row, Outcome.NOT_COMPARED, None, None, False, False)
    return Judged(row, Outcome.NOT_TESTED, None, row.change.interval(1 - ALPHA), False, False)


def _p_beyond(metric: Metric, change: LogRatio, limit: float) -> float:
    """That it is not worse by more than the limit; doubled, so that it decides as the 95 % interval does."""
    return 2 * (change.p_below(log1p(-limit)) if metric.is_rate else change.p_above(log1p(limit)))


def _judged(row: Compared, change: LogRatio, different: float, within: float, beyond: float, limit: float) -> Judged:
    low, high = change.interval(1 - ALPHA)
    outcome = Outcome.UNCLEAR
    if within < ALPHA:
        outcome = Outcome.EQUIVALENT
    elif different < ALPHA:
        outcome = Outcome.BETTER if (change.log_ratio > 0) == row.metric.is_rate else Outcome.WORSE
    is_no_regression = low >= -limit if row.metric.is_rate else high <= limit
    return Judged(row, outcome, different, (low, high), beyond < ALPHA, is_no_regression)


def exit_code(rows: Sequence[Judged], basis: Basis) -> ExitCode:
    """5: some figure is shown to be worse by more than the limit; 0: all are shown not to be; 6: else."""
    if basis is Basis.RUNS and any(row.is_regression for row in rows):
        return ExitCode.SLO_MISSED
    if basis is Basis.RUNS and rows and all(row.is_no_regression for row in rows):
        return ExitCode.OK
    return ExitCode.NOT_REACHED
