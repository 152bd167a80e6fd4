"""The export of metrics as a child of a run: making one exposition takes as long as merging a subinterval of 100 hosts.

Rule: whatever becomes of the child, the run goes on: it writes a line for each subinterval into a pipe that it never
waits for. The child has a session of its own, so that Ctrl-C reaches the run alone, and it ends with its input.
"""

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..errors import IvypyError, PlanError
from ..live.reports import Report, RunBegins, RunEnds, Subinterval, Watcher
from .export import LAST_FILE_S, MetricsExport

BEGIN_S: Final = 10.0  # for the child to listen, and to write the first file
READY: Final = "ready"


class MetricsBesideRun:
    """A watcher that passes reports on, and has the run's metrics exported meanwhile. Arguments and errors: see
    MetricsExport."""

    def __init__(self, inner: Watcher, address: str, file: Path | None, types: tuple[str, ...]) -> None:
        self._inner = inner
        words = json.dumps([address, None if file is None else str(file.absolute()), types])
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        assert self._child.stdin is not None and self._child.stdout is not None
        self._input = self._child.stdin.fileno()
        os.set_blocking(self._input, False)
        begun, _, _ = select.select([self._child.stdout], [], [], BEGIN_S)
        answer = self._child.stdout.readline().decode().strip() if begun else f"no answer in {BEGIN_S:g} s"
        self._child.stdout.close()
        if answer != READY:
            self._child.stdin.close()
            self._child.kill()
            self._child.wait()
            raise PlanError(answer or "the export of metrics did not start")

    def show(self, report: Report) -> None:
        if isinstance(report, RunBegins):
            self._tell(f"{report.folder}\n")
        if isinstance(report, Subinterval | RunEnds):
            self._tell("\n")
        self._inner.show(report)

    def close(self) -> None:
        assert self._child.stdin is not None
        with suppress(OSError):
            self._child.stdin.close()
        try:
            self._child.wait(LAST_FILE_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._inner.close()

    def _tell(self, line: str) -> None:
        with suppress(OSError):  # it has ended, or does not read: what it misses is in the folder
            os.write(self._input, os.fsencode(line))


def main() -> None:
    """The child."""
    address, file, types = json.loads(sys.argv[1])
    try:
        export = MetricsExport(address, None if file is None else Path(file), tuple(types))
    except IvypyError as error:
        print(error, flush=True)
        return
    print(READY, flush=True)
    for line in sys.stdin.buffer:
        if folder := os.fsdecode(line.rstrip(b"\n")):
            export.begin(Path(folder))
        else:
            export.news()
    export.close()


if __name__ == "__main__":
    main()
