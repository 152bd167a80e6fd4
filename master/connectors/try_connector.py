"""Starts a connector's program on this machine and talks with it as a run does, to see whether it conforms.

Rule: what a run does not accept is not accepted here, since the same driver reads it. Everything has a time limit, and
the program has ended when this returns.
"""

import asyncio
import os
import signal
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ...protocol.connector import Readings
from ...protocol.text import printable
from ..hosts.pipe import PipeLost
from ..hosts.subprocess_pipe import ended
from .conformance import Conformance, Deviation, Seen
from .connector_driver import ConnectorDriver
from .errors import ConnectorFault, FaultKind

SETTLE_S: Final = 0.5  # after the last gather, for what nobody asked for
EXIT_S: Final = 2.0  # for the program to exit once its input has ended, as in a run
BUFFER: Final = 1 << 18
LONGEST_SHOWN: Final = 160  # characters of a line of the program's


@dataclass(frozen=True, slots=True)
class ConnectorTrial:
    """A connector to try, and for how long."""

    words: Sequence[str]  # the command line
    luns: tuple[str, ...] = ()  # of read_config
    gathers: int = 5
    interval_s: float = 1.0
    patience_s: float = 30.0  # for each answer


class Program:
    """A program of this machine as a Pipe, which shows how it ends."""

    def __init__(self, process: Process) -> None:
        assert process.stdin and process.stdout and process.stderr
        self._process = process
        self._input, self._output = process.stdin, process.stdout
        self._errors = asyncio.ensure_future(process.stderr.read(BUFFER))  # more is of no use
        self._closed = False

    async def read(self, n: int) -> bytes:
        data = await self._output.read(n)
        if data or self._closed:
            return data
        if (status := await self._process.wait()) != 0:
            raise ended(status, await self._last_words())
        return b""

    async def write(self, data: bytes) -> None:
        try:
            self._input.write(data)
            await self._input.drain()
        except (OSError, RuntimeError) as error:
            raise PipeLost(f"it stopped reading ({error or type(error).__name__})") from None

    async def close(self) -> None:
        """Kill it, and what it started, if it is still there."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(TimeoutError):
            async with asyncio.timeout(EXIT_S):
                while await self._output.read(BUFFER):  # asyncio sees the end of a process after that of its output
                    pass
                await self._process.wait()
        self._errors.cancel()

    async def end_input(self) -> tuple[int | None, bytes]:
        """(its exit status, None where it did not exit in time; what it still wrote)."""
        self._closed = True
        self._input.close()
        rest = asyncio.ensure_future(self._output.read(BUFFER))
        try:
            async with asyncio.timeout(EXIT_S):
                status = await self._process.wait()
                await asyncio.wait([rest])
        except TimeoutError:
            status = None
        finally:
            rest.cancel()
            await asyncio.wait([rest])
        return status, rest.result() if not rest.cancelled() else b""

    async def _last_words(self) -> tuple[str, ...]:
        with suppress(TimeoutError):
            async with asyncio.timeout(EXIT_S):
                lines = (await asyncio.shield(self._errors)).decode("utf-8", "backslashreplace").split("\n")
                return tuple(line for line in lines if line.strip())[-1:]
        return ()


class Lines:
    """Holds the newest line of a connector's conversation: what a fault is about."""

    def __init__(self) -> None:
        self.newest = ""

    def log(self, text: str) -> None:
        if text.startswith("<- "):
            self.newest = printable(text[3:])

    @property
    def shown(self) -> str:
        return self.newest if len(self.newest) <= LONGEST_SHOWN else f"{self.newest[: LONGEST_SHOWN - 3]}..."


async def try_connector(trial: ConnectorTrial, now_ns: Callable[[], int] = time.monotonic_ns) -> Conformance:
    """Run a program as a connector, and return how it conforms. `now_ns`: our clock."""
    conformance = Conformance()
    try:
        process = await asyncio.create_subprocess_exec(
            *trial.words, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=BUFFER, start_new_session=True
        )
    except OSError as error:
        conformance.deviates(Deviation.NOT_STARTED, f"{trial.words[0]!r} cannot be started ({error.strerror})")
        return conformance
    program, lines = Program(process), Lines()
    driver = ConnectorDriver(program, now_ns, lines.log, conformance.notices.append)
    driving = asyncio.ensure_future(driver.drive())
    try:
        if await _talk(trial, driver, conformance, lines, now_ns):
            driving.cancel()  # so that what comes after the end of its input is read there
            await asyncio.wait([driving])
            await _end(program, conformance)
    finally:
        driving.cancel()
        await program.close()
        await asyncio.wait([driving])
    conformance.finished(trial.interval_s)
    return conformance


async def _talk(
    trial: ConnectorTrial, driver: ConnectorDriver, conformance: Conformance, lines: Lines, now_ns: Callable[[], int]
) -> bool:
    """Whether it is still there at the end."""
    doing = Deviation.NO_HELLO, "no connector_hello"
    try:
        async with asyncio.timeout(trial.patience_s):
            conformance.hello = await driver.hello()
        doing = Deviation.NO_CONFIG, "no answer to read_config"
        async with asyncio.timeout(trial.patience_s):
            conformance.configured(await driver.config(trial.luns))
        began_ns = now_ns()
        for number in range(trial.gathers):
            doing = Deviation.SILENT, f"no answer to gather {number + 1}"
            await asyncio.sleep(max(began_ns + number * trial.interval_s * 1e9 - now_ns(), 0) / 1e9)
            async with asyncio.timeout(trial.patience_s):
                answered = await driver.gather()
            if isinstance(answered.message, Readings):
                conformance.gathered(Seen(answered.message, answered.sent_ns, answered.arrived_ns))
            else:
                reason = printable(getattr(answered.message, "reason", ""))
                conformance.deviates(Deviation.DECLINED, f"it declined gather {number + 1}: {reason}")
        await asyncio.sleep(SETTLE_S)
        if driver.gone is not None:
            raise ConnectorFault(driver.gone, kind=driver.gone_by)
    except TimeoutError:
        conformance.deviates(doing[0], f"{doing[1]} within {trial.patience_s:g} s")
    except ConnectorFault as fault:
        kind = _kind(driver, doing[0])
        line = f"; the line: {lines.shown}" if lines.newest and kind is not Deviation.ENDED else ""
        conformance.deviates(kind, f"{fault}{line}")
        return driver.gone is None
    return True


def _kind(driver: ConnectorDriver, doing: Deviation) -> Deviation:
    """The kind of deviation that a ConnectorFault is."""
    if driver.gone is None:
        return doing
    match driver.gone_by:
        case FaultKind.ENDED:
            return Deviation.ENDED
        case FaultKind.UNASKED:
            return Deviation.FLOOD
        case _:
            return Deviation.UNREADABLE


async def _end(program: Program, conformance: Conformance) -> None:
    """End its input, and see what it does."""
    status, rest = await program.end_input()
    waited = {Deviation.NO_HELLO, Deviation.NO_CONFIG, Deviation.SILENT} & {kind for kind, _ in conformance.deviations}
    if rest and waited:
        conformance.deviates(Deviation.NOT_FLUSHED, "its lines came only when its input had ended: flush each of them")
    if status is None:
        conformance.deviates(
            Deviation.STAYED, f"it did not exit within {EXIT_S:g} s of the end of its input; it was killed"
        )
    elif status != 0:
        how = ended(status, ())
        conformance.deviates(Deviation.EXIT_STATUS, f"at the end of its input {how}")
