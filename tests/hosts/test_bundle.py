"""The bundle: deterministic, complete, abi3 only."""

import ast
import importlib.machinery
import importlib.util
import os
import platform
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ivypy
from ivypy.master.hosts import bootstrap_script, bundle
from ivypy.master.hosts.errors import BundleError

PATHS = st.from_regex(r"[a-z_]{1,8}(/[a-z_]{1,8}){0,2}\.(py|so)", fullmatch=True)


@given(st.dictionaries(PATHS, st.binary(max_size=200), max_size=5))
def test_what_is_packed_is_what_is_unpacked(files: dict[str, bytes]) -> None:
    assert bootstrap_script.unpack(zlib.decompress(bundle.pack(files).payload)) == files


@given(st.dictionaries(PATHS, st.binary(max_size=50), min_size=1, max_size=5))
def test_the_hash_depends_on_the_files_and_not_on_their_order(files: dict[str, bytes]) -> None:
    backwards = dict(reversed(files.items()))
    assert bundle.pack(backwards) == bundle.pack(files)
    path, data = next(iter(files.items()))
    assert bundle.pack({**files, path: data + b"x"}).hash != bundle.pack(files).hash
    assert bundle.pack({**files, path + "x": b""}).hash != bundle.pack(files).hash


def test_the_hash_is_that_of_sorted_lines() -> None:
    """sha256 of `a <sha256 of 1>` and `b <sha256 of 2>`, a line each; computed with sha256sum."""
    assert (
        bundle.pack({"b": b"2", "a": b"1"}).hash == "dab6fe8597331abab6970673e8e26830441ff8da812a685f36c51bc656fc54a2"
    )


def test_the_processor_is_this_machines_unless_told() -> None:
    assert bundle.pack({}).machine == platform.machine()
    assert bundle.pack({}, "riscv64").machine == "riscv64"


def test_the_slaves_files_are_complete_and_nothing_else() -> None:
    files = bundle.slave_files()
    assert {path.split("/")[0] for path in files} == {"__main__.py", "ivypy"}
    assert {"ivypy/protocol/messages.py", "ivypy/slave/__main__.py", "ivypy/slave/engine/__init__.py"} <= files.keys()
    assert all(path.endswith(".py") for path in files)
    assert not any("__pycache__" in path or "master" in path for path in files)


def test_the_version_travels_in_a_module_of_its_own() -> None:
    found: dict[str, str] = {}
    exec(bundle.slave_files()["ivypy/slave/_bundle.py"], found)
    assert found["VERSION"] == ivypy.__version__


def test_the_same_installation_makes_the_same_bundle() -> None:
    bundle.slave_bundles.cache_clear()
    once = bundle.slave_bundles()
    bundle.slave_bundles.cache_clear()
    assert once == bundle.slave_bundles()


def test_engines_older_than_their_sources_are_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one for this machine's processor ever missing: its own compiler's is there."""

    def engine(machine: str, data: bytes, age_s: int) -> None:
        path = tmp_path / "portable" / machine / "_engine.abi3.so"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (1_000_000 - age_s, 1_000_000 - age_s))

    monkeypatch.setattr(bundle, "folder_of", lambda package: tmp_path)
    monkeypatch.setattr(bundle, "own_engine", lambda: b"own")
    here = platform.machine()
    assert bundle.engines() == {here: b"own"}
    engine("sparc64", b"built", 0)
    assert bundle.engines() == {here: b"own", "sparc64": b"built"}, "as installed: without sources"
    (tmp_path / "loop.c").touch()
    os.utime(tmp_path / "loop.c", (1_000_000 - 5, 1_000_000 - 5))
    engine(here, b"outdated", 10)
    assert bundle.engines() == {here: b"own", "sparc64": b"built"}
    engine(here, b"fresh", 5)
    assert bundle.engines() == {here: b"fresh", "sparc64": b"built"}


def spec_at(path: str) -> importlib.machinery.ModuleSpec:
    return importlib.machinery.ModuleSpec("found", None, origin=path)


def test_a_module_for_one_python_only_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/usr/lib/python3/dist-packages/ivypy/slave/engine/_engine.cpython-311-x86_64-linux-gnu.so"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec_at(path))
    with pytest.raises(BundleError) as caught:
        bundle.own_engine()
    assert str(caught.value) == (
        f"{path} is built for one version of Python only and cannot be sent to hosts;"
        " build it: pip install -e . in the checkout"
    )


def test_an_engine_that_was_not_built_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BundleError) as caught:
        bundle.own_engine()
    assert str(caught.value) == "the engine is missing here; build it: pip install -e . in the checkout"


def test_a_package_that_is_missing_is_named() -> None:
    with pytest.raises(BundleError) as caught:
        bundle.sources("no_such_package")
    assert str(caught.value) == "the package no_such_package is not installed here; install ivypy again"


def test_an_old_python_can_parse_the_bootstrap() -> None:
    """Else it would say SyntaxError, and not that it is too old."""
    source = Path(bootstrap_script.__file__).read_text()
    tree = ast.parse(source, feature_version=(3, 4))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.AnnAssign | ast.NamedExpr)]
    # Annotations are evaluated when the function is defined: only names and strings are sure to be there.
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        for annotation in [function.returns, *(argument.annotation for argument in function.args.args)]:
            assert isinstance(annotation, ast.Name | ast.Constant)


def test_the_bootstrap_needs_only_modules_that_an_old_python_has() -> None:
    tree = ast.parse(Path(bootstrap_script.__file__).read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported == {
        "errno", "fcntl", "hashlib", "importlib.machinery", "os", "shutil", "stat", "subprocess", "sys", "tempfile",
        "time", "zlib",
    }  # fmt: skip
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
