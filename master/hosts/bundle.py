"""What a test host is sent: the exact set of files that the slave is, under one hash.

Rule: the same installation always makes the same bundle. Everything compiled is abi3, so that one bundle serves every
Python from 3.11 on; a `*.cpython-311-*.so` beside it would win over abi3 on one of them, and is refused.
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

from ... import __version__
from .bootstrap_script import digest_of
from .errors import BundleError

ABI3: Final = ".abi3.so"

MAIN: Final = b"from ivypy.slave.__main__ import main\n\nraise SystemExit(main())\n"

# A namespace package would lose against an ivypy that is installed on the host: the import system prefers a regular
# package anywhere on the path. The real __init__ reads the installed version, which a host does not have.
ROOT_INIT: Final = b'"""The part of ivypy that a test host needs."""\n'


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files as they travel. `hash` names their directory on the host, and `hello` repeats it."""

    hash: str
    payload: bytes = field(repr=False)  # as bootstrap.receive reads it
    machine: str  # the processor that the compiled files are for, as `uname -m` prints it


def pack(files: Mapping[str, bytes], machine: str | None = None) -> Bundle:
    """The bundle of these files (path in the bundle: contents), for this machine's processor if none is named."""
    parts = (b"%s %d\n%s" % (path.encode(), len(data), data) for path, data in sorted(files.items()))
    return Bundle(
        hash=digest_of({path: sha256(data).hexdigest() for path, data in files.items()}),
        payload=zlib.compress(b"".join(parts)),
        machine=machine or platform.machine(),
    )


@cache
def slave_bundle() -> Bundle:
    """The real slave's bundle. Raises BundleError if this installation lacks a part of it."""
    return pack(slave_files())


def slave_files() -> dict[str, bytes]:
    """Protocol, slave, engine and psutil, as they are installed here. Raises BundleError."""
    version = f'"""Written into the bundle by the controller that made it."""\n\nVERSION = "{__version__}"\n'
    return {
        "__main__.py": MAIN,
        "ivypy/__init__.py": ROOT_INIT,
        "ivypy/slave/_bundle.py": version.encode(),
        **sources("ivypy.protocol"),
        **sources("ivypy.slave"),
        **compiled("ivypy.slave.engine._engine", "build it: pip install -e . in the checkout"),
        **sources("psutil"),
        **compiled("psutil._psutil_linux", "install psutil from its own wheel: pip install --force-reinstall psutil"),
    }


def sources(package: str) -> dict[str, bytes]:
    """Every Python file of a package and those below it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise BundleError(f"the package {package} is not installed here; install ivypy again")
    top = Path(spec.submodule_search_locations[0])
    prefix = package.replace(".", "/")
    return {f"{prefix}/{path.relative_to(top).as_posix()}": path.read_bytes() for path in sorted(top.rglob("*.py"))}


def compiled(module: str, remedy: str) -> dict[str, bytes]:
    """A compiled module, which must be built for the stable ABI."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise BundleError(f"the compiled module {module} is missing here; {remedy}")
    path = Path(spec.origin)
    if not path.name.endswith(ABI3):
        raise BundleError(f"{path} is built for one version of Python only and cannot be sent to hosts; {remedy}")
    return {module.replace(".", "/") + ABI3: path.read_bytes()}
