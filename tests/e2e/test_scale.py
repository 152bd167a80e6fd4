"""A thousand LUNs with three workloads each, on one host: everything is there, and is driven."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ivypy.master.output.histogram_db_reader import HistogramReader
from ivypy.protocol.counters import Count
from tests.bench.scale import PLAN
from tests.support.real_runs import presence, run, written

LUNS = 1000
SUBINTERVALS = 6


@pytest.mark.long
def test_a_thousand_luns_with_three_workloads_each(tmp_path: Path) -> None:
    plan = written(tmp_path, PLAN.format(folder=tmp_path, luns=LUNS, each=4, subinterval=1, seconds=SUBINTERVALS))
    done = run(plan, tmp_path / "runs")
    assert done.code in (0, 8), done.out + done.err  # a busy machine may be late, and then says so
    assert Counter(row["workload"] for row in done.rows("workloads.csv")) == dict.fromkeys(
        ("steady", "independent", "sequential"), LUNS
    )
    for row in done.rows("summary.workload.csv"):
        assert (row["workload_instances"], presence(row)) == (str(LUNS), "1/1")
        assert (row["first_subinterval"], row["last_subinterval"]) == ("0", str(SUBINTERVALS - 1))
    with HistogramReader(done.folder / "histograms.sqlite") as stored:
        results = [result for _, result in stored.results(0)]
    counts = np.array([np.frombuffer(result.counts.data, "<i8").reshape(-1, len(Count)) for result in results])
    assert counts.shape[1] == 3 * LUNS
    assert (counts[:, :, Count.COMPLETED].sum(axis=0) > 0).all()
    assert counts[:, :, Count.ERRORS].sum() == 0
    # nothing is lost: what fell due was submitted, or is owed; what was submitted was completed, or is in flight
    due, submitted, completed = (counts[:, :, c].sum(axis=0) for c in (Count.DUE, Count.SUBMITTED, Count.COMPLETED))
    withdrawn = counts[:, :, Count.WITHDRAWN].sum(axis=0)
    dropped = counts[:, :, Count.DROPPED].sum(axis=0)
    assert (due == submitted + counts[-1, :, Count.BACKLOG] + dropped - withdrawn).all()
    assert (submitted == completed + counts[-1, :, Count.IN_FLIGHT] + withdrawn).all()
    # what falls due evenly falls due in every subinterval, however many others do
    seconds = sum(result.length_ns for result in results) / 1e9
    assert (abs(due[:LUNS] - 4 * seconds) <= 2).all()
    threads = done.rows("step0000.one/threads.csv")
    assert len(threads) == len(results) * len({row["thread"] for row in threads})
