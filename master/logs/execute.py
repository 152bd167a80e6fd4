"""Runs `ivypy percentiles`: takes the options, writes text and files, returns an exit code.

Rule: this module holds the order of the steps and nothing else: find the logs, place them on one clock, choose the
interval, analyse, check the thresholds, write.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from ..errors import OutputError, PlanError
from ..exit_codes import ExitCode
from ..output.named_files import save_own
from ..text.suggestions import suggestion
from ..text.units import format_duration
from .compat import CompatOptions, Tool, printer_of
from .faults import Fault, LogError
from .readers.detect_format import Hints
from .readers.find_logs import Found, find
from .readers.line_chunks import StreamError, copied, is_pipe
from .readers.records import NS_PER_MS, NS_PER_S
from .readers.source import Format, Source
from .render.write_result import text_of
from .result.build_series import Analysis, SeriesRequest
from .result.interval_length import SHORTEST_NS, Auto, choose
from .result.interval_statistics import Interpolation
from .result.series import Series
from .result.sla import Threshold, check_thresholds
from .result.table import WHOLE, LogResult
from .timeline.clock_alignment import HostStart, apart, begins_ns, misalignment, read_start_times, with_start_times
from .timeline.common_axis import placed_logs, steps_on_grid
from .timeline.resample import Weighting, tolerance_ns
from .timeline.unlogged_tail import read_totals

_MOST_ROWS = 5_000_000
_DEFAULT_PERCENTILES = (50.0, 95.0, 99.0, 99.9)
ALL_GROUP = "all=all"

Write = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PercentilesOptions:
    """The command line, parsed."""

    paths: tuple[Path, ...]
    interval: int | Auto | None  # ns; None: a second, or a run's own subinterval
    percentiles: tuple[float, ...] | None
    by: tuple[tuple[str, ...], ...] | None  # None: all; of several runs, run
    output_format: str
    output: Path | None
    plots: tuple[Path, ...]
    hgrm: tuple[Path, ...]
    instance: str  # the group that they show, but for pages
    start_times: Path | None
    json: tuple[Path, ...]
    thresholds: tuple[Threshold, ...]
    weighting: Weighting | None
    interpolation: Interpolation | None  # None: linear; of runs, midpoint
    exact: bool
    keep_going: bool
    check: bool
    hints: Hints
    max_start_spread_s: float
    align: str | None  # "clock" or "start"; None: start for runs of ivypy
    all_phases: bool  # of ivypy's runs: also what no measurement counts
    latencies: tuple[str, ...]  # of ivypy's runs: service, response
    compat: Tool | None
    compat_options: CompatOptions
    width: int | None = None  # of the terminal; None: there is none


def execute(options: PercentilesOptions, out: Write, log: Write) -> ExitCode:
    """`out` receives the result, `log` the notes about it. PlanError: the arguments or the logs."""
    if not any(map(is_pipe, options.paths)):
        return _execute(options, {}, out, log)
    from tempfile import TemporaryDirectory  # only pipes need it: the command starts sooner

    with TemporaryDirectory(prefix="ivypy-") as folder:
        copies = _copies(options.paths, Path(folder))
        return _execute(options, copies, out, log)


def _copies(paths: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """Files with the content of the pipes among the paths."""
    copies = {}
    faults = []
    for path in paths:
        try:
            if path not in copies and is_pipe(path):
                copies[path] = copied(path, folder)
        except StreamError as error:
            faults.append(Fault(str(path), str(error)))
    if faults:
        raise LogError(faults)
    return copies


def _execute(options: PercentilesOptions, copies: dict[Path, Path], out: Write, log: Write) -> ExitCode:
    if options.compat is not None:
        paths = [copies.get(path, path) for path in options.paths]
        lines = printer_of(options.compat)(paths, options.hints, options.compat_options)
        _deliver("".join(f"{line}\n" for line in lines), options.output, out)
        return ExitCode.OK
    logs = find(options.paths, options.hints, options.latencies, options.all_phases, copies)
    if options.check:
        return _check(logs, options, out)
    result = _analyse(logs, options)
    if options.output_format != "table" or options.output is not None:
        for note in (*result.notes, *(f"left out: {what}" for what in result.left_out)):
            log(note)
    width = options.width if options.output is None else None
    _deliver(text_of(result, options.output_format, width), options.output, out)
    not_drawn = _draw(result, options)
    code = _check_thresholds(result, options, log)
    if not_drawn and code in (ExitCode.OK, ExitCode.PARTIAL):
        raise type(not_drawn[0])("\n".join(map(str, not_drawn)))
    for fault in not_drawn:  # a breached threshold is the answer; the fault comes beside it
        log(str(fault))
    return code


def _analyse(logs: Found, options: PercentilesOptions) -> LogResult:
    starts = read_start_times(options.start_times) if options.start_times else {}
    sources, faults = _usable(logs, options, starts)
    is_of_runs = len({source.run for source in sources if source.format is Format.IVYPY}) > 1
    by = options.by or ((("run",) if is_of_runs else ("all",)),)
    placed = placed_logs(sources, by, options.align)
    wanted = options.percentiles or _DEFAULT_PERCENTILES
    question = SeriesRequest(
        SHORTEST_NS,
        by,
        tuple(sorted({*wanted, *(threshold.percentile for threshold in options.thresholds)})),
        options.weighting or Weighting.UNIFORM,
        options.interpolation,
        options.exact,
        (ALL_GROUP, options.instance) if options.plots or options.hgrm else (),
        read_totals(options.json) if options.json else None,
    )
    _check_options(question, sources)
    question, chosen = _with_length(question, options.interval, placed.sources, logs)
    is_on_clock = options.align == "clock" or (is_of_runs and not placed.apart_ns)
    placed, moved = (placed, []) if is_on_clock else steps_on_grid(placed, question.length_ns)
    answer = Analysis(placed.sources, logs.layouts, question).run()
    if answer.faults and not options.keep_going:
        raise LogError(list(answer.faults))
    faults += answer.faults
    notes = [
        *logs.notes,
        *_notes_on_steps(sources, by),
        *_notes_on(sources),
        *placed.notes,
        *chosen,
        *moved,
        *_finer_than_rows(question.length_ns, sources),
        *answer.notes,
        *_notes_on_spans(answer.spans, placed.sources, starts),
    ]
    settings = {
        "interval": format_duration(question.length_ns / NS_PER_S),
        "weighting": question.weighting.value,
        "interpolation": _interpolation_in_words(question, sources),
        "logs": str(len(sources)),
    }
    left_out = tuple(f"{fault} (left out: {fault.left_out})" for fault in faults)
    result = LogResult(
        answer.series,
        question.length_ns,
        question.percentiles,
        settings,
        tuple(notes),
        left_out,
        placed.zero_ns,
        placed.apart_ns,
        *_run_marks(placed.sources),
    )
    if not result.series:
        raise LogError(faults or [Fault(sources[0].name, "holds no I/Os, and nor does any other log")])
    if len(result.span) * len(result.series) > _MOST_ROWS:
        raise PlanError(
            f"--interval: {len(result.span):,} intervals for {len(result.series)} instances are too many rows; "
            "choose a longer interval"
        )
    return result


def _run_marks(sources: Sequence[Source]) -> tuple[tuple[tuple[int, str], ...], tuple[tuple[int, int], ...]]:
    """Of one run: where its steps begin, and the stretches that no measurement counts; nothing of anything else."""
    if len({source.run for source in sources}) != 1 or sources[0].format is not Format.IVYPY:
        return (), ()
    steps: dict[str, int] = {}
    stretches: set[tuple[int, int]] = set()
    for source in sorted(sources, key=lambda one: (one.step, one.host)):
        if source.job not in steps:  # hosts have the same boundaries
            stretches |= {(begin + source.start_ns, end + source.start_ns) for begin, end in source.not_measured}
        steps[source.job] = min(steps.get(source.job, begins_ns(source)), begins_ns(source))
    return tuple((at, name) for name, at in steps.items()), tuple(sorted(stretches))


def _usable(logs: Found, options: PercentilesOptions, starts: dict[str, HostStart]) -> tuple[list[Source], list[Fault]]:
    """The logs without fault, on one clock, and the faults of the others. LogError unless --keep-going."""
    sources, misplaced = with_start_times(logs.sources, starts)
    far = apart(sources, options.max_start_spread_s)
    faults = [*logs.faults, *misplaced, *_mixed_clocks(sources), *far]
    if faults and not options.keep_going:
        raise LogError(faults)
    faulty = {fault.path for fault in faults}
    sources = [source for source in sources if source.name not in faulty]
    if not sources:
        raise LogError(faults or [Fault("ivypy percentiles", "no logs were given")])
    return sources, faults


def _notes_on_spans(
    spans: dict[Source, tuple[int, int]], sources: Sequence[Source], starts: dict[str, HostStart]
) -> list[str]:
    """How well logs are aligned. Not of runs: their steps follow one another, and their hosts' clocks were measured."""
    of_logs = {source: span for source, span in spans.items() if source.format is not Format.IVYPY}
    return [*misalignment(sources, list(of_logs.values()), starts), *_other_lengths(of_logs)]


def _interpolation_in_words(question: SeriesRequest, sources: Sequence[Source]) -> str:
    if question.exact:
        return "none (exact)"
    return " and ".join(sorted({question.interpolation_of(source.format) for source in sources}))


def _check_options(question: SeriesRequest, sources: Sequence[Source]) -> None:
    if not question.exact:
        return
    if question.weighting.is_in_flight:
        raise PlanError(f"--exact counts I/Os where they completed; leave out --weighting {question.weighting}")
    if question.drawn:
        raise PlanError("--exact keeps no histograms to draw; leave out --plot and --hgrm, or --exact")
    histograms = [s.name for s in sources if s.format in (Format.FIO_HISTOGRAM, Format.IVYPY)]
    if histograms:
        raise PlanError(f"--exact needs logs of single I/Os; {histograms[0]} holds histograms")


def _mixed_clocks(sources: Sequence[Source]) -> list[Fault]:
    """Stamps from 1970 and stamps from a job's start cannot be laid on one another, unless the starts are given."""
    absolute = [s for s in sources if s.is_absolute]
    relative = [s for s in sources if s not in absolute]
    if not absolute or not relative:
        return []
    fewer, other = (relative, absolute) if len(relative) <= len(absolute) else (absolute, relative)
    what = "its job's start" if fewer is relative else "1970"
    return [
        Fault(s.name, f"counts time from {what}, {other[0].name} does not", "give the starts with --start-times")
        for s in fewer
    ]


def _with_length(
    question: SeriesRequest, interval: int | Auto | None, sources: Sequence[Source], logs: Found
) -> tuple[SeriesRequest, list[str]]:
    if interval is None:
        subintervals = [s.period_ns for s in sources if s.format is Format.IVYPY and s.period_ns]
        # A subinterval's real length is a little off its nominal one.
        interval = round(max(subintervals, default=NS_PER_S) / NS_PER_MS) * NS_PER_MS
    if not isinstance(interval, Auto):
        return replace(question, length_ns=interval), []
    periods = [source.period_ns for source in sources if source.period_ns]
    # Whole tenths of a second: a base of 1,002 ms would give odd intervals.
    tenth = NS_PER_S // 10
    base_ns = max(round(max(periods, default=tenth) / tenth) * tenth, tenth)
    trial = replace(question, length_ns=base_ns, by=(("all",),), drawn=(ALL_GROUP,), exact=False, totals=None)
    series = Analysis(sources, logs.layouts, trial).run().series
    chosen = [choose(s.histograms, base_ns, interval) for s in series if s.histograms is not None]
    if not chosen:
        return replace(question, length_ns=base_ns), []
    longest = max(chosen, key=lambda choice: choice.length_ns)
    return replace(question, length_ns=longest.length_ns), [longest.sentence(interval)]


def _finer_than_rows(length_ns: int, sources: Sequence[Source]) -> list[str]:
    """A warning where intervals are shorter than the rows of the logs."""
    near = tolerance_ns(np.array(length_ns), length_ns)
    longer = [s.period_ns for s in sources if s.period_ns and s.period_ns > length_ns + near]
    if not longer:
        return []
    return [
        f"intervals of {format_duration(length_ns / NS_PER_S)} are finer than the rows of {len(longer)} logs (up to "
        f"{format_duration(max(longer) / NS_PER_S)}): a row does not record when its I/Os "
        "completed, so they are spread evenly over it"
    ]


def _notes_on_steps(sources: Sequence[Source], by: Sequence[tuple[str, ...]]) -> list[str]:
    """Notes on the steps of runs that are merged, and on those whose own verdict speaks against a latency."""
    steps: dict[Path, set[str]] = {}
    invalid: dict[tuple[Path, str], dict[str, None]] = {}
    for source in sources:
        folder = source.path.parent
        if source.step_name:
            steps.setdefault(folder, set()).add(source.step_name)
        if source.is_discredited:
            invalid.setdefault((folder, source.quantity), {})[source.step_name] = None
    notes = [
        f"invalid by their verdict: {quantity} times of {_listed([*names])}; `ivypy show {folder}` says why"
        for (folder, quantity), names in invalid.items()
    ]
    most = max(map(len, steps.values()), default=1)
    if most > 1 and any("job" not in attributes for attributes in by):
        notes.append(f"{WHOLE} merges {most} steps, whose loads may differ; --by job has a row for each step")
    return notes


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < 4 else f"{len(names)} steps, {names[0]} to {names[-1]}"


def _notes_on(sources: Sequence[Source]) -> list[str]:
    """Notes on the formats that a reader of the numbers needs."""
    notes = []
    if any(s.format is Format.FIO_HISTOGRAM for s in sources):
        notes.append("fio's histogram logs hold completion latency (clat) only, and not the I/Os after the last row")
    if any(s.format is Format.FIO_LATENCY and s.fields == 4 and s.unit_ns == 1 for s in sources):
        notes.append("latency logs of 4 columns are taken to be nanoseconds (fio 2.99 on); --unit us for older ones")
    if any(s.unpaced or s.blank_rollups for s in sources):
        notes.append(
            "response times are blank, as in the run's own rows, where an instance was at max beside paced ones, and "
            "in the whole also where a step's load was not sustained"
        )
    if late := [s for s in sources if s.begins_late]:
        subject = "1 log begins" if len(late) == 1 else f"{len(late)} logs begin"
        after_s = max(s.first_ns for s in late) / NS_PER_S
        notes.append(
            f"{subject} up to {after_s:.0f} s after time 0, and no I/O took that long: they may count from "
            "another moment than the job's start (log_alternate_epoch_clock_id), so the time before is not covered"
        )
    if any(s.averaged for s in sources):
        notes.append(
            "logs with log_avg_msec hold means, or maxima with log_max_value, and do not record which: counts are of "
            "their rows, latencies of these values, and percentiles stay blank"
        )
    if any(s.averaged and s.direction_at > 2 for s in sources):
        notes.append("log_window_value=both: only the means are read, so latency_us_max is the largest mean")
    return notes


def _other_lengths(spans: dict[Source, tuple[int, int]]) -> list[str]:
    """Logs that end well before or after the others: their intervals are of fewer logs."""
    ends = {source.name: end for source, (_, end) in spans.items()}
    if len(ends) < 2:
        return []
    middle = sorted(ends.values())[(len(ends) - 1) // 2]
    begin = min(begin for begin, _ in spans.values())
    far = [name for name, end in ends.items() if abs(end - middle) > max((middle - begin) * 0.05, 2 * NS_PER_S)]
    return [
        f"{name}: ends at {(ends[name] - begin) / NS_PER_S:.3f} s, where the others end near "
        f"{(middle - begin) / NS_PER_S:.3f} s; the column `logs` counts the logs of each interval"
        for name in sorted(far)
    ]


def _check_thresholds(result: LogResult, options: PercentilesOptions, log: Write) -> ExitCode:
    outcomes = check_thresholds(result, options.thresholds)
    for outcome in outcomes:
        log(outcome.sentence())
    if any(outcome.broken for outcome in outcomes):
        return ExitCode.SLO_MISSED
    if any(outcome.discredited for outcome in outcomes):
        return ExitCode.INVALID
    return ExitCode.PARTIAL if result.left_out else ExitCode.OK


def _check(logs: Found, options: PercentilesOptions, out: Write) -> ExitCode:
    from .result.accuracy_check import check

    if logs.faults:
        raise LogError(list(logs.faults))
    length_ns = options.interval if isinstance(options.interval, int) else NS_PER_S
    checked = check(logs.sources, options.percentiles or _DEFAULT_PERCENTILES, length_ns)
    lines = [*logs.notes, *checked.notes, *(compared.sentence() for compared in checked.compared)]
    lines.append("within the bucket's width in every row's own interval: " + ("yes" if checked.is_within else "NO"))
    are_counted = not checked.in_other_buckets
    lines.append(
        f"I/Os in the bucket of their latency in every row: {'yes' if are_counted else 'NO'} "
        f"({checked.in_other_buckets} in another)"
    )
    worst = checked.worst
    off = f"; percentiles there are off by up to {worst.worst_relative:,.1%} (p{worst.percentile:g})" if worst else ""
    lines.append(
        f"I/Os in their own interval of {format_duration(length_ns / NS_PER_S)}: "
        f"{'yes' if checked.is_placed else 'NO'} ({checked.misplaced:.1%} may be in another){off}"
    )
    _deliver("".join(f"{line}\n" for line in lines), options.output, out)
    return ExitCode.OK if checked.is_within and are_counted and checked.is_placed else ExitCode.INVALID


def _deliver(text: str, path: Path | None, out: Write) -> None:
    if path is None:
        out(text)
        return
    save_own(path, lambda place: place.write_text(text, encoding="utf-8"))


def _draw(result: LogResult, options: PercentilesOptions) -> list[PlanError | OutputError]:
    """Pictures and HdrHistogram's files show one group of the first kind of log that has it; pages have every group,
    and begin with `all`. Says what could not be drawn, once all others are."""
    faults: list[PlanError | OutputError] = []
    kept = [series for series in result.series if series.histograms is not None]
    for path in (*options.plots, *options.hgrm):
        group = ALL_GROUP if path.suffix == ".html" else options.instance
        drawn = [series for series in kept if str(series.instance) == group]
        try:
            if not drawn:
                raise PlanError(_why_not_drawn(result, group, path))
            save_own(path, partial(_draw_one, result, [*drawn, *(one for one in kept if one not in drawn)]))
        except (PlanError, OutputError) as error:
            text = str(error)
            faults.append(type(error)(text if text.startswith(str(path)) else f"{path}: {text}"))
    return faults


def _why_not_drawn(result: LogResult, group: str, path: Path) -> str:
    groups = {str(series.instance) for series in result.series}
    if group in groups:
        return "response times that are blank in part are not drawn; leave out --latency response"
    if group == ALL_GROUP:
        other = "" if path.suffix == ".html" else ", or choose a group with --instance"
        return f"`all` is drawn, which --by does not have: add it{other}"
    return f"--instance {group}: --by makes no such group{suggestion(group, groups)}"


def _draw_one(result: LogResult, drawn: Sequence[Series], path: Path) -> None:
    """`drawn`: what can be drawn, the series of the chosen group first."""
    from .render import hdr, plot_page, plot_png

    series = drawn[0]
    match path.suffix:
        case ".png":
            plot_png.draw(result, series, path)
        case ".html":
            plot_page.draw(result, drawn, path)
        case ".hgrm":
            path.write_text(hdr.hgrm(series), encoding="ascii")
        case ".hlog":
            path.write_text(hdr.hlog(series), encoding="ascii")


def interval_ms(interval: int | Auto | None) -> int:
    """For the old tools, which know only a fixed interval."""
    if isinstance(interval, Auto):
        raise PlanError("--interval auto does not go with --compat; write for example 1s")
    return (interval or NS_PER_S) // NS_PER_MS
