"""Compares what connectors reported in the runs of both sides: matched by step, rollup instance and metric.

Rule: of a connector's metric nobody knows which direction is better, so there is a change or none, and the exit code
does not depend on it. The spread of the runs decides, as for all figures; one run a side, whose gathers are too few for
the noise within it, is shown and not judged.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import log1p
from statistics import fmean

from ..results.connector_rows import ConnectorRow, all_connector_rows
from ..results.finished_run import FinishedRun, Key
from ..stats.comparison import LogRatio, between_runs, holm
from .outcomes import ALPHA, FEWEST_RUNS


class ConnectorOutcome(StrEnum):
    DIFFERENT = "different"
    EQUIVALENT = "equivalent"
    UNCLEAR = "not distinguishable"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class ConnectorCompared:
    """A metric of both sides: the mean of the runs that have it; None where none has."""

    key: Key
    metric: str
    unit: str
    a: float | None
    b: float | None
    change: LogRatio | None
    p: float | None  # that there is no change, corrected
    outcome: ConnectorOutcome
    notes: tuple[str, ...]  # why it is not judged, and which runs lack subintervals

    @property
    def relative(self) -> float | None:
        """B / A - 1, also where nothing is known of its error."""
        return self.b / self.a - 1 if self.a and self.b is not None else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 %, of B / A - 1, not corrected."""
        return self.change.interval(1 - ALPHA) if self.change else None


Rows = Mapping[tuple[Key, str], ConnectorRow]


def compare_connectors(
    before: Sequence[FinishedRun], after: Sequence[FinishedRun], keys: Collection[Key], limit: float
) -> list[ConnectorCompared]:
    """`keys`: the steps and rollup instances that are compared; `limit`: of equivalence, a fraction. Raises
    PlanError."""
    a, b = ({run.name: _rows(run) for run in side} for side in (before, after))
    found = dict.fromkeys(metric for rows in (*a.values(), *b.values()) for metric in rows)
    order = {key: place for place, key in enumerate(keys)}
    wanted = sorted((one for one in found if one[0] in order), key=lambda one: order[one[0]])
    return _judged([_compared(one, a, b) for one in wanted], limit)


def _rows(run: FinishedRun) -> Rows:
    return {
        (Key(row.name, row.rollup_type, row.rollup_instance), row.metric): row for row in all_connector_rows(run.folder)
    }


def _compared(wanted: tuple[Key, str], a: Mapping[str, Rows], b: Mapping[str, Rows]) -> ConnectorCompared:
    having = [{name: rows[wanted] for name, rows in side.items() if wanted in rows} for side in (a, b)]
    values, others = ([row.value for row in side.values() if row.value is not None] for side in having)
    notes = [_gaps(name, row) for side in having for name, row in side.items() if row.missing or row.value is None]
    lacking = [name for side, rows in zip((a, b), having, strict=True) for name in side if name not in rows]
    notes += [f"{', '.join(lacking)}: not there"] if lacking else []
    change = None
    if min(len(values), len(others)) < FEWEST_RUNS:
        notes.append("three runs or more a side are needed")
    elif min(*values, *others) <= 0:
        notes.append("a value is not above 0")
    else:
        change = between_runs(values, others)
    unit = next(row.unit for side in having for row in side.values())
    mean, other = (fmean(side) if side else None for side in (values, others))
    return ConnectorCompared(*wanted, unit, mean, other, change, None, ConnectorOutcome.NOT_JUDGED, tuple(notes))


def _gaps(run: str, row: ConnectorRow) -> str:
    if row.value is None:
        return f"{run}: no subinterval has a value"
    return f"{run}: {row.missing} of {row.subintervals + row.missing} subintervals have no value"


def _judged(rows: Sequence[ConnectorCompared], limit: float) -> list[ConnectorCompared]:
    """With their outcomes; every p is corrected for the number of these rows."""
    changes = [row.change for row in rows if row.change]
    different = iter(holm([change.p_different() for change in changes]))
    within = iter(holm([change.p_within(log1p(-limit), log1p(limit)) for change in changes]))
    return [_with_outcome(row, next(different), next(within)) if row.change else row for row in rows]


def _with_outcome(row: ConnectorCompared, different: float, within: float) -> ConnectorCompared:
    outcome = ConnectorOutcome.UNCLEAR
    if within < ALPHA:
        outcome = ConnectorOutcome.EQUIVALENT
    elif different < ALPHA:
        outcome = ConnectorOutcome.DIFFERENT
    return ConnectorCompared(row.key, row.metric, row.unit, row.a, row.b, row.change, different, outcome, row.notes)
