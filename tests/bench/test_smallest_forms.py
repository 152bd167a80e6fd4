"""Benches run, each as small as it can be. Of what it prints, only that its figures are numbers is looked at."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lab import SBIN

ROOT = Path(__file__).parents[2]
needs_sshd = pytest.mark.skipif(shutil.which("sshd", path=SBIN) is None, reason="no sshd")
needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="no fio")


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "master --hosts 2 --subintervals 1",
        pytest.param("master --sockets 2 --subintervals 1 --length 1", marks=pytest.mark.long),  # --ssh does all of it
        pytest.param("master --ssh 2 --subintervals 1 --length 1", marks=needs_sshd),
        pytest.param("master --watched 1 --pairs 1 --subintervals 9 --length 1", marks=pytest.mark.long),
        "master --elements 1 --pairs 1 --subintervals 1 --length 0.5",
        "soak --subintervals 40 --hosts 1 --luns 1",
        pytest.param("scale --luns 2 --seconds 1", marks=pytest.mark.long),
        "control --seeds 1 --processes 1 pid",
        "host_connector",
        pytest.param("engine --seconds 0.01 --repeat 1 --only 'null, null, 1'", marks=needs_fio),
        pytest.param("engine --seconds 0.01 --repeat 1", marks=[needs_fio, pytest.mark.long]),
        pytest.param("percentiles --logs 1 --rows 4 --samples 400 --tools-logs 1 --tools-samples 100", marks=needs_fio),
    ],
)
def test_the_smallest_form_of_a_bench(words: str) -> None:
    command = [sys.executable, "-m", *shlex.split(f"tests.bench.{words}")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert "nan" not in done.stdout
