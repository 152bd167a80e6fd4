"""The command `ivypy steady`: a criterion applied to finished data, with the words that a plan's `steady` has.

Rule: only words are looked at here; everything heavy is imported when the command runs, so that --help is quick.
"""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..control.choices import CRITERIA
from ..errors import PlanError
from ..verdicts import ExitCode

if TYPE_CHECKING:
    from ..control.criteria import Criterion
    from ..control.offline import Attained
    from ..logs.readers.metric_series import Named

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("paths", nargs=-1, required=True, type=_PATH, metavar="FOLDER|FIO.json|FILE.csv ...")
@click.option("--criterion", type=click.Choice(CRITERIA), default="iops", show_default=True, help="As in plans.")
@click.option("--limit", default="2%", show_default=True, help="A percentage of the mean, or an amount of the metric.")
@click.option("--window", default="30s", show_default=True, metavar="TIME", help="What is judged.")
@click.option("--ramp", default="0", show_default=True, metavar="TIME", help="Not judged, at the beginning.")
@click.option("--latency", default="mean", show_default=True, help="Of the latency criteria: mean, p50 ... p99_99.")
@click.option("--metric", help="The column to look at, of any criterion. [default: the criterion's own]")
@click.option("--rollup", default="all", show_default=True, help="Of run folders: each instance of this type.")
@click.option("--interval", default="1s", show_default=True, metavar="TIME", help="Between two rows of a CSV file.")
@click.option("--json", "as_json", is_flag=True, help="Print blocks like the steadystate of fio's JSON.")
def steady(
    paths: tuple[Path, ...], criterion: str, limit: str, window: str, ramp: str, latency: str, metric: str | None,
    rollup: str, interval: str, as_json: bool,
) -> ExitCode:  # fmt: skip
    """When would a test have stopped for a steady state, and why?

    Looks at finished data: a run folder, the seconds that fio's JSON keeps of its window, or a column of a CSV file.
    Ends with 6 if some series never was steady.
    """
    from ..control.offline import first_attained
    from ..logs.readers.metric_series import series_of
    from ..text.units import parse_duration

    try:
        window_s, ramp_s, interval_s = (parse_duration(text) for text in (window, ramp, interval))
        if interval_s <= 0:
            raise ValueError(f"--interval {interval}: between two rows there is some time, for example 1s")
        made = _criterion(criterion, limit, latency, metric, rollup)
    except ValueError as error:
        raise PlanError(str(error)) from None
    never = False
    for path in paths:
        for named in series_of(path, made.focus.metric, rollup, interval_s):
            fitted = _fitted(made, named, window_s)
            attained = first_attained(fitted, named.series, ramp_s, named.breaks)
            never |= attained is None
            click.echo(_block(named, fitted, attained, window_s) if as_json else _sentence(named, fitted, attained))
    return ExitCode.NOT_REACHED if never else ExitCode.OK


def _criterion(name: str, limit: str, latency: str, metric: str | None, rollup: str) -> "Criterion":
    """Raises ValueError."""
    from dataclasses import replace

    from ..control.choices import USUAL_METRIC, Rule
    from ..control.criteria import Criterion, criterion_named
    from ..control.focus import Focus
    from ..control.observe import FOCUS_METRICS
    from ..text.metric_amounts import parse_amount

    relative = limit.strip().endswith("%")
    if name in (Rule.SNIA, Rule.T):
        made = Criterion(Rule(name), Focus(metric or USUAL_METRIC, rollup), 2)
    else:
        made = criterion_named(name, 2, rollup=rollup, latency=latency)
        if metric is None and made.focus.metric not in FOCUS_METRICS:
            raise ValueError(f"--latency {latency}: there is no metric {made.focus.metric}")
        made = replace(made, focus=Focus(metric or made.focus.metric, rollup))
    return replace(made, limit=parse_amount("_percent" if relative else made.focus.metric, limit), relative=relative)


def _fitted(criterion: "Criterion", named: "Named", window_s: float) -> "Criterion":
    """The criterion with a window of so many of the series' values. Raises PlanError."""
    from dataclasses import replace
    from statistics import median

    length_s = median(named.series.lengths_s)
    fitted = replace(criterion, window=math.ceil(round(window_s / length_s, 3)))
    if found := "; ".join(text for _, text in fitted.faults()):
        raise PlanError(f"{named.name}, a value every {length_s:g} s: {found}")
    return fitted


def _sentence(named: "Named", criterion: "Criterion", attained: "Attained | None") -> str:
    from ..text.metric_amounts import amount_in_words

    series = named.series
    if attained is None:
        end_s = series.starts_s[-1] + series.lengths_s[-1]
        return f"{named.name}: not steady in {end_s:g} s: {criterion} over {criterion.window} values"
    begin_s, got = series.starts_s[attained.first], attained.score
    return (
        f"{named.name}: steady after {attained.second:g} s: {criterion}: {criterion.in_words(got.value, 4)} "
        f"from {begin_s:g} s on, mean {amount_in_words(criterion.focus.metric, got.mean)}"
    )


def _block(named: "Named", criterion: "Criterion", attained: "Attained | None", window_s: float) -> str:
    from ..control.criteria import fio_block

    if attained is None:
        return json.dumps({"series": named.name, "attained": 0})
    values = [value for value in named.series.values[attained.first : attained.last + 1] if value is not None]
    block = fio_block(criterion, attained.score, window_s, {criterion.focus.metric: values})
    return json.dumps({"series": named.name, "second": attained.second, **block})
