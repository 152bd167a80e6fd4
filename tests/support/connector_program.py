"""A connector as a program, asked as the controller asks it; and one made from a type, asked without a process."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ivypy.master.connectors.load_type import make_connector
from ivypy.master.connectors.serve import answer_to
from ivypy.protocol.connector import (
    CONNECTOR_MESSAGES,
    ConnectorConfig,
    ConnectorHello,
    ConnectorMessage,
    Declined,
    Gather,
    ReadConfig,
    Readings,
)
from ivypy.protocol.lines import decode
from ivypy.protocol.payload import Attribute


class ConnectorProgram:
    """The controller's side of the pipes, blocking."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self._number = 0

    def message(self) -> ConnectorMessage:
        assert self.process.stdout is not None
        return decode(self.process.stdout.readline()[:-1], CONNECTOR_MESSAGES)

    def hello(self) -> ConnectorHello:
        found = self.message()
        assert isinstance(found, ConnectorHello)
        return found

    def config(self, *luns: str) -> Any:
        self.send({"type": "read_config", "luns": luns})
        return self.message()

    def gather(self) -> Any:
        self.send({"type": "gather"})
        return self.message()

    def send(self, command: Mapping[str, object]) -> None:
        assert self.process.stdin is not None
        self._number += 1
        self.process.stdin.write(json.dumps({**command, "id": self._number}).encode() + b"\n")
        self.process.stdin.flush()

    def ended(self) -> tuple[int, str]:
        """Its exit code and stderr, after the end of its input."""
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors.decode()


@contextmanager
def running(command: Sequence[str | Path], **environment: str) -> Iterator[ConnectorProgram]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=os.environ | environment)
    with process:
        try:
            yield ConnectorProgram(process)
        finally:
            process.kill()


def serving(kind: str, options: Mapping[str, object]) -> list[str]:
    """The command that serves a type."""
    return [sys.executable, "-m", "ivypy.master.connectors.serve", kind, json.dumps(options)]


class MadeConnector:
    """A connector of a type, in this process; what it answers has passed the protocol's own reader."""

    def __init__(self, kind: str, **options: object) -> None:
        self._connector = make_connector(kind, options)

    def config(self) -> ConnectorConfig:
        found = self._answer(ReadConfig(1))
        assert isinstance(found, ConnectorConfig), found
        return found

    def gather(self) -> Readings:
        found = self._answer(Gather(2))
        assert isinstance(found, Readings), found
        return found

    def refusal(self) -> str:
        """Why it cannot read its config."""
        found = self._answer(ReadConfig(1))
        assert isinstance(found, Declined), found
        return found.reason

    def refused_gather(self) -> str:
        found = self._answer(Gather(2))
        assert isinstance(found, Declined), found
        return found.reason

    def _answer(self, command: ReadConfig | Gather) -> ConnectorMessage:
        return decode(answer_to(self._connector, command, time.monotonic_ns)[:-1], CONNECTOR_MESSAGES)


def by_name(message: ConnectorConfig | Readings) -> dict[str, Attribute]:
    """The facts, by `element instance attribute`."""
    return {f"{fact.element} {fact.instance} {fact.attribute}": fact.value for fact in message.facts}
