"""The rollup instances of a type as a table: figures, a sparkline each, droop, and which of them are outliers."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ..errors import PlanError
from ..output.run_files import open_run_file, read_run_file
from ..rollup.metrics import METRICS
from .growing_table import number
from .outliers import bound, z_scores

_LONGEST_ROWS: Final = 1 << 15  # bytes: more than a row has
MOST_POINTS: Final = 60  # of a sparkline
LATENCY: Final = "overall_service_us_p99"
_MEAN: Final = "overall_service_us_mean"  # where an instance has too few I/Os in a subinterval for its p99
_IOPS: Final = "overall_iops"
_VERDICTS: Final = ("verdict", "rate_verdict", "service_verdict", "response_verdict")
_SHOWN: Final = (
    _IOPS, "overall_mib_per_s", "errors",
    *(f"overall_{time}_us_{one}" for time in ("service", "response") for one in ("mean", "p50", "p99", "p99_9", "max")),
)  # fmt: skip


def instance_table(by: str, files: Mapping[str, Path | None], measured: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """`files`: of each instance the file with its rows. `measured`: a row of the summary each, once the step ended.

    Before that the figures are those of the last subinterval. Raises PlanError.
    """
    rows = {row["rollup_instance"]: row for row in measured}
    sparks = {name: _spark(path) for name, path in files.items()}
    entries = []
    for name in files:
        points, last = sparks[name]
        row = rows.get(name, last)
        entries.append({
            "instance": name,
            **{one: row.get(one, "") for one in _VERDICTS},
            "metrics": {one: value for one in _SHOWN if (value := number(row.get(one, ""))) is not None},
            "spark_iops": [number(point[_IOPS]) for point in points],
            "spark_p99": [number(point[LATENCY]) for point in points],
            "spark_mean": [number(point[_MEAN]) for point in points],
        })  # fmt: skip
    mark_outliers(entries)
    subintervals = max(([int(point["subinterval"]) for point in points] for points, _ in sparks.values()), default=[])
    return {
        "by": by,
        "subintervals": subintervals,
        "metric": LATENCY,
        "instances": entries,
        "measured": bool(rows),
        "outlier_beyond": bound(len(entries)),
    }


def mark_outliers(entries: Sequence[dict[str, Any]]) -> None:
    """Add z-scores, `outlier` and droop: how far the IOPS are below the fastest instance's."""
    beyond = bound(len(entries))
    for key, metric in (("z_iops", _IOPS), ("z_p99", LATENCY)):
        for entry, z in zip(entries, z_scores([one["metrics"].get(metric) for one in entries]), strict=True):
            entry[key] = z
    most = max((one["metrics"].get(_IOPS, 0.0) for one in entries), default=0.0)
    for entry in entries:
        entry["outlier"] = any(abs(entry[key] or 0.0) > beyond for key in ("z_iops", "z_p99"))
        iops = entry["metrics"].get(_IOPS)
        entry["droop_percent"] = 100 * (1 - iops / most) if iops is not None and most else None


def _spark(path: Path | None) -> tuple[list[dict[str, str]], dict[str, str]]:
    """Some rows of a file, evenly chosen, and its last one; only these are parsed: there may be millions of cells."""
    try:
        data = read_run_file(path) if path else b""
    except FileNotFoundError:
        return [], {}
    except OSError as error:
        raise PlanError(f"{path}: not read: {error.strerror}") from None
    header, *rows = data[: data.rfind(b"\n") + 1].splitlines() or [b""]
    wanted = {"subinterval", *METRICS}
    places = [(name, place) for place, name in enumerate(header.decode().split(",")) if name in wanted]
    step = -(-len(rows) // MOST_POINTS) or 1
    cells = header.count(b",") + 1

    def parsed(row: bytes) -> dict[str, str]:
        texts = _cells(row)
        return {name: texts[place] for name, place in places} if len(texts) == cells else {}

    points = [point for row in rows[step - 1 :: step] if (point := parsed(row))]
    return points, parsed(rows[-1]) if rows else {}


def newest_row(path: Path) -> dict[str, str]:
    """The last whole row of a file, by column; empty where there is none. Only its end is read. Raises PlanError."""
    try:
        with open_run_file(path) as file:
            header = file.readline()
            file.seek(max(file.seek(0, 2) - _LONGEST_ROWS, len(header)))
            end = file.read()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise PlanError(f"{path}: not read: {error.strerror}") from None
    rows = end[: end.rfind(b"\n") + 1].splitlines()
    if not rows:
        return {}
    names, texts = header.decode().rstrip("\n").split(","), _cells(rows[-1])
    return dict(zip(names, texts, strict=True)) if len(names) == len(texts) else {}


def histogram_sets(path: Path) -> dict[str, dict[str, list[float]]]:
    """An <instance>.histogram.csv: "overall.service": the buckets' ends and counts. Raises PlanError.

    No cell is quoted, so that splitting is enough: such a file has thousands of rows, and a report reads hundreds.
    """
    try:
        data = read_run_file(path).decode("utf-8", "replace")
        sets: dict[str, dict[str, list[float]]] = {}
        for line in data[: data.rfind("\n") + 1].splitlines()[1:]:
            category, time, from_us, below_us, count = line.split(",")
            of = sets.setdefault(f"{category}.{time}", {"from_us": [], "below_us": [], "count": []})
            of["from_us"].append(float(from_us))
            of["below_us"].append(float(below_us))
            of["count"].append(int(count))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise PlanError(f"{path}: not read: {error}") from None
    return sets


def _cells(row: bytes) -> list[str]:
    """Names may be quoted, for their commas."""
    text = row.decode("utf-8", "surrogateescape")
    return next(csv.reader([text])) if '"' in text else text.split(",")
