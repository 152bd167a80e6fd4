"""What pyproject.toml cannot say without naming every file: the packages, and the C sources of two extensions."""

import os
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import Command, Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

ROOMS = ("master", "slave", "protocol")

# tests/bench/parts/instructions.py builds with these, too. Link-time optimisation: the loop calls small functions of
# other files for each I/O, and takes up to a tenth fewer instructions with it.
HARDENED = ["-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"]
LINKED = ["-Wl,-z,relro,-z,now"]
C_FLAGS = ["-std=c11", "-Wall", "-Wextra", *HARDENED]
LTO = "-flto=auto"
ENGINE_FLAGS = ["-O3", LTO, "-fvisibility=hidden", "-pthread"]


# For test hosts: zig cross-compiles for any kernel's C library since this one (scripts/portable).
GLIBC = "2.28"
MACHINES = ("aarch64", "x86_64")
PORTABLE = Path("slave/engine/portable")
WHEEL_FOR = os.environ.get("IVYPY_WHEEL_FOR")  # scripts/wheel: for controllers of this kind, with these engines
IN_PLACE = "IVYPY_IN_PLACE" in os.environ  # scripts/setup: scripts/extensions builds the modules


def packages() -> list[str]:
    """The root of the repository is the package ivypy; below it, every folder that has an __init__.py."""
    inits = (init for room in ROOMS for init in Path(room).rglob("__init__.py"))
    return ["ivypy", *sorted(".".join(("ivypy", *init.parent.parts)) for init in inits)]


def extension(name: str, folder: str, flags: list[str], **more: list[str]) -> Extension:
    """An extension module of all C files below `folder`, in the limited API."""
    sources = sorted(glob(f"{folder}/**/*.c", recursive=True))
    headers = sorted(glob(f"{folder}/**/*.h", recursive=True))
    flags = [*C_FLAGS, *flags]
    return Extension(name, sources, [folder], depends=headers, extra_compile_args=flags, py_limited_api=True, **more)


class BuildExtensions(build_ext):
    """Builds without link-time optimisation where it cannot be had: clang needs a plugin of its linker for it."""

    def build_extensions(self) -> None:
        """Without a path of this machine's Python: the engine goes to test hosts, where it may be anybody's folder."""
        self.compiler.linker_so = [word for word in self.compiler.linker_so if "-rpath" not in word]
        if WHEEL_FOR:
            cross = cross_compiler(WHEEL_FOR, Path(self.build_temp) / "include")
            self.compiler.set_executables(compiler_so=[*cross, "-fPIC"], linker_so=[*cross, "-shared", "-s"])
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except (CompileError, LinkError):
            if LTO not in ext.extra_compile_args:
                raise
            print(f"{ext.name}: once more without {LTO}")
            ext.extra_compile_args.remove(LTO)
            ext.extra_link_args.remove(LTO)
            super().build_extension(ext)


class BuildPortable(Command):
    """Builds slave/engine/portable/MACHINE/_engine.abi3.so for each machine named (`--machines a,b`; all)."""

    description = "cross-compile the engine for test hosts"
    user_options = [("machines=", None, "as `uname -m` prints them, with commas")]  # noqa: RUF012

    def initialize_options(self) -> None:
        self.machines = ",".join(MACHINES)

    def finalize_options(self) -> None:
        pass

    def run(self) -> None:
        with ThreadPoolExecutor() as pool:
            list(pool.map(build_portable, self.machines.split(",")))


def cross_compiler(machine: str, headers: Path) -> list[str]:
    """zig's compiler for this kind of machine, with Python's headers.

    Debian's Python.h includes that processor's own pyconfig.h, which is not here. A copy of this machine's stands for
    it in `headers`: the limited API is the same for each.
    """
    python = Path(sysconfig.get_path("include"))
    own = python.parent / str(sysconfig.get_config_var("MULTIARCH")) / python.name / "pyconfig.h"
    if own.exists():
        copy = headers / f"{machine}-linux-gnu" / python.name / "pyconfig.h"
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(own.read_bytes())
    return [
        sys.executable,
        "-m",
        "ziglang",
        "cc",
        "-target",
        f"{machine}-linux-gnu.{GLIBC}",
        f"-I{headers}",
        f"-I{python}",
    ]


def build_portable(machine: str) -> None:
    """Unless it is new enough."""
    folder = "slave/engine"
    sources = sorted(glob(f"{folder}/**/*.c", recursive=True))
    headers = glob(f"{folder}/**/*.h", recursive=True)
    place = PORTABLE / machine / "_engine.abi3.so"
    if place.exists() and place.stat().st_mtime > max(map(os.path.getmtime, ["setup.py", *sources, *headers])):
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_suffix(f".{os.getpid()}")
    flags = [flag if flag != LTO else "-flto" for flag in ENGINE_FLAGS]
    with TemporaryDirectory() as copied:
        cross = [*cross_compiler(machine, Path(copied)), "-shared", "-fPIC", "-s"]
        subprocess.run([*cross, *C_FLAGS, *flags, *LINKED, f"-I{folder}", *sources, "-lm", "-o", fresh], check=True)
    fresh.rename(place)


if __name__ == "__main__":
    setup(
        cmdclass={"build_ext": BuildExtensions, "portable": BuildPortable},
        packages=packages(),
        package_dir={"ivypy": "."},
        package_data={
            "": ["*.pyi", "py.typed"],
            "ivypy": ["docs/*.md"],  # for `ivypy help`
            "ivypy.master.pages": ["static/*"],
            "ivypy.slave.engine": ["portable/*/*.so"] if WHEEL_FOR else [],
        },
        data_files=[("share/man/man1", ["docs/ivypy.1"])],
        include_package_data=False,
        ext_modules=[] if IN_PLACE else [
            extension("ivypy.master.logs.native._rows", "master/logs/native", ["-O3"], extra_link_args=list(LINKED)),
            # The engine's .so lies beside its C files, which stay out of the wheel.
            *([] if WHEEL_FOR else [extension(
                "ivypy.slave.engine._engine", "slave/engine", list(ENGINE_FLAGS),
                extra_link_args=[*ENGINE_FLAGS, *LINKED], libraries=["m"],
            )]),
        ],
    )  # fmt: skip
