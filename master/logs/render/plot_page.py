"""A result as the page of `ivypy report`: the logs are shown as a run with one step, whose instances are the groups.

Rule: figures are those of the table; histograms are in the page's buckets (page_buckets.py), and how exact they are is
said at the foot of the page. The `all` that the page begins with is among the groups.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ...pages.document import FORMAT, headlines
from ...pages.histogram_columns import Times, encoded
from ...pages.instances import LATENCY, MEAN, mark_outliers
from ...pages.outliers import bound
from ...report.archive import Archive, ArchiveLimits, quoted
from ...report.write_report import save_page
from ...summary.headline import IN_CHARTS, IOPS
from ...version import VERSION
from ..readers.records import NS_PER_S
from ..result.series import Series
from ..result.table import LogResult, Row, latency_text, rows
from .page_buckets import columns_of, counts_of_whole, width_in_words

_RUN: Final = "logs"  # the id
_MOST_POINTS: Final = 60  # of a sparkline
_PERCENTILES: Final = ("p50", "p90", "p95", "p99", "p99_9", "p99_99")
Group = Mapping[str, Series]  # "service" and "response"; of logs that are no run's, all is service time


def draw(result: LogResult, drawn: Sequence[Series], path: Path) -> None:
    """`drawn`: the series that have histograms. Raises PlanError, OutputError."""
    save_page(path, archive_of_logs(result, drawn), _title(drawn))


def archive_of_logs(result: LogResult, drawn: Sequence[Series]) -> Archive:
    """The answers that the page asks for."""
    groups = _groups(drawn)
    rollups: dict[str, list[str]] = {}
    archive, limits = Archive(), ArchiveLimits()
    address = f"/api/runs/{_RUN}"
    tables: dict[str, list[tuple[dict[str, Any], Mapping[str, Any]]]] = {}
    wholes: dict[tuple[str, str], dict[str, float | None]] = {}
    left = 0
    for (by, instance), group in groups.items():
        if archive.size > limits.most_bytes:
            left += 1
            continue
        rollups.setdefault(by, []).append(instance)
        answer, wholes[by, instance] = _series(result, by, instance, group)
        chosen = f"by={quoted(by)}&instance={quoted(instance)}"
        archive.add(f"{address}/steps/0/series?{chosen}&from=0", answer)
        archive.add(f"{address}/steps/0/histograms?{chosen}&from=0", _histograms(result, answer, group))
        archive.add(f"{address}/steps/0/distribution?{chosen}", _distribution(group))
        tables.setdefault(by, []).append((_entry(instance, answer, wholes[by, instance]), answer))
    for by, rows_of_type in tables.items():
        archive.add(f"{address}/steps/0/instances?by={quoted(by)}", _table(by, *zip(*rows_of_type, strict=True)))
    archive.add(f"{address}/steps/0/cpu?from=0", {"subinterval": [], "start": [], "hosts": {}})
    archive.add(f"{address}/steps/0/control", {})
    document = _document(result, drawn, rollups, wholes)
    archive.add(address, document)
    archive.add("/api/runs", {"runs": [document["run"]], "control": False})
    archive.notes += _notes(result, drawn)
    archive.left_out += [*result.left_out, *([f"{left:,} groups: the page is large enough"] if left else [])]
    return archive


def _title(drawn: Sequence[Series]) -> str:
    times = sorted({time for group in _groups(drawn).values() for time in group}, reverse=True)
    first = drawn[0].instance
    what = first.quantity_name if first.quantity not in times else " and ".join(times)
    return f"{what} latency, {first.format} logs"


def _groups(drawn: Sequence[Series]) -> dict[tuple[str, str], Group]:
    """By rollup type and instance, `all` first. Of logs of several kinds, the first kind's."""
    first = drawn[0].instance
    groups: dict[tuple[str, str], dict[str, Series]] = {}
    for series in drawn:
        instance = series.instance
        if instance.format == first.format and (
            instance.quantity in ("service", "response") or instance.quantity == first.quantity
        ):
            time = "response" if instance.quantity == "response" else "service"
            groups.setdefault((instance.rollup_type, instance.value), {})[time] = series
    return dict(sorted(groups.items(), key=lambda group: group[0][0] != "all"))


def _series(result: LogResult, by: str, instance: str, group: Group) -> tuple[dict[str, Any], dict[str, float | None]]:
    """The answer of figures over time, and the same figures of the whole span."""
    tables = {time: [*rows(result, series)] for time, series in group.items()}
    *times, _ = next(iter(tables.values()))
    phases = [_phase(result, one) for one in times]
    metrics: dict[str, list[float | None]] = {name: [None] * len(times) for name in IN_CHARTS}
    whole: dict[str, float | None] = {}
    for time, table in tables.items():
        for place, row in enumerate(table):
            for name, value in _metrics(time, row).items():
                if row.interval is None:
                    whole[name] = value
                else:
                    metrics[name][place] = value
    return {
        "by": by,
        "instance": instance,
        "from": 0,
        "subinterval": [*range(len(times))],
        "start": [_unix(one) for one in times],
        "length_s": [one.end_s - one.start_s for one in times],
        "phase": phases,
        "in_measurement": [int(phase == "run") for phase in phases],
        "hosts_in": [0] * len(times),
        "hosts_of": [0] * len(times),
        "iops_setting": [None] * len(times),
        "metrics": metrics,
    }, whole


def _metrics(time: str, row: Row) -> dict[str, float | None]:
    """Of a row, those that the page knows."""
    found = {f"overall_{time}_us_{one.name}": one.us for one in row.percentiles if one.name in _PERCENTILES}
    found |= {f"overall_{time}_us_mean": row.mean_us, f"overall_{time}_us_max": row.high_us}
    return found | {"overall_iops": row.iops or (0.0 if row.covered_s else None)}


def _unix(row: Row) -> float:
    return row.start_s if row.utc_ns is None else row.utc_ns / NS_PER_S


def _phase(result: LogResult, row: Row) -> str:
    middle = (row.start_s + row.end_s) / 2 * NS_PER_S + result.origin_ns
    return "warmup" if any(begin <= middle < end for begin, end in result.not_measured) else "run"


def _histograms(result: LogResult, answer: Mapping[str, Any], group: Group) -> bytes:
    span = result.span_of(next(iter(group.values())))
    columns: list[dict[str, Any]] = [{} for _ in span]
    for time, series in group.items():
        for quantum, cells in columns_of(series).items():
            if quantum in span:
                columns[quantum - span.start][f"all.{time}"] = cells
    names = [f"all.{time}" for time in group]
    times = Times(
        answer["start"], answer["length_s"], answer["in_measurement"], {name: [True] * len(columns) for name in names}
    )
    return encoded(columns, times, 0, names)


def _distribution(group: Group) -> dict[str, Any]:
    """In the logs' own buckets."""
    sets = {}
    for time, series in group.items():
        assert series.histograms is not None
        edges = (series.histograms.edges / 1000).tolist()
        filled = [one for one in zip(edges, edges[1:], counts_of_whole(series).tolist(), strict=False) if one[2]]
        from_us, below_us, count = ([*column] for column in zip(*filled, strict=True))
        sets[f"overall.{time}"] = {"from_us": from_us, "below_us": below_us, "count": count}
    return {"sets": sets}


def _entry(instance: str, answer: Mapping[str, Any], whole: Mapping[str, float | None]) -> dict[str, Any]:
    """Of the table of instances."""
    every = -(-len(answer["start"]) // _MOST_POINTS)
    return {
        "instance": instance,
        "verdict": "",
        "metrics": {name: value for name, value in whole.items() if value is not None},
        "spark_iops": answer["metrics"]["overall_iops"][::every],
        "spark_p99": answer["metrics"][LATENCY][::every],
        "spark_mean": answer["metrics"]["overall_service_us_mean"][::every],
    }


def _by_time(answer: Mapping[str, Any], metric: str) -> dict[int, float]:
    """The values of a metric, by the millisecond in which each began."""
    pairs = zip(answer["start"], answer["metrics"][metric], strict=True)
    return {round(1000 * start): value for start, value in pairs if value is not None}


def _table(by: str, entries: Sequence[dict[str, Any]], answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    mark_outliers(entries, {name: [_by_time(one, name) for one in answers] for name in (IOPS, LATENCY, MEAN)})
    return {
        "by": by,
        "subintervals": [*range(max(len(one["spark_iops"]) for one in entries))],
        "metric": LATENCY,
        "instances": entries,
        "measured": True,
        "outlier_beyond": bound(len(entries)),
    }


def _document(
    result: LogResult,
    drawn: Sequence[Series],
    rollups: Mapping[str, list[str]],
    wholes: Mapping[tuple[str, str], Mapping[str, float | None]],
) -> dict[str, Any]:
    first = drawn[0]
    *times, whole = rows(result, first)
    start = _unix(times[0])
    end = start + whole.end_s - whole.start_s
    name = first.instance.quantity_name
    measurement = {
        "name": name, "level": "", "stands": True, "verdict": "", "rate_verdict": "", "service_verdict": "",
        "response_verdict": "", "why": "", "advice": [], "load": {}, "reasons": [],
        "first": 0, "last": len(times) - 1, "start": start,
        "end": end, "iops_setting": None, "parameters": {}, "half_widths": {},
        "metrics": {name: value for name, value in wholes["all", "all"].items() if value is not None},
    }  # fmt: skip
    step = {
        "number": 0, "name": name, "state": "ended", "verdict": "", "start": start, "end": end, "thresholds": [],
        "reasons": [], "rollups": rollups, "closed": len(times), "measurements": [measurement],
    }  # fmt: skip
    zero = start - times[0].start_s - result.origin_ns / NS_PER_S
    begins = [
        {"utc": zero + at / NS_PER_S, "step": 0, "subinterval": None, "host": "", "kind": "step", "text": text}
        for at, text in result.steps
    ]
    run = {
        "id": _RUN, "run": _title(drawn), "folder": "", "state": "ended", "verdict": None, "exit_code": None,
        "plan": "", "version": VERSION,
        "start_utc": datetime.fromtimestamp(start, UTC).isoformat().replace("+00:00", "Z"),
        "length_s": end - start, "hosts": [], "steps": [name],
    }  # fmt: skip
    return {
        **headlines(),
        "format": FORMAT, "run": run, "sentence": "", "outcome": "", "driven": [], "has_elements": False,
        "plan_text": "", "hosts": [], "hosts_differ": [], "luns": [],
        "luns_differ": [], "rollups": rollups, "steps": [step], "events": begins,
    }  # fmt: skip


def _notes(result: LogResult, drawn: Sequence[Series]) -> list[str]:
    first = drawn[0]
    assert first.histograms is not None
    layout = first.histograms.layout
    notes = [f"{name}: {text}" for name, text in result.settings.items()]
    if first.instance.quantity not in ("service", "response"):
        notes.append(f"service time stands for the logs' {first.instance.quantity_name}")
    if result.zero_ns is None:
        notes.append("times count from the logs' begin, which is shown as 00:00 UTC on 1 January 1970")
    notes.append(width_in_words(layout))
    if layout.open_ended:
        open_us = float(layout.edges[layout.buckets - 1]) / 1000
        notes.append(
            f"the last bucket has all I/Os of {latency_text(open_us)} and more: figures there are lower bounds"
        )
    return [*notes, *result.notes]
