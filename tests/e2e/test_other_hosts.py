"""Runs on hosts, and wheels for controllers, that are not like this machine: arm64 (emulated by qemu), Python 3.9, an
older glibc."""

import importlib.util
import platform
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from ivypy.master.hosts.bundle import OLDEST_GLIBC, PORTABLE, portable_engines
from tests.support import debian_hosts
from tests.support.debian_hosts import DEBIAN_12, DebianHost
from tests.support.real_runs import ROOT, Finished, run

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("debian")]

PLAN = """\
hosts: [ {{ name: other, launcher: command, command: {command}, python: {python}, cache_dir: {folder}/cache }} ]
ssh: {{ connect_timeout: 100s }}
engine: {{ backend: "{backend}", threads: 1 }}
lease: 100s          # an emulated host takes its time
start_timeout: 60s
luns: {{ create: {{ path: {folder}/data, size: 1MiB }} }}
workloads: {{ w: {{ iosequencer: random_steady, blocksize: 4KiB, fraction_read: 100%, maxtags: 4, iops: 200 }} }}
defaults: {{ subinterval: 2s, warmup: 2s, measure: 4s }}
steps: [ {{ go: one }} ]
"""


def run_on(host: DebianHost, folder: Path, backend: str) -> Finished:
    if host.machine not in portable_engines():
        pytest.skip(f"there is no engine for {host.machine} that is as new as its sources: run scripts/portable")
    plan = folder / "plan.yaml"
    command = "'" + host.command.replace("'", "''") + "'"
    plan.write_text(PLAN.format(command=command, python=host.python, folder=folder, backend=backend))
    return run(plan, folder / "runs")


def check_the_step(done: Finished) -> None:
    assert done.code in (0, 8), done.out + done.err  # 8: a busy machine, or an emulated one, is late and says so
    (row,) = done.rows("summary.all.csv")
    assert row["errors"] == "0"
    assert float(row["due"]) == pytest.approx(800, abs=4)
    assert float(row["overall_service_count"]) == pytest.approx(800, rel=0.5)


def test_a_run_on_arm64(tmp_path: Path) -> None:
    """Bootstrap, hello, a step. What the emulator lacks is reported as missing."""
    done = run_on(debian_hosts.emulated(), tmp_path, "null")
    check_the_step(done)
    (host,) = done.rows("hosts.csv")
    assert (host["machine"], host["libc"], host["backends"]) == ("aarch64", "glibc 2.31", "null")
    assert re.fullmatch(r"3\.9\.\d+", host["python"])


@pytest.mark.long
def test_backends_that_an_emulated_kernel_lacks_are_named(tmp_path: Path) -> None:
    done = run_on(debian_hosts.emulated(), tmp_path, "auto")
    assert done.code == ExitCode.HOSTS, done.out + done.err
    said = "other: prepare: no backend works here (libaio: this kernel has no asynchronous I/O, "
    assert said in done.err and "; io_uring: this kernel has no io_uring " in done.err


def test_a_run_with_python_3_9_and_an_older_glibc(tmp_path: Path) -> None:
    """Debian 11, but for its kernel."""
    done = run_on(debian_hosts.in_a_chroot(tmp_path), tmp_path, "libaio")
    check_the_step(done)
    (host,) = done.rows("hosts.csv")
    assert (host["machine"], host["libc"]) == ("x86_64", "glibc 2.31")
    assert re.fullmatch(r"3\.9\.\d+", host["python"])


def test_engines_that_travel_need_no_newer_glibc() -> None:
    engines = sorted((ROOT / "slave/engine/portable").glob("*/*.so"))
    if not engines or shutil.which("readelf") is None:
        pytest.skip("run scripts/portable; readelf is needed, too")
    for path in engines:
        text = subprocess.run(["readelf", "--version-info", "--wide", path], capture_output=True, text=True).stdout
        needed = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([0-9.]+)", text)}
        assert needed and max(needed) <= OLDEST_GLIBC, path


PARSE = """\
import sys
from array import array
sys.path.insert(0, sys.argv[1])
from _rows import parse_smallfile
stamps, values, directions = array("q", [0] * 4), array("q", [0] * 4), array("B", [0] * 4)
*_, bad = parse_smallfile(b"create, 0.000037, 0.000065\\n", stamps, values, directions)
print(stamps[0], values[0], bad)
"""


def cross_compiler(machine: str, headers: Path) -> list[str]:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("there is no ziglang here: run scripts/portable")
    words: list[str] = runpy.run_path(str(ROOT / "setup.py"))["cross_compiler"](machine, headers)
    return words


def like_debians(folder: Path) -> Path:
    """Python's headers where Debian's packages have them: those of a processor in a folder with its name."""
    here, multiarch = Path(sysconfig.get_path("include")), str(sysconfig.get_config_var("MULTIARCH"))
    own = here.parent / multiarch / here.name / "pyconfig.h"  # where they are so on this machine
    there = folder / "usr/include" / here.name
    shutil.copytree(here, there)
    (folder / "usr/include" / multiarch / here.name).mkdir(parents=True)
    shutil.copy(own if own.exists() else here / "pyconfig.h", folder / "usr/include" / multiarch / here.name)
    (there / "pyconfig.h").write_text(
        "".join(f"#ifdef __{name}__\n#include <{name}-linux-gnu/{here.name}/pyconfig.h>\n#endif\n" for name in PORTABLE)
    )
    return there


def test_what_a_wheel_for_arm64_loads_works_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled here, as scripts/wheel does it, also with the headers of Debian's own Python."""
    include = like_debians(tmp_path)
    paths = sysconfig.get_path
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(include) if name == "include" else paths(name))
    sources = sorted(map(str, (ROOT / "master/logs/native").glob("*.c")))
    for machine in PORTABLE:
        (tmp_path / machine).mkdir()
        cross = cross_compiler(machine, tmp_path / machine)
        place = tmp_path / machine / "_rows.abi3.so"
        subprocess.run([*cross, "-shared", "-fPIC", "-O3", *sources, "-o", place], check=True)
    here = [sys.executable, "-c", PARSE, tmp_path / platform.machine()]
    there = [debian_hosts.emulated(DEBIAN_12).python, "-c", PARSE, tmp_path / "aarch64"]
    assert output(there) == output(here) == "102000 65000 False\n"


def output(words: Sequence[object]) -> str:
    return subprocess.run([*map(str, words)], capture_output=True, text=True, check=True).stdout
