"""The command `ivypy percentiles`: its options.

Rule: this module only parses words; heavy modules are imported when the command runs, so that --help is quick.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from ..errors import PlanError
from ..exit_codes import ExitCode
from ..live.terminal_width import columns_of
from .table_options import TableForm, form_of, table_options

if TYPE_CHECKING:
    from ..logs.execute import PercentilesOptions

_PATH = click.Path(path_type=Path)
_FILE = click.Path(path_type=Path, dir_okay=False)
_COMPAT = "compat"
_OF_COMPAT = ("show", "output_unit", "divisor", "decimals", "directions")  # options that nothing else reads
_T = TypeVar("_T")  # what an option is parsed to


class _WithCompatApart(click.Command):
    """Lists the options that only --compat reads after the others."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        of_compat: list[tuple[str, str]] = []
        for option in self.get_params(ctx):
            if record := option.get_help_record(ctx):
                (of_compat if option.name in (_COMPAT, *_OF_COMPAT) else own).append(record)
        for title, records in (("Options", own), ("Options to print what older tools print", of_compat)):
            with formatter.section(title):
                formatter.write_dl(records)


@click.command(cls=_WithCompatApart)
@click.argument("paths", nargs=-1, required=True, type=_PATH, metavar="LOG|FOLDER ...")
@click.option("--interval", metavar="LENGTH|auto:10%[:p95]",
              help="Length of the intervals, or the largest error of the named percentile in them. "
              "[default: 1s; of runs, their subinterval]")  # fmt: skip
@click.option("--percentiles", "percentiles_text", metavar="50,99,...", help="Percentiles. [default: 50,95,99,99.9]")
@click.option("--by", metavar="all,host,...",
              help="Groups: all, run, host, job, file, direction, or several joined as in host+direction. "
              "[default: all; of several runs, run]")  # fmt: skip
@table_options
@click.option("--format", "output_format", type=click.Choice(["csv", "json", "md", "table"]), metavar="table",
              help="Print the table where the output is no terminal: there it is CSV.")  # fmt: skip
@click.option("-o", "--output", type=_FILE, help="Write to a file instead of standard output.")
@click.option("--plot", "plots", multiple=True, type=_FILE, metavar="FILE.png|.html",
              help="Draw percentiles, a heat map and the rate; a page has a slider and each group.")  # fmt: skip
@click.option(
    "--hgrm", multiple=True, type=_FILE, metavar="FILE.hgrm|.hlog", help="Write the format of HdrHistogram's viewers."
)
@click.option("--instance", metavar="host=lab01",
              help="The group of --by that a .png and --hgrm show; a page has each.  [default: all]")  # fmt: skip
@click.option("--weighting", type=click.Choice(["uniform", "in-flight", "in-flight-to-row-end"]),
              help="Count I/Os where they completed, or where they were in flight: those of a row until any time in "
              "it, or until its end. [default: uniform]")  # fmt: skip
@click.option("--interpolation", type=click.Choice(["linear", "midpoint"]),
              help="Within a bucket. [default: linear; of runs, midpoint, as their own rows]")  # fmt: skip
@click.option("--exact", is_flag=True, help="Keep and sort single I/Os instead of counting them in buckets.")
@click.option("--sla", metavar="p95<=20ms,...", help="Thresholds for every interval; exit 5 if one is breached.")
@click.option("--start-times", type=_FILE, metavar="HOSTS.csv",
              help="Start of each host's jobs: host,start[,drift_ppm][,uncertainty_s].")  # fmt: skip
@click.option("--fio-json", "json_files", metavar="FILE", multiple=True, type=_FILE,
              help="fio's JSON (json+) of the same jobs: estimate the I/Os that its histogram logs lack.")  # fmt: skip
@click.option("--keep-going", is_flag=True, help="Leave out faulty parts, list them, and exit 7.")
@click.option("--check", is_flag=True,
              help="Compare histogram logs with logs of every I/O of the same run: PER_IO.log HIST.log.")  # fmt: skip
@click.option("--latency", "latencies", type=click.Choice(["service", "response", "both"]), default="both",
              show_default=True, help="For runs of ivypy: which latency.")  # fmt: skip
@click.option("--phases", type=click.Choice(["loaded", "all"]), default="loaded", show_default=True,
              help="For runs of ivypy: what a measurement may count (loaded), or "
              "also warmup, transients, tail and cooldown (all).")  # fmt: skip
@click.option(
    "--max-start-spread", default="5m", show_default=True, help="Largest distance between the starts of logs."
)
@click.option("--align", type=click.Choice(["clock", "start"]),
              help="Stamps from 1970: intervals at whole multiples of the clock, or from the first log's begin. "
              "[default: clock; with runs, and where all histogram rows end together, start]")  # fmt: skip
@click.option("--input-format", type=click.Choice(["fio-histogram", "fio-latency", "smallfile"]),
              help="Format of the logs. [default: detected]")  # fmt: skip
@click.option(
    "--unit", type=click.Choice(["ns", "us"]), help="Unit of the logs' buckets or latencies. [default: detected]"
)
@click.option("--groups", type=click.IntRange(2, 56), help="Bucket groups of a recompiled fio. [default: detected]")
@click.option("--coarseness", type=click.IntRange(0, 6), help="log_hist_coarseness. [default: detected]")
@click.option("--log-hist-msec", type=click.IntRange(min=1), help="fio's log_hist_msec. [default: detected]")
@click.option("--compat", type=click.Choice(["histo-log-pctiles", "fiologparser_hist", "fiologparser"]),
              help="Print what this tool prints, including its errors (docs/internals/percentiles.md).")  # fmt: skip
@click.option("--show", type=click.Choice(["default", "sum", "average", "full", "all"]), default="default",
              help="With --compat fiologparser: its -s, -a, -f, -A.")  # fmt: skip
@click.option("--output-unit", type=click.Choice(["nsec", "usec", "msec"]), default="usec",
              help="With --compat histo-log-pctiles.")  # fmt: skip
@click.option("--divisor", type=click.IntRange(min=1), default=1, help="With --compat fiologparser*.")
@click.option("--decimals", type=click.IntRange(0, 15), default=3, help="With --compat fiologparser_hist.")
@click.option("--directions", default="", metavar="rwtm", help="With --compat fiologparser_hist: a row for each.")
def percentiles(**words: Any) -> ExitCode:
    """Latency percentiles over time, from logs of fio and smallfile and from runs of ivypy.

    Merges the logs of all threads and hosts on aligned intervals, then takes the percentiles. Reads fio's histogram
    and latency logs (fio 2 and 3, any coarseness, gzip, xz, zstd), smallfile's response times, and run folders; it
    detects the format of each. A folder stands for the logs in it, - for standard input.
    """
    from ..logs.execute import execute

    return execute(_options(words), lambda text: click.echo(text, nl=False), lambda text: click.echo(text, err=True))


def _options(words: dict[str, Any]) -> "PercentilesOptions":
    """PlanError names every option that is wrong."""
    from ..logs.compat import CompatOptions, Tool
    from ..logs.execute import ALL_GROUP, PercentilesOptions, interval_ms
    from ..logs.readers.bucket_layouts import LayoutHints
    from ..logs.readers.detect_format import Hints
    from ..logs.readers.source import Format
    from ..logs.result.interval_length import parse_interval, parse_percentiles
    from ..logs.result.interval_statistics import Interpolation
    from ..logs.result.sla import parse_sla
    from ..logs.timeline.resample import Weighting
    from ..logs.timeline.rollups import parse_by
    from ..text.units import parse_duration

    faults = [] if words["compat"] else _without_compat()

    def read(option: str, parse: Callable[[str], _T], text: str | None) -> _T | None:
        try:
            return parse(text) if text else None
        except ValueError as error:
            faults.append(f"--{option}: {error}")
            return None

    form = form_of(words, format=words["output_format"] is not None)
    interval = read("interval", parse_interval, words["interval"])
    percentages = read("percentiles", parse_percentiles, words["percentiles_text"])
    by = read("by", parse_by, words["by"])
    thresholds = read("sla", parse_sla, words["sla"])
    spread_s = read("max-start-spread", parse_duration, words["max_start_spread"])
    faults += _endings("plot", words["plots"], (".png", ".html")) + _endings("hgrm", words["hgrm"], (".hgrm", ".hlog"))
    if words["instance"] and not words["hgrm"] and not any(path.suffix == ".png" for path in words["plots"]):
        faults.append("--instance chooses what --plot FILE.png and --hgrm show; give one of them")
    if set(words["directions"]) - set("rwtm"):
        faults.append(f"--directions: {words['directions']!r} is not made of the letters r, w, t and m")
    if faults or spread_s is None:
        raise PlanError("\n".join(faults) or "--max-start-spread must not be blank")
    weighting = Weighting(words["weighting"]) if words["weighting"] else None
    compat = Tool(words["compat"]) if words["compat"] else None
    return PercentilesOptions(
        paths=words["paths"],
        interval=interval,
        percentiles=percentages,
        by=by,
        output_format=words["output_format"] or _FORMATS.get(form) or _default_format(words["output"]),
        output=words["output"],
        plots=words["plots"],
        hgrm=words["hgrm"],
        instance=words["instance"] or ALL_GROUP,
        start_times=words["start_times"],
        json=words["json_files"],
        thresholds=thresholds or (),
        weighting=weighting,
        interpolation=Interpolation(words["interpolation"]) if words["interpolation"] else None,
        exact=words["exact"],
        keep_going=words["keep_going"],
        check=words["check"],
        hints=Hints(
            Format(words["input_format"]) if words["input_format"] else None,
            LayoutHints(words["unit"], words["groups"], words["coarseness"]),
            words["log_hist_msec"],
        ),
        max_start_spread_s=spread_s,
        align=words["align"],
        all_phases=words["phases"] == "all",
        latencies=("service", "response") if words["latencies"] == "both" else (words["latencies"],),
        compat=compat,
        compat_options=CompatOptions(
            interval_ms=interval_ms(interval) if compat else 0,
            percentiles=percentages,
            log_hist_msec=words["log_hist_msec"],
            output_unit=words["output_unit"],
            weighted=weighting is not Weighting.UNIFORM,
            divisor=words["divisor"],
            decimals=words["decimals"],
            directions=words["directions"],
            show=words["show"],
        ),
        width=columns_of(sys.stdout),
    )


def _without_compat() -> list[str]:
    """The options of the old tools that were given, each with what it needs."""
    source_of = click.get_current_context().get_parameter_source
    given = [name.replace("_", "-") for name in _OF_COMPAT if source_of(name) is ParameterSource.COMMANDLINE]
    return [f"--{option}: it needs --compat, and has no effect without it" for option in given]


def _endings(option: str, paths: tuple[Path, ...], known: tuple[str, ...]) -> list[str]:
    return [
        f"--{option} {path}: the name must end in {' or '.join(known)}" for path in paths if path.suffix not in known
    ]


_FORMATS = {TableForm.JSON: "json", TableForm.CSV: "csv", TableForm.MARKDOWN: "md"}


def _default_format(output: Path | None) -> str:
    """By the ending .json, .md or .csv of the name; a terminal gets the table."""
    if output is not None:
        return {".json": "json", ".md": "md", ".txt": "table"}.get(output.suffix, "csv")
    return "table" if sys.stdout.isatty() else "csv"
