"""A real file that is asked for far more than it can do: what a pause stops, and what `drop_after` discards."""

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ivypy.master.output.histogram_db_reader import HistogramReader
from ivypy.protocol.counters import Count
from tests.support.real_runs import (
    folder_of,
    ivypy,
    names_of,
    rows,
    run,
    start,
    wait_until_measuring,
    written,
)
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

PLAN = """\
name: overload
engine: {{ threads: 1 }}
connectors: {{ host: off }}
luns: {{ create: {{ path: {path}, size: 16MiB }} }}
workloads: {{ w: {{ iosequencer: random_independent, iops: 3M, maxtags: 1{more} }} }}
defaults: {{ subinterval: 0.5s, warmup: 0.5s, measure: {measure} }}
steps: [ go: one ]
"""
TABLE = "step0000.one/all/all.csv"


def overload(folder: Path, measure: str, more: str = "") -> Path:
    return written(folder, PLAN.format(path=folder / "data", measure=measure, more=more))


def counts_of(folder: Path) -> NDArray[np.int64]:
    """(subintervals, Count) of the only workload instance; checked to add up."""
    with HistogramReader(folder / "histograms.sqlite") as stored:
        found = np.array([np.frombuffer(result.counts.data, "<i8") for _, result in stored.results(0)])
    done = found[:, [Count.COMPLETED, Count.ERRORS, Count.DROPPED, Count.EXPIRED]].sum()
    assert found[:, Count.DUE].sum() == done + found[-1, [Count.BACKLOG, Count.IN_FLIGHT]].sum()
    return found


def test_a_pause_stops_an_overloaded_file_at_once(tmp_path: Path) -> None:
    """It submits nothing more, and says how many I/Os it owed: as many as the rows count."""
    root = tmp_path / "runs"
    process = start(overload(tmp_path, "10m"), root)
    try:
        folder = wait_until_measuring(root)
        paused = ivypy("pause")
        before = len(rows(folder, TABLE))
        wait_until(lambda: len(rows(folder, TABLE)) > before + 3, "subintervals after the pause")
        assert ivypy("stop").returncode == 0
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert (paused.returncode, process.returncode) == (0, 130), paused.stderr + out + err
    (said,) = re.findall(r"([\d,]+) overdue I/Os were discarded", paused.stdout)
    discarded = int(said.replace(",", ""))
    counts = counts_of(folder)
    (last,) = np.flatnonzero(counts[:, Count.DROPPED])
    assert discarded == counts[last, Count.DROPPED] - counts[last, Count.WITHDRAWN] > 100_000
    assert len(counts) > last + 2
    assert not counts[last + 1 :, [Count.DUE, Count.SUBMITTED, Count.BACKLOG]].any()
    assert counts[last + 1, Count.COMPLETED] <= 1  # the one that was in flight at the boundary
    after = [row for row in rows(folder, TABLE) if int(row["subinterval"]) > last + 1]
    assert after and {float(row["overall_iops"]) for row in after} == {0.0}
    dropped = {int(row["subinterval"]): int(row["dropped"]) for row in rows(folder, TABLE) if row["dropped"] != "0"}
    assert dropped == {last: counts[last, Count.DROPPED]}


def test_drop_after_bounds_the_backlog_of_an_overloaded_file(tmp_path: Path) -> None:
    done = run(overload(tmp_path, "1.5s", ", drop_after: 100ms"), tmp_path / "runs")
    folder = folder_of(tmp_path / "runs")
    counts = counts_of(folder)
    assert (counts[:, Count.EXPIRED] > 100_000).all()
    assert (counts[:, Count.BACKLOG] < 1.02 * 3e6 * 0.1).all()  # what falls due in that time, and five deviations
    measured = [row for row in rows(folder, TABLE) if row["phase"] == "run"]
    assert [int(row["expired"]) for row in measured] == [
        counts[int(row["subinterval"]), Count.EXPIRED] for row in measured
    ]
    (summary,) = rows(folder, "summary.all.csv")
    assert {"load_not_sustained", "expired_due"} <= names_of(summary["reasons"]), done.out + done.err
    assert summary["drop_after"] == "0.1"
