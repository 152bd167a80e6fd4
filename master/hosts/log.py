"""log/<host>.log: the whole conversation with one host, a stamped line each.

    2026-03-01T12:00:00.123456Z +0.000812 -> {"type":"clock_probe","id":7}

`->` went to the host, `<-` came from it, `!!` is its stderr; the second field is the time since the line before, in
seconds. Rule: a line is a line, whatever a host wrote: control characters stand escaped.
"""

import errno
import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path

from ..errors import OutputError

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class HostLog:
    """Remembers an open log and when its last line was written; call it with a line's text."""

    def __init__(self, path: Path, now_s: Callable[[], float] = time.time) -> None:
        """Appends to `path`. `now_s`: seconds since 1970. Raises OutputError if the file cannot be written."""
        self._path = path
        self._now_s = now_s
        self._last_s: float | None = None
        self._file = self._open()

    def __call__(self, text: str) -> None:
        """Add a line; it is in the file when this returns. Raises OutputError."""
        now_s = self._now_s()
        since_s = 0.0 if self._last_s is None else now_s - self._last_s
        self._last_s = now_s
        stamp = datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        line = f"{stamp} {since_s:+.6f} {printable(text)}\n".encode("utf-8", "backslashreplace")
        try:
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # a short write is what comes before it
        except OSError as error:
            raise self._fault(error) from None

    def close(self) -> None:
        self._file.close()

    def _open(self) -> FileIO:
        try:
            return open(self._path, "ab", buffering=0)  # a system call a line, whole or not at all
        except OSError as error:
            raise self._fault(error) from None

    def _fault(self, error: OSError) -> OutputError:
        return OutputError(f"{self._path} cannot be written ({error.strerror}); name another place with -o")


def printable(text: str) -> str:
    """`text` without what would end a line or steer a terminal."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
