"""A real slave that does not get its cores: what is set aside, what is measured, and what the note says."""

import os
import signal
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from tests.support.hogs import wanted_core
from tests.support.real_runs import ENDED, folder_of, rows, start, wait_for_line, written

MEASURED = 6  # subintervals
MOST_ASIDE = 1
FROZEN_S = 0.3  # six times the threshold; far less than what a late result has
PLAN = f"""\
name: disturbed
luns: {{{{ create: {{{{ path: {{path}}, size: 16MiB }}}} }}}}
workloads: {{{{ w: {{{{ iosequencer: random_independent, iops: 200, maxtags: 8 }}}} }}}}
defaults: {{{{ subinterval: 1s, warmup: 1s, measure: {MEASURED}s }}}}
steps: [ go: one ]
"""


def freeze(pid: int) -> None:
    """Stop every thread of the run's slaves for a while: they cannot but see it."""
    slaves = psutil.Process(pid).children(recursive=True)
    assert slaves
    for slave in slaves:
        slave.send_signal(signal.SIGSTOP)
    time.sleep(FROZEN_S)
    for slave in slaves:
        slave.send_signal(signal.SIGCONT)


def ran(tmp_path: Path) -> Path:
    """A run whose slave is frozen in its measurement, beside a program that wants its thread's core from the warmup on:
    its folder."""
    plan = written(tmp_path, PLAN.format(path=tmp_path / "data"))
    with start(plan, tmp_path / "runs") as process:
        wait_for_line(process, " warmup ")
        with wanted_core(min(os.sched_getaffinity(0)), hogs=1):
            wait_for_line(process, f"measured 1 of {MEASURED}")
            freeze(process.pid)
            said, err = process.communicate(timeout=60)
    assert process.returncode in ENDED, said + err
    return folder_of(tmp_path / "runs")


@pytest.mark.slow
def test_a_frozen_slave_is_set_aside_and_the_measurement_has_its_time_elsewhere(tmp_path: Path) -> None:
    folder = ran(tmp_path)
    table = rows(folder, "step0000.one/all/all.csv")
    (summary,) = rows(folder, "summary.all.csv")
    (window,) = rows(folder, "step0000.one/windows.csv")
    phases = Counter(row["phase"] for row in table)
    aside = phases["disturbed"]
    assert phases == {"warmup": 1, "run": MEASURED, "disturbed": aside, "tail": 1}
    assert aside == MOST_ASIDE
    first, last = int(summary["first_subinterval"]), int(summary["last_subinterval"])
    within = [row["phase"] for row in table if first <= int(row["subinterval"]) <= last]
    assert Counter(within) == Counter(run=MEASURED, disturbed=int(window["set_aside"]))
    assert f"set_aside[note] ({aside} of {MEASURED + aside} subintervals: " in summary["reasons"]
    measured = [row for row in table if row["phase"] == "run"]
    for column in ("overall_service_count", "due"):
        assert sum(int(row[column]) for row in measured) == int(summary[column])
    assert float(summary["length_s"]) == pytest.approx(MEASURED, rel=0.01)
    buckets = rows(folder, "step0000.one/all/all.histogram.csv")
    counted = sum(int(one["count"]) for one in buckets if (one["category"], one["time"]) == ("overall", "service"))
    assert counted == int(summary["overall_service_count"])
