"""A comparison as JSON, and its tables as HTML that needs nothing else."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from ..report.one_file import MARK
from ..results.finished_run import FinishedRun
from ..text.row_texts import csv_of
from .compare import Comparison
from .connector_metrics import ConnectorCompared
from .lead import tested_lines, which_is_faster
from .outcomes import Basis, Judged, Outcome
from .render_text import CONNECTORS, SAME, cells, conclusion, connector_cells, counted_runs, method, p_text, short_name

LOOK = """\
.comparison { margin: 0 auto; max-width: 1480px; padding: 0 16px; }
.comparison h2 { font-size: 15px; margin: 20px 0 6px; }
.table { overflow-x: auto; }
td.name { min-width: 16ch; overflow-wrap: anywhere; white-space: normal; }
td.number { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
.worse, .better { font-weight: 600; }
.worse::before { content: "\\25BC  "; }
.better::before { content: "\\25B2  "; }
.why { opacity: .75; white-space: normal; }
"""
_PAGE = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
{MARK}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>ivypy compare</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }}
table {{ border-collapse: collapse; margin: 1rem 0; }}
th, td {{ border-bottom: 1px solid #8886; padding: .25rem .7rem; text-align: left; }}
{LOOK}</style>
</head>
<body>
"""
_TITLES = ("step", "metric", "A", "B", "change", "95 % interval", "p (Holm)", "outcome")


_CSV = (
    "step", "rollup_type", "rollup_instance", "metric", "unit", "a", "b", "change", "low", "high", "p", "outcome",
    "regression", "no_regression", "why_not_compared",
)  # fmt: skip


def json_of(comparison: Comparison) -> str:
    """One object; docs/internals/statistics.md has its keys. Changes are fractions, latencies microseconds."""
    return json.dumps(data_of(comparison), indent=2, allow_nan=False)


def data_of(comparison: Comparison) -> dict[str, Any]:
    """The same as data."""
    return {
        "a": [_run(run) for run in comparison.a],
        "b": [_run(run) for run in comparison.b],
        "basis": {Basis.RUNS: "between_runs", Basis.WITHIN: "within_runs", Basis.NONE: None}[comparison.basis],
        "max_regression": comparison.limit,
        "exit_code": int(comparison.exit_code),
        "conclusion": conclusion(comparison),
        "method": method(comparison),
        "plan_differences": list(comparison.plan_lines),
        "differences": [
            {"where": one.where, "fact": one.fact, "a": one.a, "b": one.b, "who": one.who}
            for one in comparison.differences
        ],
        "notes": list(comparison.notes),
        "rows": [row_data(row) for row in comparison.rows],
        "connectors": [_connector(row) for row in comparison.connectors],
    }


def _run(run: FinishedRun) -> dict[str, Any]:
    return {
        "name": run.name,
        "folder": str(run.folder),
        "start_utc": run.record["start_utc"],
        "ended": bool(run.record.get("end_utc")),
    }


def row_data(row: Judged) -> dict[str, Any]:
    """A row of `rows`."""
    compared = row.compared
    return {
        "step": compared.key.step,
        "rollup_type": compared.key.rollup_type,
        "rollup_instance": compared.key.instance,
        "metric": compared.metric.name,
        "unit": str(compared.metric.unit),
        "a": compared.a,
        "b": compared.b,
        "change": compared.relative,
        "interval": row.interval,
        "p": row.p,
        "outcome": str(row.outcome),
        "regression": row.is_regression,
        "no_regression": row.is_no_regression,
        "why_not_compared": compared.why,
        "runs": [asdict(one) for one in compared.runs],
        "a_invalid": compared.invalid("A"),
        "b_invalid": compared.invalid("B"),
    }


def _connector(row: ConnectorCompared) -> dict[str, Any]:
    return {
        "step": row.key.step,
        "rollup_type": row.key.rollup_type,
        "rollup_instance": row.key.instance,
        "metric": row.metric,
        "unit": row.unit,
        "a": row.a,
        "b": row.b,
        "change": row.relative,
        "interval": row.interval,
        "p": row.p,
        "outcome": str(row.outcome),
        "notes": list(row.notes),
    }


def csv_text(comparison: Comparison) -> str:
    """The rows of the JSON, and of connectors, as CSV: without the runs, the ends of the interval apart."""
    rows = [row_data(row) for row in comparison.rows] + [_connector(row) for row in comparison.connectors]
    ends = [{"low": row["interval"][0], "high": row["interval"][1]} if row["interval"] else {} for row in rows]
    return csv_of(_CSV, ([({**row, **both}).get(name) for name in _CSV] for row, both in zip(rows, ends, strict=True)))


def html_of(comparison: Comparison) -> str:
    """A page: conclusion, runs, what differs, the table, the method."""
    return f"{_PAGE}{body_of(comparison)}\n</body>\n</html>\n"


def body_of(comparison: Comparison) -> str:
    """Its content, for another page."""
    parts = ['<section class="comparison">', "<h1>Comparison of runs</h1>"]
    lead = [*tested_lines(comparison), *filter(None, [which_is_faster(comparison)])]
    parts += [f"<p>{escape(line)}</p>" for line in lead]
    parts.append(f"<p><strong>{escape(conclusion(comparison))}</strong></p>")
    parts.append(
        _list(
            f"{letter}: {counted_runs(runs)}: {', '.join(str(run.folder) for run in runs)}"
            for letter, runs in (("A", comparison.a), ("B", comparison.b))
        )
    )
    if comparison.notes:
        parts += ["<h2>Notes</h2>", _list(comparison.notes)]
    parts.append("<h2>What differs</h2>")
    if not comparison.plan_lines and not comparison.differences:
        parts.append(f"<p>{escape(SAME)}</p>")
    if comparison.plan_lines:
        parts.append(f"<h3>Plan</h3><pre>{escape(chr(10).join(comparison.plan_lines))}</pre>")
    if comparison.differences:
        differ = [(one.where, one.fact, one.a, one.b, one.who) for one in comparison.differences]
        parts.append(_table(("where", "fact", "A", "B", "of"), map(_cells, differ)))
    parts += ["<h2>Figures</h2>", _table(_TITLES, map(_figures, comparison.rows))]
    if comparison.connectors:
        parts += ["<h2>Connectors</h2>", f"<p>{escape(CONNECTORS)}</p>"]
        parts.append(_table(_TITLES, map(_connector_figures, comparison.connectors)))
    if words := method(comparison):
        parts += ["<h2>Method</h2>", f"<p>{escape(words)}</p>"]
    return "\n".join([*parts, "</section>"])


def _list(lines: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _table(titles: Sequence[str], rows: Iterable[str]) -> str:
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in titles)
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _cells(texts: Iterable[str]) -> str:
    return "".join(f"<td>{escape(text)}</td>" for text in texts)


def _figures(row: Judged) -> str:
    _, *numbers, outcome = cells(row)
    numbers.append(p_text(row))
    figures = "".join(f'<td class="number">{escape(one)}</td>' for one in numbers)
    mark = str(row.outcome) if row.outcome in (Outcome.WORSE, Outcome.BETTER) else "plain"
    why = f' <span class="why">({escape(row.compared.why)})</span>' if row.compared.why else ""
    said = f'<td><span class="{mark}">{escape(outcome)}</span>{why}</td>'
    step = f'<td class="name">{escape(str(row.compared.key))}</td>'
    return step + _cells([short_name(row.compared.metric)]) + figures + said


def _connector_figures(row: ConnectorCompared) -> str:
    name, *numbers, outcome = connector_cells(row)
    numbers.append(p_text(row))
    figures = "".join(f'<td class="number">{escape(one)}</td>' for one in numbers)
    why = f' <span class="why">({escape("; ".join(row.notes))})</span>' if row.notes else ""
    step = f'<td class="name">{escape(str(row.key))}</td>'
    return f"{step}{_cells([name])}{figures}<td>{escape(outcome)}{why}</td>"
