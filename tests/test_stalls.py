"""The tests' own witness: it sees a core that was taken away, since the test began, and nothing else."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests import stalls

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


def test_a_core_that_was_taken_away_is_seen(witness: stalls.Witness) -> None:
    witness.begin()
    subprocess.run([sys.executable, "-c", HOLD], check=True)
    assert witness.longest_s() > HELD_S / 2


def test_what_was_before_a_test_is_none_of_its_business(witness: stalls.Witness) -> None:
    subprocess.run([sys.executable, "-c", HOLD], check=True)
    witness.begin()
    assert witness.longest_s() < HELD_S / 4
