"""Two sides of runs compared: which figures, their values, and the changes with their errors."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import log1p
from pathlib import Path
from typing import Final

from ..errors import OutputError, PlanError
from ..output.histogram_db_reader import HistogramReader
from ..plan.attempts import last_of_each, step_of_plan
from ..results.finished_run import FinishedRun, Key, StepRow, read_run
from ..rollup.instances import ALL
from ..rollup.metrics import HOW_SHORT, MEAN, METRICS, SHORT_NAMES, Metric, Quantity, full_name, metric_of
from ..stats.comparison import LogRatio, between_runs, comparable_estimate, within_runs
from ..stats.confidence import FEWEST_STATED
from ..stats.metric_sample import MetricSample, interpolated_value
from ..summary.headline import IN_COMPARISONS
from ..text.suggestions import did_you_mean, listed, suggestion
from ..verdicts import Reason, Scope, Severity, Verdict
from .connector_metrics import ConnectorCompared, compare_connectors
from .differences import Difference, differences, plan_lines
from .doubts import doubts
from .limit import USUAL_LIMIT
from .load import MISSING_HOSTS, OTHER_LOAD, other_loads
from .outcomes import (
    FEWEST_RUNS,
    INVALID,
    Basis,
    Compared,
    Judged,
    Outcome,
    RunFigure,
    exit_code,
    geometric_mean,
    judge,
    outliers,
    untested,
)
from .samples import samples_of
from .sides import Sides

_FEWEST_IN_SPAN: Final = 4  # names of runs
_NAMED_BLANK: Final = "blank: no such I/O, too few samples, or no response time (iops: max)"


@dataclass(frozen=True, slots=True)
class Question:
    """The metrics, steps and rollup types that are to be compared, and the limit of a regression."""

    metrics: tuple[str, ...] = ()  # names, also short ones; none: the usual ones
    steps: tuple[str, ...] = ()  # names; none: all
    rollup_types: tuple[str, ...] = ()  # beside `all`
    limit: float = USUAL_LIMIT
    connectors: bool = False  # also what connectors said
    added: tuple[str, ...] = ()  # metrics beside the others, that are shown and not tested


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is shown."""

    a: tuple[FinishedRun, ...]
    b: tuple[FinishedRun, ...]
    limit: float
    basis: Basis
    plan_lines: tuple[str, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    rows: tuple[Judged, ...]
    connectors: tuple[ConnectorCompared, ...] = ()
    newest_left_out: tuple[str, ...] = ()  # notes on runs that would be among the newest of a history
    added: tuple[Judged, ...] = ()  # in no correction, conclusion or exit code
    doubts: tuple[str, ...] = ()  # of `notes`: what makes the comparison of a step doubtful
    other_loads: tuple[str, ...] = ()  # "step paced: iops_setting: 200 -> 150": why steps are not compared

    @property
    def exit_code(self) -> int:
        return exit_code(self.rows, self.basis)


def comparable(metric: Metric) -> bool:
    """Whether more or less of it is better, and it has a value above 0 wherever there is I/O."""
    if metric.quantity in (Quantity.SERVICE, Quantity.RESPONSE):
        return metric.statistic in (MEAN, "min", "max") or metric.fraction is not None
    return metric.is_rate


def comparable_names() -> list[str]:
    """Short names of all metrics that can be compared."""
    return [short for short, full in SHORT_NAMES.items() if comparable(METRICS[full])]


def compare(sides: Sides, question: Question) -> Comparison:
    """Compare the runs in these folders. Raises PlanError for a fault of the question, and for runs without results."""
    tested, added = _metrics(question.metrics), _metrics(question.added) if question.added else []
    metrics = list(dict.fromkeys([*tested, *added]))
    types = tuple(dict.fromkeys((ALL, *question.rollup_types)))
    before, after = (
        tuple(_read(f"{letter}{number}", folder, types) for number, folder in enumerate(folders, 1))
        for letter, folders in (("A", sides.a), ("B", sides.b))
    )
    _check_copies((*before, *after))
    keys = _keys(before, after, question.steps, must_share=not sides.is_history)
    gone = _gone(keys, after) if sides.is_history else []
    rare = [step for step in gone if sum(_has_step(run, step) for run in before) < FEWEST_RUNS]
    keys = [key for key in keys if key.step not in rare]
    basis = Basis.of(len(before), len(after))
    loads = {run.name: other_loads(run, after) for run in (*before, *after)}
    ours, theirs = ([_Figures(run, metrics, basis, loads[run.name]) for run in side] for side in (before, after))
    rows = [
        _compared(key, metric, ours, theirs, basis)
        for key in keys
        for metric in tested
        if question.metrics or not _has_none((*before, *after), key, metric)
    ]
    shown = {(row.key, row.metric) for row in rows}
    beside = [
        _compared(key, metric, ours, theirs, basis) for key in keys for metric in added if (key, metric) not in shown
    ]
    judged = tuple(judge(rows, question.limit))
    doubtful = tuple(doubts((*before, *after), keys))
    return Comparison(
        a=before,
        b=after,
        limit=question.limit,
        basis=basis,
        plan_lines=tuple(plan_lines(before, after)) if before else (),
        differences=tuple(differences(before, after)) if before else (),
        notes=(
            *sides.left_out,
            *_notes((*before, *after), keys),
            *_of_gone(gone, rare),
            *_of_outliers(judged, question.limit),
            *doubtful,
        ),
        rows=judged,
        connectors=tuple(compare_connectors(before, after, keys, question.limit) if question.connectors else ()),
        newest_left_out=sides.newest_left_out,
        added=tuple(map(untested, beside)),
        doubts=doubtful,
        other_loads=tuple(_of_other_loads(judged, loads)),
    )


def _read(name: str, folder: Path, types: Sequence[str]) -> FinishedRun:
    """A run with the last round and attempt of each step, keyed by the name that the plan gives the step.

    The load in the row's name of a search is no part of the key: it is what the run found. Raises PlanError.
    """
    run = read_run(name, folder, types)
    names = {step["number"]: str(step["name"]) for step in run.record.get("steps") or ()}
    counting = last_of_each(names.values())
    rows: dict[Key, StepRow] = {}
    for key, row in run.rows.items():
        attempt = names.get(row.number, key.step)
        if attempt in counting or row.number not in names:
            step = run.searches.get(row.number, key.step)
            rows[key._replace(step=step.replace(attempt, step_of_plan(attempt), 1))] = row
    return replace(run, rows=rows)


def _check_copies(runs: Sequence[FinishedRun]) -> None:
    """Raises PlanError for two folders of one run, which would show a spread that is none."""
    for place, run in enumerate(runs):
        for other in runs[:place]:
            if run.record["start_utc"] == other.record["start_utc"] and run.rows == other.rows:
                raise PlanError(f"{other.folder} and {run.folder} are copies of one run, which counts once")


def _metrics(names: Collection[str]) -> list[Metric]:
    """Raises PlanError."""
    metrics = []
    for given in names or IN_COMPARISONS:
        name = full_name(given)
        if name not in METRICS:
            known = {**SHORT_NAMES, **{one: one for one in METRICS}}
            near = did_you_mean(given, [one for one, full in known.items() if comparable(METRICS[full])])
            raise PlanError(f"--metric {given}: there is no such metric{near}; {HOW_SHORT}; all: `ivypy columns`")
        if not comparable(METRICS[name]):
            raise PlanError(
                f"--metric {given}: only rates and latencies are compared, whose better direction is known; {HOW_SHORT}"
            )
        metrics.append(METRICS[name])
    return list(dict.fromkeys(metrics))


def _keys(a: Sequence[FinishedRun], b: Sequence[FinishedRun], steps: Collection[str], must_share: bool) -> list[Key]:
    """The keys that some run has, in the order of the runs; of these steps alone where any is named. Raises
    PlanError.
    """
    keys, other_keys = (list(dict.fromkeys(key for run in side for key in run.rows)) for side in (a, b))
    names = list(dict.fromkeys(key.step for key in (*keys, *other_keys)))
    for step in steps:
        if step not in names:
            raise PlanError(f"--step {step}: no run has a step of this name{suggestion(step, names)}")
    if must_share and not {key.step for key in keys} & {key.step for key in other_keys}:
        lists = [", ".join(dict.fromkeys(key.step for key in side)) or "none" for side in (keys, other_keys)]
        raise PlanError(f"no step has the same name on both sides: A has {lists[0]}; B has {lists[1]}")
    chosen = set(steps or names)
    return sorted(
        (key for key in dict.fromkeys((*keys, *other_keys)) if key.step in chosen),
        key=lambda key: names.index(key.step),
    )


def _has_none(runs: Sequence[FinishedRun], key: Key, metric: Metric) -> bool:
    """Whether it is a response time, and no run that has the row has one: their load is at max."""
    if not metric.needs_pacing:
        return False
    mean = metric_of(metric.category, metric.quantity, MEAN)
    rows = [run.rows[key] for run in runs if key in run.rows]
    return not any(row.figure(mean) or row.verdict(metric.scope) is Verdict.INVALID for row in rows)


def _notes(runs: Sequence[FinishedRun], keys: Collection[Key]) -> Iterator[str]:
    """Notes that a reader of single runs needs: what is the same of several runs or steps is said once."""
    for run in runs:
        if not run.record.get("end_utc"):
            yield f"{run.name}: the run has not ended, or was killed: compared are the steps that it finished"
    partial: dict[tuple[str, str], dict[str, None]] = {}  # (key, reasons): the runs
    for key in keys:
        for run in runs:
            row = run.rows.get(key)
            if row and key.rollup_type == ALL and Verdict.PARTIAL in (row.verdict(one) for one in Scope):
                reasons = ", ".join(_reasons(row, Severity.PARTIAL)) or str(Verdict.PARTIAL)
                partial.setdefault((str(key), reasons), {})[run.name] = None
    by_runs: dict[tuple[str, str], list[str]] = {}
    for (key_text, reasons), names in partial.items():
        by_runs.setdefault((", ".join(names), reasons), []).append(key_text)
    for (names_text, reasons), keys_of in by_runs.items():
        yield f"{names_text}: {listed(keys_of)}: partial: {reasons}"


def _of_other_loads(rows: Sequence[Judged], loads: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """The steps that are not compared, with how their loads differ. `loads`: by run and step."""
    steps: dict[str, list[str]] = {}  # by how their loads differ
    for step in dict.fromkeys(row.compared.key.step for row in rows if row.is_of_other_load):
        differ = dict.fromkeys(of_run[step] for of_run in loads.values() if step in of_run)
        steps.setdefault(" | ".join(differ), []).append(step)
    for differ_text, names in steps.items():
        yield f"step{'s' if len(names) > 1 else ''} {listed(names)}: {differ_text}"


def _gone(keys: Sequence[Key], newest: Sequence[FinishedRun]) -> list[str]:
    """The steps that none of the newest runs has."""
    steps = dict.fromkeys(key.step for key in keys)
    return [step for step in steps if not any(_has_step(run, step) for run in newest)]


def _has_step(run: FinishedRun, step: str) -> bool:
    return any(key.step == step for key in run.rows)


def _of_gone(gone: Sequence[str], rare: Sequence[str]) -> Iterator[str]:
    """Of steps that the newest runs lack. `rare`: those that too few runs had, and of which there are no rows."""
    if missed := [step for step in gone if step not in rare]:
        it = "it is" if len(missed) == 1 else "they are"
        yield (
            f"the newest runs do not have step {listed(missed)}: if {it} gone for good, name the others with --step, "
            "or give the plan another name"
        )
    if rare:
        yield f"not compared, since the newest runs do not have it: step {listed([*rare])}"


def _of_outliers(rows: Sequence[Judged], limit: float) -> Iterator[str]:
    """Of runs that are so far from the others of their side that a figure's change cannot be told."""
    steps: dict[str, dict[str, None]] = {}
    for row in rows:
        for side in "AB" if row.outcome is Outcome.UNCLEAR else "":
            known = {one.run: one.compared for one in row.compared.runs if one.run[0] == side and one.compared}
            for name in outliers(known, log1p(limit)):
                steps.setdefault(name, {})[row.compared.key.step] = None
    for name, names in steps.items():
        yield f"{name} is far from the other runs in {listed([*names])}: as long as it is one of them, less can be told"


class _Figures:
    """One run's figures. Its histograms are read once for each step."""

    def __init__(
        self, run: FinishedRun, metrics: Sequence[Metric], basis: Basis, other_loads: Mapping[str, str]
    ) -> None:
        self.run = run
        self._other_loads = other_loads  # by the step
        self._from_samples = [one for one in metrics if basis is Basis.WITHIN or one.fraction is not None]
        self._steps: dict[int, Mapping[tuple[Key, str], Sequence[MetricSample]] | str] = {}

    def why_not(self, key: Key, metric: Metric) -> str:
        """Why the run has no figure that may be compared; "" where it has one."""
        row = self.run.rows.get(key)
        if row is None:
            return "no such step or rollup instance"
        if key.step in self._other_loads:
            return f"{OTHER_LOAD}: {self._other_loads[key.step]}"
        if row.verdict(metric.scope) is Verdict.INVALID:
            return f"{INVALID}{', '.join(_reasons(row, Severity.INVALID, metric.scope)) or Verdict.INVALID}"
        if row.hosts_in < row.hosts_of:  # they have another load, and the array has
            return f"{row.hosts_in} of {row.hosts_of} hosts"
        if missing := MISSING_HOSTS.intersection(
            _reasons(row, Severity.PARTIAL)
        ):  # in a part of it, or from the beginning
            return f"without a host: {', '.join(sorted(missing))}"
        value = row.figure(metric)
        if value is None:
            return _NAMED_BLANK
        if value <= 0:
            return "0"
        return self._fault(key, metric) if metric in self._from_samples and _is_sum(metric) else ""

    def printed(self, key: Key, metric: Metric) -> float | None:
        """As the run's own summary and report have it; None where they have none."""
        row = self.run.rows.get(key)
        return row.figure(metric) if row else None

    def value(self, key: Key, metric: Metric) -> float:
        """Of a figure that may be compared: for its change, within the bucket."""
        value = self.run.rows[key].figure(metric)
        if metric.fraction is not None:
            value = interpolated_value(self.samples(key, metric), metric.fraction)
        assert value is not None, f"{self.run.folder}: {key}: {metric.name}"
        return value

    def shown(self, key: Key, metric: Metric, left_out: str) -> RunFigure:
        row = self.run.rows.get(key)
        compared = None if left_out else self.value(key, metric)
        return RunFigure(self.run.name, self.printed(key, metric), left_out, row.number if row else None, compared)

    def samples(self, key: Key, metric: Metric) -> Sequence[MetricSample]:
        """A sample a subinterval; none where the histograms have none."""
        read = self._read(self.run.rows[key].number)
        return () if isinstance(read, str) else read.get((key, metric.name), ())

    def _fault(self, key: Key, metric: Metric) -> str:
        """Why the histograms do not have the figure."""
        read = self._read(self.run.rows[key].number)
        if isinstance(read, str):
            return read
        known = interpolated_value(self.samples(key, metric), metric.fraction)
        return "" if known else "histograms.sqlite does not have the I/Os of the summary"

    def _read(self, step: int) -> Mapping[tuple[Key, str], Sequence[MetricSample]] | str:
        """The samples, or why they cannot be read."""
        if step not in self._steps:
            measured = self.run.measured(step)
            metrics = [one for one in self._from_samples if _is_sum(one)]
            try:
                with HistogramReader(self.run.folder / "histograms.sqlite") as reader:
                    self._steps[step] = samples_of(reader, step, measured, metrics)
            except OutputError as error:
                self._steps[step] = str(error)
        return self._steps[step]


def _is_sum(metric: Metric) -> bool:
    """Whether sums over subintervals give it; not the shortest and the longest."""
    return metric.is_rate or metric.statistic == MEAN or metric.fraction is not None


def _reasons(row: StepRow, severity: Severity, scope: Scope | None = None) -> list[str]:
    """The names of those of this severity, and of this scope where one is given."""
    known = {reason.word: reason for reason in Reason}
    reasons: dict[str, None] = {}
    for one in row.cells["reasons"].split("; "):
        word, _, rest = one.partition("[")
        if rest.startswith(severity) and (scope is None or word not in known or scope in known[word].scope):
            reasons[word] = None
    return [*reasons]


def _compared(key: Key, metric: Metric, a: Sequence[_Figures], b: Sequence[_Figures], basis: Basis) -> Compared:
    left_out = {one.run.name: why for one in (*a, *b) if (why := one.why_not(key, metric))}
    figures = tuple(one.shown(key, metric, left_out.get(one.run.name, "")) for one in (*a, *b))
    before, after = ([one.value(key, metric) for one in side if one.run.name not in left_out] for side in (a, b))
    change, why, counts = None, _grouped(left_out), f"{len(before)} and {len(after)} runs"
    if basis is Basis.RUNS and min(len(before), len(after)) >= FEWEST_RUNS:
        change = between_runs(before, after)
        why = f"{counts}; {why}" if why else ""
    elif basis is Basis.WITHIN and not why:
        change, why = _within(key, metric, a[0], b[0])
    elif not why or (before and after):
        why = f"{counts}, three a side are needed" + (f"; {why}" if why else "")
    return Compared(key, metric, _mean_of("A", figures), _mean_of("B", figures), change, why, figures)


def _mean_of(side: str, figures: Sequence[RunFigure]) -> float | None:
    """Of the runs that count."""
    return geometric_mean([one.value for one in figures if one.run[0] == side and not one.left_out])


def _grouped(whys: Mapping[str, str]) -> str:
    """ "A1, A3: invalid: generator_late; B2: blank": by what is to be said."""
    by_why: dict[str, list[str]] = {}
    for name, why in whys.items():
        by_why.setdefault(why, []).append(name)
    return "; ".join(f"{', '.join(_spans(names))}: {why}" for why, names in by_why.items())


def _spans(names: Sequence[str]) -> Iterator[str]:
    """A1, A2 ... A9 as "A1 to A9": of four and more in a row. In their order."""
    for _, numbered in groupby(enumerate(names), lambda at: (at[1][0], int(at[1][1:]) - at[0])):
        row = [name for _, name in numbered]
        yield from row if len(row) < _FEWEST_IN_SPAN else [f"{row[0]} to {row[-1]}"]


def _within(key: Key, metric: Metric, a: _Figures, b: _Figures) -> tuple[LogRatio | None, str]:
    """The change by the noise within the runs, or why nothing is known of it."""
    if not _is_sum(metric):
        return None, "a shortest or longest I/O has no noise within a run; three runs a side are needed"
    ratios = []
    for figures in (a, b):
        samples = figures.samples(key, metric)
        if len(samples) < FEWEST_STATED:
            return None, f"{figures.run.name}: {len(samples)} subintervals; {FEWEST_STATED} are needed"
        of_one = comparable_estimate(samples, metric.fraction)
        if of_one is None:
            return (
                None,
                f"{figures.run.name}: the subintervals depend so much on each other that nothing is known of it",
            )
        ratios.append(of_one)
    return within_runs(ratios[0], ratios[1]), ""
