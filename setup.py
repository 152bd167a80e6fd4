"""What pyproject.toml cannot say without naming every file: the packages, and the C sources of two extensions."""

from glob import glob
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError

ROOMS = ("master", "slave", "protocol")

# tests/bench/parts/instructions.py builds with these, too. Link-time optimisation: the loop calls small functions of
# other files for each I/O, and takes up to a tenth fewer instructions with it.
C_FLAGS = ["-std=c11", "-Wall", "-Wextra"]
LTO = "-flto=auto"
ENGINE_FLAGS = ["-O3", LTO, "-fvisibility=hidden", "-pthread"]


def packages() -> list[str]:
    """The root of the repository is the package ivypy; below it, every folder that has an __init__.py."""
    inits = (init for room in ROOMS for init in Path(room).rglob("__init__.py"))
    return ["ivypy", *sorted(".".join(("ivypy", *init.parent.parts)) for init in inits)]


def extension(name: str, folder: str, flags: list[str], **more: list[str]) -> Extension:
    """An extension module of all C files below `folder`, for every Python from 3.11 on."""
    sources = sorted(glob(f"{folder}/**/*.c", recursive=True))
    headers = sorted(glob(f"{folder}/**/*.h", recursive=True))
    flags = [*C_FLAGS, *flags]
    return Extension(name, sources, [folder], depends=headers, extra_compile_args=flags, py_limited_api=True, **more)


class BuildExtensions(build_ext):
    """Builds without link-time optimisation where it cannot be had: clang needs a plugin of its linker for it."""

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


if __name__ == "__main__":
    setup(
        cmdclass={"build_ext": BuildExtensions},
        packages=packages(),
        package_dir={"ivypy": "."},
        package_data={"": ["*.pyi", "py.typed"], "ivypy.master.logs.render": ["page.html"]},
        include_package_data=False,
        ext_modules=[
            extension("ivypy.master.logs.native._rows", "master/logs/native", ["-O3"]),
            # The engine's .so lies beside its C files, which stay out of the wheel.
            extension(
                "ivypy.slave.engine._engine", "slave/engine", list(ENGINE_FLAGS),
                extra_link_args=list(ENGINE_FLAGS), libraries=["m"],
            ),
        ],
    )  # fmt: skip
