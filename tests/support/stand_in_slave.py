"""What the tests of hosts share: a stand-in for the slave, and ways to open a pipe to it."""

import contextlib
import platform
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ivypy.master.errors import HostFault
from ivypy.master.hosts.bundle import Bundle, pack, slave_bundles
from ivypy.master.hosts.errors import BundleError, HostUnusable
from ivypy.master.hosts.host_spec import HostSpec, Launcher
from ivypy.master.hosts.launch import open_pipe
from ivypy.master.hosts.login_throttle import LoginThrottle
from ivypy.master.hosts.pipe import Pipe

STAND_IN = b"""\
import os, signal, sys, time

out = sys.stdout.buffer


def say(data):
    out.write(data)
    out.flush()


say(b"hello " + os.path.basename(os.path.realpath(sys.path[0])).encode() + b"\\n")
for line in sys.stdin.buffer:
    word, _, rest = line.strip().partition(b" ")
    if word == b"say":
        say(rest + b"\\n")
    elif word == b"give":
        say(bytes(int(rest)))
    elif word == b"take":
        left = int(rest)
        while left:
            left -= len(sys.stdin.buffer.read(min(left, 1 << 16)))
        say(b"taken\\n")
    elif word == b"cry":
        os.write(2, rest + b"\\n")
        say(b"cried\\n")
    elif word == b"exit":
        sys.exit(int(rest))
    elif word == b"kill":
        os.kill(os.getpid(), int(rest))
    elif word == b"facts":
        facts = os.getpid(), os.getsid(0), os.geteuid(), os.uname()[1], sys.flags.isolated
        say(" ".join(map(str, facts)).encode() + b"\\n")
    elif word == b"stay":
        say(b"staying\\n")
        while True:
            time.sleep(3600)
"""


def stand_in(**more: bytes) -> Bundle:
    """A bundle with a slave that does as it is told; `more` files make another one of it."""
    return pack({"__main__.py": STAND_IN, **more})


def real_slave() -> Bundle:
    """The real slave's bundle for this machine."""
    try:
        return next(bundle for bundle in slave_bundles() if bundle.machine == platform.machine())
    except BundleError as error:
        pytest.skip(str(error))


CONNECT_S = 60.0  # for each answer of the bootstrap: many may be under way on few cores


def local(cache: Path, **changes: object) -> HostSpec:
    spec = HostSpec("here", Launcher.LOCAL, "here", cache_dir=str(cache), connect_timeout_s=CONNECT_S)
    return replace(spec, **changes)  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def connected(
    spec: HostSpec, bundle: Bundle, log: Callable[[str], None] = lambda text: None
) -> AsyncIterator[Pipe]:
    """A pipe on which a slave is about to say hello, closed at the end."""
    pipe = await open_pipe(spec, [bundle], LoginThrottle(), log)
    try:
        yield pipe
    finally:
        await pipe.close()


@contextlib.asynccontextmanager
async def opened(
    spec: HostSpec, bundle: Bundle | None = None, log: Callable[[str], None] = lambda text: None
) -> AsyncIterator[Pipe]:
    """A pipe to a stand-in that has said hello."""
    bundle = bundle or stand_in()
    async with connected(spec, bundle, log) as pipe:
        assert await line(pipe) == f"hello {bundle.hash}"
        yield pipe


async def line(pipe: Pipe) -> str:
    """One line, read a byte at a time."""
    data = b""
    while not data.endswith(b"\n"):
        piece = await pipe.read(1)
        assert piece, f"the pipe ended after {data!r}"
        data += piece
    return data.decode().rstrip("\n")


async def ask(pipe: Pipe, text: str) -> str:
    await pipe.write(text.encode() + b"\n")
    return await line(pipe)


async def fault(
    spec: HostSpec, bundle: Bundle | None = None, log: Callable[[str], None] = lambda text: None
) -> HostFault:
    """Why this host cannot be used."""
    with pytest.raises(HostUnusable) as caught:
        pipe = await open_pipe(spec, [bundle or stand_in()], LoginThrottle(), log)
        await pipe.close()
    return caught.value.fault


def script(path: Path, text: str) -> str:
    """An executable shell script."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)
