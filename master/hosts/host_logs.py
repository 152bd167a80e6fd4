"""log/<host>.log: the whole conversation with one host, a stamped line each.

    2026-03-01T12:00:00.123456Z +0.000812 -> {"type":"clock_probe","id":7}

`->` went to the host, `<-` came from it, `!!` is its stderr; the second field is the time since the line before, in
seconds. Rule: a line is a line, whatever a host wrote: control characters stand escaped. Nobody waits for the disk:
lines are written together, a little later; while too much waits, further ones are dropped, and the log states how many.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Final

from ...protocol.text import printable
from ..errors import OutputError

MOST_HELD: Final = 16 << 20  # bytes that wait for the disk, of all hosts together


class HostLogs:
    """Holds the logs of a run's hosts, and which lines wait. Whoever made it calls `flush`, in another thread."""

    def __init__(
        self,
        wake: Callable[[], None],
        dropped: Callable[[str, int], None],
        patiently: Callable[[Callable[[], None]], object] = lambda write: write(),
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """`wake`: there is something to flush, and there was not before.

        `dropped`, called by `flush`: a host, and how many lines its log lacks. `patiently` calls what it is given,
        and calls it again where the disk was full. `now_s`: seconds since 1970.
        """
        self._wake = wake
        self._dropped = dropped
        self._patiently = patiently
        self._now_s = now_s
        self._logs: dict[str, _HostLog] = {}
        self._held = 0  # bytes
        self._woken = False
        self._lock = threading.Lock()
        self._flushing = threading.Lock()

    def of(self, host: str, path: Path) -> Callable[[str], None]:
        """The log of one host, which is appended to `path`: call it with a line's text."""
        log = self._logs.setdefault(host, _HostLog(path))
        return lambda text: self._add(log, text)

    def flush(self) -> None:
        """Write all lines that wait; one thread after the other. Raises OutputError."""
        with self._flushing:
            self._flush()

    def close(self) -> None:
        """Write what waits, and close the files. Raises OutputError."""
        try:
            self.flush()
        finally:
            for log in self._logs.values():
                log.close()

    def _flush(self) -> None:
        with self._lock:
            self._woken = False
        for host, log in list(self._logs.items()):
            with self._lock:
                lines, dropped = log.take()
            size = sum(map(len, lines))
            if dropped:
                words = f"... {dropped:,} lines were dropped: the disk was too slow"
                lines.append(_line(self._now_s(), 0.0, words))
                self._dropped(host, dropped)
            if lines:
                log.write(b"".join(lines), self._patiently)
            with self._lock:
                self._held -= size

    def _add(self, log: "_HostLog", text: str) -> None:
        line = log.stamped(self._now_s(), text)
        with self._lock:
            wake, self._woken = not self._woken, True
            if self._held + len(line) > MOST_HELD:
                log.dropped += 1
            else:
                log.lines.append(line)
                self._held += len(line)
        if wake:
            self._wake()


class _HostLog:
    """Holds an open log, its lines that wait, and the time of its last line."""

    def __init__(self, path: Path) -> None:
        self.lines: list[bytes] = []
        self.dropped = 0
        self._path = path
        self._last_s: float | None = None
        self._file: FileIO | None = None

    def stamped(self, now_s: float, text: str) -> bytes:
        since_s = 0.0 if self._last_s is None else now_s - self._last_s
        self._last_s = now_s
        return _line(now_s, since_s, text)

    def take(self) -> tuple[list[bytes], int]:
        lines, self.lines = self.lines, []
        dropped, self.dropped = self.dropped, 0
        return lines, dropped

    def write(self, data: bytes, patiently: Callable[[Callable[[], None]], object]) -> None:
        rest = data

        def write_rest() -> None:
            nonlocal rest
            if self._file is None:
                self._file = open(self._path, "ab", buffering=0)
            while rest:
                rest = rest[self._file.write(rest) :]  # a short write comes before the error that the disk is full

        try:
            patiently(write_rest)
        except OSError as error:
            raise OutputError(
                f"{self._path} cannot be written ({error.strerror}); choose another folder with -o"
            ) from None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _line(now_s: float, since_s: float, text: str) -> bytes:
    stamp = datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return f"{stamp} {since_s:+.6f} {printable(text)}\n".encode("utf-8", "backslashreplace")
