"""The host connector as a process at the end of a pipe."""

import fcntl
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ivypy.protocol.connector import (
    CONNECTOR_MESSAGES,
    CONNECTOR_PROTOCOL,
    ConnectorConfig,
    ConnectorHello,
    ConnectorMessage,
    Gather,
    KeepAlive,
    ReadConfig,
    Readings,
)
from ivypy.protocol.lines import decode, encode_line
from ivypy.slave.host_connector.connector import METRICS
from tests.support.waits import PATIENCE_S

pytestmark = pytest.mark.slow

MODULE = ("-m", "ivypy.slave.host_connector")


def start(*words: str) -> "subprocess.Popen[bytes]":
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, *words], **pipes)  # type: ignore[call-overload, no-any-return]


@pytest.fixture
def process() -> Iterator["subprocess.Popen[bytes]"]:
    with start(*MODULE) as process:
        yield process
        process.kill()


def send(process: "subprocess.Popen[bytes]", data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def receive(process: "subprocess.Popen[bytes]") -> ConnectorMessage:
    assert process.stdout is not None
    return decode(process.stdout.readline(), CONNECTOR_MESSAGES)


def test_it_answers_until_its_input_ends(process: "subprocess.Popen[bytes]") -> None:
    assert receive(process) == ConnectorHello(CONNECTOR_PROTOCOL, "host")
    send(process, encode_line(ReadConfig(1, ("/etc/passwd",))))
    config = receive(process)
    assert isinstance(config, ConnectorConfig) and config.re == 1
    assert config.metrics == METRICS
    for number in (2, 3):
        send(process, encode_line(Gather(number)))
        readings = receive(process)
        assert isinstance(readings, Readings) and readings.re == number
        assert "memory" in {fact.element for fact in readings.facts}
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, output, errors) == (0, b"", b"")


def test_two_commands_in_one_piece_and_one_in_two(process: "subprocess.Popen[bytes]") -> None:
    receive(process)
    lines = encode_line(ReadConfig(1)) + encode_line(Gather(2))
    send(process, lines[:-5])
    assert isinstance(receive(process), ConnectorConfig)
    send(process, lines[-5:])
    assert isinstance(receive(process), Readings)


def test_the_terminals_interrupt_is_the_controllers(process: "subprocess.Popen[bytes]") -> None:
    receive(process)
    process.send_signal(signal.SIGINT)
    send(process, encode_line(Gather(1)))
    assert isinstance(receive(process), Readings)


@pytest.mark.parametrize("line", [b"nonsense\n", b'{"type":"go"}\n', b'{"type":"gather","id":"1"}\n'])
def test_what_is_no_command_ends_it_with_the_reason(process: "subprocess.Popen[bytes]", line: bytes) -> None:
    receive(process)
    _, errors = process.communicate(line, timeout=PATIENCE_S)
    assert process.returncode == 3
    assert errors.startswith(b"ivypy: ") and errors.count(b"\n") == 1


def test_nobody_who_reads_is_as_the_end_of_its_input(process: "subprocess.Popen[bytes]") -> None:
    receive(process)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    send(process, encode_line(Gather(1)))
    assert process.wait(PATIENCE_S) == 0
    assert process.stderr.read() == b""


def test_a_stray_print_does_not_reach_the_link() -> None:
    script = (
        "import ivypy.slave.host_connector.__main__ as m, os; serve = m.serve\n"
        "m.serve = lambda *all: (print('noise', flush=True), os.system('echo more'), serve(*all))\n"
        "m.main()"
    )
    with start("-c", script) as process:
        output, errors = process.communicate(timeout=PATIENCE_S)
    assert isinstance(decode(output, CONNECTOR_MESSAGES), ConnectorHello)
    assert errors.split() == [b"noise", b"more"]


def test_it_loads_no_engine_and_no_event_loop() -> None:
    script = "import sys, ivypy.slave.host_connector.__main__; print(*sys.modules)"
    modules = subprocess.check_output([sys.executable, "-c", script], text=True).split()
    assert not [name for name in modules if name.startswith(("ivypy.slave.engine", "asyncio"))]


def test_it_ends_itself_when_its_controller_is_silent(process: "subprocess.Popen[bytes]") -> None:
    """The pipe stays open, as that of a controller that was stopped, or is gone with its network."""
    receive(process)
    send(process, encode_line(KeepAlive(1)))
    assert process.wait(PATIENCE_S) == 0
    assert process.stderr is not None and process.stderr.read() == b"no command from the controller for 0.001 s\n"


def test_it_ends_itself_when_nobody_reads_its_answers(process: "subprocess.Popen[bytes]") -> None:
    receive(process)
    assert process.stdout is not None and process.stderr is not None
    fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
    send(process, encode_line(KeepAlive(1)) + b"".join(encode_line(ReadConfig(number)) for number in range(100)))
    assert process.wait(PATIENCE_S) == 0
    assert process.stderr.read() == b""


def test_what_it_is_told_last_about_silence_holds(process: "subprocess.Popen[bytes]") -> None:
    receive(process)
    send(process, encode_line(KeepAlive(1)) + encode_line(KeepAlive(3_600_000)) + encode_line(Gather(1)))
    assert isinstance(receive(process), Readings)
