"""Control on real I/O: a measurement on a file that ends when it is accurate, and a device with a known queue.

faultfs delays each read by 4 ms; with maxtags 4 and Poisson arrivals that is an M/D/4 queue of capacity 1,000 less what
FUSE costs. What a load comes to is simulated from the capacity that the run itself saw.
"""

from collections import deque
from pathlib import Path

import numpy as np
import pytest

from tests.devices import FaultFs
from tests.runs import only_late, run, written

pytestmark = pytest.mark.slow

P50 = "overall_response_us_p50"  # a median bears what else the machine does meanwhile
QUEUE = """\
name: queue
threads: 1
luns: {{ paths: {device} }}
workloads: {{ w: {{ iosequencer: random_independent, iops: 400, maxtags: 4, blocksize: 4KiB }} }}
defaults: {{ subinterval: {subinterval}, warmup: 1s }}
steps:
  - go: {{ name: it, {go} }}
"""


def a_plan(tmp_path: Path, lun: FaultFs, subinterval: str, go: str) -> Path:
    lun.tell(read_us=4000)
    return written(tmp_path, QUEUE.format(device=lun.device, subinterval=subinterval, go=go))


def test_a_measurement_on_a_file_ends_when_it_is_accurate(tmp_path: Path) -> None:
    plan = written(
        tmp_path,
        f"""\
name: file
threads: 1
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


def median_ms(iops: float, capacity: float, servers: int = 4) -> float:
    """Median response time in an M/D/c queue: arrival n is served when arrival n - c has left."""
    random = np.random.default_rng(1)
    service_s, now_s = servers / capacity, 0.0
    leaves: deque[float] = deque([0.0] * servers, servers)
    took = []
    for gap_s in random.exponential(1 / iops, 100_000):
        now_s += gap_s
        leaves.append(max(now_s, leaves[0]) + service_s)
        took.append(leaves[-1] - now_s)
    return float(np.median(took)) * 1e3


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_search_finds_what_a_queue_can_bear(tmp_path: Path, faulty_lun: FaultFs) -> None:
    go = f"find: {{ metric: {P50}, target: 6ms, resolution: 10%, longest_probe: 20 }}"
    done = run(a_plan(tmp_path, faulty_lun, "1s", go), tmp_path / "runs", timeout_s=590)
    capacity = float(done.rows("step0000.it/all/all.csv")[2]["overall_iops"])
    if capacity < 900:
        pytest.skip(f"the device that was made does {capacity:.0f} IOPS, not 1,000: the machine has no time for it")
    rows = done.rows("step0000.it/find.csv")
    low, high = float(rows[-1]["highest_pass_iops"]), float(rows[-1]["lowest_fail_iops"])
    assert median_ms(low, capacity) < 6 * 1.3 and median_ms(high, capacity) > 6 / 1.3, (low, high, capacity)
