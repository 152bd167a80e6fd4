"""Three hosts, each a slave behind a man in the middle with a device of its own, and a controller whose results lie on
a disk of their own: everything that random faults hit.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support import devices
from tests.support.faults.devices import Counted
from tests.support.faults.kinds import Injected, Kind
from tests.support.fork_server import Command
from tests.support.real_runs import ROOT, Finished

HOSTS: Final = ("h0", "h1", "h2")
READ_US: Final = 20_000  # of every read: much more than a busy test machine adds
LONGEST_S: Final = 90.0  # of a run, which is planned for 14 s

PLAN: Final = """\
name: faults
engine: {{ threads: 1 }}
lease: 5s
on_io_error: count
hosts:
{hosts}
luns: {{ files: [ "{folder}/{{host}}.dat" ] }}
workloads: {{ w: {{ iosequencer: random_steady, iops: 100, maxtags: 16, blocksize: 4KiB }} }}
rollups: [ host ]
defaults: {{ subinterval: 0.5s, warmup: 1s, measure: 4s, disturbed: keep }}
steps: [ go: one, go: two ]
"""


@dataclass
class Host:
    name: str
    device: devices.FaultFs
    orders: Path  # where the men in the middle of its connections are: see middle.py

    def order(self, words: str) -> None:
        """To all of its connections."""
        for place in self.orders.parent.glob(f"{self.orders.name}.*.orders"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender, contextlib.suppress(OSError):
                sender.sendto(words.encode(), str(place))

    def signal(self, number: int) -> None:
        """To the slave, if there is one."""
        for place in self.orders.parent.glob(f"{self.orders.name}.*.child"):
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(place.read_text()), number)


class Bench:
    """Hosts and the results' disk; each `run` is one run with its faults."""

    def __init__(self, folder: Path, hosts: Sequence[Host], results: Path) -> None:
        self.folder, self.hosts, self.results = folder, {host.name: host for host in hosts}, results
        self._runs = 0
        self._fillers: list[_Filler] = []  # of this run, in the order of their faults

    def run(self, faults: Sequence[Injected], text: str = PLAN) -> "tuple[Finished | None, Counted]":
        """Run the plan, and inject `faults` meanwhile. None: it did not end within LONGEST_S."""
        shutil.rmtree(self.results / str(self._runs), ignore_errors=True)  # the last run's, or the disk fills
        self._runs += 1
        root = self.results / str(self._runs)
        root.mkdir()
        plan = self.folder / f"plan{self._runs}.yaml"
        launch = "\n".join(
            f"  - {{ name: {name}, command: '{sys.executable} {ROOT}/tests/support/faults/middle.py {host.orders}',"
            f" python: {sys.executable}, cache_dir: {self.folder}/cache-{name} }}"
            for name, host in self.hosts.items()
        )
        plan.write_text(text.format(hosts=launch, folder=self.folder))
        with Counted({name: host.device.device for name, host in self.hosts.items()}) as counted:
            finished = self._run(plan, root, faults, counted.now)
        return finished, counted

    def _run(self, plan: Path, root: Path, faults: Sequence[Injected], now: Callable[[], float]) -> Finished | None:
        console = _Console()
        with open(self.folder / "stderr", "w+") as errors:
            words = ["run", "-o", str(root), "--ui", "json", str(plan)]
            process = Command(*words, stdout=console.write_end, stderr=errors.fileno())
            console.opened(process)
            injecting = threading.Thread(target=self._inject, args=(process, console, root, faults, now), daemon=True)
            injecting.start()
            try:
                code = process.wait(LONGEST_S)
            except subprocess.TimeoutExpired:
                code = None
            injecting.join(LONGEST_S)
            if code is None:
                process.kill()
                process.wait()
            console.close()
            errors.seek(0)
            return None if code is None else Finished(code, console.text(), errors.read(), root)

    def _inject(
        self, process: Command, console: "_Console", root: Path, faults: Sequence[Injected], now: Callable[[], float]
    ) -> None:
        """Each at its time after the first step began; all are lifted at the end."""
        while not list(root.glob("*/step0000.*")) and process.poll() is None:
            time.sleep(0.01)
        began = time.monotonic()
        moments = [(one.at_s, one, True) for one in faults] + [(one.at_s + one.lasts_s, one, False) for one in faults]
        for at_s, one, begins in sorted(moments, key=lambda moment: moment[0]):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(began + at_s - time.monotonic(), 0.0))
            if begins and process.poll() is not None:
                continue  # the run is over: nothing to inject
            if begins:
                one.began = now()
                self._begin(one, process, console)
            elif one.began < float("inf"):
                self._end(one, process, console)
                one.ended = now()

    def _begin(self, one: Injected, process: Command, console: "_Console") -> None:
        host = self.hosts.get(one.host)
        match one.kind:
            case Kind.KILL if host:
                host.signal(signal.SIGKILL)
            case Kind.FREEZE if host:
                host.signal(signal.SIGSTOP)
            case Kind.CUT if host:
                host.order("cut")
            case Kind.DELAY if host:
                host.order("delay 0.2")
            case Kind.GARBAGE if host:
                host.order("garbage")
            case Kind.EIO if host:
                host.device.tell(read_us=READ_US, read_ppm=300_000)
            case Kind.HANG if host:
                host.device.hang()
            case Kind.SLOW if host:
                host.device.tell(read_us=READ_US + 100_000)
            case Kind.CONSOLE:
                console.stall()
            case Kind.DISK_FROZEN:
                subprocess.run(["fsfreeze", "-f", self.results], check=True)
            case Kind.DISK_FULL:
                self._fillers.append(_Filler(self.results / f"filler{one.at_s}"))
            case Kind.CONTROLLER:
                process.send_signal(signal.SIGSTOP)

    def _end(self, one: Injected, process: Command, console: "_Console") -> None:
        host = self.hosts.get(one.host)
        match one.kind:
            case Kind.FREEZE if host:
                host.signal(signal.SIGCONT)
            case Kind.CUT if host:
                host.order("mend")
            case Kind.DELAY if host:
                host.order("delay 0")
            case Kind.EIO | Kind.SLOW if host:
                host.device.tell(read_us=READ_US)
            case Kind.HANG if host:
                host.device.resume()
            case Kind.CONSOLE:
                console.go_on()
            case Kind.DISK_FROZEN:
                subprocess.run(["fsfreeze", "-u", self.results], check=True)
            case Kind.DISK_FULL:
                self._fillers.pop(0).empty()
            case Kind.CONTROLLER:
                process.send_signal(signal.SIGCONT)


class _Filler:
    """Fills a disk from a thread of its own, since the disk may be frozen meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_over = threading.Event()
        threading.Thread(target=self._fill, daemon=True).start()

    def empty(self) -> None:
        """Give the room back, as soon as the disk lets us."""
        self._is_over.set()

    def _fill(self) -> None:
        with contextlib.suppress(OSError), open(self._path, "wb", buffering=0) as file:
            while not self._is_over.is_set():
                file.write(bytes(1 << 20))
        self._is_over.wait()
        self._path.unlink(missing_ok=True)


class _Console:
    """The reader of standard output: a pipe that holds a page, read until it is told to stall."""

    def __init__(self) -> None:
        self._read_end, self.write_end = os.pipe()
        fcntl.fcntl(self.write_end, 1031, 4096)  # F_SETPIPE_SZ
        self._read: list[bytes] = []
        self._reads = threading.Event()
        self._reads.set()
        self._thread = threading.Thread(target=self._drain, daemon=True)

    def opened(self, process: Command) -> None:
        """The process has its end; ours would keep the pipe from ending."""
        os.close(self.write_end)
        self._thread.start()

    def _drain(self) -> None:
        while True:
            self._reads.wait()
            data = os.read(self._read_end, 1 << 16)
            if not data:
                return
            self._read.append(data)

    def stall(self) -> None:
        self._reads.clear()

    def go_on(self) -> None:
        self._reads.set()

    def text(self) -> str:
        return b"".join(self._read).decode()

    def close(self) -> None:
        self.go_on()
        self._thread.join(10)
        os.close(self._read_end)


@contextlib.contextmanager
def bench() -> Iterator[Bench]:
    """Three hosts with a file each, on ext4 on a device of faultfs, and a results' disk in memory. Raises Missing."""
    with devices.memory_folder() as folder, contextlib.ExitStack() as undo:
        hosts = []
        for name in HOSTS:
            device = undo.enter_context(devices.faultfs(64 << 20))
            file = undo.enter_context(devices.ext4_file(device.device, 16 << 20))
            (folder / f"{name}.dat").symlink_to(file)
            undo.callback(device.resume)
            device.tell(read_us=READ_US)
            hosts.append(Host(name, device, folder / f"{name}"))
        loop = undo.enter_context(devices.loop(128 << 20))
        results = folder / "results"
        results.mkdir()
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", loop], check=True)
        subprocess.run(["mount", loop, results], check=True)
        undo.callback(lambda: subprocess.run(["umount", "--lazy", results], check=True))
        yield Bench(folder, hosts, results)
