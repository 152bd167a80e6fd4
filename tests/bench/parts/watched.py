"""What it costs the controller to be watched: whole runs over sockets, one alone and one watched, in turns.

Watched means: `--metrics`, scraped once a subinterval, and `--metrics-file`; `ivypy web` with a client that follows the
run; three `ivypy attach`, one of them by host. All but the run are processes of their own, of which nothing is counted:
the figure is the CPU time of the controller's process, and the time in which it decides what follows a subinterval.
"""

import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final

import numpy as np

from ivypy.master.live.reports import Report, RunBegins, Watcher
from ivypy.master.openmetrics.export import MetricsBesideRun
from ivypy.master.plan.model import Plan
from tests.bench.parts.transport import SKIPPED, Meter, Shape, decided_ms, far_side, run
from tests.support.fork_server import COMMAND

FEWEST_SEEN: Final = 4  # subintervals, of each watcher
BEGINNING: Final = 3  # subintervals in which the watchers start, which are not counted either

SCRAPE = """
import sys, time, urllib.request
while True:
    print(urllib.request.urlopen(sys.argv[1]).read().count(b"ivypy_iops{"), flush=True)
    time.sleep(float(sys.argv[2]))
"""
FOLLOW = """
import json, sys, urllib.request
name, port, token = sys.argv[1:]  # a name below localhost, which browsers alone know
def get(path):
    headers = {"Authorization": "Bearer " + token, "Host": name + ":" + port}
    request = urllib.request.Request("http://127.0.0.1:" + port + path, headers=headers)
    return urllib.request.urlopen(request)
(run,) = json.load(get("/api/runs"))["runs"]
for line in get(f"/api/runs/{run['id']}/events"):
    if line.startswith(b"data:"):
        state = json.loads(line[5:])
        if state["closed"]:
            of = f"by=all&instance=all&from={state['closed'] - 1}"
            print(len(get(f"/api/runs/{run['id']}/steps/{state['step']}/series?{of}").read()), flush=True)
"""


@dataclass(frozen=True, slots=True)
class _Process:
    words: tuple[str, ...]
    process: "subprocess.Popen[str]"
    output: IO[str] | None  # None: it is read where the process is started

    def lines(self) -> int:
        """How many it has printed: one at least for each thing that it saw."""
        if self.output is None:
            return FEWEST_SEEN
        self.output.seek(0)
        return len(self.output.readlines())


class Watchers(Meter):
    """A meter that starts processes which watch the run, once it has begun."""

    def __init__(self, stack: ExitStack, scraped: str, pause_s: float) -> None:
        super().__init__()
        self.processes: list[_Process] = []
        self._stack = stack
        self._scraped, self._pause_s = scraped, pause_s

    def show(self, report: Report) -> None:
        super().show(report)
        if isinstance(report, RunBegins):
            threading.Thread(target=self._start, args=(Path(report.folder),), daemon=True).start()

    def _start(self, folder: Path) -> None:
        self._begin(sys.executable, "-c", SCRAPE, self._scraped, str(self._pause_s))
        for by in ((), (), ("--by", "host")):
            self._begin(COMMAND, "attach", str(folder), "--ui", "json", *by)
        web = self._begin(COMMAND, "web", str(folder.parent), "--listen", "127.0.0.1:0")
        assert web.stdout is not None
        found = re.match(r"http://([^/]+):(\d+)/#token=(\S+)", web.stdout.readline())
        assert found is not None
        self._begin(sys.executable, "-c", FOLLOW, *found.groups())

    def check(self) -> None:
        """Raises AssertionError where one has failed: then the run was not watched by all."""
        assert len(self.processes) == 6
        for one in self.processes:
            if one.process.poll() not in (None, 0, 6):  # attach has the run's exit code
                raise AssertionError(f"{' '.join(one.words)}: {one.process.communicate()[1]}")
            if one.lines() < FEWEST_SEEN:
                raise AssertionError(f"{' '.join(one.words)}: it saw the run {one.lines()} times")

    def _begin(self, *words: str) -> "subprocess.Popen[str]":
        output = None if "web" in words else self._stack.enter_context(tempfile.TemporaryFile("w+"))
        process = subprocess.Popen(words, stdout=output or subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.processes.append(_Process(words, process, output))
        self._stack.callback(ended, process)
        return process


def ended(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    process.communicate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def measure(shape: Shape, lines: Sequence[bytes], pairs: int) -> None:
    """Print a line for each run and the ratio of the pairs."""
    shape = replace(shape, subintervals=BEGINNING + shape.subintervals)
    cost: dict[bool, list[float]] = {False: [], True: []}
    deciding: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(prefix="ivypy-bench-") as made, ExitStack() as far:
        root = Path(made)
        named, opening = far.enter_context(far_side(shape, lines, root))
        for pair in range(pairs):
            for watched in (False, True) if pair % 2 == 0 else (True, False):
                with ExitStack() as stack:
                    port = free_port()
                    address = f"http://127.0.0.1:{port}/metrics"
                    meter = Watchers(stack, address, shape.length_s) if watched else Meter()

                    def watcher(plan: Plan, meter: Meter = meter, port: int = port) -> Watcher:
                        file = root / "run.prom"
                        return MetricsBesideRun(meter, f":{port}", file, ()) if isinstance(meter, Watchers) else meter

                    folder = run(shape, named, opening, root / f"runs{pair}{watched}", watcher)
                    if isinstance(meter, Watchers):
                        meter.check()
                spent = meter.seconds()["controller"][BEGINNING:]
                cost[watched].append(float(np.median(spent)))
                ms = [one for _, one in sorted(decided_ms(folder).items())][SKIPPED + BEGINNING : -1]
                deciding[watched].append(float(np.median(ms)))
                print(
                    f"{'watched' if watched else 'alone':8} {shape.hosts} hosts, {shape.length_s:g} s subintervals:"
                    f" {cost[watched][-1] * 1e3:6.1f} ms of CPU a subinterval ({min(spent) * 1e3:.1f} to"
                    f" {max(spent) * 1e3:.1f}), decided in {deciding[watched][-1]:.1f} ms",
                    flush=True,
                )
    ratios = np.array(cost[True]) / np.array(cost[False])
    more_ms = (np.median(cost[True]) - np.median(cost[False])) * 1e3
    print(
        f"CPU watched / alone: {np.median(ratios):.3f} ({ratios.min():.3f} to {ratios.max():.3f}),"
        f" {more_ms:+.1f} ms a subinterval, {more_ms / shape.length_s / 10:+.2f} % of a core;"
        f" decided {np.median(deciding[True]) - np.median(deciding[False]):+.1f} ms"
    )
