"""Collects the facts of this machine that `hello` states.

Rule: read once, at the start; a fact that the machine does not report is "" or 0, never a guess. Version and hash come
from the bundle (its folder is named by its hash, `_bundle.py` in it has the version), since on a test host nothing
is installed that could be asked.
"""

import importlib
import os
import platform
import pwd
from pathlib import Path

from ...protocol.distribution import DISTRIBUTION
from ...protocol.messages import PROTOCOL_VERSION, Hello, Role
from ...protocol.payload import Attribute
from ...protocol.text import why_unsendable
from ..engine import _engine
from ..host.host_facts import host_facts
from ..kernel_files import aio_left, first_line
from ..workloads.backend_choice import why_not


def make_hello() -> Hello:
    """The slave's first message."""
    version, bundle = identity()
    machine = os.uname()
    return Hello(
        role=Role.SLAVE,
        protocol=PROTOCOL_VERSION,
        version=version,
        bundle=bundle,
        hostname=machine.nodename,
        pid=os.getpid(),
        python=platform.python_version(),
        kernel=machine.release,
        libc=libc(),
        machine=machine.machine,
        cores=tuple(sorted(os.sched_getaffinity(0))),
        clock_source=first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        backends=tuple(_engine.backends()),
        aio_left=aio_left(),
        io_uring=tuple(_engine.uring_features()),
        facts=sendable_facts({**host_facts(), **rights_and_lacks()}),
    )


def rights_and_lacks() -> dict[str, Attribute]:
    """Who runs the slave, and which backends do not work here, each with the reason."""
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = str(os.geteuid())
    works = _engine.backends()
    missing = [f"{backend}: {why_not(backend)}" for backend in _engine.abilities() if backend not in works]
    return {"user": user, **({"lacks": "; ".join(missing)} if missing else {})}


def sendable_facts(facts: dict[str, Attribute]) -> dict[str, Attribute]:
    """Firmware and distributions may call things what they like: text that cannot be sent is left out."""
    return {name: value for name, value in facts.items() if not (isinstance(value, str) and why_unsendable(value))}


def identity() -> tuple[str, str]:
    """(version of ivypy, hash of the bundle); the hash is "" where the slave was started from an installation."""
    try:
        bundle = importlib.import_module(".._bundle", __package__)
    except ModuleNotFoundError:
        from importlib.metadata import version  # slow, and needed by no bundle

        return version(DISTRIBUTION), ""
    return str(bundle.VERSION), Path(__file__).resolve().parents[3].name


def libc() -> str:
    """Such as "glibc 2.36"; "" where the C library has no name for itself (musl)."""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        return ""
