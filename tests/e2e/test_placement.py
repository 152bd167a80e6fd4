"""`cpus`, `spin` and `spread` as a user has them, and what a run says where its core is taken away."""

import os
from pathlib import Path

import pytest

from tests.support.hogs import wanted_core
from tests.support.real_runs import Finished, run, start, wait_for_line, written

pytestmark = pytest.mark.slow

CORE = max(os.sched_getaffinity(0))

PLAN = """
name: placed
connectors: {{ host: off }}
luns: {{ create: {{ path: {path}, size: 16MiB }} }}
workloads: {{ w: {{ iosequencer: random_independent, iops: 2000, maxtags: 8{more} }} }}
defaults: {{ subinterval: 500ms, warmup: 500ms, measure: {measure} }}
engine: {{ cpus: {cpus}{engine} }}
steps: [ go: one ]
"""


def test_a_thread_whose_core_is_busy_reports_host_limit(tmp_path: Path) -> None:
    """Whatever the scheduler takes is told, as much as it is: no more is sure of it than that the core was busy."""
    text = PLAN.format(path=tmp_path / "data", cpus=CORE, more="", engine="", measure="2s")
    with start(written(tmp_path, text), tmp_path / "runs") as process:
        wait_for_line(process, " warmup ")
        with wanted_core(CORE):
            out, err = process.communicate(timeout=100)
    done = Finished(process.returncode, out, err, tmp_path / "runs")
    assert done.code in (0, 8), done.out + done.err  # a note or invalid: how much is taken is the scheduler's choice
    (row,) = done.rows("summary.all.csv")
    assert "host_limit" in row["reasons"]
    threads = done.rows("step0000.one/threads.csv")
    assert {thread["core"] for thread in threads} == {str(CORE)}
    assert sum(float(thread["reap_delay_us_sum"]) for thread in threads) > 0


@pytest.mark.realtime
def test_an_instance_may_be_spread_over_threads_that_spin(tmp_path: Path) -> None:
    text = PLAN.format(
        path=tmp_path / "data", cpus=CORE, more=", spread: 2", engine=", threads: 2, spin: on", measure="2s"
    )
    done = run(written(tmp_path, text), tmp_path / "runs")
    assert done.code in (0, 8), done.out + done.err  # a busy machine may be late, and then says so
    (row,) = done.rows("summary.all.csv")
    assert (row["workload_instances"], row["spread"]) == ("1", "2")
    assert "host_limit" not in row["reasons"]  # what spins keeps a core busy: that says nothing
    threads = [one for one in done.rows("step0000.one/threads.csv") if one["subinterval"] in "1234"]
    assert {one["sleeps"] for one in threads} == {"0"}
    assert min(int(one["submitted"]) for one in threads) > 0
