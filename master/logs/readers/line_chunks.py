"""A log's text in chunks of whole lines, whatever it is compressed with.

Rule: memory holds one chunk. The first bytes decide which compression it is, never the name. The `zstd` program
unpacks zstd, since Python 3.11 has no module for it. The chunks are views of one buffer: reading the next one
overwrites the last.
"""

import gzip
import lzma
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

CHUNK: Final = 2 << 20  # bytes; the parsed chunk of each thread stays in the cache of a core, or nearly
LONGEST_LINE: Final = 64 << 20

_GZIP, _XZ, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"


_BROKEN: Final = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)


class StreamError(Exception):
    """The file cannot be read, or not unpacked; the text says why."""


def is_pipe(path: Path) -> bool:
    """Whether a path can be read only once: `-` (standard input), a FIFO, a process substitution, a terminal."""
    return str(path) == "-" or (path.exists() and not path.is_file() and not path.is_dir())


def copied(path: Path, folder: Path) -> Path:
    """Copies a pipe into a file of `folder`, since the format of a log is detected before it is read. StreamError."""
    copy = folder / f"{len(list(folder.iterdir()))}_{path.name}"
    try:
        with nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb") as pipe, copy.open("wb") as file:
            shutil.copyfileobj(pipe, file, CHUNK)
    except OSError as error:
        raise StreamError(f"cannot be read: {error.strerror or error}") from None
    return copy


class _Readable(Protocol):
    def readinto(self, buffer: memoryview, /) -> int | None: ...


@dataclass(frozen=True, slots=True)
class _Unpacked:
    """A compressed file read piece by piece: where it ends too early, all that came before has been given."""

    file: gzip.GzipFile | lzma.LZMAFile

    def readinto(self, buffer: memoryview, /) -> int:
        piece = self.file.read1(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


@contextmanager
def open_log(path: Path) -> Iterator[_Readable]:
    """The unpacked bytes of a log. StreamError where it cannot be opened."""
    try:
        with path.open("rb", buffering=0) as file:
            magic = file.read(6) or b""
            file.seek(0)
            if magic.startswith(_GZIP):
                yield _Unpacked(gzip.GzipFile(fileobj=file))
            elif magic.startswith(_XZ):
                yield _Unpacked(lzma.LZMAFile(file))
            elif magic.startswith(_ZSTD):
                with _zstd(path) as unpacked:
                    yield unpacked
            else:
                yield file
    except _BROKEN as error:
        raise StreamError(f"cannot be unpacked: {error}") from None
    except OSError as error:
        raise StreamError(f"cannot be read: {error.strerror or error}") from None


@contextmanager
def _zstd(path: Path) -> Iterator[_Readable]:
    try:
        process = subprocess.Popen(
            ["zstd", "-dc", "--", str(path)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except FileNotFoundError:
        raise StreamError("is compressed with zstd, and there is no `zstd` program; install it, or unpack it") from None
    assert process.stdout is not None and process.stderr is not None
    with process:
        try:
            yield process.stdout  # type: ignore[misc]  # a BufferedReader has readinto
            ended = not process.stdout.read(1)
        except BaseException:
            process.kill()
            raise
        if not ended:
            process.kill()  # the reader had enough
        elif process.wait():
            said = process.stderr.read().decode(errors="replace").strip()
            raise StreamError(f"cannot be unpacked: {said.splitlines()[-1] if said else 'zstd failed'}")


def chunks(stream: _Readable, size: int = CHUNK) -> Iterator[tuple[memoryview, bool]]:
    """Whole lines, about `size` bytes at a time, and whether the last of them lacked its newline (one is added)."""
    buffer = bytearray(size)
    filled = 0
    while True:
        count = _fill(stream, memoryview(buffer)[filled:])
        filled += count
        if not count and filled < len(buffer):
            if filled:
                buffer[filled : filled + 1] = b"\n"
                yield memoryview(buffer)[: filled + 1], True
            return
        cut = buffer.rfind(b"\n", 0, filled) + 1
        if cut:
            yield memoryview(buffer)[:cut], False
            rest = bytes(memoryview(buffer)[cut:filled])
            buffer[: len(rest)] = rest
            filled = len(rest)
        elif len(buffer) > LONGEST_LINE:
            raise StreamError(f"has a line of more than {LONGEST_LINE >> 20} MiB: this is not a log")
        elif filled == len(buffer):
            buffer = buffer + bytearray(len(buffer))  # a line longer than the chunk; a new one, the old has views


def _fill(stream: _Readable, view: memoryview) -> int:
    """Read until the view is full or the stream ends: an unpacker gives little at a time. Where it breaks, what came
    before is given; the next call fails."""
    filled = 0
    while filled < len(view):
        try:
            count = stream.readinto(view[filled:])
        except (*_BROKEN, OSError):
            if filled:
                break
            raise
        if not count:
            break
        filled += count
    return filled


def head(path: Path, size: int = 256 << 10) -> bytes:
    """The first bytes of a log, unpacked."""
    with open_log(path) as stream:
        buffer = bytearray(size)
        return bytes(buffer[: _fill(stream, memoryview(buffer))])
