"""The tests' own witness: it sees a core that was taken away, since the test began, and nothing else."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import stall_skips, stalls

pytestmark = pytest.mark.slow  # each starts pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
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


# A session of its own: its plugin is the real one, its machine has stalled all the time.
STALLED = """
import contextlib
from tests.support import stalls

class Always(stalls.Witness):
    def __init__(self): pass
    def begin(self): pass
    def longest_s(self): return {stall_s}

@contextlib.contextmanager
def witness():
    yield Always()

def pytest_configure(config):
    config.addinivalue_line("markers", "realtime: of wall-clock time")
    stalls.witness = witness
"""
TIMED = """
import pytest
from tests.support.waits import OutOfPatience

@pytest.mark.realtime
@pytest.mark.parametrize("number", range({failing}))
def test_timed(number):
    {fails}

@pytest.mark.realtime
def test_on_time():
    pass
"""


LATE = 'assert not "in time"'
NEVER = "raise OutOfPatience"


@pytest.mark.parametrize(
    ("stall_s", "fails", "failing", "outcomes", "code"),
    [
        (1.0, LATE, stall_skips.MOST_SKIPPED, {"passed": 1, "skipped": 3}, pytest.ExitCode.OK),
        (1.0, LATE, stall_skips.MOST_SKIPPED + 1, {"passed": 1, "skipped": 4}, pytest.ExitCode.TESTS_FAILED),
        (1.0, NEVER, 1, {"passed": 1, "failed": 1}, pytest.ExitCode.TESTS_FAILED),
        (0.0, LATE, 1, {"passed": 1, "failed": 1}, pytest.ExitCode.TESTS_FAILED),
    ],
)
def test_what_failed_in_a_stall_is_skipped_and_named_last_but_not_often(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    stall_s: float,
    fails: str,
    failing: int,
    outcomes: dict[str, int],
    code: pytest.ExitCode,
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(STALLED.format(stall_s=stall_s))
    pytester.makepyfile(test_time=TIMED.format(fails=fails, failing=failing))
    done = pytester.runpytest_subprocess(*"-p tests.support.stall_skips -p no:asyncio -p no:cacheprovider".split())
    done.assert_outcomes(**outcomes)
    assert done.ret == code
    named = [line for line in done.outlines if line.startswith("test_time.py::")]
    assert named == [f"test_time.py::test_timed[{n}]" for n in range(outcomes.get("skipped", 0))]
    assert ("so this session has failed" in done.stdout.str()) == (len(named) > stall_skips.MOST_SKIPPED)
    if named:
        assert done.outlines[-3:-1] == [named[-1], ""]  # before pytest's last line
