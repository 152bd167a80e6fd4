"""A connector class as a program: `python -m ivypy.master.connectors.serve TYPE OPTIONS_AS_JSON`.

Rule: the link owns the output, as in slave/__main__.py: a private copy of descriptor 1 is kept for it, and descriptor 1
is pointed at stderr, so that a stray print of any library cannot break a line. One command is executed after the
other; the end of input ends the process. What is wrong with the type or its options stands on stderr, before any hello.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Final

from ...protocol.connector import (
    CONNECTOR_COMMANDS,
    CONNECTOR_PROTOCOL,
    Cannot,
    Connector,
    ConnectorCommand,
    ConnectorConfig,
    ConnectorHello,
    Declined,
    ReadConfig,
    Readings,
)
from ...protocol.errors import ProtocolError
from ...protocol.lines import LineReader, decode, encode_line
from ...protocol.payload import Facts
from ..errors import PlanError
from ..version import VERSION
from .load_type import make_connector

INPUT, OUTPUT, ERRORS = 0, 1, 2
READ_BYTES: Final = 1 << 16
USAGE: Final = "usage: python -m ivypy.master.connectors.serve TYPE [OPTIONS_AS_JSON]"
FAILED, NOT_MADE = 1, 2  # exit codes


def main(arguments: list[str]) -> int:
    """Serve the controller at standard input and output; returns the exit code."""
    outward = os.dup(OUTPUT)
    os.dup2(ERRORS, OUTPUT)
    # A signal to all of the controller's processes ends the controller, which then ends this one in order.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILED))  # so that a connector can end what it started
    try:
        name, options = _read_arguments(arguments)
        connector = make_connector(name, options)
    except PlanError as error:
        print(f"ivypy: {error}", file=sys.stderr)
        return NOT_MADE
    try:
        serve(name, connector, outward)
    except BrokenPipeError:
        return FAILED  # the controller is gone
    except ProtocolError as error:
        print(f"ivypy: what should be a command of the controller: {error}", file=sys.stderr)
        return FAILED
    return 0


def serve(name: str, connector: Connector, outward: int) -> None:
    """Answer commands until the input ends. Raises ProtocolError at what is no command."""
    _write(outward, encode_line(ConnectorHello(CONNECTOR_PROTOCOL, name, VERSION)))
    reader = LineReader()
    while data := os.read(INPUT, READ_BYTES):
        for line in reader.feed(data):
            _write(outward, answer_to(connector, decode(line, CONNECTOR_COMMANDS), time.monotonic_ns))
    reader.close()


def answer_to(connector: Connector, command: ConnectorCommand, now_ns: Callable[[], int]) -> bytes:
    """The line with which a connector answers a command. `now_ns()`: its clock. An exception becomes `declined`."""
    try:
        if isinstance(command, ReadConfig):
            metrics, facts = connector.config(command.luns)
            return encode_line(ConnectorConfig(command.id, tuple(metrics), Facts(facts)))
        start_ns = now_ns()
        gathered = connector.gather()
        if isinstance(gathered, Readings):
            return encode_line(
                Readings(command.id, gathered.facts, gathered.start_ns, gathered.end_ns, gathered.stamps)
            )
        facts = Facts(gathered)  # which a generator reads only now
        return encode_line(Readings(command.id, facts, start_ns, now_ns()))
    except Cannot as error:
        return encode_line(Declined(command.id, str(error)))
    except Exception as error:
        return encode_line(Declined(command.id, f"{type(error).__name__}: {error}"))


def _read_arguments(arguments: list[str]) -> tuple[str, dict[str, object]]:
    """The type and its options. Raises PlanError."""
    if not 1 <= len(arguments) <= 2:
        raise PlanError(USAGE)
    try:
        options = json.loads(arguments[1]) if len(arguments) == 2 else {}
    except ValueError as error:
        raise PlanError(f"the options are not JSON ({error}); {USAGE}") from None
    if not isinstance(options, dict):
        raise PlanError(f"the options are no JSON object; {USAGE}")
    return arguments[0], options


def _write(outward: int, line: bytes) -> None:
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(outward, rest) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
