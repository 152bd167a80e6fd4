"""What the commands load before they do anything: each module delays every call."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.logs import NULL4, case_logs

pytestmark = pytest.mark.slow

LOADED = (
    "import sys; from ivypy.master.cli.{0} import {0}; {0}(sys.argv[1:], standalone_mode=False); print(*sys.modules)"
)


def modules(command: str, *words: object) -> set[str]:
    """The modules that a command has loaded when it ends."""
    code = [sys.executable, "-c", LOADED.format(command), *map(str, words)]
    return set(subprocess.run(code, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "unneeded",
    ["rollup.metrics", "control.observation", "plan.model", "logs.result.accuracy_check", "logs.compat.pctiles"],
)
def test_percentiles_of_logs_load_no_other_room(unneeded: str, tmp_path: Path) -> None:
    loaded = modules("percentiles", "-o", tmp_path / "out.csv", *case_logs(NULL4, "*_clat_hist.1.log.gz"))
    assert "ivypy.master.logs.execute" in loaded and f"ivypy.master.{unneeded}" not in loaded


def test_no_command_loads_the_comparison_before_it_compares() -> None:
    code = "import sys, ivypy.master.cli.commands; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "ivypy.master.cli.compare" in loaded
    assert [one for one in loaded if one == "numpy" or one.startswith("ivypy.master.compare")] == []
