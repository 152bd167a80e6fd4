"""The rollup instances of a type as a table: figures, a sparkline each, droop, and which of them are outliers."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ..errors import PlanError
from ..output.csv_text import unguarded
from ..output.run_files import open_run_file, read_run_file
from ..rollup.metrics import HEADLINE_STATISTICS, METRICS, Quantity
from ..summary.headline import IOPS, ON_PAGE, names_of
from .growing_table import number
from .outliers import bound, stand_out, z_scores

_LONGEST_ROWS: Final = 1 << 15  # bytes: more than a row has
MOST_POINTS: Final = 60  # of a sparkline
LATENCY, MEAN = names_of(Quantity.SERVICE, "p99", "mean")  # mean: where a subinterval has too few I/Os for its p99
TIMES: Final = (Quantity.SERVICE, Quantity.RESPONSE)
_VERDICTS: Final = ("verdict", "rate_verdict", "service_verdict", "response_verdict")
_SHOWN: Final = tuple(
    dict.fromkeys((*ON_PAGE, *(name for time in TIMES for name in names_of(time, *HEADLINE_STATISTICS)), "errors"))
)


def instance_table(by: str, files: Mapping[str, Path | None], measured: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """`files`: of each instance the file with its rows. `measured`: a row of the summary each, once the step ended.

    Before that the figures are those of the last subinterval. Raises PlanError.
    """
    rows = {row["rollup_instance"]: row for row in measured}
    entries, within = [], []
    subintervals: list[int] = []
    for name, path in files.items():
        lines = _Lines(path)
        points, last = lines.chosen(), lines.row(-1)
        row = rows.get(name, last)
        entries.append({
            "instance": name,
            **{one: row.get(one, "") for one in _VERDICTS},
            "metrics": {one: value for one in _SHOWN if (value := number(row.get(one, ""))) is not None},
            "spark_iops": [number(point[IOPS]) for point in points],
            "spark_p99": [number(point[LATENCY]) for point in points],
            "spark_mean": [number(point[MEAN]) for point in points],
        })  # fmt: skip
        measurement = _span_of(rows.get(name, {}))
        within.append(lines.chosen(*measurement) if measurement else points)
        subintervals = max(subintervals, [int(point["subinterval"]) for point in points])
    mark_outliers(entries, {one: [_by_subinterval(points, one) for points in within] for one in (IOPS, LATENCY, MEAN)})
    return {
        "by": by,
        "subintervals": subintervals,
        "metric": LATENCY,
        "instances": entries,
        "measured": bool(rows),
        "outlier_beyond": bound(len(entries)),
    }


def mark_outliers(entries: Sequence[dict[str, Any]], within: Mapping[str, Sequence[Mapping[int, float]]]) -> None:
    """Add z-scores, `outlier` and droop: how far the IOPS are below the fastest instance's.

    `within`: of IOPS, LATENCY and its mean, each entry's values in subintervals. Where a subinterval has too few I/Os
    for a p99, the mean latencies say whether an instance is slow throughout.
    """
    latencies = within[LATENCY] if any(within[LATENCY]) else within[MEAN]
    for key, metric, values in (("iops", IOPS, within[IOPS]), ("p99", LATENCY, latencies)):
        z = z_scores([one["metrics"].get(metric) for one in entries])
        for entry, score, stands_out in zip(entries, z, stand_out(z, values), strict=True):
            entry[f"z_{key}"] = score
            entry[f"outlier_{key}"] = stands_out
    most = max((one["metrics"].get(IOPS, 0.0) for one in entries), default=0.0)
    for entry in entries:
        entry["outlier"] = entry["outlier_iops"] or entry["outlier_p99"]
        iops = entry["metrics"].get(IOPS)
        entry["droop_percent"] = 100 * (1 - iops / most) if iops is not None and most else None


def _by_subinterval(points: Sequence[Mapping[str, str]], metric: str) -> dict[int, float]:
    found = {int(point["subinterval"]): number(point[metric]) for point in points}
    return {at: value for at, value in found.items() if value is not None}


def _span_of(row: Mapping[str, str]) -> tuple[int, int] | None:
    """The subintervals of a measurement; None where there is none."""
    first, last = row.get("first_subinterval"), row.get("last_subinterval")
    return (int(first), int(last) + 1) if first and last else None


class _Lines:
    """The rows of a file, as bytes; only those that are wanted are parsed: there may be millions of cells."""

    def __init__(self, path: Path | None) -> None:
        """Raises PlanError."""
        try:
            data = read_run_file(path) if path else b""
        except FileNotFoundError:
            data = b""
        except OSError as error:
            raise PlanError(f"{path}: not read: {error.strerror}") from None
        header, *self._rows = data[: data.rfind(b"\n") + 1].splitlines() or [b""]
        names = header.decode().split(",")
        wanted = {"subinterval", *METRICS}
        self._places = [(name, place) for place, name in enumerate(names) if name in wanted]
        self._cells = len(names)

    def row(self, place: int) -> dict[str, str]:
        """Empty where it is not whole, or there is none."""
        texts = _cells(self._rows[place]) if self._rows else []
        return {name: texts[at] for name, at in self._places} if len(texts) == self._cells else {}

    def chosen(self, first: int = 0, end: int | None = None) -> list[dict[str, str]]:
        """MOST_POINTS at most, evenly, of the rows from one to before another: a row for each subinterval."""
        places = range(len(self._rows))[first:end]
        step = -(-len(places) // MOST_POINTS) or 1
        return [row for place in places[step - 1 :: step] if (row := self.row(place))]


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
            histogram = sets.setdefault(f"{category}.{time}", {"from_us": [], "below_us": [], "count": []})
            histogram["from_us"].append(float(from_us))
            histogram["below_us"].append(float(below_us))
            histogram["count"].append(int(count))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise PlanError(f"{path}: not read: {error}") from None
    return sets


def _cells(row: bytes) -> list[str]:
    """Names may be quoted, for their commas."""
    text = row.decode("utf-8", "surrogateescape")
    cells = next(csv.reader([text])) if '"' in text else text.split(",")
    return [*map(unguarded, cells)] if "'" in text else cells
