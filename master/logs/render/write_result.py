"""A result as CSV, JSON, or a table for eyes.

Rule: what is shown is the table's rows (result/table.py); a writer only chooses digits. In CSV, latencies of runs have
the digits of the run's own rows, others a thousandth of a microsecond; rates, seconds and counts have a millionth.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from io import StringIO
from typing import Any, Final, TextIO

from ...text.row_texts import markdown_table, markdown_text
from ...text.wrapping import wrapped
from ..readers.source import Format
from ..result.table import NO_NUMBER, WHOLE, LogResult, Row, columns, latency_text, rows

_Digits = Callable[[float | None], str]

TABLE: Final = "table"
_FORMAT_VERSION: Final = 1
_GAP: Final = 2  # blanks between columns of a table
_COUNT_DIGITS: Final = 6  # rows that an interval cuts leave fractions of I/Os


def number(value: float | None, digits: int = 3) -> str:
    """A number without needless zeros, of one digit or more after the point; blank for None."""
    if value is None:
        return ""
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")


def write_csv(result: LogResult, out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns(result.percentiles))
    for series in result.series:
        for row in rows(result, series):
            writer.writerow(_cells(result, row))


def _cells(result: LogResult, row: Row) -> list[str]:
    instance = row.series.instance
    real, time = _figures_of_runs() if instance.format == Format.IVYPY else (number, number)
    at_least = _at_least(row.saturated)
    return [
        instance.rollup_type,
        instance.value,
        instance.format,
        instance.quantity_name,
        WHOLE if row.interval is None else str(row.interval),
        number(row.start_s, 6),
        number(row.end_s, 6),
        row.start_utc,
        f"{row.logs}/{len(row.series.spans)}",
        str(len(result.left_out)),
        number(row.count, _COUNT_DIGITS),
        number(row.covered_s, 6),
        number(row.iops, 6),
        time(row.low_us),
        at_least + real(row.mean_us),
        at_least + real(row.stdev_us),
        at_least + time(row.high_us),
        *(cell for p in row.percentiles for cell in (_at_least(p.at_least) + time(p.us), number(p.width_us))),
        row.notes,
    ]


def _at_least(is_lower_bound: bool) -> str:
    return ">=" if is_lower_bound else ""


@cache
def _figures_of_runs() -> tuple[_Digits, _Digits]:
    """How a run's own rows print means and deviations, and how they print times."""
    from ...rollup.metrics import Precision  # with all metrics, which logs need not wait for

    return _digits_of(Precision.REAL.value), _digits_of(Precision.TIME.value)


def _digits_of(precision: str) -> _Digits:
    return lambda us: "" if us is None else precision % us


def write_json(result: LogResult, out: TextIO) -> None:
    document = {
        "format_version": _FORMAT_VERSION,
        "settings": result.settings,
        "notes": list(result.notes),
        "left_out": list(result.left_out),
        "series": [
            {
                "rollup_type": series.instance.rollup_type,
                "rollup_instance": series.instance.value,
                "format": series.instance.format,
                "quantity": series.instance.quantity_name,
                "rows": [_object(row) for row in rows(result, series)],
            }
            for series in result.series
        ],
    }
    json.dump(document, out, indent=1, allow_nan=False)
    out.write("\n")


def _object(row: Row) -> dict[str, Any]:
    return {
        "interval": WHOLE if row.interval is None else row.interval,
        "start_s": row.start_s,
        "end_s": row.end_s,
        "start_utc": row.start_utc or None,
        "logs": row.logs,
        "of_logs": len(row.series.spans),
        "count": row.count,
        "covered_s": row.covered_s,
        "iops": row.iops,
        "latency_us": {
            "min": row.low_us,
            "mean": row.mean_us,
            "stdev": row.stdev_us,
            "max": row.high_us,
            "at_least": row.lower_bounds,
            **{p.name: {"value": p.us, "width": p.width_us, "at_least": p.at_least} for p in row.percentiles},
        },
        "notes": row.notes,
    }


def _iops(iops: float | None) -> str:
    if iops is None:
        return "-"
    return f"{iops:,.0f}" if iops >= 10 else number(iops, 2)


def write_table(result: LogResult, out: TextIO, width: int | None = None) -> None:
    """`width`: of the terminal that it is for; columns that it has no room for are left out, and named."""
    left_out: dict[str, None] = {}
    for title, lines in _tables(result):
        fitting, without = fitting_columns(lines, width)
        left_out |= dict.fromkeys(without)
        _write_wrapped([title], out, width)
        _write_aligned(fitting, out)
        out.write("\n")
    too_wide = [f"note: left out for the width: {', '.join(left_out)}; --csv has all"] if left_out else []
    _write_wrapped([*too_wide, *_notes(result)], out, width)


def _write_wrapped(lines: Iterable[str], out: TextIO, width: int | None) -> None:
    for line in lines:
        out.writelines(f"{piece}\n" for piece in (wrapped(line, width) if width else [line]))


def fitting_columns(lines: list[list[str]], width: int | None) -> tuple[list[list[str]], list[str]]:
    """The columns that there is room for, and the names of the others: those that the rest says, then the lower
    percentiles."""
    heads = lines[0]
    lower = [name for name in heads if name.startswith("p")][:-1]
    left_out: list[str] = []
    for name in ("end s", "count", "min", "logs", *lower, "mean"):
        if width is None or sum(_widths(lines)) + _GAP * (len(lines[0]) - 1) <= width:
            break
        place = lines[0].index(name)
        lines = [[*line[:place], *line[place + 1 :]] for line in lines]
        left_out.append(name)
    return lines, left_out


def write_markdown(result: LogResult, out: TextIO) -> None:
    for title, (heads, *lines) in _tables(result):
        out.write(f"{markdown_text(title)}\n\n{markdown_table(heads, lines)}\n")
    out.writelines(f"- {markdown_text(note)}\n" for note in _notes(result))


def _notes(result: LogResult) -> list[str]:
    return [*(f"note: {note}" for note in result.notes), *(f"left out: {part}" for part in result.left_out)]


def _tables(result: LogResult) -> Iterator[tuple[str, list[list[str]]]]:
    """Of each slice a title, and the rows with the columns' names first."""
    percentiles = [f"p{p:g}" for p in result.percentiles]
    heads = ["start s", "end s", "logs", "count", "iops", "min", "mean", *percentiles, "max", ""]
    for series in result.series:
        instance = series.instance
        lines = [heads]
        for row in rows(result, series):
            lines.append(
                [
                    WHOLE if row.interval is None else number(row.start_s),
                    number(row.end_s),
                    f"{row.logs}/{len(series.spans)}",
                    f"{row.count:,.0f}",
                    _iops(row.iops),
                    *_latencies(row),
                    row.notes,
                ]
            )
        yield f"{instance}   {instance.quantity_name} of {instance.format} logs", lines


def _latencies(row: Row) -> list[str]:
    """For eyes; in brackets, as in all tables, where the verdict of their step speaks against them."""
    texts = [
        latency_text(row.low_us),
        latency_text(row.mean_us, row.saturated),
        *(latency_text(p.us, p.at_least) for p in row.percentiles),
        latency_text(row.high_us, row.saturated),
    ]
    return [f"[{text}]" if row.is_discredited and text != NO_NUMBER else text for text in texts]


def _write_aligned(lines: list[list[str]], out: TextIO) -> None:
    wide = _widths(lines)[:-1]
    gap = " " * _GAP
    for line in lines:
        cells = [cell.rjust(width) for cell, width in zip(line[:-1], wide, strict=True)]
        out.write(gap.join([*cells, line[-1]]).rstrip() + "\n")


def _widths(lines: list[list[str]]) -> list[int]:
    return [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]


WRITERS: Final[dict[str, Callable[[LogResult, TextIO], None]]] = {
    "csv": write_csv,
    "json": write_json,
    "md": write_markdown,
}


def text_of(result: LogResult, output_format: str, width: int | None = None) -> str:
    """`width`: of the terminal that a table is for; None: it is for none."""
    out = StringIO()
    if output_format == TABLE:
        write_table(result, out, width)
    else:
        WRITERS[output_format](result, out)
    return out.getvalue()
