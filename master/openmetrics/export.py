"""The metrics of one run: served for Prometheus, and as a file for node_exporter's textfile collector.

Rule: news only wakes a thread; all reading, serving and writing is in threads of their own, from the run's folder.
"""

import os
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import OutputError, PlanError

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

LOOPBACK: Final = "127.0.0.1"
LAST_FILE_S: Final = 5.0  # at the end of the run


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
        raise PlanError("metrics need prometheus-client, which is not installed: pip install 'ivypy[web]'") from None
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
