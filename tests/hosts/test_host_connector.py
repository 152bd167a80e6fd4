"""The host connector, started from the slave's bundle through every launcher."""

import pytest

from ivypy.master.hosts.bootstrap_client import FarProgram
from ivypy.master.hosts.bundle import Bundle
from ivypy.master.hosts.host_spec import Launcher
from ivypy.master.hosts.pipe import Pipe
from ivypy.protocol.connector import (
    CONNECTOR_MESSAGES,
    CONNECTOR_PROTOCOL,
    ConnectorConfig,
    ConnectorHello,
    ConnectorMessage,
    Gather,
    ReadConfig,
    Readings,
)
from ivypy.protocol.lines import decode, encode_line
from tests.support.lab import Lab
from tests.support.stand_in_slave import connected, line, local, real_slave

pytestmark = pytest.mark.slow


@pytest.fixture
def bundle() -> Bundle:
    return real_slave()


async def receive(pipe: Pipe) -> ConnectorMessage:
    return decode((await line(pipe)).encode(), CONNECTOR_MESSAGES)


async def check(pipe: Pipe) -> None:
    """It says hello, and answers both commands."""
    assert await receive(pipe) == ConnectorHello(CONNECTOR_PROTOCOL, "host")
    await pipe.write(encode_line(ReadConfig(1, ("/etc/passwd",))) + encode_line(Gather(2)))
    assert isinstance(await receive(pipe), ConnectorConfig)
    readings = await receive(pipe)
    assert isinstance(readings, Readings)
    assert "memory" in {fact.element for fact in readings.facts}


@pytest.mark.parametrize("launcher", Launcher)
async def test_it_starts_and_answers(lab: Lab, bundle: Bundle, launcher: Launcher) -> None:
    host = lab.hosts[0]
    spec = {
        Launcher.SSH: host.spec(),
        Launcher.COMMAND: host.command_spec(),
        Launcher.LOCAL: local(host.folder / "cache"),
    }[launcher]
    async with connected(spec, bundle, program=FarProgram.CONNECTOR) as pipe:
        await check(pipe)


async def test_a_slave_and_a_connector_run_from_one_bundle(lab: Lab, bundle: Bundle) -> None:
    spec, log = local(lab.hosts[0].folder / "cache"), list[str]()
    async with connected(spec, bundle) as slave, connected(spec, bundle, log.append, FarProgram.CONNECTOR) as pipe:
        assert '"hello"' in await line(slave)
        await check(pipe)
    assert not any("<- ivypy-boot send" in text for text in log)
