"""The real slave, pushed and started through every launcher, says hello."""

import psutil
import pytest

import ivypy
from ivypy.master.hosts.bundle import Bundle
from ivypy.master.hosts.host_spec import HostSpec, Launcher
from ivypy.master.hosts.pipe import PipeLost
from ivypy.protocol import lines
from ivypy.protocol.messages import Hello, Role
from tests.support.lab import Lab
from tests.support.stand_in_slave import connected, line, local, real_slave
from tests.support.waits import wait_until_ended

pytestmark = pytest.mark.slow


@pytest.fixture
def bundle() -> Bundle:
    return real_slave()


def reached_by(launcher: Launcher, lab: Lab) -> HostSpec:
    host = lab.hosts[0]
    match launcher:
        case Launcher.SSH:
            return host.spec()
        case Launcher.COMMAND:
            return host.command_spec()
        case Launcher.LOCAL:
            return local(host.folder / "cache")


@pytest.mark.parametrize("launcher", Launcher)
async def test_the_slave_sends_hello(lab: Lab, bundle: Bundle, launcher: Launcher) -> None:
    async with connected(reached_by(launcher, lab), bundle, print) as pipe:
        hello = lines.decode_line((await line(pipe)).encode())
        assert isinstance(hello, Hello)
        slave = psutil.Process(hello.pid)
    assert (hello.role, hello.bundle, hello.version) == (Role.SLAVE, bundle.hash, ivypy.__version__)
    if launcher is Launcher.SSH and lab.namespaces:
        assert hello.hostname == lab.hosts[0].name
    wait_until_ended(slave)


async def test_a_slave_that_receives_rubbish_reports_it_and_ends(lab: Lab, bundle: Bundle) -> None:
    log: list[str] = []
    async with connected(lab.hosts[0].spec(), bundle, log.append) as pipe:
        await line(pipe)
        await pipe.write(b"nonsense\n")
        with pytest.raises(PipeLost, match="it exited with status 3"):
            while await pipe.read(1000):
                pass
    assert any(text.startswith("!! ") and "nonsense" in text for text in log)
