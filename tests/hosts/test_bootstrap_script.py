"""The far side's cache: whole bundles or none, whoever comes at once, whatever was done to it."""

import asyncio
import fcntl
import os
import py_compile
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ivypy.master.hosts import bootstrap_client, bootstrap_script
from ivypy.master.hosts.bundle import Bundle
from ivypy.master.hosts.host_spec import HostSpec
from ivypy.master.hosts.launch import open_pipe
from ivypy.master.hosts.login_throttle import LoginThrottle
from tests.support.stand_in_slave import ask, connected, fault, line, local, opened, stand_in

pytestmark = pytest.mark.slow

OLD = bootstrap_script.OLD_S + 60


async def words(spec: HostSpec, bundle: Bundle | None = None) -> list[str]:
    """The words that the bootstrap says until the slave runs."""
    log: list[str] = []
    async with opened(spec, bundle, log.append):
        pass
    return [text.removeprefix("<- ivypy-boot ").split("\t")[0] for text in log if text.startswith("<- ivypy-boot ")]


async def test_a_bundle_is_sent_once(tmp_path: Path) -> None:
    assert await words(local(tmp_path / "cache")) == ["send", "run"]
    assert await words(local(tmp_path / "cache")) == ["run"]


async def test_a_cache_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    await words(local(tmp_path / "a" / "cache"))
    cache = tmp_path / "a" / "cache"
    assert cache.stat().st_mode & 0o777 == 0o700
    (bundle,) = cache.iterdir()
    assert bundle.stat().st_mode & 0o777 == 0o700
    assert bundle.name == stand_in().hash


@pytest.mark.parametrize("base", ["XDG_CACHE_HOME", "HOME"])
async def test_the_default_cache_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "HOME"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "XDG_CACHE_HOME") if base == "XDG_CACHE_HOME" else "relative")
    await words(local(tmp_path, cache_dir=None))
    cache = {"XDG_CACHE_HOME": tmp_path / base / "ivypy", "HOME": tmp_path / base / ".cache" / "ivypy"}[base]
    assert [entry.name for entry in cache.iterdir()] == [stand_in().hash]


async def test_a_tilde_is_the_home_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    await words(local(tmp_path, cache_dir="~/my cache/"))
    assert (tmp_path / "my cache" / stand_in().hash).is_dir()


def change(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"#")


TAMPERINGS: dict[str, Callable[[Path], object]] = {
    "a changed file": lambda bundle: change(bundle / "__main__.py"),
    "a missing file": lambda bundle: (bundle / "__main__.py").unlink(),
    "one more file": lambda bundle: (bundle / "_engine.cpython-311-x86_64-linux-gnu.so").write_bytes(b""),
    "a link to a folder": lambda bundle: (bundle / "more").symlink_to("/usr/lib"),
    "a pipe": lambda bundle: os.mkfifo(bundle / "pipe"),
    "compiled leftovers": lambda bundle: py_compile.compile(
        str(bundle / "other.py"), str(bundle / "__pycache__/other.pyc")
    ),
}


@pytest.mark.parametrize("tampering", TAMPERINGS)
async def test_a_bundle_that_was_changed_is_replaced(tmp_path: Path, tampering: str) -> None:
    cache, bundle = tmp_path / "cache", stand_in(**{"other.py": b""})
    await words(local(cache), bundle)
    place = cache / bundle.hash
    TAMPERINGS[tampering](place)
    assert await words(local(cache), bundle) == ["send", "note", "run"]
    assert sorted(path.name for path in place.iterdir()) == ["__main__.py", "other.py"]
    assert [path.name for path in cache.iterdir()] == [bundle.hash]


async def test_a_link_in_place_of_a_file_is_replaced(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    await words(local(cache))
    main = cache / stand_in().hash / "__main__.py"
    elsewhere = tmp_path / "same.py"
    main.rename(elsewhere)
    main.symlink_to(elsewhere)
    assert await words(local(cache)) == ["send", "note", "run"]
    assert not main.is_symlink()


async def test_a_file_in_place_of_the_bundle_is_replaced(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(0o700)
    (cache / stand_in().hash).touch()
    assert await words(local(cache)) == ["send", "note", "run"]


async def test_a_changed_bundle_in_use_is_left_to_its_user(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    async with opened(local(cache)) as pipe:
        change(cache / stand_in().hash / "__main__.py")
        found = await fault(local(cache))
        assert found.what == (
            f"the cache {cache} cannot be used (the bundle {stand_in().hash[:12]} in it was changed while it is in use)"
        )
        assert await ask(pipe, "say unhurt") == "unhurt"


async def test_eight_controllers_at_once(tmp_path: Path) -> None:
    spec, log = local(tmp_path / "cache"), list[str]()
    throttle, bundle = LoginThrottle(), stand_in()
    pipes = await asyncio.gather(*(open_pipe(spec, [bundle], throttle, log.append) for _ in range(8)))
    for pipe in pipes:
        assert await line(pipe) == f"hello {bundle.hash}"
    await asyncio.gather(*(pipe.close() for pipe in pipes))
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == [bundle.hash]


async def test_eight_controllers_at_once_find_a_changed_bundle(tmp_path: Path) -> None:
    spec = local(tmp_path / "cache")
    await words(spec)
    change(tmp_path / "cache" / stand_in().hash / "__main__.py")
    await asyncio.gather(*(words(spec) for _ in range(8)))
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == [stand_in().hash]


def aged(cache: Path, count: int, age_s: float, now: float = 1e9) -> list[Path]:
    """Bundles of that age, each a second older than the one before."""
    made = []
    for number in range(count):
        (cache / "being made").mkdir()
        (cache / "being made" / "__main__.py").write_text(f"# {number}")
        path = cache / bootstrap_script.digest_of(bootstrap_script.hashes(str(cache / "being made")))
        (cache / "being made").rename(path)
        os.utime(path, (now, now - age_s - number))
        made.append(path)
    return made


def test_old_bundles_beyond_the_newest_are_removed(tmp_path: Path) -> None:
    bundles = aged(tmp_path, bootstrap_script.KEPT + 3, OLD)
    bootstrap_script.sweep(str(tmp_path), 1e9)
    assert set(tmp_path.iterdir()) == set(bundles[: bootstrap_script.KEPT])


def test_what_was_used_today_stays_however_many_there_are(tmp_path: Path) -> None:
    """Locks do not reach across hosts that share a home directory."""
    bundles = aged(tmp_path, bootstrap_script.KEPT + 3, 60)
    bootstrap_script.sweep(str(tmp_path), 1e9)
    assert set(tmp_path.iterdir()) == set(bundles)


def test_an_old_bundle_in_use_stays(tmp_path: Path) -> None:
    bundles = aged(tmp_path, bootstrap_script.KEPT + 2, OLD)
    used = os.open(bundles[-1], os.O_RDONLY)
    fcntl.flock(used, fcntl.LOCK_SH)
    bootstrap_script.sweep(str(tmp_path), 1e9)
    os.close(used)
    assert set(tmp_path.iterdir()) == {*bundles[: bootstrap_script.KEPT], bundles[-1]}


def test_leftovers_of_transfers_are_removed_and_foreign_files_are_kept(tmp_path: Path) -> None:
    layers = [f"{number:064x}" for number in range(bootstrap_script.KEPT + 3)]  # as programs name things by hashes
    theirs = {"mine", ".old-photos", ".new-songs", *layers}
    for name in (".ivypy-new-1", ".ivypy-old-1", ".ivypy-new-today", *theirs):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (1e9, 1e9 - (60 if "today" in name else OLD)))
    bootstrap_script.sweep(str(tmp_path), 1e9)
    assert {path.name for path in tmp_path.iterdir()} == {".ivypy-new-today", *theirs}


async def test_a_running_slave_holds_its_bundle(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    async with opened(local(cache)):
        assert not bootstrap_script.remove_unused(str(cache / stand_in().hash))
    assert bootstrap_script.remove_unused(str(cache / stand_in().hash))
    assert list(cache.iterdir()) == []


async def test_a_new_bundle_sweeps_the_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(0o700)
    aged(cache, bootstrap_script.KEPT + 3, OLD)
    async with opened(local(cache)):
        assert len(list(cache.iterdir())) == bootstrap_script.KEPT
        assert (cache / stand_in().hash).is_dir()


def test_waiting_for_the_lock_notices_that_the_bundle_was_removed(tmp_path: Path) -> None:
    (bundle,) = aged(tmp_path, 1, 0)
    digest = bootstrap_script.digest_of(bootstrap_script.hashes(str(bundle)))
    remover = os.open(bundle, os.O_RDONLY)
    fcntl.flock(remover, fcntl.LOCK_EX)
    found: list[int | None] = []
    waiting = threading.Thread(target=lambda: found.append(bootstrap_script.hold(str(bundle), digest)))
    waiting.start()
    waits = re.compile(rf"-> FLOCK .*:{bundle.stat().st_ino} ")
    while not waits.search(Path("/proc/locks").read_text()):
        pass
    bundle.rename(tmp_path / "away")
    os.close(remover)
    waiting.join()
    assert found == [None]


async def test_the_bundle_takes_precedence_over_an_installed_ivypy(tmp_path: Path) -> None:
    """A package with __init__ anywhere on the path wins over one without; here one lies where site-packages would."""
    site = tmp_path / "site"
    (site / "ivypy").mkdir(parents=True)
    (site / "ivypy" / "__init__.py").write_text("raise SystemExit('the wrong ivypy')")
    main = f"import sys; sys.path.append({str(site)!r})\nimport ivypy.slave\nprint('hello', ivypy.slave.NAME)\n"
    bundle = stand_in(
        **{"__main__.py": main.encode(), "ivypy/__init__.py": b"", "ivypy/slave/__init__.py": b"NAME = 'the right one'"}
    )
    async with connected(local(tmp_path / "cache"), bundle) as pipe:
        assert await line(pipe) == "hello the right one"


async def test_nothing_is_written_into_a_bundle_that_runs(tmp_path: Path) -> None:
    """Else its hash would be another one the next time."""
    bundle = stand_in(**{"__main__.py": b"import other\nprint('hello', flush=True)\n", "other.py": b""})
    for expected in (["send", "run"], ["run"]):
        log: list[str] = []
        async with connected(local(tmp_path / "cache"), bundle, log.append) as pipe:
            await line(pipe)
        assert [text.split()[2] for text in log if text.startswith("<-")] == expected


def started(bundle: Bundle, cache: Path) -> "subprocess.Popen[bytes]":
    """A bootstrap that has hashed the bundle in its cache, and waits for the byte that makes it the slave."""
    process = subprocess.Popen(
        bootstrap_client.words(local(cache), (sys.executable,), [bundle]), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    for said in process.stdout:
        match said.split():
            case [b"ivypy-boot", b"send", _]:
                process.stdin.write(bundle.payload)
                process.stdin.flush()
            case [b"ivypy-boot", b"run"]:
                break
    return process


@pytest.mark.parametrize("at", ["the bundle", "the cache", "what is above the cache"])
def test_what_was_hashed_is_run_whatever_its_path_leads_to_by_then(at: str, tmp_path: Path) -> None:
    bundle, cache = stand_in(), tmp_path / "above" / "cache"
    with started(bundle, cache) as process:
        place = {"the bundle": cache / bundle.hash, "the cache": cache, "what is above the cache": cache.parent}[at]
        place.rename(tmp_path / "away")
        (cache / bundle.hash).mkdir(parents=True)
        (cache / bundle.hash / "__main__.py").write_text("print('hello from another', flush=True)")
        said, _ = process.communicate(b"g" + b"say unhurt\n", timeout=30)
        assert b"unhurt" in said and b"another" not in said


def test_a_cache_in_a_sticky_directory_is_as_good_as_any(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    assert bootstrap_script.open_cache(str(tmp_path / "tmp" / "cache")) == str(tmp_path / "tmp" / "cache")


def test_parents_are_made_for_their_owner_alone_and_links_above_are_followed_once(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert bootstrap_script.open_cache(str(tmp_path / "link" / "a" / "cache")) == str(tmp_path / "real" / "a" / "cache")
    assert (tmp_path / "real" / "a").stat().st_mode & 0o777 == 0o700
