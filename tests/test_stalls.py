"""The tests' own witness: it sees a core that was taken away, since the test began, and nothing else."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import stalls

S = 10**9
HELD_S = 0.2
HOLD = f"""
import os, time
os.sched_setaffinity(0, {{max(os.sched_getaffinity(0))}})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
until = time.monotonic() + {HELD_S}
while time.monotonic() < until: pass
"""


@pytest.fixture
def witness() -> Iterator[stalls.Witness]:
    if os.geteuid() != 0:
        pytest.skip("this machine lacks the rights of root, which may take a core away")
    with stalls.witness() as witness:
        yield witness


def test_a_core_held_by_another_process_is_a_stall(witness: stalls.Witness) -> None:
    witness.begin()
    subprocess.run([sys.executable, "-c", HOLD], check=True)
    assert witness.longest_s() > stalls.STALL_S  # how long the kernel lets it be held is the kernel's choice


def test_a_stall_before_the_test_does_not_count(tmp_path: Path) -> None:
    said = tmp_path / "said"
    witness = stalls.Witness(said)
    witness.begin()
    now = time.monotonic_ns()
    said.write_text(f"{now - 9 * S} {now - 5 * S}\n{now - 3 * S} {now + S}\n")
    assert witness.longest_s() == pytest.approx(1.0, abs=0.5)
