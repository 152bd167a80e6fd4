"""Control on real I/O: a measurement on a file that ends when it is accurate, and a device with a known queue.

faultfs with four threads delays each read by 4 ms; for Poisson arrivals that is an M/D/4 queue of capacity 1,000 less
what FUSE costs. What a load comes to is simulated from the capacity that was seen, and all of it runs before whatever
else the machine does: a tail is made of the milliseconds in which others were served.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.support.devices import FaultFs
from tests.support.real_runs import only_late, run, written
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

QUEUE = """\
name: queue
engine: {{ threads: 1 }}
luns: {{ paths: {device} }}
workloads: {{ w: {{ iosequencer: random_independent, iops: 400, maxtags: 64, blocksize: 4KiB }} }}
defaults: {{ subinterval: 1s, warmup: 1s }}
steps:
{steps}
"""
READ_US = 4000
STALL_US = 50_000.0  # no I/O takes as long in this queue at a load that feedback control holds
MOST_STALLED = 0.05  # of the subintervals of a step
SERVERS = 4
SEEN = "  - go: { name: low, measure: 15s }\n"
SEEN += "  - edit: { rollup: all=all, set: { iops: 700 } }\n  - go: { name: high, measure: 15s }\n"
SEEN += "  - edit: { rollup: all=all, set: { iops: max } }\n  - go: { name: max, measure: 4s }\n"
TAILS = {"p99": 0.99, "p95": 0.95, "p90": 0.9, "mean": None}  # what is tried, the most sensitive first


def a_plan(tmp_path: Path, lun: FaultFs, steps: str, name: str) -> Path:
    return written(tmp_path, QUEUE.format(device=lun.device, steps=steps), name)


@pytest.fixture
def foremost() -> Iterator[None]:
    """This process, and what it starts, before all others that want the processors."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
    except OSError:
        pytest.skip("this machine gives no real-time priority")
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@pytest.mark.realtime
@pytest.mark.long  # the law itself is simulated: tests/run/test_control.py, tests/control/test_measure.py
def test_a_measurement_on_a_file_ends_when_it_is_accurate(tmp_path: Path) -> None:
    plan = written(
        tmp_path,
        f"""\
name: file
engine: {{ threads: 1 }}
luns: {{ create: {{ path: {tmp_path}/data, size: 8MiB }} }}
workloads: {{ w: {{ iops: 500, maxtags: 8 }} }}
defaults: {{ subinterval: 0.25s, warmup: 0.5s }}
steps:
  - go: {{ name: it, measure: {{ metric: overall_iops, accuracy: 5%, min: 5s, timeout: 40s }} }}
""",
    )
    done = run(plan, tmp_path / "runs")
    assert done.code in (0, 8), done.out + done.err
    rows = done.rows("step0000.it/measure.csv")
    assert rows[-1]["passed"] == "true" and float(rows[-1]["half_width_percent"]) <= 5
    (summary,) = done.rows("summary.all.csv")
    assert only_late(summary["reasons"])
    assert float(summary["overall_iops"]) == pytest.approx(500, rel=0.05)


def response_us(iops: float, capacity: float, fraction: float | None) -> float:
    """A percentile, or the mean, of response time in an M/D/4 queue: arrival n is served when n - 4 has left."""
    random = np.random.default_rng(1)
    service_s, now_s = SERVERS / capacity, 0.0
    leaves: deque[float] = deque([0.0] * SERVERS, SERVERS)
    took = []
    for gap_s in random.exponential(1 / iops, 200_000):
        now_s += float(gap_s)
        leaves.append(max(now_s, leaves[0]) + service_s)
        took.append(leaves[-1] - now_s)
    return float(np.mean(took) if fraction is None else np.quantile(took, fraction)) * 1e6


def load_for(target_us: float, capacity: float, fraction: float | None) -> float:
    """IOPS at which the queue has the target."""
    low, high = 0.02 * capacity, 0.99 * capacity
    for _ in range(9):
        middle = (low + high) / 2
        low, high = (middle, high) if response_us(middle, capacity, fraction) <= target_us else (low, middle)
    return (low + high) / 2


def when_it_has_rows(root: Path, table: str, rows: int, do: Callable[[], None]) -> None:
    """Once a table that the run in `root` writes has so many rows."""
    tables = f"*/{table}"
    wait_until(
        lambda: any(len(file.read_text().splitlines()) > rows for file in root.glob(tables)),
        f"{tables} has {rows} rows", 1200,
    )  # fmt: skip
    do()


@pytest.mark.realtime
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_search_finds_what_a_queue_bears_and_feedback_holds_and_follows_it(
    tmp_path: Path, foremost: None, queue_lun: FaultFs
) -> None:
    """p99 at most 10 ms, or, on a machine that does not leave tails alone, what it does: a lower percentile, the mean.

    What the queue bears of it is known from its capacity; the search brackets that, feedback control holds it, and
    when each read takes 1 ms more in mid-run, it goes where the slower queue bears the same.
    """
    queue_lun.tell(read_us=READ_US)
    seen = run(a_plan(tmp_path, queue_lun, SEEN, "seen.yaml"), tmp_path / "seen", timeout_s=120).rows("summary.all.csv")
    capacity = float(seen[2]["overall_iops"])
    if capacity < 850:
        pytest.skip(f"the device that was made does {capacity:.0f} IOPS, not 1,000: the machine has no time for it")

    def is_left_alone(name: str) -> bool:
        rows = [(float(row["overall_iops"]), float(row[f"overall_response_us_{name}"])) for row in seen[:2]]
        return all(abs(shown / response_us(iops, capacity, TAILS[name]) - 1) <= 0.25 for iops, shown in rows)

    name = next((name for name in TAILS if is_left_alone(name)), None)
    if name is None:
        pytest.skip("this machine does not leave even the mean alone")
    metric, fraction = f"overall_response_us_{name}", TAILS[name]
    target_us = response_us(0.71 * capacity, capacity, fraction)
    pid = f"{{ metric: {metric}, target: {target_us:.0f}us, low_iops: 300, high_iops: 950, timeout: 240s }}"
    find = f"{{ metric: {metric}, target: {target_us:.0f}us, resolution: 10%, longest_probe: 30 }}"
    steps = f"  - go: {{ name: most, find: {find} }}\n"
    for step, measure in (("hold", "60s"), ("follow", "80s")):
        steps += (
            f"  - go: {{ name: {step}, subinterval: 4s, warmup: 4s, measure: {measure}, control: {{ pid: {pid} }} }}\n"
        )
    root = tmp_path / "runs"
    slower = partial(queue_lun.tell, read_us=READ_US + 1000)
    follow = threading.Thread(target=when_it_has_rows, args=(root, "step0002.follow/pid.csv", 15, slower))
    follow.start()
    done = run(a_plan(tmp_path, queue_lun, steps, "plan.yaml"), root, timeout_s=1500)
    follow.join()
    bears = load_for(target_us, capacity, fraction)
    bears_slower = load_for(target_us, SERVERS / (SERVERS / capacity + 1e-3), fraction)
    last = done.rows("step0000.most/find.csv")[-1]
    low, high = float(last["highest_pass_iops"]), float(last["lowest_fail_iops"])
    held, followed = (
        (float(row[metric] or "nan"), float(row["overall_iops"] or "nan")) for row in done.rows("summary.all.csv")[1:]
    )
    told = (
        f"{name} at most {target_us:.0f} us; capacity {capacity:.0f}; the queue bears {bears:.0f}, found {low:.0f} .. "
        f"{high:.0f}; held {held[0]:.0f} us at {held[1]:.0f}; slower it bears {bears_slower:.0f}, held "
        f"{followed[0]:.0f} us at {followed[1]:.0f}"
    )
    print(told)
    stalled = max(stalls(done.rows(f"{step}/all/all.csv")) for step in ("step0001.hold", "step0002.follow"))
    if stalled > MOST_STALLED:
        pytest.skip(f"the machine stalled in {stalled:.0%} of the subintervals: {told}")
    # What else the machine does makes the queue slower, never faster: above what it bears there is less room.
    assert 0.8 * bears <= low <= 1.1 * bears and high >= 0.9 * bears, told
    assert held[0] == pytest.approx(target_us, rel=0.2) and 0.8 * bears <= held[1] <= 1.1 * bears, told
    assert followed[0] == pytest.approx(target_us, rel=0.25), told
    assert 0.75 * bears_slower <= followed[1] <= 1.15 * bears_slower, told


def stalls(rows: Sequence[dict[str, str]]) -> float:
    """The share of subintervals with an I/O that took what no queue at these loads makes."""
    return float(np.mean([float(row["overall_service_us_max"] or 0) > STALL_US for row in rows]))
