"""The command `ivypy steady`: a criterion applied to finished data, with the keys of a plan's `steady`.

Rule: this module only parses words; heavy modules are imported when the command runs, so that --help is quick.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ..control.choices import CRITERIA, LATENCIES, LIMIT_PERCENT, WINDOW_S
from ..errors import PlanError
from ..exit_codes import ExitCode
from ..live import terminal_width
from ..verdicts import Verdict

if TYPE_CHECKING:
    from ..control.criteria import Criterion
    from ..control.offline import ScoredWindow, ValueSeries
    from ..logs.readers.fio_json import SteadySettings
    from ..logs.readers.metric_series import NamedSeries

_T = TypeVar("_T")  # what an option is parsed to
_PATH = click.Path(path_type=Path)
_LIMIT = f"{LIMIT_PERCENT:g}%"


@click.command()
@click.argument("paths", nargs=-1, required=True, type=_PATH, metavar="FOLDER|FIO.json|FILE.csv ...")
@click.option("--criterion", type=click.Choice(CRITERIA),
              help="As in plans. [default: of fio's JSON, its own; else iops]")  # fmt: skip
@click.option(
    "--limit",
    help=f"A percentage of the mean, or an amount of the metric. [default: of fio's JSON, its own; else {_LIMIT}]",
)
@click.option("--window", metavar="TIME",
              help=f"Length of the window. [default: of fio's JSON, its own; else {WINDOW_S:g}s]")  # fmt: skip
@click.option("--ramp", default="0", show_default=True, metavar="TIME", help="Time to leave out at the beginning.")
@click.option("--latency", default=LATENCIES[0], show_default=True,
              help="Statistic for the latency criteria: mean, p50 ... p99_99.")  # fmt: skip
@click.option("--metric", help="Column that the criterion applies to. [default: the criterion's own]")
@click.option("--rollup", default="all", show_default=True, help="For run folders: rollup type.")
@click.option(
    "--interval", default="1s", show_default=True, metavar="TIME", help="Time between two rows of a CSV file."
)
@click.option("--json", "as_json", is_flag=True, help="Print blocks like the steadystate of fio's JSON.")
def steady(
    paths: tuple[Path, ...], criterion: str | None, limit: str | None, window: str | None, ramp: str, latency: str,
    metric: str | None, rollup: str, interval: str, as_json: bool,
) -> ExitCode:  # fmt: skip
    """Say when a test became steady, and by which criterion.

    Reads finished data: a run folder, what fio's JSON keeps of its window, or a column of a CSV file; - is standard
    input. From fio's JSON it takes the steady state that the job asked for. Exits with 6 if
    some series never became steady, and with 7 if one did only while hosts were missing.
    """
    from ..logs.readers.metric_series import series_of
    from ..text.units import parse_duration

    try:
        ramp_s, interval_s = (
            _read(name, parse_duration, text) for name, text in (("ramp", ramp), ("interval", interval))
        )
        if interval_s <= 0:
            raise ValueError(f"--interval {interval}: between two rows there is some time, for example 1s")
        window_s = None if window is None else _read("window", parse_duration, window)
        question = _Question(criterion, limit, window_s, latency, metric, rollup)
        question.criterion_for(None)
        every = [
            named
            for path in paths
            for named in series_of(
                path, lambda settings: question.criterion_for(settings).focus.metric, rollup, interval_s
            )
        ]
        fitted = [_fitted(question, named) for named in every]  # before anything is printed: it finds faults, too
        never = partial = False
        for named, (fit, window_s) in zip(every, fitted, strict=True):
            for note in named.notes:
                click.echo(f"note: {note}", err=True)
            attained = _found(named, fit, ramp_s)
            never |= attained is None or not attained.score.attained
            partial |= attained is not None and _lacks_hosts(named, attained)
            if as_json:
                click.echo(_block(named, fit, attained, window_s))
            else:
                click.echo(terminal_width.fitted(_sentence(named, fit, attained), sys.stdout))
    except ValueError as error:
        raise PlanError(str(error)) from None
    return ExitCode.NOT_REACHED if never else ExitCode.PARTIAL if partial else ExitCode.OK


@dataclass(frozen=True, slots=True)
class _Question:
    """The command line; None: as in fio's JSON, or the default."""

    criterion: str | None
    limit: str | None
    window_s: float | None
    latency: str
    metric: str | None
    rollup: str

    def criterion_for(self, settings: "SteadySettings | None") -> "Criterion":
        """Its window is not set yet. Raises ValueError."""
        from ..control.criteria import Criterion, rule_and_metric
        from ..control.focus import Focus
        from ..text.metric_amounts import parse_limit

        if self.latency not in LATENCIES:
            raise ValueError(f"--latency: {self.latency!r} is no statistic; write one of {', '.join(LATENCIES)}")
        name = self.criterion or (settings.criterion if settings else "iops")
        rule, usual = rule_and_metric(name, self.latency)
        focus = Focus(self.metric or usual, self.rollup)
        if self.limit is None and settings and name == settings.criterion:
            limit, relative = settings.limit, settings.relative
        else:
            limit, relative = _read("limit", lambda text: parse_limit(focus.unit, text), self.limit or _LIMIT)
        return Criterion(rule, focus, 2, limit, relative, no_drift=False)


def _read(option: str, parse: Callable[[str], _T], text: str) -> _T:
    """Raises ValueError, which names the option."""
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"--{option}: {error}") from None


def _fitted(question: _Question, named: "NamedSeries") -> tuple["Criterion", float]:
    """The criterion with a window of so many of the series' values, and the window in seconds. Raises PlanError."""
    from dataclasses import replace
    from statistics import median

    settings = named.settings
    length_s = settings.sample_s if settings else median(named.series.lengths_s)
    window_s = question.window_s
    if window_s is None:
        window_s = settings.window_s if settings else WINDOW_S
    fitted = replace(question.criterion_for(settings), window=math.ceil(round(window_s / length_s, 3)))
    if found := "; ".join(text for _, text in fitted.faults()):
        raise PlanError(f"{named.name}, a value every {length_s:g} s: {found}")
    return fitted, window_s


def _found(named: "NamedSeries", criterion: "Criterion", ramp_s: float) -> "ScoredWindow | None":
    """The first window that attained, of all hosts if there is one; or else the best. No window has a change of hosts
    within."""
    from ..control.offline import best_window, first_attained, windows

    def every() -> "Iterator[ScoredWindow]":
        return windows(criterion, named.series, ramp_s, named.breaks)

    whole = (window for window in every() if not _lacks_hosts(named, window))
    return first_attained(whole) or first_attained(every()) or best_window(every())


def _lacks_hosts(named: "NamedSeries", window: "ScoredWindow") -> bool:
    here, of_all = named.hosts_at(window.first)
    return here < of_all


def _sentence(named: "NamedSeries", criterion: "Criterion", window: "ScoredWindow | None") -> str:
    from ..text.metric_amounts import amount_in_words

    series, title = named.series, named.name
    if window is not None and _lacks_hosts(named, window):
        here, of_all = named.hosts_at(window.first)
        title = f"{title}: {Verdict.PARTIAL}, {here} of {of_all} hosts"
    never = f"{title}: not steady{_stretch(series)}: {criterion} over {criterion.window} values"
    if window is None:
        return f"{never}; no window is complete"
    begin_s, got = series.starts_s[window.first], window.score
    stands = f"{criterion.in_words(got.value, 4)} from {begin_s:g} s on"
    mean = f"mean {amount_in_words(criterion.focus.unit, got.mean)}"
    if not got.attained:
        return f"{never}; the best window: {stands}, {mean}"
    return f"{title}: steady after {window.second:g} s: {criterion}: {stands}, {mean}"


def _stretch(series: "ValueSeries") -> str:
    """The time of its values; blank where there are none."""
    if not series.values:
        return ""
    begin_s, end_s = series.starts_s[0], series.starts_s[-1] + series.lengths_s[-1]
    return f" from {begin_s:g} s to {end_s:g} s" if begin_s else f" in {end_s:g} s"


def _block(named: "NamedSeries", criterion: "Criterion", best: "ScoredWindow | None", window_s: float) -> str:
    """Of the window that attained, or of the best one."""
    from ..control.criteria import fio_block

    if best is None:
        return json.dumps(
            {"series": named.name, "attained": 0, "criterion": None, "time_weighted_mean": None, "window": None}
        )
    values = [value for value in named.series.values[best.first : best.last + 1] if value is not None]
    block = fio_block(criterion, best.score, window_s, {criterion.focus.metric: values})
    window = {"begin_s": named.series.starts_s[best.first], "end_s": best.second}
    second = {"second": best.second} if best.score.attained else {}
    verdict = {"verdict": Verdict.PARTIAL} if _lacks_hosts(named, best) else {}
    here, of_all = named.hosts_at(best.first)
    hosts = {"hosts_in": here, "hosts_of": of_all} if of_all else {}
    mean = {"time_weighted_mean": best.score.mean}
    return json.dumps({"series": named.name, **verdict, **hosts, **second, **block, **mean, "window": window})
