"""Hosts of this machine's Python compile nothing, others everything; and the bundle has one hash all the same."""

import marshal
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ivypy.master.hosts import bundle, compiled

HASH = "from ivypy.master.hosts import bundle; print(*[one.hash for one in bundle.slave_bundles()])"
# All that the slave imports, from a folder, as the bootstrap's Python does: without site, and keeping nothing.
START = """
import sys
from importlib.machinery import SourceFileLoader
made = []
compile_source = SourceFileLoader.source_to_code
def watched(self, data, path, **how):
    made.append(path)
    return compile_source(self, data, path, **how)
sys.path.insert(0, sys.argv[1])
SourceFileLoader.source_to_code = watched
import ivypy.slave.__main__
print(len(made), ivypy.slave.__main__.main.__code__.co_filename)
"""


def placed(files: dict[str, bytes], folder: Path) -> Path:
    for place, data in files.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(data)
    return folder


def compiled_by_a_start(folder: Path) -> int:
    """How many modules; and their code says that it is of the sources there."""
    done = subprocess.run(
        [sys.executable, "-ISBc", START, folder], capture_output=True, text=True, check=True, timeout=100
    )
    count, file = done.stdout.split()
    assert file == str(folder / "ivypy/slave/__main__.py")
    return int(count)


def all_files() -> dict[str, bytes]:
    made = {**bundle.compiled_files("ivypy.protocol"), **bundle.compiled_files("ivypy.slave")}
    return {**bundle.slave_files(), **made, bundle.ENGINE_FILE: bundle.own_engine()}


@pytest.mark.slow
def test_a_host_with_this_python_compiles_nothing_of_the_packages(tmp_path: Path) -> None:
    """But for the root's only line, which is written for the bundle."""
    assert compiled_by_a_start(placed(all_files(), tmp_path)) == 1


@pytest.mark.slow
def test_a_python_with_another_magic_number_takes_the_sources(tmp_path: Path) -> None:
    others = {place: b"\0" * 4 + data[4:] if place.endswith(".pyc") else data for place, data in all_files().items()}
    assert compiled_by_a_start(placed(others, tmp_path)) > 40


def test_each_module_has_its_file_and_nothing_else_has() -> None:
    made = bundle.compiled_files("ivypy.slave")
    tag = sys.implementation.cache_tag
    beside = {place.replace("/__pycache__", "").replace(f".{tag}.pyc", ".py") for place in made}
    assert beside == bundle.sources("ivypy.slave").keys()
    assert f"ivypy/slave/__pycache__/__main__.{tag}.pyc" in made
    assert not any(str(Path(bundle.__file__).parents[2]).encode() in data for data in made.values())


@pytest.mark.slow
def test_the_hash_does_not_depend_on_what_was_kept_nor_on_the_process(tmp_path: Path) -> None:
    hashes = set()
    for seed in ("1", "2"):
        for _ in range(2):  # nothing was kept yet, and then all
            environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPYCACHEPREFIX": str(tmp_path / seed)}
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            hashes.add(subprocess.check_output([sys.executable, "-c", HASH], env=environment, cwd=tmp_path))
    assert len(hashes) == 1


def test_what_cannot_be_the_same_each_time_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "module.py"
    path.write_text("x = 1\n")
    (file,) = compiled.compiled(path, "ivypy/module.py")
    assert file.startswith("ivypy/__pycache__/module.")

    def refuse(*_: object) -> bytes:
        raise ValueError("unmarshallable object")

    monkeypatch.setattr(marshal, "dumps", refuse)
    assert compiled.compiled(path, "ivypy/module.py") == {}


@pytest.mark.slow
@pytest.mark.parametrize("option", ["-O", "-OO"])
def test_a_controller_without_assertions_sends_sources_alone(option: str, tmp_path: Path) -> None:
    words = "from ivypy.master.hosts import bundle; print(len(bundle.compiled_files('ivypy.slave')))"
    assert subprocess.check_output([sys.executable, option, "-c", words], cwd=tmp_path) == b"0\n"
