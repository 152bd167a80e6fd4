"""Benches run: each way of `scripts/bench master`, as small as it can be. What it prints is not looked at."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "--hosts 2 --subintervals 1",
        "--sockets 2 --subintervals 1 --length 1",
        "--ssh 2 --subintervals 1 --length 1",
    ],
)
def test_bench_of_the_controller(words: str) -> None:
    command = [sys.executable, "-m", "tests.bench.master", *words.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert "nan" not in done.stdout
