"""The metrics of one run: served for Prometheus, and as a file for node_exporter's textfile collector.

Rule: news only wakes a thread; all reading, serving and writing is in threads of their own, from the run's folder.
"""

import json
import os
import select
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import IvypyError, OutputError, PlanError
from ..live.reports import Report, RunBegins, RunEnds, Subinterval, Watcher
from ..text.libraries import to_install

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


LOOPBACK: Final = "127.0.0.1"
LAST_FILE_S: Final = 5.0  # at the end of the run
BEGIN_S: Final = 10.0  # for the child to listen, and to write the first file
READY: Final = "ready"


class MetricsExport:
    """Exports the metrics of one run, which may begin later.

    `address`: to listen at, like `:9101`, which is loopback; `file`: to write when there is news; "" and None:
    neither. Raises PlanError where nobody can listen there, the file cannot be written, or a library is missing.
    """

    def __init__(self, address: str, file: Path | None, types: tuple[str, ...]) -> None:
        self._folders: list[Path] = []
        self._registry = registry_of(lambda: self._folders, types or None)
        self._server = served(self._registry, address) if address else None
        self._file = file
        self._news = threading.Event()
        self._ended = threading.Event()
        self._writer: threading.Thread | None = None
        if file is not None:
            write_file(self._registry, file)  # a fault shows before any host is connected
            self._writer = threading.Thread(target=self._write_files, name="ivypy-metrics", daemon=True)
            self._writer.start()

    def begin(self, folder: Path) -> None:
        """The run has this folder."""
        self._folders = [folder]

    def news(self) -> None:
        """There is more in the folder."""
        self._news.set()

    def close(self) -> None:
        """The run has ended: write what there is now, and wait for it, but not for long."""
        self._ended.set()
        self._news.set()
        if self._writer is not None:
            self._writer.join(LAST_FILE_S)

    def _write_files(self) -> None:
        assert self._file is not None
        last = False
        while not last:
            self._news.wait()
            self._news.clear()
            last = self._ended.is_set()  # before the folder is read: what is written then is the run's end
            with suppress(PlanError, OutputError):  # of a full disk: the next one may have room
                write_file(self._registry, self._file)


def registry_of(folders: Callable[[], Iterable[Path]], types: tuple[str, ...] | None) -> "CollectorRegistry":
    """A registry with the metrics of these runs alone. Raises PlanError where the library is missing."""
    try:
        from prometheus_client import CollectorRegistry
    except ImportError:
        raise PlanError(f"metrics need prometheus-client: {to_install('prometheus-client')}") from None
    from .collector import RunCollector

    registry = CollectorRegistry(auto_describe=False)
    registry.register(RunCollector(folders, types))
    return registry


def served(registry: "CollectorRegistry", address: str) -> object:
    """Serve /metrics in threads of their own until the process ends. Raises PlanError."""
    from prometheus_client import start_http_server

    host, port = parse_address(address)
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        raise PlanError(
            f"--metrics {address}: cannot listen there: {error.strerror or error}; name another port"
        ) from None
    return server


def parse_address(text: str) -> tuple[str, int]:
    """(host, port) of `127.0.0.1:9101`, `[::1]:9101`, or `:9101`, which is loopback. Raises PlanError."""
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise PlanError(f"--metrics {text}: is no address; write {LOOPBACK}:9101, or :9101, which is the same")
    return host.strip("[]") or LOOPBACK, int(port)


def write_file(registry: "CollectorRegistry", path: Path) -> None:
    """Write the exposition in the place of the file, at once: a reader sees the one before or this one.

    Raises PlanError where the path is a folder or its folder is missing, OutputError for what else fails.
    """
    from prometheus_client import generate_latest

    if path.is_dir() or not path.parent.is_dir():
        what = "a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise PlanError(f"--metrics-file {path}: {what}; name a file, which ends in .prom")
    try:
        file, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(file, "wb") as opened:
                opened.write(generate_latest(registry))
                os.fchmod(file, 0o644)
            os.replace(beside, path)
        except OSError:
            with suppress(OSError):
                os.unlink(beside)
            raise
    except OSError as error:
        raise OutputError(f"{path}: not written: {error.strerror or error}") from None


class MetricsBesideRun:
    """A watcher that passes reports on, and has the run's metrics exported meanwhile. Arguments and errors: see
    MetricsExport.

    The export is a child, since one exposition takes as long as merging a subinterval of 100 hosts. Whatever becomes of
    it, the run goes on: it writes a line for each subinterval into a pipe that it never waits for. The child has a
    session of its own, so that Ctrl-C reaches the run alone, and it ends with its input.
    """

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
