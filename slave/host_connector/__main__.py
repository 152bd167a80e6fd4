"""The host connector's process: `python -m ivypy.slave.host_connector`, or the folder of a bundle with `connector`.

Rule: as for the slave, descriptor 1 is pointed at stderr, and what is written for the controller goes to a private copy
of it. The process ends with `_exit` at the end of its input, or when the controller is silent (KeepAlive) or reads
nothing: nothing waits for a thread that a device holds.
"""

import contextlib
import errno
import os
import select
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Final

from ...protocol.connector import (
    CONNECTOR_PROTOCOL,
    HOST_CONNECTOR_COMMANDS,
    ConnectorHello,
    KeepAlive,
    answer_to,
)
from ...protocol.errors import ProtocolError
from ...protocol.lines import LineReader, decode, encode_line
from ..host.cpu_placement import place_threads, siblings_of_cores
from ..host.memory_limits import prefer_as_victim
from .connector import HostConnector

INPUT, OUTPUT, ERRORS = 0, 1, 2
READ_BYTES: Final = 1 << 16
SILENCE_MS: Final = 120_000  # until the controller says how long it may be silent
READ_ON_MS: Final = 1_000  # after a freeze
ENDED, FAILED, PROTOCOL_ERROR = 0, 1, 3  # exit status, as the slave's


def main() -> None:
    """Answer the controller at standard input and output; does not return."""
    code = FAILED
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the controller decides about the terminal's Ctrl-C
        outward = os.dup(OUTPUT)
        os.dup2(ERRORS, OUTPUT)
        prefer_as_victim(Path("/"))
        cores = sorted(os.sched_getaffinity(0))
        keep_off_workload_threads(cores)
        serve(HostConnector(cores), INPUT, outward)
        code = ENDED
    except BrokenPipeError:
        code = ENDED  # as the end of its input: nobody reads any more
    except ProtocolError as error:
        code = PROTOCOL_ERROR
        print(f"ivypy: {error}", file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(code)


def keep_off_workload_threads(cores: "list[int]") -> None:
    """Run where the slave itself does, on cores that workload threads leave free by default, if there are any."""
    spared = place_threads(0, (), cores, siblings_of_cores([0]).get(0, ())).spared
    if spared:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, spared)


def serve(connector: HostConnector, inward: int, outward: int) -> None:
    """Answer commands until the input ends, or nobody sends any more. Raises ProtocolError, and OSError where nobody
    reads the answers."""
    write(outward, encode_line(ConnectorHello(CONNECTOR_PROTOCOL, "host")), SILENCE_MS)
    reader = LineReader()
    silence_ms = SILENCE_MS
    while is_sent(inward, silence_ms):
        data = os.read(inward, READ_BYTES)
        if not data:
            return
        for line in reader.feed(data):
            command = decode(line, HOST_CONNECTOR_COMMANDS)
            if isinstance(command, KeepAlive):
                silence_ms = command.silence_ms
            else:
                write(outward, answer_to(connector, command, time.monotonic_ns), silence_ms)
    print(f"no command from the controller for {silence_ms / 1000:g} s", file=sys.stderr)


def is_sent(inward: int, within_ms: int) -> bool:
    """Whether there is something to read, or the end of it. After a freeze, what waits is read first."""
    input_ = select.poll()
    input_.register(inward, select.POLLIN)
    return bool(input_.poll(within_ms) or input_.poll(READ_ON_MS))


def write(outward: int, data: bytes, within_ms: int) -> None:
    """Raises BrokenPipeError where nobody reads for so long. After a freeze, a reader has time to go on."""
    output = select.poll()
    output.register(outward, select.POLLOUT)
    left = memoryview(data)
    while left:
        if not (output.poll(within_ms) or output.poll(READ_ON_MS)):
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        left = left[os.write(outward, left[: select.PIPE_BUF]) :]  # which a pipe that is ready takes at once


if __name__ == "__main__":
    main()
