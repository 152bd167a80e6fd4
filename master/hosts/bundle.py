"""Makes the bundle that a test host is sent: the exact set of files that the slave is, under one hash.

Rule: the same installation always makes the same bundles, one for each kind of processor that it has an engine for.
The engine is abi3, so that one bundle serves every Python from 3.9 on; what Python makes of the sources (compiled.py)
serves this machine's alone.
"""

import importlib.util
import platform
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from ..version import VERSION
from .bootstrap_script import digest_of
from .compiled import compiled
from .errors import BundleError

ABI3: Final = ".abi3.so"
PORTABLE: Final = ("aarch64", "x86_64")  # what scripts/portable builds for
LEVEL: Final = 4  # 3% more to send than at the usual one, in half the time, which every run takes
OLDEST_GLIBC: Final = (2, 28)  # of those engines
ENGINE: Final = "_engine"
ENGINE_FILE: Final = f"ivypy/slave/engine/{ENGINE}{ABI3}"

MAIN: Final = b"""\
from ivypy.slave.__main__ import main

raise SystemExit(main())
"""

# A namespace package would lose against an ivypy that is installed on the host: the import system prefers a regular
# package anywhere on the path. The real __init__ reads the installed version, which a host does not have.
ROOT_INIT: Final = b'"""The part of ivypy that a test host needs."""\n'


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files as they travel. `hash` names their directory on the host, and `hello` repeats it."""

    hash: str
    payload: bytes = field(repr=False)  # as bootstrap.receive reads it
    machine: str  # the processor that the engine is for, as `uname -m` prints it


def pack(files: Mapping[str, bytes], machine: str | None = None) -> Bundle:
    """The bundle of these files (path in the bundle: contents), for this machine's processor if none is named."""
    parts = (b"%s %d\n%s" % (path.encode(), len(data), data) for path, data in sorted(files.items()))
    return Bundle(
        hash=digest_of({path: sha256(data).hexdigest() for path, data in files.items()}),
        payload=zlib.compress(b"".join(parts), LEVEL),
        machine=machine or platform.machine(),
    )


@cache
def slave_bundles() -> tuple[Bundle, ...]:
    """The real slave's bundles. Raises BundleError if this installation lacks a part of it."""
    files = {**slave_files(), **compiled_files("ivypy.protocol"), **compiled_files("ivypy.slave")}
    return tuple(pack({**files, ENGINE_FILE: engine}, machine) for machine, engine in engines().items())


def slave_files() -> dict[str, bytes]:
    """Protocol and slave without the engine, as they are installed here. Raises BundleError."""
    version = f'"""Written into the bundle by the controller that made it."""\n\nVERSION = "{VERSION}"\n'
    return {
        "__main__.py": MAIN,
        "ivypy/__init__.py": ROOT_INIT,
        "ivypy/slave/_bundle.py": version.encode(),
        **sources("ivypy.protocol"),
        **sources("ivypy.slave"),
    }


def engines() -> dict[str, bytes]:
    """The engine for each processor (as `uname -m` prints it). Raises BundleError if there is none for this machine's.

    For hosts like this machine, its own compiler's is sent where there is no other.
    """
    here, found = platform.machine(), portable_engines()
    return found if here in found else {here: own_engine(), **found}


def portable_engines() -> dict[str, bytes]:
    """The engines that `scripts/portable` built for all kinds of hosts, unless they are older than the engine's sources
    that are here.

    A wheel has these, and no sources.
    """
    folder = folder_of("ivypy.slave.engine")
    changed = max((path.stat().st_mtime for path in folder.rglob("*.[ch]")), default=0.0)
    built = [path for path in folder.glob(f"portable/*/{ENGINE}{ABI3}") if path.stat().st_mtime >= changed]
    return {path.parent.name: path.read_bytes() for path in sorted(built)}


def folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise BundleError(f"the package {package} is not installed here; install ivypy again")
    return Path(spec.submodule_search_locations[0])


def sources(package: str) -> dict[str, bytes]:
    """Every Python file of a package and those below it."""
    return {place: path.read_bytes() for place, path in _modules(package).items()}


def compiled_files(package: str) -> dict[str, bytes]:
    """For each of them its code, for hosts that have the same Python."""
    made: dict[str, bytes] = {}
    for place, path in _modules(package).items():
        made |= compiled(path, place)
    return made


def _modules(package: str) -> dict[str, Path]:
    """By path in the bundle."""
    top = folder_of(package)
    prefix = package.replace(".", "/")
    return {f"{prefix}/{path.relative_to(top).as_posix()}": path for path in sorted(top.rglob("*.py"))}


def own_engine() -> bytes:
    """The engine that this machine's own compiler made. It must be built for the stable ABI: a `*.cpython-311-*.so` is
    refused.
    """
    remedy = "build it: pip install -e . in the checkout"
    spec = importlib.util.find_spec(f"ivypy.slave.engine.{ENGINE}")
    if spec is None or spec.origin is None:
        raise BundleError(f"the engine is missing here; {remedy}")
    path = Path(spec.origin)
    if not path.name.endswith(ABI3):
        raise BundleError(f"{path} is built for one version of Python only and cannot be sent to hosts; {remedy}")
    return path.read_bytes()
