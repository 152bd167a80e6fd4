"""The server as a child of a run: started before it, told of its end, never waited for.

Rule: whatever becomes of the server, the run goes on. It has a session of its own: Ctrl-C reaches the run alone.
"""

import select
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from .lifetime import STAY

BEGIN_S: Final = 10.0  # for the server to print its address
PROGRAM: Final = "from ivypy.master.cli.main import main; main()"


class PageBesideRun:
    """Holds the child. `address` of the page; "" where the server did not start, and `fault` says why."""

    def __init__(self, root: Path) -> None:
        """Start it, and wait for its address. `root`: the folder in which the run makes its own."""
        self.address = self.fault = ""
        words = ["web", "--beside-run", "--", str(root)]
        with tempfile.TemporaryFile() as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", PROGRAM, *words],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
            )  # fmt: skip
            assert self._process.stdout is not None
            self.address = _line(self._process.stdout)
            if not self.address:
                self._process.kill()
                self._process.wait()
                errors.seek(0)
                self.fault = errors.read(4096).decode(errors="replace").strip() or f"no address in {BEGIN_S:g} s"
            self._process.stdout.close()

    def end(self, stay: bool) -> None:
        """The run has ended. `stay`: the server may stay for those who look at its page."""
        assert self._process.stdin is not None
        with suppress(OSError):
            if stay:
                self._process.stdin.write(STAY)
            self._process.stdin.close()


def _line(stream: IO[bytes]) -> str:
    """The first line; "" where none comes in time."""
    ready, _, _ = select.select([stream], [], [], BEGIN_S)
    return stream.readline().decode().strip() if ready else ""
