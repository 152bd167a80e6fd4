"""The slave's process: `python -m ivypy.slave`, or the folder of a bundle, at the end of a pipe.

Rule: the link owns the output. A private copy of descriptor 1 is kept for it and descriptor 1 is pointed at stderr, so
that a stray print of any library cannot break a line. The process ends with `_exit`, after it has closed its output:
nothing may wait for a thread that the kernel holds, and the kernel itself may keep a process for as long as a hung
device keeps its I/O.
"""

import asyncio
import contextlib
import os
import resource
import signal
import sys
import traceback
from pathlib import Path

from .host.memory_limits import prefer_as_victim
from .link.command_server import CommandServer, Exit
from .link.slave_link import why_not_a_pipe

INPUT, OUTPUT, ERRORS = 0, 1, 2


def main() -> None:
    """Serve the controller at standard input and output; does not return."""
    code: int = Exit.FAILED
    outward = -1
    try:
        reasons = [r for r in (why_not_a_pipe(INPUT, "standard input"), why_not_a_pipe(OUTPUT, "standard output")) if r]
        if reasons:
            print("\n".join(f"ivypy: {reason}" for reason in reasons), file=sys.stderr)
            code = Exit.NO_PIPE
        else:
            allow_open_files()
            prefer_as_victim(Path("/"))
            outward = os.dup(OUTPUT)
            os.dup2(ERRORS, OUTPUT)
            code = asyncio.run(serve(outward))
    except BaseException:
        with contextlib.suppress(OSError):  # whoever read it may be gone
            traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        for fd in (outward, INPUT, OUTPUT, ERRORS):
            with contextlib.suppress(OSError):
                os.close(fd)
        os._exit(code)


def allow_open_files() -> None:
    """As many as this user may have: the usual limit of 1,024 is for programs that use select()."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def serve(outward: int) -> int:
    """Handle signals, and serve until the end; returns the exit status."""
    slave = CommandServer(INPUT, outward)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end_by_signal, slave, number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the controller decides about the terminal's Ctrl-C
    return await slave.serve()


def end_by_signal(slave: CommandServer, number: signal.Signals) -> None:
    slave.end(Exit.SIGNAL + number, f"ended by {number.name}")


if __name__ == "__main__":
    main()
