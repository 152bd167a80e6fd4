"""A controller's end of a real slave, small and synchronous: it asks, waits, and keeps what came unasked.

It holds the slave to the protocol: everything that it says is checked against the tables of states and answers.
"""

import itertools
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from ivypy.protocol import messages as m
from ivypy.protocol.lines import LineReader, decode_line, encode_line
from ivypy.protocol.parameters import MAX, Parameters
from ivypy.protocol.payload import Array, ArrayType, Consent, EngineOptions, FileToCreate, WorkloadToCreate
from ivypy.protocol.states import State, check_answer, state_after
from ivypy.slave.engine._engine import now_ns
from tests.support.fork_server import Forked

WAIT_S = 30.0  # for anything; a slave that says nothing for so long has a fault
Said = TypeVar("Said", bound=m.HostMessage)


class Gone(Exception):
    """The slave closed its output."""


class Slave(Forked):
    """`python -m ivypy.slave`, with pipes to it."""

    def __init__(self, errors: int) -> None:
        (its_in, ours_in), (ours_out, its_out) = os.pipe(), os.pipe()
        try:
            super().__init__("slave", ["slave"], [its_in, its_out, errors])
        finally:
            os.close(its_in)
            os.close(its_out)
            self.stdin, self.stdout = open(ours_in, "wb"), open(ours_out, "rb")


class Client:
    """One slave process. Use as a context: it does not outlive the block."""

    def __init__(self, *arguments: str, lease_s: float = 10.0) -> None:
        """`arguments`: of a Python of its own, which is to become a slave that is changed."""
        self._errors = tempfile.TemporaryFile()
        self.process = _python(arguments, self._errors) if arguments else Slave(self._errors.fileno())
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        self._reader = LineReader()
        self._heard: list[m.HostMessage] = []  # not yet taken
        self._ids = itertools.count(1)
        self.lease_s = lease_s
        self.newest_stamp_ns = 0  # the slave's newest stamp
        self.state = State.CONNECTING
        self.all: list[m.HostMessage] = []  # everything it ever said

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        self._in.close()
        self._out.close()
        self._errors.close()

    @property
    def errors(self) -> str:
        """What it wrote to its standard error so far."""
        self._errors.seek(0)
        return self._errors.read().decode()

    # Saying.

    def tell(self, data: bytes) -> None:
        self._in.write(data)
        self._in.flush()

    def send(self, kind: type[m.Command], **fields: Any) -> m.Command:
        if kind in (m.ClockProbe, m.Continue):
            fields = {"newest_stamp_ns": self.newest_stamp_ns} | fields
        command = kind(id=next(self._ids), **fields)
        self.tell(encode_line(command))
        return command

    def end_input(self) -> None:
        self._in.close()

    # Hearing.

    def hear(self, timeout_s: float = WAIT_S) -> m.HostMessage:
        """The next thing it says. Raises Gone at its end, TimeoutError if it says nothing."""
        deadline = time.monotonic() + timeout_s
        while not self._heard:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._out], [], [], left)[0]:
                raise TimeoutError(f"nothing was said for {timeout_s} s; {self.errors}")
            data = os.read(self._out.fileno(), 1 << 20)
            if not data:
                self._reader.close()
                raise Gone(self.errors)
            for found in self._reader.feed(data):
                saying = decode_line(found)
                assert isinstance(saying, m.HOST_MESSAGES)
                self.state = state_after(self.state, saying)
                self.all.append(saying)
                match saying:
                    case m.ClockReading(sent_ns=stamp) | m.Result(collected_ns=stamp) | m.Ok(effective_ns=stamp):
                        self.newest_stamp_ns = stamp
                self._heard.append(saying)
        return self._heard.pop(0)

    def until(self, kind: type[Said]) -> Said:
        """What it says next of that kind; anything else is dropped."""
        while not isinstance(saying := self.hear(), kind):
            pass
        return saying

    def ask(self, kind: type[m.Command], **fields: Any) -> m.HostMessage:
        """The last saying of the answer; what comes unasked meanwhile stays to be heard."""
        return self.answer(self.send(kind, **fields))

    def answer(self, command: m.Command) -> m.HostMessage:
        others = []
        try:
            while True:
                saying = self.hear()
                if getattr(saying, "re", None) != command.id:
                    others.append(saying)
                elif check_answer(type(command), saying):
                    return saying
        finally:
            self._heard[:0] = others

    def do(self, kind: type[m.Command], **fields: Any) -> m.HostMessage:
        """`ask` what must not be refused."""
        answer = self.ask(kind, **fields)
        assert not isinstance(answer, m.Refused), answer
        return answer

    def refused(self, kind: type[m.Command], **fields: Any) -> list[tuple[str, str]]:
        """`ask` what must be refused: (what, reason) of each."""
        answer = self.ask(kind, **fields)
        assert isinstance(answer, m.Refused), answer
        return [(r.what, r.reason) for r in answer.refusals]

    # What nearly every test does.

    def prepare(self, backend: str = "null", threads: int = 1) -> m.Hello:
        hello = self.hear()
        assert isinstance(hello, m.Hello)
        self.do(m.Prepare, engine=EngineOptions(backend, threads), lease_ns=int(self.lease_s * 1e9))
        return hello

    def make_file(self, path: Path, size: int = 1 << 20) -> None:
        self.do(m.CreateFiles, files=(FileToCreate(str(path), size, 1, False),), used=(), tags=0)

    def agreed(self, lun: Path | str) -> Consent:
        """Consent to all of a LUN as it is now."""
        answer = self.send(m.InspectLuns, paths=(str(lun),), create=())
        self.answer(answer)
        (found,) = [one for said in self.all if isinstance(said, m.Luns) and said.re == answer.id for one in said.luns]
        assert found.identity is not None
        return Consent(found.identity, ((0, found.size),))

    def create(self, lun: Path | str, *parameters: Parameters, consent: bool = False, ceiling: int = 32) -> None:
        """Instances numbered from 0, all on one LUN."""
        agreed = self.agreed(lun) if consent else None
        self.do(
            m.CreateWorkloads,
            workloads=tuple(
                WorkloadToCreate(
                    i, f"h+{lun}+w{i}", str(lun), agreed, p, ceiling, p.blocksize, p.maxtags if p.iops == MAX else 0
                )
                for i, p in enumerate(parameters)
            ),
        )

    def go(self, *numbers: int, length_s: float = 0.25, ahead_s: float = 0.25) -> m.HostMessage:
        return self.do(
            m.Go,
            start_ns=now_ns() + int(ahead_s * 1e9),
            length_ns=int(length_s * 1e9),
            order=u32(*numbers),
            classes=u32(*(0 for _ in numbers)),
        )

    def results(self, count: int) -> Iterator[m.Result]:
        """The next results; each is probed for, as a controller does."""
        for _ in range(count):
            self.ask(m.ClockProbe)
            yield self.until(m.Result)

    def gone(self, timeout_s: float = WAIT_S) -> int:
        """Wait until it has exited, and read what it says to the end; its code."""
        try:
            while True:
                self.hear(timeout_s)
        except Gone:
            pass
        return self.process.wait(timeout_s)


def _python(arguments: Sequence[str], errors: IO[bytes]) -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    words = [sys.executable, *arguments]
    return subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=errors, start_new_session=True)


def u32(*values: int) -> Array:
    return Array(ArrayType.U32, array("I", values).tobytes())
