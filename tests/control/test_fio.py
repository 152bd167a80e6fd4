"""fio's own steady-state decisions, from runs that the test makes: the second of stopping and every objective."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from ivypy.master.control.offline import ValueSeries, first_attained, windows
from tests.support.control_specs import criterion_named

pytestmark = [pytest.mark.long, pytest.mark.skipif(shutil.which("fio") is None, reason="there is no fio here")]
WINDOW = 4
SAMPLE = re.compile(r"rate_msec: (\d+), iops: (\d+), bw: (\d+)")


@dataclass(frozen=True)
class Recorded:
    """What `--debug=steadystate` printed."""

    columns: dict[str, list[float]]
    objectives: list[float]
    attained: bool


def record(criterion: str, folder: Path) -> Recorded:
    """One run of fio's null engine with Poisson arrivals, of at most ten seconds."""
    command = [
        "fio", "--name=a", "--ioengine=null", "--size=1T", "--rw=randread", "--rate_iops=2000", "--thread",
        "--rate_process=poisson", "--runtime=10", "--time_based", f"--ss={criterion}", f"--ss_dur={WINDOW}",
        "--debug=steadystate",
    ]  # fmt: skip
    printed = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=True).stdout
    samples = [tuple(map(float, found)) for found in SAMPLE.findall(printed)]
    objectives = [float(found) for found in re.findall(r"(?:objective|criterion): (-?[0-9.]+)", printed)]
    columns = {"iops": [iops for _, iops, _ in samples], "bw": [bw for _, _, bw in samples]}
    return Recorded(columns, objectives, "attained=yes" in printed)


@pytest.mark.parametrize("named", ["iops:1.5%", "iops_slope:0.4%", "bw:1.5%", "bw_slope:10000", "iops:0.0001%"])
def test_steady_state_is_attained_in_the_same_second_as_fios(named: str, tmp_path: Path) -> None:
    recorded = record(named, tmp_path)
    name, limit = named.split(":")
    criterion = criterion_named(name, WINDOW, float(limit.rstrip("%")), limit.endswith("%"))
    values = recorded.columns[name.removesuffix("_slope")]
    got = first_attained(
        windows(criterion, ValueSeries([float(n) for n in range(len(values))], [1.0] * len(values), values))
    )
    assert (got is not None) is recorded.attained
    if got is not None:
        assert got.second == len(values)  # fio looked no further
        assert got.score.value == pytest.approx(recorded.objectives[-1], rel=1e-3, abs=1e-5)
