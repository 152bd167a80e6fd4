"""Debian from its packages, for arm64 (emulated) and for this processor: 11 (Python 3.9, glibc 2.31) as a test host,
12 (Python 3.11) as what a controller needs at least.

Rule: nothing of this machine changes: apt has lists and caches of its own, packages are only unpacked, and stay below
.venv for the next time.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from .real_runs import ROOT

PATIENCE_S: Final = 60.0
KEPT: Final = ROOT / ".venv" / "debian"


@dataclass(frozen=True)
class Release:
    """What differs between Debian's releases."""

    suite: str
    python: str
    libffi: str

    @property
    def packages(self) -> tuple[str, ...]:
        python = (f"{self.python}-minimal", f"lib{self.python}-minimal", f"lib{self.python}-stdlib")
        return "libc6", "libgcc-s1", "zlib1g", "libexpat1", self.libffi, *python


DEBIAN_11: Final = Release("bullseye", "python3.9", "libffi7")
DEBIAN_12: Final = Release("bookworm", "python3.11", "libffi8")


@dataclass(frozen=True)
class DebianHost:
    """How a plan names it."""

    machine: str  # as `uname -m` prints it there
    command: str
    python: str


def emulated(release: Release = DEBIAN_11) -> DebianHost:
    """arm64: each program is translated by qemu, which does not know libaio and io_uring."""
    if (qemu := shutil.which("qemu-aarch64-static")) is None:
        pytest.skip("this machine lacks qemu-aarch64-static (Debian: qemu-user-static)")
    root = unpacked("arm64", release)
    # What the slave's start executes is a script, since the kernel knows nothing of qemu.
    python = root / "usr/bin/emulated"
    words = [qemu, "-0", str(python), "-L", str(root), f"{root}/usr/bin/{release.python}"]
    if not python.exists():  # another test may be running it
        fresh = python.with_suffix(f".{os.getpid()}")
        fresh.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        fresh.chmod(0o755)
        fresh.rename(python)
    return DebianHost("aarch64", "env", str(python))


def in_a_chroot(shared: Path) -> DebianHost:
    """This machine's kernel and processor with Debian 11's C library and Python; `shared` is seen there, too."""
    root, python = unpacked("amd64", DEBIAN_11), f"/usr/bin/{DEBIAN_11.python}"
    binds = [
        f"mkdir -p {root}{path} && mount --rbind {path} {root}{path}" for path in ("/proc", "/sys", "/dev", shared)
    ]
    enter = ["unshare", "--mount", "sh", "-c", " && ".join([*binds, f'exec chroot {root} "$@"']), "sh"]
    if subprocess.run([*enter, python, "-c", ""], capture_output=True).returncode:
        pytest.skip("no chroot in a mount namespace of its own here (root is needed, on x86-64)")
    return DebianHost("x86_64", shlex.join(enter), python)


@cache
def unpacked(architecture: str, release: Release) -> Path:
    """The root of its file system. Skips where the packages cannot be had."""
    place = KEPT / f"{release.suite}-{architecture}"
    if place.exists():
        return place
    if missing := [program for program in ("apt-get", "dpkg") if shutil.which(program) is None]:
        pytest.skip(f"this machine lacks {missing}")
    fresh = KEPT / f"{os.getpid()}"
    for folder in ("root", "debs", "lists/partial", "cache/archives/partial"):
        (fresh / folder).mkdir(parents=True, exist_ok=True)
    (fresh / "status").touch()
    try:
        fetch(fresh, architecture, release)
        if not place.exists():  # another may have been quicker
            (fresh / "root").rename(place)
    except (subprocess.SubprocessError, IndexError, OSError) as error:
        if place.exists():
            return place
        pytest.skip(f"no packages of Debian's {release.suite} for {architecture}: {error}")
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return place


def fetch(fresh: Path, architecture: str, release: Release) -> None:
    """Download and unpack, from the mirror that this machine has its own packages from."""
    mirror = run(["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian"])
    (fresh / "sources").write_text(f"deb {mirror.splitlines()[0]} {release.suite} main\n")
    options = {
        "APT::Architecture": architecture,
        "APT::Architectures": architecture,
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Dir::State::Lists": fresh / "lists",
        "Dir::State::status": fresh / "status",
        "Dir::Cache": fresh / "cache",
        "Dir::Etc::sourcelist": fresh / "sources",
        "Dir::Etc::sourceparts": "/dev/null",
    }
    apt = ["apt-get", "-qq", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
    run([*apt, "update"])
    run([*apt, "download", *release.packages], fresh / "debs")
    for package in sorted((fresh / "debs").glob("*.deb")):
        run(["dpkg", "-x", str(package), str(fresh / "root")])


def run(words: Sequence[str], folder: Path | None = None) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return done.stdout
