"""The load and the rate of a run's last measurement, for lists of runs.

Rule: of hundreds of runs each is read in a millisecond: from run.json and summary.all.csv, of which only the row that
counts is made. A summary that cannot be read leaves both blank; the run is listed all the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final

from ..errors import PlanError
from ..rollup.instances import ALL
from ..summary.driven import load_parts
from ..summary.headline import IOPS, figure_text, marked
from ..text.scaled import BLANK
from ..verdicts import Verdict
from .checked_files import Snapshot, read_rows, that_count
from .measured_rows import standing_of

_SUMMARY: Final = f"summary.{ALL}.csv"


@dataclass(frozen=True, slots=True)
class LastMeasured:
    """Of the last step that has IOPS, else of the last: the measurement that it stands for."""

    load: str = ""  # "4KiB random reads, depth 32, at max"; "": not known
    iops: float | None = None
    verdict: Verdict | None = None  # of the rate

    @property
    def rate(self) -> str:
        """In three digits, in brackets where it is invalid."""
        text = figure_text(IOPS, self.iops)
        return text if text == BLANK or self.verdict is None else marked(text, self.verdict)


def last_measured(kept: Snapshot) -> LastMeasured:
    """Of a run."""
    ended = [step for step in that_count(kept.record) if step["verdict"]]
    try:
        header, *lines = read_rows(kept.results / _SUMMARY) if ended else [[]]
        place = header.index("step") if ended else 0
        known = []
        for step in reversed(ended):
            own = [line for line in lines if line[place : place + 1] == [str(step["number"])]]
            if rows := [dict(zip(header, line, strict=True)) for line in own if len(line) == len(header)]:
                known.append(_of(rows, standing_of(step, rows)))
                if known[-1].iops is not None:
                    return known[-1]
        return known[0] if known else LastMeasured()
    except (PlanError, ValueError, KeyError):
        return LastMeasured()  # torn, damaged, or of another version


def _of(rows: Sequence[dict[str, str]], name: str) -> LastMeasured:
    row = next(row for row in reversed(rows) if row["name"] == name)
    iops = float(row[IOPS]) if row.get(IOPS) else None
    if iops is not None and not isfinite(iops):
        raise ValueError(f"{IOPS}: {iops}")  # JSON has no such number
    return LastMeasured(
        ", ".join(load_parts(row).values()),
        iops,
        Verdict(row.get("rate_verdict") or row["verdict"]),
    )
