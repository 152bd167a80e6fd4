"""fio beside the engine: same device, depth and block size; its latency from submission on (`lat`, not `clat`)."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Fio:
    version: str
    iops: float
    mean_ns: float
    p99_ns: float

    @property
    def latency(self) -> tuple[float, float]:
        return self.mean_ns, self.p99_ns


def fio(path: str, seconds: float, *options: str, launcher: Sequence[str] = ()) -> Fio:
    """Random reads of 4 KiB with libaio, unless `options` say otherwise; a machine without fio skips."""
    if shutil.which("fio") is None:
        pytest.skip("this machine lacks fio")
    words = [*launcher, "fio", "--name=beside", f"--filename={path}", "--direct=1", "--ioengine=libaio", "--bs=4k"]
    words += ["--rw=randread", "--norandommap", "--time_based", f"--runtime={seconds}", "--lat_percentiles=1"]
    words += ["--output-format=json", *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout[done.stdout.index("{") :])
    read = report["jobs"][0]["read"]
    latency = read["lat_ns"]
    return Fio(report["fio version"], read["iops"], latency["mean"], latency["percentile"]["99.000000"])
