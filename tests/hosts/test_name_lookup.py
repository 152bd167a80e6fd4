"""Names whose lookup takes long cost themselves; and a controller may have as many files open as its hosts need."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ivypy.master.hosts.host_spec import HostSpec, Launcher
from ivypy.master.hosts.name_lookup import look_up
from tests.support.stand_in_slave import fault

SSH = HostSpec("h", Launcher.SSH, "h", ssh_config=False)


@pytest.fixture
def slow_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Names that begin with slow are not answered until the test is over."""
    over, real = threading.Event(), socket.getaddrinfo

    def getaddrinfo(name: str, *more: Any) -> Any:
        if name.startswith("slow"):
            over.wait(20)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return real("127.0.0.1", *more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield
    over.set()


@pytest.mark.usefixtures("slow_names")
async def test_slow_names_do_not_hold_up_others() -> None:
    async def one(name: str) -> bool:
        return bool(await look_up(name, 22, socket.AF_UNSPEC, 60.0))

    slow = [asyncio.create_task(one(f"slow{i}")) for i in range(40)]
    await asyncio.sleep(0)
    assert await asyncio.gather(*(one(f"quick{i}") for i in range(10))) == [True] * 10
    assert not any(task.done() for task in slow)
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)


@pytest.mark.usefixtures("slow_names")
async def test_slow_lookup_is_a_fault_of_its_host() -> None:
    spec = replace(SSH, name="lab01", address="slow.example", known_hosts="/dev/null", connect_timeout_s=0.2)
    assert str(await fault(spec)) == (
        'lab01: the name "slow.example" was not resolved within 0.2 s; '
        "find out why the name service is slow, or use an address"
    )


def limited(soft: int, hard: int, code: str) -> str:
    """What a Python says that may have so many files open."""
    setting = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))\n"
    return subprocess.run([sys.executable, "-c", setting + code], capture_output=True, text=True, check=True).stdout


ALLOW = """
from ivypy.master.errors import PlanError
from ivypy.master.hosts import open_files
from ivypy.master.hosts.host_spec import HostSpec, Launcher
try:
    open_files.allow([HostSpec("h", Launcher.SSH, "h")] * {hosts})
    print(*resource.getrlimit(resource.RLIMIT_NOFILE))
except PlanError as error:
    print(error)
"""


def test_the_limit_is_raised_to_what_the_user_may_have() -> None:
    assert limited(256, 1024, ALLOW.format(hosts=400)) == "1024 1024\n"


def test_too_many_hosts_for_the_file_limit_are_refused() -> None:
    assert limited(256, 1024, ALLOW.format(hosts=600)).startswith(
        "600 hosts need 1328 open files, and this user may have 1024; raise it in /etc/security/limits.conf"
    )


def test_a_lookup_that_hangs_keeps_no_process_from_ending() -> None:
    program = """
import asyncio, socket, threading
from ivypy.master.hosts.name_lookup import NotLookedUp, look_up

socket.getaddrinfo = lambda *words: threading.Event().wait()
try:
    asyncio.run(look_up("h1", 22, 0, 0.05))
except NotLookedUp:
    print("not looked up")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert (done.stdout, done.stderr) == ("not looked up\n", "")
