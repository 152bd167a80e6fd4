"""Containerfile and recipes: what they take is what scripts/wheel makes, and no more of a clone goes to the builder.

No image can be fetched here. Built and run it was by hand, with buildah.
"""

import fnmatch
import platform
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from ivypy import __version__
from tests.support.real_runs import ROOT

TEXT = (ROOT / "Containerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# As scripts/wheel names them; .ci/wheel, which builds them, looks for the same.
WHEELS = [f"ivypy_load-{__version__}-cp311-abi3-manylinux_2_28_{machine}.whl" for machine in ("aarch64", "x86_64")]


def instructions() -> list[tuple[str, str]]:
    """Each instruction with its arguments."""
    lines = [line for line in re.sub(r"\\\n", " ", TEXT).splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def arguments(name: str) -> list[str]:
    return [rest for word, rest in instructions() if word == name]


def test_it_is_made_of_known_instructions_and_ends_as_a_user_without_rights() -> None:
    known = {"FROM", "COPY", "RUN", "USER", "WORKDIR", "ENTRYPOINT"}
    assert {word for word, _ in instructions()} <= known and instructions()[0][0] == "FROM"
    assert arguments("ENTRYPOINT") == [f'["{next(iter(PROJECT["scripts"]))}"]']
    assert arguments("USER")[-1] in re.findall(r"useradd .* (\w+) &&", TEXT) != ["root"]


def test_its_python_is_one_that_ivypy_supports() -> None:
    (base,) = arguments("FROM")
    version = re.fullmatch(r"python:3\.(\d+)-slim", base)
    oldest = re.fullmatch(r">=3\.(\d+)", PROJECT["requires-python"])
    assert version and oldest and int(version[1]) >= int(oldest[1])


def test_what_it_copies_is_what_the_builder_gets() -> None:
    (copied,) = arguments("COPY")
    pattern, place = copied.split()
    assert all(fnmatch.fnmatch(f"dist/{wheel}", pattern) for wheel in WHEELS)
    left_out = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert (left_out, pattern.split("/")[0], place) == (["*", "!dist"], "dist", "/wheels/")


def test_it_installs_the_newest_wheel_for_its_processor(tmp_path: Path) -> None:
    """The shell's words, by a shell: `pip` prints what it would install."""
    (install,) = (rest for rest in arguments("RUN") if rest.startswith("pip install"))
    for name in [*WHEELS, *(name.replace(__version__, "0.9.0") for name in WHEELS)]:
        (tmp_path / name).touch()
    script = 'pip() { printf "%s\\n" "$@"; }; ' + install.replace("/wheels/", f"{tmp_path}/")
    done = subprocess.run(["sh", "-euc", script], capture_output=True, text=True, check=True)
    (wheel,) = (word for word in done.stdout.splitlines() if ".whl" in word)
    path, extra = wheel.rstrip("]").split("[")
    (newest,) = (name for name in WHEELS if platform.machine() in name)
    assert path == f"{tmp_path}/{newest}" and extra in PROJECT["optional-dependencies"]


def install_commands() -> list[str]:
    """Each line of the docs, and of their recipes, that installs a wheel by a pattern."""
    files = [file for suffix in ("md", "yml", "yaml", "sh") for file in sorted((ROOT / "docs").rglob(f"*.{suffix}"))]
    lines = [line.strip().removeprefix("- ") for file in files for line in file.read_text().splitlines()]
    return [line for line in lines if ".whl" in line and " install " in line]


def test_every_recipe_that_installs_a_wheel_is_known() -> None:
    assert len(install_commands()) == 3


@pytest.mark.parametrize("command", install_commands())
def test_the_docs_install_the_newest_wheel_for_this_processor(command: str, tmp_path: Path) -> None:
    for name in [name.replace(__version__, version) for name in WHEELS for version in ("1.0.0", "1.9.0", "1.10.0")]:
        (tmp_path / name).touch()
    script = re.sub(r"/opt/lab/|\bdist/", f"{tmp_path}/", command.replace("venv/bin/", ""))
    printing = 'pip() { printf "%s\\n" "$@"; }; pipx() { pip "$@"; }; '
    done = subprocess.run(["sh", "-euc", printing + script], capture_output=True, text=True, check=True)
    wheels = [Path(word.partition("[")[0]).name for word in done.stdout.splitlines() if ".whl" in word]
    assert wheels == [name.replace(__version__, "1.10.0") for name in WHEELS if platform.machine() in name]
