"""The command's first moment: quick, and quiet when it is interrupted."""

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ivypy import __version__
from ivypy.protocol.distribution import DISTRIBUTION
from tests.support.fork_server import COMMAND
from tests.support.real_runs import ROOT

SLOW_IMPORT = """\
import time
print("importing", flush=True)
time.sleep(60)
"""


def test_interrupt_during_imports_prints_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text(SLOW_IMPORT)
    process = subprocess.Popen(
        [COMMAND, "run", "plan.yaml"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert process.stdout is not None and process.stdout.readline() == "importing\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "")


def test_help_imports_no_module_that_only_commands_need() -> None:
    code = "import sys; from ivypy.master.cli import commands; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "pydantic", "yaml", "asyncssh", "asyncio", "psutil", "rich", "importlib.metadata", "scipy"}
    assert heavy.isdisjoint(done.stdout.split())
    assert "ivypy.protocol.messages" not in done.stdout.split()


@pytest.mark.parametrize(("said", "threads"), [({}, 1), ({"OPENBLAS_NUM_THREADS": "2"}, 2)], ids=["ours", "the user's"])
def test_the_command_has_no_threads_of_numpy_unless_its_user_wants_them(said: dict[str, str], threads: int) -> None:
    """A controller of 128 cores would start 127, each with a stack and a loop in which it waits."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("with one core, numpy starts none")
    code = "import os; import ivypy.master.cli.main, numpy; print(len(os.listdir('/proc/self/task')))"
    around = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", code], env=around | said, capture_output=True, text=True, check=True)
    assert int(done.stdout) == threads


def test_the_started_command_prints_its_version() -> None:
    done = subprocess.run([COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"ivypy, version {__version__}\n", "")


@pytest.mark.parametrize(
    "code",
    [
        "from ivypy import __version__; print(__version__)",
        "from ivypy.slave.link.host_info import identity; print(identity()[0])",
        "from ivypy.master.cli.commands import cli; cli(['--version'], prog_name='ivypy')",
    ],
    ids=["package", "slave", "command"],
)
def test_another_distribution_called_ivypy_does_not_change_the_version(code: str, tmp_path: Path) -> None:
    """PyPI has one."""
    info = tmp_path / "ivypy-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ivypy\nVersion: 0.1\n")
    around = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=around, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == __version__ != "0.1"


def test_the_code_knows_the_name_that_installers_use() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (project["name"], project["version"]) == (DISTRIBUTION, __version__)
