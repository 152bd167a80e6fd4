"""Runs on hosts that are not like this machine: arm64 (emulated by qemu), Python 3.9, an older glibc."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ivypy.master.exit_codes import ExitCode
from ivypy.master.hosts.bundle import OLDEST_GLIBC, portable_engines
from tests.support import debian_hosts
from tests.support.debian_hosts import DebianHost
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
