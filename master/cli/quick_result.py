"""The result of `ivypy quick`: a few lines, from the run's summary.

Rule: pure. It shows the row that summary.all.csv has, and discredited figures in brackets as everywhere.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from ..causes import in_options
from ..exit_codes import ExitCode
from ..live.reports import RunEnds
from ..rollup.figures import FLUSH, RELEASES
from ..rollup.metrics import HEADLINE_STATISTICS, Quantity
from ..summary.headline import DIRECTIONS, IOPS, NARROW, NARROWEST, SLIM, marked, names_of
from ..summary.measured import MeasurementRow
from ..summary.search_probes import disturbed_probes, number_in, probe_lines, search_result
from ..summary.steps_table import advice_lines, details_lines, in_memory, is_told, why_of, with_joint
from ..text.scaled import BLANK, scaled_count, scaled_size, scaled_time
from ..text.table import ColumnGroup, TextColumn, header_lines, row_line
from ..text.wrapping import wrapped
from ..verdicts import Reason, Verdict

STATISTICS: Final = {
    NARROW: HEADLINE_STATISTICS,
    SLIM: ("mean", "p99", "max"),
    NARROWEST: ("p99",),
}  # by the width of the result
MOST_LINES: Final = 3  # of a reason
MOST_PROBES: Final = 8
CUT: Final = " ..."  # stands for the rest of it
DEEPEST: Final = 3  # parentheses that are closed there

Row = Mapping[str, str]  # of a CSV file, by column


def result_lines(
    heading: str,
    ends: RunEnds,
    summary: Sequence[Row],
    luns: Sequence[Row],
    probes: Sequence[Row] = (),
    *,
    width: int = NARROW,
) -> list[str]:
    """Lines with what was driven, the figures of the measurement that the last step stands for, the verdict, the
    folder.

    `ends`: the run's end; `summary`: rows of summary.all.csv; `luns`: of luns.csv; `probes`: of find.csv.
    """
    width = max((least for least in STATISTICS if least <= width), default=NARROWEST)
    lines = [f"{heading}, on {driven(luns)}"]
    if len(lines[0]) > width:
        lines = [*_fitted(heading, width), f"on {driven(luns)}"]  # a path is never cut
    measured = [step.standing for step in ends.steps]
    if measured and summary:
        last = measured[-1]
        lines += [_before(one) for one in measured[:-1][-1:]]
        if probes:
            for sentence in (
                search_result(probes, last.verdict, last.findings),
                disturbed_probes(probes, last.findings),
            ):
                lines += wrapped(in_options(sentence), width) if sentence else []
        # Of a step that was repeated the last attempt; a row that was torn is none.
        row: Row = next((row for row in reversed(summary) if row["name"] == last.name), {})
        figures = _figures(row, last, STATISTICS[width])
        table = [*header_lines(_columns(STATISTICS[width])), *figures] if figures else _no_figures(last, probes, width)
        lines += ["", *table, ""]
        lines += _verdict(last, ends.folder, width)
    else:
        lines += ["nothing was measured", *wrapped(ends.words, width)]
    if measured and ends.exit_code == ExitCode.INTERRUPTED:
        lines += wrapped(ends.words, width)
    return [*lines, ends.folder]


def driven(luns: Sequence[Row]) -> str:
    """ "/dev/sdb (1.46 TiB)", "/dev/sdb and 3 more (5.84 TiB)"."""
    if not luns:
        return "no LUN"
    total = scaled_size(sum(int(one["size"]) for one in luns))
    first = luns[0]["path"] if luns[0]["host"] == "local" else f"{luns[0]['host']}:{luns[0]['path']}"
    if len(luns) == 1:
        return f"{first} ({total})"
    return f"{first} and {len(luns) - 1} more ({total})"


def _before(row: MeasurementRow) -> str:
    """The step that the last one refers to."""
    (mean,) = names_of(Quantity.SERVICE, "mean")
    return f"{row.name}: {row.shown(IOPS)} IOPS, mean {row.shown(mean)} ({row.verdict})"


def _columns(statistics: Sequence[str]) -> list[ColumnGroup]:
    times = (TextColumn(one.replace("_", "."), 9) for one in statistics)
    return [ColumnGroup("", (TextColumn("", -8), TextColumn("IOPS", 8), TextColumn("rate", 12), *times))]


def _figures(row: Row, measured: MeasurementRow, statistics: Sequence[str]) -> list[str]:
    """A line for reads, one for writes, one for flushes ..., as far as there were any; response times below them where
    there are some."""
    groups, lines = _columns(statistics), []
    for kind in (*DIRECTIONS, *RELEASES):
        if not number_in(row, f"{kind}_iops"):
            continue
        rate = number_in(row, f"{kind}_mib_per_s")
        moved = BLANK if rate is None else f"{scaled_size(round(rate * 2**20))}/s"
        rates = [marked(text, measured.rate_verdict) for text in (scaled_count(number_in(row, f"{kind}_iops")), moved)]
        service = _times(row, f"{kind}_service_us", measured.service_verdict, statistics)
        lines.append(row_line(groups, [kind, *rates, *service]))
        if number_in(row, f"{kind}_response_us_mean") is not None:
            response = _times(row, f"{kind}_response_us", measured.response_verdict, statistics)
            lines.append(row_line(groups, ["response", "", "", *response]))
    if number_in(row, f"{FLUSH}_iops"):
        flushes = marked(scaled_count(number_in(row, f"{FLUSH}_iops")), measured.rate_verdict)
        service = _times(row, f"{FLUSH}_service_us", measured.service_verdict, statistics)
        lines.append(row_line(groups, [FLUSH, flushes, "", *service]))
    return lines


def _no_figures(measured: MeasurementRow, probes: Sequence[Row], width: int) -> list[str]:
    """Why there are none; of a search what its newest probes measured."""
    if any(one.reason is Reason.NO_SAMPLES for one in measured.findings):
        return ["no I/O was completed"]
    if not probes:
        return ["there is no measurement to show"]
    return probe_lines(probes[-MOST_PROBES:], width)


def _times(row: Row, prefix: str, verdict: Verdict, statistics: Sequence[str]) -> list[str]:
    return [marked(scaled_time(number_in(row, f"{prefix}_{one}")), verdict) for one in statistics]


def _verdict(measured: MeasurementRow, folder: str, width: int) -> list[str]:
    """The verdict and its cause, which figures can be used, a remedy, and how to have all reasons."""
    lines = [f"{measured.verdict}{with_joint(why_of(measured))}"]
    lines += in_memory(measured)
    lines += [f"  {in_options(line)}" for line in advice_lines(measured, set())]
    pieces = [_fitted(line, width) for line in lines]
    shown = [piece for some in pieces for piece in some]
    is_whole = all(" ".join(some).split() == line.split() for some, line in zip(pieces, lines, strict=True))
    return shown if is_whole and is_told(measured) else [*shown, *details_lines(measured.findings, folder)]


def _fitted(text: str, width: int) -> list[str]:
    """At most MOST_LINES, the last with an end mark where more was cut, without words that are longer than a line:
    paths, mostly, which the CSV has."""
    shown = " ".join(word if len(word) < width - 8 else f"{word[: width // 2]}~" for word in text.split(" "))
    lines = wrapped(shown, width)
    if len(lines) <= MOST_LINES:
        return lines
    *whole, last = lines[:MOST_LINES]
    kept = "".join([*whole, last])
    end = CUT + ")" * min(kept.count("(") - kept.count(")"), DEEPEST)
    while len(last) + len(end) > width:
        last = last.rpartition(" ")[0]
    return [*whole, f"{last}{end}"]
