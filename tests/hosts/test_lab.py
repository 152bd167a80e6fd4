"""The lab itself: it works without namespaces too, and nothing of it stays."""

import fcntl
from pathlib import Path

import pytest

from tests.support import lab as laboratory
from tests.support.devices import Missing
from tests.support.lab import Lab, run
from tests.support.stand_in_slave import ask, opened
from tests.support.waits import wait_until_ended

pytestmark = pytest.mark.slow


def made(folder: Path, namespaces: bool | None) -> Lab:
    try:
        return Lab(folder, 2, namespaces)
    except Missing as missing:
        pytest.skip(f"this machine lacks {missing}")


async def test_hosts_may_be_addresses_of_loopback(tmp_path: Path) -> None:
    with made(tmp_path, namespaces=False) as lab:
        for host in lab.hosts:
            assert host.address.startswith("127.")
            for spec in (host.spec(), host.command_spec()):
                async with opened(spec) as pipe:
                    assert await ask(pipe, "say yes") == "yes"


async def test_a_released_port_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with made(tmp_path, None) as lab:
        port = laboratory.free_port(lab.hosts[0])
        monkeypatch.setattr(laboratory, "free_port", lambda _: port)
        for _ in range(2):
            with lab.hosts[0].sshd() as sshd:
                async with opened(sshd.spec()) as pipe:
                    assert await ask(pipe, "say yes") == "yes"


async def test_a_lab_leaves_no_namespace_and_no_process(tmp_path: Path) -> None:
    with made(tmp_path, None) as lab:
        if not lab.namespaces:
            pytest.skip("network namespaces are not allowed here")
        async with opened(lab.hosts[0].spec()) as pipe:
            await pipe.write(b"stay\n")
            sshds = [sshd for host in lab.hosts for sshd in host.sshds]
            processes = [process for sshd in sshds for process in [sshd.process, *sshd.sessions()]]
            assert lab.prefix in run("ip", "netns", "list")
            sshds[0].kill_sessions()
    assert lab.prefix not in run("ip", "netns", "list") + run("ip", "link")
    wait_until_ended(*processes)


def test_addresses_do_not_change_while_pages_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "LOCK_EX", fcntl.LOCK_EX | fcntl.LOCK_NB)
    with laboratory.unchanged_addresses(), pytest.raises(BlockingIOError):
        laboratory.change_addresses("true")
