"""What pyproject.toml cannot say without naming every file: the packages, and the C sources of two extensions."""

from glob import glob
from pathlib import Path

from setuptools import Extension, setup

ROOMS = ("master", "slave", "protocol")


def packages() -> list[str]:
    """The root of the repository is the package ivypy; below it, every folder that has an __init__.py."""
    inits = (init for room in ROOMS for init in Path(room).rglob("__init__.py"))
    return ["ivypy", *sorted(".".join(("ivypy", *init.parent.parts)) for init in inits)]


def extension(name: str, folder: str, flags: list[str], **more: list[str]) -> Extension:
    """An extension module of all C files below `folder`, for every Python from 3.11 on."""
    sources = sorted(glob(f"{folder}/**/*.c", recursive=True))
    headers = sorted(glob(f"{folder}/**/*.h", recursive=True))
    flags = ["-std=c11", "-Wall", "-Wextra", *flags]
    return Extension(name, sources, [folder], depends=headers, extra_compile_args=flags, py_limited_api=True, **more)


setup(
    packages=packages(),
    package_dir={"ivypy": "."},
    package_data={"": ["*.pyi", "py.typed"], "ivypy.master.logs.render": ["page.html"]},
    include_package_data=False,
    ext_modules=[
        extension("ivypy.master.logs.native._rows", "master/logs/native", ["-O3"]),
        # The engine's .so lies beside its C files, which stay out of the wheel.
        extension(
            "ivypy.slave.engine._engine", "slave/engine", ["-O2", "-fvisibility=hidden", "-pthread"],
            extra_link_args=["-pthread"], libraries=["m"],
        ),
    ],
)  # fmt: skip
